// Package engine runs tasks on a node: it takes them durably, starts their containers in order through
// a runtime, watches them, stops them, and reports what happened, also when the agent was killed in
// between. It speaks to the control plane through the two small interfaces Reporter and Shipper only.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// Reporter tells the control plane how tasks are. An error that is Permanent is not tried again.
type Reporter interface {
	Report(ctx context.Context, r Report) error
}

// Shipper takes the output of containers whose log driver it serves.
type Shipper interface {
	// Prepare makes sure that the container's output can be taken; an error keeps it from starting.
	Prepare(ctx context.Context, c *LogSource) error
	// Ship takes the output to its end, from the cursor on; it calls saved with each cursor behind
	// which nothing needs to be sent again.
	Ship(ctx context.Context, c *LogSource, cursor string, saved func(cursor string)) error
}

// LogSource is a container whose output is shipped.
type LogSource struct {
	Driver    string
	Options   map[string]string
	TaskArn   string
	Container string
	ID        string // the runtime's
	Runtime   runtime.Runtime
}

// Permanent is an error that trying again does not help.
type Permanent struct{ Err error }

// Error is error's.
func (p *Permanent) Error() string { return p.Err.Error() }

// Unwrap gives the cause.
func (p *Permanent) Unwrap() error { return p.Err }

// Options are what an engine needs.
type Options struct {
	Dir      string // where it keeps its records
	Owner    string // the container instance's ARN: whose containers are ours
	Runtime  runtime.Runtime
	Reporter Reporter
	Shipper  Shipper
	// Environment is what every container gets besides its own: endpoints, region, metadata.
	Environment func(task *acs.Task, container string) map[string]string
	// SimulatedGPUs says that the node's GPUs name no hardware.
	SimulatedGPUs bool
	// Keep is how long a stopped task is remembered, so that it never runs again, and its containers
	// are kept to be looked at; 0 is three hours.
	Keep time.Duration
	Log  *slog.Logger
}

// Engine runs a node's tasks.
type Engine struct {
	opts Options
	pins *pins

	mu      sync.Mutex
	tasks   map[string]*task // by ARN
	ctx     context.Context  // of Run; nil before
	running sync.WaitGroup
}

// Open reads the records of the tasks that the node had. Run goes on with them.
func Open(opts Options) (*Engine, error) {
	if opts.Keep == 0 {
		opts.Keep = 3 * time.Hour
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	e := &Engine{opts: opts, pins: newPins(), tasks: map[string]*task{}}
	paths, err := filepath.Glob(filepath.Join(opts.Dir, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		rec, err := readRecord(p)
		if err != nil {
			return nil, fmt.Errorf("engine: %s: %w", p, err)
		}
		e.tasks[rec.Task.Arn] = newTask(e, rec)
	}
	return e, nil
}

// Run runs the tasks until ctx ends. Containers go on then: the next agent adopts them.
func (e *Engine) Run(ctx context.Context) error {
	list, err := e.opts.Runtime.List(ctx, e.opts.Owner)
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	found := map[string]runtime.Container{}
	for _, c := range list {
		found[c.ID] = c
	}
	e.mu.Lock()
	e.ctx = ctx
	for _, t := range e.tasks {
		t.adopt(found)
		e.start(t)
	}
	e.mu.Unlock()
	e.removeOrphans(ctx, found)
	<-ctx.Done()
	e.running.Wait()
	return ctx.Err()
}

// removeOrphans ends containers that no record names: an agent of ours made them and lost its records.
func (e *Engine) removeOrphans(ctx context.Context, found map[string]runtime.Container) {
	for _, id := range e.recorded() {
		delete(found, id)
	}
	for id := range found {
		e.opts.Log.Warn("removing a container that no task has", "container", id)
		if err := e.opts.Runtime.Stop(ctx, id, 0); err != nil {
			e.opts.Log.Error("cannot stop an orphan", "container", id, "error", err)
			continue
		}
		if err := e.opts.Runtime.Remove(ctx, id); err != nil {
			e.opts.Log.Error("cannot remove an orphan", "container", id, "error", err)
		}
	}
}

func (e *Engine) recorded() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ids []string
	for _, t := range e.tasks {
		for i := range t.rec.Task.Containers {
			ids = append(ids, t.containerID(t.rec.Task.Containers[i].Name))
		}
	}
	return ids
}

// start lets a task run. The caller holds mu.
func (e *Engine) start(t *task) {
	if e.ctx == nil {
		return // Run starts it
	}
	e.running.Go(func() {
		if t.run(e.ctx) {
			e.forget(t)
		}
	})
}

// Take takes a task, or the wish that one stops. When it returns nil, the task is on disk: it may be
// acknowledged. A task that is known is not taken again.
func (e *Engine) Take(in acs.Task) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.tasks[in.Arn]; t != nil {
		if in.DesiredStatus == "STOPPED" {
			return t.stop()
		}
		return nil
	}
	if err := check(&in); err != nil {
		return err
	}
	// A task that is to stop and was never here is recorded all the same: it is reported STOPPED.
	rec := &Record{Task: in, TakenAt: time.Now().UTC(), Stop: in.DesiredStatus == "STOPPED", Containers: map[string]*Container{}}
	for _, c := range in.Containers {
		rec.Containers[c.Name] = &Container{}
	}
	t := newTask(e, rec)
	if err := t.save(); err != nil {
		return err
	}
	e.tasks[in.Arn] = t
	e.start(t)
	return nil
}

