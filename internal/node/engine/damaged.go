package engine

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// A record that fails its checksum says nothing that can be relied on: not which GPUs its task has, nor whether it has ended. It's put aside
// and stays there, which says for good that the task isn't to run again. Nobody's record names the task's containers any more, so they are
// removed as orphans, before any GPU that they may have goes to another task. Then the task is reported STOPPED once the control plane
// mentions it.

const damagedSuffix = ".damaged"

// setAside puts a damaged record aside, whose task can't run on.
func (e *Engine) setAside(damage *file.Damage) error {
	path := damage.Path
	if err := errors.Join(file.Quarantine(path), os.Remove(path), file.SyncDir(e.opts.Dir)); err != nil {
		return err
	}
	e.opts.Log.Error("a task's record is damaged: what runs of the task is removed, and the task is reported STOPPED. Look whether the disk "+
		"fails. The record is put aside, and may be deleted once the task has stopped", "record", path+damagedSuffix, "error", damage)
	return nil
}

// findDamaged lists the records that were put aside, now or by earlier agents, by the ids of their tasks.
func (e *Engine) findDamaged() error {
	paths, err := file.Glob(e.opts.Dir, "*.json"+damagedSuffix)
	for _, path := range paths {
		id := strings.TrimSuffix(filepath.Base(path), ".json"+damagedSuffix)
		e.damaged[id] = path
	}
	return err
}

// idOf returns a task's id, the end of its ARN.
func idOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// clusterOf returns the name of a task's cluster, or "" for an ARN in the old form, without one.
func clusterOf(arn string) string {
	if parts := strings.Split(arn, "/"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// endWithoutRecord reports that a task whose record can't be used has stopped, once nothing of it runs any more.
func (e *Engine) endWithoutRecord(ctx context.Context, arn, reason string) {
	select {
	case <-ctx.Done():
		return
	case <-e.tidied:
	}
	id := idOf(arn)
	if e.opts.Networks != nil {
		if err := e.opts.Networks.Delete(ctx, id); err != nil {
			e.opts.Log.Warn("cannot remove a task's network", "task", arn, "error", err)
		}
	}
	if e.opts.Groups != nil {
		if err := e.opts.Groups.Delete(ctx, id); err != nil {
			e.opts.Log.Warn("cannot remove a task's control group", "task", arn, "error", err)
		}
	}
	e.submit(ctx, Report{
		TaskArn: arn,
		Cluster: clusterOf(arn),
		Status:  "STOPPED",
		Reason:  reason,
	})
}

// EndLost reports that a task has stopped if the engine doesn't know it, though the control plane was told that it runs.
func (e *Engine) EndLost(arn string) {
	if e.damaged[idOf(arn)] != "" || e.task(arn) != nil {
		return
	}
	e.opts.Log.Error("a task's record is missing: what runs of the task is removed, and the task is reported STOPPED. Look whether the disk "+
		"fails, or who removes files there", "task", arn, "directory", e.opts.Dir)
	e.goWhileRunning(func(ctx context.Context) {
		e.endWithoutRecord(ctx, arn, "TaskRecordMissingError: the node has no record of the task any more, so it was stopped")
	})
}

// holdForOrphans keeps the node's GPUs from new tasks as long as containers run that no record names, which may have any of them. The caller
// holds mu, and tasks that run hold theirs already.
func (e *Engine) holdForOrphans(orphans map[string]runtime.Container) {
	for _, c := range orphans {
		if c.Status == runtime.Running {
			e.ledger.holdFree(orphansHold, e.opts.GPUs)
			return
		}
	}
}

// orphansHold stands for a task's ARN in the ledger.
const orphansHold = "containers without a task"

// removeOrphans removes containers that no record names, and gives back what volumes such tasks had. An agent of ours made them and lost
// their record, or was killed before removing them. It goes on until none of them runs.
func (e *Engine) removeOrphans(ctx context.Context, orphans map[string]runtime.Container) {
	for _, id := range slices.Sorted(maps.Keys(orphans)) {
		e.opts.Log.Warn("removing a container that no task has", "container", id)
	}
	for wait := minRetry; !e.stopOrphans(ctx, orphans); wait = min(2*wait, maxRetry) {
		e.opts.Log.Error("no new task gets a GPU until all containers that no task has are stopped", "trying again in", wait)
		if !pause(ctx, wait) {
			return
		}
	}
	e.ledger.release(orphansHold)
	close(e.tidied)
	defer close(e.cleared)
	for id := range orphans {
		if err := e.opts.Runtime.Remove(ctx, id); err != nil {
			e.opts.Log.Error("cannot remove a container that no task has", "container", id, "error", err)
		}
		e.removeCursor(id)
	}
	e.releaseOrphanVolumes()
}

// stopOrphans stops the containers that run, and reports whether none does any more.
func (e *Engine) stopOrphans(ctx context.Context, orphans map[string]runtime.Container) (stopped bool) {
	stopped = true
	for id, c := range orphans {
		if c.Status != runtime.Running {
			continue
		}
		if err := e.opts.Runtime.Stop(ctx, id, 0); err != nil && !errors.Is(err, runtime.ErrNotFound) {
			e.opts.Log.Error("cannot stop a container that no task has", "container", id, "error", err)
			stopped = false
			continue
		}
		c.Status = runtime.Exited
		orphans[id] = c
	}
	return stopped
}
