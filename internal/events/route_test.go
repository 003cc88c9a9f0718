package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestManyTargets: an event for many targets is there once, and not all of them are owed it in one transaction.
func TestManyTargets(t *testing.T) {
	w := newWorld(t)
	const rules, perRule = 300, maxTargets
	for i := range rules {
		var to []types.Target
		for n := range perRule {
			to = append(to, types.Target{Id: aws.String(fmt.Sprint(n)), Arn: aws.String(queue)})
		}
		w.rule(t, &eventbridge.PutRuleInput{Name: aws.String(fmt.Sprint(i)), EventPattern: aws.String(`{"source": ["mine", "aws.ecs"]}`)}, to...)
	}
	w.put(t, `{"x": "`+strings.Repeat("x", 200<<10)+`"}`)
	v := w.store.View()
	if most := rules*perRule/maxPiece + 1; v.Deliveries.Len() != rules*perRule || v.EventTexts.Len() > most {
		t.Errorf("%d debts share %d texts, want at most %d", v.Deliveries.Len(), v.EventTexts.Len(), most)
	}
	statetest.Update(t, w.store, func(*state.Tx) {
		if n := w.store.Undelivered.Events; n > 4<<20 {
			t.Errorf("they count as %d bytes", n)
		}
	})
	if n := len(w.bodies(t)); n != rules*perRule {
		t.Errorf("%d messages", n)
	}
	if n := w.store.View().EventTexts.Len(); n > 0 {
		t.Errorf("%d texts are left", n)
	}
	told := func(tx *state.Tx) {
		tx.Emit("aws.ecs", "x", func() *state.Event { return &state.Event{Detail: map[string]any{"n": 1}} })
		if n := tx.Deliveries.Len(); n != 1 {
			t.Errorf("a service's event makes %d debts in its transaction", n)
		}
	}
	if heard := w.change(t, told); len(heard) != rules*perRule {
		t.Errorf("%d are told of it", len(heard))
	}
	if v := w.store.View(); v.EventTexts.Len()+v.Deliveries.Len() > 0 {
		t.Error("something is left")
	}
}

// TestOwnEventsGiveWay: a target that takes nothing doesn't fill the memory with what services tell; the oldest go to its dead letters.
func TestOwnEventsGiveWay(t *testing.T) {
	for _, letters := range []*types.DeadLetterConfig{nil, {Arn: aws.String("arn:aws:sqs:us-east-1:000000000000:dead")}} {
		w := newWorld(t)
		w.opts.Room = 20 << 10
		w.fail["q"] = errors.New("not now")
		w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: aws.String(`{"source": ["aws.ecs"]}`)},
			types.Target{Id: aws.String("q"), Arn: aws.String(queue), DeadLetterConfig: letters},
			types.Target{Id: aws.String("quick"), Arn: aws.String("arn:aws:sqs:us-east-1:000000000000:quick")})
		const events = 50
		for i := range events {
			statetest.Update(t, w.store, func(tx *state.Tx) {
				tx.Emit("aws.ecs", "x", func() *state.Event {
					return &state.Event{Order: "task", Detail: map[string]any{"n": fmt.Sprint(i, ".")}}
				})
			})
			w.deliver(t)
		}
		got := map[string][]string{}
		for _, c := range w.calls {
			in := c.(*sqs.SendMessageInput)
			_, detail, _ := strings.Cut(*in.MessageBody, `"detail":`)
			got[*in.QueueUrl] = append(got[*in.QueueUrl], detail)
		}
		waiting := w.store.View().Deliveries.Len()
		if waiting < 10 || waiting > 20 || len(got["quick"]) != events {
			t.Errorf("%d wait, and %d came to the other target", waiting, len(got["quick"]))
		}
		want := 0
		if letters != nil {
			want = events - waiting
		}
		if len(got["dead"]) != want || want > 0 && (got["dead"][0] != `{"n":"0."}}` || got["dead"][want-1] != fmt.Sprintf(`{"n":"%d."}}`, want-1)) {
			t.Errorf("%d dead letters, want %d: %s", len(got["dead"]), want, got["dead"])
		}
		if n := w.store.View().EventTexts.Len(); n != waiting {
			t.Errorf("%d texts of %d events", n, waiting)
		}
	}
}
