package alarms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/cloudwatch/alarm"
	"github.com/pintle/pintle/internal/cloudwatch/metricquery"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// world is a running loop and a record of what it did.
type world struct {
	t       *testing.T
	store   *state.Store
	metrics *metrics.Store
	stop    func()

	mu    sync.Mutex
	acts  []string
	fail  error
	hangs string // the action that hangs for ten seconds
}

func start(t *testing.T) *world { return startAs(t, nil) }

func startAs(t *testing.T, arrivals *Arrivals) *world {
	t.Helper()
	w := &world{t: t, store: statetest.Open(t)}
	var err error
	if w.metrics, err = metrics.Open(t.TempDir(), metrics.Options{Note: arrivals.note()}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error {
			return Run(ctx, w.store, Options{Now: time.Now, Metrics: w.metrics, Region: "r", Account: "a", Arrivals: arrivals})
		})
		g.Go(func() error {
			return delivery.New(state.Outbox{Store: w.store, Now: time.Now}, delivery.Options{
				Now:    time.Now,
				Routes: []delivery.Route{{Prefix: "", Tell: w.act}},
				Log:    slog.New(slog.DiscardHandler),
			}).Run(ctx)
		})
		ended <- g.Wait()
	}()
	w.stop = func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
		w.metrics.Close() //nolint:errcheck // the test is over
		w.store.Close()   //nolint:errcheck // the test is over
	}
	return w
}

// note returns Note, or nil without arrivals.
func (a *Arrivals) note() func([]metrics.Sample) {
	if a == nil {
		return nil
	}
	return a.Note
}

// act records what a destination is told.
func (w *world) act(ctx context.Context, d delivery.Debt) error {
	if d.Destination == w.hangs {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Second):
		}
	}
	var m struct{ OldStateValue, NewStateValue string }
	if err := json.Unmarshal([]byte(d.Body), &m); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts = append(w.acts, fmt.Sprintf("%s %s>%s", d.Destination, m.OldStateValue, m.NewStateValue))
	return w.fail
}

// done returns the actions since the last call, sorted, because an alarm's actions run concurrently.
func (w *world) done() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	acts := w.acts
	w.acts = nil
	slices.Sort(acts)
	return strings.Join(acts, "; ")
}

