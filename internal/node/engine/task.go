package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// task takes one task from accepted to stopped. Each of its containers has a goroutine that takes it to its end, and one more reports.
// They all read and change the record, and wait for each other's changes to it. There's no other state, so a new agent can continue
// from the record.
type task struct {
	engine *Engine

	mu       sync.Mutex
	rec      *Record
	unsaved  bool          // the record's last change couldn't be written
	changed  chan struct{} // closed and replaced at each change
	finished bool          // the containers have ended, and everything the task held is released

	group    string // the control group of its containers, or ""
	attended attended
	guarding sync.Mutex // held to apply the rules of security groups, so that the newest are applied last
	// unguarded means that the rules couldn't be applied; mu guards it.
	unguarded bool
	warned    sync.Once       // that this node can't apply them
	granted   <-chan struct{} // closed once the task has what it needs of the node
	// leftBehind means that an earlier agent lost the task's record, and left containers of the names that its own are to have.
	leftBehind bool
	halted     context.Context // ends once the task is halting
	halt       context.CancelFunc
	shipping   sync.WaitGroup
	prepared   chan struct{}            // closed once the task's volumes are here, or it can't have them
	shipped    map[string]chan struct{} // by container; closed once the output of its last run is shipped. mu guards the map.
}

func newTask(e *Engine, rec *Record) *task {
	t := &task{
		engine: e, rec: rec, changed: make(chan struct{}), finished: rec.Reported == "STOPPED", prepared: make(chan struct{}),
		shipped: map[string]chan struct{}{},
	}
	t.halted, t.halt = context.WithCancel(context.Background())
	if rec.Halting() {
		t.halt()
	}
	return t
}

func (t *task) arn() string { return t.rec.Task.Arn }

// id returns the task's id, the end of its ARN.
func (t *task) id() string { return idOf(t.rec.Task.Arn) }

func (t *task) path() string { return filepath.Join(t.engine.opts.Dir, t.id()+".json") }

// maxName is how long a container's own name may be in the runtime's name for it. Some runtimes name directories after that, and a task
// definition's names may be as long as a directory's.
const maxName = 160

// containerID returns the runtime's name for a container. It's always the same, so that the container is found again. The caller holds mu.
func (t *task) containerID(name string) string {
	id := t.id() + "-" + name
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		id = t.id() + "-" + hex.EncodeToString(sum[:])
	}
	if n := t.rec.Containers[name].Remade; n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return id
}

func (t *task) definition(name string) *acs.Container { return find(&t.rec.Task, name) }

// container returns a container's present state, and its id.
func (t *task) container(name string) (Container, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.rec.Containers[name], t.containerID(name)
}

// payload returns the task as the control plane sent it, with its present credentials.
func (t *task) payload() acs.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.Task
}

// save writes the record. The caller holds mu, or is the task's only user.
func (t *task) save() error {
	err := t.engine.write(t.path(), t.rec)
	t.unsaved = err != nil
	return err
}

// update changes the record durably and wakes everyone who waits. If writing fails, containers must not run unwatched because of it: the
// error is logged, and the next change writes the record.
func (t *task) update(change func(*Record)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t.rec)
	if err := t.save(); err != nil {
		t.engine.opts.Log.Error("cannot write a task's record", "task", t.arn(), "error", err)
	}
	if t.rec.Halting() {
		t.halt()
	}
	t.wakeLocked()
}

// wakeLocked makes every await check its condition. The caller holds mu.
func (t *task) wakeLocked() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// wake makes every await check its condition, for one that depends on the time.
func (t *task) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked()
}

