package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// task is one task on its way from taken to stopped. A goroutine for each of its containers takes that
// container from where it is to its end, and one more reports; all of them read the record, change it,
// and wait for others to change it. Nothing else is remembered, so a new agent goes on from the record.
type task struct {
	engine *Engine

	mu      sync.Mutex
	rec     *Record
	changed chan struct{} // closed, and made anew, when something has changed
	over    bool          // the containers have ended, and all that the task held is given back

	attended attended
	granted  <-chan struct{} // closed once the task has what it needs of the node
	halted   context.Context // over once the task is halting
	halt     context.CancelFunc
	shipping sync.WaitGroup
}

func newTask(e *Engine, rec *Record) *task {
	t := &task{engine: e, rec: rec, changed: make(chan struct{}), over: rec.Reported == "STOPPED"}
	t.halted, t.halt = context.WithCancel(context.Background())
	if rec.Halting() {
		t.halt()
	}
	return t
}

func (t *task) arn() string { return t.rec.Task.Arn }

// id is the task's id, the end of its ARN.
func (t *task) id() string { return t.rec.Task.Arn[strings.LastIndexByte(t.rec.Task.Arn, '/')+1:] }

func (t *task) path() string { return filepath.Join(t.engine.opts.Dir, t.id()+".json") }

// maxName is how much of a runtime's name of a container its own may be: some runtimes name directories after it, and a task
// definition's names may be as long as a directory's.
const maxName = 160

// containerID is the runtime's name of a container: always the same, so that it is found again, and
// another one after each restart by policy, so that none is taken for the one before it. The caller
// holds mu.
func (t *task) containerID(name string) string {
	id := t.id() + "-" + name
	if len(name) > maxName {
		sum := sha256.Sum256([]byte(name))
		id = t.id() + "-" + hex.EncodeToString(sum[:])
	}
	if n := t.rec.Containers[name].Restarts; n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return id
}

func (t *task) definition(name string) *acs.Container {
	for i := range t.rec.Task.Containers {
		if t.rec.Task.Containers[i].Name == name {
			return &t.rec.Task.Containers[i]
		}
	}
	return nil
}

// container is what is known of a container now, and its id.
func (t *task) container(name string) (Container, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.rec.Containers[name], t.containerID(name)
}

// payload is the task as the control plane sent it, with the credentials that it has now.
func (t *task) payload() acs.Task {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.Task
}

// save writes the record. The caller holds mu, or is the task's only user.
func (t *task) save() error { return t.engine.write(t.path(), t.rec) }

// update changes the record, durably, and wakes whoever waits. A record that cannot be written is no
// reason to let containers run on unwatched: the error is logged, and the next change writes it.
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
	t.wake()
}

// wake has every await look again. The caller holds mu.
func (t *task) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// look has every await look again when it is the time that has changed.
func (t *task) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wake()
}

// await blocks until the condition holds. It is called with mu held.
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

// stop notes that the task is to stop. Unless that is on disk, it is not noted at all: the control
// plane says it again.
func (t *task) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rec.Stop {
		return nil
	}
	t.rec.Stop = true
	if err := t.save(); err != nil {
		t.rec.Stop = false
		return err
	}
	t.halt()
	t.wake()
	return nil
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
// down last. It runs before the task does, and says whether anything of the task is there already.
func (t *task) adopt(found map[string]runtime.Container) (there bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, c := range t.rec.Containers {
		f, ok := found[t.containerID(name)]
		switch {
		case c.Status == Stopped:
			continue
		case ok && f.Status != runtime.Created:
			c.Status, c.Ran = Running, true // Wait tells at once if it has exited
			c.StartedAt = f.StartedAt
		case c.Status == Running:
			c.Status, c.Reason = Stopped, "CannotInspectContainerError: the container was gone when the agent came back"
		default:
			c.Status = Waiting // creating and starting it again does no harm
		}
		there = there || c.Status == Running
	}
	if t.rec.Halting() {
		t.halt()
	}
	return there
}

// run brings the task to its end, and returns when that is reported and its output is shipped, or ctx
// ends.
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
		return // ctx has ended: the next agent goes on
	}
	t.engine.ledger.release(t.arn())
	t.awaitShipping(ctx)
	t.finish()
}

// finish says that the task is over.
func (t *task) finish() {
	t.update(func(r *Record) {
		if r.ExecutionStoppedAt.IsZero() {
			r.ExecutionStoppedAt = time.Now().UTC()
		}
		t.over = true
	})
}

// live gives the task what it needs, brings its containers to their end, and takes it back.
func (t *task) live(ctx context.Context) error {
	if err := t.admit(ctx); err != nil {
		return err
	}
	if err := t.connect(ctx); err != nil {
		return err
	}
	defer t.leave("")
	var containers sync.WaitGroup
	for i := range t.rec.Task.Containers {
		containers.Go(func() { t.bring(ctx, &t.rec.Task.Containers[i]) })
	}
	containers.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return t.disconnect(ctx)
}

// admit waits until the node has what the task needs. A task that is halted meanwhile needs nothing.
func (t *task) admit(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.halted.Done():
	case <-t.granted:
	}
	return nil
}

// shipGrace is how long a task's end waits for its last lines to be taken.
const shipGrace = 10 * time.Second

// awaitShipping waits for the output that is on its way, but not forever.
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

// forgettable says whether the task was over and reported so long ago that it may be forgotten.
func (t *task) forgettable(keep time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over && t.rec.Reported == "STOPPED" && time.Since(t.rec.ExecutionStoppedAt) >= keep
}

// cleanUp removes the stopped task's containers, and the volumes that were its own.
func (t *task) cleanUp(ctx context.Context) {
	for i := range t.rec.Task.Containers {
		_, id := t.container(t.rec.Task.Containers[i].Name)
		if err := t.engine.opts.Runtime.Remove(ctx, id); err != nil {
			t.engine.opts.Log.Warn("cannot remove a container", "container", id, "error", err)
		}
		t.engine.removeCursor(id)
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
