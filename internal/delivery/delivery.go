// Package delivery sends owed messages to an ARN or a URL: to queues, web hooks, scaling policies and CloudWatch. A message is
// written to an outbox in the same transaction as the change that it reports. The loop here removes it once it's delivered, so
// a crash may deliver it twice, but never not at all. The package knows neither what the messages mean nor where outboxes are
// kept.
package delivery

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Debt is a message that is still to be delivered.
type Debt struct {
	ID          string // in its outbox, which makes one up unless the debt brings its own
	Destination string // an ARN or a URL
	Source      string // the ARN of the sender; messages from one source to one destination are delivered one at a time
	Subject     string
	Body        string
	Since       time.Time
	Tries       int       // failed ones
	Until       time.Time // until when it's retried; zero means one try
	NotBefore   time.Time `json:",omitzero"` // when it's due at the earliest
	// Remote is whether it goes to somebody else's machine, which may hang, though the destination isn't a URL.
	Remote bool `json:",omitzero"`
	// Host is that machine's name, if the destination doesn't say it.
	Host string `json:",omitzero"`
	// Void debts are never told. While a void one is owed, no other with its ID is, and it takes the place of one that was.
	Void bool `json:",omitzero"`
}

// isRemote reports whether the debt goes to somebody else's machine.
func (d Debt) isRemote() bool {
	return d.Remote || strings.HasPrefix(d.Destination, "http://") || strings.HasPrefix(d.Destination, "https://")
}

