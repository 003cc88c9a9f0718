// Package engine runs tasks on a node: it accepts them durably, starts their containers in order through a runtime, watches and stops
// them, and reports what happened, even if the agent was killed in between. It reaches the control plane only through the small
// interfaces Reporter and Shipper. The node agent calls it.
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
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Options configure an engine.
type Options struct {
	Dir      string // holds the records
	Owner    string // the container instance's ARN, which marks our containers
	Runtime  runtime.Runtime
	Reporter Reporter
	Shippers map[string]Shipper // by log driver; the output of others stays on the node
	// Environment returns what a container gets besides its own variables: endpoints, region, credentials, and the metadata
	// address for its token.
	Environment func(task *acs.Task, token string) map[string]string
	// Secrets fetches secrets with the credentials of a task's execution role, by their ValueFrom; nil if the node can't.
	Secrets func(ctx context.Context, role acs.IAMRoleCredentials, wanted []acs.Secret) (map[string]string, error)
	// EnvironmentFile fetches a file of variables by its ARN with those credentials; nil if the node can't.
	EnvironmentFile func(ctx context.Context, role acs.IAMRoleCredentials, arn string) (string, error)
	// Registry gets a token of a registry of ECR's with the credentials of a task's execution role, or the node's if that is nil; nil if the
	// node can't.
	Registry func(ctx context.Context, role *acs.IAMRoleCredentials, from acs.ECRAuthData) (*runtime.RegistryAuth, error)
	// DataSets brings what lies in S3 to this machine; nil if the node can't.
	DataSets DataSets
	// Functions runs functions of AWS Lambda; nil if the node can't.
	Functions Functions
	// FileSystems mounts directories of shared file systems; nil if the node can't.
	FileSystems FileSystems
	// BlockVolumes makes volumes of a fixed size; nil if the node can't.
	BlockVolumes BlockVolumes
	// CPU (in units), MemoryMiB and GPUs are what the node registered. Zero CPU or memory means no limit, and nil GPUs aren't
	// checked. SimulatedGPUs says that they name no hardware.
	CPU           int64
	MemoryMiB     int64
	GPUs          []string
	SimulatedGPUs bool
	// Groups binds the containers of a task together; nil if the node can't.
	Groups Groups
	// Networks makes networks for awsvpc tasks; nil if the node has none. Those of plain processes have the machine's Address
	// instead, or where that is loopback one of loopback's own.
	// Connected is called for each.
	Networks  Networks
	Address   string
	Connected func(taskArn string, n Network)
	// Attend serves a task's containers inside a network namespace, until stop is called or the agent ends; nil serves nothing. The name is
	// that of the container whose namespace it is, or "" for the whole task's.
	Attend func(netns string, task *acs.Task, container string) (stop func(), err error)
	// Mounts are what every container sees besides its own.
	Mounts []runtime.Mount
	// Hosts are what a task's containers find in /etc/hosts besides their own, as name:address; nil is nothing.
	Hosts func(task *acs.Task) []string
	// NameServer returns the address at which the agent answers names in the namespaces that it attends, or "" if it answers none.
	NameServer func() string
	// Restrict makes what a task's security groups let pass hold in a network namespace, with the ports that its container publishes in
	// mode bridge. nil means that the node can't.
	Restrict func(netns string, task *acs.Task, ports []Port) error
	// Bridged is called with the addresses that a task's containers have in mode bridge, if its instance has security groups.
	Bridged func(taskArn string, addresses []string)
	// InstanceID is EC2's id of the machine, which log routers add to what they route.
	InstanceID string
	// Keep is how long the engine remembers a stopped task, so that it never runs again, and keeps its containers for inspection.
	// 0 means three hours.
	Keep time.Duration
	// Pull says when images are pulled; empty means PullDefault.
	Pull PullBehavior
	// ImageBudget is how many bytes images may take on the disk before those go that weren't used for longest; 0 means no limit.
	ImageBudget int64
	// Free returns how many bytes are free on the disk that images come to; nil leaves it to them to fill it.
	Free func() (int64, error)
	Log  *slog.Logger
}

// Engine runs a node's tasks.
type Engine struct {
	opts   Options
	ledger *ledger
	images *images

	prefetcher *prefetcher
	write      func(path string, r *Record) error // Record.write, except in tests

	pulls, starts outcomes

	healthNews atomic.Bool // whether a container's health has changed and nobody has asked since

	damaged map[string]string // where the records are that were put aside, by the ids of their tasks
	tidied  chan struct{}     // closed once no container runs that is no task's
	cleared chan struct{}     // closed once these containers are removed

	orphans []string // their ids; Run sets it, and mu guards it

	mu      sync.Mutex
	tasks   map[string]*task // by ARN
	tokens  map[string]*task // by their containers' tokens
	ctx     context.Context  // Run's; nil before and after
	running sync.WaitGroup
}

