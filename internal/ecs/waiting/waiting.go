// Package waiting is the loop that places tasks which wait for their capacity provider to grow. They are PROVISIONING
// and have no instance. The loop looks when instances come, and every second for what ended tasks leave free. It stops
// tasks that have waited for too long, with the reason that they found no instance.
package waiting

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

const (
	recheckEvery = time.Second
	// patience is how long a task waits for capacity. ECS waits between 10 and 30 minutes:
	// https://aws.amazon.com/blogs/containers/deep-dive-on-amazon-ecs-cluster-auto-scaling/
	patience = 30 * time.Minute
)

// Run places tasks until ctx ends.
func Run(ctx context.Context, store *state.Store, scheduler *scheduler.Scheduler, now func() time.Time) error {
	since := now()
	for {
		v := store.Watch()
		waits := false
		for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
			waits = waits || t.Waiting != nil
		}
		looking, cancel := ctx, context.CancelFunc(func() {})
		if waits {
			v.ContainerInstances.Watch()
			err := store.Update(ctx, func(tx *state.Tx) error {
				Place(tx, scheduler, since, now())
				return nil
			})
			if err != nil {
				return err
			}
			looking, cancel = context.WithTimeout(ctx, recheckEvery)
		}
		v.Changed(looking) //nolint:errcheck // time to look again, or the end
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Place places the tasks that there is room for, each owner in turn and the oldest first. It stops those that have waited for too long, and those that no
// instance of their capacity provider could ever take, as an instance has shown by now. Among tasks of one kind it tries no more after the first that finds no room. A task's waiting time counts only from since:
// before that nobody looked, and no machine could come.
func Place(tx *state.Tx, s *scheduler.Scheduler, since, now time.Time) {
	var waiting []*state.Task
	for t := range tx.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if t.Waiting != nil && *t.DesiredStatus == "RUNNING" {
			waiting = append(waiting, t)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *state.Task) int { return aws.ToTime(a.CreatedAt).Compare(aws.ToTime(b.CreatedAt)) })
	waiting = turns(waiting, holdings(tx.View))
	full := map[string][]types.Failure{}
	refusals := map[string]*types.Failure{}
	for _, t := range waiting {
		kind := kindOf(t)
		if full[kind] == nil {
			full[kind] = s.PlaceWaiting(tx, t)
			refusals[kind] = scheduler.Refusal(tx.View, t)
		}
		if full[kind] == nil {
			continue
		}
		reason := ""
		if refusals[kind] != nil {
			reason = scheduler.Hopeless(refusals[kind])
		} else if now.Sub(aws.ToTime(t.CreatedAt)) >= patience && now.Sub(since) >= patience {
			reason = scheduler.Shortage(tx.View, t, full[kind])
		}
		if reason != "" {
			tx.Tasks.Put(t.Stopped(types.TaskStopCodeTaskFailedToStart, reason, now.UTC().Truncate(time.Millisecond)))
		}
	}
}

// owner is who shares a capacity provider with others: a service, or the tasks of a group that RunTask started.
type owner struct{ provider, service, group string }

func ownerOf(t *state.Task) owner {
	return owner{aws.ToString(t.CapacityProviderName), t.ServiceArn, aws.ToString(t.Group)}
}

// holdings counts the tasks that each owner has on its provider's instances.
func holdings(v *state.View) map[owner]int {
	has := map[owner]int{}
	for t := range v.Tasks.All() {
		if t.Holds() && t.CapacityProviderName != nil {
			has[ownerOf(t)]++
		}
	}
	return has
}

// turns puts waiting tasks, oldest first, into the order in which they are placed: whoever has fewest tasks comes next, so that nobody's
// long queue keeps the others waiting. Among equals the oldest comes first, and so do an owner's tasks.
func turns(waiting []*state.Task, has map[owner]int) []*state.Task {
	has = maps.Clone(has)
	rank := map[*state.Task]int{}
	for _, t := range waiting {
		o := ownerOf(t)
		rank[t] = has[o]
		has[o]++
	}
	out := slices.Clone(waiting)
	slices.SortStableFunc(out, func(a, b *state.Task) int { return cmp.Compare(rank[a], rank[b]) })
	return out
}

// kindOf returns what decides where a task finds room. Tasks of one kind find room in the same places.
func kindOf(t *state.Task) string {
	b, err := json.Marshal([]any{t.ClusterArn, t.TaskDefinitionArn, t.CapacityProviderName, t.Group, t.Waiting})
	if err != nil {
		panic(err) // it's only numbers and text
	}
	return string(b)
}
