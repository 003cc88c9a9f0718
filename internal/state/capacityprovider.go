package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/store"
)

// CapacityProvider is a capacity provider of the account. FARGATE and FARGATE_SPOT always exist and have no row.
type CapacityProvider struct {
	types.CapacityProvider
	// LowSince is since when managed scaling has needed fewer instances than there are, or nil while it needs all.
	LowSince *time.Time `json:",omitzero"`
}

// DrainingHook is the lifecycle hook that ECS gives a group for managed draining:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/managed-instance-draining.html
const DrainingHook = "ecs-managed-draining-termination-hook"

var capacityProviders = &store.Definition[*CapacityProvider]{
	Name: "capacity_providers",
	Key:  func(p *CapacityProvider) string { return aws.ToString(p.CapacityProviderArn) },
}

// CapacityProviderNamed returns the capacity provider with a name, or nil.
func (v *View) CapacityProviderNamed(name string) *CapacityProvider {
	for p := range v.CapacityProviders.All() {
		if *p.Name == name {
			return p
		}
	}
	return nil
}

// Uses reports whether a group is the capacity provider's. Providers name their group by ARN or by name.
func (p *CapacityProvider) Uses(g *AutoScalingGroup) bool {
	arn := *p.AutoScalingGroupProvider.AutoScalingGroupArn
	return arn == aws.ToString(g.AutoScalingGroupARN) || arn == g.Name()
}

// GroupOf returns a capacity provider's Auto Scaling group, or nil if it isn't one of Pintle's.
func (v *View) GroupOf(p *CapacityProvider) *AutoScalingGroup {
	for g := range v.AutoScalingGroups.All() {
		if p.Uses(g) {
			return g
		}
	}
	return nil
}

// Offer is an instance type that a group launches.
type Offer struct {
	Type string
	// Seen are the attributes that the newest instance of it has registered, or nil if none is known.
	Seen []types.Attribute
}

// Offers returns what a group launches, in the group's order, and what is known of it by its capacity provider's container instances.
// The provider may be nil.
func (v *View) Offers(p *CapacityProvider, g *AutoScalingGroup) (out []Offer) {
	names := v.TypesOf(g)
	for _, name := range names {
		o := Offer{Type: name}
		if p != nil {
			if c := v.newestInstance(p, g, name, len(names) == 1); c != nil {
				o.Seen = c.Attributes
			}
		}
		out = append(out, o)
	}
	return out
}

// newestInstance returns the container instance of a type that a group has launched last from what it launches now, or nil. Instances that
// left are remembered for an hour. Where a group has one type, all its instances are of that one.
func (v *View) newestInstance(p *CapacityProvider, g *AutoScalingGroup, name string, only bool) (newest *ContainerInstance) {
	source, err := v.LaunchSource(g)
	for c := range v.ContainerInstances.All() {
		of := c.Type()
		switch {
		case aws.ToString(c.CapacityProviderName) != *p.Name, of != name && (of != "" || !only):
		case err == nil && aws.ToTime(c.RegisteredAt).Before(source.CreatedAt): // the group launches other ones since
		case newest == nil || aws.ToTime(c.RegisteredAt).After(aws.ToTime(newest.RegisteredAt)):
			newest = c
		}
	}
	return newest
}
