package scaler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const (
	web       = "service/default/web"
	namespace = types.ServiceNamespaceEcs
	dimension = types.ScalableDimensionECSServiceDesiredCount
)

// world is a service under load, with its metric and alarms.
type world struct {
	loop    *Loop
	t       *testing.T
	store   *state.Store
	mu      sync.Mutex // guards what follows
	service *ecstypes.Service
	starts  bool    // desired tasks run at once
	load    float64 // total of all tasks
	points  []alarm.Datapoint
	alarms  []cloudwatchtypes.MetricAlarm
	refuses error // UpdateService's answer, if set
	updates int
}

func newWorld(t *testing.T, desired int32) *world {
	t.Helper()
	store := statetest.Open(t)
	return &world{
		t:       t,
		store:   store,
		starts:  true,
		service: &ecstypes.Service{Status: aws.String("ACTIVE"), DesiredCount: desired, RunningCount: desired},
	}
}

func (w *world) DescribeServices(context.Context, *ecs.DescribeServicesInput, ...func(*ecs.Options)) (*ecs.DescribeServicesOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.service == nil {
		return &ecs.DescribeServicesOutput{}, nil
	}
	return &ecs.DescribeServicesOutput{Services: []ecstypes.Service{*w.service}}, nil
}

func (w *world) UpdateService(_ context.Context, in *ecs.UpdateServiceInput, _ ...func(*ecs.Options)) (*ecs.UpdateServiceOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refuses != nil {
		return nil, w.refuses
	}
	if *in.Cluster != "default" || *in.Service != "web" {
		w.t.Errorf("it updates %s of %s", *in.Service, *in.Cluster)
	}
	w.updates++
	w.service.DesiredCount = *in.DesiredCount
	if w.starts {
		w.service.RunningCount = *in.DesiredCount
	}
	return &ecs.UpdateServiceOutput{}, nil
}

func (w *world) DescribeAlarms(
	context.Context, *cloudwatch.DescribeAlarmsInput, ...func(*cloudwatch.Options),
) (*cloudwatch.DescribeAlarmsOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &cloudwatch.DescribeAlarmsOutput{
		MetricAlarms: slices.DeleteFunc(slices.Clone(w.alarms), func(a cloudwatchtypes.MetricAlarm) bool {
			return a.StateValue != cloudwatchtypes.StateValueAlarm
		}),
	}, nil
}

func (w *world) GetMetricData(
	_ context.Context, in *cloudwatch.GetMetricDataInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.GetMetricDataOutput, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var r cloudwatchtypes.MetricDataResult
	for _, p := range slices.Backward(w.points) {
		if !p.Timestamp.Before(*in.StartTime) && p.Timestamp.Before(*in.EndTime) {
			r.Timestamps, r.Values = append(r.Timestamps, p.Timestamp), append(r.Values, p.Value)
		}
	}
	return &cloudwatch.GetMetricDataOutput{MetricDataResults: []cloudwatchtypes.MetricDataResult{r}}, nil
}

// passMinute does what CloudWatch does in a minute: it takes a data point and evaluates the alarms.
func (w *world) passMinute() {
	w.change(func() {
		value := w.load / float64(max(w.service.RunningCount, 1))
		w.points = append(w.points, alarm.Datapoint{Timestamp: time.Now().Truncate(time.Minute), Value: value, SampleCount: 1})
	})
	time.Sleep(time.Minute)
	w.change(func() {
		for i := range w.alarms {
			w.evaluate(&w.alarms[i], time.Now())
		}
	})
	time.Sleep(2 * time.Second) // for the loop to see it
	synctest.Wait()
}

func (w *world) evaluate(a *cloudwatchtypes.MetricAlarm, now time.Time) {
	m := alarm.Metric{
		ComparisonOperator: string(a.ComparisonOperator),
		Threshold:          *a.Threshold,
		EvaluationPeriods:  int(*a.EvaluationPeriods),
		Period:             time.Minute,
	}
	from, to := m.Range(now)
	var points []alarm.Datapoint
	for _, p := range w.points {
		if !p.Timestamp.Before(from) && p.Timestamp.Before(to) {
			points = append(points, p)
		}
	}
	if got := cloudwatchtypes.StateValue(m.Evaluate(alarm.State(a.StateValue), points, now).State); got != a.StateValue {
		a.StateValue = got
		a.StateUpdatedTimestamp = &now
		w.loop.Tell(*a.AlarmName)
	}
}

