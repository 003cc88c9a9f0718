// Package waiting is the loop that places tasks which wait for their capacity provider to grow: PROVISIONING, without
// an instance. It looks when instances come, and every second for what tasks that end leave free. What has waited for too long
// is stopped, with the reason that it found no instance.
package waiting

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

const (
	every = time.Second
	// patience is how long a task waits for capacity. ECS gives it between 10 and 30 minutes:
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
			if err := store.Update(ctx, func(tx *state.Tx) error { Place(tx, scheduler, since, now()); return nil }); err != nil {
				return err
			}
			looking, cancel = context.WithTimeout(ctx, every)
		}
		v.Changed(looking) //nolint:errcheck // it is time to look, or the end
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Place places the tasks that there is room for, the oldest first, and stops those that have waited for too long. Of those that
// are alike, it tries no more after the first that finds none. Before since nobody has looked, and no machine could come.
func Place(tx *state.Tx, s *scheduler.Scheduler, since, now time.Time) {
	var waiting []*state.Task
	for t := range tx.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if t.Waiting != nil && *t.DesiredStatus == "RUNNING" {
			waiting = append(waiting, t)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *state.Task) int { return aws.ToTime(a.CreatedAt).Compare(aws.ToTime(b.CreatedAt)) })
	full := map[string][]types.Failure{}
	for _, t := range waiting {
		kind := kindOf(t)
		if full[kind] == nil {
			full[kind] = s.Fill(tx, t)
		}
		if full[kind] != nil && now.Sub(aws.ToTime(t.CreatedAt)) >= patience && now.Sub(since) >= patience {
			tx.Tasks.Put(t.Stopped(types.TaskStopCodeTaskFailedToStart, scheduler.Shortage(tx.View, t, full[kind]), now.UTC().Truncate(time.Millisecond)))
		}
	}
}

// kindOf is what a task has in common with those that find room where it does.
func kindOf(t *state.Task) string {
	b, err := json.Marshal([]any{t.ClusterArn, t.TaskDefinitionArn, t.CapacityProviderName, t.Group, t.Waiting})
	if err != nil {
		panic(err) // it is numbers and text
	}
	return string(b)
}
