// Package rollout is the loop that keeps services at what they are wanted to be: it follows every change of
// a service, its tasks and its cluster's nodes, has deployment decide the next step, and carries it
// out in one transaction. All that it must not forget is in the store; the rest it finds out anew when it
// starts. It never talks to a node: that sees its tasks' rows.
package rollout

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

// Options are what the loop needs besides the store.
type Options struct {
	Now func() time.Time
	// Settle is how long a task without a health check must have been RUNNING to count as healthy.
	Settle time.Duration
	// After has something done after a while, unless it is stopped; nil is time.AfterFunc. A simulation has a
	// clock of its own.
	After func(d time.Duration, do func()) (stop func() bool)
	Log   *slog.Logger
}

// together is how many services are looked at in one flush of the journal.
const together = 64

// retry is when a service is looked at again after an error of ours.
const retry = 5 * time.Second

// Loop is an observer of the store, which tells it what to look at, and the loop itself.
type Loop struct {
	scheduler *scheduler.Scheduler
	opts      Options
	wake      chan struct{} // holds one when something is due
	resting   chan struct{} // closed by Rest
	rest      sync.Once

	mu       sync.Mutex
	due      map[string]bool            // services to look at
	changed  map[string]bool            // clusters whose services are all to be looked at
	clusters map[string]map[string]bool // services by cluster
	waiting  map[string]bool            // services whose last task found no room
	watching map[string][]string        // names of the alarms that a service's deployment is failed by
	timers   map[string]func() bool     // what stops each
}

// New returns a loop that is to observe the store that it will be run on, as the scheduler does.
func New(scheduler *scheduler.Scheduler, opts Options) *Loop {
	if opts.After == nil {
		opts.After = func(d time.Duration, do func()) func() bool { return time.AfterFunc(d, do).Stop }
	}
	return &Loop{
		scheduler: scheduler, opts: opts, wake: make(chan struct{}, 1), resting: make(chan struct{}), due: map[string]bool{}, changed: map[string]bool{},
		clusters: map[string]map[string]bool{}, waiting: map[string]bool{}, watching: map[string][]string{}, timers: map[string]func() bool{},
	}
}

// Change is state.Observer's: it notes whom a change concerns. It may come to nothing; looking does no harm.
func (l *Loop) Change(before, after any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := after
	if row == nil {
		row = before
	}
	switch row := row.(type) {
	case *state.Service:
		l.know(row, after != nil)
	case *state.Task:
		if row.ServiceArn != "" {
			l.mark(row.ServiceArn)
		}
		if freed(before, after) {
			l.markWaiting(*row.ClusterArn)
		}
	case *state.ContainerInstance:
		if !sameHost(before, after) {
			l.changed[row.ClusterArn] = true
			l.rouse()
		}
	case *state.Alarm:
		l.markWatching(row.Name())
	}
}

// know keeps the list of services.
func (l *Loop) know(row *state.Service, there bool) {
	arn, cluster := *row.ServiceArn, *row.ClusterArn
	if !there || *row.Status == state.ServiceInactive {
		delete(l.clusters[cluster], arn)
		delete(l.waiting, arn)
		delete(l.watching, arn)
		return
	}
	l.watch(row)
	if l.clusters[cluster] == nil {
		l.clusters[cluster] = map[string]bool{}
	}
	l.clusters[cluster][arn] = true
	l.mark(arn)
}

// watch keeps the list of alarms that matter.
func (l *Loop) watch(row *state.Service) {
	delete(l.watching, *row.ServiceArn)
	if len(row.Deployments) > 0 && row.AlarmsOf(&row.Deployments[0], nil).Status == types.ServiceDeploymentRollbackMonitorsStatusMonitoring {
		l.watching[*row.ServiceArn] = row.DeploymentConfiguration.Alarms.AlarmNames
	}
}

// markWatching has the services looked at whose deployments an alarm may fail.
func (l *Loop) markWatching(alarm string) {
	for arn, names := range l.watching {
		if slices.Contains(names, alarm) {
			l.mark(arn)
		}
	}
}

// freed says whether a task has given back what it held.
func freed(before, after any) bool {
	b, _ := before.(*state.Task)
	a, _ := after.(*state.Task)
	return b != nil && b.Holds() && (a == nil || !a.Holds())
}

