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
// told to stop what is no longer wanted. GiveUp may be late by a tenth of opts.Lost.
func GiveUp(ctx context.Context, store *state.Store, opts LostOptions) error {
	tick := time.NewTicker(max(opts.Lost/10, 10*time.Millisecond))
	defer tick.Stop()
	for {
		if err := giveUp(ctx, store, opts); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// giveUp stops the tasks of every node that has been away for too long.
func giveUp(ctx context.Context, store *state.Store, opts LostOptions) error {
	now := opts.Now().UTC().Truncate(time.Millisecond)
	v := store.View()
	for row := range v.ContainerInstances.All() {
		if row.AgentConnected || row.DisconnectedAt == nil || now.Sub(*row.DisconnectedAt) < opts.Lost || !hasTasks(v, row) {
			continue
		}
		err := store.Update(ctx, func(tx *state.Tx) error {
			stopTasks(tx, *row.ContainerInstanceArn, now, opts.Lost)
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
