package nodelink

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// LostOptions configures GiveUp.
type LostOptions struct {
	Now func() time.Time
	// Lost is how long an agent may be away.
	Lost time.Duration
}

// GiveUp runs until ctx ends, and gives up on nodes whose agent has been away for too long: it marks their tasks
// stopped, so that services can replace them. Nothing is placed on a node while it's away, and a node that returns is
// told to stop what is no longer wanted. GiveUp may be late by a tenth of opts.Lost. If the clock is set, or the process was paused, those who
// are away get the whole time anew: who knows how long they have been.
func GiveUp(ctx context.Context, store *state.Store, opts LostOptions) error {
	interval := max(opts.Lost/10, 10*time.Millisecond)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var set time.Time // when the clock was set for the last time
	last := opts.now()
	for {
		now := opts.now()
		if (now.Sub(last) - interval).Abs() > interval+opts.Lost/2 {
			set = now
		}
		last = now
		if err := giveUp(ctx, store, opts.Lost, now, set); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// now returns the time as rows have it, without the reading of the clock that is never set.
func (o LostOptions) now() time.Time { return o.Now().UTC().Truncate(time.Millisecond) }

// giveUp stops the tasks of every node that has been away for too long, by a clock that was set last at some time.
func giveUp(ctx context.Context, store *state.Store, lost time.Duration, now, set time.Time) error {
	v := store.View()
	for row := range v.ContainerInstances.All() {
		if row.AgentConnected || row.DisconnectedAt == nil {
			continue
		}
		since := *row.DisconnectedAt
		if since.Before(set) || !set.IsZero() && since.After(now.Add(lost)) {
			since = set
		}
		if now.Sub(since) < lost || !hasTasks(v, row) {
			continue
		}
		err := store.Update(ctx, func(tx *state.Tx) error {
			stopTasks(tx, *row.ContainerInstanceArn, now, lost)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hasTasks reports whether any task is on the node.
func hasTasks(v *state.View, row *state.ContainerInstance) bool {
	for t := range v.Tasks.By(state.TasksByInstance, *row.ContainerInstanceArn) {
		if t.Holds() {
			return true
		}
	}
	return false
}

// stopTasks marks the node's tasks stopped, unless its agent has come back in the meantime.
func stopTasks(tx *state.Tx, instance string, now time.Time, lost time.Duration) {
	row := tx.ContainerInstances.Get(instance)
	if row == nil || row.AgentConnected {
		return
	}
	reason := fmt.Sprintf("Container instance %s has been disconnected for more than %s.", state.NameOf(instance), lost)
	var held []*state.Task
	for t := range tx.Tasks.By(state.TasksByInstance, instance) {
		if t.Holds() {
			held = append(held, t)
		}
	}
	for _, old := range held {
		t := old.Stopped(types.TaskStopCodeTerminationNotice, reason, now)
		for i, c := range t.Containers {
			t.Containers[i].Reason = cmp.Or(c.Reason, &reason)
		}
		tx.Tasks.Put(t)
	}
}
