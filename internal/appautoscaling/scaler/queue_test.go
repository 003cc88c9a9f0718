package scaler

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// TestReadQueue: what waits and what is worked on keep their values until the next report, whether a look covers one second
// or several.
func TestReadQueue(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store, err := metrics.Open(t.TempDir(), metrics.Options{Now: func() time.Time { return begin.Add(time.Minute) }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	put := func(second int, name string, value float64) {
		err := store.Put([]metrics.Sample{{
			Metric: metrics.NewMetric("AWS/SQS", name, metrics.Dimension{Name: "QueueName", Value: "q"}),
			Unit:   "Count",
			At:     begin.Add(time.Duration(second) * time.Second).Unix(),
			Fine:   true,
			Set:    metrics.One(value),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(0, "ApproximateNumberOfMessagesVisible", 10)
	put(0, "ApproximateNumberOfMessagesNotVisible", 4)
	put(1, "NumberOfMessagesSent", 3)
	put(2, "ApproximateNumberOfMessagesVisible", 12)
	put(3, "NumberOfMessagesDeleted", 2)
	want := []scaling.Flow{
		{Waiting: 10, Working: 4},
		{Waiting: 10, Working: 4, Arrived: 3},
		{Waiting: 12, Working: 4},
		{Waiting: 12, Working: 4, Finished: 2},
		{Waiting: 12, Working: 4},
	}
	for _, step := range []time.Duration{time.Second, 5 * time.Second} {
		w := &watch{name: "q", until: begin}
		for now := begin.Add(step); !now.After(begin.Add(5 * time.Second)); now = now.Add(step) {
			if fresh, err := w.read(store, now); err != nil || !fresh {
				t.Fatalf("%s by %s: fresh is %v, error %v", now, step, fresh, err)
			}
		}
		if !slices.Equal(w.flows, want) {
			t.Errorf("by %s:\n got %v\nwant %v", step, w.flows, want)
		}
	}
}

// TestForgetsQueues: what the loop knows for a policy goes with the policy.
func TestForgetsQueues(t *testing.T) {
	w := newWorld(t, 1)
	stays := w.policy("stays")
	w.update(func(tx *state.Tx) { tx.ScalingPolicies.Put(stays) })
	l := New(w.store, Options{Now: time.Now, ECS: w, CloudWatch: w, Log: slog.New(slog.DiscardHandler)})
	l.watched[stays.Key()], l.watched["gone"] = &watch{}, &watch{}
	if err := l.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.watched[stays.Key()] == nil || l.watched["gone"] != nil {
		t.Errorf("it holds %v", l.watched)
	}
}

// TestRunningBefore: after a restart the tasks' rows show how many ran. Otherwise a task with little to do would look like one
// that can do no more.
func TestRunningBefore(t *testing.T) {
	w := newWorld(t, 2)
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) *time.Time { return aws.Time(end.Add(time.Duration(seconds) * time.Second)) }
	w.update(func(tx *state.Tx) {
		for i, times := range [][2]*time.Time{ // start and end
			{at(-1000), nil},
			{at(-3), at(-1)},
			{at(-900), at(-4)},
			{at(-2), nil},
			{nil, nil},
			{at(-900), at(-800)},
			{at(-900), at(-5)},
		} {
			row := &state.Task{ServiceArn: "arn:web"}
			row.TaskArn = aws.String(fmt.Sprint("arn:", i))
			row.ClusterArn = aws.String("arn:c")
			row.DesiredStatus = aws.String("RUNNING")
			row.LastStatus = aws.String("RUNNING")
			if row.StartedAt, row.StoppingAt = times[0], times[1]; i == 5 { // ended by itself
				row.StoppingAt = nil
				row.StoppedAt = times[1]
			}
			tx.Tasks.Put(row)
		}
	})
	q := &watch{flows: make([]scaling.Flow, 5), until: end}
	q.observe(w.store.View(), &ecstypes.Service{ServiceArn: aws.String("arn:web"), DesiredCount: 2, RunningCount: 2}, end)
	var got []int
	for _, f := range q.flows {
		got = append(got, f.Running)
	}
	if want := []int{2, 1, 2, 3, 2}; !slices.Equal(got, want) {
		t.Errorf("there ran %v, want %v", got, want)
	}
}

// TestQueueOf: the fast reaction decides only on the backlog per task by itself.
func TestQueueOf(t *testing.T) {
	metric := func(id, namespace, name string) types.TargetTrackingMetricDataQuery {
		return types.TargetTrackingMetricDataQuery{Id: &id, MetricStat: &types.TargetTrackingMetricStat{Metric: &types.TargetTrackingMetric{
			Namespace:  &namespace,
			MetricName: &name,
			Dimensions: []types.TargetTrackingMetricDimension{{Name: aws.String("QueueName"), Value: aws.String("q")}},
		}}}
	}
	waiting, tasks := metric("w", "AWS/SQS", "ApproximateNumberOfMessagesVisible"), metric("t", "ECS/ContainerInsights", "RunningTaskCount")
	for expression, want := range map[string]string{
		"w / t": "q", "w/t": "q", "w/t*60": "", "t/w": "", "CEIL(w)": "", "w": "", "w/w": "",
	} {
		p := &state.ScalingPolicy{}
		p.TargetTrackingScalingPolicyConfiguration = &types.TargetTrackingScalingPolicyConfiguration{
			CustomizedMetricSpecification: &types.CustomizedMetricSpecification{
				Metrics: []types.TargetTrackingMetricDataQuery{waiting, tasks, {Id: aws.String("e"), Expression: &expression}},
			},
		}
		if got := queueOf(p); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
