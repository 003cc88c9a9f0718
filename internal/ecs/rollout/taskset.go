package rollout

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/state"
)

// runTaskSets makes the next step of each task set of a service that somebody else deploys: that of a service with
// the task set's share of the tasks, and with a single deployment, which is completed.
func (s *step) runTaskSets() {
	steady := len(s.row.TaskSets) > 0
	left := []state.TaskSet{}
	for _, set := range s.row.TaskSets {
		one := s.ofTaskSet(&set)
		one.run()
		s.row.Events, s.changed = one.row.Events, s.changed || one.changed
		s.wake, steady = sooner(s.wake, one.wake), steady && one.steady
		if *one.row.Status == state.ServiceInactive {
			continue
		}
		d := one.row.Deployments[0]
		set.FailedTasks, set.FailedAt, set.NotBefore, set.Unplaced = d.FailedTasks, d.FailedAt, d.NotBefore, d.Unplaced
		left = append(left, set)
	}
	s.row.TaskSets = left
	if steady {
		s.announceSteady()
	}
	if *s.row.Status == state.ServiceDraining && len(left) == 0 {
		s.row.Status, s.row.EndedAt, s.changed = aws.String(state.ServiceInactive), &s.now, true
	}
}

// ofTaskSet is a step of one task set, as a service of its own. It ends INACTIVE when the task set is deleted and
// its tasks have stopped.
func (s *step) ofTaskSet(set *state.TaskSet) *step {
	row := s.row.Clone()
	row.TaskSets = nil
	row.DesiredCount = int32(deployment.Scaled(int(row.DesiredCount), set.Scale.Value))
	if *set.Status == state.TaskSetDraining {
		row.Status = aws.String(state.ServiceDraining)
	}
	row.Deployments = []state.Deployment{{
		Deployment: types.Deployment{
			Id: set.Id, TaskDefinition: set.TaskDefinition, LaunchType: set.LaunchType, CapacityProviderStrategy: set.CapacityProviderStrategy,
			NetworkConfiguration: set.NetworkConfiguration, RolloutState: types.DeploymentRolloutStateCompleted, FailedTasks: set.FailedTasks,
		},
		FailedAt: set.FailedAt, NotBefore: set.NotBefore, Unplaced: set.Unplaced,
	}}
	return &step{
		tx: s.tx, scheduler: s.scheduler, settle: s.settle, now: s.now, row: row, taskSet: *set.Id, definitions: s.definitions,
	}
}

// waitingTaskSet says whether a task set waits for room.
func waitingTaskSet(row *state.Service) bool {
	return slices.ContainsFunc(row.TaskSets, func(set state.TaskSet) bool { return set.Unplaced })
}

// sooner is the earlier of two times, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
