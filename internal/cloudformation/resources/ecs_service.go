package resources

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// service has the properties of AWS::ECS::Service. Its physical ID is the ARN.
type service struct {
	ServiceName                   *string                     `cfn:"create"`
	Cluster                       *string                     `cfn:"create"`
	DeploymentController          *types.DeploymentController `cfn:"create"`
	LaunchType                    types.LaunchType            `cfn:"create"`
	Role                          *string                     `cfn:"create"`
	SchedulingStrategy            types.SchedulingStrategy    `cfn:"create"`
	AvailabilityZoneRebalancing   types.AvailabilityZoneRebalancing
	CapacityProviderStrategy      []types.CapacityProviderStrategyItem
	DeploymentConfiguration       *types.DeploymentConfiguration
	DesiredCount                  *int32
	EnableECSManagedTags          bool
	EnableExecuteCommand          bool
	HealthCheckGracePeriodSeconds *int32
	LoadBalancers                 []types.LoadBalancer
	NetworkConfiguration          *types.NetworkConfiguration
	PlacementConstraints          []types.PlacementConstraint
	PlacementStrategies           []types.PlacementStrategy
	PlatformVersion               *string
	PropagateTags                 types.PropagateTags
	ServiceConnectConfiguration   *types.ServiceConnectConfiguration
	ServiceRegistries             []types.ServiceRegistry
	TaskDefinition                *string
	VolumeConfigurations          []types.ServiceVolumeConfiguration
	VpcLatticeConfigurations      []types.VpcLatticeConfiguration
	Tags                          []Tag `cfn:"lenient"`
}

var _ = add(&kind[*service]{
	name:       "AWS::ECS::Service",
	live:       liveService,
	list:       listServices,
	identifier: []string{"ServiceArn", "Cluster"},
	physical:   "ServiceArn",
	attributes: []string{"Name", "ServiceArn"},
	after:      []string{"AWS::ECS::ClusterCapacityProviderAssociations"}, // without them ECS refuses the strategy
	id: func(s Step, v *service) string {
		cluster := state.NameOf(aws.ToString(v.Cluster))
		if cluster == "" {
			cluster = "default"
		}
		return s.Account.ARN("ecs", "service/"+cluster+"/"+s.named(v.ServiceName, 255))
	},
	create:  createService,
	update:  updateService,
	delete:  deleteService,
	settled: isSteady,
	read: func(ctx context.Context, s Step, arn string, v *service) (Made, error) {
		found, err := describeService(ctx, s, arn, v)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Name": *found.ServiceName, "ServiceArn": arn}}, nil
	},
})

func createService(ctx context.Context, s Step, v *service) (string, error) {
	out, err := call.Do[ecs.CreateServiceOutput](ctx, s.Services, &ecs.CreateServiceInput{
		ServiceName:                   new(s.named(v.ServiceName, 255)),
		AvailabilityZoneRebalancing:   v.AvailabilityZoneRebalancing,
		CapacityProviderStrategy:      v.CapacityProviderStrategy,
		ClientToken:                   &s.Token,
		Cluster:                       v.Cluster,
		DeploymentConfiguration:       v.DeploymentConfiguration,
		DeploymentController:          v.DeploymentController,
		DesiredCount:                  desiredCount(v),
		EnableECSManagedTags:          v.EnableECSManagedTags,
		EnableExecuteCommand:          v.EnableExecuteCommand,
		HealthCheckGracePeriodSeconds: v.HealthCheckGracePeriodSeconds,
		LaunchType:                    v.LaunchType,
		LoadBalancers:                 v.LoadBalancers,
		NetworkConfiguration:          v.NetworkConfiguration,
		PlacementConstraints:          v.PlacementConstraints,
		PlacementStrategy:             v.PlacementStrategies,
		PlatformVersion:               v.PlatformVersion,
		PropagateTags:                 v.PropagateTags,
		Role:                          v.Role,
		SchedulingStrategy:            v.SchedulingStrategy,
		ServiceConnectConfiguration:   v.ServiceConnectConfiguration,
		ServiceRegistries:             v.ServiceRegistries,
		Tags:                          tagList(v.Tags, ecsTag),
		TaskDefinition:                v.TaskDefinition,
		VolumeConfigurations:          v.VolumeConfigurations,
		VpcLatticeConfigurations:      v.VpcLatticeConfigurations,
	})
	if err != nil {
		return "", err
	}
	return *out.Service.ServiceArn, nil
}

// volumesAfter returns the volumes of an updated service. Without any, UpdateService leaves them as they are.
func volumesAfter(before, after *service) []types.ServiceVolumeConfiguration {
	if len(before.VolumeConfigurations) > 0 && after.VolumeConfigurations == nil {
		return []types.ServiceVolumeConfiguration{}
	}
	return after.VolumeConfigurations
}

