package autoscaling

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/state"
)

// place gives a group the zones of its subnets, if the call names any. A call that names zones too must name the same ones.
func place(v *state.View, g *state.AutoScalingGroup, given *string, named []string) error {
	subnets := g.Subnets()
	if given == nil || len(subnets) == 0 {
		return nil
	}
	var zones []string
	for _, id := range subnets {
		s := v.Subnets.Get(id)
		if s == nil {
			return invalid("The subnet ID '%s' does not exist", id)
		}
		zones = append(zones, aws.ToString(s.AvailabilityZone))
	}
	zones = slices.Compact(slices.Sorted(slices.Values(zones)))
	if len(named) > 0 && !slices.Equal(zones, slices.Compact(slices.Sorted(slices.Values(named)))) {
		return invalid("The availability zones of the specified subnets and the Auto Scaling group do not match: they are %s and %s",
			strings.Join(zones, ", "), strings.Join(named, ", "))
	}
	g.AvailabilityZones = zones
	return nil
}