func (w *world) put(alarms ...*state.Alarm) {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), func(tx *state.Tx) error {
		for _, a := range alarms {
			tx.Alarms.Put(a)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) report(value float64) {
	w.t.Helper()
	sample := metrics.Sample{Metric: metrics.NewMetric("n", "m"), At: time.Now().Unix(), Fine: true, Set: metrics.One(value)}
	if err := w.metrics.Put([]metrics.Sample{sample}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) state(name string) string {
	return string(w.store.View().Alarms.Get(name).State().Value)
}

func (w *world) expect(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func metricAlarm(name string, period int32, actions ...string) *state.Alarm {
	return &state.Alarm{Metric: &types.MetricAlarm{
		AlarmName:          &name,
		AlarmArn:           aws.String("arn:aws:cloudwatch:r:a:alarm:" + name),
		Namespace:          aws.String("n"),
		MetricName:         aws.String("m"),
		Statistic:          types.StatisticAverage,
		Period:             &period,
		EvaluationPeriods:  aws.Int32(2),
		Threshold:          aws.Float64(75),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		ActionsEnabled:     aws.Bool(true),
		AlarmActions:       actions,
		StateValue:         types.StateValueInsufficientData,
	}}
}

func composite(name, rule string, actions ...string) *state.Alarm {
	return &state.Alarm{Composite: &types.CompositeAlarm{
		AlarmName:      &name,
		AlarmArn:       aws.String("arn:aws:cloudwatch:r:a:alarm:" + name),
		AlarmRule:      &rule,
		ActionsEnabled: aws.Bool(true),
		AlarmActions:   actions,
		StateValue:     types.StateValueInsufficientData,
	}}
}

func TestMetricAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.stop()
		const policy = "arn:aws:autoscaling:r:a:scalingPolicy:p"
		maths := metricAlarm("maths", 60)
		maths.Metric.Namespace = nil
		maths.Metric.MetricName = nil
		maths.Metric.Statistic = ""
		maths.Metric.Period = nil
		maths.Metric.Metrics = []types.MetricDataQuery{
			{
				Id:         aws.String("m1"),
				ReturnData: aws.Bool(false),
				MetricStat: &types.MetricStat{
					Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")},
					Period: aws.Int32(60),
					Stat:   aws.String("Average"),
				},
			},
			{Id: aws.String("e1"), Expression: aws.String("m1 - 30")},
		}
		w.put(metricAlarm("slow", 60, "arn:aws:sns:r:a:t", policy), metricAlarm("fast", 10), maths)
		for range 6 {
			w.report(80)
			time.Sleep(5 * time.Second)
		}
		w.expect("fast after 30 s", w.state("fast"), "ALARM")
		w.expect("slow after 30 s", w.state("slow"), "INSUFFICIENT_DATA")
		for range 18 {
			w.report(80)
			time.Sleep(5 * time.Second)
		}
		time.Sleep(5 * time.Second)
		w.expect("slow after 2 min", w.state("slow"), "ALARM")
		w.expect("maths after 2 min", w.state("maths"), "OK")
		w.expect("actions", w.done(), policy+" INSUFFICIENT_DATA>ALARM; arn:aws:sns:r:a:t INSUFFICIENT_DATA>ALARM")
		reason := *w.store.View().Alarms.Get("slow").Metric.StateReason
		if !strings.HasPrefix(reason, "Threshold Crossed: 2 out of the last 2 datapoints [80.0") {
			t.Errorf("the reason is %q", reason)
		}
		for range 12 {
			w.report(85)
			time.Sleep(5 * time.Second)
		}
		w.expect("actions while it stays", w.done(), "")
		for range 24 {
			w.report(10)
			time.Sleep(5 * time.Second)
		}
		w.expect("slow in the end", w.state("slow"), "OK")
		w.expect("fast in the end", w.state("fast"), "OK")
		if w.store.View().Alarms.Get("slow").Owed != nil {
			t.Error("actions are owed that were done")
		}
		var told []string
		for h := range w.store.View().AlarmHistory.By(state.AlarmHistoryByAlarm, "slow") {
			told = append(told, *h.Item.HistorySummary)
		}
		slices.Sort(told[1:3]) // the actions ran concurrently
		w.expect(
			"history", strings.Join(told, "; "),
			"Alarm updated from INSUFFICIENT_DATA to ALARM; Successfully executed action "+policy+"; "+
				"Successfully executed action arn:aws:sns:r:a:t; Alarm updated from ALARM to OK",
		)
	})
}

func TestCompositeAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.stop()
		w.put(
			metricAlarm("a", 60), metricAlarm("b", 60),
			composite("both", "ALARM(a) AND ALARM(b)", "http://both"),
			composite("top", "NOT OK(both)", "http://top"),
		)
		set := func(name string, value types.StateValue) {
			t.Helper()
			time.Sleep(time.Millisecond) // so that no two change at the same time
			err := w.store.Update(t.Context(), func(tx *state.Tx) error {
				tx.SetAlarmState(tx.Alarms.Get(name), state.AlarmState{Value: value, Reason: "set"}, time.Now())
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		synctest.Wait()
		w.expect("both at first", w.state("both"), "OK")
		w.expect("top at first", w.state("top"), "OK")
		w.done()
		set("a", types.StateValueAlarm)
		w.expect("both with one", w.state("both"), "OK")
		set("b", types.StateValueAlarm)
		w.expect("both with both", w.state("both"), "ALARM")
		w.expect("top follows", w.state("top"), "ALARM")
		if got := w.done(); !strings.Contains(got, "http://both OK>ALARM") || !strings.Contains(got, "http://top OK>ALARM") {
			t.Errorf("actions: %q", got)
		}
		got := *w.store.View().Alarms.Get("both").Composite.StateReason
		if !strings.HasPrefix(got, "arn:aws:cloudwatch:r:a:alarm:b transitioned to ALARM at ") {
			t.Errorf("the reason is %q", got)
		}
		was := w.store.View().Alarms.Get("both")
		child := fmt.Sprintf(`"Timestamp":"%s","Value":"ALARM"`, stamp(new(w.store.View().Alarms.Get("b").Moved())))
		m := *was
		m.Owed = &state.OwedActions{}
		if got := encode(message(&m, Options{}, time.Now())); !strings.Contains(got, `[{"Arn":"arn:aws:cloudwatch:r:a:alarm:b","State":{`+child+`}}]`) {
			t.Errorf("the message is %s", got)
		}
		quiet := composite("quiet", "ALARM(a)", "http://quiet")
		quiet.Composite.ActionsSuppressor = aws.String("b")
		w.put(quiet)
		synctest.Wait()
		w.expect("a suppressed alarm", w.state("quiet")+w.done(), "ALARM")
	})
}