// host returns whose machine the debt goes to, or "".
func (d Debt) host() string {
	if d.Host != "" || !d.isRemote() {
		return d.Host
	}
	u, err := url.Parse(d.Destination)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// Outbox keeps debts until they are settled. Its methods may be called concurrently.
type Outbox interface {
	// Owed returns up to limit debts that are due, the longest due first, of those that take takes, which it calls in that order.
	// It also returns when the next one will be due, or zero if none will. The channel that changed returns is closed, or gets a
	// value, when another debt may be owed or ctx ends. With an error it returns the debts that were taken before it.
	Owed(ctx context.Context, limit int, take func(Debt) bool) (
		due []Debt, next time.Time, changed func(ctx context.Context) <-chan struct{}, err error)
	// Settle removes a debt. outcome is nil if it was delivered, or else why it's given up.
	Settle(ctx context.Context, d Debt, outcome error) error
	// Postpone delays a debt after a failure.
	Postpone(ctx context.Context, d Debt, until time.Time) error
}

// Teller delivers to one kind of destination.
type Teller func(ctx context.Context, d Debt) error

// ErrGone is wrapped by errors of destinations that don't exist. Retrying is no use.
var ErrGone = errors.New("the destination is not there")

// Retry is wrapped by errors of tellers that know how long to wait before the next try, and that there is one, whatever Until says. Without
// it, the loop waits longer after each.
type Retry struct {
	After time.Duration
	Err   error
}

func (r *Retry) Error() string { return r.Err.Error() }
func (r *Retry) Unwrap() error { return r.Err }

// Route delivers to the destinations with a prefix.
type Route struct {
	Prefix string
	Tell   Teller
}

// Options are what the loop needs besides the outbox.
type Options struct {
	Now    func() time.Time
	Routes []Route // the first that matches is used
	Log    *slog.Logger
}

// All is for Owed, and takes every debt.
func All(Debt) bool { return true }

// The loop's limits: how many debts it reads at once, how many deliveries run at the same time, in all, to others' machines, to one
// destination, to one on another's machine and to all on that machine, and how long it waits after failures, from the first to the longest delay.
const (
	batch             = 256
	maxInFlight       = 64
	maxRemote         = 48
	maxPerDestination = 16
	maxPerRemote      = 4
	maxPerHost        = 12
	minDelay          = time.Second
	maxDelay          = 5 * time.Minute
	maxDoublings      = 20
	maxDestination    = 100 // the most bytes of a destination in the log
)

// Loop delivers the debts of one outbox.
type Loop struct {
	outbox Outbox
	opts   Options
	// The deliveries in progress: by id, how many to each destination, how many to each of others' machines and to all of
	// them, and between which pairs. Only dispatch uses them.
	inFlight       map[string]Debt
	perDestination map[string]int
	perHost        map[string]int
	remote         int
	busyPairs      map[pair]bool
	ended          chan string
}

// pair is a source and one of its destinations.
type pair struct{ source, destination string }

// New returns a loop over an outbox.
func New(outbox Outbox, opts Options) *Loop {
	return &Loop{
		outbox:         outbox,
		opts:           opts,
		inFlight:       map[string]Debt{},
		perDestination: map[string]int{},
		perHost:        map[string]int{},
		busyPairs:      map[pair]bool{},
		ended:          make(chan string, maxInFlight),
	}
}

// Run delivers until ctx ends. Each delivery has its own goroutine, so that a hanging web hook doesn't delay the others.
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

// Step delivers everything that is due, one debt after the other. It's for callers with a clock of their own.
func (l *Loop) Step(ctx context.Context) error {
	for {
		due, _, _, err := l.outbox.Owed(ctx, batch, All)
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

// dispatch starts the deliveries that are due, and waits until there may be more to do.
func (l *Loop) dispatch(ctx context.Context, g *errgroup.Group) error {
	if len(l.inFlight) == maxInFlight {
		return l.wait(ctx, time.Time{}, nil)
	}
	// What has to wait isn't read, or it would take the place of what needn't. It's considered again when a delivery ends.
	due, next, changed, err := l.outbox.Owed(ctx, batch, l.begin)
	if err != nil {
		for _, d := range due {
			l.end(d.ID)
		}
		return err
	}
	for _, d := range due {
		g.Go(func() error {
			defer func() { l.ended <- d.ID }()
			return l.tell(ctx, d)
		})
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	return l.wait(ctx, next, changed(watching))
}

// wait waits until a debt is newly owed or due, or a delivery ends.
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
	case id := <-l.ended:
		l.end(id)
	}
	for len(l.ended) > 0 {
		l.end(<-l.ended)
	}
	return ctx.Err()
}

// begin registers a delivery. It returns false if the delivery is in progress already or has to wait for others.
func (l *Loop) begin(d Debt) bool {
	route := pair{d.Source, d.Destination}
	if _, running := l.inFlight[d.ID]; running || len(l.inFlight) == maxInFlight ||
		l.perDestination[d.Destination] == maxPerDestination || l.busyPairs[route] {
		return false
	}
	if d.isRemote() {
		host := d.host()
		if l.remote == maxRemote || l.perDestination[d.Destination] == maxPerRemote || host != "" && l.perHost[host] == maxPerHost {
			return false
		}
		l.remote++
		l.perHost[host]++
	}
	l.inFlight[d.ID] = d
	l.perDestination[d.Destination]++
	if d.Source != "" {
		l.busyPairs[route] = true
	}
	return true
}

// end unregisters a delivery.
func (l *Loop) end(id string) {
	d := l.inFlight[id]
	delete(l.inFlight, id)
	if d.isRemote() {
		l.remote--
		if host := d.host(); l.perHost[host] == 1 {
			delete(l.perHost, host)
		} else {
			l.perHost[host]--
		}
	}
	delete(l.busyPairs, pair{d.Source, d.Destination})
	if l.perDestination[d.Destination]--; l.perDestination[d.Destination] == 0 {
		delete(l.perDestination, d.Destination)
	}
}

// tell delivers one debt, and settles or postpones it.
func (l *Loop) tell(ctx context.Context, d Debt) error {
	if d.Void {
		return l.outbox.Settle(ctx, d, nil)
	}
	outcome := l.route(d.Destination)(ctx, d)
	if ctx.Err() != nil {
		return ctx.Err() // still owed
	}
	now := l.opts.Now()
	if outcome == nil {
		return l.outbox.Settle(ctx, d, nil)
	}
	log := l.opts.Log.With("destination", d.Destination[:min(len(d.Destination), maxDestination)], "tries", d.Tries+1, "error", outcome)
	retry, again := errors.AsType[*Retry](outcome)
	if errors.Is(outcome, ErrGone) || errors.Is(outcome, ErrForbidden) || !again && !now.Before(d.Until) {
		log.Warn("giving up on a message")
		return l.outbox.Settle(ctx, d, outcome)
	}
	log.Info("will retry a message")
	delay := min(minDelay<<min(d.Tries, maxDoublings), maxDelay)
	if again {
		delay = retry.After
	}
	return l.outbox.Postpone(ctx, d, now.Add(delay))
}

// route returns the teller of a destination.
func (l *Loop) route(destination string) Teller {
	for _, r := range l.opts.Routes {
		if strings.HasPrefix(destination, r.Prefix) {
			return r.Tell
		}
	}
	return func(context.Context, Debt) error { return noRouteError{destination} }
}

// noRouteError is the error of a destination without a route.
type noRouteError struct{ destination string }

func (e noRouteError) Error() string { return "nothing here performs " + e.destination }
func (noRouteError) Unwrap() error   { return ErrGone }
