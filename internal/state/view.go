package state

import (
	"context"

	"github.com/pintle/pintle/internal/store"
)

// View holds the tables as they were at one moment or, in an Update, as the transaction sees them.
type View struct {
	view *store.View

	AccountSettings            Table[AccountSetting]
	Addresses                  Table[Address]
	AlarmHistory               Table[AlarmHistory]
	Alarms                     Table[Alarm]
	AnomalyDetectors           Table[AnomalyDetector]
	AutoScalingGroups          Table[AutoScalingGroup]
	CapacityProviders          Table[CapacityProvider]
	ChangeSets                 Table[ChangeSet]
	Clusters                   Table[Cluster]
	ContainerInstances         Table[ContainerInstance]
	Dashboards                 Table[Dashboard]
	DefaultNetworks            Table[DefaultNetwork]
	Deliveries                 Table[Delivery]
	DHCPOptions                Table[DHCPOptions]
	EgressOnlyInternetGateways Table[EgressOnlyInternetGateway]
	ExportTasks                Table[ExportTask]
	GroupActions               Table[GroupAction]
	GroupActivities            Table[GroupActivity]
	GroupPolicies              Table[GroupPolicy]
	GroupRefreshes             Table[GroupRefresh]
	IdempotencyTokens          Table[IdempotencyToken]
	Instances                  Table[Instance]
	InternetGateways           Table[InternetGateway]
	JoinTokens                 Table[JoinToken]
	KeyPairs                   Table[KeyPair]
	LaunchConfigurations       Table[LaunchConfiguration]
	LaunchTemplates            Table[LaunchTemplate]
	LogResourcePolicies        Table[LogResourcePolicy]
	NATGateways                Table[NATGateway]
	NetworkACLs                Table[NetworkACL]
	NetworkInterfaces          Table[NetworkInterface]
	NodeKeys                   Table[NodeKey]
	Parameters                 Table[Parameter]
	ParameterVersions          Table[ParameterVersion]
	PlacementGroups            Table[PlacementGroup]
	QueryDefinitions           Table[QueryDefinition]
	RouteTables                Table[RouteTable]
	ScalableTargets            Table[ScalableTarget]
	ScalingActivities          Table[ScalingActivity]
	ScalingPolicies            Table[ScalingPolicy]
	ScheduledActions           Table[ScheduledAction]
	Secrets                    Table[Secret]
	SecretVersions             Table[SecretVersion]
	SecurityGroupRules         Table[SecurityGroupRule]
	SecurityGroups             Table[SecurityGroup]
	ServiceDeployments         Table[ServiceDeployment]
	ServiceRevisions           Table[ServiceRevision]
	Services                   Table[Service]
	StackEvents                Table[StackEvent]
	StackResources             Table[StackResource]
	Stacks                     Table[Stack]
	Subnets                    Table[Subnet]
	TaskDefinitions            Table[TaskDefinition]
	TaskFamilies               Table[TaskFamily]
	Tasks                      Table[Task]
	VPCEndpoints               Table[VPCEndpoint]
	VPCs                       Table[VPC]
}

// Changed waits until something that was read through a view from Watch has changed.
func (v *View) Changed(ctx context.Context) error { return v.view.Changed(ctx) }

// ChangedCh is Changed for a select. The channel gets one value. It ends with ctx.
func (v *View) ChangedCh(ctx context.Context) <-chan error { return v.view.ChangedCh(ctx) }