// TestTrigger compares what a message tells of an alarm with what CloudWatch was seen to send: members that an alarm hasn't aren't there.
func TestTrigger(t *testing.T) {
	plain := metricAlarm("a", 10)
	plain.Metric.TreatMissingData = aws.String("ignore")
	percentile := metricAlarm("b", 60)
	percentile.Metric.Statistic, percentile.Metric.ExtendedStatistic = "", aws.String("p99")
	percentile.Metric.Unit, percentile.Metric.DatapointsToAlarm = types.StandardUnitSeconds, aws.Int32(1)
	math := &state.Alarm{Metric: &types.MetricAlarm{
		EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(0), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		Metrics: []types.MetricDataQuery{
			{Id: aws.String("e"), Expression: aws.String("m*2"), Label: aws.String("twice")},
			{Id: aws.String("m"), ReturnData: aws.Bool(false), MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m"), Dimensions: []types.Dimension{
					{Name: aws.String("q"), Value: aws.String("jobs")},
				}},
				Period: aws.Int32(60), Stat: aws.String("Sum"),
			}},
		},
	}}
	for want, a := range map[string]*state.Alarm{
		`{"ComparisonOperator":"GreaterThanThreshold","Dimensions":[],"EvaluateLowSampleCountPercentile":"","EvaluationPeriods":2,` +
			`"MetricName":"m","Namespace":"n","Period":10,"Statistic":"AVERAGE","StatisticType":"Statistic","Threshold":75,` +
			`"TreatMissingData":"ignore","Unit":null}`: plain,
		`{"ComparisonOperator":"GreaterThanThreshold","DatapointsToAlarm":1,"Dimensions":[],"EvaluateLowSampleCountPercentile":"",` +
			`"EvaluationPeriods":2,"ExtendedStatistic":"p99","MetricName":"m","Namespace":"n","Period":60,"StatisticType":"ExtendedStatistic",` +
			`"Threshold":75,"TreatMissingData":"","Unit":"Seconds"}`: percentile,
		`{"ComparisonOperator":"GreaterThanThreshold","EvaluateLowSampleCountPercentile":"","EvaluationPeriods":1,"Metrics":[` +
			`{"Expression":"m*2","Id":"e","Label":"twice","ReturnData":true},{"Id":"m","MetricStat":{"Metric":{"Dimensions":` +
			`[{"name":"q","value":"jobs"}],"MetricName":"m","Namespace":"n"},"Period":60,"Stat":"Sum"},"ReturnData":false}],"Threshold":0,` +
			`"TreatMissingData":""}`: math,
	} {
		if got := encode(trigger(a)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// An alarm on a band goes off when the metric leaves its usual range, but not before there is enough data to know that.
func TestAnomalyAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.stop()
		a := metricAlarm("odd", 60)
		m := a.Metric
		m.Namespace = nil
		m.MetricName = nil
		m.Statistic = ""
		m.Period = nil
		m.Threshold = nil
		m.EvaluationPeriods = aws.Int32(1)
		m.ComparisonOperator = types.ComparisonOperatorGreaterThanUpperThreshold
		m.ThresholdMetricId = aws.String("band")
		m.Metrics = []types.MetricDataQuery{
			{
				Id: aws.String("m1"),
				MetricStat: &types.MetricStat{
					Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")},
					Period: aws.Int32(60),
					Stat:   aws.String("Maximum"),
				},
			},
			{Id: aws.String("band"), Expression: aws.String("ANOMALY_DETECTION_BAND(m1, 3)")},
		}
		w.put(a)
		minute := func(value float64) string {
			time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + 30*time.Second)))
			w.report(value)
			time.Sleep(time.Minute) // a minute is evaluated after its end
			synctest.Wait()
			return w.state("odd")
		}
		w.expect("nothing to compare with", minute(11), "INSUFFICIENT_DATA")
		for i := range 20 {
			minute(float64(10 + i%3))
		}
		w.expect("as it has been", minute(12), "OK")
		w.expect("twice as much", minute(24), "ALARM")
		w.expect("less", minute(0), "OK")
	})
}

