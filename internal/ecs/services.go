package ecs

import (
	"cmp"
	"context"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/taskvolume"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// The limits of services: API_DescribeServices, API_ListServices.
const (
	maxServices     = 10
	servicesPerPage = 10
)

// findService finds a service of the cluster that is not INACTIVE, or returns nil.
func (s *Service) findService(v *state.View, clusterArn, service string) *state.Service {
	row := v.Services.Get(inCluster(clusterArn, "service", service))
	if row == nil || *row.ClusterArn != clusterArn || *row.Status == state.ServiceInactive {
		return nil
	}
	return row
}

// findActiveService finds a service that can be changed.
func (s *Service) findActiveService(v *state.View, clusterArn, service string) (*state.Service, error) {
	row := v.Services.Get(inCluster(clusterArn, "service", service))
	switch {
	case row == nil || *row.ClusterArn != clusterArn:
		return nil, serviceNotFound()
	case *row.Status != state.ServiceActive: // a deleted service that DescribeServices still shows, too
		return nil, serviceNotActive()
	}
	return row, nil
}

// CreateService creates a service and its first deployment. Package rollout starts its tasks.
func (s *Service) CreateService(ctx context.Context, in *ecs.CreateServiceInput) (*ecs.CreateServiceOutput, error) {
	if err := checkNewService(in); err != nil {
		return nil, err
	}
	hash, err := requestHash(in)
	if err != nil {
		return nil, err
	}
	var row *state.Service
	err = s.traced(ctx, "CreateService", "service", func(tx *state.Tx, span string) (err error) {
		row, err = s.createService(ctx, tx, in, hash, span)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ecs.CreateServiceOutput{Service: new(s.describeService(s.store.View(), row, true))}, nil
}

func (s *Service) createService(ctx context.Context, tx *state.Tx, in *ecs.CreateServiceInput, hash []byte, span string) (*state.Service, error) {
	l := launch{
		cluster:        in.Cluster,
		taskDefinition: in.TaskDefinition,
		network:        in.NetworkConfiguration,
		volumes:        taskvolume.OfService(in.VolumeConfigurations),
		launchType:     in.LaunchType,
		constraints:    in.PlacementConstraints,
		providers:      in.CapacityProviderStrategy,
		platform:       in.PlatformVersion,
		caller:         call.From(ctx),
	}
	if err := s.resolveService(tx.View, in, &l); err != nil {
		return nil, err
	}
	arn := state.InCluster(l.clusterArn, "service", *in.ServiceName)
	key := "CreateService " + l.clusterArn + " " + aws.ToString(in.ClientToken)
	if old := tx.Services.Get(arn); old != nil && *old.Status != state.ServiceInactive {
		if token := s.findToken(tx.View, key); aws.ToString(in.ClientToken) != "" && token != nil && slices.Equal(token.Request, hash) {
			return old, nil
		}
		if *old.Status == state.ServiceDraining {
			return nil, invalidParameter("Unable to Start a service that is still Draining.")
		}
		return nil, invalidParameter("Creation of service was not idempotent.")
	}
	row := newService(in, arn, l.clusterArn)
	row.CreatedAt = s.now()
	if role := aws.ToString(in.Role); role != "" && !strings.HasPrefix(role, "arn:") {
		row.RoleArn = new(s.opts.GlobalARN("iam", "role/"+role))
	}
	row.CreatedBy = aws.String(cmp.Or(call.From(ctx).Principal, s.root()))
	if isDaemon(&row.Service) { // the loop keeps it up to date, but waiters must not see 0 of 0 tasks now
		row.DesiredCount = int32(len(s.scheduler.Hosts(tx.View, l.task(*s.now()), nil)))
	}
	if !row.IsExternal() {
		if in.AvailabilityZoneRebalancing == "" && len(in.PlacementStrategy) == 0 && len(l.need.GPUs) > 0 {
			// Pintle places tasks with GPUs its own way, which keeps the GPUs usable.
			row.AvailabilityZoneRebalancing = types.AvailabilityZoneRebalancingDisabled
		}
		row.CapacityProviderStrategy = l.providers
		row.LaunchType = launchTypeOf(in.LaunchType, l.providers)
		setPlatform(row, in.PlatformVersion)
		connect, err := serviceConnect(tx.View, l.clusterArn, in.ServiceConnectConfiguration)
		if err != nil {
			return nil, err
		}
		row.ServiceConnect = connect
		row.Monitoring = in.Monitoring
		row.Volumes = in.VolumeConfigurations
		if err := s.deploy(tx, row, l.td, span); err != nil {
			return nil, err
		}
	}
	tx.Services.Put(row)
	if aws.ToString(in.ClientToken) != "" {
		s.putToken(tx, key, hash, []string{arn})
	}
	return row, nil
}

// resolveService resolves a new service's cluster, task definition and capacity providers. For a service with the deployment
// controller EXTERNAL it finds only the cluster, since task sets give the rest later.
func (s *Service) resolveService(v *state.View, in *ecs.CreateServiceInput, l *launch) error {
	if isExternal(in.DeploymentController) {
		c, err := s.activeCluster(v, in.Cluster)
		if err != nil {
			return err
		}
		l.clusterArn = *c.ClusterArn
		return nil
	}
	if err := cmp.Or(s.resolve(v, l), s.checkHooks(l.caller, in.DeploymentConfiguration)); err != nil {
		return err
	}
	if err := resolveLoadBalancers(v, l.td, in.LoadBalancers); err != nil {
		return err
	}
	if err := s.resolveRegistries(v, l.td, in.ServiceRegistries); err != nil {
		return err
	}
	if in.SchedulingStrategy == types.SchedulingStrategyDaemon {
		return checkPlatformVersion(in.PlatformVersion, l.isFargate()) // it runs on every instance, whatever its capacity provider
	}
	return s.useProviders(v, l)
}

// newService returns the row of a service without a deployment.
func newService(in *ecs.CreateServiceInput, arn, clusterArn string) *state.Service {
	row := &state.Service{Service: types.Service{
		ServiceArn:         &arn,
		ServiceName:        in.ServiceName,
		ClusterArn:         &clusterArn,
		Status:             aws.String(state.ServiceActive),
		SchedulingStrategy: cmp.Or(in.SchedulingStrategy, types.SchedulingStrategyReplica),
		DesiredCount:       aws.ToInt32(in.DesiredCount),
		DeploymentController: cmp.Or(in.DeploymentController, &types.DeploymentController{
			Type: types.DeploymentControllerTypeEcs,
		}),
		LaunchType:                    in.LaunchType,
		CapacityProviderStrategy:      in.CapacityProviderStrategy,
		NetworkConfiguration:          in.NetworkConfiguration,
		PlacementConstraints:          notNil(in.PlacementConstraints),
		PlacementStrategy:             notNil(in.PlacementStrategy),
		PropagateTags:                 cmp.Or(in.PropagateTags, types.PropagateTagsNone),
		AvailabilityZoneRebalancing:   in.AvailabilityZoneRebalancing,
		EnableECSManagedTags:          in.EnableECSManagedTags,
		EnableExecuteCommand:          in.EnableExecuteCommand,
		HealthCheckGracePeriodSeconds: in.HealthCheckGracePeriodSeconds,
		LoadBalancers:                 notNil(in.LoadBalancers),
		RoleArn:                       in.Role,
		ServiceRegistries:             notNil(in.ServiceRegistries),
		Tags:                          in.Tags,
	}}
	defaults := defaultDeploymentConfiguration(row.SchedulingStrategy)
	row.DeploymentConfiguration = mergeDeploymentConfiguration(defaults, in.DeploymentConfiguration)
	if row.AvailabilityZoneRebalancing == "" {
		row.AvailabilityZoneRebalancing = defaultRebalancing(&row.Service)
	}
	return row
}

// launchTypeOf returns the launch type of a service or task set. With a capacity provider strategy it has none.
func launchTypeOf(given types.LaunchType, strategy []types.CapacityProviderStrategyItem) types.LaunchType {
	if len(strategy) > 0 {
		return ""
	}
	return cmp.Or(given, types.LaunchTypeEc2)
}

// defaultRebalancing returns ENABLED for every service that can have Availability Zone rebalancing.
func defaultRebalancing(row *types.Service) types.AvailabilityZoneRebalancing {
	if rebalancingObstacle(row) != "" {
		return types.AvailabilityZoneRebalancingDisabled
	}
	return types.AvailabilityZoneRebalancingEnabled
}

// UpdateService changes a service. It starts a new deployment if the task definition, network, Service Connect configuration, volumes
// or capacity providers change, or with forceNewDeployment. Other changes take effect without one.
func (s *Service) UpdateService(ctx context.Context, in *ecs.UpdateServiceInput) (*ecs.UpdateServiceOutput, error) {
	if err := checkUpdate(in); err != nil {
		return nil, err
	}
	var row *state.Service
	err := s.traced(ctx, "UpdateService", "service", func(tx *state.Tx, span string) (err error) {
		row, err = s.updateService(ctx, tx, in, span)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UpdateServiceOutput{Service: new(s.describeService(s.store.View(), row, true))}, nil
}

func (s *Service) updateService(ctx context.Context, tx *state.Tx, in *ecs.UpdateServiceInput, span string) (*state.Service, error) {
	c, err := s.activeCluster(tx.View, in.Cluster)
	if err != nil {
		return nil, err
	}
	old, err := s.findActiveService(tx.View, *c.ClusterArn, aws.ToString(in.Service))
	if err != nil {
		return nil, err
	}
	if in.DesiredCount != nil && isDaemon(&old.Service) {
		return nil, invalidParameter("desiredCount must not be given for a service with the scheduling strategy DAEMON: it runs one task " +
			"on each instance.")
	}
	if old.IsExternal() {
		if err := checkExternalUpdate(in); err != nil {
			return nil, err
		}
	}
	row := old.Clone()
	applyUpdate(row, in)
	if err := cmp.Or(
		checkService(&row.Service),
		checkPlatformVersion(in.PlatformVersion, capacity.IsFargate(row.LaunchType, row.CapacityProviderStrategy)),
		s.checkHooks(call.From(ctx), in.DeploymentConfiguration),
	); err != nil {
		return nil, err
	}
	if row.IsExternal() {
		tx.Services.Put(row)
		return row, nil
	}
	if in.ServiceConnectConfiguration != nil {
		if row.ServiceConnect, err = serviceConnect(tx.View, *row.ClusterArn, in.ServiceConnectConfiguration); err != nil {
			return nil, err
		}
	}
	row.Monitoring = cmp.Or(in.Monitoring, row.Monitoring)
	if in.VolumeConfigurations != nil {
		row.Volumes = in.VolumeConfigurations
	}
	td, err := s.updatedDefinition(ctx, tx.View, in, row)
	if err != nil {
		return nil, err
	}
	if err := s.resolveUpdated(tx.View, in, row, td); err != nil {
		return nil, err
	}
	if in.ForceNewDeployment || *td.TaskDefinitionArn != *old.TaskDefinition || !sameTasks(old, row) {
		if err := s.deploy(tx, row, td, span); err != nil {
			return nil, err
		}
	} else if in.DeploymentConfiguration != nil && in.DeploymentConfiguration.Alarms != nil && len(row.Deployments) > 0 {
		row.Deployments[0].AlarmsIgnored = len(tx.TriggeredAlarms(row)) > 0
	}
	tx.Services.Put(row)
	return row, nil
}

// updatedDefinition returns the task definition of an updated service, and checks a changed network or capacity provider
// strategy against it.
func (s *Service) updatedDefinition(
	ctx context.Context, v *state.View, in *ecs.UpdateServiceInput, row *state.Service,
) (*state.TaskDefinition, error) {
	if in.TaskDefinition == nil && in.NetworkConfiguration == nil && in.CapacityProviderStrategy == nil && in.VolumeConfigurations == nil {
		return v.TaskDefinitions.Get(*row.TaskDefinition), nil
	}
	l := launch{
		cluster:        in.Cluster,
		taskDefinition: cmp.Or(in.TaskDefinition, row.TaskDefinition),
		network:        row.NetworkConfiguration,
		volumes:        taskvolume.OfService(row.Volumes),
		launchType:     row.LaunchType,
		providers:      row.CapacityProviderStrategy,
		caller:         call.From(ctx),
	}
	if err := s.resolve(v, &l); err != nil {
		return nil, err
	}
	return l.td, s.useProviders(v, &l)
}

// resolveUpdated resolves what an updated service's tasks are registered with, where an update changes that, or the tasks.
func (s *Service) resolveUpdated(v *state.View, in *ecs.UpdateServiceInput, row *state.Service, td *state.TaskDefinition) error {
	if in.LoadBalancers != nil || in.TaskDefinition != nil {
		if err := resolveLoadBalancers(v, td, row.LoadBalancers); err != nil {
			return err
		}
	}
	if in.ServiceRegistries != nil || in.TaskDefinition != nil {
		return s.resolveRegistries(v, td, row.ServiceRegistries)
	}
	return nil
}

// sameTasks reports whether two versions of a service make the same tasks from a task definition.
func sameTasks(a, b *state.Service) bool {
	return reflect.DeepEqual(a.ServiceConnect, b.ServiceConnect) &&
		reflect.DeepEqual(a.NetworkConfiguration, b.NetworkConfiguration) &&
		(len(a.Volumes)+len(b.Volumes) == 0 || reflect.DeepEqual(a.Volumes, b.Volumes)) &&
		(len(a.LoadBalancers)+len(b.LoadBalancers) == 0 || reflect.DeepEqual(a.LoadBalancers, b.LoadBalancers)) &&
		(len(a.ServiceRegistries)+len(b.ServiceRegistries) == 0 || reflect.DeepEqual(a.ServiceRegistries, b.ServiceRegistries)) &&
		reflect.DeepEqual(a.CapacityProviderStrategy, b.CapacityProviderStrategy) &&
		aws.ToString(a.PlatformVersion) == aws.ToString(b.PlatformVersion)
}

// applyUpdate applies the members that the call gives to the row.
func applyUpdate(row *state.Service, in *ecs.UpdateServiceInput) {
	row.DesiredCount = aws.ToInt32(cmp.Or(in.DesiredCount, &row.DesiredCount))
	row.DeploymentConfiguration = mergeDeploymentConfiguration(*row.DeploymentConfiguration, in.DeploymentConfiguration)
	row.HealthCheckGracePeriodSeconds = cmp.Or(in.HealthCheckGracePeriodSeconds, row.HealthCheckGracePeriodSeconds)
	row.NetworkConfiguration = cmp.Or(in.NetworkConfiguration, row.NetworkConfiguration)
	row.PropagateTags = cmp.Or(in.PropagateTags, row.PropagateTags)
	row.AvailabilityZoneRebalancing = cmp.Or(in.AvailabilityZoneRebalancing, row.AvailabilityZoneRebalancing)
	row.EnableECSManagedTags = aws.ToBool(cmp.Or(in.EnableECSManagedTags, &row.EnableECSManagedTags))
	row.EnableExecuteCommand = aws.ToBool(cmp.Or(in.EnableExecuteCommand, &row.EnableExecuteCommand))
	if in.LoadBalancers != nil {
		row.LoadBalancers = in.LoadBalancers
	}
	if in.ServiceRegistries != nil {
		row.ServiceRegistries = in.ServiceRegistries
	}
	if in.PlacementConstraints != nil {
		row.PlacementConstraints = in.PlacementConstraints
	}
	if in.PlacementStrategy != nil {
		row.PlacementStrategy = in.PlacementStrategy
	}
	if in.CapacityProviderStrategy != nil {
		row.CapacityProviderStrategy = in.CapacityProviderStrategy
		row.LaunchType = launchTypeOf("", in.CapacityProviderStrategy)
	}
	if in.CapacityProviderStrategy != nil || aws.ToString(in.PlatformVersion) != "" {
		setPlatform(row, in.PlatformVersion)
	}
}

// DeleteService makes a service DRAINING. Package rollout stops its tasks, and then makes it INACTIVE.
func (s *Service) DeleteService(ctx context.Context, in *ecs.DeleteServiceInput) (*ecs.DeleteServiceOutput, error) {
	if aws.ToString(in.Service) == "" {
		return nil, invalidParameter("service must not be empty.")
	}
	var row *state.Service
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		old := s.findService(tx.View, *c.ClusterArn, *in.Service)
		if old == nil {
			return serviceNotFound()
		}
		if row = old; *old.Status == state.ServiceDraining {
			return nil
		}
		if old.DesiredCount > 0 && !isDaemon(&old.Service) && !aws.ToBool(in.Force) {
			return invalidParameter("The service cannot be stopped while it is scaled above 0.")
		}
		row = old.Clone()
		row.Status = aws.String(state.ServiceDraining)
		row.DesiredCount = 0
		tx.Services.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeleteServiceOutput{Service: new(s.describeService(s.store.View(), row, true))}, nil
}

func isDaemon(row *types.Service) bool {
	return row.SchedulingStrategy == types.SchedulingStrategyDaemon
}

// DescribeServices describes services. It reports services that don't exist as failures.
func (s *Service) DescribeServices(_ context.Context, in *ecs.DescribeServicesInput) (*ecs.DescribeServicesOutput, error) {
	if len(in.Services) == 0 {
		return nil, invalidParameter("Services cannot be empty.")
	}
	if len(in.Services) > maxServices {
		return nil, invalidParameter("services has %d members, at most %d are allowed.", len(in.Services), maxServices)
	}
	if err := checkOneOf("include", types.ServiceField("").Values(), in.Include...); err != nil {
		return nil, err
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	out := &ecs.DescribeServicesOutput{Services: []types.Service{}, Failures: []types.Failure{}}
	for _, name := range in.Services {
		if err := checkIdentifier(*c.ClusterArn, "service", name); err != nil {
			return nil, err
		}
		arn := inCluster(*c.ClusterArn, "service", name)
		row := v.Services.Get(arn)
		if row == nil || *row.ClusterArn != *c.ClusterArn {
			out.Failures = append(out.Failures, missing(arn))
			continue
		}
		out.Services = append(out.Services, s.describeService(v, row, slices.Contains(in.Include, types.ServiceFieldTags)))
	}
	return out, nil
}

// describeService returns the row with the counts of its tasks.
func (s *Service) describeService(v *state.View, row *state.Service, tags bool) types.Service {
	out := row.Service
	out.Events = row.SDKEvents()
	if !tags {
		out.Tags = nil
	}
	counts := countTasks(v, row)
	for _, c := range counts {
		out.RunningCount += c.running
		out.PendingCount += c.pending
	}
	out.Deployments = []types.Deployment{}
	for i, d := range row.Deployments {
		c := counts[*d.Id]
		described := d.Deployment
		described.RunningCount = c.running
		described.PendingCount = c.pending
		described.DesiredCount = c.running + c.pending
		if i == 0 {
			described.DesiredCount = row.DesiredCount
		}
		if d.RolloutState == types.DeploymentRolloutStateFailed {
			described.DesiredCount = 0
		}
		out.Deployments = append(out.Deployments, described)
		out.CurrentServiceRevisions = append(out.CurrentServiceRevisions, types.ServiceCurrentRevisionSummary{
			Arn:                new(d.ServiceRevisionArn),
			RequestedTaskCount: described.DesiredCount,
			RunningTaskCount:   c.running,
			PendingTaskCount:   c.pending,
		})
	}
	for i := range row.TaskSets {
		out.TaskSets = append(out.TaskSets, s.describeTaskSet(v, row, &row.TaskSets[i], tags))
	}
	if len(row.Deployments) > 0 {
		out.CurrentServiceDeployment = new(row.Deployments[0].ServiceDeploymentArn)
	}
	return out
}

// taskCounts counts a deployment's tasks whose desired status is RUNNING.
type taskCounts struct {
	running int32 // their last status is RUNNING, too
	pending int32 // the others
}

// countTasks counts a service's tasks by the id of their deployment or task set.
func countTasks(v *state.View, row *state.Service) map[string]taskCounts {
	counts := map[string]taskCounts{}
	for t := range v.Tasks.By(state.TasksByService, *row.ServiceArn) {
		if *t.DesiredStatus != "RUNNING" {
			continue
		}
		c := counts[aws.ToString(t.StartedBy)]
		if *t.LastStatus == "RUNNING" {
			c.running++
		} else {
			c.pending++
		}
		counts[aws.ToString(t.StartedBy)] = c
	}
	return counts
}

// ListServices lists the ARNs of a cluster's active services.
func (s *Service) ListServices(_ context.Context, in *ecs.ListServicesInput) (*ecs.ListServicesOutput, error) {
	if in.LaunchType != "" && !slices.Contains(in.LaunchType.Values(), in.LaunchType) {
		return nil, invalidParameter("launchType must be one of %v, not %q.", in.LaunchType.Values(), in.LaunchType)
	}
	if in.SchedulingStrategy != "" && !slices.Contains(in.SchedulingStrategy.Values(), in.SchedulingStrategy) {
		return nil, invalidParameter("schedulingStrategy must be one of %v, not %q.", in.SchedulingStrategy.Values(), in.SchedulingStrategy)
	}
	if err := checkOneOf("resourceManagementType", in.ResourceManagementType.Values(), in.ResourceManagementType); err != nil {
		return nil, err
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	arns, next, err := page(listingOf("ListServices", servicesPerPage, maxPage), in.MaxResults, in.NextToken,
		func(after string) iter.Seq[*state.Service] {
			return v.Services.After(state.ServicesByCluster, *c.ClusterArn, after)
		},
		func(row *state.Service) string { return *row.ServiceArn },
		func(row *state.Service) bool {
			return *row.Status == state.ServiceActive &&
				(in.LaunchType == "" || row.LaunchType == in.LaunchType) &&
				(in.SchedulingStrategy == "" || row.SchedulingStrategy == in.SchedulingStrategy) &&
				(in.ResourceManagementType == "" || in.ResourceManagementType == types.ResourceManagementTypeCustomer)
		})
	if err != nil {
		return nil, err
	}
	return &ecs.ListServicesOutput{ServiceArns: arns, NextToken: next}, nil
}
