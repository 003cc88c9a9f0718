package alarms

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/state"
)

// compose keeps the composite alarms in the states that follow from their rules.
func compose(ctx context.Context, store *state.Store, opts Options) error {
	return onChange(ctx, store, func(view *state.View) error {
		if len(compositeChanges(view)) == 0 {
			return nil
		}
		return store.Update(ctx, func(tx *state.Tx) error {
			for _, c := range compositeChanges(tx.View) {
				tx.SetAlarmState(c.alarm, c.to, opts.Now())
			}
			return nil
		})
	})
}

// compositeChanges returns the composite alarms whose state must change. Composite alarms that depend on these follow
// in the next step.
func compositeChanges(view *state.View) []change {
	var changes []change
	for a := range view.Alarms.All() {
		if a.Composite == nil {
			continue
		}
		rule, err := alarm.ParseRule(aws.ToString(a.Composite.AlarmRule))
		if err != nil {
			continue // can't happen: PutCompositeAlarm checked the rule
		}
		to := rule.Eval(func(name string) alarm.State { return stateOf(view, name) })
		if types.StateValue(to) != a.Composite.StateValue {
			reason, data := compositeReason(view, rule)
			changes = append(changes, change{a, state.AlarmState{Value: types.StateValue(to), Reason: reason, Data: data}})
		}
	}
	return changes
}

func stateOf(view *state.View, name string) alarm.State {
	if a := child(view, name); a != nil {
		return alarm.State(a.State().Value)
	}
	return alarm.InsufficientData
}

// child returns the alarm that a rule names, by its name or its ARN.
func child(view *state.View, name string) *state.Alarm {
	if _, short, ok := strings.Cut(name, ":alarm:"); ok && strings.HasPrefix(name, "arn:") {
		name = short
	}
	return view.Alarms.Get(name)
}

// compositeReason names the alarm in a rule that changed last, in words and as StateReasonData.
func compositeReason(view *state.View, rule *alarm.Rule) (reason, data string) {
	var last *state.Alarm
	for _, name := range rule.Children() {
		if a := child(view, name); a != nil && (last == nil || a.Moved().After(last.Moved())) {
			last = a
		}
	}
	if last == nil {
		return "The rule names no alarm.", ""
	}
	value := alarm.State(last.State().Value)
	return alarm.CompositeReason(last.Arn(), value, last.Moved()), alarm.NewCompositeData(last.Arn(), value, last.Moved()).JSON()
}
