package alarms

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
)

// release moves the actions that alarms owe into the outbox. Suppressed actions follow when they no longer are.
func release(ctx context.Context, store *state.Store, opts Options) error {
	for {
		view := store.Watch()
		next, err := releaseFrom(ctx, store, view, opts)
		if err != nil {
			return err
		}
		if err := await(ctx, view, next, opts.Now()); err != nil {
			return err
		}
	}
}

// Release does one round of release, for callers with their own clock.
func Release(ctx context.Context, store *state.Store, opts Options) error {
	_, err := releaseFrom(ctx, store, store.View(), opts)
	return err
}

// await waits until something that the view read changes, or until at, unless that is zero.
func await(ctx context.Context, view *state.View, at, now time.Time) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var over <-chan time.Time
	if !at.IsZero() {
		over = time.After(at.Sub(now))
	}
	select {
	case <-view.ChangedCh(watching):
	case <-over:
	}
	return ctx.Err()
}

// releaseFrom moves what a view's alarms owe into the outbox. For suppressed actions it records what suppresses them.
// next is when a suppression may end by itself, or zero if none does.
func releaseFrom(ctx context.Context, store *state.Store, view *state.View, opts Options) (next time.Time, err error) {
	now := opts.Now()
	for a := range view.Alarms.All() {
		if a.Owed == nil {
			continue
		}
		by, until := suppressed(view, a, now)
		if by != "" && !until.IsZero() && (next.IsZero() || until.Before(next)) {
			next = until
		}
		if by != "" && by == a.SuppressedBy() {
			continue
		}
		err := store.Update(ctx, func(tx *state.Tx) error {
			current := tx.Alarms.Get(a.Name())
			if current == nil || current.Owed != a.Owed { // its state changed again, and the new state owes its own actions
				return nil
			}
			if by != "" {
				tx.SuppressAlarm(current, by)
				return nil
			}
			owe(tx, current, opts, now)
			tx.SettleAlarm(current)
			return nil
		})
		if err != nil {
			return next, err
		}
	}
	return next, nil
}

// owe puts an alarm's actions into the outbox.
func owe(tx *state.Tx, a *state.Alarm, opts Options, now time.Time) {
	message := encode(message(a, opts, now))
	for _, destination := range a.Owed.Arns {
		body := message
		if state.IsFunction(destination) {
			body = encode(toFunction(a, opts, now))
		}
		tx.Owe(state.Delivery{
			Debt:  delivery.Debt{Destination: destination, Source: a.Arn(), Subject: subject(a, opts.Region), Body: body},
			Alarm: a.Name(),
			Moved: a.Moved(),
		}, now)
	}
}

// suppressed returns what keeps an alarm from acting and until when, or "" if nothing does.
func suppressed(view *state.View, a *state.Alarm, now time.Time) (types.ActionsSuppressedBy, time.Time) {
	c := a.Composite
	if c == nil || c.ActionsSuppressor == nil {
		return "", time.Time{}
	}
	s := alarm.Suppressor{
		Wait:      time.Duration(aws.ToInt32(c.ActionsSuppressorWaitPeriod)) * time.Second,
		Extension: time.Duration(aws.ToInt32(c.ActionsSuppressorExtensionPeriod)) * time.Second,
	}
	if other := child(view, *c.ActionsSuppressor); other != nil {
		s.State = alarm.State(other.State().Value)
		s.LeftAlarm = other.LeftAlarm
	}
	by, until := s.SuppressedBy(a.Moved(), now)
	return types.ActionsSuppressedBy(by), until
}
