package ecs

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Services with the deployment controller EXTERNAL: a deployer outside ECS creates their task sets, and sets each one's share
// of the service's desired count. Package rollout keeps every task set at its share:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-type-external.html

// maxTaskSets bounds the task sets of a service, including DRAINING ones.
const maxTaskSets = 5

// checkExternal refuses what an EXTERNAL service leaves to its task sets.
func checkExternal(in *ecs.CreateServiceInput) error {
	if in.SchedulingStrategy == types.SchedulingStrategyDaemon {
		return invalidParameter("schedulingStrategy must be REPLICA for a service with the deployment controller EXTERNAL.")
	}
	return refuseForExternal([]field{
		{"taskDefinition", in.TaskDefinition != nil},
		{"loadBalancers", len(in.LoadBalancers) > 0},
		{"serviceRegistries", len(in.ServiceRegistries) > 0},
		{"launchType", in.LaunchType != ""},
		{"platformVersion", in.PlatformVersion != nil},
		{"capacityProviderStrategy", len(in.CapacityProviderStrategy) > 0},
		{"networkConfiguration", in.NetworkConfiguration != nil},
		{"serviceConnectConfiguration", in.ServiceConnectConfiguration != nil},
		{"volumeConfigurations", len(in.VolumeConfigurations) > 0},
		{"deploymentConfiguration.deploymentCircuitBreaker", hasBreaker(in.DeploymentConfiguration)},
		{"deploymentConfiguration.alarms", hasAlarms(in.DeploymentConfiguration)},
	})
}

// checkExternalUpdate refuses what UpdateService can't change of an EXTERNAL service: API_UpdateService.
func checkExternalUpdate(in *ecs.UpdateServiceInput) error {
	return refuseForExternal([]field{
		{"taskDefinition", in.TaskDefinition != nil},
		{"loadBalancers", len(in.LoadBalancers) > 0},
		{"serviceRegistries", len(in.ServiceRegistries) > 0},
		{"capacityProviderStrategy", in.CapacityProviderStrategy != nil},
		{"platformVersion", in.PlatformVersion != nil},
		{"networkConfiguration", in.NetworkConfiguration != nil},
		{"serviceConnectConfiguration", in.ServiceConnectConfiguration != nil},
		{"volumeConfigurations", len(in.VolumeConfigurations) > 0},
		{"deploymentConfiguration", in.DeploymentConfiguration != nil},
		{"deploymentController", in.DeploymentController != nil},
		{"enableExecuteCommand", in.EnableExecuteCommand != nil},
		{"forceNewDeployment", in.ForceNewDeployment},
	})
}

// refuseForExternal refuses members that an EXTERNAL service can't have.
func refuseForExternal(fields []field) error {
	for _, f := range fields {
		if f.given {
			return invalidParameter("%s must not be given for a service with the deployment controller EXTERNAL: its task sets "+
				"say what to deploy.", f.name)
		}
	}
	return nil
}

func hasBreaker(c *types.DeploymentConfiguration) bool {
	return c != nil && c.DeploymentCircuitBreaker != nil && c.DeploymentCircuitBreaker.Enable
}

func hasAlarms(c *types.DeploymentConfiguration) bool {
	return c != nil && c.Alarms != nil && c.Alarms.Enable
}

// externalService finds the EXTERNAL service of a call on task sets.
func (s *Service) externalService(v *state.View, cluster, service *string) (*state.Service, error) {
	c, err := s.activeCluster(v, cluster)
	if err != nil {
		return nil, err
	}
	row := v.Services.Get(inCluster(*c.ClusterArn, "service", aws.ToString(service)))
	if row == nil || *row.ClusterArn != *c.ClusterArn {
		return nil, serviceNotFound()
	}
	if *row.Status == state.ServiceInactive {
		return nil, serviceNotActive()
	}
	if !row.IsExternal() {
		return nil, invalidParameter("The service %s has no task sets: its deployment controller is %s, not EXTERNAL.",
			*row.ServiceName, row.DeploymentController.Type)
	}
	return row, nil
}

// changeTaskSets applies change to a copy of an ACTIVE service's row, and describes the task set that change returns.
func (s *Service) changeTaskSets(
	ctx context.Context, cluster, service *string, change func(*state.Tx, *state.Service) (*state.TaskSet, error),
) (*types.TaskSet, error) {
	for _, required := range []struct {
		name  string
		value *string
	}{{"cluster", cluster}, {"service", service}} {
		if aws.ToString(required.value) == "" {
			return nil, invalidParameter("%s must not be empty.", required.name)
		}
	}
	var row *state.Service
	var set *state.TaskSet
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.externalService(tx.View, cluster, service)
		if err != nil {
			return err
		}
		if *old.Status != state.ServiceActive {
			return serviceNotActive()
		}
		row = old.Clone()
		if set, err = change(tx, row); err != nil {
			return err
		}
		tx.Services.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return new(s.describeTaskSet(s.store.View(), row, set, true)), nil
}