// A band that went through another expression may lack a limit. The alarm treats that as no band.
func TestBandWithoutALimit(t *testing.T) {
	points := []alarm.Datapoint{{Timestamp: time.Unix(60, 0), Value: 1}, {Timestamp: time.Unix(120, 0), Value: 2}}
	upper := metricquery.Answer{
		ID:     "band",
		Points: []metricquery.Point{{At: time.Unix(60, 0), Value: 5}, {At: time.Unix(120, 0), Value: 6}},
	}
	lower := metricquery.Answer{ID: "band", Points: []metricquery.Point{{At: time.Unix(120, 0), Value: 3}}}
	want := []alarm.Datapoint{{Timestamp: time.Unix(120, 0), Value: 2, Lower: 3, Upper: 6}}
	if got := banded(points, []metricquery.Answer{{ID: "m1"}, upper, lower}, "band"); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Actions that a suppressor holds back run once it lets go, if the state still differs from the one last acted upon.
// That survives a restart.
func TestSuppression(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.stop()
		a, quiet, other := metricAlarm("a", 60), composite("quiet", "ALARM(a)", "http://quiet"), metricAlarm("other", 60)
		a.Metric.TreatMissingData = aws.String("ignore")
		other.Metric.TreatMissingData = aws.String("ignore")
		quiet.Composite.OKActions = []string{"http://ok"}
		quiet.Composite.ActionsSuppressor = aws.String("other")
		quiet.Composite.ActionsSuppressorWaitPeriod = aws.Int32(20)
		quiet.Composite.ActionsSuppressorExtensionPeriod = aws.Int32(30)
		quiet.Composite.StateValue = types.StateValueOk
		w.put(a, quiet, other)
		set := func(name string, value types.StateValue) {
			t.Helper()
			err := w.store.Update(t.Context(), func(tx *state.Tx) error {
				tx.SetAlarmState(tx.Alarms.Get(name), state.AlarmState{Value: value, Reason: "set"}, time.Now())
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect := func(what, acts, by string) {
			t.Helper()
			w.expect(what, w.done(), acts)
			w.expect(what+": suppressed by", string(w.store.View().Alarms.Get("quiet").SuppressedBy()), by)
		}
		step := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		set("a", types.StateValueAlarm)
		expect("it waits for the suppressor", "", "WaitPeriod")
		step(19 * time.Second)
		expect("it still waits", "", "WaitPeriod")
		step(time.Second)
		expect("the suppressor did not come", "http://quiet OK>ALARM", "")
		set("other", types.StateValueAlarm)
		set("a", types.StateValueOk)
		expect("suppressed", "", "Alarm")
		w.expect("the reason", *w.store.View().Alarms.Get("quiet").Composite.ActionsSuppressedReason, "Actions suppressed by Alarm")
		step(time.Hour)
		expect("suppressed for as long as the other is in ALARM", "", "Alarm")
		set("other", types.StateValueOk)
		step(29 * time.Second)
		expect("extended", "", "ExtensionPeriod")
		step(time.Second)
		expect("the extension is over", "http://ok ALARM>OK", "")
		set("other", types.StateValueAlarm)
		set("a", types.StateValueAlarm)
		expect("suppressed again", "", "Alarm")
		set("a", types.StateValueOk)
		set("other", types.StateValueOk)
		step(time.Hour)
		expect("it is as it was", "", "")
	})
}

// Owed actions run even after the process that owed them is gone. A failure goes into the history.
func TestOwedActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.stop()
		w.fail = errors.New("nobody is there")
		a := metricAlarm("a", 60, "http://x")
		a.Metric.StateValue = types.StateValueAlarm
		a.Owed = &state.OwedActions{Arns: []string{"http://x"}, From: types.StateValueOk}
		w.put(a)
		synctest.Wait()
		w.expect("actions", w.done(), "http://x OK>ALARM")
		for h := range w.store.View().AlarmHistory.All() {
			w.expect("history", *h.Item.HistorySummary, `Failed to execute action http://x. Received error: "nobody is there"`)
		}
	})
}

