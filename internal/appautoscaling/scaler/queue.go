package scaler

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// perTask matches the only expression that the fast reaction understands: waiting messages divided by running tasks.
var perTask = regexp.MustCompile(`^\s*([a-z][A-Za-z0-9_]*)\s*/\s*([a-z][A-Za-z0-9_]*)\s*$`)

// queueOf returns the queue whose backlog per task a target tracking policy follows, or "" if the policy has another metric.
func queueOf(p *state.ScalingPolicy) string {
	c := p.TargetTrackingScalingPolicyConfiguration
	if c == nil || c.CustomizedMetricSpecification == nil {
		return ""
	}
	metrics := map[string]*types.TargetTrackingMetric{}
	var expression []string
	for _, q := range c.CustomizedMetricSpecification.Metrics {
		if q.MetricStat != nil {
			metrics[aws.ToString(q.Id)] = q.MetricStat.Metric
		} else if expression == nil {
			expression = perTask.FindStringSubmatch(aws.ToString(q.Expression))
		} else {
			return "" // there are several expressions
		}
	}
	if expression == nil {
		return ""
	}
	waiting, tasks := metrics[expression[1]], metrics[expression[2]]
	if !isMetric(waiting, namespaceSQS, waitingMetric) || !isMetric(tasks, "ECS/ContainerInsights", "RunningTaskCount") {
		return ""
	}
	for _, d := range waiting.Dimensions {
		if aws.ToString(d.Name) == "QueueName" {
			return aws.ToString(d.Value)
		}
	}
	return ""
}

func isMetric(m *types.TargetTrackingMetric, namespace, name string) bool {
	return m != nil && aws.ToString(m.Namespace) == namespace && aws.ToString(m.MetricName) == name
}

// SQS's metrics: "Available CloudWatch metrics for Amazon SQS" in its developer guide.
const (
	namespaceSQS   = "AWS/SQS"
	waitingMetric  = "ApproximateNumberOfMessagesVisible"
	workingMetric  = "ApproximateNumberOfMessagesNotVisible"
	arrivedMetric  = "NumberOfMessagesSent"
	finishedMetric = "NumberOfMessagesDeleted"
)

// watch is what the loop knows of a policy's queue and the service behind it. After a restart it reads the queue's past
// from the metrics and the tasks' past from their rows, and learns the rest.
type watch struct {
	name     string
	flows    []scaling.Flow
	until    time.Time     // the end of the last flow
	slots    float64       // messages that a task works on at once, as last measured
	start    time.Duration // how long a task takes to start
	capacity int
	since    time.Time // when the capacity was first seen
}

// behind is how far the loop stays behind the current second, since a second's metrics are put after its end.
const behind = time.Second

// watchesQueue reports whether one of the policies needs a look at a queue every second.
func (l *Loop) watchesQueue(policies []*state.ScalingPolicy) bool {
	return l.opts.Metrics != nil && slices.ContainsFunc(policies, func(p *state.ScalingPolicy) bool { return queueOf(p) != "" })
}

// queueWish returns what a policy on a queue wants in the fast reaction.
func (l *Loop) queueWish(queue string, p *state.ScalingPolicy, s *ecstypes.Service, now time.Time) (wish, error) {
	capacity := int(s.DesiredCount)
	out := wish{
		Proposal: scaling.Proposal{Policy: *p.PolicyName, Desired: capacity},
		base:     capacity,
		cause:    fmt.Sprintf("backlog of queue %s triggered policy %s", queue, *p.PolicyName),
	}
	w := l.watched[p.Key()]
	if w == nil || w.name != queue {
		w = &watch{name: queue, until: now.Truncate(time.Second).Add(-scaling.Memory * time.Second)}
		l.watched[p.Key()] = w
	}
	fresh, err := w.read(l.opts.Metrics, now.Truncate(time.Second).Add(-behind))
	if err != nil || !fresh {
		return out, err
	}
	w.observe(l.store.View(), s, now)
	t := scaling.TargetTrackingOf(p.TargetTrackingScalingPolicyConfiguration)
	b := t.Backlog(scaling.Queue{
		Flows:   w.flows,
		Slots:   w.slots,
		Start:   w.start,
		Settled: now.Sub(w.since) > t.ScaleInCooldown,
	}, capacity)
	w.flows[len(w.flows)-1].Wanted = b.Wanted
	out.Desired = b.Desired
	out.details = details(b, w, capacity)
	if out.Consents = t.DisableScaleIn; b.Desired == capacity && b.Drains {
		out.refusal = scaling.BacklogDrainsBeforeStart
	}
	return out, nil
}