// CreateTaskSet adds a task set to a service. Package rollout starts its tasks.
func (s *Service) CreateTaskSet(ctx context.Context, in *ecs.CreateTaskSetInput) (*ecs.CreateTaskSetOutput, error) {
	if err := checkNewTaskSet(in); err != nil {
		return nil, err
	}
	hash, err := requestHash(in)
	if err != nil {
		return nil, err
	}
	set, err := s.changeTaskSets(ctx, in.Cluster, in.Service, func(tx *state.Tx, row *state.Service) (*state.TaskSet, error) {
		return s.createTaskSet(ctx, tx, row, in, hash)
	})
	if err != nil {
		return nil, err
	}
	return &ecs.CreateTaskSetOutput{TaskSet: set}, nil
}

func (s *Service) createTaskSet(
	ctx context.Context, tx *state.Tx, row *state.Service, in *ecs.CreateTaskSetInput, hash []byte,
) (*state.TaskSet, error) {
	key := "CreateTaskSet " + *row.ServiceArn + " " + aws.ToString(in.ClientToken)
	if old := s.findToken(tx.View, key); aws.ToString(in.ClientToken) != "" && old != nil {
		if set := row.TaskSet(old.Arns[0]); set != nil && slices.Equal(old.Request, hash) {
			return set, nil
		}
		return nil, invalidParameter("clientToken: it is already in use with a different CreateTaskSet request, or its task set is gone.")
	}
	if len(row.TaskSets) >= maxTaskSets {
		return nil, invalidParameter("The service %s has %d task sets, and cannot have more.", *row.ServiceName, maxTaskSets)
	}
	l := launch{
		cluster:        row.ClusterArn,
		taskDefinition: in.TaskDefinition,
		network:        in.NetworkConfiguration,
		launchType:     in.LaunchType,
		providers:      in.CapacityProviderStrategy,
		platform:       in.PlatformVersion,
		caller:         call.From(ctx),
	}
	if err := s.resolve(tx.View, &l); err != nil {
		return nil, err
	}
	if err := s.useProviders(tx.View, &l); err != nil {
		return nil, err
	}
	if err := resolveLoadBalancers(tx.View, l.td, in.LoadBalancers); err != nil {
		return nil, err
	}
	if err := s.resolveRegistries(tx.View, l.td, in.ServiceRegistries); err != nil {
		return nil, err
	}
	set := s.newTaskSet(row, &l, in)
	row.TaskSets = append(row.TaskSets, state.TaskSet{TaskSet: set})
	if aws.ToString(in.ClientToken) != "" {
		s.putToken(tx, key, hash, []string{*set.TaskSetArn})
	}
	return row.TaskSet(*set.Id), nil
}

// newTaskSet makes a task set of a service.
func (s *Service) newTaskSet(row *state.Service, l *launch, in *ecs.CreateTaskSetInput) types.TaskSet {
	now := s.now()
	id := "ecs-svc/" + digits()
	version, family := capacity.Platform(l.launchType, l.providers)
	return types.TaskSet{
		Id:                       &id,
		TaskSetArn:               new(state.InCluster(*row.ClusterArn, "task-set", *row.ServiceName, id)),
		ServiceArn:               row.ServiceArn,
		ClusterArn:               row.ClusterArn,
		ExternalId:               in.ExternalId,
		Status:                   aws.String(state.TaskSetActive),
		TaskDefinition:           l.td.TaskDefinitionArn,
		CreatedAt:                now,
		UpdatedAt:                now,
		LaunchType:               launchTypeOf(in.LaunchType, l.providers),
		CapacityProviderStrategy: l.providers,
		PlatformVersion:          version,
		PlatformFamily:           family,
		NetworkConfiguration:     in.NetworkConfiguration,
		LoadBalancers:            notNil(in.LoadBalancers),
		ServiceRegistries:        notNil(in.ServiceRegistries),
		Scale:                    scaleOf(in.Scale),
		Tags:                     in.Tags,
	}
}

