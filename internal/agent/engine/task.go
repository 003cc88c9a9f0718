package engine

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// task is one task on its way from taken to stopped. One goroutine, run, looks at it again whenever
// something has changed, starts and stops what it can, and ends when all has ended and was reported.
type task struct {
	engine *Engine
	wake   chan struct{} // run looks again
	tell   chan struct{} // report looks again
	done   chan struct{} // closed when the task is stopped and reported
	work   sync.WaitGroup

	mu     sync.Mutex
	rec    *Record
	busy   map[string]bool   // containers that a goroutine is starting, watching or stopping
	health map[string]health // of containers with a check
}

func newTask(e *Engine, rec *Record) *task {
	return &task{
		engine: e, rec: rec, wake: make(chan struct{}, 1), tell: make(chan struct{}, 1), done: make(chan struct{}),
		busy: map[string]bool{}, health: map[string]health{},
	}
}

// id is the task's id, the end of its ARN.
func (t *task) id() string { return t.rec.Task.Arn[strings.LastIndexByte(t.rec.Task.Arn, '/')+1:] }

func (t *task) path() string { return filepath.Join(t.engine.opts.Dir, t.id()+".json") }

// containerID is the runtime's name of a container: always the same, so that it is found again.
func (t *task) containerID(name string) string { return t.id() + "-" + name }

func (t *task) definition(name string) *acs.Container {
	for i := range t.rec.Task.Containers {
		if t.rec.Task.Containers[i].Name == name {
			return &t.rec.Task.Containers[i]
		}
	}
	return nil
}

// save writes the record. The caller holds mu, or is the task's only user.
func (t *task) save() error { return t.rec.write(t.path()) }

// changed wakes run and report.
func (t *task) changed() {
	for _, c := range []chan struct{}{t.wake, t.tell} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// update changes the record and wakes run. A record that cannot be written is no reason to let
// containers run on unwatched: the error is logged, and the next change writes it.
func (t *task) update(change func(*Record)) {
	t.mu.Lock()
	change(t.rec)
	err := t.save()
	t.mu.Unlock()
	if err != nil {
		t.engine.opts.Log.Error("cannot write a task's record", "task", t.rec.Task.Arn, "error", err)
	}
	t.changed()
}

// stop notes that the task is to stop.
func (t *task) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.Stop {
		return nil
	}
	t.rec.Stop = true
	t.changed()
	return t.save()
}

func (t *task) stopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.stopped()
}

func (t *task) reported() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.Reported == "STOPPED"
}

// adopt takes over from an agent before this one: what the runtime found counts, not what was written
// down last. It runs before the task does.
func (t *task) adopt(found map[string]runtime.Container) {
	for name, c := range t.rec.Containers {
		if c.Status == Stopped {
			continue
		}
		switch f, ok := found[t.containerID(name)]; {
		case ok && f.Status != runtime.Created:
			c.Status, c.Ran = Running, true // Wait tells at once if it has exited
			c.StartedAt = f.StartedAt
		case ok:
			c.Status = Waiting // creating and starting it again does no harm
		case c.Ran:
			code := 137
			c.Status, c.ExitCode, c.Reason = Stopped, &code, "ContainerLost: the container was gone when the agent came back"
		default:
			c.Status = Waiting
		}
	}
}

// run brings the task to its end. It returns true when the task may be forgotten, and false when ctx
// ended first.
func (t *task) run(ctx context.Context) bool {
	defer t.work.Wait()
	if !t.reported() {
		t.work.Go(func() { t.report(ctx) })
		if !t.live(ctx) {
			return false
		}
	} else {
		close(t.done)
	}
	return t.keep(ctx)
}

// live starts and stops containers until all have ended.
func (t *task) live(ctx context.Context) bool {
	if !t.pin(ctx) {
		return false
	}
	for {
		t.step(ctx)
		if t.stopped() {
			break
		}
		select {
		case <-ctx.Done():
			return false
		case <-t.wake:
		}
	}
	t.engine.pins.release(t.rec.Task.Arn)
	t.update(func(r *Record) {
		if r.ExecutionStoppedAt.IsZero() {
			r.ExecutionStoppedAt = time.Now().UTC()
		}
	})
	select {
	case <-ctx.Done():
		return false
	case <-t.done:
		return true
	}
}

