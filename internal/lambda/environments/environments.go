// Package environments runs functions: it starts execution environments as tasks of ECS, hands invocations to them and ends them when they
// have had nothing to do for a while. What runs in an environment asks for work and answers by the Lambda Runtime API, which its node serves
// and passes on to here. Package pool decides; the invocations themselves are in memory, and whoever needs one to outlive this process keeps
// it. It's called by package lambda, and by the handlers for nodes.
package environments

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/lambda/pool"
	"github.com/pintle/pintle/internal/state"
)

// ECS is what environments are tasks of.
type ECS interface {
	RegisterTaskDefinition(context.Context, *ecs.RegisterTaskDefinitionInput, ...func(*ecs.Options)) (*ecs.RegisterTaskDefinitionOutput, error)
	DeregisterTaskDefinition(
		context.Context, *ecs.DeregisterTaskDefinitionInput, ...func(*ecs.Options),
	) (*ecs.DeregisterTaskDefinitionOutput, error)
	RunTask(context.Context, *ecs.RunTaskInput, ...func(*ecs.Options)) (*ecs.RunTaskOutput, error)
	StopTask(context.Context, *ecs.StopTaskInput, ...func(*ecs.Options)) (*ecs.StopTaskOutput, error)
}

// Logs is where what functions say goes.
type Logs interface {
	CreateLogGroup(
		context.Context, *cloudwatchlogs.CreateLogGroupInput, ...func(*cloudwatchlogs.Options),
	) (*cloudwatchlogs.CreateLogGroupOutput, error)
	CreateLogStream(
		context.Context, *cloudwatchlogs.CreateLogStreamInput, ...func(*cloudwatchlogs.Options),
	) (*cloudwatchlogs.CreateLogStreamOutput, error)
	PutLogEvents(
		context.Context, *cloudwatchlogs.PutLogEventsInput, ...func(*cloudwatchlogs.Options),
	) (*cloudwatchlogs.PutLogEventsOutput, error)
}

// Options are what environments need besides the store.
type Options struct {
	account.Account
	ECS  ECS
	Logs Logs
	Code func(sha string) (io.ReadCloser, error) // opens a zip file
	// Images are those in which functions of runtimes run, by the runtimes' names; AWS's base images for all others.
	Images  map[string]string
	Cluster string // in which functions run whose tags name none
	// Suits reports whether a container instance has what a definition's tasks and such constraints ask for besides room; nil finds that each does.
	Suits func(*state.View, *state.ContainerInstance, *state.TaskDefinition, []ecstypes.PlacementConstraint) bool
	// Measure puts values of functions' metrics; nil drops them. It may wait for the disk.
	Measure func([]Figure)
	Keep    time.Duration // of environments with nothing to do; 0 means five minutes
	Log     *slog.Logger
}

// Work is an invocation of a version of a function.
type Work struct {
	RequestID string
	Version   *state.FunctionVersion
	Tags      map[string]string // the function's
	ARN       string            // by which it was invoked
	Payload   []byte
	Context   string // the client's, in Base64
	Trace     string
	Reserved  *int32 // the function's own concurrency, or nil
	Shared    int    // how many invocations of all functions without one may run
	Tail      bool   // whether the end of the log is wanted
}

// Result is what an invocation came to.
type Result struct {
	Payload []byte
	Error   string // "", or Unhandled: then the payload tells of the error
	Tail    []byte // the end of the log
}

// Manager has the environments. Its methods may be called from any goroutine.
type Manager struct {
	store   *state.Store
	opts    Options
	lines   chan line
	figures chan Figure
	news    chan struct{} // gets a value when there are other environments to watch

	// What starts and stops environments works until Run ends, which waits for it.
	work    context.Context
	endWork context.CancelFunc
	working sync.WaitGroup

	wishing sync.Mutex // of its own, so that calls to ECS needn't wait for mu
	wishes  map[wish][]ecstypes.PlacementConstraint

	mu          sync.Mutex
	closed      bool // Run has ended: nothing is started or stopped any more
	groups      map[string]*group
	tasks       map[string]*environment // by their tasks' ARNs
	concurrency map[string]int          // invocations of each function
	total       int                     // of all functions
	shared      int                     // of those without reserved concurrency
	definitions sync.Mutex              // held while task definitions are registered
	known       map[string]known        // task definitions, by function and version
}

// group is the environments of one state of a version.
type group struct {
	key     string
	version *state.FunctionVersion
	tags    map[string]string
	waiting []*invocation
	all     map[string]*environment // by ID
	retired bool
}

