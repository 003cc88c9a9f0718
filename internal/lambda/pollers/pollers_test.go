package pollers

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestHandled: what an answer names has failed. One that makes no sense means that all has.
func TestHandled(t *testing.T) {
	var batch []sqstypes.Message
	for _, id := range []string{"a", "b", "c"} {
		batch = append(batch, sqstypes.Message{MessageId: aws.String(id)})
	}
	for _, c := range []struct {
		name, answer string
		want         []string
	}{
		{"nothing", ``, []string{"a", "b", "c"}},
		{"null", `null`, []string{"a", "b", "c"}},
		{"another object", `{"n": 1}`, []string{"a", "b", "c"}},
		{"no failures", `{"batchItemFailures": []}`, []string{"a", "b", "c"}},
		{"null failures", `{"batchItemFailures": null}`, []string{"a", "b", "c"}},
		{"one failure", `{"batchItemFailures": [{"itemIdentifier": "b"}]}`, []string{"a", "c"}},
		{"one failure, twice", `{"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "b"}]}`, []string{"a", "c"}},
		{"a stranger", `{"batchItemFailures": [{"itemIdentifier": "x"}]}`, nil},
		{"an empty name", `{"batchItemFailures": [{"itemIdentifier": ""}]}`, nil},
		{"no name", `{"batchItemFailures": [{}]}`, nil},
		{"another type", `{"batchItemFailures": "b"}`, nil},
		{"no object", `"ok"`, nil},
	} {
		var got []string
		for _, m := range Handled(batch, []byte(c.answer), false) {
			got = append(got, *m.MessageId)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHandledInOrder: in a FIFO queue nothing overtakes what has failed.
func TestHandledInOrder(t *testing.T) {
	var batch []sqstypes.Message
	for _, id := range []string{"a", "b", "c", "d"} {
		batch = append(batch, sqstypes.Message{MessageId: aws.String(id)})
	}
	for answer, want := range map[string]int{
		`{"batchItemFailures": []}`: 4,
		`{"batchItemFailures": [{"itemIdentifier": "d"}, {"itemIdentifier": "b"}]}`: 1,
		`{"batchItemFailures": [{"itemIdentifier": "a"}]}`:                          0,
		`{"batchItemFailures": [{"itemIdentifier": "x"}]}`:                          0,
	} {
		if got := Handled(batch, []byte(answer), true); len(got) != want || want > 0 && *got[0].MessageId != "a" {
			t.Errorf("%s: %d messages are handled, want %d", answer, len(got), want)
		}
	}
}
