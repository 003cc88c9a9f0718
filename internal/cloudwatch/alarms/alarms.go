// Package alarms is the loop that evaluates CloudWatch alarms: metric alarms at the end of a period, composite
// alarms when an alarm in their rules changes. It puts the actions that a change of state owes into the outbox.
// Package alarm decides an alarm's state; package delivery carries the actions out. The loop keeps everything in
// the state, so it may be killed at any time.
package alarms

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// Options holds what the loop needs besides the store.
type Options struct {
	Now     func() time.Time
	Metrics *metrics.Store
	// Region and Account are the alarms' own, for the messages to their actions.
	Region, Account string
	// Arrivals makes the reaction fast: alarms with periods of less than a minute are evaluated when data for their
	// metrics arrives, for periods that end then. With nil they are evaluated as CloudWatch evaluates them.
	Arrivals *Arrivals
	// Late, unless nil, is told how late each round begins.
	Late func(time.Duration)
}

// Alarms with periods of less than a minute are evaluated every ten seconds, the others every minute. All are
// evaluated a little late, so that data reported at a period's end counts.
const (
	short = 10 * time.Second
	long  = time.Minute
	lag   = 2 * time.Second
)

// Run evaluates alarms and hands their actions to the outbox until ctx ends.
func Run(ctx context.Context, store *state.Store, opts Options) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return evaluate(ctx, store, opts) })
	if opts.Arrivals != nil {
		g.Go(func() error { return opts.Arrivals.evaluate(ctx, store, opts) })
	}
	g.Go(func() error { return compose(ctx, store, opts) })
	g.Go(func() error { return release(ctx, store, opts) })
	return g.Wait()
}

// evaluate evaluates the metric alarms in rounds.
func evaluate(ctx context.Context, store *state.Store, opts Options) error {
	for {
		now := opts.Now()
		due := now.Add(-lag).Truncate(short).Add(short)
		timer := time.NewTimer(due.Add(lag).Sub(now))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		if opts.Late != nil {
			opts.Late(opts.Now().Sub(due.Add(lag)))
		}
		if err := Round(ctx, store, opts, due); err != nil {
			return err
		}
	}
}

// onChange runs step now and whenever something that it read has changed.
func onChange(ctx context.Context, store *state.Store, step func(*state.View) error) error {
	for {
		view := store.Watch()
		if err := step(view); err != nil {
			return err
		}
		if err := view.Changed(ctx); err != nil {
			return err
		}
	}
}
