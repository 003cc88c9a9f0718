// Package balancers is the control plane's end of the processes that carry load balancers out. It hands them their configuration as it
// changes, writes down what they say of listeners and targets, and ends the draining of targets that nothing is under way to. A loop, and
// two paths that processes post to. Package carrier is the other end.
package balancers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/configuration"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// lost is how long a process may be silent until it counts no more.
const lost = 15 * time.Second

// Options are what the loop needs besides the store.
type Options struct {
	configuration.Options
	Now func() time.Time
	// Buckets takes access logs. It's S3.
	Buckets Buckets
	Account account.Account
	// Counted gets what a process has counted.
	Counted func(context.Context, []report.Count)
	Log     *slog.Logger
}

// Loop knows the processes.
type Loop struct {
	store *state.Store
	opts  Options

	mu        sync.Mutex
	view      *state.View // current has at least what this says; nil before the first step
	current   report.Configuration
	changed   chan struct{} // closed when current changes
	over      chan struct{} // closed by EndWaits
	processes map[string]*process
	problems  map[string]string
	logs      map[string]bucket // where load balancers' access logs go, by their ARNs
}

// process is what is known of a process besides its row.
type process struct {
	heard   time.Time
	by      string // as in its row
	version string
	number  int64 // of the counts that were taken last
	targets map[report.Key]report.Target
}

// New returns the loop over the store. Processes that it has known before may still come back.
func New(store *state.Store, o Options) *Loop {
	return &Loop{store: store, opts: o, changed: make(chan struct{}), over: make(chan struct{}), processes: map[string]*process{}, logs: map[string]bucket{}}
}

// Run steps when rows change, and each second.
func (l *Loop) Run(ctx context.Context) error {
	for {
		seen := l.store.View() // first, so that it's no later; a view that watches is for one goroutine
		v := l.store.Watch()
		v.Targets.Watch()
		if err := l.step(ctx, v, seen); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, time.Second)
		v.Changed(waiting) //nolint:errcheck // it's time to look again either way
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Step takes up the configuration that the rows make, and moves processes and targets on.
func (l *Loop) Step(ctx context.Context) error {
	v := l.store.View()
	return l.step(ctx, v, v)
}

func (l *Loop) step(ctx context.Context, v, seen *state.View) error {
	all, problems := configuration.Of(v, l.opts.Options)
	l.set(seen, all, l.logging(v), problems)
	return l.settle(ctx)
}

// set makes a configuration the current one, if it's another.
func (l *Loop) set(seen *state.View, all routing.Balancers, logs []string, problems map[string]error) {
	next := report.Configuration{Balancers: all, AccessLogs: logs}
	text, err := json.Marshal(next)
	if err != nil {
		l.opts.Log.Error("the load balancers' configuration", "error", err)
		return
	}
	sum := sha256.Sum256(text)
	version := hex.EncodeToString(sum[:12])
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.view = seen; l.current.Version == version {
		return
	}
	next.Version = version
	l.current = next
	close(l.changed)
	l.changed = make(chan struct{})
	l.problems = map[string]string{}
	for arn, problem := range problems {
		l.problems[arn] = problem.Error()
		l.opts.Log.Warn("this can't be carried out, and is left out of the load balancers' configuration", "arn", arn, "error", problem)
	}
}

// Configuration returns the configuration when it isn't the one that a process has, or nothing new after a while.
func (l *Loop) Configuration(ctx context.Context, ask report.Ask) report.Configuration {
	wait := time.NewTimer(min(ask.Wait, time.Minute))
	defer wait.Stop()
	for {
		l.mu.Lock()
		current, changed := l.current, l.changed
		l.mu.Unlock()
		if current.Version != "" && current.Version != ask.Version {
			return current
		}
		select {
		case <-changed:
		case <-l.over:
			return report.Configuration{Version: ask.Version}
		case <-wait.C:
			return report.Configuration{Version: ask.Version}
		case <-ctx.Done():
			return report.Configuration{Version: ask.Version}
		}
	}
}

// EndWaits ends all waiting for configurations, once and for all.
func (l *Loop) EndWaits() { close(l.over) }

// Take takes a process's report, which a node's key has signed, or with by "" the owner's.
func (l *Loop) Take(ctx context.Context, r report.Report, by string) error {
	now := l.opts.Now()
	targets := map[report.Key]report.Target{}
	for _, t := range r.Targets {
		targets[t.Key()] = t
	}
	l.mu.Lock()
	p := l.processes[r.Balancer]
	if p == nil {
		p = &process{}
		l.processes[r.Balancer] = p
	}
	isNew := r.Number != p.number
	p.heard = now
	p.by = by
	p.version = r.Version
	p.targets = targets
	l.mu.Unlock()
	row := &state.Balancer{ID: r.Balancer, By: by, Started: r.Started, Addresses: r.Addresses, Problems: r.Problems}
	if !row.Same(l.store.View().Balancers.Get(r.Balancer)) {
		err := l.store.Update(ctx, func(tx *state.Tx) error {
			tx.Balancers.Put(row)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if isNew && l.opts.Counted != nil {
		l.opts.Counted(ctx, r.Counts)
	}
	l.mu.Lock()
	p.number = r.Number
	l.mu.Unlock()
	return l.settle(ctx)
}

// IsCarriedOut reports whether all processes that are there forward as a listener's rule, or a listener, named as ForwardOf has it, says in a view.
func (l *Loop) IsCarriedOut(v *state.View, arn string) bool {
	l.mu.Lock()
	seen := l.view
	l.mu.Unlock()
	if seen == nil || !reflect.DeepEqual(seen.ForwardOf(arn), v.ForwardOf(arn)) {
		return false
	}
	return !l.picture(v).behind
}

// Problems says by ARN why listeners and groups aren't carried out by any process.
func (l *Loop) Problems() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.problems
}
