package ecs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/placement"
	"github.com/pintle/pintle/internal/ecs/query"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/ecs/taskvolume"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// The limits of RunTask and StartTask: API_RunTask, API_StartTask.
const (
	maxCount      = 10
	maxStrategies = 5
	maxStartedBy  = 128
)

// RunTask places count tasks, and answers once they are bound to instances and GPUs. The failures of tasks that could not be
// placed name the reason for each instance.
func (s *Service) RunTask(ctx context.Context, in *ecs.RunTaskInput) (*ecs.RunTaskOutput, error) {
	count := 1
	if in.Count != nil {
		count = int(*in.Count)
	}
	if count < 1 || count > maxCount {
		return nil, invalidParameter("count must be between 1 and %d, not %d.", maxCount, count)
	}
	if aws.ToString(in.ClientToken) != "" && !runTaskTokens.MatchString(*in.ClientToken) {
		return nil, invalidParameter("clientToken must have up to 64 printable ASCII characters.")
	}
	if err := checkPlacement(in.PlacementConstraints, in.PlacementStrategy); err != nil {
		return nil, err
	}
	l := launch{
		cluster:        in.Cluster,
		taskDefinition: in.TaskDefinition,
		overrides:      in.Overrides,
		group:          in.Group,
		startedBy:      in.StartedBy,
		tags:           in.Tags,
		propagate:      in.PropagateTags,
		managedTags:    in.EnableECSManagedTags,
		network:        in.NetworkConfiguration,
		exec:           in.EnableExecuteCommand,
		volumes:        taskvolume.OfTask(in.VolumeConfigurations),
		launchType:     in.LaunchType,
		constraints:    in.PlacementConstraints,
		strategy:       in.PlacementStrategy,
		providers:      in.CapacityProviderStrategy,
		platform:       in.PlatformVersion,
		caller:         call.From(ctx),
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	hash, err := requestHash(in)
	if err != nil {
		return nil, err
	}
	out := &ecs.RunTaskOutput{}
	err = s.traced(ctx, "RunTask", "placement", func(tx *state.Tx, trace string) (err error) {
		l.trace = trace
		if err := s.resolve(tx.View, &l); err != nil {
			return err
		}
		out.Tasks, out.Failures, err = s.runOnce(tx, &l, count, aws.ToString(in.ClientToken), hash)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.tellOfGPUs(&l, out.Failures)
	return out, nil
}

// tellOfGPUs tells of a launch that some of its tasks have found no GPUs.
func (s *Service) tellOfGPUs(l *launch, failures []types.Failure) {
	if slices.ContainsFunc(failures, func(f types.Failure) bool { return aws.ToString(f.Reason) == placement.NoGPU }) {
		s.opts.NoGPU(l.clusterArn, *l.td.TaskDefinitionArn, l.constraints)
	}
}

// runOnce runs tasks, or returns those of an earlier call with the same client token.
func (s *Service) runOnce(tx *state.Tx, l *launch, count int, token string, hash []byte) ([]types.Task, []types.Failure, error) {
	if token == "" {
		return s.runTasks(tx, l, count)
	}
	key := "RunTask " + l.clusterArn + " " + token
	if old := s.findToken(tx.View, key); old != nil {
		if !slices.Equal(old.Request, hash) {
			return nil, nil, &types.ConflictException{
				Message: aws.String("The provided clientToken is already in use with a different RunTask request. The resourceIds " +
					"are the tasks that it made."),
				ResourceIds: old.Arns,
			}
		}
		return tasksOf(tx.View, old.Arns), []types.Failure{}, nil
	}
	tasks, failures, err := s.runTasks(tx, l, count)
	if err == nil && len(tasks) > 0 { // a call that started nothing may be repeated
		s.putToken(tx, key, hash, arnsOf(tasks))
	}
	return tasks, failures, err
}

// runTasks starts count tasks on the capacity providers of the launch. It gives up on a provider after the first task that
// finds no room there.
func (s *Service) runTasks(tx *state.Tx, l *launch, count int) ([]types.Task, []types.Failure, error) {
	if err := s.useProviders(tx.View, l); err != nil {
		return nil, nil, err
	}
	grows := slices.ContainsFunc(l.providers, func(i types.CapacityProviderStrategyItem) bool {
		return scheduler.Grows(tx.View, *i.CapacityProvider)
	})
	if !grows && !s.scheduler.Ready(l.clusterArn, l.isFargate()) {
		return nil, nil, invalidParameter("No Container Instances were found in your cluster.")
	}
	tasks := []types.Task{}
	failures := []types.Failure{}
	has := map[string]int{}
	full := map[string]bool{}
	for range count {
		provider := capacity.Next(l.providers, has)
		if has[provider]++; full[provider] {
			continue
		}
		wanted := l.task(*s.now())
		wanted.CapacityProvider = provider
		wanted.MayWait = true
		task, why := s.scheduler.Launch(tx, wanted)
		if len(why) > 0 {
			failures = append(failures, why...)
			full[provider] = true
			continue
		}
		tasks = append(tasks, task.Task)
	}
	return tasks, failures, nil
}

// StartTask starts a task on each of the given container instances. We only choose the GPUs.
func (s *Service) StartTask(ctx context.Context, in *ecs.StartTaskInput) (*ecs.StartTaskOutput, error) {
	if n := len(in.ContainerInstances); n == 0 || n > maxCount {
		return nil, invalidParameter("containerInstances must have between 1 and %d members, not %d.", maxCount, n)
	}
	l := launch{
		cluster:        in.Cluster,
		taskDefinition: in.TaskDefinition,
		overrides:      in.Overrides,
		group:          in.Group,
		startedBy:      in.StartedBy,
		tags:           in.Tags,
		propagate:      in.PropagateTags,
		managedTags:    in.EnableECSManagedTags,
		network:        in.NetworkConfiguration,
		exec:           in.EnableExecuteCommand,
		volumes:        taskvolume.OfTask(in.VolumeConfigurations),
		caller:         call.From(ctx),
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	out := &ecs.StartTaskOutput{Tasks: []types.Task{}, Failures: []types.Failure{}}
	err := s.traced(ctx, "StartTask", "placement", func(tx *state.Tx, trace string) error {
		l.trace = trace
		if err := s.resolve(tx.View, &l); err != nil {
			return err
		}
		for _, name := range in.ContainerInstances {
			arn := inCluster(l.clusterArn, "container-instance", name)
			if s.findInstance(tx.View, l.clusterArn, name) == nil {
				out.Failures = append(out.Failures, missing(arn))
				continue
			}
			task, failure := s.scheduler.LaunchOn(tx, arn, l.task(*s.now()))
			if failure != nil {
				out.Failures = append(out.Failures, *failure)
				continue
			}
			out.Tasks = append(out.Tasks, task.Task)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.tellOfGPUs(&l, out.Failures)
	return out, nil
}

// launch is what RunTask, StartTask, services and task sets have in common.
type launch struct {
	cluster        *string
	taskDefinition *string
	overrides      *types.TaskOverride
	group          *string
	startedBy      *string
	tags           []types.Tag
	propagate      types.PropagateTags
	managedTags    bool
	network        *types.NetworkConfiguration
	exec           bool
	volumes        []taskvolume.Configuration
	launchType     types.LaunchType
	constraints    []types.PlacementConstraint
	strategy       []types.PlacementStrategy
	providers      []types.CapacityProviderStrategyItem
	platform       *string // the version of Fargate's that the call asks for
	caller         call.Call
	trace          string

	// resolve sets these in the transaction.
	clusterArn string
	td         *state.TaskDefinition
	need       scheduler.Need
}

// isFargate reports whether the tasks are Fargate's.
func (l *launch) isFargate() bool { return capacity.IsFargate(l.launchType, l.providers) }

// task turns the launch into the scheduler's input for one task.
func (l *launch) task(now time.Time) *scheduler.Launch {
	return &scheduler.Launch{
		ClusterArn:     l.clusterArn,
		TaskDefinition: l.td,
		Overrides:      l.overrides,
		Need:           l.need,
		Group:          l.taskGroup(),
		StartedBy:      l.startedBy,
		LaunchType:     l.launchType,
		Network:        l.network,
		Exec:           l.exec,
		Volumes:        taskvolume.Make(l.volumes, l.td, nil, l.ownTags()),
		Tags:           l.taskTags(),
		Constraints:    l.constraints,
		Strategy:       l.strategy,
		Trace:          l.trace,
		Now:            now,
	}
}

// taskGroup returns the group that the call gives, or the family's.
func (l *launch) taskGroup() string {
	if g := aws.ToString(l.group); g != "" {
		return g
	}
	return "family:" + *l.td.Family
}

func tasksOf(v *state.View, arns []string) []types.Task {
	out := []types.Task{}
	for _, arn := range arns {
		if t := v.Tasks.Get(arn); t != nil {
			out = append(out, t.Task)
		}
	}
	return out
}

func arnsOf(tasks []types.Task) []string {
	out := []string{}
	for _, t := range tasks {
		out = append(out, *t.TaskArn)
	}
	return out
}

// check checks the launch without looking at the store.
func (l *launch) check() error {
	if aws.ToString(l.taskDefinition) == "" {
		return invalidParameter("taskDefinition must not be empty.")
	}
	if err := checkLaunchTypeOrStrategy(l.launchType, l.providers); err != nil {
		return err
	}
	if len(aws.ToString(l.startedBy)) > maxStartedBy {
		return invalidParameter("startedBy must have at most %d characters.", maxStartedBy)
	}
	if p := l.propagate; p != "" && p != types.PropagateTagsTaskDefinition && p != types.PropagateTagsNone {
		return invalidParameter("propagateTags must be TASK_DEFINITION or NONE here, not %q.", p)
	}
	if err := checkVolumeConfigurations(l.volumes, types.PropagateTagsTaskDefinition, types.PropagateTagsNone); err != nil {
		return err
	}
	return checkTags(l.tags)
}

// resolve finds the cluster and the task definition, and checks the launch against them.
func (s *Service) resolve(v *state.View, l *launch) error {
	c, err := s.activeCluster(v, l.cluster)
	if err != nil {
		return err
	}
	l.clusterArn = *c.ClusterArn
	if l.td = s.findTaskDefinition(v, *l.taskDefinition); l.td == nil {
		return clientError("TaskDefinition not found.")
	}
	if l.td.Status != types.TaskDefinitionStatusActive {
		return clientError("TaskDefinition is inactive.")
	}
	if lt := l.launchType; lt != "" && !slices.Contains(l.td.Compatibilities, types.Compatibility(lt)) {
		return invalidParameter("Task definition does not support launch_type %s.", lt)
	}
	if err := l.checkNetwork(v); err != nil {
		return err
	}
	if err := matchVolumes(&l.td.TaskDefinition, l.volumes); err != nil {
		return err
	}
	if l.overrides, err = checkOverrides(&l.td.TaskDefinition, l.overrides); err != nil {
		return err
	}
	if err := checkPassed(l.caller, &l.td.TaskDefinition, l.overrides, l.volumes...); err != nil {
		return err
	}
	l.need = scheduler.NeedOf(&l.td.TaskDefinition, l.overrides)
	return nil
}

// checkNetwork checks the network configuration against the task definition's network mode and what EC2 has.
func (l *launch) checkNetwork(v *state.View) error {
	awsvpc := l.td.NetworkMode == types.NetworkModeAwsvpc
	given := l.network != nil && l.network.AwsvpcConfiguration != nil
	switch {
	case awsvpc && !given:
		return invalidParameter("Network Configuration must be provided when networkMode 'awsvpc' is specified.")
	case !awsvpc && given:
		return invalidParameter("Network Configuration is not valid for the given networkMode of this task definition.")
	case !given:
		return nil
	}
	public := l.network.AwsvpcConfiguration.AssignPublicIp
	if err := checkOneOf("assignPublicIp", public.Values(), public); err != nil {
		return err
	}
	if l.launchType == types.LaunchTypeEc2 && public == types.AssignPublicIpEnabled {
		return invalidParameter("Assign public IP is not supported for this launch type.")
	}
	subnets, groups := l.network.AwsvpcConfiguration.Subnets, l.network.AwsvpcConfiguration.SecurityGroups
	if len(groups) > state.MaxTaskGroups {
		return invalidParameter("securityGroups can have at most %d items.", state.MaxTaskGroups)
	}
	if !v.HasOwnNetwork() {
		return nil // names from elsewhere will do where nobody has made a network
	}
	for _, id := range subnets {
		if v.Subnets.Get(id) == nil {
			return invalidParameter("Error retrieving subnet information for [%s]: The subnet ID '%s' does not exist "+
				"(ErrorCode: InvalidSubnetID.NotFound)", strings.Join(subnets, ", "), id)
		}
	}
	for _, id := range groups {
		if v.SecurityGroups.Get(id) == nil {
			return invalidParameter("Error retrieving security group information for [%s]: The security group '%s' does not exist "+
				"(ErrorCode: InvalidGroup.NotFound)", strings.Join(groups, ", "), id)
		}
	}
	return nil
}

// checkOverrides checks overrides against the task definition, and returns them with empty lists filled in.
func checkOverrides(td *types.TaskDefinition, o *types.TaskOverride) (*types.TaskOverride, error) {
	if o == nil {
		o = &types.TaskOverride{}
	} else if err := checkOverridesSize(o); err != nil {
		return nil, err
	}
	switch {
	case o.EphemeralStorage != nil:
		return nil, unsupported("overrides.ephemeralStorage: only Fargate has it.")
	case len(o.InferenceAcceleratorOverrides) > 0:
		return nil, unsupported("overrides.inferenceAcceleratorOverrides: Pintle's instances have no such accelerators.")
	}
	out := *o
	out.ContainerOverrides = notNil(out.ContainerOverrides)
	out.InferenceAcceleratorOverrides = notNil(out.InferenceAcceleratorOverrides)
	var err error
	if out.Cpu, err = taskCPU(o.Cpu); err != nil {
		return nil, asInvalidParameter(err)
	}
	if out.Memory, err = taskMemory(o.Memory); err != nil {
		return nil, asInvalidParameter(err)
	}
	seen := map[string]bool{}
	for _, c := range out.ContainerOverrides {
		name := aws.ToString(c.Name)
		if !slices.ContainsFunc(td.ContainerDefinitions, func(d types.ContainerDefinition) bool { return *d.Name == name }) {
			return nil, invalidParameter("Override for container named %s is not a container in the TaskDefinition.", name)
		}
		if seen[name] {
			return nil, invalidParameter("The container %s is overridden twice.", name)
		}
		seen[name] = true
		if err := checkContainerOverride(c); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

func checkContainerOverride(c types.ContainerOverride) error {
	name := *c.Name
	if aws.ToInt32(c.Cpu) < 0 {
		return invalidParameter("The override of cpu for container %s must not be negative.", name)
	}
	for field, v := range map[string]*int32{"memory": c.Memory, "memoryReservation": c.MemoryReservation} {
		if v != nil && *v < minMemoryMiB {
			return invalidParameter("The override of %s for container %s must be at least %d MiB.", field, name, minMemoryMiB)
		}
	}
	if err := checkEnvironment(&types.ContainerDefinition{Name: c.Name, Environment: c.Environment, EnvironmentFiles: c.EnvironmentFiles}); err != nil {
		return asInvalidParameter(err)
	}
	_, err := gpusOf(name, c.ResourceRequirements)
	return asInvalidParameter(err)
}

// asInvalidParameter turns RegisterTaskDefinition's ClientException into the InvalidParameterException that RunTask returns.
func asInvalidParameter(err error) error {
	var c *types.ClientException
	if errors.As(err, &c) {
		return &types.InvalidParameterException{Message: c.Message}
	}
	return err
}

// checkPlacement checks placement constraints and strategies.
func checkPlacement(constraints []types.PlacementConstraint, strategy []types.PlacementStrategy) error {
	if len(constraints) > maxConstraints {
		return invalidParameter("placementConstraints has %d members, at most %d are allowed.", len(constraints), maxConstraints)
	}
	for _, c := range constraints {
		switch c.Type {
		case types.PlacementConstraintTypeDistinctInstance:
			if aws.ToString(c.Expression) != "" {
				return invalidParameter("The placement constraint distinctInstance takes no expression.")
			}
		case types.PlacementConstraintTypeMemberOf:
			if _, err := query.Parse(aws.ToString(c.Expression)); err != nil {
				return invalidParameter("Invalid placement constraint expression: %v.", err)
			}
		default:
			return invalidParameter("The type of a placement constraint must be distinctInstance or memberOf, not %q.", c.Type)
		}
	}
	if len(strategy) > maxStrategies {
		return invalidParameter("placementStrategy has %d members, at most %d are allowed.", len(strategy), maxStrategies)
	}
	for _, p := range strategy {
		if err := scheduler.CheckStrategy(p); err != nil {
			return invalidParameter("%v", err)
		}
	}
	return nil
}

// taskTags returns the tags of the launch's tasks. The call's tags override those of the task definition. ECS's own come last,
// as with the tasks of services.
func (l *launch) taskTags() []types.Tag {
	tags := l.tags
	if l.propagate == types.PropagateTagsTaskDefinition {
		tags = account.MergeTags(l.td.Tags, tags, keyAndValue)
	}
	return notNil(append(slices.Clone(tags), l.ownTags()...))
}

// ownTags returns ECS's own tags, if the launch wants them.
func (l *launch) ownTags() []types.Tag {
	if !l.managedTags {
		return nil
	}
	return []types.Tag{scheduler.ClusterTag(l.clusterArn)}
}
