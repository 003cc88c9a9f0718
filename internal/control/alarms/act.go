package alarms

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/state"
)

// Action is what is to be done for an alarm that is in a state.
type Action struct {
	Arn   string // or the URL of a webhook
	Alarm *state.Alarm
	From  types.StateValue // the state before
}

// maxActing bounds how many actions are done at a time: one that hangs must not keep the others.
const maxActing = 16

// act does the actions that alarms owe.
func act(ctx context.Context, store *state.Store, opts Options) error {
	return onChange(ctx, store, func(view *state.View) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(maxActing)
		for a := range view.Alarms.All() {
			if a.Owed != nil {
				g.Go(func() error { return settle(ctx, store, opts, a) })
			}
		}
		return g.Wait()
	})
}

// settle does what one alarm owes, and keeps in its history how that went.
func settle(ctx context.Context, store *state.Store, opts Options, a *state.Alarm) error {
	suppressed := suppressor(store.View(), a)
	outcomes := make([]error, len(a.Owed.Arns))
	for i, arn := range a.Owed.Arns {
		if suppressed != "" {
			outcomes[i] = fmt.Errorf("suppressed by alarm %s", suppressed)
			continue
		}
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
			c := *now
			c.Owed = nil
			tx.Alarms.Put(&c)
		}
		return nil
	})
}

// suppressor is the alarm that keeps a composite alarm from acting: it does while it is in ALARM.
func suppressor(view *state.View, a *state.Alarm) string {
	if a.Composite == nil || a.Composite.ActionsSuppressor == nil {
		return ""
	}
	by := child(view, *a.Composite.ActionsSuppressor)
	if by == nil || by.State().Value != types.StateValueAlarm {
		return ""
	}
	return by.Name()
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
