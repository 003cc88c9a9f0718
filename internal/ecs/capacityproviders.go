package ecs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

// CapacityProviderAttribute is the attribute by which a container instance says, when it registers, that it belongs
// to a capacity provider. On ECS that follows from the Auto Scaling group that the instance is in.
const CapacityProviderAttribute = "pintle.capacity-provider"

// The limits of capacity providers: API_CapacityProviderStrategyItem, API_ManagedScaling, API_DescribeCapacityProviders.
const (
	maxProviders         = 20
	maxBase              = 100_000
	maxWeight            = 1_000
	maxScalingStep       = 10_000
	maxInstanceWarmup    = 10_000
	maxProvidersOfAPage  = 10
	maxProvidersDescribe = 100
)

// providerName is what CreateCapacityProvider says of names.
var providerName = pattern.New(`^[a-zA-Z0-9_-]+$`, 255)

// fargateProviders are always there.
var fargateProviders = []string{"FARGATE", "FARGATE_SPOT"}

// provider is the capacity provider of a name or an ARN, or nil.
func (s *Service) provider(v *state.View, name string) *types.CapacityProvider {
	arn := name
	if !isArn(name) {
		arn = s.arn("capacity-provider", name)
	}
	if short := state.NameOf(arn); slices.Contains(fargateProviders, short) && arn == s.arn("capacity-provider", short) {
		return &types.CapacityProvider{CapacityProviderArn: &arn, Name: &short, Status: types.CapacityProviderStatusActive, Type: types.CapacityProviderType(short)}
	}
	row := v.CapacityProviders.Get(arn)
	if row == nil {
		return nil
	}
	return &row.CapacityProvider
}

func providerNotFound(name string) error {
	return clientError("The specified capacity provider does not exist. Specify a valid name or ARN and try again: %s", name)
}

// CreateCapacityProvider makes a capacity provider of an Auto Scaling group. One that is not there is taken on trust, unless it
// is to be scaled: the container instances that belong to it say so themselves.
func (s *Service) CreateCapacityProvider(ctx context.Context, in *ecs.CreateCapacityProviderInput) (*ecs.CreateCapacityProviderOutput, error) {
	group, err := checkNewProvider(in)
	if err != nil {
		return nil, err
	}
	row := &state.CapacityProvider{CapacityProvider: types.CapacityProvider{
		CapacityProviderArn: new(s.arn("capacity-provider", *in.Name)), Name: in.Name, Tags: notNil(in.Tags), AutoScalingGroupProvider: group,
		Status: types.CapacityProviderStatusActive, UpdateStatus: types.CapacityProviderUpdateStatusCreateComplete, Type: types.CapacityProviderTypeEc2Autoscaling,
	}}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.CapacityProviders.Get(*row.CapacityProviderArn) != nil {
			return clientError("The specified capacity provider already exists. UpdateCapacityProvider changes it: %s", *in.Name)
		}
		for other := range tx.CapacityProviders.All() {
			if groupName(other.AutoScalingGroupProvider) == groupName(group) {
				return clientError("The specified Auto Scaling group ARN is already being used by another capacity provider. Specify a unique Auto Scaling group ARN and try again: autoScalingGroupProvider.autoScalingGroupArn is that of %s.", *other.Name)
			}
		}
		if err := checkScaledGroup(tx.View, group); err != nil {
			return err
		}
		tx.CapacityProviders.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.CreateCapacityProviderOutput{CapacityProvider: &row.CapacityProvider}, nil
}

