package statetest

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	eventbridge "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/state"
)

// Listen returns the events of a source that the default bus of a store hears from now on.
func Listen(t testing.TB, s *state.Store, source string) *[]state.Event {
	t.Helper()
	heard := &[]state.Event{}
	s.Listeners.Tell = func(_ *state.Tx, e *state.Event) { *heard = append(*heard, *e) }
	Update(t, s, func(tx *state.Tx) {
		tx.EventRules.Put(&state.EventRule{
			Rule: eventbridge.Rule{
				Arn: aws.String("arn:rule"), Name: aws.String("listen"), EventBusName: aws.String(state.DefaultBus),
				EventPattern: aws.String("{}"), State: eventbridge.RuleStateEnabled,
			},
			Sources: []string{source},
		})
	})
	return heard
}
