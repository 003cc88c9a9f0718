package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// world is a service with the control plane's outbox, a clock, and those who are told.
type world struct {
	*Service
	t       *testing.T
	now     time.Time
	loop    *delivery.Loop
	metrics []string            // what CloudWatch was told
	queues  map[string][]string // what queues got, by their names
	most    string              // the bytes that they take
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), queues: map[string][]string{"q": nil}, most: "1048576"}
	dir := t.TempDir()
	store, err := streams.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() }) //nolint:errcheck // the test is over
	clock := func() time.Time { return w.now }
	box := state.Outbox{Store: statetest.Open(t), Now: clock}
	w.Service = New(store, Options{
		Account:  accounttest.New(clock),
		Outbox:   box,
		Queues:   w,
		QueueURL: func(arn string) string { return arn[strings.LastIndex(arn, ":")+1:] },
		Log:      slog.New(slog.DiscardHandler),
	})
	w.loop = delivery.New(box, delivery.Options{
		Now:    clock,
		Routes: []delivery.Route{ToMetrics(w), delivery.Queue(w, w.opts.QueueURL)},
		Log:    w.opts.Log,
	})
	if err := errors.Join(store.CreateGroup(streams.Group{Name: "g"}), store.CreateStream("g", "s", 1)); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) PutMetricData(
	_ context.Context, in *cloudwatch.PutMetricDataInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricDataOutput, error) {
	for _, d := range in.MetricData {
		line := fmt.Sprintf("%s %s/%s", d.Timestamp.Format("15:04"), *in.Namespace, *d.MetricName)
		for _, dimension := range d.Dimensions {
			line += fmt.Sprintf(" %s=%s", *dimension.Name, *dimension.Value)
		}
		if d.Value != nil {
			line += fmt.Sprint(" default ", *d.Value)
		}
		for i, v := range d.Values {
			line += fmt.Sprintf(" %vx%v", v, d.Counts[i])
		}
		w.metrics = append(w.metrics, strings.TrimSpace(line+" "+string(d.Unit)))
	}
	return &cloudwatch.PutMetricDataOutput{}, nil
}

func (w *world) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if _, ok := w.queues[*in.QueueUrl]; !ok {
		return nil, &sqstypes.QueueDoesNotExist{}
	}
	w.queues[*in.QueueUrl] = append(w.queues[*in.QueueUrl], *in.MessageBody)
	return &sqs.SendMessageOutput{}, nil
}

func (w *world) GetQueueAttributes(
	_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	if _, ok := w.queues[*in.QueueUrl]; !ok {
		return nil, &sqstypes.QueueDoesNotExist{}
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"MaximumMessageSize": w.most}}, nil
}