// environment is a task that runs a function.
type environment struct {
	id      string
	group   *group
	tags    map[string]string // the function's, as it was started
	cluster string
	task    string // its ARN; "" while it is being started
	stream  string
	phase   phase
	since   time.Time // when the phase began
	ran     time.Time // when its task ran
	initial time.Duration
	current *invocation
	timer   *time.Timer // ends what takes too long
	wake    chan struct{}
	ended   bool
}

// phase is what an environment does.
type phase string

const (
	starting phase = "starting"
	idle     phase = "idle"
	busy     phase = "busy"
	leaving  phase = "leaving" // it has answered, and hasn't asked for more
)

// invocation is one that somebody waits for.
type invocation struct {
	Work
	done     chan outcome // gets one value
	handed   time.Time    // zero until an environment has it
	cold     bool
	timedOut bool
}

// limit is how long the invocation may take.
func (inv *invocation) limit() time.Duration {
	return time.Duration(*inv.Version.Timeout) * time.Second
}

type outcome struct {
	result Result
	err    error
}

const defaultKeep = 5 * time.Minute

// New returns a manager without environments. Run must run for them to be watched.
func New(store *state.Store, opts Options) *Manager {
	if opts.Keep == 0 {
		opts.Keep = defaultKeep
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Measure == nil {
		opts.Measure = func([]Figure) {}
	}
	work, endWork := context.WithCancel(context.Background())
	return &Manager{
		work: work, endWork: endWork, store: store, opts: opts, lines: make(chan line, maxLines), figures: make(chan Figure, maxFigures), news: make(chan struct{}, 1),
		groups: map[string]*group{}, tasks: map[string]*environment{}, concurrency: map[string]int{}, known: map[string]known{},
		wishes: map[wish][]ecstypes.PlacementConstraint{},
	}
}

// Do runs an invocation to its end. A refusal says that it wasn't begun. If ctx ends, one that has been begun goes on.
func (m *Manager) Do(ctx context.Context, w Work) (Result, error) {
	inv := &invocation{Work: w, done: make(chan outcome, 1)}
	if err := m.admit(inv); err != nil {
		m.measure(*w.Version.FunctionName, "Throttles", "Count", 1)
		return Result{}, err
	}
	select {
	case o := <-inv.done:
		return o.result, o.err
	case <-ctx.Done():
		m.abandon(inv)
		return Result{}, ctx.Err()
	}
}

// admit has an invocation wait for an environment, or refuses it because too many run.
func (m *Manager) admit(inv *invocation) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := *inv.Version.FunctionName
	switch {
	case inv.Reserved != nil && m.concurrency[name] >= int(*inv.Reserved):
		return throttled(types.ThrottleReasonReservedFunctionConcurrentInvocationLimitExceeded)
	case inv.Reserved == nil && m.shared >= inv.Shared:
		return throttled(types.ThrottleReasonConcurrentInvocationLimitExceeded)
	}
	m.count(inv, 1)
	key := state.FunctionKey(name, *inv.Version.Version) + " " + *inv.Version.RevisionId
	g := m.groups[key]
	if g == nil {
		g = &group{key: key, version: inv.Version, tags: inv.Tags, all: map[string]*environment{}}
		m.groups[key] = g
	}
	g.tags = inv.Tags
	g.waiting = append(g.waiting, inv)
	m.decide(g)
	return nil
}

// count counts an invocation, or no longer. The caller holds mu.
func (m *Manager) count(inv *invocation, by int) {
	name := *inv.Version.FunctionName
	m.total += by
	if inv.Reserved == nil {
		m.shared += by
	}
	if m.concurrency[name] += by; m.concurrency[name] == 0 {
		delete(m.concurrency, name)
	}
	if by > 0 {
		m.measure(name, concurrent, "Count", float64(m.concurrency[name]))
		m.measure("", concurrent, "Count", float64(m.total))
		m.measure("", "UnreservedConcurrentExecutions", "Count", float64(m.shared))
	}
}

func throttled(reason types.ThrottleReason) error {
	return &types.TooManyRequestsException{Message: aws.String("Rate Exceeded."), Reason: reason, RetryAfterSeconds: aws.String("1")}
}

// abandon forgets an invocation that nobody waits for and no environment has.
func (m *Manager) abandon(inv *invocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.groups {
		if i := slices.Index(g.waiting, inv); i >= 0 {
			g.waiting = slices.Delete(g.waiting, i, i+1)
			m.count(inv, -1)
			return
		}
	}
}

