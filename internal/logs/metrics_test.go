package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	metrictypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/logs/streams"
)

// fakeMetrics refuses calls with a metric called bad, and fails if it's broken.
type fakeMetrics struct {
	got    []string
	broken bool
}

func (f *fakeMetrics) PutMetricData(
	_ context.Context, in *cloudwatch.PutMetricDataInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricDataOutput, error) {
	if f.broken {
		return nil, errors.New("the disk is full")
	}
	var names []string
	for _, d := range in.MetricData {
		if *d.MetricName == "bad" {
			return nil, &metrictypes.InvalidParameterValueException{Message: aws.String("no")}
		}
		names = append(names, fmt.Sprint(*d.MetricName, d.Values))
	}
	f.got = append(f.got, *in.Namespace+": "+strings.Join(names, " "))
	return &cloudwatch.PutMetricDataOutput{}, nil
}

func TestEventsCarryMetrics(t *testing.T) {
	store, err := streams.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test is over
	metrics := &fakeMetrics{}
	box := &outbox{}
	now := time.Now()
	s := New(store, Options{Account: accounttest.New(func() time.Time { return now }), Outbox: box})
	if err := store.CreateGroup(streams.Group{Name: "g"}); err != nil {
		t.Fatal(err)
	}
	if err := store.CreateStream("g", "s", 1); err != nil {
		t.Fatal(err)
	}
	send := func(lines ...string) error {
		var events []types.InputLogEvent
		for _, line := range lines {
			events = append(events, types.InputLogEvent{Timestamp: aws.Int64(now.UnixMilli()), Message: aws.String(line)})
		}
		_, err := s.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{
			LogGroupName:  aws.String("g"),
			LogStreamName: aws.String("s"),
			LogEvents:     events,
		})
		return err
	}
	line := func(namespace, name string, value int) string {
		return fmt.Sprintf(
			`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":%q,"Metrics":[{"Name":%q}]}]},%q:%d}`,
			now.UnixMilli(), namespace, name, name, value,
		)
	}
	if err := send("plain", line("n", "a", 1), line("m", "c", 3), line("n", "b", 2)); err != nil {
		t.Fatal(err)
	}
	if err := box.tell(t.Context(), metrics); err != nil {
		t.Error(err)
	}
	if got := strings.Join(metrics.got, "; "); got != "m: c[3]; n: a[1] b[2]" {
		t.Errorf("got %s", got)
	}
	metrics.got = nil
	if err := send(line("n", "a", 1), line("n", "bad", 1), line("n", "b", 2), `{"_aws":{"CloudWatchMetrics":7}}`); err != nil {
		t.Fatal(err)
	}
	if err := box.tell(t.Context(), metrics); err != nil {
		t.Error(err)
	}
	if got := strings.Join(metrics.got, "; "); got != "n: a[1]; n: b[2]" {
		t.Errorf("got %s", got)
	}
	metrics.broken = true
	if err := send(line("n", "a", 1)); err != nil { // a failure of CloudWatch must not make the caller send the events again
		t.Error(err)
	}
	if err := box.tell(t.Context(), metrics); err == nil {
		t.Error("a metric that could not be kept is owed no more")
	}
	box.full = true
	if err := send(line("n", "a", 1)); err == nil { // the events aren't stored either
		t.Error("a metric that could not be owed was acknowledged")
	}
	if err := send("plain"); err != nil {
		t.Error(err)
	}
	events, _, err := store.Read(t.Context(), "g", streams.Range{Limit: 100})
	if err != nil || len(events) != 10 {
		t.Errorf("%d lines are kept, %v", len(events), err)
	}
}

// TestCancelDebts: metrics of events that weren't stored aren't owed.
func TestCancelDebts(t *testing.T) {
	store, err := streams.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the test is over
	box := &outbox{}
	s := New(store, Options{Account: accounttest.New(time.Now), Outbox: box})
	if err := errors.Join(store.CreateGroup(streams.Group{Name: "g"}), store.CreateStream("g", "s", 1)); err != nil {
		t.Fatal(err)
	}
	box.meanwhile = func() error { return store.DeleteStream("g", "s") }
	line := fmt.Sprintf(
		`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":"n","Metrics":[{"Name":"a"}]}]},"a":1}`,
		time.Now().UnixMilli(),
	)
	_, err = s.PutLogEvents(t.Context(), &cloudwatchlogs.PutLogEventsInput{
		LogGroupName:  aws.String("g"),
		LogStreamName: aws.String("s"),
		LogEvents:     []types.InputLogEvent{{Timestamp: aws.Int64(time.Now().UnixMilli()), Message: &line}},
	})
	if err == nil || len(box.debts) != 0 || box.owed != 1 {
		t.Errorf("%d debts were made, and %d are left, %v", box.owed, len(box.debts), err)
	}
}

// outbox keeps debts in a list.
type outbox struct {
	debts []delivery.Debt
	owed  int
	full  bool
	// meanwhile happens after debts were made.
	meanwhile func() error
}

func (o *outbox) Owe(_ context.Context, owe func(time.Time) []delivery.Debt) ([]delivery.Debt, error) {
	if o.full {
		return nil, errors.New("the disk is full")
	}
	debts := owe(time.Now())
	for i := range debts {
		o.owed++
		debts[i].ID = fmt.Sprint(o.owed)
	}
	o.debts = append(o.debts, debts...)
	if o.meanwhile != nil {
		return debts, o.meanwhile()
	}
	return debts, nil
}

func (o *outbox) Settle(_ context.Context, d delivery.Debt, _ error) error {
	o.debts = slices.DeleteFunc(o.debts, func(other delivery.Debt) bool { return other.ID == d.ID })
	return nil
}

// tell delivers what is owed.
func (o *outbox) tell(ctx context.Context, metrics Metrics) (err error) {
	for _, d := range o.debts {
		err = errors.Join(err, ToMetrics(metrics).Tell(ctx, d))
	}
	o.debts = nil
	return err
}
