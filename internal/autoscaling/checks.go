package autoscaling

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

// The limits of groups, from API_CreateAutoScalingGroup and the user guide's page on quotas.
const (
	maxSize         = 10_000
	defaultCooldown = 300
	maxOverrides    = 40
)

// groupName is CreateAutoScalingGroup's pattern for names, without the separators of ARNs.
var groupName = pattern.New(`^[^:/|\x00-\x1f\x7f]+$`, 255)

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