// Open reads the records of the node's tasks. Run continues them.
func Open(opts Options) (*Engine, error) {
	if opts.Keep == 0 {
		opts.Keep = 3 * time.Hour
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	opts.Pull = cmp.Or(opts.Pull, PullDefault)
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	images, err := openImages(opts.Dir, opts.Runtime, opts.Log)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		opts: opts, ledger: newLedger(opts.CPU, opts.MemoryMiB), images: images, tasks: map[string]*task{}, tokens: map[string]*task{},
		damaged: map[string]string{}, tidied: make(chan struct{}), cleared: make(chan struct{}), prefetcher: newPrefetcher(),
		write: func(path string, r *Record) error { return r.write(path) },
		pulls: newOutcomes(PullBounds), starts: newOutcomes(StartBounds),
	}
	return e, e.readRecords()
}

// readRecords reads what the last agent wrote.
func (e *Engine) readRecords() error {
	if err := file.Clean(e.opts.Dir); err != nil { // it may have died while writing
		return err
	}
	paths, err := file.Glob(e.opts.Dir, "*.json")
	if err != nil {
		return err
	}
	for _, path := range paths {
		rec, err := readRecord(path)
		if damage, ok := errors.AsType[*file.Damage](err); ok {
			if err := e.setAside(damage); err != nil {
				return fmt.Errorf("put a damaged record aside: %w", err)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("read a task's record (the task runs on; start the agent again once the file can be read): %w", err)
		}
		if rec.Owner != "" && rec.Owner != e.opts.Owner && !rec.stopped() {
			return fmt.Errorf("containers of task %s are those of %s, and an agent of %s would take them for gone, and give others what they "+
				"hold: put the instance.json back that this data directory had, or stop them and start anew in another one",
				rec.Task.Arn, rec.Owner, e.opts.Owner)
		}
		if own := e.opts.Runtime.Name(); rec.Runtime != "" && rec.Runtime != own && !rec.stopped() {
			return fmt.Errorf("containers of task %s run with %s, where an agent with %s would take them for gone, and give others what they "+
				"hold: start the agent with --runtime %[2]s", rec.Task.Arn, rec.Runtime, own)
		}
		e.add(newTask(e, rec))
	}
	return e.findDamaged()
}

// add adds a task. The caller holds mu, or is the engine's only user.
func (e *Engine) add(t *task) {
	e.tasks[t.arn()] = t
	for _, c := range t.rec.Containers {
		e.tokens[c.Token] = t
	}
}

// Run runs the tasks until ctx ends. Their containers keep running, and the next agent adopts them.
func (e *Engine) Run(ctx context.Context) error {
	found, err := e.find(ctx)
	if err != nil {
		return err
	}
	orphans := e.adopt(ctx, found)
	e.running.Go(func() { e.removeOrphans(ctx, orphans) })
	e.running.Go(func() { e.prefetch(ctx) })
	e.sweep(ctx)
	e.mu.Lock()
	e.ctx = nil // tasks from now on are the next agent's
	e.mu.Unlock()
	e.running.Wait()
	return ctx.Err()
}

// find lists the node's containers, once the runtime is up.
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

// adopt continues the node's tasks. Tasks that run already get what they hold before any other; the rest queue in the order in which they
// came. It returns the containers that are no task's.
func (e *Engine) adopt(ctx context.Context, found map[string]runtime.Container) (orphans map[string]runtime.Container) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ctx = ctx
	inOrder := e.inOrder()
	for _, t := range inOrder {
		if t.adopt(found) {
			e.ledger.hold(t.arn(), needOf(t.rec))
		}
	}
	orphans = e.orphansAmong(found)
	e.orphans = slices.Collect(maps.Keys(orphans))
	e.holdForOrphans(orphans)
	for _, t := range inOrder {
		e.start(t)
	}
	return orphans
}

// inOrder lists the tasks in the order in which they came. The caller holds mu.
func (e *Engine) inOrder() []*task {
	return slices.SortedFunc(maps.Values(e.tasks), func(a, b *task) int {
		return cmp.Or(a.rec.TakenAt.Compare(b.rec.TakenAt), cmp.Compare(a.arn(), b.arn()))
	})
}

// start starts a task, and queues it for what it needs in the order of the calls. The caller holds mu.
func (e *Engine) start(t *task) {
	ctx := e.ctx
	if ctx == nil {
		return // Run starts it
	}
	if !t.rec.stopped() {
		t.granted = e.ledger.ask(t.arn(), needOf(t.rec))
	}
	t.leftBehind = slices.ContainsFunc(e.orphans, func(id string) bool { return strings.HasPrefix(id, t.id()+"-") })
	e.running.Go(func() { t.run(ctx) })
}

