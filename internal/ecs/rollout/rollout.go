// Package rollout is the loop that brings services to their desired state. It follows every change of a service, its
// tasks and its cluster's nodes, asks deployment for the next step, and carries that out in one transaction. It keeps
// nothing that a restart couldn't find in the store, and never talks to nodes: they watch their tasks' rows.
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

	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

// Options configures a Loop.
type Options struct {
	Now func() time.Time
	// Settle is how long a task without a health check must have been RUNNING to count as healthy.
	Settle time.Duration
	// After calls do after d, unless stop is called first. nil means time.AfterFunc. A simulation has its own clock.
	After func(d time.Duration, do func()) (stop func() bool)
	// CarriedOut, unless nil, reports whether load balancers' processes forward as a listener's rule, or a listener, says in a view.
	CarriedOut func(v *state.View, arn string) bool
	// Late, unless nil, is told for each round of steps how long the service that was due first has waited for it.
	Late func(time.Duration)
	Log  *slog.Logger
}

// concurrency is how many services make a step at once, and so share a flush of the journal.
const concurrency = 64

// retry is how long a service waits for another step after an error of ours.
const retry = 5 * time.Second

// Loop observes the store, which marks services as due, and makes a step of each service that is due.
type Loop struct {
	scheduler *scheduler.Scheduler
	opts      Options
	wake      chan struct{} // holds one value when something is due
	resting   chan struct{} // closed by Rest
	rest      sync.Once

	mu       sync.Mutex
	due      map[string]bool            // services for the next step
	since    time.Time                  // since when there are any; zero while there are none
	changed  map[string]bool            // clusters whose services are all due
	clusters map[string]map[string]bool // services by cluster
	anywhere map[string]bool            // services whose tasks may be on instances of other clusters
	waiting  map[string]bool            // services whose last task found no room
	alarms   map[string][]string        // names of the alarms that can fail a service's deployment
	timers   map[string]func() bool     // by service; each function stops its timer
}

// New returns a loop. It must be an observer of the store that it runs on, as must the scheduler.
func New(scheduler *scheduler.Scheduler, opts Options) *Loop {
	if opts.After == nil {
		opts.After = func(d time.Duration, do func()) func() bool { return time.AfterFunc(d, do).Stop }
	}
	return &Loop{
		scheduler: scheduler,
		opts:      opts,
		wake:      make(chan struct{}, 1),
		resting:   make(chan struct{}),
		due:       map[string]bool{},
		changed:   map[string]bool{},
		clusters:  map[string]map[string]bool{},
		anywhere:  map[string]bool{},
		waiting:   map[string]bool{},
		alarms:    map[string][]string{},
		timers:    map[string]func() bool{},
	}
}

// Change implements state.Observer: it queues the services that a change concerns. A change may be undone later; an extra
// step does no harm.
func (l *Loop) Change(before, after any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	row := after
	if row == nil {
		row = before
	}
	switch row := row.(type) {
	case *state.Service:
		l.trackLocked(row, after != nil)
	case *state.Task:
		if row.ServiceArn != "" {
			l.queueLocked(row.ServiceArn)
		}
		if freed(before, after) {
			l.queueWaitingLocked(before.(*state.Task).Home())
		}
	case *state.ContainerInstance:
		if !sameHost(before, after) {
			l.changed[row.ClusterArn] = true
			l.rouseLocked()
		}
	case *state.Target:
		if row.Service != "" {
			l.queueLocked(row.Service)
		}
	case *state.Alarm:
		l.queueForAlarmLocked(row.Name())
	}
}

// trackLocked keeps the lists of services up to date, and queues the service if it is still active.
func (l *Loop) trackLocked(row *state.Service, exists bool) {
	arn, cluster := *row.ServiceArn, *row.ClusterArn
	if !exists || *row.Status == state.ServiceInactive {
		delete(l.clusters[cluster], arn)
		delete(l.anywhere, arn)
		delete(l.waiting, arn)
		delete(l.alarms, arn)
		return
	}
	l.trackAlarmsLocked(row)
	if l.clusters[cluster] == nil {
		l.clusters[cluster] = map[string]bool{}
	}
	l.clusters[cluster][arn] = true
	if usesFargate(row) {
		l.anywhere[arn] = true
	}
	l.queueLocked(arn)
}

// usesFargate reports whether a service, or any deployment or task set of it, has tasks of Fargate.
func usesFargate(row *state.Service) bool {
	return capacity.IsFargate(row.LaunchType, row.CapacityProviderStrategy) ||
		slices.ContainsFunc(row.Deployments, func(d state.Deployment) bool { return capacity.IsFargate(d.LaunchType, d.CapacityProviderStrategy) }) ||
		slices.ContainsFunc(row.TaskSets, func(t state.TaskSet) bool { return capacity.IsFargate(t.LaunchType, t.CapacityProviderStrategy) })
}

// trackAlarmsLocked keeps the list of alarms that can fail a service's deployment.
func (l *Loop) trackAlarmsLocked(row *state.Service) {
	delete(l.alarms, *row.ServiceArn)
	if len(row.Deployments) > 0 && row.AlarmsOf(&row.Deployments[0],
		nil).Status == types.ServiceDeploymentRollbackMonitorsStatusMonitoring {
		l.alarms[*row.ServiceArn] = row.DeploymentConfiguration.Alarms.AlarmNames
	}
}