// newView binds every table to a view.
func newView(v *store.View) *View {
	return &View{
		view: v,

		AccountSettings:            accountSettings.In(v),
		Addresses:                  addresses.In(v),
		AlarmHistory:               alarmHistory.In(v),
		Alarms:                     alarms.In(v),
		AnomalyDetectors:           anomalyDetectors.In(v),
		AutoScalingGroups:          autoScalingGroups.In(v),
		CapacityProviders:          capacityProviders.In(v),
		ChangeSets:                 changeSets.In(v),
		Clusters:                   clusters.In(v),
		ContainerInstances:         containerInstances.In(v),
		Dashboards:                 dashboards.In(v),
		DefaultNetworks:            defaultNetworks.In(v),
		Deliveries:                 deliveries.In(v),
		DHCPOptions:                dhcpOptions.In(v),
		EgressOnlyInternetGateways: egressOnlyInternetGateways.In(v),
		ExportTasks:                exportTasks.In(v),
		GroupActions:               groupActions.In(v),
		GroupActivities:            groupActivities.In(v),
		GroupPolicies:              groupPolicies.In(v),
		GroupRefreshes:             groupRefreshes.In(v),
		IdempotencyTokens:          idempotencyTokens.In(v),
		Instances:                  instances.In(v),
		InternetGateways:           internetGateways.In(v),
		JoinTokens:                 joinTokens.In(v),
		KeyPairs:                   keyPairs.In(v),
		LaunchConfigurations:       launchConfigurations.In(v),
		LaunchTemplates:            launchTemplates.In(v),
		LogResourcePolicies:        logResourcePolicies.In(v),
		NATGateways:                natGateways.In(v),
		NetworkACLs:                networkACLs.In(v),
		NetworkInterfaces:          networkInterfaces.In(v),
		NodeKeys:                   nodeKeys.In(v),
		Parameters:                 parameters.In(v),
		ParameterVersions:          parameterVersions.In(v),
		PlacementGroups:            placementGroups.In(v),
		QueryDefinitions:           queryDefinitions.In(v),
		RouteTables:                routeTables.In(v),
		ScalableTargets:            scalableTargets.In(v),
		ScalingActivities:          scalingActivities.In(v),
		ScalingPolicies:            scalingPolicies.In(v),
		ScheduledActions:           scheduledActions.In(v),
		Secrets:                    secrets.In(v),
		SecretVersions:             secretVersions.In(v),
		SecurityGroupRules:         securityGroupRules.In(v),
		SecurityGroups:             securityGroups.In(v),
		ServiceDeployments:         serviceDeployments.In(v),
		ServiceRevisions:           serviceRevisions.In(v),
		Services:                   services.In(v),
		StackEvents:                stackEvents.In(v),
		StackResources:             stackResources.In(v),
		Stacks:                     stacks.In(v),
		Subnets:                    subnets.In(v),
		TaskDefinitions:            taskDefinitions.In(v),
		TaskFamilies:               taskFamilies.In(v),
		Tasks:                      tasks.In(v),
		VPCEndpoints:               vpcEndpoints.In(v),
		VPCs:                       vpcs.In(v),
	}
}

// schema lists every table. A table whose rows live as long as another table's comes after it.
var schema = store.NewSchema(
	accountSettings,
	addresses,
	alarmHistory,
	alarms,
	anomalyDetectors,
	autoScalingGroups,
	capacityProviders,
	clusters,
	containerInstances,
	dashboards,
	defaultNetworks,
	deliveries,
	dhcpOptions,
	egressOnlyInternetGateways,
	exportTasks,
	groupActions,
	groupActivities,
	groupPolicies,
	groupRefreshes,
	idempotencyTokens,
	instances,
	internetGateways,
	joinTokens,
	keyPairs,
	launchConfigurations,
	launchTemplates,
	logResourcePolicies,
	natGateways,
	networkACLs,
	networkInterfaces,
	nodeKeys,
	parameters,
	parameterVersions,
	placementGroups,
	queryDefinitions,
	routeTables,
	scalableTargets,
	scalingActivities,
	scalingPolicies,
	scheduledActions,
	services,
	serviceDeployments,
	serviceRevisions,
	securityGroupRules,
	securityGroups,
	subnets,
	tasks,
	taskDefinitions,
	taskFamilies,
	vpcEndpoints,
	vpcs,
	stacks,
	stackResources,
	stackEvents,
	changeSets,
	secrets,
	secretVersions,
)