// TestHangingAction: an action that hangs delays its own alarm's actions, but no other alarm's.
func TestHangingAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		w.hangs = "http://slow"
		owing := func(name string, from types.StateValue) *state.Alarm {
			a := metricAlarm(name, 86400)
			a.Metric.StateValue = types.StateValueAlarm
			a.Owed = &state.OwedActions{Arns: []string{"http://" + name}, From: from}
			return a
		}
		time.Sleep(5 * time.Second) // the next round is a minute ahead
		w.put(owing("slow", types.StateValueOk))
		synctest.Wait()
		w.put(owing("quick", types.StateValueOk), owing("slow", types.StateValueInsufficientData))
		synctest.Wait()
		w.expect("while one hangs", w.done(), "http://quick OK>ALARM")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		w.expect("when it hangs no more", w.done(), "http://slow OK>ALARM")
		time.Sleep(11 * time.Second)
		synctest.Wait()
		w.expect("what was owed meanwhile", w.done(), "http://slow INSUFFICIENT_DATA>ALARM")
		w.put(owing("slow", types.StateValueOk))
		synctest.Wait()
		w.stop()
		w.expect("what the end cut off", w.done(), "")
	})
}

// TestAlarmNotEvaluated: the reason tells why an alarm can't be evaluated.
func TestAlarmNotEvaluated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.stop()
		a := metricAlarm("a", 60)
		a.Metric.MetricName = nil
		a.Metric.Metrics = []types.MetricDataQuery{
			{Id: aws.String("e"), Expression: aws.String("nothing +"), ReturnData: aws.Bool(true)},
		}
		w.put(a)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if s := w.store.View().Alarms.Get("a").State(); s.Value != types.StateValueInsufficientData ||
			!strings.HasPrefix(s.Reason, "The alarm cannot be evaluated: ") {
			t.Errorf("%+v", s)
		}
	})
}

// BenchmarkRound evaluates 10,000 alarms, each on its own metric with ten minutes of data.
func BenchmarkRound(b *testing.B) {
	store := statetest.Open(b)
	now := time.Now().Truncate(time.Minute)
	kept, err := metrics.Open(b.TempDir(), metrics.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer kept.Close() //nolint:errcheck // the benchmark is over
	const n = 10_000
	err = store.Update(b.Context(), func(tx *state.Tx) error {
		for i := range n {
			a := metricAlarm(fmt.Sprintf("alarm-%05d", i), 60)
			a.Metric.MetricName = a.Metric.AlarmName
			tx.Alarms.Put(a)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for minute := range 10 {
		var samples []metrics.Sample
		for i := range n {
			samples = append(samples, metrics.Sample{
				Metric: metrics.NewMetric("n", fmt.Sprintf("alarm-%05d", i)),
				At:     now.Unix() - 60*int64(minute+1),
				Set:    metrics.One(50),
			})
		}
		if err := kept.Put(samples); err != nil {
			b.Fatal(err)
		}
	}
	opts := Options{Now: func() time.Time { return now }, Metrics: kept}
	b.ReportAllocs()
	for b.Loop() {
		if err := Round(b.Context(), store, opts, now); err != nil {
			b.Fatal(err)
		}
	}
}

// TestArrivals: with the fast reaction, an alarm with a short period looks back from now when its metric's data arrives.
// An alarm with a long period works as usual. An alarm whose data stops notices that too.
func TestArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startAs(t, NewArrivals())
		defer w.stop()
		short, long, other := metricAlarm("short", 10), metricAlarm("long", 60), metricAlarm("other", 10)
		other.Metric.MetricName = aws.String("another")
		for _, a := range []*state.Alarm{short, long, other} {
			a.Metric.EvaluationPeriods = aws.Int32(1)
		}
		w.put(short, long, other)
		report := func(seconds int, value float64) {
			for range seconds {
				w.report(value)
				synctest.Wait()
				time.Sleep(time.Second)
			}
			synctest.Wait()
		}
		report(17, 20)
		w.expect("while it is low", w.state("short"), "OK")
		report(6, 100) // 4 s of 20 and 6 s of 100 are 68
		w.expect("below the threshold yet", w.state("short"), "OK")
		report(1, 100) // 3 s and 7 s are 76
		w.expect("above it", w.state("short"), "ALARM")
		w.expect("a minute is not over", w.state("long"), "INSUFFICIENT_DATA")
		w.expect("nothing arrives", w.state("other"), "INSUFFICIENT_DATA")
		report(5, 0) // 50
		w.expect("below it again", w.state("short"), "OK")
		report(100, 100)
		w.expect("after the second minute", w.state("long"), "ALARM")
		time.Sleep(time.Minute)
		w.expect("when nothing arrives any more", w.state("short"), "INSUFFICIENT_DATA")
	})
}