// change changes the world under its lock, since the loop runs.
func (w *world) change(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

func (w *world) desired() (n int32) {
	w.change(func() { n = w.service.DesiredCount })
	return n
}

func (w *world) update(fn func(*state.Tx)) {
	w.t.Helper()
	if err := w.store.Update(context.Background(), func(tx *state.Tx) error { fn(tx); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

func target(lowest, highest int32) *state.ScalableTarget {
	return &state.ScalableTarget{ScalableTarget: types.ScalableTarget{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        aws.String(web),
		MinCapacity:       &lowest,
		MaxCapacity:       &highest,
		SuspendedState:    &types.SuspendedState{},
	}}
}

func (w *world) policy(name string) *state.ScalingPolicy {
	return &state.ScalingPolicy{ScalingPolicy: types.ScalingPolicy{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        aws.String(web),
		PolicyName:        &name,
		PolicyARN:         aws.String("arn:" + name),
	}}
}

// track adds a target tracking policy with its two alarms.
func (w *world) track(value float64, cooldown int32) {
	p := w.policy("track")
	p.TargetTrackingScalingPolicyConfiguration = &types.TargetTrackingScalingPolicyConfiguration{
		TargetValue:      &value,
		ScaleInCooldown:  &cooldown,
		ScaleOutCooldown: &cooldown,
	}
	t := scaling.TargetTrackingOf(p.TargetTrackingScalingPolicyConfiguration)
	for _, a := range []scaling.Alarm{t.High(web, "u", scaling.Faithful), t.Low(web, "u", scaling.Faithful)} {
		w.alarm(a.Name, "arn:track", a.ComparisonOperator, a.Threshold, int32(a.EvaluationPeriods))
	}
	w.update(func(tx *state.Tx) { tx.ScalingPolicies.Put(p) })
}

func (w *world) alarm(name, action, operator string, threshold float64, periods int32) {
	a := cloudwatchtypes.MetricAlarm{
		AlarmName:          &name,
		AlarmActions:       []string{action},
		ActionsEnabled:     aws.Bool(true),
		StateValue:         cloudwatchtypes.StateValueInsufficientData,
		ComparisonOperator: cloudwatchtypes.ComparisonOperator(operator),
		Threshold:          &threshold,
		EvaluationPeriods:  &periods,
		Period:             aws.Int32(60),
		Namespace:          aws.String("n"),
		MetricName:         aws.String("m"),
		Statistic:          cloudwatchtypes.StatisticAverage,
	}
	w.change(func() { w.alarms = append(w.alarms, a) })
}

// run runs fn beside the loop, in fake time that starts at a full minute.
func run(t *testing.T, desired int32, fn func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, desired)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		w.loop = New(w.store, Options{Now: time.Now, ECS: w, CloudWatch: w, Log: slog.New(slog.DiscardHandler)})
		go func() { ended <- w.loop.Run(ctx) }()
		fn(w)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// tick waits for the loop's next step.
func tick() {
	time.Sleep(every + time.Millisecond)
	synctest.Wait()
}

// activities returns the activities, oldest first: "status: description cause reasons".
func (w *world) activities() (out []string) {
	all := slices.SortedFunc(w.store.View().ScalingActivities.All(), func(a, b *state.ScalingActivity) int {
		return cmp.Or(a.StartTime.Compare(*b.StartTime), strings.Compare(*a.ActivityId, *b.ActivityId))
	})
	for _, a := range all {
		s := fmt.Sprintf("%s: %s %s", a.StatusCode, *a.Description, *a.Cause)
		for _, r := range a.NotScaledReasons {
			s += " " + *r.Code
		}
		out = append(out, s)
	}
	return out
}

func (w *world) check(what string, desired int32, activities ...string) {
	w.t.Helper()
	if w.desired() != desired {
		w.t.Errorf("%s: the desired count is %d, want %d", what, w.desired(), desired)
	}
	if got := w.activities(); !slices.Equal(got, activities) {
		w.t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(activities, "\n     "))
	}
}

// TestTargetTracking steps the load up and down: the loop scales out after 3 data points, and in after 15.
func TestTargetTracking(t *testing.T) {
	const (
		high = "monitor alarm TargetTracking-service/default/web-AlarmHigh-u in state ALARM triggered policy track"
		low  = "monitor alarm TargetTracking-service/default/web-AlarmLow-u in state ALARM triggered policy track"
	)
	run(t, 2, func(w *world) {
		w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(target(1, 5)) })
		w.track(75, 60)
		w.load = 140 // 70 of 2: between the two alarms
		for range 5 {
			w.passMinute()
		}
		w.check("steady", 2)
		w.load = 300
		w.passMinute()
		w.passMinute()
		w.check("two data points are not enough", 2)
		w.passMinute()
		w.check("scaled out", 4, "Successful: Setting desired count to 4. "+high)
		for range 20 {
			w.passMinute()
		}
		w.check("at the target", 4, "Successful: Setting desired count to 4. "+high)
		w.load = 40
		for range 14 {
			w.passMinute()
		}
		w.check("14 data points are not enough", 4, "Successful: Setting desired count to 4. "+high)
		w.passMinute()
		w.check("scaled in, to the minimum", 1,
			"Successful: Setting desired count to 4. "+high, "Successful: Setting desired count to 1. "+low)
		for range 30 {
			w.passMinute()
		}
		w.check("at the minimum, and told so once", 1,
			"Successful: Setting desired count to 4. "+high, "Successful: Setting desired count to 1. "+low,
			"Failed: Attempting to scale due to alarm triggered "+low+" AlreadyAtMinCapacity")
		w.load = 10000
		for range 20 {
			w.passMinute()
		}
		if got := w.activities(); w.desired() != 5 || !strings.HasSuffix(got[len(got)-1], high+" AlreadyAtMaxCapacity") {
			t.Errorf("at the maximum there are %d: %s", w.desired(), strings.Join(got, "\n"))
		}
	})
}

// TestNoScaleInThatFlaps: the metric is below the low alarm, but one task less would be too few.
func TestNoScaleInThatFlaps(t *testing.T) {
	run(t, 2, func(w *world) {
		w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(target(1, 5)) })
		w.track(75, 60)
		w.load = 120
		for range 30 {
			w.passMinute()
		}
		w.check("stays", 2,
			"Failed: Attempting to scale due to alarm triggered monitor alarm TargetTracking-service/default/web-AlarmLow-u in "+
				"state ALARM triggered policy track AutoScalingAnticipatedFlapping")
		if reason := slices.Collect(w.store.View().ScalingActivities.All())[0].NotScaledReasons[0]; *reason.CurrentCapacity != 2 ||
			reason.MinCapacity != nil {
			t.Errorf("the reason is %+v", reason)
		}
	})
}

