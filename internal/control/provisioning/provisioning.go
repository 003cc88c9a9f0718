// Package provisioning is the loop that places tasks which wait for their capacity provider to grow: PROVISIONING, without
// an instance. It looks when instances come, and every second for what tasks that end leave free.
package provisioning

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/schedule"
	"github.com/pintle/pintle/internal/state"
)

const every = time.Second

// Run places tasks until ctx ends.
func Run(ctx context.Context, store *state.Store, scheduler *schedule.Scheduler) error {
	for {
		v := store.Watch()
		waits := false
		for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
			waits = waits || t.Waiting != nil
		}
		looking, cancel := ctx, context.CancelFunc(func() {})
		if waits {
			v.ContainerInstances.Watch()
			if err := store.Update(ctx, func(tx *state.Tx) error { Place(tx, scheduler); return nil }); err != nil {
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

// Place places the tasks that there is room for, the oldest first. Of those that are alike, it tries no more after the first
// that finds none.
func Place(tx *state.Tx, scheduler *schedule.Scheduler) {
	var waiting []*state.Task
	for t := range tx.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if t.Waiting != nil && *t.DesiredStatus == "RUNNING" {
			waiting = append(waiting, t)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *state.Task) int { return aws.ToTime(a.CreatedAt).Compare(aws.ToTime(b.CreatedAt)) })
	full := map[string]bool{}
	for _, t := range waiting {
		kind := fmt.Sprint(*t.ClusterArn, *t.TaskDefinitionArn, aws.ToString(t.CapacityProviderName), aws.ToString(t.Group), t.Waiting.CPU, t.Waiting.MemoryMiB, t.Waiting.GPUs, len(t.Waiting.Constraints))
		full[kind] = full[kind] || !scheduler.Fill(tx, t)
	}
}
