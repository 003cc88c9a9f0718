package sim

import (
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarms"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// event is something that happens at a time. Simultaneous events happen in the order in which they were scheduled.
type event struct {
	at     time.Time
	number int
	do     func(context.Context) error
	done   bool // done or canceled
}

type events struct {
	list  []*event
	count int
}

func (e events) Len() int { return len(e.list) }
func (e events) Less(i, j int) bool {
	if c := e.list[i].at.Compare(e.list[j].at); c != 0 {
		return c < 0
	}
	return e.list[i].number < e.list[j].number
}
func (e events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *events) Push(x any)   { e.list = append(e.list, x.(*event)) }
func (e *events) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

// schedule schedules a function for a time. The caller holds mu.
func (p *replay) schedule(t time.Time, do func(context.Context) error) *event {
	e := &event{at: t, number: p.events.count, do: do}
	p.events.count++
	heap.Push(&p.events, e)
	return e
}

// afterFunc is time.AfterFunc in the replay's time.
func (p *replay) afterFunc(d time.Duration, do func()) func() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.schedule(p.timing.Now().Add(d), func(context.Context) error { do(); return nil })
	return func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		wasDone := e.done
		e.done = true
		return !wasDone
	}
}

// popDue removes and returns the next event that is due by a time, or nil.
func (p *replay) popDue(until time.Time) *event {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.events.list) > 0 && !p.events.list[0].at.After(until) {
		if e := heap.Pop(&p.events).(*event); !e.done {
			e.done = true
			return e
		}
	}
	return nil
}

