package state

import (
	"context"

	"github.com/pintle/pintle/internal/store"
)

// View holds the tables as they were at one moment or, in an Update, as the transaction sees them.
type View struct {
	view *store.View

	discoveryTables
	eventTables
	fileSystemTables
	functionTables
	imageTables
	loadBalancerTables
	networkTables
	secretTables
	stackTables
	topicTables

	AccessKeys           Table[*AccessKey]
	AccountSettings      Table[*AccountSetting]
	AlarmHistory         Table[*AlarmHistory]
	Alarms               Table[*Alarm]
	AnomalyDetectors     Table[*AnomalyDetector]
	AutoScalingGroups    Table[*AutoScalingGroup]
	CapacityProviders    Table[*CapacityProvider]
	Certificates         Table[*Certificate]
	Clusters             Table[*Cluster]
	ContainerInstances   Table[*ContainerInstance]
	Dashboards           Table[*Dashboard]
	Deliveries           Table[*Delivery]
	ExportTasks          Table[*ExportTask]
	GroupActions         Table[*GroupAction]
	GroupActivities      Table[*GroupActivity]
	GroupPolicies        Table[*GroupPolicy]
	GroupRefreshes       Table[*GroupRefresh]
	IdempotencyTokens    Table[*IdempotencyToken]
	InstanceProfiles     Table[*InstanceProfile]
	Instances            Table[*Instance]
	JoinTokens           Table[*JoinToken]
	LaunchConfigurations Table[*LaunchConfiguration]
	LaunchTemplates      Table[*LaunchTemplate]
	LogResourcePolicies  Table[*LogResourcePolicy]
	ManagedPolicies      Table[*ManagedPolicy]
	NodeKeys             Table[*NodeKey]
	Parameters           Table[*Parameter]
	ParameterVersions    Table[*ParameterVersion]
	QueryDefinitions     Table[*QueryDefinition]
	Roles                Table[*Role]
	ScalableTargets      Table[*ScalableTarget]
	ScalingActivities    Table[*ScalingActivity]
	ScalingPolicies      Table[*ScalingPolicy]
	ScheduledActions     Table[*ScheduledAction]
	ServiceDeployments   Table[*ServiceDeployment]
	ServiceRevisions     Table[*ServiceRevision]
	Services             Table[*Service]
	TaskDefinitions      Table[*TaskDefinition]
	TaskFamilies         Table[*TaskFamily]
	Tasks                Table[*Task]
	UserGroups           Table[*UserGroup]
	Users                Table[*User]
	Volumes              Table[*Volume]
}

// Changed waits until something that was read through a view from Watch has changed.
func (v *View) Changed(ctx context.Context) error { return v.view.Changed(ctx) }

// ChangedCh is Changed for a select. The channel gets one value. It ends with ctx.
func (v *View) ChangedCh(ctx context.Context) <-chan error { return v.view.ChangedCh(ctx) }

// newView binds every table to a view.
func newView(v *store.View) *View {
	return &View{
		view: v,

		discoveryTables:    newDiscoveryTables(v),
		eventTables:        newEventTables(v),
		fileSystemTables:   newFileSystemTables(v),
		functionTables:     newFunctionTables(v),
		imageTables:        newImageTables(v),
		loadBalancerTables: newLoadBalancerTables(v),
		networkTables:      newNetworkTables(v),
		secretTables:       newSecretTables(v),
		stackTables:        newStackTables(v),
		topicTables:        newTopicTables(v),

		AccessKeys:           accessKeys.In(v),
		AccountSettings:      accountSettings.In(v),
		AlarmHistory:         alarmHistory.In(v),
		Alarms:               alarms.In(v),
		AnomalyDetectors:     anomalyDetectors.In(v),
		AutoScalingGroups:    autoScalingGroups.In(v),
		CapacityProviders:    capacityProviders.In(v),
		Certificates:         certificates.In(v),
		Clusters:             clusters.In(v),
		ContainerInstances:   containerInstances.In(v),
		Dashboards:           dashboards.In(v),
		Deliveries:           deliveries.In(v),
		ExportTasks:          exportTasks.In(v),
		GroupActions:         groupActions.In(v),
		GroupActivities:      groupActivities.In(v),
		GroupPolicies:        groupPolicies.In(v),
		GroupRefreshes:       groupRefreshes.In(v),
		IdempotencyTokens:    idempotencyTokens.In(v),
		InstanceProfiles:     instanceProfiles.In(v),
		Instances:            instances.In(v),
		JoinTokens:           joinTokens.In(v),
		LaunchConfigurations: launchConfigurations.In(v),
		LaunchTemplates:      launchTemplates.In(v),
		LogResourcePolicies:  logResourcePolicies.In(v),
		ManagedPolicies:      managedPolicies.In(v),
		NodeKeys:             nodeKeys.In(v),
		Parameters:           parameters.In(v),
		ParameterVersions:    parameterVersions.In(v),
		QueryDefinitions:     queryDefinitions.In(v),
		Roles:                roles.In(v),
		ScalableTargets:      scalableTargets.In(v),
		ScalingActivities:    scalingActivities.In(v),
		ScalingPolicies:      scalingPolicies.In(v),
		ScheduledActions:     scheduledActions.In(v),
		ServiceDeployments:   serviceDeployments.In(v),
		ServiceRevisions:     serviceRevisions.In(v),
		Services:             services.In(v),
		TaskDefinitions:      taskDefinitions.In(v),
		TaskFamilies:         taskFamilies.In(v),
		Tasks:                tasks.In(v),
		UserGroups:           userGroups.In(v),
		Users:                users.In(v),
		Volumes:              volumes.In(v),
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
	balancers,
	capacityProviders,
	accessPoints,
	certificates,
	fileSystems,
	mountTargets,
	clusters,
	containerInstances,
	customRequests,
	dashboards,
	defaultNetworks,
	deliveries,
	dhcpOptions,
	discoveryInstances,
	discoveryOperations,
	discoveryServices,
	egressOnlyInternetGateways,
	eventTexts,
	eventBuses,
	eventRules,
	eventSources,
	exportTasks,
	functionAliases,
	functionEnvironments,
	functionInvokeConfigs,
	functions,
	functionVersions,
	groupActions,
	groupActivities,
	groupPolicies,
	groupRefreshes,
	idempotencyTokens,
	imageLayers,
	pullThroughRules,
	images,
	imageTags,
	instances,
	internetGateways,
	invocations,
	joinTokens,
	keyPairs,
	launchConfigurations,
	launchTemplates,
	layerVersions,
	listenerRules,
	listeners,
	loadBalancers,
	logResourcePolicies,
	namespaces,
	natGateways,
	networkACLs,
	networkInterfaces,
	nodeKeys,
	parameters,
	parameterVersions,
	placementGroups,
	queryDefinitions,
	repositories,
	routeTables,
	scalableTargets,
	scalingActivities,
	scalingPolicies,
	scheduledActions,
	scheduleGroups,
	schedules,
	services,
	serviceDeployments,
	serviceRevisions,
	securityGroupRules,
	securityGroups,
	subnets,
	targetGroups,
	targets,
	tasks,
	taskDefinitions,
	taskFamilies,
	vpcEndpoints,
	vpcs,
	stacks,
	stackResources,
	stackEvents,
	changeSets,
	driftDetections,
	resourceDrifts,
	resourceRequests,
	secrets,
	secretVersions,
	accessKeys,
	instanceProfiles,
	managedPolicies,
	roles,
	userGroups,
	users,
	topics,
	topicSigners,
	subscriptions,
	published,
	publications,
	volumes,
)