// pin waits for the task's GPUs. A task that is stopped meanwhile needs none.
func (t *task) pin(ctx context.Context) bool {
	var devices []string
	for _, a := range t.rec.Task.Associations {
		if a.Type == "gpu" {
			devices = append(devices, a.Name)
		}
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	held := make(chan error, 1)
	t.work.Go(func() { held <- t.engine.pins.hold(waiting, t.rec.Task.Arn, devices) })
	for {
		select {
		case err := <-held:
			return err == nil
		case <-t.wake:
			t.mu.Lock()
			stop := t.rec.Stop
			t.mu.Unlock()
			if stop {
				cancel()
				<-held
				t.changed()
				return true
			}
		}
	}
}

// step starts what may start and stops what must stop, each in a goroutine of its own.
func (t *task) step(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.Stop || t.rec.doomed() {
		t.stopStep(ctx)
		return
	}
	for i := range t.rec.Task.Containers {
		c := &t.rec.Task.Containers[i]
		if t.busy[c.Name] {
			continue
		}
		switch t.rec.Containers[c.Name].Status {
		case Running:
			t.spawn(c.Name, func() { t.watch(ctx, c) })
		case Waiting:
			if ready, failure := t.ready(c); failure != "" {
				t.rec.Failure = failure
				t.changed()
			} else if ready {
				t.spawn(c.Name, func() { t.bringUp(ctx, c) })
			}
		}
	}
}

// stopStep stops containers that nothing else which runs depends on, and gives up those that wait.
func (t *task) stopStep(ctx context.Context) {
	for i := range t.rec.Task.Containers {
		c := &t.rec.Task.Containers[i]
		rc := t.rec.Containers[c.Name]
		switch {
		case rc.Status == Waiting && !t.busy[c.Name]:
			rc.Status = Stopped
			t.changed()
		case rc.Status == Running && !t.busy["stop "+c.Name] && !t.needed(c.Name):
			if !t.busy[c.Name] {
				t.spawn(c.Name, func() { t.watch(ctx, c) })
			}
			t.spawn("stop "+c.Name, func() { t.bringDown(ctx, c) })
		}
	}
	if err := t.save(); err != nil {
		t.engine.opts.Log.Error("cannot write a task's record", "task", t.rec.Task.Arn, "error", err)
	}
}

// spawn runs f, and marks the container busy with it. The caller holds mu.
func (t *task) spawn(what string, f func()) {
	t.busy[what] = true
	t.work.Go(func() {
		f()
		t.mu.Lock()
		delete(t.busy, what)
		t.mu.Unlock()
		t.changed()
	})
}

// keep remembers the stopped task for a while, then removes its containers.
func (t *task) keep(ctx context.Context) bool {
	since := t.rec.ExecutionStoppedAt
	timer := time.NewTimer(time.Until(since.Add(t.engine.opts.Keep)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	for _, c := range t.rec.Task.Containers {
		id := t.containerID(c.Name)
		if err := t.engine.opts.Runtime.Remove(ctx, id); err != nil {
			t.engine.opts.Log.Warn("cannot remove a container", "container", id, "error", err)
		}
	}
	return true
}

// stopped says whether every container has ended.
func (r *Record) stopped() bool {
	for _, c := range r.Containers {
		if c.Status != Stopped {
			return false
		}
	}
	return true
}

// doomed says whether the task cannot go on: an essential container has ended, or one cannot start.
func (r *Record) doomed() bool {
	if r.Failure != "" {
		return true
	}
	for i := range r.Task.Containers {
		d := &r.Task.Containers[i]
		if d.Essential && r.Containers[d.Name].Status == Stopped {
			return true
		}
	}
	return false
}

// allRunning says whether the task counts as RUNNING: every container has come to run.
func (r *Record) allRunning() bool {
	for _, c := range r.Containers {
		if !c.Ran {
			return false
		}
	}
	return true
}
