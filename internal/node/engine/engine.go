// Package engine runs tasks on a node: it takes them durably, starts their containers in order through
// a runtime, watches them, stops them, and reports what happened, also when the agent was killed in
// between. It speaks to the control plane through the two small interfaces Reporter and Shipper only.
package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Options are what an engine needs.
type Options struct {
	Dir      string // where it keeps its records
	Owner    string // the container instance's ARN: whose containers are ours
	Runtime  runtime.Runtime
	Reporter Reporter
	Shipper  Shipper
	// Environment is what a container gets besides its own: endpoints, region, credentials, and its
	// metadata, which it asks for by its token.
	Environment func(task *acs.Task, token string) map[string]string
	// CPU units, memory and GPUs are what the node registered; no CPU or memory is no bound, and nil
	// GPUs are not checked. SimulatedGPUs says that they name no hardware.
	CPU, MemoryMiB int64
	GPUs           []string
	SimulatedGPUs  bool
	// Networks makes networks for tasks of mode awsvpc; nil has none. Connected hears of each.
	Networks  Networks
	Connected func(taskArn string, n Network)
	// Attend serves in a network namespace what a task's containers find there, until stop is called or
	// the agent ends; nil serves nothing.
	Attend func(netns string, task *acs.Task) (stop func(), err error)
	// Keep is how long a stopped task is remembered, so that it never runs again, and its containers
	// are kept to be looked at; 0 is three hours.
	Keep time.Duration
	Log  *slog.Logger
}

// Engine runs a node's tasks.
type Engine struct {
	opts   Options
	ledger *ledger
	write  func(path string, r *Record) error // Record.write but in tests

	mu      sync.Mutex
	tasks   map[string]*task // by ARN
	tokens  map[string]*task // by their containers'
	ctx     context.Context  // of Run; nil before and after
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
	e := &Engine{
		opts: opts, ledger: newLedger(opts.CPU, opts.MemoryMiB), tasks: map[string]*task{}, tokens: map[string]*task{},
		write: func(path string, r *Record) error { return r.write(path) },
	}
	return e, e.readRecords()
}

// readRecords reads what the agent before this one knew.
func (e *Engine) readRecords() error {
	if err := file.Clean(e.opts.Dir); err != nil { // it may have died while it wrote
		return err
	}
	paths, err := file.Glob(e.opts.Dir, "*.json")
	if err != nil {
		return err
	}
	for _, path := range paths {
		rec, err := readRecord(path)
		if err != nil {
			return fmt.Errorf("engine: %s: %w", path, err)
		}
		e.know(newTask(e, rec))
	}
	return nil
}

// know adds a task. The caller holds mu, or is the engine's only user.
func (e *Engine) know(t *task) {
	e.tasks[t.arn()] = t
	for _, c := range t.rec.Containers {
		e.tokens[c.Token] = t
	}
}

// Run runs the tasks until ctx ends. Containers go on then: the next agent adopts them.
func (e *Engine) Run(ctx context.Context) error {
	found, err := e.find(ctx)
	if err != nil {
		return err
	}
	e.adopt(ctx, found)
	e.removeOrphans(ctx, found)
	e.sweep(ctx)
	e.mu.Lock()
	e.ctx = nil // what comes now is the next agent's to run
	e.mu.Unlock()
	e.running.Wait()
	return ctx.Err()
}

// find lists the node's containers, for which the runtime may have to come up first.
func (e *Engine) find(ctx context.Context) (map[string]runtime.Container, error) {
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		list, err := e.opts.Runtime.List(ctx, e.opts.Owner)
		if err == nil {
			found := map[string]runtime.Container{}
			for _, c := range list {
				found[c.ID] = c
			}
			return found, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		e.opts.Log.Error("cannot list the containers; trying again", "error", err)
		pause(ctx, wait)
	}
}

// adopt goes on with the tasks that there are. Those that run already hold what they have before any
// other task gets something; the others queue in the order in which they came.
func (e *Engine) adopt(ctx context.Context, found map[string]runtime.Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ctx = ctx
	inOrder := e.inOrder()
	for _, t := range inOrder {
		if t.adopt(found) {
			e.ledger.hold(t.arn(), needOf(t.rec))
		}
	}
	for _, t := range inOrder {
		e.start(t)
	}
}

// inOrder lists the tasks as they came. The caller holds mu.
func (e *Engine) inOrder() []*task {
	return slices.SortedFunc(maps.Values(e.tasks), func(a, b *task) int {
		return cmp.Or(a.rec.TakenAt.Compare(b.rec.TakenAt), cmp.Compare(a.arn(), b.arn()))
	})
}