// send appends events of this moment, or of as many seconds later as a number before a message says.
func (w *world) send(messages ...string) {
	w.t.Helper()
	var events []types.InputLogEvent
	for _, m := range messages {
		later := 0
		if seconds, rest, ok := strings.Cut(m, "s: "); ok {
			fmt.Sscan(seconds, &later) //nolint:errcheck // then it's 0
			m = rest
		}
		at := w.now.Add(time.Duration(later) * time.Second).UnixMilli()
		events = append(events, types.InputLogEvent{Timestamp: &at, Message: &m})
	}
	in := &cloudwatchlogs.PutLogEventsInput{LogGroupName: aws.String("g"), LogStreamName: aws.String("s"), LogEvents: events}
	if _, err := w.PutLogEvents(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
}

// told delivers what is due, and returns what CloudWatch was told since the last time.
func (w *world) told() string {
	w.t.Helper()
	if err := w.loop.Step(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	out := strings.Join(w.metrics, "; ")
	w.metrics = nil
	return out
}

func (w *world) filter(name, pattern string, to types.MetricTransformation) error {
	if to.MetricName == nil {
		to.MetricName = aws.String("m")
	}
	if to.MetricNamespace == nil {
		to.MetricNamespace = aws.String("n")
	}
	if to.MetricValue == nil {
		to.MetricValue = aws.String("1")
	}
	_, err := w.PutMetricFilter(w.t.Context(), &cloudwatchlogs.PutMetricFilterInput{
		LogGroupName: aws.String("g"), FilterName: &name, FilterPattern: &pattern, MetricTransformations: []types.MetricTransformation{to},
	})
	return err
}

func TestMetricFiltersMakeMetrics(t *testing.T) {
	cases := []struct {
		name    string
		pattern string
		to      types.MetricTransformation
		events  []string
		want    string
	}{
		{"counts by minute", "ERROR", types.MetricTransformation{Unit: types.StandardUnitCount},
			[]string{"ERROR a", "fine", "ERROR b", "55s: ERROR c"}, "03:04 n/m 1x2 Count; 03:05 n/m 1x1 Count"},
		{"nothing matches", "ERROR", types.MetricTransformation{}, []string{"fine"}, ""},
		{"a field of JSON", "{ $.ms = * }", types.MetricTransformation{MetricValue: aws.String("$.ms")},
			[]string{`{"ms":2}`, `{"ms":3}`, `{"ms":2}`, `{"ms":"much"}`, `{"s":1}`}, "03:04 n/m 2x2 3x1"},
		{"a field of text", "[ip, status = 5*, bytes]", types.MetricTransformation{MetricValue: aws.String("$bytes")},
			[]string{"1.2.3.4 500 10", "1.2.3.4 200 20"}, "03:04 n/m 10x1"},
		{"dimensions", "{ $.ms = * }", types.MetricTransformation{Dimensions: map[string]string{"b": "$.b", "a": "$.a"}},
			[]string{`{"ms":1,"a":"x","b":1}`, `{"ms":1,"a":"x","b":1}`, `{"ms":1,"a":"x","b":2}`, `{"ms":1,"a":"x"}`},
			"03:04 n/m a=x b=1 1x2; 03:04 n/m a=x b=2 1x1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			if err := w.filter("f", c.pattern, c.to); err != nil {
				t.Fatal(err)
			}
			w.send(c.events...)
			if got := w.told(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestManyValues: a datum takes 150 different values, and no event is lost to that.
func TestManyValues(t *testing.T) {
	f, err := compileMetricFilter(&types.MetricFilter{
		LogGroupName: aws.String("g"), FilterName: aws.String("f"), FilterPattern: aws.String("[v]"),
		MetricTransformations: []types.MetricTransformation{{MetricValue: aws.String("$v")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 400), 1, 1000).Draw(t, "values")
		var events []streams.Event
		want := map[float64]float64{}
		for _, v := range values {
			events = append(events, streams.Event{Message: fmt.Sprint(v)})
			want[float64(v)]++
		}
		data, _ := f.apply(events)
		for _, d := range data {
			if len(d.Values) > maxDatumValues {
				t.Fatalf("a datum has %d values", len(d.Values))
			}
			for i, v := range d.Values {
				want[v] -= d.Counts[i]
			}
		}
		for v, n := range want {
			if n != 0 {
				t.Fatalf("%v is counted %v times too few", v, n)
			}
		}
	})
}

// TestDefaultValue: it is reported once for each minute in which events came and none matched.
func TestDefaultValue(t *testing.T) {
	w := newWorld(t)
	if err := w.filter("f", "ERROR", types.MetricTransformation{DefaultValue: aws.Float64(7)}); err != nil {
		t.Fatal(err)
	}
	restart := func() { w.filters.forget("g") } // the next process knows only what the outbox holds
	step := func(at string, messages []string, want string) {
		t.Helper()
		var err error
		if w.now, err = time.Parse(time.RFC3339, "2026-01-02T"+at+"Z"); err != nil {
			t.Fatal(err)
		}
		if len(messages) > 0 {
			w.send(messages...)
		}
		if got := w.told(); got != want {
			t.Errorf("%s: got %q, want %q", at, got, want)
		}
	}
	step("03:04:05", []string{"fine"}, "")
	step("03:04:06", []string{"fine"}, "")
	restart()
	step("03:04:59", []string{"fine"}, "")
	step("03:05:00", nil, "03:04 n/m default 7")
	step("03:06:00", nil, "") // no events came
	step("03:07:10", []string{"fine"}, "")
	step("03:07:20", []string{"ERROR"}, "03:07 n/m 1x1")
	restart()
	step("03:07:30", []string{"fine"}, "")
	step("03:08:00", nil, "")
	step("03:08:10", []string{"ERROR"}, "03:08 n/m 1x1")
	step("03:08:20", []string{"fine"}, "")
	step("03:09:00", []string{"fine"}, "")
	step("03:10:00", nil, "03:09 n/m default 7")
}

func TestMetricFiltersAreChecked(t *testing.T) {
	w := newWorld(t)
	cases := []struct {
		pattern string
		to      types.MetricTransformation
		want    string
	}{
		{"{ $.a", types.MetricTransformation{}, "Invalid filter pattern"},
		{"x", types.MetricTransformation{MetricValue: aws.String("$.a")}, "metricValue"},
		{"{ $.a = 1 }", types.MetricTransformation{MetricValue: aws.String("$a")}, "metricValue"},
		{"[a]", types.MetricTransformation{MetricValue: aws.String("$b")}, "metricValue"},
		{"x", types.MetricTransformation{MetricValue: aws.String("Inf")}, "metricValue"},
		{"x", types.MetricTransformation{Dimensions: map[string]string{"a": "$.a"}}, "dimension a"},
		{"[a]", types.MetricTransformation{Dimensions: map[string]string{"": "$a"}}, "name of a dimension"},
		{"[a]", types.MetricTransformation{Dimensions: map[string]string{"a": "$a", "b": "$a", "c": "$a", "d": "$a"}}, "at most 3"},
		{"[a]", types.MetricTransformation{Dimensions: map[string]string{"a": "$a"}, DefaultValue: aws.Float64(0)}, "mutually exclusive"},
		{"x", types.MetricTransformation{MetricNamespace: aws.String("AWS/X")}, "reserved"},
		{"x", types.MetricTransformation{MetricNamespace: aws.String("Pintle/Usage")}, "alone"},
		{"x", types.MetricTransformation{MetricName: aws.String("")}, "metricName"},
	}
	for _, c := range cases {
		if err := w.filter("f", c.pattern, c.to); code(err) != "InvalidParameterException" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: %v", c.pattern, c.to, err)
		}
	}
	for i := range maxMetricFilters {
		if err := w.filter(fmt.Sprint("f", i), "x", types.MetricTransformation{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.filter("one more", "x", types.MetricTransformation{}); code(err) != "LimitExceededException" {
		t.Error(err)
	}
	if err := w.filter("f7", "y", types.MetricTransformation{}); err != nil {
		t.Errorf("a filter can't be replaced: %v", err)
	}
	if g, err := w.store.Group("g"); err != nil || *w.describeGroup(g).MetricFilterCount != maxMetricFilters {
		t.Errorf("%+v %v", g, err)
	}
}

func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func (w *world) subscribe(name, pattern, arn string) error {
	_, err := w.PutSubscriptionFilter(w.t.Context(), &cloudwatchlogs.PutSubscriptionFilterInput{
		LogGroupName: aws.String("g"), FilterName: &name, FilterPattern: &pattern, DestinationArn: &arn,
	})
	return err
}

// received decodes what a queue got.
func (w *world) received(queue string) (out []subscriptionMessage) {
	w.t.Helper()
	for _, body := range w.queues[queue] {
		packed, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			w.t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			w.t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			w.t.Fatal(err)
		}
		var m subscriptionMessage
		if err := json.Unmarshal(text, &m); err != nil {
			w.t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func TestSubscriptions(t *testing.T) {
	w := newWorld(t)
	arn := w.opts.ARN("sqs", "q")
	if err := w.subscribe("errors", "ERROR", arn); err != nil {
		t.Fatal(err)
	}
	if err := w.subscribe("all", "", arn); err != nil {
		t.Fatal(err)
	}
	if err := w.subscribe("more", "", arn); code(err) != "LimitExceededException" {
		t.Error(err)
	}
	if got := w.received("q"); len(got) != 2 || got[0].MessageType != "CONTROL_MESSAGE" {
		t.Fatalf("%+v", got)
	}
	w.queues["q"] = nil
	w.send("ERROR 1", "fine", "ERROR 2")
	w.told()
	got := w.received("q")
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	slices.SortFunc(got, func(a, b subscriptionMessage) int { return len(b.LogEvents) - len(a.LogEvents) })
	all, errors := got[0], got[1]
	if all.Owner != w.opts.ID || all.LogGroup != "g" || all.LogStream != "s" || all.MessageType != "DATA_MESSAGE" ||
		fmt.Sprint(all.SubscriptionFilters, errors.SubscriptionFilters) != "[all] [errors]" {
		t.Errorf("%+v", got)
	}
	if len(all.LogEvents) != 3 || len(errors.LogEvents) != 2 || errors.LogEvents[1] != all.LogEvents[2] {
		t.Errorf("%+v", got)
	}
	if e := all.LogEvents[1]; len(e.ID) != 56 || e.Message != "fine" || e.Timestamp != w.now.UnixMilli() || e.ID == all.LogEvents[0].ID {
		t.Errorf("%+v", e)
	}
	delete(w.queues, "q") // events must be taken all the same
	w.send("ERROR 3")
}

func TestSubscriptionsAreChecked(t *testing.T) {
	w := newWorld(t)
	for arn, want := range map[string]string{
		"arn:aws:kinesis:us-east-1:" + w.opts.ID + ":stream/s":  "no SQS queue",
		"arn:aws:lambda:us-east-1:" + w.opts.ID + ":function:f": "no SQS queue",
		"arn:aws:sqs:us-east-1:999999999999:q":                  "no SQS queue",
		w.opts.ARN("sqs", "q.fifo"):                             "FIFO",
		w.opts.ARN("sqs", "none"):                               "test message",
		"q":                                                     "no SQS queue",
	} {
		if err := w.subscribe("f", "", arn); code(err) != "InvalidParameterException" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arn, err)
		}
	}
	if g, err := w.store.Group("g"); err != nil || g.Filters != nil {
		t.Errorf("a refused call left %+v, %v", g.Filters, err)
	}
}

// TestSplit: every part fits, and together they have all events that can fit.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOfN(rapid.StringN(0, 300, -1), 1, 40).Draw(t, "messages")
		m := subscriptionMessage{LogGroup: "g"}
		for i, text := range messages {
			m.LogEvents = append(m.LogEvents, subscriptionEvent{fmt.Sprint(i), int64(i), text})
		}
		most := rapid.IntRange(250, 2000).Draw(t, "most")
		bodies, lost, err := m.split(most)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range bodies {
			if len(b) > most {
				t.Fatalf("%d bytes, more than %d", len(b), most)
			}
		}
		tooLarge := 0
		for _, e := range m.LogEvents {
			alone := m
			alone.LogEvents = []subscriptionEvent{e}
			if body, err := alone.encode(); err != nil || len(body) > most {
				tooLarge++
			}
		}
		if n := countEvents(t, bodies); n+lost != len(messages) || lost > tooLarge {
			t.Fatalf("%d events and %d lost, of %d, of which %d don't fit alone", n, lost, len(messages), tooLarge)
		}
	})
}

func countEvents(t *rapid.T, bodies []string) (n int) {
	for _, b := range bodies {
		z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(b)))
		if err != nil {
			t.Fatal(err)
		}
		var m subscriptionMessage
		if err := json.NewDecoder(z).Decode(&m); err != nil {
			t.Fatal(err)
		}
		n += len(m.LogEvents)
	}
	return n
}
