package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// The limits of groups, from API_CreateAutoScalingGroup and the user guide's page on quotas.
const (
	maxSize         = 10_000
	defaultCooldown = 300
	maxOverrides    = 40
)

// groupName is CreateAutoScalingGroup's pattern for names, without the separators of ARNs.
var groupName = pattern.New(`^[^:/|\x00-\x1f\x7f]+$`, 255)

// CreateAutoScalingGroup creates a group. The loop launches its instances.
func (s *Service) CreateAutoScalingGroup(
	ctx context.Context, in *api.CreateAutoScalingGroupInput,
) (*api.CreateAutoScalingGroupOutput, error) {
	g, err := s.newGroup(ctx, in)
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	if err := cmp.Or(checkNew(v, g), place(v, g.Clone(), in.VPCZoneIdentifier, in.AvailabilityZones)); err != nil {
		return nil, err
	}
	for i := range g.Hooks {
		if err := s.testTarget(ctx, g, &g.Hooks[i]); err != nil {
			return nil, err
		}
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if err := checkNew(tx.View, g); err != nil {
			return err
		}
		if err := place(tx.View, g, in.VPCZoneIdentifier, in.AvailabilityZones); err != nil {
			return err
		}
		if err := checkTargetGroups(tx.View, g, g.TargetGroupARNs); err != nil {
			return err
		}
		tx.AutoScalingGroups.Put(g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateAutoScalingGroupOutput{}, nil
}

// newGroup makes a group's row, with the checks that don't need the store.
func (s *Service) newGroup(ctx context.Context, in *api.CreateAutoScalingGroupInput) (*state.AutoScalingGroup, error) {
	name := aws.ToString(in.AutoScalingGroupName)
	if !groupName.MatchString(name) {
		return nil, invalid("AutoScalingGroupName %q must have 1 to 255 characters, none of them :, /, | or a control character", name)
	}
	if err := checkCreate(in); err != nil {
		return nil, err
	}
	if err := s.checkZones(in.AvailabilityZones); err != nil {
		return nil, err
	}
	g := &state.AutoScalingGroup{AutoScalingGroup: s.describe(name, in)}
	sources, err := targetGroups(in.TrafficSources)
	if err != nil {
		return nil, err
	}
	g.TargetGroupARNs = merged(in.TargetGroupARNs, sources)
	if len(g.AvailabilityZones)+len(g.Subnets()) == 0 {
		return nil, invalid("At least one Availability Zone or VPC Subnet is required.")
	}
	if len(g.TerminationPolicies) == 0 {
		g.TerminationPolicies = []string{"Default"}
	}
	g.Cause = fmt.Sprintf("At %s a user request created an AutoScalingGroup changing the desired capacity from 0 to %d.",
		state.Stamp(*g.CreatedTime), *g.DesiredCapacity)
	if g.Tags, err = mergeTags(nil, name, in.Tags, isForStack(ctx)); err != nil {
		return nil, err
	}
	for _, h := range in.LifecycleHookSpecificationList {
		_, err := s.putHook(g, &api.PutLifecycleHookInput{
			AutoScalingGroupName:  &name,
			LifecycleHookName:     h.LifecycleHookName,
			LifecycleTransition:   h.LifecycleTransition,
			DefaultResult:         h.DefaultResult,
			HeartbeatTimeout:      h.HeartbeatTimeout,
			NotificationMetadata:  h.NotificationMetadata,
			NotificationTargetARN: h.NotificationTargetARN,
			RoleARN:               h.RoleARN,
		})
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// checkCreate refuses what groups here can't be given.
func checkCreate(in *api.CreateAutoScalingGroupInput) error {
	return unsupported(
		member{"InstanceId", in.InstanceId != nil},
		member{"Operator", in.Operator != nil},
		member{"PlacementGroup", aws.ToString(in.PlacementGroup) != ""},
		member{"Context", aws.ToString(in.Context) != ""},
		member{"AvailabilityZoneIds", len(in.AvailabilityZoneIds) > 0},
		member{"AvailabilityZoneDistribution", !bestEffort(in.AvailabilityZoneDistribution)},
		member{"AvailabilityZoneImpairmentPolicy", shiftsZones(in.AvailabilityZoneImpairmentPolicy)},
		member{"LoadBalancerNames", len(in.LoadBalancerNames) > 0},
		member{"MaxInstanceLifetime", aws.ToInt32(in.MaxInstanceLifetime) != 0},
		member{"InstanceMaintenancePolicy", in.InstanceMaintenancePolicy != nil},
		member{"InstanceLifecyclePolicy", in.InstanceLifecyclePolicy != nil},
		member{"CapacityReservationSpecification", in.CapacityReservationSpecification != nil},
		member{"DesiredCapacityType", in.DesiredCapacityType != nil && *in.DesiredCapacityType != "units"},
		member{"DeletionProtection", in.DeletionProtection != "" && in.DeletionProtection != types.DeletionProtectionNone},
	)
}

// describe returns a new group's description, with the defaults filled in.
func (s *Service) describe(name string, in *api.CreateAutoScalingGroupInput) types.AutoScalingGroup {
	return types.AutoScalingGroup{
		AutoScalingGroupName:             &name,
		AutoScalingGroupARN:              s.arn("autoScalingGroup:" + state.NewUUID() + ":autoScalingGroupName/" + name),
		CreatedTime:                      new(s.now()),
		MinSize:                          in.MinSize,
		MaxSize:                          in.MaxSize,
		DesiredCapacity:                  cmp.Or(in.DesiredCapacity, in.MinSize),
		DefaultCooldown:                  cmp.Or(in.DefaultCooldown, aws.Int32(defaultCooldown)),
		AvailabilityZones:                in.AvailabilityZones,
		VPCZoneIdentifier:                in.VPCZoneIdentifier,
		HealthCheckType:                  cmp.Or(in.HealthCheckType, aws.String("EC2")),
		HealthCheckGracePeriod:           cmp.Or(in.HealthCheckGracePeriod, aws.Int32(0)),
		DefaultInstanceWarmup:            in.DefaultInstanceWarmup,
		LaunchConfigurationName:          in.LaunchConfigurationName,
		LaunchTemplate:                   in.LaunchTemplate,
		MixedInstancesPolicy:             withDefaults(in.MixedInstancesPolicy),
		NewInstancesProtectedFromScaleIn: new(aws.ToBool(in.NewInstancesProtectedFromScaleIn)),
		TerminationPolicies:              in.TerminationPolicies,
		CapacityRebalance:                in.CapacityRebalance,
		ServiceLinkedRoleARN: cmp.Or(in.ServiceLinkedRoleARN,
			new(s.opts.GlobalARN("iam", "role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"))),
	}
}

func checkNew(v *state.View, g *state.AutoScalingGroup) error {
	if v.AutoScalingGroups.Get(g.Name()) != nil {
		return &types.AlreadyExistsFault{
			Message: new("AutoScalingGroup by this name already exists - A group with the name " + g.Name() + " already exists"),
		}
	}
	if len(slices.Collect(v.AutoScalingGroups.All())) >= maxGroups {
		return &types.LimitExceededFault{Message: new("There is already the maximum number of Auto Scaling groups")}
	}
	return check(v, g)
}

// member is a member of a call that asks for something Pintle's groups can't do.
type member struct {
	name  string
	given bool
}

// unsupported refuses the members that were given, since Pintle would silently ignore them.
func unsupported(members ...member) error {
	for _, m := range members {
		if m.given {
			return invalid("%s: Pintle's groups do not support it. Their instances come from launch templates "+
				"or launch configurations, and their load balancers have target groups.", m.name)
		}
	}
	return nil
}

// bestEffort reports whether a distribution among zones is the one that groups have: evenly, and where there is room.
func bestEffort(d *types.AvailabilityZoneDistribution) bool {
	return d == nil || d.CapacityDistributionStrategy == "" || d.CapacityDistributionStrategy == types.CapacityDistributionStrategyBalancedBestEffort
}

// shiftsZones reports whether instances are to leave a zone that is called impaired.
func shiftsZones(p *types.AvailabilityZoneImpairmentPolicy) bool {
	return p != nil && aws.ToBool(p.ZonalShiftEnabled)
}

// check refuses an invalid group, and fills in its launch template's id and name.
func check(v *state.View, g *state.AutoScalingGroup) error {
	low, high, desired := *g.MinSize, *g.MaxSize, *g.DesiredCapacity
	switch {
	case low < 0 || high < 0 || high > maxSize:
		return invalid("Min size %d and max size %d must be between 0 and %d", low, high, maxSize)
	case high < low:
		return invalid("Max bound, %d, must be greater than or equal to min bound, %d", high, low)
	case desired < low || desired > high:
		return invalid("Desired capacity:%d must be between the specified min size:%d and max size:%d", desired, low, high)
	case *g.DefaultCooldown < 0 || aws.ToInt32(g.HealthCheckGracePeriod) < 0 || aws.ToInt32(g.DefaultInstanceWarmup) < -1:
		return invalid("DefaultCooldown, HealthCheckGracePeriod and DefaultInstanceWarmup must not be negative")
	}
	if err := checkHealthCheckType(*g.HealthCheckType); err != nil {
		return err
	}
	given := 0
	for _, is := range []bool{g.LaunchTemplate != nil, g.LaunchConfigurationName != nil, g.MixedInstancesPolicy != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return invalid("Valid requests must contain either launchTemplate, launchConfigurationName or mixedInstancesPolicy parameter.")
	}
	for _, p := range g.TerminationPolicies {
		if !slices.Contains(group.Policies, p) {
			return invalid("TerminationPolicies: %q is not one of %s", p, strings.Join(group.Policies, ", "))
		}
	}
	if m := g.MixedInstancesPolicy; m != nil {
		return checkMixed(v, m)
	}
	if name := g.LaunchConfigurationName; name != nil {
		if v.LaunchConfigurations.Get(*name) == nil {
			return invalid("Launch configuration name not found - A launch configuration with the name: %s does not exist", *name)
		}
		return nil
	}
	return checkTemplate(v, g.LaunchTemplate, true)
}

// withDefaults returns a mixed instances policy with what AWS fills in.
func withDefaults(in *types.MixedInstancesPolicy) *types.MixedInstancesPolicy {
	if in == nil {
		return nil
	}
	out := *in
	d := types.InstancesDistribution{}
	if in.InstancesDistribution != nil {
		d = *in.InstancesDistribution
	}
	d.OnDemandAllocationStrategy = cmp.Or(d.OnDemandAllocationStrategy, aws.String("prioritized"))
	d.OnDemandBaseCapacity = cmp.Or(d.OnDemandBaseCapacity, aws.Int32(0))
	d.OnDemandPercentageAboveBaseCapacity = cmp.Or(d.OnDemandPercentageAboveBaseCapacity, aws.Int32(100))
	d.SpotAllocationStrategy = cmp.Or(d.SpotAllocationStrategy, aws.String("lowest-price"))
	if *d.SpotAllocationStrategy == "lowest-price" {
		d.SpotInstancePools = cmp.Or(d.SpotInstancePools, aws.Int32(2))
	}
	out.InstancesDistribution = &d
	return &out
}

// checkZones refuses zones of other regions.
func (s *Service) checkZones(zones []string) error {
	for _, zone := range zones {
		if s.opts.IsForeignZone(zone) {
			return invalid("Invalid Availability Zone: %s is not in %s", zone, s.opts.Region)
		}
	}
	return nil
}

func checkMixed(v *state.View, m *types.MixedInstancesPolicy) error {
	if m.LaunchTemplate == nil || m.LaunchTemplate.LaunchTemplateSpecification == nil {
		return missing("mixedInstancesPolicy.launchTemplate.launchTemplateSpecification")
	}
	overrides := m.LaunchTemplate.Overrides
	if len(overrides) > maxOverrides {
		return invalid("MixedInstancesPolicy has %d overrides, at most %d are allowed", len(overrides), maxOverrides)
	}
	for _, o := range overrides {
		weighs := o.WeightedCapacity != nil && *o.WeightedCapacity != "1" // 1 is the default
		if o.InstanceRequirements != nil || weighs || o.LaunchTemplateSpecification != nil || o.ImageId != nil {
			return invalid("MixedInstancesPolicy: Pintle supports only the InstanceType of an override")
		}
		if _, err := instancetype.Lookup(aws.ToString(o.InstanceType)); err != nil {
			return invalid("The instance type %q of an override does not exist", aws.ToString(o.InstanceType))
		}
	}
	if d := m.InstancesDistribution; d != nil {
		if len(d.DistributionSegments) > 0 {
			return invalid("MixedInstancesPolicy: Pintle doesn't support DistributionSegments")
		}
		if s := aws.ToString(d.OnDemandAllocationStrategy); s != "" && s != "prioritized" && s != "lowest-price" {
			return invalid("OnDemandAllocationStrategy must be prioritized or lowest-price, not %q", s)
		}
		if p := d.OnDemandPercentageAboveBaseCapacity; p != nil && *p != 100 {
			return invalid("OnDemandPercentageAboveBaseCapacity must be 100, not %d: Pintle has no Spot instances", *p)
		}
	}
	return checkTemplate(v, m.LaunchTemplate.LaunchTemplateSpecification, len(overrides) == 0)
}

// checkTemplate refuses a launch template that can't launch instances. If typed, the template itself must name an instance type.
func checkTemplate(v *state.View, l *types.LaunchTemplateSpecification, typed bool) error {
	if l.LaunchTemplateId == nil && l.LaunchTemplateName == nil {
		return invalid("Valid requests must contain either launchTemplateId or LaunchTemplateName")
	}
	row := v.FindLaunchTemplate(aws.ToString(l.LaunchTemplateId), aws.ToString(l.LaunchTemplateName))
	if row == nil {
		return invalid("The specified launch template does not exist.")
	}
	version := row.Version(aws.ToString(l.Version))
	switch {
	case version == nil:
		return invalid("Could not find the specified version %s for the launch template with ID %s.",
			aws.ToString(l.Version), *row.LaunchTemplateId)
	case version.LaunchTemplateData.ImageId == nil:
		return invalid("You must use a valid fully-formed launch template. The request must contain the parameter ImageId")
	}
	if _, err := instancetype.Lookup(string(version.LaunchTemplateData.InstanceType)); typed && err != nil {
		return invalid("You must use a valid fully-formed launch template. The instance type %q does not exist",
			version.LaunchTemplateData.InstanceType)
	}
	if l.LaunchTemplateId == nil || l.LaunchTemplateName == nil { // a stored group has both, and mustn't be modified
		l.LaunchTemplateId, l.LaunchTemplateName = row.LaunchTemplateId, row.LaunchTemplateName
	}
	return nil
}

// checkUpdate refuses what groups here can't be given.
func checkUpdate(in *api.UpdateAutoScalingGroupInput) error {
	return unsupported(
		member{"PlacementGroup", aws.ToString(in.PlacementGroup) != ""},
		member{"Context", aws.ToString(in.Context) != ""},
		member{"AvailabilityZoneIds", len(in.AvailabilityZoneIds) > 0},
		member{"AvailabilityZoneDistribution", !bestEffort(in.AvailabilityZoneDistribution)},
		member{"AvailabilityZoneImpairmentPolicy", shiftsZones(in.AvailabilityZoneImpairmentPolicy)},
		member{"MaxInstanceLifetime", aws.ToInt32(in.MaxInstanceLifetime) != 0},
		member{"InstanceMaintenancePolicy", in.InstanceMaintenancePolicy != nil},
		member{"InstanceLifecyclePolicy", in.InstanceLifecyclePolicy != nil},
		member{"CapacityReservationSpecification", in.CapacityReservationSpecification != nil},
		member{"DesiredCapacityType", in.DesiredCapacityType != nil && *in.DesiredCapacityType != "units"},
		member{"DeletionProtection", in.DeletionProtection != "" && in.DeletionProtection != types.DeletionProtectionNone},
	)
}

// UpdateAutoScalingGroup changes a group. It moves a desired capacity that is outside the new bounds to the nearest one.
func (s *Service) UpdateAutoScalingGroup(
	ctx context.Context, in *api.UpdateAutoScalingGroupInput,
) (*api.UpdateAutoScalingGroupOutput, error) {
	if err := checkUpdate(in); err != nil {
		return nil, err
	}
	if err := s.checkZones(in.AvailabilityZones); err != nil {
		return nil, err
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		before := *g.DesiredCapacity
		g.MinSize = cmp.Or(in.MinSize, g.MinSize)
		g.MaxSize = cmp.Or(in.MaxSize, g.MaxSize)
		desired := in.DesiredCapacity
		if desired == nil {
			desired = new(max(min(before, *g.MaxSize), *g.MinSize))
		}
		g.DesiredCapacity = desired
		g.DefaultCooldown = cmp.Or(in.DefaultCooldown, g.DefaultCooldown)
		g.DefaultInstanceWarmup = cmp.Or(in.DefaultInstanceWarmup, g.DefaultInstanceWarmup)
		g.HealthCheckType = cmp.Or(in.HealthCheckType, g.HealthCheckType)
		g.HealthCheckGracePeriod = cmp.Or(in.HealthCheckGracePeriod, g.HealthCheckGracePeriod)
		g.VPCZoneIdentifier = cmp.Or(in.VPCZoneIdentifier, g.VPCZoneIdentifier)
		g.NewInstancesProtectedFromScaleIn = cmp.Or(in.NewInstancesProtectedFromScaleIn, g.NewInstancesProtectedFromScaleIn)
		g.CapacityRebalance = cmp.Or(in.CapacityRebalance, g.CapacityRebalance)
		g.ServiceLinkedRoleARN = cmp.Or(in.ServiceLinkedRoleARN, g.ServiceLinkedRoleARN)
		if len(in.AvailabilityZones) > 0 {
			g.AvailabilityZones = in.AvailabilityZones
		}
		if err := place(tx.View, g, in.VPCZoneIdentifier, in.AvailabilityZones); err != nil {
			return err
		}
		if len(in.TerminationPolicies) > 0 {
			g.TerminationPolicies = in.TerminationPolicies
		}
		setSource(g, in)
		if err := check(tx.View, g); err != nil {
			return err
		}
		g.Failures = 0
		g.NotBefore = nil
		if *desired != before {
			g.Cause = fmt.Sprintf("At %s a user request update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d "+
				"changing the desired capacity from %d to %d.", state.Stamp(s.now()), *g.MinSize, *g.MaxSize, *desired, before, *desired)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UpdateAutoScalingGroupOutput{}, nil
}

// setSource sets what a group's instances are started from, if the call gives one.
func setSource(g *state.AutoScalingGroup, in *api.UpdateAutoScalingGroupInput) {
	if in.LaunchTemplate != nil || in.LaunchConfigurationName != nil || in.MixedInstancesPolicy != nil {
		g.LaunchTemplate = in.LaunchTemplate
		g.LaunchConfigurationName = in.LaunchConfigurationName
		g.MixedInstancesPolicy = withDefaults(in.MixedInstancesPolicy)
	}
}

// DeleteAutoScalingGroup deletes a group. With ForceDelete its instances are terminated first; without, it must have none.
func (s *Service) DeleteAutoScalingGroup(
	ctx context.Context, in *api.DeleteAutoScalingGroupInput,
) (*api.DeleteAutoScalingGroupOutput, error) {
	var alarms []types.Alarm
	if g := s.store.View().AutoScalingGroups.Get(aws.ToString(in.AutoScalingGroupName)); g != nil {
		for p := range s.store.View().GroupPolicies.By(state.GroupPoliciesByGroup, g.Name()) {
			alarms = append(alarms, p.Alarms...)
		}
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findGroup(tx.View, in.AutoScalingGroupName)
		if err != nil {
			return err
		}
		members := slices.Collect(tx.Instances.By(state.InstancesByGroup, old.Name()))
		if len(members) > 0 && !aws.ToBool(in.ForceDelete) {
			return &types.ResourceInUseFault{
				Message: new("You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) " +
					"still in the group."),
			}
		}
		for _, p := range slices.Collect(tx.GroupPolicies.By(state.GroupPoliciesByGroup, old.Name())) {
			tx.GroupPolicies.Delete(p.Key())
		}
		for _, a := range slices.Collect(tx.GroupActions.By(state.GroupActionsByGroup, old.Name())) {
			tx.GroupActions.Delete(a.Key())
		}
		for _, r := range slices.Collect(tx.GroupRefreshes.By(state.GroupRefreshesByGroup, old.Name())) {
			tx.GroupRefreshes.Delete(r.ID())
		}
		if len(members) == 0 {
			tx.AutoScalingGroups.Delete(old.Name())
			return nil
		}
		g := old.Clone()
		g.Deleting = true
		g.Hooks = nil
		g.MinSize = aws.Int32(0)
		g.DesiredCapacity = aws.Int32(0)
		g.Status = aws.String("Delete in progress")
		g.Cause = fmt.Sprintf("At %s a user request force deleted AutoScalingGroup changing the desired capacity from %d to 0.",
			state.Stamp(s.now()), *old.DesiredCapacity)
		tx.AutoScalingGroups.Put(g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.deleteAlarms(ctx, alarms); err != nil {
		return nil, err
	}
	return &api.DeleteAutoScalingGroupOutput{}, nil
}

// DescribeAutoScalingGroups lists groups with their instances.
func (s *Service) DescribeAutoScalingGroups(
	_ context.Context, in *api.DescribeAutoScalingGroupsInput,
) (*api.DescribeAutoScalingGroupsOutput, error) {
	v := s.store.View()
	match, err := matcher(in.Filters, func(g *state.AutoScalingGroup) []types.TagDescription { return g.Tags })
	if err != nil {
		return nil, err
	}
	var rows []*state.AutoScalingGroup
	for g := range v.AutoScalingGroups.All() {
		if (len(in.AutoScalingGroupNames) == 0 || slices.Contains(in.AutoScalingGroupNames, g.Name())) && match(g) {
			rows = append(rows, g)
		}
	}
	rows, next, err := account.Sorted(listing("DescribeAutoScalingGroups", pageDefault, pageMost), rows, in.MaxRecords, in.NextToken,
		(*state.AutoScalingGroup).Name)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeAutoScalingGroupsOutput{AutoScalingGroups: []types.AutoScalingGroup{}, NextToken: next}
	for _, row := range rows {
		g := row.AutoScalingGroup
		g.MixedInstancesPolicy = withOverrides(g.MixedInstancesPolicy)
		withLists(&g)
		warm := int32(0)
		for i := range v.Instances.By(state.InstancesByGroup, row.Name()) {
			switch {
			case i.Member.IsWarm():
				warm++
			case in.IncludeInstances == nil || *in.IncludeInstances:
				g.Instances = append(g.Instances, types.Instance(instanceOf(i)))
			}
		}
		if g.WarmPoolConfiguration != nil {
			g.WarmPoolSize = &warm
		}
		out.AutoScalingGroups = append(out.AutoScalingGroups, g)
	}
	return out, nil
}

// withLists gives a described group the lists that answers have also where they are empty. Clients read them without asking.
func withLists(g *types.AutoScalingGroup) {
	g.Instances = []types.Instance{}
	g.EnabledMetrics = notNil(g.EnabledMetrics)
	g.SuspendedProcesses = notNil(g.SuspendedProcesses)
	g.Tags = notNil(g.Tags)
	g.LoadBalancerNames = []string{}
	g.TargetGroupARNs = notNil(g.TargetGroupARNs)
	g.TrafficSources = []types.TrafficSourceIdentifier{}
	for _, arn := range g.TargetGroupARNs {
		g.TrafficSources = append(g.TrafficSources, types.TrafficSourceIdentifier{Identifier: &arn, Type: aws.String(elbv2)})
	}
}

// matcher returns a function that applies a call's filters: tag-key, tag-value and tag:KEY. All filters must match, each by any value.
func matcher[T any](filters []types.Filter, tags func(T) []types.TagDescription) (func(T) bool, error) {
	for _, f := range filters {
		if n := aws.ToString(f.Name); n != "tag-key" && n != "tag-value" && !strings.HasPrefix(n, "tag:") {
			return nil, invalid("The filter %q must be tag-key, tag-value or tag:KEY", n)
		}
	}
	return func(t T) bool {
		return !slices.ContainsFunc(filters, func(f types.Filter) bool {
			return !slices.ContainsFunc(tags(t), func(tag types.TagDescription) bool {
				switch name := *f.Name; name {
				case "tag-key":
					return slices.Contains(f.Values, *tag.Key)
				case "tag-value":
					return slices.Contains(f.Values, aws.ToString(tag.Value))
				default:
					return name == "tag:"+*tag.Key && slices.Contains(f.Values, aws.ToString(tag.Value))
				}
			})
		})
	}, nil
}

// withOverrides returns a mixed instances policy with a list of overrides, even if it's empty.
func withOverrides(m *types.MixedInstancesPolicy) *types.MixedInstancesPolicy {
	if m == nil || m.LaunchTemplate == nil || m.LaunchTemplate.Overrides != nil {
		return m
	}
	out := *m
	template := *m.LaunchTemplate
	template.Overrides = []types.LaunchTemplateOverrides{}
	out.LaunchTemplate = &template
	return &out
}

// instanceOf describes an instance as its group shows it.
func instanceOf(i *state.Instance) types.Instance {
	health := "Healthy"
	if i.Member.Unhealthy {
		health = "Unhealthy"
	}
	return types.Instance{
		InstanceId:           i.InstanceId,
		AvailabilityZone:     i.Placement.AvailabilityZone,
		HealthStatus:         &health,
		LifecycleState:       i.Member.LifecycleState,
		ProtectedFromScaleIn: &i.Member.Protected,
		InstanceType:         new(string(i.InstanceType)),
		LaunchTemplate:       i.Member.LaunchTemplate,
		ImageId:              i.ImageId,

		LaunchConfigurationName: configurationOf(i),
	}
}

// configurationOf returns the name of an instance's launch configuration, or nil.
func configurationOf(i *state.Instance) *string {
	if i.Member.LaunchConfiguration == "" {
		return nil
	}
	return &i.Member.LaunchConfiguration
}

func inProgress(g *state.AutoScalingGroup) error {
	return &types.ScalingActivityInProgressFault{
		Message: new("Scaling activity is in progress for the Auto Scaling group " + g.Name() + ", " +
			"or its cooldown has not ended, and the request honors the cooldown"),
	}
}

// SetDesiredCapacity sets how many instances a group should have.
func (s *Service) SetDesiredCapacity(ctx context.Context, in *api.SetDesiredCapacityInput) (*api.SetDesiredCapacityOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		now, before, desired := s.now(), *g.DesiredCapacity, *in.DesiredCapacity
		switch {
		case desired < *g.MinSize:
			return invalid("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", desired, *g.MinSize)
		case desired > *g.MaxSize:
			return invalid("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", desired, *g.MaxSize)
		case aws.ToBool(in.HonorCooldown) && g.IsCoolingDown(nil, now):
			return inProgress(g)
		}
		g.DesiredCapacity = &desired
		g.Failures = 0
		g.NotBefore = nil
		if desired != before {
			g.Cause = fmt.Sprintf(
				"At %s a user request explicitly set group desired capacity changing the desired capacity from %d to %d.",
				state.Stamp(now), before, desired)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SetDesiredCapacityOutput{}, nil
}

// DescribeScalingActivities lists scaling activities, newest first.
func (s *Service) DescribeScalingActivities(
	_ context.Context, in *api.DescribeScalingActivitiesInput,
) (*api.DescribeScalingActivitiesOutput, error) {
	if len(in.Filters) > 0 {
		return nil, invalid("Filters: Pintle supports none for activities")
	}
	v := s.store.View()
	all := v.GroupActivities.All()
	if in.AutoScalingGroupName != nil {
		all = v.GroupActivities.By(state.GroupActivitiesByGroup, *in.AutoScalingGroupName)
	}
	var rows []*state.GroupActivity
	for a := range all {
		named := len(in.ActivityIds) == 0 || slices.Contains(in.ActivityIds, *a.ActivityId)
		if named && (aws.ToBool(in.IncludeDeletedGroups) || !ofDeletedGroup(v, a)) {
			rows = append(rows, a)
		}
	}
	slices.Reverse(rows)
	rows, next, err := account.Ordered(listing("DescribeScalingActivities", 100, 100), rows, in.MaxRecords, in.NextToken,
		func(a *state.GroupActivity) string { return *a.ActivityId })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeScalingActivitiesOutput{Activities: []types.Activity{}, NextToken: next}
	for _, row := range rows {
		a := row.Activity
		if ofDeletedGroup(v, row) {
			a.AutoScalingGroupState = aws.String("Deleted")
		}
		out.Activities = append(out.Activities, a)
	}
	return out, nil
}

// ofDeletedGroup reports whether an activity's group is gone. There may be another one with its name.
func ofDeletedGroup(v *state.View, a *state.GroupActivity) bool {
	g := v.AutoScalingGroups.Get(*a.AutoScalingGroupName)
	return g == nil || *g.AutoScalingGroupARN != *a.AutoScalingGroupARN
}

// processes can be suspended. They're from the user guide's page "Suspend and resume processes".
var processes = []string{
	"AZRebalance", "AddToLoadBalancer", "AlarmNotification", "HealthCheck", "InstanceRefresh",
	"Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate",
}

func checkProcesses(names []string) error {
	for _, p := range names {
		if !slices.Contains(processes, p) {
			return invalid("%q is not a recognized process: they are %s", p, strings.Join(processes, ", "))
		}
	}
	return nil
}

// SuspendProcesses suspends some of a group's processes, or all if the call names none.
func (s *Service) SuspendProcesses(ctx context.Context, in *api.SuspendProcessesInput) (*api.SuspendProcessesOutput, error) {
	if err := checkProcesses(in.ScalingProcesses); err != nil {
		return nil, err
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		names := in.ScalingProcesses
		if len(names) == 0 {
			names = processes
		}
		for _, p := range names {
			if !g.IsSuspended(p) {
				g.SuspendedProcesses = append(g.SuspendedProcesses, types.SuspendedProcess{
					ProcessName:      &p,
					SuspensionReason: new("User suspended at " + state.Stamp(s.now())),
				})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SuspendProcessesOutput{}, nil
}

// ResumeProcesses undoes SuspendProcesses.
func (s *Service) ResumeProcesses(ctx context.Context, in *api.ResumeProcessesInput) (*api.ResumeProcessesOutput, error) {
	if err := checkProcesses(in.ScalingProcesses); err != nil {
		return nil, err
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		g.SuspendedProcesses = slices.DeleteFunc(g.SuspendedProcesses, func(p types.SuspendedProcess) bool {
			return len(in.ScalingProcesses) == 0 || slices.Contains(in.ScalingProcesses, *p.ProcessName)
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.ResumeProcessesOutput{}, nil
}

func keyAndValue(t types.TagDescription) (key, value *string) { return t.Key, t.Value }

// isForStack reports whether CloudFormation makes the call. It alone sets system tags.
func isForStack(ctx context.Context) bool { return call.From(ctx).Via == "cloudformation" }

// mergeTags adds tags to a group's own, and replaces those with the same key. Only those with system may add system tags.
func mergeTags(old []types.TagDescription, name string, tags []types.Tag, system bool) ([]types.TagDescription, error) {
	out := old
	for _, t := range tags {
		if !system && account.IsSystemTag(t.Key) {
			return nil, badTag(*t.Key)
		}
		if err := checkTagged(t); err != nil {
			return nil, err
		}
		if t.ResourceId != nil && *t.ResourceId != name {
			return nil, invalid("Tags: the ResourceId %q is not the group %s", *t.ResourceId, name)
		}
		out = account.MergeTags(out, []types.TagDescription{{
			Key:               t.Key,
			Value:             aws.String(aws.ToString(t.Value)),
			PropagateAtLaunch: new(aws.ToBool(t.PropagateAtLaunch)),
			ResourceId:        &name,
			ResourceType:      aws.String(groupType),
		}}, keyAndValue)
	}
	own := slices.DeleteFunc(slices.Clone(out), func(t types.TagDescription) bool { return account.IsSystemTag(t.Key) })
	fault := account.CheckTags(account.TagPairs(own, keyAndValue), account.MaxTags)
	if fault == nil {
		return out, nil
	}
	if fault.Rule == account.TooManyTags {
		return nil, invalid("Tags: a group has at most %d", account.MaxTags)
	}
	return nil, badTag(fault.Key)
}

func badTag(key string) error {
	return invalid("Tags: the key %q must have 1 to 128 characters and not begin with aws:, and its value at most 256", key)
}

// groupType is the only resource type of tags: API_Tag.
const groupType = "auto-scaling-group"

// checkTagged refuses a tag of something that isn't a group.
func checkTagged(t types.Tag) error {
	if t.ResourceType != nil && *t.ResourceType != groupType {
		return invalid("Tags: the ResourceType %q of the tag %s must be %s", *t.ResourceType, aws.ToString(t.Key), groupType)
	}
	return nil
}

// checkComplete refuses tags that don't say what they're for. A group that is being created needs no such words.
func checkComplete(tags []types.Tag) error {
	bad := ""
	for _, t := range tags {
		if t.ResourceId == nil || t.ResourceType == nil {
			propagate := "null"
			if t.PropagateAtLaunch != nil {
				propagate = strconv.FormatBool(*t.PropagateAtLaunch)
			}
			bad += fmt.Sprintf("Tag - 'Key:%s,PropagateAtLaunch:%s,ResourceId:%s,ResourceType:%s' , ", orNull(t.Key), propagate,
				orNull(t.ResourceId), orNull(t.ResourceType))
		}
	}
	if bad != "" {
		return invalid("Incomplete tags information for these tags. %s", bad)
	}
	return nil
}

func orNull(s *string) string { return aws.ToString(cmp.Or(s, aws.String("null"))) }

// retag changes the groups that a call's tags name: all of them, or none after an error.
func (s *Service) retag(ctx context.Context, tags []types.Tag, change func(*state.AutoScalingGroup, types.Tag) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		for _, t := range tags {
			old, err := findGroup(tx.View, t.ResourceId)
			if err != nil {
				return err
			}
			g := old.Clone()
			if err := change(g, t); err != nil {
				return err
			}
			tx.AutoScalingGroups.Put(g)
		}
		return nil
	})
}

// CreateOrUpdateTags adds tags to groups, or changes their values.
func (s *Service) CreateOrUpdateTags(ctx context.Context, in *api.CreateOrUpdateTagsInput) (*api.CreateOrUpdateTagsOutput, error) {
	if err := checkComplete(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.Tags, func(g *state.AutoScalingGroup, t types.Tag) (err error) {
		g.Tags, err = mergeTags(g.Tags, g.Name(), []types.Tag{t}, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateOrUpdateTagsOutput{}, nil
}

// DeleteTags removes tags from groups.
func (s *Service) DeleteTags(ctx context.Context, in *api.DeleteTagsInput) (*api.DeleteTagsOutput, error) {
	err := s.retag(ctx, in.Tags, func(g *state.AutoScalingGroup, t types.Tag) error {
		if err := checkTagged(t); err != nil {
			return err
		}
		if account.IsSystemTag(t.Key) {
			return badTag(*t.Key)
		}
		g.Tags = slices.DeleteFunc(g.Tags, func(o types.TagDescription) bool { return *o.Key == aws.ToString(t.Key) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteTagsOutput{}, nil
}

// DescribeTags lists the tags of groups.
func (s *Service) DescribeTags(_ context.Context, in *api.DescribeTagsInput) (*api.DescribeTagsOutput, error) {
	all := []types.TagDescription{}
	for g := range s.store.View().AutoScalingGroups.All() {
		all = append(all, g.Tags...)
	}
	for _, f := range in.Filters {
		field := map[string]func(types.TagDescription) string{
			"auto-scaling-group":  func(t types.TagDescription) string { return *t.ResourceId },
			"key":                 func(t types.TagDescription) string { return *t.Key },
			"value":               func(t types.TagDescription) string { return *t.Value },
			"propagate-at-launch": func(t types.TagDescription) string { return strconv.FormatBool(*t.PropagateAtLaunch) },
		}[aws.ToString(f.Name)]
		if field == nil {
			return nil, invalid("The filter %q must be auto-scaling-group, key, value or propagate-at-launch", aws.ToString(f.Name))
		}
		all = slices.DeleteFunc(all, func(t types.TagDescription) bool { return !slices.Contains(f.Values, field(t)) })
	}
	all, next, err := account.Ordered(listing("DescribeTags", pageDefault, pageMost), all, in.MaxRecords, in.NextToken,
		func(t types.TagDescription) string { return *t.ResourceId + "/" + *t.Key })
	if err != nil {
		return nil, err
	}
	return &api.DescribeTagsOutput{Tags: all, NextToken: next}, nil
}
