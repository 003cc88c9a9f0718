package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/state"
)

// rebalances reports whether the service may move tasks between zones, and has any to move.
func (s *step) rebalances() bool {
	return s.row.AvailabilityZoneRebalancing == types.AvailabilityZoneRebalancingEnabled && s.wanted != nil && len(s.tasks) > 1 &&
		s.row.Deployments[0].RolloutState == types.DeploymentRolloutStateCompleted &&
		!slices.ContainsFunc(s.tasks, func(t *state.Task) bool { return t.AvailabilityZone == nil })
}

// rebalance moves tasks between zones. Its events have ECS's own form:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-rebalancing-event-messages-list.html
func (s *step) rebalance(p deployment.Plan) {
	if s.row.Rebalancing != p.Rebalancing {
		s.row.Rebalancing = p.Rebalancing
		switch {
		case p.Rebalancing:
			s.eventOf(state.Unbalanced, "is not AZ balanced with "+s.spread()+". AZ Rebalancing in progress.")
		case p.Steady:
			s.event("is AZ balanced with " + s.spread() + ".")
		default:
			s.event("stopped AZ Rebalancing.")
		}
	}
	s.stuck = len(p.StartIn) > 0
	for _, zone := range p.StartIn {
		in := *s.wanted
		in.MayWait = false
		in.Constraints = append(slices.Clone(in.Constraints), types.PlacementConstraint{
			Type:       types.PlacementConstraintTypeMemberOf,
			Expression: aws.String("attribute:ecs.availability-zone == '" + zone + "'"), // a user-defined zone may have blanks
		})
		if t, _ := s.scheduler.Launch(s.tx, &in); t != nil {
			s.event("has started 1 tasks in " + zone + " to AZ Rebalance: " + list([]*state.Task{t}) + ".")
			s.stuck = false
			return
		}
		s.eventOnce("is unable to place a task in "+zone+" because no container instance met all of its requirements.", state.Unbalanced)
	}
}

// spread lists how many tasks are in each zone, fullest first.
func (s *step) spread() string {
	zones := map[string]int{}
	for _, zone := range s.scheduler.Zones(s.tx.View, s.wanted) {
		zones[zone] = 0
	}
	for _, t := range s.tasks {
		if *t.DesiredStatus == "RUNNING" {
			zones[aws.ToString(t.AvailabilityZone)]++
		}
	}
	names := slices.SortedFunc(maps.Keys(zones), func(a, b string) int {
		return cmp.Or(cmp.Compare(zones[b], zones[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d tasks in %s", zones[name], name)
	}
	return strings.Join(names, ", ")
}
