package resources

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// waitConditionHandle is AWS::CloudFormation::WaitConditionHandle, which has no properties. Its physical ID is the URL to which signals are
// sent.
type waitConditionHandle struct{}

// WaitConditionHandle and WaitCondition are the types of which the loop of stacks knows more than of others: it keeps their signals.
const (
	WaitConditionHandle = "AWS::CloudFormation::WaitConditionHandle"
	WaitCondition       = "AWS::CloudFormation::WaitCondition"
)

var _ = add(&kind[*waitConditionHandle]{
	name:   WaitConditionHandle,
	create: func(_ context.Context, s Step, _ *waitConditionHandle) (string, error) { return s.HandleURL(), nil },
	delete: func(context.Context, Step, string, *waitConditionHandle) error { return nil },
})

// waitCondition has the properties of AWS::CloudFormation::WaitCondition. One without a handle waits by its creation policy.
type waitCondition struct {
	Count   *int // 1
	Handle  *string
	Timeout *int // seconds
}

// maxWait is the longest time-out of a wait condition, in seconds.
const maxWait = 43_200

var _ = add(&kind[*waitCondition]{
	name:       WaitCondition,
	attributes: []string{"Data"},
	check:      checkWait,
	create: func(_ context.Context, s Step, _ *waitCondition) (string, error) {
		return s.StackID + "/" + s.Token + "/" + s.Name, nil
	},
	update: func(_ context.Context, _ Step, _ string, before, after *waitCondition) error {
		if reflect.DeepEqual(before, after) { // it's what a rollback of an update comes to
			return nil
		}
		return template.Errorf("Update to resource type %s is not supported", WaitCondition)
	},
	delete:  func(context.Context, Step, string, *waitCondition) error { return nil },
	settled: hasWaited,
	read: func(_ context.Context, s Step, _ string, w *waitCondition) (Made, error) {
		signals, err := w.heard(s)
		data := map[string]any{}
		for _, signal := range signals {
			if signal.Status == types.ResourceSignalStatusSuccess {
				data[signal.UniqueID] = signal.Data
			}
		}
		return Made{Attributes: map[string]any{"Data": *document(data)}}, err
	},
})

// heard returns the signals for the condition. One that waits by its creation policy has none here.
func (w *waitCondition) heard(s Step) ([]state.WaitSignal, error) {
	if w.Handle == nil {
		return nil, nil
	}
	return s.Heard(*w.Handle)
}

// checkWait checks what a condition waits for.
func checkWait(w *waitCondition) (faults []string) {
	switch {
	case w.Count != nil && *w.Count < 0:
		return []string{fmt.Sprintf("#/Count: %d is not greater or equal to 0", *w.Count)}
	case w.Timeout != nil && *w.Timeout < 0:
		return []string{fmt.Sprintf("#/Timeout: %d is not greater or equal to 0", *w.Timeout)}
	case w.Timeout != nil && *w.Timeout > maxWait:
		return []string{fmt.Sprintf("#/Timeout: %d is not less or equal to %d", *w.Timeout, maxWait)}
	}
	return nil
}

// CheckWait refuses a wait condition without a creation policy that lacks what it waits by.
func CheckWait(resource string, properties map[string]any) error {
	for _, name := range []string{"Handle", "Timeout"} {
		if _, there := properties[name]; !there {
			return template.Errorf("Properties validation failed for resource %s with message:\n#: required key [%s] not found", resource, name)
		}
	}
	return nil
}

// hasWaited reports whether a wait condition has its signals. A failure among those that it waits for fails it, and so does the end of its
// time.
func hasWaited(_ context.Context, s Step, _ string, w *waitCondition) (bool, error) {
	if w.Handle == nil {
		return true, nil
	}
	signals, err := w.heard(s)
	if err != nil {
		return false, err
	}
	count := 1
	if w.Count != nil {
		count = *w.Count
	}
	if len(signals) > count {
		signals = signals[:count]
	}
	for _, signal := range signals {
		if signal.Status == types.ResourceSignalStatusFailure {
			return false, template.Errorf("WaitCondition received failed message: '%s' for uniqueId: %s", signal.Reason, signal.UniqueID)
		}
	}
	if len(signals) == count {
		return true, nil
	}
	if isOver := w.Timeout == nil || s.Account.Now().Sub(s.Since) >= time.Duration(*w.Timeout)*time.Second; isOver && !s.Since.IsZero() {
		return false, template.Errorf("WaitCondition timed out. Received %d conditions when expecting %d", len(signals), count)
	}
	return false, nil
}