// checkNewTaskSet checks a new task set without looking at the store.
func checkNewTaskSet(in *ecs.CreateTaskSetInput) error {
	if aws.ToString(in.TaskDefinition) == "" {
		return invalidParameter("taskDefinition must not be empty.")
	}
	if aws.ToString(in.ClientToken) != "" && !clientTokens.MatchString(*in.ClientToken) {
		return invalidParameter("clientToken must have up to 36 printable ASCII characters.")
	}
	if err := checkLoadBalancers(in.LoadBalancers); err != nil {
		return err
	}
	if err := checkRegistries(in.ServiceRegistries); err != nil {
		return err
	}
	for _, b := range in.LoadBalancers {
		if b.AdvancedConfiguration != nil {
			return invalidParameter("loadBalancers.advancedConfiguration must not be given for a task set: whoever deploys it shifts the traffic.")
		}
	}
	if err := checkLaunchTypeOrStrategy(in.LaunchType, in.CapacityProviderStrategy); err != nil {
		return err
	}
	if err := checkScale(in.Scale); err != nil {
		return err
	}
	return checkTags(in.Tags)
}

func checkScale(scale *types.Scale) error {
	if scale == nil {
		return nil
	}
	if scale.Unit != "" && scale.Unit != types.ScaleUnitPercent {
		return invalidParameter("scale.unit must be PERCENT, not %q.", scale.Unit)
	}
	if v := scale.Value; !(v >= 0 && v <= 100) {
		return invalidParameter("scale.value must be between 0 and 100, not %v.", v)
	}
	return nil
}

// scaleOf returns the scale that a call gives, or 0 percent: a new task set without a scale has no tasks yet.
func scaleOf(given *types.Scale) *types.Scale {
	scale := &types.Scale{Unit: types.ScaleUnitPercent}
	if given != nil {
		scale.Value = given.Value
	}
	return scale
}

