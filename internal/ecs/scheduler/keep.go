package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/state"
)

const (
	// starvesAfter is how long a task waits before room is kept for it. By then a machine could have come, or room been found by chance.
	starvesAfter = time.Minute
	// keepsFor is how long room is kept on an instance after the last task ended there. If none has ended for as long, those that are
	// left may run for ever, and what is free should not lie idle beside them.
	keepsFor = 10 * time.Minute
)

// keepRoom keeps room on an instance for one waiting task of each capacity provider, so that a stream of smaller tasks doesn't starve it.
// This is the task that room is kept for already, or else the next in turn that needs several GPUs and has waited for a while. Tasks of one
// GPU need nothing kept: what becomes free is enough for them when their turn comes.
func (s *Scheduler) keepRoom(v *state.View, inTurn []*state.Task, now time.Time) {
	keepers := slices.Clone(inTurn)
	slices.SortStableFunc(keepers, func(a, b *state.Task) int { return cmp.Compare(s.precedence(a), s.precedence(b)) })
	served, hopeless := map[string]bool{}, map[string]bool{}
	for _, t := range keepers {
		provider := *t.ClusterArn + " " + aws.ToString(t.CapacityProviderName)
		if t.Waiting.GPUs < 2 || now.Sub(aws.ToTime(t.CreatedAt)) < starvesAfter || served[provider] || hopeless[kindOf(t)] {
			continue
		}
		served[provider] = s.keepFor(v, t, now)
		hopeless[kindOf(t)] = !served[provider]
	}
}

// precedence is 0 for a task that room is kept for, and 1 for others.
func (s *Scheduler) precedence(t *state.Task) int {
	if s.cluster(*t.ClusterArn).Keeps(*t.TaskArn) {
		return 0
	}
	return 1
}

// keepFor keeps room for a waiting task where tasks end, and reports whether there is such an instance.
func (s *Scheduler) keepFor(v *state.View, t *state.Task, now time.Time) bool {
	c := s.cluster(*t.ClusterArn)
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil {
		return false
	}
	r := s.request(v, RequestOf(td, t))
	instance := c.Nearest(r, func(arn string) bool { return hasEndedSince(v, arn, now.Add(-keepsFor)) })
	if instance == "" {
		c.Unkeep(*t.TaskArn)
		return false
	}
	c.Keep(instance, *t.TaskArn, r)
	return true
}

// hasEndedSince reports whether a task has ended on an instance since then.
func hasEndedSince(v *state.View, instance string, then time.Time) bool {
	for t := range v.Tasks.By(state.TasksByInstance, instance) {
		if t.StoppedAt != nil && t.StoppedAt.After(then) {
			return true
		}
	}
	return false
}