// await blocks until the condition holds. The caller holds mu.
func (t *task) await(ctx context.Context, condition func() bool) error {
	for {
		t.mu.Lock()
		holds, changed := condition(), t.changed
		t.mu.Unlock()
		if holds {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// stop stops the task. An error means that this couldn't be written, and that the control plane must ask again in case the agent is killed; the
// task stops all the same, since it may be what fills the disk.
func (t *task) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.Stop && !t.unsaved {
		return nil
	}
	t.rec.Stop = true
	t.halt()
	t.wakeLocked()
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

// adopt takes over from the last agent. What the runtime found overrides what was written last. It runs before the task does, and
// reports whether any container of the task exists.
func (t *task) adopt(found map[string]runtime.Container) (there bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, c := range t.rec.Containers {
		f, ok := found[t.containerID(name)]
		if ok {
			c.isNow(f)
		}
		switch {
		case c.Status == Stopped:
			continue
		case ok && c.isRestart() && f.Status == runtime.Exited && f.Exit.FinishedAt.Equal(c.EndedAt):
			c.Status = Waiting // it's still to be started again
		case ok && f.Status != runtime.Created:
			c.Status, c.Ran = Running, true // if it has exited, Wait returns at once
			c.StartedAt = f.StartedAt
		case c.Status == Running:
			c.Status, c.Reason = Stopped, "CannotInspectContainerError: the container was gone when the agent came back"
		default:
			c.Status = Waiting // it's safe to create and start it again
		}
		there = there || c.Status == Running
	}
	if t.rec.Halting() {
		t.halt()
	}
	return there
}

// run takes the task to its end. It returns when that is reported and the output is shipped, or when ctx ends.
func (t *task) run(ctx context.Context) {
	defer t.shipping.Wait()
	t.shipRest(ctx)
	if t.reported() {
		return
	}
	var reporting sync.WaitGroup
	defer reporting.Wait()
	reporting.Go(func() { t.report(ctx) })
	if err := t.live(ctx); err != nil {
		return // ctx has ended, and the next agent continues
	}
	t.engine.ledger.release(t.arn())
	t.awaitShipping(ctx)
	t.finish()
}

// finish notes that the task is finished.
func (t *task) finish() {
	t.update(func(r *Record) {
		if r.ExecutionStoppedAt.IsZero() {
			r.ExecutionStoppedAt = time.Now().UTC()
		}
		t.finished = true
	})
}

// live gets the task what it needs, runs its containers to their end, and gives everything back.
func (t *task) live(ctx context.Context) error {
	if err := t.admit(ctx); err != nil {
		return err
	}
	if t.isUnguardable() {
		t.warnUnguarded()
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	defer t.leave("")
	t.bind(ctx)
	var containers sync.WaitGroup
	containers.Go(func() { t.prepare(ctx) })
	for i := range t.rec.Task.Containers {
		containers.Go(func() { t.runContainer(ctx, &t.rec.Task.Containers[i]) })
	}
	containers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.releaseVolumes()
	t.unbind(ctx)
	return t.disconnect(ctx)
}

// admit waits until the node has what the task needs, or the task is halted and needs nothing.
func (t *task) admit(ctx context.Context) error {
	if t.leftBehind {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.engine.cleared:
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.halted.Done():
	case <-t.granted:
	}
	return nil
}

// shipGrace is how long a task's end waits for its last output to be shipped.
const shipGrace = 10 * time.Second

// awaitShipping waits for output that is still being shipped, up to shipGrace.
func (t *task) awaitShipping(ctx context.Context) {
	done := make(chan struct{})
	go func() { t.shipping.Wait(); close(done) }()
	late := time.NewTimer(shipGrace)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-done:
	case <-late.C:
		t.engine.opts.Log.Warn("a task's end is reported before all of its output is shipped", "task", t.arn())
	}
}

// isForgettable reports whether the task finished and was reported long enough ago to be forgotten.
func (t *task) isForgettable(keep time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.finished && t.rec.Reported == "STOPPED" && time.Since(t.rec.ExecutionStoppedAt) >= keep
}

// cleanUp removes the stopped task's containers, files and own volumes.
func (t *task) cleanUp(ctx context.Context) {
	for i := range t.rec.Task.Containers {
		_, id := t.container(t.rec.Task.Containers[i].Name)
		if err := t.engine.opts.Runtime.Remove(ctx, id); err != nil {
			t.engine.opts.Log.Warn("cannot remove a container", "container", id, "error", err)
		}
		t.engine.removeCursor(id)
	}
	if err := os.RemoveAll(t.routerDir()); err != nil {
		t.engine.opts.Log.Warn("cannot remove a log router's files", "task", t.arn(), "error", err)
	}
	for _, v := range t.rec.Task.Volumes {
		name, own := t.ownVolume(v)
		if !own {
			continue
		}
		if err := t.engine.opts.Runtime.RemoveVolume(ctx, name); err != nil {
			t.engine.opts.Log.Warn("cannot remove a volume", "volume", name, "error", err)
		}
	}
}
