// Package waiting is the loop that places tasks which wait for their capacity provider to grow. They are PROVISIONING
// and have no instance. The loop looks when instances come, and every second for what ended tasks leave free. It stops
// tasks that have waited for too long, with the reason that they found no instance.
package waiting

import (
	"context"
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

// Run places tasks until ctx ends. late is told how late each look is that a second has brought.
func Run(ctx context.Context, store *state.Store, scheduler *scheduler.Scheduler, now func() time.Time, late func(time.Duration)) error {
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
		if due, ok := looking.Deadline(); waits && ok && looking.Err() != nil {
			late(time.Since(due))
		}
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Place places the tasks that there is room for. It stops those that have waited for too long, and those that no instance of their capacity
// provider could ever take, as an instance has shown by now. A task's waiting time counts only from since: before that nobody looked, and no
// machine could come.
func Place(tx *state.Tx, s *scheduler.Scheduler, since, now time.Time) {
	for _, u := range s.PlaceWaiting(tx, now) {
		refusal := scheduler.Refusal(tx.View, u.Tasks[0])
		for _, t := range u.Tasks {
			reason := ""
			if refusal != nil {
				reason = scheduler.Hopeless(refusal)
			} else if now.Sub(aws.ToTime(t.CreatedAt)) >= patience && now.Sub(since) >= patience {
				reason = scheduler.Shortage(tx.View, t, u.Failures)
			}
			if reason != "" {
				tx.Tasks.Put(t.Stopped(types.TaskStopCodeTaskFailedToStart, reason, now.UTC().Truncate(time.Millisecond)))
			}
		}
	}
}