// TestConstantLoad: even without a cool-down, data points from before a change don't cause another.
func TestConstantLoad(t *testing.T) {
	for _, c := range []struct {
		load float64
		from int32
		want int32
	}{{300, 1, 4}, {300, 2, 4}, {300, 10, 4}, {301, 4, 5}, {10, 10, 1}, {740, 3, 10}} {
		run(t, c.from, func(w *world) {
			w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(target(1, 20)) })
			w.track(75, 0)
			w.load = c.load
			for range 50 {
				w.passMinute()
			}
			if got := w.desired(); got != c.want || w.updates != 1 {
				t.Errorf("load %v from %d: there are %d after %d changes, want %d after 1:\n%s",
					c.load, c.from, got, w.updates, c.want, strings.Join(w.activities(), "\n"))
			}
		})
	}
}

// TestConstantLoadSettles: whatever the load, the bounds and the target, and however long tasks take to start within the
// cool-down, the capacity moves in one direction only and within the bounds. It never scales in below what the load needs,
// and settles on that or one more.
func TestConstantLoadSettles(t *testing.T) {
	for seed := range uint64(24) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		lowest := 1 + rnd.Int32N(5)
		highest := lowest + rnd.Int32N(40)
		from := lowest + rnd.Int32N(highest-lowest+1)
		goal, load, start := 10+90*rnd.Float64(), 0.0, rnd.IntN(4)
		load = goal * 50 * rnd.Float64() * rnd.Float64()
		need := min(max(int32(math.Ceil(load/goal-1e-9)), lowest), highest)
		run(t, from, func(w *world) {
			w.starts = false
			w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(target(lowest, highest)) })
			w.track(goal, 300)
			w.load = load
			history := []int32{from}
			for range 90 {
				w.passMinute()
				history = append(history, w.desired())
				w.change(func() { w.service.RunningCount = history[max(0, len(history)-1-start)] })
			}
			up, down := false, false
			for i := 1; i < len(history); i++ {
				before, now := history[i-1], history[i]
				up, down = up || now > before, down || now < before
				if now < lowest || now > highest || now < before && now < need {
					t.Errorf("seed %d: from %d to %d, with bounds of %d and %d and a need of %d", seed, before, now, lowest, highest, need)
				}
			}
			last := history[len(history)-1]
			if up && down || last < need || last > need+1 && load/float64(last) < 0.9*goal {
				t.Errorf("seed %d: the need is %d, the way %v\n%s", seed, need, slices.Compact(history), strings.Join(w.activities(), "\n"))
			}
		})
	}
}