// sameHost says whether nothing has changed of a node that counts for placement.
func sameHost(before, after any) bool {
	b, _ := before.(*state.ContainerInstance)
	a, _ := after.(*state.ContainerInstance)
	return a != nil && b != nil && *a.Status == *b.Status && aws.ToString(a.CapacityProviderName) == aws.ToString(b.CapacityProviderName) && a.AgentConnected == b.AgentConnected &&
		reflect.DeepEqual(a.Attributes, b.Attributes) && reflect.DeepEqual(a.Capacity, b.Capacity) && reflect.DeepEqual(a.GPUs, b.GPUs)
}

// markWaiting has the services of a cluster looked at that wait for room.
func (l *Loop) markWaiting(cluster string) {
	for arn := range l.waiting {
		if l.clusters[cluster][arn] {
			l.mark(arn)
		}
	}
}

// mark has a service looked at. The caller holds mu.
func (l *Loop) mark(arn string) {
	l.due[arn] = true
	l.rouse()
}

func (l *Loop) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the services to look at, and forgets that they are.
func (l *Loop) take() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := l.due
	for cluster := range l.changed {
		maps.Copy(due, l.clusters[cluster])
	}
	l.due, l.changed = map[string]bool{}, map[string]bool{}
	return due
}

// Run looks after the services until ctx ends.
func (l *Loop) Run(ctx context.Context, store *state.Store) error {
	defer l.stopTimers()
	for !l.rests() {
		if _, err := l.Step(ctx, store); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.resting:
		case <-l.wake:
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// Step looks once at every service that is due, and says whether any was.
func (l *Loop) Step(ctx context.Context, store *state.Store) (bool, error) {
	due := l.take()
	return len(due) > 0, l.lookAt(ctx, store, due)
}

func (l *Loop) rests() bool {
	select {
	case <-l.resting:
		return true
	default:
		return false
	}
}

// Rest has the loop do nothing any more, so that what stops is not started again before the end.
func (l *Loop) Rest() { l.rest.Do(func() { close(l.resting) }) }

// lookAt makes one step of each service, many at a time, so that they share the journal's flushes.
func (l *Loop) lookAt(ctx context.Context, store *state.Store, due map[string]bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(together)
	for arn := range due {
		g.Go(func() error { return l.look(ctx, store, arn) })
	}
	return g.Wait()
}

// look makes one step of a service. It decides inside the transaction: a change that marked the service is
// seen there, also if it was not durable yet when it did.
func (l *Loop) look(ctx context.Context, store *state.Store, arn string) error {
	var s *step
	err := store.Update(ctx, func(tx *state.Tx) error {
		s = l.step(tx, arn)
		l.waits(arn, s.unplaced() || s.stuck) // before the writer can free a place
		return nil
	})
	if ctx.Err() != nil || errors.Is(err, state.ErrClosed) {
		return err
	}
	if err != nil {
		l.opts.Log.Error("cannot look after a service", "service", arn, "error", err)
		l.again(arn, l.opts.Now().Add(retry))
		return nil
	}
	l.again(arn, s.wake)
	return nil
}

// waits has a service that waits for room looked at when there is some.
func (l *Loop) waits(arn string, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.waiting, arn); waits {
		l.waiting[arn] = true
	}
}

// again has a service looked at once more at a time.
func (l *Loop) again(arn string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stop := l.timers[arn]; stop != nil {
		stop()
		delete(l.timers, arn)
	}
	if at.IsZero() {
		return
	}
	l.timers[arn] = l.opts.After(at.Sub(l.opts.Now()), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.mark(arn)
	})
}

func (l *Loop) stopTimers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, stop := range l.timers {
		stop()
	}
}

// step makes a service's next step within a transaction.
func (l *Loop) step(tx *state.Tx, arn string) *step {
	old := tx.Services.Get(arn)
	if old == nil || *old.Status == state.ServiceInactive {
		return &step{}
	}
	s := &step{
		tx: tx, scheduler: l.scheduler, settle: l.opts.Settle, now: l.opts.Now().UTC().Truncate(time.Millisecond),
		row: old.Clone(), daemon: isDaemon(old), definitions: map[string]*state.TaskDefinition{},
	}
	if s.row.IsExternal() {
		s.runTaskSets()
	} else {
		s.run()
	}
	if s.changed {
		tx.Services.Put(s.row)
	}
	return s
}