// queueForAlarmLocked queues the services whose deployments an alarm can fail.
func (l *Loop) queueForAlarmLocked(alarm string) {
	for arn, names := range l.alarms {
		if slices.Contains(names, alarm) {
			l.queueLocked(arn)
		}
	}
}

// freed reports whether a task has given back what it held.
func freed(before, after any) bool {
	b, _ := before.(*state.Task)
	a, _ := after.(*state.Task)
	return b != nil && b.Holds() && (a == nil || !a.Holds())
}

// sameHost reports whether nothing of a node has changed that matters to placement.
func sameHost(before, after any) bool {
	b, _ := before.(*state.ContainerInstance)
	a, _ := after.(*state.ContainerInstance)
	return a != nil && b != nil &&
		*a.Status == *b.Status && a.AgentConnected == b.AgentConnected &&
		aws.ToString(a.CapacityProviderName) == aws.ToString(b.CapacityProviderName) &&
		reflect.DeepEqual(a.Attributes, b.Attributes) && reflect.DeepEqual(a.Capacity, b.Capacity) && reflect.DeepEqual(a.GPUs, b.GPUs)
}

// queueWaitingLocked queues the services of a cluster that wait for room.
func (l *Loop) queueWaitingLocked(cluster string) {
	for arn := range l.waiting {
		if l.clusters[cluster][arn] || l.anywhere[arn] {
			l.queueLocked(arn)
		}
	}
}

// queueLocked queues a service for the next step.
func (l *Loop) queueLocked(arn string) {
	l.due[arn] = true
	l.rouseLocked()
}

func (l *Loop) rouseLocked() {
	if l.since.IsZero() {
		l.since = l.opts.Now()
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the services that are due, and empties the queue.
func (l *Loop) take() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opts.Late != nil && !l.since.IsZero() {
		l.opts.Late(l.opts.Now().Sub(l.since))
	}
	l.since = time.Time{}
	due := l.due
	for cluster := range l.changed {
		maps.Copy(due, l.clusters[cluster])
		maps.Copy(due, l.anywhere)
	}
	l.due = map[string]bool{}
	l.changed = map[string]bool{}
	return due
}

// Run makes steps of the services until ctx ends.
func (l *Loop) Run(ctx context.Context, store *state.Store) error {
	defer l.stopTimers()
	for !l.isResting() {
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

// Step makes one step of every service that is due, and reports whether any was.
func (l *Loop) Step(ctx context.Context, store *state.Store) (bool, error) {
	due := l.take()
	return len(due) > 0, l.stepAll(ctx, store, due)
}

func (l *Loop) isResting() bool {
	select {
	case <-l.resting:
		return true
	default:
		return false
	}
}

// Rest ends all steps, so that what stops during a shutdown isn't started again.
func (l *Loop) Rest() { l.rest.Do(func() { close(l.resting) }) }

// stepAll makes one step of each service, many at a time, so that they share the journal's flushes.
func (l *Loop) stepAll(ctx context.Context, store *state.Store, due map[string]bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for arn := range due {
		g.Go(func() error { return l.stepOne(ctx, store, arn) })
	}
	return g.Wait()
}

// stepOne makes one step of a service. It decides inside the transaction, which sees the change that queued the service
// even if that wasn't durable yet.
func (l *Loop) stepOne(ctx context.Context, store *state.Store, arn string) error {
	var s *step
	err := store.Update(ctx, func(tx *state.Tx) error {
		s = l.step(tx, arn)
		l.setWaiting(arn, s.unplaced() || s.stuck) // before the writer can free a place
		return nil
	})
	if ctx.Err() != nil || errors.Is(err, state.ErrClosed) {
		return err
	}
	if err != nil {
		l.opts.Log.Error("cannot look after a service", "service", arn, "error", err)
		l.recheckAt(arn, l.opts.Now().Add(retry))
		return nil
	}
	l.recheckAt(arn, s.wake)
	return nil
}

// setWaiting records whether a service waits for room, so that room queues it.
func (l *Loop) setWaiting(arn string, waits bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.waiting, arn); waits {
		l.waiting[arn] = true
	}
}

// recheckAt schedules another step of a service, in place of the one scheduled before; a zero time schedules none.
func (l *Loop) recheckAt(arn string, at time.Time) {
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
		l.queueLocked(arn)
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
		tx:          tx,
		scheduler:   l.scheduler,
		settle:      l.opts.Settle,
		carriedOut:  l.opts.CarriedOut,
		now:         l.opts.Now().UTC().Truncate(time.Millisecond),
		row:         old.Clone(),
		daemon:      isDaemon(old),
		definitions: map[string]*state.TaskDefinition{},
	}
	switch {
	case s.row.IsExternal():
		s.runTaskSets()
	case s.shifts():
		s.runShift()
	default:
		s.run()
	}
	if s.changed {
		dropEndpoints(tx, old, s.row)
		tx.Services.Put(s.row)
	}
	return s
}