// check refuses a task that makes no sense.
func check(t *acs.Task) error {
	if t.Arn == "" || len(t.Containers) == 0 {
		return errors.New("a task needs an ARN and containers")
	}
	seen := map[string]bool{}
	for _, c := range t.Containers {
		if c.Name == "" || seen[c.Name] {
			return fmt.Errorf("container name %q is empty or used twice", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// Running lists the tasks that have not stopped.
func (e *Engine) Running() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []string
	for arn, t := range e.tasks {
		if !t.stopped() {
			out = append(out, arn)
		}
	}
	return out
}

// Stop asks a task to stop, if it is here.
func (e *Engine) Stop(arn string) error {
	e.mu.Lock()
	t := e.tasks[arn]
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	return t.stop()
}

// Drain stops every task, and returns when each is stopped and reported, or ctx ends.
func (e *Engine) Drain(ctx context.Context) error {
	for _, arn := range e.Running() {
		if err := e.Stop(arn); err != nil {
			return err
		}
	}
	for {
		e.mu.Lock()
		var busy *task
		for _, t := range e.tasks {
			if !t.reported() {
				busy = t
				break
			}
		}
		e.mu.Unlock()
		if busy == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-busy.done:
		}
	}
}

// forget removes all traces of a task.
func (e *Engine) forget(t *task) {
	if err := os.Remove(t.path()); err != nil {
		e.opts.Log.Error("cannot forget a task", "task", t.rec.Task.Arn, "error", err)
		return
	}
	e.mu.Lock()
	delete(e.tasks, t.rec.Task.Arn)
	e.mu.Unlock()
}

// Pinned tells, for each GPU that is in use, the task and the container's id and CPU shares.
func (e *Engine) Pinned() map[string]Pin {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]Pin{}
	for _, t := range e.tasks {
		t.mu.Lock()
		for _, a := range t.rec.Task.Associations {
			if a.Type != "gpu" || len(a.Containers) == 0 {
				continue
			}
			c := t.rec.Containers[a.Containers[0]]
			if c != nil && c.Status == Running {
				out[a.Name] = Pin{TaskArn: t.rec.Task.Arn, Container: a.Containers[0], ID: t.containerID(a.Containers[0]), CPU: t.definition(a.Containers[0]).CPU}
			}
		}
		t.mu.Unlock()
	}
	return out
}

// Pin is who uses a GPU.
type Pin struct {
	TaskArn, Container, ID string
	CPU                    int64 // shares, 1,024 a core
}

// Health lists the health of containers that have a check.
func (e *Engine) Health() []acs.TaskHealth {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []acs.TaskHealth
	for _, t := range e.tasks {
		if h := t.healthReport(); len(h.Containers) > 0 {
			out = append(out, h)
		}
	}
	return out
}