// checkNewProvider refuses what is wrong with a new provider, and returns its group with the defaults filled in.
func checkNewProvider(in *ecs.CreateCapacityProviderInput) (*types.AutoScalingGroupProvider, error) {
	name := aws.ToString(in.Name)
	if !providerName.MatchString(name) {
		return nil, invalidParameter("name %q must have up to 255 letters, numbers, hyphens and underscores.", name)
	}
	for _, reserved := range []string{"aws", "ecs", "fargate"} {
		if strings.HasPrefix(strings.ToLower(name), reserved) {
			return nil, invalidParameter("name %q must not begin with %s.", name, reserved)
		}
	}
	if in.ManagedInstancesProvider != nil {
		return nil, unsupported("managedInstancesProvider: Pintle's capacity providers are Auto Scaling groups.")
	}
	if aws.ToString(in.Cluster) != "" {
		return nil, invalidParameter("cluster must not be given for a capacity provider of an Auto Scaling group: PutClusterCapacityProviders brings the two together.")
	}
	if in.AutoScalingGroupProvider == nil || aws.ToString(in.AutoScalingGroupProvider.AutoScalingGroupArn) == "" {
		return nil, invalidParameter("autoScalingGroupProvider.autoScalingGroupArn must not be empty.")
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	given := in.AutoScalingGroupProvider
	group := mergeGroup(types.AutoScalingGroupProvider{
		AutoScalingGroupArn: given.AutoScalingGroupArn, ManagedScaling: &types.ManagedScaling{Status: types.ManagedScalingStatusDisabled},
		ManagedTerminationProtection: types.ManagedTerminationProtectionDisabled, ManagedDraining: types.ManagedDrainingEnabled,
	}, given.ManagedScaling, given.ManagedTerminationProtection, given.ManagedDraining)
	return group, checkGroup(group)
}

// mergeGroup puts what is given over the old settings.
func mergeGroup(old types.AutoScalingGroupProvider, scaling *types.ManagedScaling, protection types.ManagedTerminationProtection, draining types.ManagedDraining) *types.AutoScalingGroupProvider {
	if scaling != nil {
		was := old.ManagedScaling
		old.ManagedScaling = &types.ManagedScaling{
			Status:                 cmp.Or(scaling.Status, was.Status),
			TargetCapacity:         cmp.Or(scaling.TargetCapacity, was.TargetCapacity, aws.Int32(100)),
			MinimumScalingStepSize: cmp.Or(scaling.MinimumScalingStepSize, was.MinimumScalingStepSize, aws.Int32(1)),
			MaximumScalingStepSize: cmp.Or(scaling.MaximumScalingStepSize, was.MaximumScalingStepSize, aws.Int32(maxScalingStep)),
			InstanceWarmupPeriod:   cmp.Or(scaling.InstanceWarmupPeriod, was.InstanceWarmupPeriod, aws.Int32(300)),
		}
	}
	old.ManagedTerminationProtection = cmp.Or(protection, old.ManagedTerminationProtection)
	old.ManagedDraining = cmp.Or(draining, old.ManagedDraining)
	return &old
}

func checkGroup(g *types.AutoScalingGroupProvider) error {
	scaling := g.ManagedScaling
	const field = "autoScalingGroupProvider."
	if !slices.Contains(scaling.Status.Values(), scaling.Status) {
		return invalidParameter(field+"managedScaling.status must be one of %v, not %q.", scaling.Status.Values(), scaling.Status)
	}
	for _, n := range []struct {
		name      string
		value     *int32
		low, high int32
	}{
		{"targetCapacity", scaling.TargetCapacity, 1, 100},
		{"minimumScalingStepSize", scaling.MinimumScalingStepSize, 1, maxScalingStep},
		{"maximumScalingStepSize", scaling.MaximumScalingStepSize, 1, maxScalingStep},
		{"instanceWarmupPeriod", scaling.InstanceWarmupPeriod, 0, maxInstanceWarmup},
	} {
		if n.value != nil && (*n.value < n.low || *n.value > n.high) {
			return invalidParameter(field+"managedScaling.%s must be between %d and %d, not %d.", n.name, n.low, n.high, *n.value)
		}
	}
	if aws.ToInt32(scaling.MinimumScalingStepSize) > aws.ToInt32(scaling.MaximumScalingStepSize) {
		return invalidParameter(field + "managedScaling.minimumScalingStepSize must not be above maximumScalingStepSize.")
	}
	if p := g.ManagedTerminationProtection; !slices.Contains(p.Values(), p) {
		return invalidParameter(field+"managedTerminationProtection must be one of %v, not %q.", p.Values(), p)
	}
	if g.ManagedTerminationProtection == types.ManagedTerminationProtectionEnabled && scaling.Status != types.ManagedScalingStatusEnabled {
		return invalidParameter(field + "managedTerminationProtection can only be ENABLED where managedScaling.status is, too.")
	}
	if d := g.ManagedDraining; !slices.Contains(d.Values(), d) {
		return invalidParameter(field+"managedDraining must be one of %v, not %q.", d.Values(), d)
	}
	return nil
}

// groupName is the name of a provider's group, which it may name by its ARN.
func groupName(g *types.AutoScalingGroupProvider) string {
	_, name, found := strings.Cut(*g.AutoScalingGroupArn, ":autoScalingGroupName/")
	if !found {
		return *g.AutoScalingGroupArn
	}
	return name
}

// checkScaledGroup refuses managed scaling of a group that is not there, and managed termination protection of one whose
// instances are not protected, as ECS does.
func checkScaledGroup(v *state.View, g *types.AutoScalingGroupProvider) error {
	if g.ManagedScaling.Status != types.ManagedScalingStatusEnabled {
		return nil
	}
	group := v.AutoScalingGroups.Get(groupName(g))
	if group == nil || group.Deleting || *g.AutoScalingGroupArn != group.Name() && *g.AutoScalingGroupArn != *group.AutoScalingGroupARN {
		return clientError("The specified Auto Scaling group does not exist: autoScalingGroupProvider.autoScalingGroupArn %s.", *g.AutoScalingGroupArn)
	}
	if g.ManagedTerminationProtection != types.ManagedTerminationProtectionEnabled {
		return nil
	}
	exposed := slices.ContainsFunc(v.ActiveMembers(group.Name()), func(i *state.Instance) bool { return !i.Member.Protected })
	if exposed || !aws.ToBool(group.NewInstancesProtectedFromScaleIn) {
		return clientError("The managed termination protection setting for the capacity provider is invalid. To enable managed termination protection for a capacity provider, the Auto Scaling group must have instance protection from scale in enabled.")
	}
	return nil
}

// UpdateCapacityProvider changes the settings of a provider's Auto Scaling group.
func (s *Service) UpdateCapacityProvider(ctx context.Context, in *ecs.UpdateCapacityProviderInput) (*ecs.UpdateCapacityProviderOutput, error) {
	if in.ManagedInstancesProvider != nil {
		return nil, unsupported("managedInstancesProvider: Pintle's capacity providers are Auto Scaling groups.")
	}
	change := in.AutoScalingGroupProvider
	if change == nil {
		return nil, invalidParameter("autoScalingGroupProvider must not be empty.")
	}
	row, err := s.changeProvider(ctx, aws.ToString(in.Name), func(tx *state.Tx, row *state.CapacityProvider) error {
		was := *row.AutoScalingGroupProvider
		row.AutoScalingGroupProvider = mergeGroup(*row.AutoScalingGroupProvider, change.ManagedScaling, change.ManagedTerminationProtection, change.ManagedDraining)
		row.UpdateStatus, row.UpdateStatusReason = types.CapacityProviderUpdateStatusUpdateComplete, nil
		if err := checkGroup(row.AutoScalingGroupProvider); err != nil {
			return err
		}
		now := row.AutoScalingGroupProvider
		if now.ManagedScaling.Status == was.ManagedScaling.Status && now.ManagedTerminationProtection == was.ManagedTerminationProtection {
			return nil // what the group is now does not matter to the rest
		}
		return checkScaledGroup(tx.View, now)
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UpdateCapacityProviderOutput{CapacityProvider: row}, nil
}

// DeleteCapacityProvider forgets a provider. One that a cluster still has stays, and says so: DELETE_FAILED.
func (s *Service) DeleteCapacityProvider(ctx context.Context, in *ecs.DeleteCapacityProviderInput) (*ecs.DeleteCapacityProviderOutput, error) {
	row, err := s.changeProvider(ctx, aws.ToString(in.CapacityProvider), func(tx *state.Tx, row *state.CapacityProvider) error {
		for c := range tx.Clusters.All() {
			if *c.Status == statusActive && slices.Contains(c.CapacityProviders, *row.Name) {
				row.UpdateStatus = types.CapacityProviderUpdateStatusDeleteFailed
				row.UpdateStatusReason = account.Message("The capacity provider cannot be deleted because it is associated with cluster: %s. Remove the capacity provider from the cluster and try again.", *c.ClusterName)
				return nil
			}
		}
		row.Status, row.UpdateStatus, row.UpdateStatusReason = types.CapacityProviderStatusInactive, types.CapacityProviderUpdateStatusDeleteComplete, nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeleteCapacityProviderOutput{CapacityProvider: row}, nil
}

// changeProvider changes a provider that somebody has made; one that comes out INACTIVE is forgotten.
func (s *Service) changeProvider(ctx context.Context, name string, change func(*state.Tx, *state.CapacityProvider) error) (*types.CapacityProvider, error) {
	if name == "" {
		return nil, invalidParameter("The name of the capacity provider must not be empty.")
	}
	var row *state.CapacityProvider
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old := s.provider(tx.View, name)
		if old == nil {
			return providerNotFound(name)
		}
		if old.AutoScalingGroupProvider == nil {
			return invalidParameter("The capacity provider %s cannot be changed.", *old.Name)
		}
		row = &state.CapacityProvider{CapacityProvider: *old}
		if err := change(tx, row); err != nil {
			return err
		}
		if row.Status == types.CapacityProviderStatusInactive {
			tx.CapacityProviders.Delete(*row.CapacityProviderArn)
		} else {
			tx.CapacityProviders.Put(row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &row.CapacityProvider, nil
}

// DescribeCapacityProviders describes the named providers, or all of them; with a cluster, only that cluster's.
func (s *Service) DescribeCapacityProviders(_ context.Context, in *ecs.DescribeCapacityProvidersInput) (*ecs.DescribeCapacityProvidersOutput, error) {
	if n := len(in.CapacityProviders); n > maxProvidersDescribe {
		return nil, invalidParameter("capacityProviders has %d members, at most %d are allowed.", n, maxProvidersDescribe)
	}
	size := cmp.Or(in.MaxResults, aws.Int32(maxProvidersOfAPage))
	if *size < 1 || *size > maxProvidersOfAPage {
		return nil, invalidParameter("maxResults must be between 1 and %d, not %d.", maxProvidersOfAPage, *size)
	}
	v := s.store.View()
	out := &ecs.DescribeCapacityProvidersOutput{CapacityProviders: []types.CapacityProvider{}, Failures: []types.Failure{}}
	listed := func(string) bool { return true }
	if in.Cluster != nil {
		c, err := s.activeCluster(v, in.Cluster)
		if err != nil {
			return nil, err
		}
		listed = func(name string) bool { return slices.Contains(c.CapacityProviders, name) }
	}
	var names []string
	for _, name := range in.CapacityProviders {
		if p := s.provider(v, name); p != nil && listed(*p.Name) {
			names = append(names, *p.Name)
		} else {
			out.Failures = append(out.Failures, missing(name))
		}
	}
	if len(in.CapacityProviders) == 0 {
		names = slices.DeleteFunc(s.providerNames(v), func(name string) bool { return !listed(name) })
	} else {
		size = aws.Int32(maxPage)
	}
	names, next, err := account.Ordered(listing("DescribeCapacityProviders"), names, size, in.NextToken, itself)
	if err != nil {
		return nil, err
	}
	out.NextToken = next
	for _, name := range names {
		p := *s.provider(v, name)
		if !slices.Contains(in.Include, types.CapacityProviderFieldTags) {
			p.Tags = nil
		}
		p.Tags = notNil(p.Tags)
		out.CapacityProviders = append(out.CapacityProviders, p)
	}
	return out, nil
}

// providerNames are all providers there are.
func (s *Service) providerNames(v *state.View) []string {
	names := slices.Clone(fargateProviders)
	for row := range v.CapacityProviders.All() {
		names = append(names, *row.Name)
	}
	slices.Sort(names)
	return names
}

// checkClusterProviders refuses a cluster's providers and default strategy by their form alone.
func checkClusterProviders(providers []string, strategy []types.CapacityProviderStrategyItem) error {
	if len(providers) > maxProviders {
		return invalidParameter("capacityProviders has %d members, at most %d are allowed.", len(providers), maxProviders)
	}
	if err := checkProviderStrategy("defaultCapacityProviderStrategy", strategy); err != nil {
		return err
	}
	for _, item := range strategy {
		if !slices.Contains(providers, aws.ToString(item.CapacityProvider)) {
			return invalidParameter("The capacity provider %q of the default strategy is not one of the cluster's.", aws.ToString(item.CapacityProvider))
		}
	}
	return nil
}

// findProviders refuses providers for a cluster that there are not, and those with managed scaling that another one has: "Amazon
// ECS cluster auto scaling" in the developer guide, the considerations.
func (s *Service) findProviders(v *state.View, c *state.Cluster, providers []string) error {
	for _, name := range providers {
		if isArn(name) || s.provider(v, name) == nil {
			return invalidParameter("The specified capacity provider was not found. Specify a valid capacity provider and try again: %s", name)
		}
		for other := range v.Clusters.All() {
			if *other.ClusterArn != *c.ClusterArn && *other.Status == statusActive && slices.Contains(other.CapacityProviders, name) && scheduler.Grows(v, name) {
				return invalidParameter("capacityProviders: %s has managed scaling, and is associated with the cluster %s; it can be with one only.", name, *other.ClusterName)
			}
		}
	}
	return nil
}

// PutClusterCapacityProviders sets a cluster's capacity providers and default strategy.
func (s *Service) PutClusterCapacityProviders(ctx context.Context, in *ecs.PutClusterCapacityProvidersInput) (*ecs.PutClusterCapacityProvidersOutput, error) {
	if err := checkClusterProviders(in.CapacityProviders, in.DefaultCapacityProviderStrategy); err != nil {
		return nil, err
	}
	row, err := s.changeCluster(ctx, in.Cluster, func(tx *state.Tx, c *state.Cluster) error {
		if err := s.findProviders(tx.View, c, in.CapacityProviders); err != nil {
			return err
		}
		used := providersInUse(tx.View, *c.ClusterArn)
		for _, name := range c.CapacityProviders {
			if used[name] && !slices.Contains(in.CapacityProviders, name) {
				return &types.ResourceInUseException{Message: account.Message("The specified capacity provider is in use and cannot be removed: a service or a task of the cluster has %s.", name)}
			}
		}
		c.CapacityProviders, c.DefaultCapacityProviderStrategy = notNil(in.CapacityProviders), notNil(in.DefaultCapacityProviderStrategy)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.PutClusterCapacityProvidersOutput{Cluster: row}, nil
}

// providersInUse are the providers that a cluster's tasks, services and task sets belong to.
func providersInUse(v *state.View, clusterArn string) map[string]bool {
	used := map[string]bool{}
	use := func(strategy []types.CapacityProviderStrategyItem) {
		for _, item := range strategy {
			used[*item.CapacityProvider] = true
		}
	}
	for row := range v.Services.By(state.ServicesByCluster, clusterArn) {
		if *row.Status == state.ServiceInactive {
			continue
		}
		use(row.CapacityProviderStrategy)
		for _, set := range row.TaskSets {
			use(set.CapacityProviderStrategy)
		}
	}
	for _, desired := range []string{"RUNNING", "STOPPED"} {
		for t := range v.Tasks.By(state.TasksByCluster, state.ClusterStatus(clusterArn, desired)) {
			if t.CapacityProviderName != nil && *t.LastStatus != "STOPPED" {
				used[*t.CapacityProviderName] = true
			}
		}
	}
	return used
}

// checkProviderStrategy checks the form of a strategy, in the field of that name.
func checkProviderStrategy(field string, strategy []types.CapacityProviderStrategyItem) error {
	if len(strategy) > maxProviders {
		return invalidParameter("%s has %d members, at most %d are allowed.", field, len(strategy), maxProviders)
	}
	seen, based := map[string]bool{}, false
	for _, item := range strategy {
		name := aws.ToString(item.CapacityProvider)
		switch {
		case name == "":
			return invalidParameter("%s.capacityProvider must not be empty.", field)
		case seen[name]:
			return invalidParameter("%s names the capacity provider %q twice.", field, name)
		case item.Base < 0 || item.Base > maxBase:
			return invalidParameter("%s.base must be between 0 and %d, not %d.", field, maxBase, item.Base)
		case item.Base > 0 && based:
			return invalidParameter("%s.base must be given for one capacity provider only.", field)
		case item.Weight < 0 || item.Weight > maxWeight:
			return invalidParameter("%s.weight must be between 0 and %d, not %d.", field, maxWeight, item.Weight)
		case capacity.LaunchType(name) != capacity.LaunchType(*strategy[0].CapacityProvider):
			return invalidParameter("%s must not mix Fargate's capacity providers with those of Auto Scaling groups.", field)
		}
		seen[name], based = true, based || item.Base > 0
	}
	return nil
}

// checkLaunchTypeOrStrategy refuses a call that names both, or either wrongly.
func checkLaunchTypeOrStrategy(launchType types.LaunchType, strategy []types.CapacityProviderStrategyItem) error {
	if launchType != "" && !slices.Contains(launchType.Values(), launchType) {
		return invalidParameter("launchType must be one of %v, not %q.", launchType.Values(), launchType)
	}
	if launchType != "" && len(strategy) > 0 {
		return invalidParameter("Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.")
	}
	return checkProviderStrategy("capacityProviderStrategy", strategy)
}

// useProviders gives a launch the cluster's default strategy, if it names neither a strategy nor a launch type, and
// refuses a strategy that no task could be placed by.
func (s *Service) useProviders(v *state.View, l *launch) error {
	c := v.Clusters.Get(l.clusterArn)
	if len(l.providers) == 0 && l.launchType == "" {
		l.providers = c.DefaultCapacityProviderStrategy
	}
	if len(l.providers) == 0 {
		return nil
	}
	weight := int32(0)
	for _, item := range l.providers {
		if !slices.Contains(c.CapacityProviders, *item.CapacityProvider) {
			return invalidParameter("The specified capacity provider strategy cannot contain a capacity provider that is not associated with the cluster: capacityProviderStrategy has %q.", *item.CapacityProvider)
		}
		weight += item.Weight
	}
	if weight == 0 {
		return invalidParameter("There are no capacity providers with a weight value greater than zero: capacityProviderStrategy, or the cluster's default one, needs at least one.")
	}
	if lt := capacity.LaunchType(*l.providers[0].CapacityProvider); !slices.Contains(l.td.Compatibilities, types.Compatibility(lt)) {
		return invalidParameter("Task definition does not support the capacity provider %s.", *l.providers[0].CapacityProvider)
	}
	return nil
}