// TestStep: a user's own alarm with a step policy, which adds once per cool-down.
func TestStep(t *testing.T) {
	run(t, 1, func(w *world) {
		p := w.policy("steps")
		p.StepScalingPolicyConfiguration = &types.StepScalingPolicyConfiguration{
			AdjustmentType: types.AdjustmentTypeChangeInCapacity,
			Cooldown:       aws.Int32(150),
			StepAdjustments: []types.StepAdjustment{
				{MetricIntervalLowerBound: aws.Float64(0), MetricIntervalUpperBound: aws.Float64(100), ScalingAdjustment: aws.Int32(1)},
				{MetricIntervalLowerBound: aws.Float64(100), ScalingAdjustment: aws.Int32(3)},
			},
		}
		w.update(func(tx *state.Tx) {
			tx.ScalableTargets.Put(target(1, 20))
			tx.ScalingPolicies.Put(p)
		})
		w.alarm("queue", "arn:steps", "GreaterThanOrEqualToThreshold", 50, 1)
		depth := func(n float64) {
			w.load = n * float64(w.desired()) // so that the metric is n, however many tasks share the load
			w.passMinute()
		}
		depth(60)
		if w.desired() != 2 {
			t.Fatalf("there are %d, want 2", w.desired())
		}
		depth(60)
		if w.desired() != 2 {
			t.Errorf("in the cool-down it adds the same again: %d", w.desired())
		}
		depth(200)
		if w.desired() != 4 {
			t.Errorf("in the cool-down a larger step counts from 1: %d, want 4", w.desired())
		}
		for range 3 {
			depth(60)
		}
		if w.desired() != 5 {
			t.Errorf("after the cool-down there are %d, want 5", w.desired())
		}
	})
}

func TestSuspended(t *testing.T) {
	run(t, 2, func(w *world) {
		row := target(1, 5)
		row.SuspendedState.DynamicScalingOutSuspended = aws.Bool(true)
		row.SuspendedState.DynamicScalingInSuspended = aws.Bool(true)
		w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(row) })
		w.track(75, 0)
		for _, load := range []float64{1000, 1} {
			w.load = load
			for range 20 {
				w.passMinute()
			}
		}
		if w.updates != 0 {
			t.Errorf("it scaled %d times: %s", w.updates, strings.Join(w.activities(), "\n"))
		}
	})
}

// TestBounds: a change of the bounds moves the capacity once. Later changes by hand stay.
func TestBounds(t *testing.T) {
	run(t, 2, func(w *world) {
		put := func(lowest, highest int32) {
			row := target(lowest, highest)
			row.Unsettled = true
			w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(row) })
			tick()
			tick()
		}
		put(1, 5)
		w.check("within", 2)
		put(3, 5)
		w.check("raised", 3, "Successful: Setting desired count to 3. minimum capacity was set to 3")
		put(0, 1)
		w.check("lowered", 1, "Successful: Setting desired count to 3. minimum capacity was set to 3",
			"Successful: Setting desired count to 1. maximum capacity was set to 1")
		w.change(func() { w.service.DesiredCount = 4 })
		tick()
		w.check("by hand", 4, "Successful: Setting desired count to 3. minimum capacity was set to 3",
			"Successful: Setting desired count to 1. maximum capacity was set to 1")
	})
}