// desiredCount returns how many tasks a new service has: one, if the template doesn't say.
func desiredCount(v *service) *int32 {
	if v.DesiredCount == nil && v.SchedulingStrategy != types.SchedulingStrategyDaemon {
		return aws.Int32(1)
	}
	return v.DesiredCount
}

func updateService(ctx context.Context, s Step, arn string, before, after *service) error {
	err := did[ecs.UpdateServiceOutput](ctx, s, &ecs.UpdateServiceInput{
		Service:                       &arn,
		AvailabilityZoneRebalancing:   after.AvailabilityZoneRebalancing,
		CapacityProviderStrategy:      after.CapacityProviderStrategy,
		Cluster:                       after.Cluster,
		DeploymentConfiguration:       after.DeploymentConfiguration,
		DesiredCount:                  after.DesiredCount, // without one, whoever scales the service keeps the say
		EnableECSManagedTags:          &after.EnableECSManagedTags,
		EnableExecuteCommand:          &after.EnableExecuteCommand,
		HealthCheckGracePeriodSeconds: after.HealthCheckGracePeriodSeconds,
		LoadBalancers:                 after.LoadBalancers,
		NetworkConfiguration:          after.NetworkConfiguration,
		PlacementConstraints:          append([]types.PlacementConstraint{}, after.PlacementConstraints...),
		PlacementStrategy:             append([]types.PlacementStrategy{}, after.PlacementStrategies...),
		PlatformVersion:               after.PlatformVersion,
		PropagateTags:                 after.PropagateTags,
		ServiceConnectConfiguration:   after.ServiceConnectConfiguration,
		ServiceRegistries:             after.ServiceRegistries,
		TaskDefinition:                after.TaskDefinition,
		VolumeConfigurations:          volumesAfter(before, after),
		VpcLatticeConfigurations:      after.VpcLatticeConfigurations,
	})
	if err != nil {
		return err
	}
	return tagECS(ctx, s, arn, before.Tags, after.Tags)
}

// deleteService stops a service's tasks and deletes it once none is left.
func deleteService(ctx context.Context, s Step, arn string, v *service) error {
	in := &ecs.DeleteServiceInput{Service: &arn, Cluster: v.Cluster, Force: aws.Bool(true)}
	err := did[ecs.DeleteServiceOutput](ctx, s, in)
	if notActive := (*types.ServiceNotActiveException)(nil); err != nil && !errors.As(err, &notActive) {
		return err
	}
	switch _, err = describeService(ctx, s, arn, v); {
	case errors.Is(err, errMissing):
		return nil
	case err != nil:
		return err
	}
	return ErrPending
}

// describeService returns a service that isn't deleted.
func describeService(ctx context.Context, s Step, arn string, v *service) (*types.Service, error) {
	in := &ecs.DescribeServicesInput{Services: []string{arn}, Cluster: v.Cluster}
	out, err := call.Do[ecs.DescribeServicesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.Services) == 0 || *out.Services[0].Status == "INACTIVE" {
		return nil, errMissing
	}
	return &out.Services[0], nil
}

// isSteady reports whether a service runs what it's to run. A deployment that has failed, or that ECS has taken back, has it fail.
func isSteady(ctx context.Context, s Step, arn string, v *service) (bool, error) {
	found, err := describeService(ctx, s, arn, v)
	if err != nil {
		return false, err
	}
	if c := found.DeploymentController; c != nil && c.Type == types.DeploymentControllerTypeExternal {
		return true, nil // its task sets are resources of their own
	}
	wanted := aws.ToString(v.TaskDefinition)
	for _, d := range found.Deployments {
		reason := aws.ToString(d.RolloutStateReason)
		if isTakenBack(d, wanted) {
			reason = cmp.Or(whyTakenBack(ctx, s, arn, v), reason)
		} else if !deploymentFailed(s, d, wanted) {
			continue
		}
		return false, template.Errorf("Resource handler returned message: \"Error occurred during operation 'ECS Deployment Circuit Breaker was "+
			"triggered'.\" (HandlerErrorCode: GeneralServiceException): %s", reason)
	}
	return len(found.Deployments) == 1 && found.RunningCount == found.DesiredCount &&
		found.Deployments[0].RolloutState == types.DeploymentRolloutStateCompleted, nil
}

// deploymentFailed reports whether a deployment that the template's revision asked for has failed. One that isn't PRIMARY any more shows as long as it has
// tasks: it's the latest if ECS has rolled it back to the same revision, but not while the stack is rolled back, since that is what it failed of.
func deploymentFailed(s Step, d types.Deployment, taskDefinition string) bool {
	is, wanted := state.NameOf(aws.ToString(d.TaskDefinition)), state.NameOf(taskDefinition)
	switch {
	case d.RolloutState != types.DeploymentRolloutStateFailed:
		return false
	case aws.ToString(d.Status) == "PRIMARY":
		return true
	}
	return !s.Back && (is == wanted || strings.HasPrefix(is, wanted+":"))
}