// decide does what pool says of a group, and returns when to look again. The caller holds mu.
func (m *Manager) decide(g *group) (next time.Time) {
	s := pool.Snapshot{Waiting: len(g.waiting), Retired: g.retired, Keep: m.opts.Keep, Now: m.opts.Now()}
	for _, e := range g.all {
		switch e.phase {
		case starting, leaving: // one that has answered will ask for more at once
			s.Starting++
		case idle:
			s.Idle = append(s.Idle, pool.Idle{ID: e.id, Since: e.since})
		}
	}
	p := pool.Decide(s)
	for _, id := range p.Assign {
		e := g.all[id]
		e.current = g.waiting[0]
		g.waiting = g.waiting[1:]
		m.enter(e, busy)
		e.wakeUp()
	}
	for _, id := range p.End {
		m.end(g.all[id])
	}
	if m.closed {
		for len(g.waiting) > 0 {
			m.failFirst(g, outcome{err: errClosed})
		}
		return time.Time{}
	}
	for range p.Start {
		e := &environment{id: state.EnvironmentStarter + state.NewID(), group: g, tags: g.tags, wake: make(chan struct{}, 1)}
		m.enter(e, starting)
		g.all[e.id] = e
		m.working.Go(func() { m.start(e) })
	}
	if len(g.all)+len(g.waiting) == 0 {
		delete(m.groups, g.key)
	}
	return p.Next
}

// close ends what works for environments, and the invocations that none has. The next process ends the environments.
func (m *Manager) close() {
	m.mu.Lock()
	m.closed = true
	for _, g := range m.groups {
		m.decide(g)
		for _, e := range g.all {
			if e.timer != nil {
				e.timer.Stop()
			}
		}
	}
	m.mu.Unlock()
	m.endWork()
	m.working.Wait()
}

// limit has something done to an environment after a time. The caller holds mu.
func (m *Manager) limit(e *environment, after time.Duration, do func()) {
	if !m.closed {
		e.timer = time.AfterFunc(after, do)
	}
}

func (m *Manager) enter(e *environment, p phase) {
	e.phase = p
	e.since = m.opts.Now()
}

func (e *environment) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// end takes an environment out of use and has its task stopped. The caller holds mu.
func (m *Manager) end(e *environment) {
	if e.ended {
		return
	}
	e.ended = true
	if e.timer != nil {
		e.timer.Stop()
	}
	delete(e.group.all, e.id)
	delete(m.tasks, e.task)
	e.wakeUp()
	if e.task != "" { // or else start does it
		m.beginStop(e)
	}
}

// minLeave is how long an environment that has answered has at least to ask for more.
const minLeave = time.Second

// finish tells what an invocation came to. What is left of its time is what the runtime has to ask for the next one. The caller holds mu.
func (m *Manager) finish(e *environment, r Result) {
	inv := e.current
	e.current = nil
	if e.timer != nil {
		e.timer.Stop()
	}
	m.enter(e, leaving)
	left := inv.handed.Add(inv.limit()).Sub(e.since)
	m.limit(e, max(left, minLeave), func() { m.endIf(e, leaving) })
	m.count(inv, -1)
	r.Tail = m.report(e, inv, r)
	inv.done <- outcome{result: r}
}

// endIf ends an environment that is still in a phase, and others take its place.
func (m *Manager) endIf(e *environment, p phase) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !e.ended && e.phase == p {
		m.end(e)
		m.decide(e.group)
	}
}

// fail ends an environment that couldn't be made ready, and the invocation that it has, or else the one that has waited longest. The caller holds
// mu.
func (m *Manager) fail(e *environment, o outcome) {
	if e.ended {
		return
	}
	if e.current == nil {
		m.end(e)
		m.failFirst(e.group, o)
	} else {
		if o.err != nil {
			o.result = unhandled("Runtime.ExitError", "RequestId: %s Error: %v", e.current.RequestID, o.err)
		}
		m.finish(e, o.result)
		m.end(e)
	}
	m.decide(e.group)
}

// failFirst ends the invocation of a group that has waited longest. The caller holds mu.
func (m *Manager) failFirst(g *group, o outcome) {
	if len(g.waiting) == 0 {
		return
	}
	inv := g.waiting[0]
	g.waiting = g.waiting[1:]
	m.count(inv, -1)
	m.measure(*inv.Version.FunctionName, "Errors", "Count", 1)
	m.measure(*inv.Version.FunctionName, "Invocations", "Count", 1)
	inv.done <- o
}

// errClosed is the error of an invocation that no environment has when the control plane ends.
var errClosed = notReady("the control plane is ending.")

// notReady is the error of an environment that can't be had.
func notReady(format string, args ...any) error {
	return account.RefuseWith(http.StatusBadGateway, "ResourceNotReadyException", "The function has no execution environment: "+format, args...)
}

// unhandled is the result of an invocation that the runtime didn't answer.
func unhandled(kind, format string, args ...any) Result {
	text := fmt.Sprintf(format, args...)
	return Result{Error: "Unhandled", Payload: encode(map[string]string{"errorType": kind, "errorMessage": text})}
}
