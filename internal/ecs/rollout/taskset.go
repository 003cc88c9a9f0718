package rollout

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/deployment"
	"github.com/pintle/pintle/internal/state"
)

// runTaskSets makes the next step of each task set of a service with an external deployment controller. A step treats a
// task set as a service with its share of the tasks and one completed deployment.
func (s *step) runTaskSets() {
	steady := len(s.row.TaskSets) > 0
	left := []state.TaskSet{}
	for _, set := range s.row.TaskSets {
		one := s.stepOfTaskSet(&set)
		one.run()
		s.row.Events = one.row.Events
		s.changed = s.changed || one.changed
		s.wake = sooner(s.wake, one.wake)
		steady = steady && one.steady
		if *one.row.Status == state.ServiceInactive {
			continue
		}
		d := one.row.Deployments[0]
		set.FailedTasks = d.FailedTasks
		set.FailedAt = d.FailedAt
		set.NotBefore = d.NotBefore
		set.Unplaced = d.Unplaced
		left = append(left, set)
	}
	s.row.TaskSets = left
	if steady {
		s.announceSteady()
	}
	if *s.row.Status == state.ServiceDraining && len(left) == 0 {
		s.row.Status = aws.String(state.ServiceInactive)
		s.row.EndedAt = &s.now
		s.changed = true
	}
}

// stepOfTaskSet returns the step of one task set as a service of its own. That service becomes INACTIVE once the task
// set is deleted and its tasks have stopped.
func (s *step) stepOfTaskSet(set *state.TaskSet) *step {
	desired := deployment.Scaled(int(s.row.DesiredCount), set.Scale.Value)
	one := s.part(int32(desired), state.Deployment{
		Deployment: types.Deployment{
			Id:                       set.Id,
			TaskDefinition:           set.TaskDefinition,
			LaunchType:               set.LaunchType,
			CapacityProviderStrategy: set.CapacityProviderStrategy,
			NetworkConfiguration:     set.NetworkConfiguration,
			RolloutState:             types.DeploymentRolloutStateCompleted,
			FailedTasks:              set.FailedTasks,
		},
		FailedAt:          set.FailedAt,
		NotBefore:         set.NotBefore,
		Unplaced:          set.Unplaced,
		LoadBalancers:     set.LoadBalancers,
		ServiceRegistries: set.ServiceRegistries,
	})
	one.externalID = aws.ToString(set.ExternalId)
	one.taskSetArn = aws.ToString(set.TaskSetArn)
	if *set.Status == state.TaskSetDraining {
		one.row.Status = aws.String(state.ServiceDraining)
	}
	return one
}

// part returns the step of a part of the service: of one that runs so many tasks of a single deployment.
func (s *step) part(desired int32, d state.Deployment) *step {
	row := s.row.Clone()
	row.TaskSets = nil
	row.DesiredCount = desired
	row.Deployments = []state.Deployment{d}
	return &step{
		tx:          s.tx,
		scheduler:   s.scheduler,
		settle:      s.settle,
		now:         s.now,
		row:         row,
		taskSet:     *d.Id,
		definitions: s.definitions,
	}
}

// hasWaitingTaskSet reports whether a task set waits for room.
func hasWaitingTaskSet(row *state.Service) bool {
	return slices.ContainsFunc(row.TaskSets, func(set state.TaskSet) bool { return set.Unplaced })
}

// sooner returns the earlier of two times. Zero means never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