// Change implements state.Observer. It notes changed tasks for the nodes.
func (p *replay) Change(before, after any) {
	b, hadTask := before.(*state.Task)
	a, hasTask := after.(*state.Task)
	if !hadTask && !hasTask {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks = append(p.tasks, taskChange{b, a})
}

// replay plays the load, second by second.
func (p *replay) replay(ctx context.Context, policy *Policy) (*Result, error) {
	if policy != nil {
		if err := p.install(ctx, policy); err != nil {
			return nil, err
		}
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	for at := time.Second; at <= p.scenario.Length; at += time.Second {
		if err := p.playSecond(ctx, p.epoch.Add(at)); err != nil {
			return nil, err
		}
	}
	return p.summarize(), nil
}

// playSecond plays the time until the end of a second, and then lets the control plane observe it and act.
func (p *replay) playSecond(ctx context.Context, end time.Time) error {
	if err := p.advance(ctx, end); err != nil {
		return err
	}
	if err := p.measure(end); err != nil {
		return err
	}
	if err := p.evaluateAlarms(ctx, end); err != nil {
		return err
	}
	p.timing.AdvanceTo(end.Add(scalerDelay))
	if err := p.Scaler.Step(ctx); err != nil {
		return err
	}
	if err := p.settle(ctx); err != nil {
		return err
	}
	p.record(end)
	if end.Equal(end.Truncate(sweepEvery)) {
		return p.State.Sweep(ctx, end)
	}
	return nil
}

// evaluateAlarms evaluates the alarms that are due, and tells the policies about them.
func (p *replay) evaluateAlarms(ctx context.Context, now time.Time) error {
	opts := alarms.Options{Now: p.timing.Now, Metrics: p.Metrics, Arrivals: p.Arrivals, Region: region, Account: account}
	if p.Arrivals != nil {
		if err := alarms.Arrived(ctx, p.State, opts); err != nil {
			return err
		}
	}
	if due := now.Add(-alarmLag); due.Equal(due.Truncate(alarmEvery)) {
		if err := alarms.Round(ctx, p.State, opts, due); err != nil {
			return err
		}
	}
	if err := alarms.Release(ctx, p.State, opts); err != nil {
		return err
	}
	return p.Deliveries.Step(ctx)
}

// advance lets time pass until the end of a second, while requests arrive and finish.
func (p *replay) advance(ctx context.Context, end time.Time) error {
	for {
		e := p.popDue(end)
		if e == nil {
			p.advanceTo(end)
			if e = p.popDue(end); e == nil { // a task may have finished its requests
				return nil
			}
		}
		p.advanceTo(e.at)
		if err := e.do(ctx); err != nil {
			return err
		}
		if err := p.settle(ctx); err != nil {
			return err
		}
	}
}

func (p *replay) advanceTo(t time.Time) {
	p.timing.AdvanceTo(t)
	p.load.advance(max(p.load.now, t.Sub(p.epoch)))
}

// scalerDelay is how long after a second's end the scaling loop runs, so that the second's metrics are there.
const scalerDelay = time.Nanosecond

const (
	alarmLag   = 2 * time.Second
	alarmEvery = 10 * time.Second
	sweepEvery = 10 * time.Minute
)

// settle runs the services' loop and the nodes until they have nothing left to do now.
func (p *replay) settle(ctx context.Context) error {
	for {
		looked, err := p.Rollout.Step(ctx, p.State)
		if err != nil {
			return err
		}
		if !p.actAsNodes() && !looked {
			return nil
		}
	}
}

// actAsNodes does what nodes do about changed tasks. It reports whether any had changed.
func (p *replay) actAsNodes() bool {
	p.mu.Lock()
	changes := p.tasks
	p.tasks = nil
	p.mu.Unlock()
	for _, c := range changes {
		switch {
		case c.after == nil:
		case c.before == nil:
			p.startTask(c.after)
		case *c.before.DesiredStatus != "STOPPED" && *c.after.DesiredStatus == "STOPPED":
			p.stopTask(c.after)
		}
	}
	return len(changes) > 0
}

// startTask starts a new task, which becomes RUNNING after the scenario's start time.
func (p *replay) startTask(t *state.Task) {
	arn := *t.TaskArn
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.timing.Now()
	p.held[arn] = now
	p.result.Peak = max(p.result.Peak, len(p.held))
	p.schedule(now.Add(p.scenario.Start), func(ctx context.Context) error {
		row := p.State.View().Tasks.Get(arn)
		if row == nil || *row.DesiredStatus == "STOPPED" {
			return nil
		}
		p.running++
		p.load.addTask(arn)
		return p.report(ctx, row, "RUNNING", nil)
	})
}

// stopTask stops a task once its requests are done.
func (p *replay) stopTask(t *state.Task) {
	started := p.load.servers[*t.TaskArn] != nil
	p.load.removeTask(*t.TaskArn, func(at time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.schedule(p.epoch.Add(at), func(ctx context.Context) error {
			p.result.Held += p.timing.Now().Sub(p.held[*t.TaskArn])
			delete(p.held, *t.TaskArn)
			if started {
				p.running--
			}
			return p.report(ctx, t, "STOPPED", aws.Int32(0))
		})
	})
}

// report reports a task's new status to ECS, as a node does.
func (p *replay) report(ctx context.Context, t *state.Task, status string, exit *int32) error {
	in := &awsecs.SubmitTaskStateChangeInput{Cluster: t.ClusterArn, Task: t.TaskArn, Status: &status}
	for _, c := range t.Containers {
		in.Containers = append(in.Containers, types.ContainerStateChange{ContainerName: c.Name, Status: &status, ExitCode: exit})
	}
	_, err := p.ECS.SubmitTaskStateChange(ctx, in)
	return err
}

// measure puts the metrics of the past second: the tasks' load as nodes report it, and the queue's as SQS does.
func (p *replay) measure(end time.Time) error {
	samples := []metrics.Sample{
		queueMetric("ApproximateNumberOfMessagesVisible", "Count", float64(p.load.queued())),
		queueMetric("ApproximateNumberOfMessagesNotVisible", "Count", float64(p.load.working)),
		queueMetric("ApproximateAgeOfOldestMessage", "Seconds", p.load.oldest().Seconds()),
		queueMetric("NumberOfMessagesSent", "Count", float64(p.load.arrived)),
		queueMetric("NumberOfMessagesDeleted", "Count", float64(p.load.finished)),
		serviceMetric("ECS/ContainerInsights", "RunningTaskCount", "Count", metrics.One(float64(p.running))),
	}
	if p.running > 0 {
		busy := 100 * p.load.busy.Seconds() / float64(p.running*p.load.slots)
		use := metrics.Of([]metrics.Value{{Value: min(busy, 100), Count: float64(p.running)}})
		samples = append(samples,
			serviceMetric("AWS/ECS", "CPUUtilization", "Percent", use),
			serviceMetric("ECS/ContainerInsights/Prometheus", "DCGM_FI_DEV_GPU_UTIL", "Percent", use))
	}
	for i := range samples {
		samples[i].At = end.Unix()
		samples[i].Fine = true
	}
	return p.Metrics.Put(samples)
}

func queueMetric(name, unit string, value float64) metrics.Sample {
	return metrics.Sample{
		Metric: metrics.NewMetric("AWS/SQS", name, metrics.Dimension{Name: "QueueName", Value: Queue}),
		Unit:   unit,
		Set:    metrics.One(value),
	}
}

func serviceMetric(namespace, name, unit string, set metrics.Set) metrics.Sample {
	by := []metrics.Dimension{{Name: "ClusterName", Value: Cluster}, {Name: "ServiceName", Value: Service}}
	return metrics.Sample{Metric: metrics.NewMetric(namespace, name, by...), Unit: unit, Set: set}
}

// record adds the current state to the timeline.
func (p *replay) record(end time.Time) {
	m := Moment{
		At:       end.Sub(p.epoch),
		Running:  p.running,
		Waiting:  p.load.queued(),
		Working:  p.load.working,
		Arrived:  p.load.arrived,
		Finished: p.load.finished,
	}
	for s := range p.State.View().Services.All() {
		m.Desired = int(s.DesiredCount)
	}
	p.load.arrived = 0
	p.load.finished = 0
	p.load.busy = 0
	p.result.Timeline = append(p.result.Timeline, m)
}

// summarize completes the result.
func (p *replay) summarize() *Result {
	r := &p.result
	for _, since := range p.held {
		r.Held += p.epoch.Add(p.scenario.Length).Sub(since)
	}
	r.Requests = p.load.next
	r.Met = p.load.met
	r.Waits = p.load.waits
	slices.Sort(r.Waits)
	for a := range p.State.View().ScalingActivities.All() {
		s := Scaling{At: a.StartTime.Sub(p.epoch), Cause: aws.ToString(a.Cause), Details: aws.ToString(a.Details)}
		if a.Desired != nil {
			s.Desired = int(*a.Desired)
		}
		if len(a.NotScaledReasons) > 0 {
			s.Reason = aws.ToString(a.NotScaledReasons[0].Code)
		}
		r.Scalings = append(r.Scalings, s)
	}
	return r
}