// UpdateTaskSet changes a task set's share of the service's desired count.
func (s *Service) UpdateTaskSet(ctx context.Context, in *ecs.UpdateTaskSetInput) (*ecs.UpdateTaskSetOutput, error) {
	if in.Scale == nil {
		return nil, invalidParameter("scale must be given.")
	}
	if err := checkScale(in.Scale); err != nil {
		return nil, err
	}
	set, err := s.changeTaskSets(ctx, in.Cluster, in.Service, func(_ *state.Tx, row *state.Service) (*state.TaskSet, error) {
		set, err := findLiveTaskSet(row, in.TaskSet)
		if err != nil {
			return nil, err
		}
		set.Scale = scaleOf(in.Scale)
		set.UpdatedAt = s.now()
		return set, nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UpdateTaskSetOutput{TaskSet: set}, nil
}

// findLiveTaskSet finds a task set that isn't DRAINING.
func findLiveTaskSet(row *state.Service, name *string) (*state.TaskSet, error) {
	set, err := findTaskSet(row, name)
	if err != nil {
		return nil, err
	}
	if *set.Status == state.TaskSetDraining {
		return nil, invalidParameter("The task set %s is DRAINING.", *set.Id)
	}
	return set, nil
}

func findTaskSet(row *state.Service, name *string) (*state.TaskSet, error) {
	if aws.ToString(name) == "" {
		return nil, invalidParameter("The task set must not be empty.")
	}
	set := row.TaskSet(*name)
	if set == nil {
		return nil, &types.TaskSetNotFoundException{Message: account.Message("The service %s has no task set %q.", *row.ServiceName, *name)}
	}
	return set, nil
}

// UpdateServicePrimaryTaskSet makes a task set PRIMARY. The service then shows its task definition and launch settings.
func (s *Service) UpdateServicePrimaryTaskSet(
	ctx context.Context, in *ecs.UpdateServicePrimaryTaskSetInput,
) (*ecs.UpdateServicePrimaryTaskSetOutput, error) {
	set, err := s.changeTaskSets(ctx, in.Cluster, in.Service, func(_ *state.Tx, row *state.Service) (*state.TaskSet, error) {
		set, err := findLiveTaskSet(row, in.PrimaryTaskSet)
		if err != nil {
			return nil, err
		}
		for i := range row.TaskSets {
			if old := &row.TaskSets[i]; old != set && *old.Status == state.TaskSetPrimary {
				old.Status = aws.String(state.TaskSetActive)
				old.UpdatedAt = s.now()
			}
		}
		set.Status = aws.String(state.TaskSetPrimary)
		set.UpdatedAt = s.now()
		showPrimary(row, &set.TaskSet)
		return set, nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UpdateServicePrimaryTaskSetOutput{TaskSet: set}, nil
}

// showPrimary copies the primary task set's task definition and launch settings to the service.
func showPrimary(row *state.Service, set *types.TaskSet) {
	row.TaskDefinition = set.TaskDefinition
	row.LaunchType = set.LaunchType
	row.CapacityProviderStrategy = set.CapacityProviderStrategy
	row.PlatformVersion, row.PlatformFamily = set.PlatformVersion, set.PlatformFamily
	row.NetworkConfiguration = set.NetworkConfiguration
}

// DeleteTaskSet makes a task set DRAINING. Package rollout stops its tasks, and then deletes it.
func (s *Service) DeleteTaskSet(ctx context.Context, in *ecs.DeleteTaskSetInput) (*ecs.DeleteTaskSetOutput, error) {
	force := aws.ToBool(in.Force)
	set, err := s.changeTaskSets(ctx, in.Cluster, in.Service, func(_ *state.Tx, row *state.Service) (*state.TaskSet, error) {
		set, err := findTaskSet(row, in.TaskSet)
		if err != nil || *set.Status == state.TaskSetDraining {
			return set, err
		}
		if *set.Status == state.TaskSetPrimary {
			if !force {
				return nil, invalidParameter("The task set %s is the service's PRIMARY one. It can only be deleted with force.", *set.Id)
			}
			showPrimary(row, &types.TaskSet{})
		}
		if !force && set.Scale.Value > 0 {
			return nil, invalidParameter("The task set %s is scaled to %v percent. Scale it to 0 first, or use force.",
				*set.Id, set.Scale.Value)
		}
		set.Status = aws.String(state.TaskSetDraining)
		set.Scale = scaleOf(nil)
		set.UpdatedAt = s.now()
		return set, nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeleteTaskSetOutput{TaskSet: set}, nil
}

// DescribeTaskSets describes the given task sets of a service, or all of them. It reports task sets that don't exist as failures.
func (s *Service) DescribeTaskSets(_ context.Context, in *ecs.DescribeTaskSetsInput) (*ecs.DescribeTaskSetsOutput, error) {
	if aws.ToString(in.Service) == "" {
		return nil, invalidParameter("service must not be empty.")
	}
	if aws.ToString(in.Cluster) == "" {
		return nil, invalidParameter("cluster must not be empty.")
	}
	if err := checkOneOf("include", types.TaskSetField("").Values(), in.Include...); err != nil {
		return nil, err
	}
	v := s.store.View()
	row, err := s.externalService(v, in.Cluster, in.Service)
	if err != nil {
		return nil, err
	}
	names := in.TaskSets
	if len(names) == 0 {
		for _, set := range row.TaskSets {
			names = append(names, *set.TaskSetArn)
		}
	}
	out := &ecs.DescribeTaskSetsOutput{TaskSets: []types.TaskSet{}, Failures: []types.Failure{}}
	for _, name := range names {
		set := row.TaskSet(name)
		if set == nil {
			if !isArn(name) {
				name = state.InCluster(*row.ClusterArn, "task-set", *row.ServiceName, name)
			}
			out.Failures = append(out.Failures, missing(name))
			continue
		}
		out.TaskSets = append(out.TaskSets, s.describeTaskSet(v, row, set, slices.Contains(in.Include, types.TaskSetFieldTags)))
	}
	return out, nil
}

// describeTaskSet returns the task set with its task counts and stability status: API_TaskSet.
func (s *Service) describeTaskSet(v *state.View, row *state.Service, set *state.TaskSet, tags bool) types.TaskSet {
	out := set.TaskSet
	if !tags {
		out.Tags = nil
	}
	out.ComputedDesiredCount = int32(deployment.Scaled(int(row.DesiredCount), out.Scale.Value))
	c := countTasks(v, row)[*out.Id]
	out.RunningCount = c.running
	out.PendingCount = c.pending
	out.StabilityStatus = types.StabilityStatusStabilizing
	out.StabilityStatusAt = s.now()
	complete := out.RunningCount == out.ComputedDesiredCount && out.PendingCount == 0
	if complete && *out.Status != state.TaskSetDraining && isSettled(v, set) {
		out.StabilityStatus = types.StabilityStatusSteadyState
	}
	return out
}

// isSettled reports whether all tasks of a task set are healthy, by their own checks and their load balancers', on container instances that
// aren't draining.
func isSettled(v *state.View, set *state.TaskSet) bool {
	for t := range v.Tasks.By(state.TasksByService, *set.ServiceArn) {
		if aws.ToString(t.StartedBy) != *set.Id || *t.DesiredStatus != "RUNNING" {
			continue
		}
		instance := v.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn))
		if instance == nil || *instance.Status == statusDraining {
			return false
		}
		td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
		if td != nil && td.HasHealthCheck() && t.HealthStatus != types.HealthStatusHealthy {
			return false
		}
		if healthy, unhealthy := v.TargetHealth(*t.TaskArn); unhealthy > 0 || healthy < len(set.LoadBalancers) {
			return false
		}
	}
	return true
}