// isTakenBack reports whether a service's primary deployment is of another revision than the template says: ECS has then rolled back the one
// that CloudFormation began, which no longer shows. A family without a number stands for whatever revision was the latest.
func isTakenBack(d types.Deployment, taskDefinition string) bool {
	wanted := state.NameOf(taskDefinition)
	return aws.ToString(d.Status) == "PRIMARY" && strings.Contains(wanted, ":") && state.NameOf(aws.ToString(d.TaskDefinition)) != wanted
}

// whyTakenBack returns why ECS has rolled back a service's latest deployment, if the stack's role may ask. The one that is back tells of itself
// only.
func whyTakenBack(ctx context.Context, s Step, arn string, v *service) string {
	out, err := call.Do[ecs.ListServiceDeploymentsOutput](ctx, s.Services, &ecs.ListServiceDeploymentsInput{Service: &arn, Cluster: v.Cluster})
	if err != nil || len(out.ServiceDeployments) == 0 {
		return ""
	}
	return aws.ToString(out.ServiceDeployments[0].StatusReason)
}

func liveService(ctx context.Context, s Step, arn string, asked *service) (*service, error) {
	in := &ecs.DescribeServicesInput{Services: []string{arn}, Cluster: asked.Cluster, Include: []types.ServiceField{types.ServiceFieldTags}}
	out, err := call.Do[ecs.DescribeServicesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.Services) == 0 || *out.Services[0].Status == "INACTIVE" {
		return nil, errMissing
	}
	v := &out.Services[0]
	revision := aws.ToString(v.TaskDefinition)
	family, _, _ := strings.Cut(state.NameOf(revision), ":")
	live := &service{
		ServiceName:                   v.ServiceName,
		Cluster:                       asGiven(asked.Cluster, *v.ClusterArn, state.NameOf(*v.ClusterArn)),
		DeploymentController:          v.DeploymentController,
		LaunchType:                    v.LaunchType,
		Role:                          asGiven(asked.Role, aws.ToString(v.RoleArn), state.NameOf(aws.ToString(v.RoleArn))),
		SchedulingStrategy:            v.SchedulingStrategy,
		AvailabilityZoneRebalancing:   v.AvailabilityZoneRebalancing,
		CapacityProviderStrategy:      v.CapacityProviderStrategy,
		DeploymentConfiguration:       v.DeploymentConfiguration,
		EnableECSManagedTags:          v.EnableECSManagedTags,
		EnableExecuteCommand:          v.EnableExecuteCommand,
		HealthCheckGracePeriodSeconds: v.HealthCheckGracePeriodSeconds,
		LoadBalancers:                 v.LoadBalancers,
		NetworkConfiguration:          v.NetworkConfiguration,
		PlacementConstraints:          v.PlacementConstraints,
		PlacementStrategies:           v.PlacementStrategy,
		PlatformVersion:               v.PlatformVersion,
		PropagateTags:                 v.PropagateTags,
		ServiceRegistries:             v.ServiceRegistries,
		TaskDefinition:                asGiven(asked.TaskDefinition, revision, state.NameOf(revision), family),
		Tags:                          ownTags(v.Tags, ecsTagPair),
	}
	if v.SchedulingStrategy != types.SchedulingStrategyDaemon {
		live.DesiredCount = &v.DesiredCount
	}
	for _, d := range v.Deployments {
		if aws.ToString(d.Status) == "PRIMARY" {
			live.ServiceConnectConfiguration = withoutDefault(d.ServiceConnectConfiguration, asked.ServiceConnectConfiguration)
			live.VolumeConfigurations = d.VolumeConfigurations
			live.VpcLatticeConfigurations = d.VpcLatticeConfigurations
		}
	}
	return live, nil
}

// withoutDefault leaves the namespace out where that is the cluster's default one, which nobody has asked for.
func withoutDefault(live, asked *types.ServiceConnectConfiguration) *types.ServiceConnectConfiguration {
	if live == nil || asked == nil || asked.Namespace != nil {
		return live
	}
	c := *live
	c.Namespace = nil
	return &c
}

func listServices(ctx context.Context, s Step, asked *service) ([]string, error) {
	if asked.Cluster == nil {
		return nil, template.Errorf("Missing or invalid ResourceModel property in AWS::ECS::Service list handler request input. Required property: [Cluster]")
	}
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ecs.ListServicesOutput](ctx, s.Services, &ecs.ListServicesInput{NextToken: token, Cluster: asked.Cluster})
		if err != nil {
			return nil, nil, err
		}
		return out.ServiceArns, out.NextToken, nil
	})
}
