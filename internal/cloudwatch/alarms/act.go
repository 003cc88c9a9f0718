package alarms

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/state"
)

// Action is what is to be done for an alarm that is in a state.
type Action struct {
	Arn   string // or the URL of a webhook
	Alarm *state.Alarm
	From  types.StateValue // the state before
}

// maxActing bounds how many alarms' actions are done at a time.
const maxActing = 16

// act does the actions that alarms owe, and those that are suppressed once they no longer are. Each alarm's are done in a
// goroutine of their own: a webhook that hangs must not keep the others.
func act(ctx context.Context, store *state.Store, opts Options) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		acting, done := map[string]bool{}, make(chan string, maxActing)
		for {
			view := store.Watch()
			owing, next, err := owed(ctx, store, view, opts.Now())
			if err != nil {
				return err
			}
			for _, a := range owing {
				if acting[a.Name()] || len(acting) == maxActing {
					continue // it is looked at again when one is done
				}
				acting[a.Name()] = true
				g.Go(func() error {
					defer func() { done <- a.Name() }()
					return settle(ctx, store, opts, a)
				})
			}
			if err := await(ctx, view, next, opts.Now(), acting, done); err != nil {
				return err
			}
		}
	})
	return g.Wait()
}

// await waits until what a view has read changes, an alarm's actions are done, or it is a time, if there is one.
func await(ctx context.Context, view *state.View, at, now time.Time, acting map[string]bool, done <-chan string) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	var over <-chan time.Time
	if !at.IsZero() {
		over = time.After(at.Sub(now))
	}
	select {
	case <-view.ChangedCh(watching):
	case name := <-done:
		delete(acting, name)
	case <-over:
	}
	return ctx.Err()
}

// owed are the alarms that owe actions and are not suppressed; it notes what suppresses the others. next is when something
// may cease to be suppressed; zero where nothing does by itself.
func owed(ctx context.Context, store *state.Store, view *state.View, now time.Time) (alarms []*state.Alarm, next time.Time, err error) {
	for a := range view.Alarms.All() {
		if a.Owed == nil {
			continue
		}
		by, until := suppressed(view, a, now)
		if by == "" {
			alarms = append(alarms, a)
			continue
		}
		if !until.IsZero() && (next.IsZero() || until.Before(next)) {
			next = until
		}
		if by != a.SuppressedBy() {
			if err := suppress(ctx, store, a, by); err != nil {
				return nil, next, err
			}
		}
	}
	return alarms, next, nil
}

// suppressed says what keeps an alarm from acting, and until when; "" where nothing does.
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
		s.State, s.LeftAlarm = alarm.State(other.State().Value), other.LeftAlarm
	}
	by, until := s.Suppresses(a.Moved(), now)
	return types.ActionsSuppressedBy(by), until
}

// suppress notes what keeps an alarm from acting. It goes on to owe it.
func suppress(ctx context.Context, store *state.Store, a *state.Alarm, by types.ActionsSuppressedBy) error {
	return store.Update(ctx, func(tx *state.Tx) error {
		if now := tx.Alarms.Get(a.Name()); now != nil && now.Owed == a.Owed {
			tx.SuppressAlarm(now, by)
		}
		return nil
	})
}

// settle does what one alarm owes, and keeps in its history how that went.
func settle(ctx context.Context, store *state.Store, opts Options, a *state.Alarm) error {
	outcomes := make([]error, len(a.Owed.Arns))
	for i, arn := range a.Owed.Arns {
		if outcomes[i] = opts.Act(ctx, Action{arn, a, a.Owed.From}); ctx.Err() != nil {
			return ctx.Err() // it is owed still
		}
	}
	return store.Update(ctx, func(tx *state.Tx) error {
		now := tx.Alarms.Get(a.Name())
		if now == nil {
			return nil
		}
		for i, arn := range a.Owed.Arns {
			tx.AddAlarmHistory(a, types.HistoryItemTypeAction, told(arn, outcomes[i]), outcome(a, arn, outcomes[i]), opts.Now())
		}
		if now.Owed == a.Owed { // else it has gone on to another state, which owes its own
			tx.SettleAlarm(now)
		}
		return nil
	})
}

func told(arn string, err error) string {
	if err != nil {
		return fmt.Sprintf("Failed to execute action %s. Received error: %q", arn, err)
	}
	return "Successfully executed action " + arn
}

func outcome(a *state.Alarm, arn string, err error) map[string]any {
	out := map[string]any{"version": "1.0", "actionState": "Succeeded", "notificationResource": arn, "stateUpdateTimestamp": a.Moved().UnixMilli()}
	if err != nil {
		out["actionState"], out["error"] = "Failed", err.Error()
	}
	return out
}
