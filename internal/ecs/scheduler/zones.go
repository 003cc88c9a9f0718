package scheduler

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

func zone(row *state.ContainerInstance) *string {
	return AttributeValue(row.Attributes, "ecs.availability-zone")
}

// AttributeValue returns the value of one of an instance's attributes, or nil.
func AttributeValue(attributes []types.Attribute, name string) *string {
	for _, a := range attributes {
		if aws.ToString(a.Name) == name {
			return a.Value
		}
	}
	return nil
}

// joinZone adds an instance to its zone, if it takes tasks.
func (s *Scheduler) joinZone(row *state.ContainerInstance) {
	z := zone(row)
	if z == nil || *row.Status != "ACTIVE" || !row.AgentConnected {
		return
	}
	zones := s.zones[row.ClusterArn]
	if zones == nil {
		zones = map[string]map[string]bool{}
		s.zones[row.ClusterArn] = zones
	}
	if zones[*z] == nil {
		zones[*z] = map[string]bool{}
	}
	zones[*z][*row.ContainerInstanceArn] = true
}

func (s *Scheduler) leaveZone(row *state.ContainerInstance) {
	z, zones := aws.ToString(zone(row)), s.zones[row.ClusterArn]
	delete(zones[z], *row.ContainerInstanceArn)
	if len(zones[z]) == 0 {
		delete(zones, z)
	}
}

// Zones returns the Availability Zones that have an instance for the task, whatever is free on it. It returns none if
// the cluster has only one zone.
func (s *Scheduler) Zones(v *state.View, l *Launch) (out []string) {
	zones := s.zones[l.ClusterArn]
	if len(zones) < 2 {
		return nil
	}
	r := s.request(v, l.Request())
	for z, arns := range zones {
		for arn := range arns {
			if s.cluster(l.ClusterArn).Eligible(arn, r) {
				out = append(out, z)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}