// start lets a task run, and has it queue for what it needs: in the order of the calls. The caller
// holds mu.
func (e *Engine) start(t *task) {
	ctx := e.ctx
	if ctx == nil {
		return // Run starts it
	}
	if !t.rec.stopped() {
		t.granted = e.ledger.ask(t.arn(), needOf(t.rec))
	}
	e.running.Go(func() { t.run(ctx) })
}

// removeOrphans ends containers that no record names: an agent of ours made them and lost its records,
// or was killed before it had removed them.
func (e *Engine) removeOrphans(ctx context.Context, found map[string]runtime.Container) {
	for _, t := range e.all() {
		for i := range t.rec.Task.Containers {
			_, id := t.container(t.rec.Task.Containers[i].Name)
			delete(found, id)
		}
	}
	for id, c := range found {
		e.opts.Log.Warn("removing a container that no task has", "container", id)
		if err := e.remove(ctx, c); err != nil {
			e.opts.Log.Error("cannot remove it", "container", id, "error", err)
		}
		e.removeCursor(id)
	}
}

func (e *Engine) remove(ctx context.Context, c runtime.Container) error {
	if c.Status == runtime.Running {
		if err := e.opts.Runtime.Stop(ctx, c.ID, 0); err != nil && !errors.Is(err, runtime.ErrNotFound) {
			return err
		}
	}
	return e.opts.Runtime.Remove(ctx, c.ID)
}

// sweepEvery is how often stopped tasks are looked at to be forgotten.
const sweepEvery = time.Minute

// sweep forgets tasks that stopped long ago, until ctx ends.
func (e *Engine) sweep(ctx context.Context) {
	for pause(ctx, min(sweepEvery, e.opts.Keep)) {
		for _, t := range e.all() {
			if t.forgettable(e.opts.Keep) {
				t.cleanUp(ctx)
				e.forget(t)
			}
		}
	}
}

// forget removes the last trace of a task.
func (e *Engine) forget(t *task) {
	if err := os.Remove(t.path()); err != nil {
		e.opts.Log.Error("cannot forget a task", "task", t.arn(), "error", err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.tasks, t.arn())
	for _, c := range t.rec.Containers {
		delete(e.tokens, c.Token)
	}
}

// all lists the tasks, so that they can be looked at without holding mu.
func (e *Engine) all() []*task {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.tasks))
}

func (e *Engine) task(arn string) *task {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tasks[arn]
}

// Invalid is the error of Take for a task that can never run.
type Invalid struct{ Err error }

// Error is error's.
func (i *Invalid) Error() string { return i.Err.Error() }

// Unwrap gives the cause.
func (i *Invalid) Unwrap() error { return i.Err }

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
		return &Invalid{err}
	}
	// A task that is to stop and was never here is recorded all the same: it is reported STOPPED.
	rec := &Record{Task: in, TakenAt: time.Now().UTC(), Stop: in.DesiredStatus == "STOPPED", Containers: map[string]*Container{}}
	for _, c := range in.Containers {
		rec.Containers[c.Name] = &Container{Token: rand.Text()}
	}
	rec.Failure = e.strange(&in)
	t := newTask(e, rec)
	if err := t.save(); err != nil {
		return err
	}
	e.know(t)
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
	return checkOrder(t)
}

// strange says which of the task's GPUs the node does not have, if any.
func (e *Engine) strange(t *acs.Task) string {
	for _, id := range gpusOf(t) {
		if e.opts.GPUs != nil && !slices.Contains(e.opts.GPUs, id) {
			return "ResourceInitializationError: this node has no GPU " + id
		}
	}
	return ""
}

// Stop asks a task to stop, if it is here.
func (e *Engine) Stop(arn string) error {
	if t := e.task(arn); t != nil {
		return t.stop()
	}
	return nil
}

// Refresh gives a task new credentials. They are on disk when it returns nil. A task that is not here,
// or has no such role, needs none.
func (e *Engine) Refresh(arn, roleType string, c *acs.IAMRoleCredentials) error {
	t := e.task(arn)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	role := &t.rec.Task.RoleCredentials
	if roleType == "TaskExecution" {
		role = &t.rec.Task.ExecutionRoleCredentials
	}
	*role = c
	return t.save()
}

// Remind has a task's end reported again, where it has ended: the control plane takes it for running.
func (e *Engine) Remind(arn string) {
	t := e.task(arn)
	if t == nil || !t.reported() {
		return
	}
	t.mu.Lock()
	r := t.reportOf("STOPPED")
	t.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx := e.ctx; ctx != nil {
		e.running.Go(func() { t.tell(ctx, r) })
	}
}

// Drain stops every task, and returns when each is stopped and reported, or ctx ends.
func (e *Engine) Drain(ctx context.Context) error {
	tasks := e.all()
	for _, t := range tasks {
		if err := t.stop(); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		if err := t.await(ctx, func() bool { return t.rec.Reported == "STOPPED" }); err != nil {
			return err
		}
	}
	return nil
}
