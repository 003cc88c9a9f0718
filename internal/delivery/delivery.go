// Package delivery sends the messages that are owed to an ARN or a URL: to queues, web hooks, scaling policies and CloudWatch. Whoever
// owes a message writes it into an outbox in the transaction of the change that it tells of, and the loop here strikes it out once it
// was delivered. So a crash may deliver twice, but never not at all. It knows neither what the messages mean nor where outboxes are kept.
package delivery

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Debt is a message that somebody has still to be told.
type Debt struct {
	ID          string // in its outbox
	Destination string // an ARN, or a URL
	Source      string // the ARN of what owes it; what one source tells one destination is told one after the other
	Subject     string
	Body        string
	Since       time.Time
	Tries       int       // that have failed
	Until       time.Time // for how long it is tried; zero is once
}

// Outbox keeps debts until they are struck out. Several of its methods may be called at a time.
type Outbox interface {
	// Owed returns up to limit debts that are due, those that are due longest first, and when the next one will be, zero where
	// none will. changed is closed, or has a value, when another one may be owed.
	Owed(ctx context.Context, limit int) (due []Debt, next time.Time, changed <-chan struct{}, err error)
	// Settle strikes out a debt that was told or, where there is an outcome, given up.
	Settle(ctx context.Context, d Debt, outcome error) error
	// Postpone puts a debt off after a failure.
	Postpone(ctx context.Context, d Debt, until time.Time) error
}

// Teller tells one kind of destination.
type Teller func(ctx context.Context, d Debt) error

// ErrGone is wrapped by errors of destinations that are not there, which makes it no use to try again.
var ErrGone = errors.New("the destination is not there")

// Route is who tells the destinations with a prefix.
type Route struct {
	Prefix string
	Tell   Teller
}

// Options are what the loop needs besides the outbox.
type Options struct {
	Now    func() time.Time
	Routes []Route // the first that fits is taken
	Log    *slog.Logger
}

// Bounds of the loop: how many debts it reads at once, how many it tells at a time, in all and to one destination, and how long it waits
// after failures, from the first to the longest.
const (
	batch          = 256
	mostAtOnce     = 64
	mostToOne      = 16
	soonest        = time.Second
	latest         = 5 * time.Minute
	maxDoublings   = 20
	maxDestination = 100 // bytes of one in the log
)

// Loop tells what one outbox holds.
type Loop struct {
	outbox Outbox
	opts   Options
	// What is being told, by id, how much of it to each destination, and which sources tell which. Only dispatch uses them.
	telling map[string]Debt
	busy    map[string]int
	ordered map[pair]bool
	told    chan string
}

// pair is a source and one of its destinations.
type pair struct{ source, destination string }

// New returns a loop over an outbox.
func New(outbox Outbox, opts Options) *Loop {
	return &Loop{outbox: outbox, opts: opts, telling: map[string]Debt{}, busy: map[string]int{}, ordered: map[pair]bool{}, told: make(chan string, mostAtOnce)}
}

// Run tells until ctx ends. Each debt is told in a goroutine of its own: a web hook that hangs must not keep the others.
func (l *Loop) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		for {
			if err := l.dispatch(ctx, g); err != nil {
				return err
			}
		}
	})
	return g.Wait()
}

// Step tells what is due, one after the other, for callers with a clock of their own.
func (l *Loop) Step(ctx context.Context) error {
	for {
		looking, cancel := context.WithCancel(ctx)
		due, _, _, err := l.outbox.Owed(looking, batch)
		cancel()
		if err != nil || len(due) == 0 {
			return err
		}
		for _, d := range due {
			if err := l.tell(ctx, d); err != nil {
				return err
			}
		}
	}
}

// dispatch starts what is due, and waits until there may be more to do.
func (l *Loop) dispatch(ctx context.Context, g *errgroup.Group) error {
	looking, cancel := context.WithCancel(ctx)
	defer cancel()
	due, next, changed, err := l.outbox.Owed(looking, batch)
	if err != nil {
		return err
	}
	for _, d := range due {
		if !l.begin(d) {
			continue // it is looked at again when one is done
		}
		g.Go(func() error {
			defer func() { l.told <- d.ID }()
			return l.tell(ctx, d)
		})
	}
	return l.wait(ctx, next, changed)
}

// wait waits until something is newly owed, told or due.
func (l *Loop) wait(ctx context.Context, next time.Time, changed <-chan struct{}) error {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(l.opts.Now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-due:
	case id := <-l.told:
		l.end(id)
	}
	for len(l.told) > 0 {
		l.end(<-l.told)
	}
	return ctx.Err()
}

// begin notes that a debt is being told, unless it is already, or has to wait for others.
func (l *Loop) begin(d Debt) bool {
	way := pair{d.Source, d.Destination}
	if _, is := l.telling[d.ID]; is || len(l.telling) == mostAtOnce || l.busy[d.Destination] == mostToOne || l.ordered[way] {
		return false
	}
	l.telling[d.ID] = d
	l.busy[d.Destination]++
	if d.Source != "" {
		l.ordered[way] = true
	}
	return true
}

// end notes that a debt is being told no more.
func (l *Loop) end(id string) {
	d := l.telling[id]
	delete(l.telling, id)
	delete(l.ordered, pair{d.Source, d.Destination})
	if l.busy[d.Destination]--; l.busy[d.Destination] == 0 {
		delete(l.busy, d.Destination)
	}
}

// tell tells one debt, and strikes it out or puts it off.
func (l *Loop) tell(ctx context.Context, d Debt) error {
	outcome := l.route(d.Destination)(ctx, d)
	if ctx.Err() != nil {
		return ctx.Err() // it is owed still
	}
	now := l.opts.Now()
	if outcome == nil {
		return l.outbox.Settle(ctx, d, nil)
	}
	log := l.opts.Log.With("destination", d.Destination[:min(len(d.Destination), maxDestination)], "tries", d.Tries+1, "error", outcome)
	if errors.Is(outcome, ErrGone) || !now.Before(d.Until) {
		log.Warn("a message is given up")
		return l.outbox.Settle(ctx, d, outcome)
	}
	log.Info("a message is put off")
	return l.outbox.Postpone(ctx, d, now.Add(min(soonest<<min(d.Tries, maxDoublings), latest)))
}

// route is who tells a destination.
func (l *Loop) route(destination string) Teller {
	for _, r := range l.opts.Routes {
		if strings.HasPrefix(destination, r.Prefix) {
			return r.Tell
		}
	}
	return func(context.Context, Debt) error { return errNobody{destination} }
}

// errNobody is the error of a destination that no route leads to.
type errNobody struct{ destination string }

func (e errNobody) Error() string { return "nothing here performs " + e.destination }
func (errNobody) Unwrap() error   { return ErrGone }
