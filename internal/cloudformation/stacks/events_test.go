package stacks

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestEventsAreInTheOrderOfTheirTimes: steps beside each other take their times before they commit, in whichever order.
func TestEventsAreInTheOrderOfTheirTimes(t *testing.T) {
	store := statetest.Open(t)
	id := "arn:aws:cloudformation:us-east-1:000000000000:stack/s/1"
	began := time.Unix(1700000000, 0)
	for _, after := range []time.Duration{0, 5, 3, 5, 4, 9} {
		statetest.Update(t, store, func(tx *state.Tx) {
			Event(tx, &state.Stack{Stack: types.Stack{StackId: &id, StackName: aws.String("s")}}, types.StackEvent{
				EventId: aws.String("e"), ResourceStatus: types.ResourceStatusCreateComplete, ResourceType: aws.String("AWS::SQS::Queue"),
				LogicalResourceId: aws.String("q"), PhysicalResourceId: aws.String("q"), Timestamp: aws.Time(began.Add(after * time.Millisecond)),
			})
		})
	}
	n, newer := 0, began.Add(time.Hour)
	for e := range store.View().EventsOf(id) {
		if n++; e.Timestamp.After(newer) {
			t.Errorf("an event of %s stands behind one of %s", e.Timestamp, newer)
		}
		newer = *e.Timestamp
	}
	if n != 6 {
		t.Errorf("there are %d events", n)
	}
}