// orphansAmong drops the containers that records name from those that were found.
func (e *Engine) orphansAmong(found map[string]runtime.Container) map[string]runtime.Container {
	for _, t := range e.tasks {
		for i := range t.rec.Task.Containers {
			_, id := t.container(t.rec.Task.Containers[i].Name)
			delete(found, id)
		}
	}
	for id, c := range found {
		if c.Unknown { // it may be another node's of this machine
			e.opts.Log.Error("a container's files are damaged, and no task of this node has it: look whose it is, and remove it", "container", id)
			delete(found, id)
		}
	}
	return found
}

func (e *Engine) remove(ctx context.Context, c runtime.Container) error {
	if c.Status == runtime.Running {
		if err := e.opts.Runtime.Stop(ctx, c.ID, 0); err != nil && !errors.Is(err, runtime.ErrNotFound) {
			return err
		}
	}
	return e.opts.Runtime.Remove(ctx, c.ID)
}

// sweepEvery is how often sweep looks for tasks to forget, and for images to remove.
const sweepEvery = time.Minute

// sweep forgets tasks that stopped long ago, and removes images that take too much, until ctx ends.
func (e *Engine) sweep(ctx context.Context) {
	for pause(ctx, min(sweepEvery, e.opts.Keep)) {
		for _, t := range e.all() {
			if t.isForgettable(e.opts.Keep) {
				t.cleanUp(ctx)
				e.forget(t)
			}
		}
		if err := e.tidyImages(ctx); err != nil && ctx.Err() == nil {
			e.opts.Log.Warn("cannot remove unused images", "error", err)
		}
	}
}

// forget removes all traces of a task.
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

// all lists the tasks, for use without holding mu.
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

// Invalid is what Take returns for a task that can never run.
type Invalid struct{ Err error }

// Error implements error.
func (i *Invalid) Error() string { return i.Err.Error() }

// Unwrap returns the cause.
func (i *Invalid) Unwrap() error { return i.Err }

// Take accepts a task, or a request to stop one. When it returns nil the task is on disk and may be acknowledged. Known tasks aren't
// taken again.
func (e *Engine) Take(in acs.Task) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.tasks[in.Arn]; t != nil {
		if in.DesiredStatus == "STOPPED" {
			return t.stop()
		}
		return nil
	}
	if e.damaged[idOf(in.Arn)] != "" {
		return nil // it must not run anew; Remind reports its end
	}
	if err := check(&in); err != nil {
		return &Invalid{err}
	}
	// A task that is to stop but was never here gets a record too, so that it is reported STOPPED.
	rec := &Record{
		Task:       in,
		TakenAt:    time.Now().UTC(),
		Owner:      e.opts.Owner,
		Runtime:    e.opts.Runtime.Name(),
		Stop:       in.DesiredStatus == "STOPPED",
		Containers: map[string]*Container{},
	}
	for _, c := range in.Containers {
		rec.Containers[c.Name] = &Container{Token: rand.Text()}
	}
	rec.Failure = e.unknownGPU(&in)
	t := newTask(e, rec)
	if err := t.save(); err != nil {
		return err
	}
	e.add(t)
	e.start(t)
	return nil
}

// check refuses a malformed task.
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

// unknownGPU returns a GPU of the task that the node doesn't have, or "".
func (e *Engine) unknownGPU(t *acs.Task) string {
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

// Refresh gives a task new credentials, which are on disk when it returns nil. It ignores tasks that aren't here or lack such a role.
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

// Remind reports a task's end once more if it has ended, since the control plane thinks that it runs.
func (e *Engine) Remind(arn string) {
	if path := e.damaged[idOf(arn)]; path != "" {
		e.goWhileRunning(func(ctx context.Context) {
			e.endWithoutRecord(ctx, arn, "TaskRecordDamagedError: the node's record of the task was damaged, so it was stopped. The record is "+
				path+" there")
		})
		return
	}
	t := e.task(arn)
	if t == nil || !t.reported() {
		return
	}
	t.mu.Lock()
	r := t.reportOf("STOPPED")
	t.mu.Unlock()
	e.goWhileRunning(func(ctx context.Context) { e.submit(ctx, r) })
}

// goWhileRunning does something beside the tasks, unless the engine doesn't run.
func (e *Engine) goWhileRunning(do func(ctx context.Context)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx := e.ctx; ctx != nil {
		e.running.Go(func() { do(ctx) })
	}
}

// Drain stops every task. It returns when all are stopped and reported, or when ctx ends.
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