func TestScheduledAction(t *testing.T) {
	run(t, 2, func(w *world) {
		row := &state.ScheduledAction{ScheduledAction: types.ScheduledAction{
			ServiceNamespace:     namespace,
			ScalableDimension:    dimension,
			ResourceId:           aws.String(web),
			ScheduledActionName:  aws.String("hourly"),
			Schedule:             aws.String("rate(1 hour)"),
			CreationTime:         aws.Time(time.Now()),
			ScalableTargetAction: &types.ScalableTargetAction{MinCapacity: aws.Int32(4), MaxCapacity: aws.Int32(8)},
		}, DueAt: aws.Time(time.Now().Add(time.Hour))}
		w.update(func(tx *state.Tx) {
			tx.ScalableTargets.Put(target(1, 5))
			tx.ScheduledActions.Put(row)
		})
		time.Sleep(time.Hour - 2*time.Second)
		w.check("not due", 2)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		w.check("done", 4,
			"Successful: Setting min capacity to 4 and max capacity to 8 scheduled action name hourly was triggered",
			"Successful: Setting desired count to 4. minimum capacity was set to 4")
		v := w.store.View()
		if due := v.ScheduledActions.Get(row.Key()).DueAt; !due.Equal(row.CreationTime.Add(2 * time.Hour)) {
			t.Errorf("it is due next at %s", due)
		}
		changed := *v.ScalableTargets.Get(row.TargetKey())
		changed.MaxCapacity = aws.Int32(3)
		changed.MinCapacity = aws.Int32(0)
		onlyMin := *row
		onlyMin.ScalableTargetAction = &types.ScalableTargetAction{MinCapacity: aws.Int32(4)}
		onlyMin.DueAt = aws.Time(time.Now())
		w.update(func(tx *state.Tx) {
			tx.ScalableTargets.Put(&changed)
			tx.ScheduledActions.Put(&onlyMin)
		})
		tick()
		if got := w.activities(); !strings.HasPrefix(got[len(got)-1], "Failed: Setting min capacity to 4") ||
			*w.store.View().ScalableTargets.Get(row.TargetKey()).MinCapacity != 0 {
			t.Errorf("a minimum above the maximum: %s", strings.Join(got, "\n"))
		}
	})
}

// TestOutcomes: each way that an activity can end.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(*world)
		want  types.ScalingActivityStatusCode
		says  string
	}{
		{"the tasks do not run yet", func(w *world) {}, "InProgress",
			"Successfully set desired count to 3. Waiting for change to be fulfilled by ecs."},
		{"they run", func(w *world) { w.service.RunningCount = 3 }, "Successful",
			"Successfully set desired count to 3. Change successfully fulfilled by ecs."},
		{"somebody else sets it", func(w *world) { w.service.DesiredCount = 7 }, "Overridden", "Another change has set it to 7 since."},
		{"the service goes", func(w *world) { w.service = nil }, "Unfulfilled", "The service is gone."},
	} {
		run(t, 2, func(w *world) {
			w.change(func() { w.starts = false })
			row := target(3, 5)
			row.Unsettled = true
			w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(row) })
			tick()
			w.change(func() { c.after(w) })
			tick()
			a := slices.Collect(w.store.View().ScalingActivities.All())[0]
			if a.StatusCode != c.want || !strings.Contains(*a.StatusMessage, c.says) || (a.EndTime != nil) != (c.want != "InProgress") {
				t.Errorf("%s: %s, %s", c.name, a.StatusCode, *a.StatusMessage)
			}
		})
	}
}

// TestRefusedAndCutOff: if ECS refuses a change, the activity fails and says why. After any other error, or a crash, it's retried.
func TestRefusedAndCutOff(t *testing.T) {
	run(t, 2, func(w *world) {
		w.change(func() { w.refuses = &ecstypes.InvalidParameterException{Message: aws.String("no")} })
		row := target(3, 5)
		row.Unsettled = true
		w.update(func(tx *state.Tx) { tx.ScalableTargets.Put(row) })
		tick()
		a := slices.Collect(w.store.View().ScalingActivities.All())[0]
		if a.StatusCode != "Failed" ||
			*a.StatusMessage != "Failed to set desired count to 3. Reason: no (Service: ECS; Error Code: InvalidParameterException)." {
			t.Errorf("refused: %s, %s", a.StatusCode, *a.StatusMessage)
		}
		w.change(func() { w.refuses = errors.New("the store is closed") })
		w.update(func(tx *state.Tx) {
			tx.ScalingActivities.Delete(*a.ActivityId)
			tx.ScalableTargets.Put(row)
		})
		tick()
		w.check("it is still to be done", 2, "Pending: Setting desired count to 3. minimum capacity was set to 3")
		w.change(func() { w.refuses = nil })
		tick()
		tick()
		w.check("done after all", 3, "Successful: Setting desired count to 3. minimum capacity was set to 3")
	})
}