// details words the figures behind a decision.
func details(b scaling.Backlog, w *watch, capacity int) string {
	text := fmt.Sprintf("%.0f messages wait and %.1f a second come.", b.Waiting, b.Arrival)
	if b.Rate > 0 {
		text += fmt.Sprintf(" A task finishes %.2f a second, so %d would need %s for those that wait; a new task takes %s to start. "+
			"The past minutes would have needed %d.",
			b.Rate, capacity, b.Drain.Round(100*time.Millisecond), w.start.Round(100*time.Millisecond), b.Hindsight)
	}
	return text
}

// read adds the queue's flows up to now, one per second. It reports whether there were any.
func (w *watch) read(store *metrics.Store, now time.Time) (bool, error) {
	n := int(now.Sub(w.until) / time.Second)
	if n <= 0 {
		return false, nil
	}
	if n > scaling.Memory {
		n = scaling.Memory
		w.flows = nil
	}
	first := now.Add(-time.Duration(n) * time.Second)
	flows := slices.Repeat([]scaling.Flow{{Waiting: unknown, Working: unknown}}, n)
	found := len(w.flows) > 0
	for _, one := range []struct {
		metric string
		take   func(*scaling.Flow, metrics.Set)
	}{
		{waitingMetric, func(f *scaling.Flow, s metrics.Set) { f.Waiting = s.Sum / s.Count }},
		{workingMetric, func(f *scaling.Flow, s metrics.Set) { f.Working = s.Sum / s.Count }},
		{arrivedMetric, func(f *scaling.Flow, s metrics.Set) { f.Arrived = s.Sum }},
		{finishedMetric, func(f *scaling.Flow, s metrics.Set) { f.Finished = s.Sum }},
	} {
		points, err := store.Read(metrics.Query{
			Metric: metrics.NewMetric(namespaceSQS, one.metric, metrics.Dimension{Name: "QueueName", Value: w.name}),
			Start:  first.Unix(),
			End:    now.Unix(),
			Period: 1,
		})
		if err != nil {
			return false, err
		}
		for _, p := range points {
			one.take(&flows[p.At-first.Unix()], p.Set)
			found = true
		}
	}
	if !found {
		return false, nil // the queue has no metrics yet
	}
	w.append(flows)
	w.until = now
	return true, nil
}

// unknown marks a second without a report of what waits or is worked on.
const unknown = -1

// append adds flows, and keeps the last Memory seconds. Unknown numbers are those of the second before.
func (w *watch) append(flows []scaling.Flow) {
	var last scaling.Flow
	if len(w.flows) > 0 {
		last = w.flows[len(w.flows)-1]
	}
	for i := range flows {
		f := &flows[i]
		if f.Waiting == unknown {
			f.Waiting = last.Waiting
		}
		if f.Working == unknown {
			f.Working = last.Working
		}
		last = *f
	}
	w.flows = append(w.flows, flows...)
	w.flows = w.flows[max(0, len(w.flows)-scaling.Memory):]
}

// observe updates what is known of the service: its running tasks, their slots and their start time.
func (w *watch) observe(v *state.View, s *ecstypes.Service, now time.Time) {
	if w.since.IsZero() {
		w.countRunning(v, aws.ToString(s.ServiceArn))
	}
	w.flows[len(w.flows)-1].Running = int(s.RunningCount)
	w.slots = cmp.Or(scaling.Slots(w.flows), w.slots)
	if w.capacity != int(s.DesiredCount) {
		w.capacity = int(s.DesiredCount)
		w.since = now
	}
	if d, ok := startup(v, aws.ToString(s.ServiceArn)); ok {
		w.start = d
	}
}

// countRunning computes from a service's tasks how many were running in each second before the first look. Without that, a
// restart would take what the tasks do now for all that they can do.
func (w *watch) countRunning(v *state.View, service string) {
	begin := w.until.Add(-time.Duration(len(w.flows)) * time.Second)
	for t := range v.Tasks.By(state.TasksByService, service) {
		if t.StartedAt == nil {
			continue
		}
		ended := cmp.Or(t.StoppingAt, t.StoppedAt)
		for i := range w.flows {
			second := begin.Add(time.Duration(i) * time.Second)
			if !second.Before(*t.StartedAt) && (ended == nil || second.Before(*ended)) {
				w.flows[i].Running++
			}
		}
	}
}

// startup returns the median time that a service's tasks took from creation to RUNNING.
func startup(v *state.View, service string) (time.Duration, bool) {
	var took []time.Duration
	for t := range v.Tasks.By(state.TasksByService, service) {
		if t.StartedAt != nil && t.CreatedAt != nil {
			took = append(took, t.StartedAt.Sub(*t.CreatedAt))
		}
	}
	if len(took) == 0 {
		return 0, false
	}
	slices.Sort(took)
	return took[len(took)/2], true
}
