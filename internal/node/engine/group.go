package engine

import (
	"context"
	goruntime "runtime"

	"github.com/pintle/pintle/internal/node/taskgroup"
)

// Groups makes control groups that bind all containers of a task together. Making one that exists sets its limits anew; deleting one that
// doesn't exist is no error.
type Groups interface {
	Create(ctx context.Context, taskID string, l taskgroup.Limits) (parent string, err error)
	Delete(ctx context.Context, taskID string) error
}

// cpuQuotaMilli is the task's share of the machine, or 0 for all of it. A simulated node may have more CPUs than its machine, and a quota
// above the machine's would limit nothing.
func (t *task) cpuQuotaMilli() int64 {
	if cpus := t.rec.Task.CPU; cpus < float64(goruntime.NumCPU()) {
		return int64(cpus * 1000)
	}
	return 0
}

func (t *task) isLimited() bool {
	return (t.rec.Task.CPU > 0 || t.rec.Task.Memory > 0) && !t.engine.runsProcesses()
}

// bind makes the task's control group, if the task has limits. Where there can be none, they bind each container.
func (t *task) bind(ctx context.Context) {
	t.mu.Lock()
	none := !t.isLimited() || t.rec.Halting() && !t.rec.running()
	t.mu.Unlock()
	if none {
		return
	}
	if t.engine.opts.Groups == nil {
		t.engine.opts.Log.Warn("a task's limits bind each of its containers, not the task as a whole", "task", t.arn())
		return
	}
	l := taskgroup.Limits{CPUQuotaMilli: t.cpuQuotaMilli(), MemoryBytes: t.rec.Task.Memory * mebibyte}
	if l.CPUShares = int64(t.rec.Task.CPU * 1024); l.CPUShares == 0 {
		for _, c := range t.rec.Task.Containers {
			l.CPUShares += max(c.CPU, minShares)
		}
	}
	parent, err := t.engine.opts.Groups.Create(ctx, t.id(), l)
	if err != nil {
		t.engine.opts.Log.Error("a task's limits bind each of its containers, not the task as a whole", "task", t.arn(), "error", err)
		return
	}
	t.group = parent // no lock needed: the containers start later
}

// unbind deletes the task's control group.
func (t *task) unbind(ctx context.Context) {
	if t.engine.opts.Groups == nil || !t.isLimited() {
		return
	}
	if err := t.engine.opts.Groups.Delete(ctx, t.id()); err != nil {
		t.engine.opts.Log.Warn("cannot delete a task's control group", "task", t.arn(), "error", err)
	}
}
