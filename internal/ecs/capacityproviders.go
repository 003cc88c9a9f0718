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

// CapacityProviderAttribute is the attribute that names a container instance's capacity provider when it registers. On
// ECS the provider follows from the Auto Scaling group that the instance is in.
const CapacityProviderAttribute = "pintle.capacity-provider"

// The limits of capacity providers: API_CapacityProviderStrategyItem, API_ManagedScaling, API_DescribeCapacityProviders.
const (
	maxProviders         = 20
	maxBase              = 100_000
	maxWeight            = 1_000
	maxScalingStep       = 10_000
	maxInstanceWarmup    = 10_000
	maxProvidersPerPage  = 10
	maxProvidersDescribe = 100
)

// providerName is the form of names in API_CreateCapacityProvider.
var providerName = pattern.New(`^[a-zA-Z0-9_-]+$`, 255)

// fargateProviders always exist.
var fargateProviders = []string{"FARGATE", "FARGATE_SPOT"}

// providerArn returns the ARN of a capacity provider that a call gives by ARN or name.
func (s *Service) providerArn(name string) string {
	if isArn(name) {
		return name
	}
	return s.arn("capacity-provider", name)
}

// provider finds a capacity provider by its name or ARN, or returns nil.
func (s *Service) provider(v *state.View, name string) *types.CapacityProvider {
	arn := s.providerArn(name)
	if short := state.NameOf(arn); slices.Contains(fargateProviders, short) && arn == s.arn("capacity-provider", short) {
		return &types.CapacityProvider{
			CapacityProviderArn: &arn,
			Name:                &short,
			Status:              types.CapacityProviderStatusActive,
			Type:                types.CapacityProviderType(short),
		}
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

// CreateCapacityProvider creates a capacity provider for an Auto Scaling group. A group that is only named needs to exist just for
// managed scaling, because container instances name their provider themselves: so one's own machines can be a provider.
func (s *Service) CreateCapacityProvider(
	ctx context.Context, in *ecs.CreateCapacityProviderInput,
) (*ecs.CreateCapacityProviderOutput, error) {
	group, err := checkNewProvider(in)
	if err != nil {
		return nil, err
	}
	row := &state.CapacityProvider{CapacityProvider: types.CapacityProvider{
		CapacityProviderArn:      new(s.arn("capacity-provider", *in.Name)),
		Name:                     in.Name,
		Tags:                     notNil(in.Tags),
		AutoScalingGroupProvider: group,
		Status:                   types.CapacityProviderStatusActive,
		UpdateStatus:             types.CapacityProviderUpdateStatusCreateComplete,
		Type:                     types.CapacityProviderTypeEc2Autoscaling,
	}}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.CapacityProviders.Get(*row.CapacityProviderArn) != nil {
			return clientError("The specified capacity provider already exists. UpdateCapacityProvider changes it: %s", *in.Name)
		}
		for other := range tx.CapacityProviders.All() {
			if groupName(other.AutoScalingGroupProvider) == groupName(group) {
				return clientError("The specified Auto Scaling group ARN is already being used by another capacity provider. Specify a "+
					"unique Auto Scaling group ARN and try again: autoScalingGroupProvider.autoScalingGroupArn is that of %s.", *other.Name)
			}
		}
		if isArn(*group.AutoScalingGroupArn) {
			if _, err := findGroup(tx.View, group); err != nil {
				return err
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

// checkNewProvider checks a new provider, and returns its group with the defaults filled in.
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
	if err := refuseCluster(in.Cluster); err != nil {
		return nil, err
	}
	if in.AutoScalingGroupProvider == nil || aws.ToString(in.AutoScalingGroupProvider.AutoScalingGroupArn) == "" {
		return nil, invalidParameter("autoScalingGroupProvider.autoScalingGroupArn must not be empty.")
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	given := in.AutoScalingGroupProvider
	group := mergeGroup(types.AutoScalingGroupProvider{
		AutoScalingGroupArn:          given.AutoScalingGroupArn,
		ManagedScaling:               &types.ManagedScaling{Status: types.ManagedScalingStatusDisabled},
		ManagedTerminationProtection: types.ManagedTerminationProtectionDisabled,
		ManagedDraining:              types.ManagedDrainingEnabled,
	}, given.ManagedScaling, given.ManagedTerminationProtection, given.ManagedDraining)
	return group, checkGroup(group)
}

// mergeGroup overrides old settings with the given ones, and fills in the defaults of managed scaling.
func mergeGroup(
	old types.AutoScalingGroupProvider, scaling *types.ManagedScaling,
	protection types.ManagedTerminationProtection, draining types.ManagedDraining,
) *types.AutoScalingGroupProvider {
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
		return invalidParameter(field + "managedTerminationProtection can only be ENABLED if managedScaling.status is ENABLED, too.")
	}
	if d := g.ManagedDraining; !slices.Contains(d.Values(), d) {
		return invalidParameter(field+"managedDraining must be one of %v, not %q.", d.Values(), d)
	}
	return nil
}

// groupName returns the name of a provider's group, which the provider may give as an ARN.
func groupName(g *types.AutoScalingGroupProvider) string {
	_, name, found := strings.Cut(*g.AutoScalingGroupArn, ":autoScalingGroupName/")
	if !found {
		return *g.AutoScalingGroupArn
	}
	return name
}

// findGroup returns a provider's group, or an error if there is none.
func findGroup(v *state.View, g *types.AutoScalingGroupProvider) (*state.AutoScalingGroup, error) {
	group := v.AutoScalingGroups.Get(groupName(g))
	if group == nil || group.Deleting || *g.AutoScalingGroupArn != group.Name() && *g.AutoScalingGroupArn != *group.AutoScalingGroupARN {
		return nil, clientError("The specified Auto Scaling group does not exist: autoScalingGroupProvider.autoScalingGroupArn %s.",
			*g.AutoScalingGroupArn)
	}
	return group, nil
}

// checkScaledGroup refuses what ECS refuses: managed scaling of a group that doesn't exist, and managed termination
// protection of a group whose instances are not protected.
func checkScaledGroup(v *state.View, g *types.AutoScalingGroupProvider) error {
	if g.ManagedScaling.Status != types.ManagedScalingStatusEnabled {
		return nil
	}
	group, err := findGroup(v, g)
	if err != nil {
		return err
	}
	if g.ManagedTerminationProtection != types.ManagedTerminationProtectionEnabled {
		return nil
	}
	exposed := slices.ContainsFunc(v.ActiveMembers(group.Name()), func(i *state.Instance) bool { return !i.Member.Protected })
	if exposed || !aws.ToBool(group.NewInstancesProtectedFromScaleIn) {
		return clientError("The managed termination protection setting for the capacity provider is invalid. To enable managed " +
			"termination protection for a capacity provider, the Auto Scaling group must have instance protection from scale in enabled.")
	}
	return nil
}

// refuseCluster refuses a cluster that a capacity provider is made in: those of Auto Scaling groups are in none.
func refuseCluster(cluster *string) error {
	if aws.ToString(cluster) == "" {
		return nil
	}
	return invalidParameter("cluster must not be given for a capacity provider of an Auto Scaling group: " +
		"PutClusterCapacityProviders adds it to a cluster.")
}

// UpdateCapacityProvider changes the settings of a provider's Auto Scaling group.
func (s *Service) UpdateCapacityProvider(
	ctx context.Context, in *ecs.UpdateCapacityProviderInput,
) (*ecs.UpdateCapacityProviderOutput, error) {
	if in.ManagedInstancesProvider != nil {
		return nil, unsupported("managedInstancesProvider: Pintle's capacity providers are Auto Scaling groups.")
	}
	if err := refuseCluster(in.Cluster); err != nil {
		return nil, err
	}
	change := in.AutoScalingGroupProvider
	if change == nil {
		return nil, invalidParameter("autoScalingGroupProvider must not be empty.")
	}
	row, err := s.changeProvider(ctx, aws.ToString(in.Name), func(tx *state.Tx, row *state.CapacityProvider) error {
		was := *row.AutoScalingGroupProvider
		row.AutoScalingGroupProvider = mergeGroup(*row.AutoScalingGroupProvider, change.ManagedScaling,
			change.ManagedTerminationProtection, change.ManagedDraining)
		row.UpdateStatus = types.CapacityProviderUpdateStatusUpdateComplete
		row.UpdateStatusReason = nil
		if err := checkGroup(row.AutoScalingGroupProvider); err != nil {
			return err
		}
		now := row.AutoScalingGroupProvider
		if now.ManagedScaling.Status == was.ManagedScaling.Status && now.ManagedTerminationProtection == was.ManagedTerminationProtection {
			return nil // other settings don't depend on the group's state
		}
		return checkScaledGroup(tx.View, now)
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UpdateCapacityProviderOutput{CapacityProvider: row}, nil
}

// DeleteCapacityProvider deletes a provider. A provider that a cluster still has stays, with the update status DELETE_FAILED.
func (s *Service) DeleteCapacityProvider(
	ctx context.Context, in *ecs.DeleteCapacityProviderInput,
) (*ecs.DeleteCapacityProviderOutput, error) {
	if err := refuseCluster(in.Cluster); err != nil {
		return nil, err
	}
	row, err := s.changeProvider(ctx, aws.ToString(in.CapacityProvider), func(tx *state.Tx, row *state.CapacityProvider) error {
		for c := range tx.Clusters.All() {
			if *c.Status == statusActive && slices.Contains(c.CapacityProviders, *row.Name) {
				row.UpdateStatus = types.CapacityProviderUpdateStatusDeleteFailed
				row.UpdateStatusReason = account.Message("The capacity provider cannot be deleted because it is associated with "+
					"cluster: %s. Remove the capacity provider from the cluster and try again.", *c.ClusterName)
				return nil
			}
		}
		row.Status = types.CapacityProviderStatusInactive
		row.UpdateStatus = types.CapacityProviderUpdateStatusDeleteComplete
		row.UpdateStatusReason = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeleteCapacityProviderOutput{CapacityProvider: row}, nil
}

// changeProvider changes a provider that a user created. It deletes the row if change makes the provider INACTIVE.
func (s *Service) changeProvider(
	ctx context.Context, name string, change func(*state.Tx, *state.CapacityProvider) error,
) (*types.CapacityProvider, error) {
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

// DescribeCapacityProviders describes the given providers, or all of them. With a cluster it describes only that cluster's.
func (s *Service) DescribeCapacityProviders(
	_ context.Context, in *ecs.DescribeCapacityProvidersInput,
) (*ecs.DescribeCapacityProvidersOutput, error) {
	if n := len(in.CapacityProviders); n > maxProvidersDescribe {
		return nil, invalidParameter("capacityProviders has %d members, at most %d are allowed.", n, maxProvidersDescribe)
	}
	size := cmp.Or(in.MaxResults, aws.Int32(maxProvidersPerPage))
	if *size < 1 || *size > maxProvidersPerPage {
		return nil, invalidParameter("maxResults must be between 1 and %d, not %d.", maxProvidersPerPage, *size)
	}
	if err := checkOneOf("include", types.CapacityProviderField("").Values(), in.Include...); err != nil {
		return nil, err
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
			out.Failures = append(out.Failures, missing(s.providerArn(name)))
		}
	}
	if len(in.CapacityProviders) == 0 {
		names = slices.DeleteFunc(s.providerNames(v), func(name string) bool { return !listed(name) })
	} else {
		size = aws.Int32(maxPage)
	}
	names, next, err := account.Ordered(listing("DescribeCapacityProviders"), names, size, in.NextToken, identity)
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

// providerNames returns the names of all providers, sorted.
func (s *Service) providerNames(v *state.View) []string {
	names := slices.Clone(fargateProviders)
	for row := range v.CapacityProviders.All() {
		names = append(names, *row.Name)
	}
	slices.Sort(names)
	return names
}

// checkClusterProviders checks the form of a cluster's providers and default strategy, without looking at the store.
func checkClusterProviders(providers []string, strategy []types.CapacityProviderStrategyItem) error {
	if len(providers) > maxProviders {
		return invalidParameter("capacityProviders has %d members, at most %d are allowed.", len(providers), maxProviders)
	}
	if err := checkProviderStrategy("defaultCapacityProviderStrategy", strategy); err != nil {
		return err
	}
	for _, item := range strategy {
		if !slices.Contains(providers, aws.ToString(item.CapacityProvider)) {
			return invalidParameter("The capacity provider %q of the default strategy is not one of the cluster's.",
				aws.ToString(item.CapacityProvider))
		}
	}
	return nil
}

// checkAssociations refuses providers that don't exist. It also refuses a provider with managed scaling that another cluster
// has: see the considerations of "Amazon ECS cluster auto scaling" in the developer guide.
func (s *Service) checkAssociations(v *state.View, c *state.Cluster, providers []string) error {
	for _, name := range providers {
		if isArn(name) || s.provider(v, name) == nil {
			return invalidParameter("The specified capacity provider was not found. Specify a valid capacity provider and try again: %s",
				name)
		}
		for other := range v.Clusters.All() {
			shared := *other.ClusterArn != *c.ClusterArn && *other.Status == statusActive && slices.Contains(other.CapacityProviders, name)
			if shared && scheduler.Grows(v, name) {
				return invalidParameter("capacityProviders: %s has managed scaling, and belongs to the cluster %s already. It "+
					"can belong to only one cluster.", name, *other.ClusterName)
			}
		}
	}
	return nil
}

// PutClusterCapacityProviders sets a cluster's capacity providers and default strategy.
func (s *Service) PutClusterCapacityProviders(
	ctx context.Context, in *ecs.PutClusterCapacityProvidersInput,
) (*ecs.PutClusterCapacityProvidersOutput, error) {
	if err := checkClusterProviders(in.CapacityProviders, in.DefaultCapacityProviderStrategy); err != nil {
		return nil, err
	}
	row, err := s.changeCluster(ctx, in.Cluster, func(tx *state.Tx, c *state.Cluster) error {
		if err := s.checkAssociations(tx.View, c, in.CapacityProviders); err != nil {
			return err
		}
		used := providersInUse(tx.View, *c.ClusterArn)
		for _, name := range c.CapacityProviders {
			if used[name] && !slices.Contains(in.CapacityProviders, name) {
				return &types.ResourceInUseException{
					Message: account.Message("The specified capacity provider is in use and cannot be removed: a service or a task of the "+
						"cluster has %s.", name),
				}
			}
		}
		c.CapacityProviders = notNil(in.CapacityProviders)
		c.DefaultCapacityProviderStrategy = notNil(in.DefaultCapacityProviderStrategy)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.PutClusterCapacityProvidersOutput{Cluster: row}, nil
}

// providersInUse returns the providers that a cluster's tasks, services and task sets belong to.
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

// checkProviderStrategy checks the form of a strategy. Errors name the field that holds it.
func checkProviderStrategy(field string, strategy []types.CapacityProviderStrategyItem) error {
	if len(strategy) > maxProviders {
		return invalidParameter("%s has %d members, at most %d are allowed.", field, len(strategy), maxProviders)
	}
	seen := map[string]bool{}
	based := false
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
		seen[name] = true
		based = based || item.Base > 0
	}
	return nil
}

// checkLaunchTypeOrStrategy refuses a call with both a launch type and a strategy, or with an invalid one of either.
func checkLaunchTypeOrStrategy(launchType types.LaunchType, strategy []types.CapacityProviderStrategyItem) error {
	if launchType != "" && !slices.Contains(launchType.Values(), launchType) {
		return invalidParameter("launchType must be one of %v, not %q.", launchType.Values(), launchType)
	}
	if launchType != "" && len(strategy) > 0 {
		return invalidParameter("Specifying both a launch type and capacity provider strategy is not supported. Remove one and try again.")
	}
	return checkProviderStrategy("capacityProviderStrategy", strategy)
}

// useProviders gives a launch without a strategy and a launch type the cluster's default strategy. It refuses a strategy that
// could place no task, and a version of a platform that isn't there.
func (s *Service) useProviders(v *state.View, l *launch) error {
	c := v.Clusters.Get(l.clusterArn)
	if len(l.providers) == 0 && l.launchType == "" {
		l.providers = c.DefaultCapacityProviderStrategy
	}
	if err := checkPlatformVersion(l.platform, l.isFargate()); err != nil {
		return err
	}
	if len(l.providers) == 0 {
		return nil
	}
	weight := int32(0)
	for _, item := range l.providers {
		if !slices.Contains(c.CapacityProviders, *item.CapacityProvider) {
			return invalidParameter("The specified capacity provider strategy cannot contain a capacity provider that is not associated "+
				"with the cluster: capacityProviderStrategy has %q.", *item.CapacityProvider)
		}
		weight += item.Weight
	}
	if weight == 0 {
		return invalidParameter("There are no capacity providers with a weight value greater than zero: capacityProviderStrategy, or the " +
			"cluster's default one, needs at least one.")
	}
	if lt := capacity.LaunchType(*l.providers[0].CapacityProvider); !slices.Contains(l.td.Compatibilities, types.Compatibility(lt)) {
		return invalidParameter("Task definition does not support the capacity provider %s.", *l.providers[0].CapacityProvider)
	}
	return nil
}
