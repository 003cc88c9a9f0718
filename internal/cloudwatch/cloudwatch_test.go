package cloudwatch

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/validation"
)

// constraints checks inputs as wire does before it calls the service.
var constraints = validation.New(API(nil).Constraints)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newService(t testing.TB) *Service {
	t.Helper()
	now := func() time.Time { return noon }
	store := statetest.Open(t)
	metrics, err := metrics.Open(t.TempDir(), metrics.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { metrics.Close(); store.Close() }) //nolint:errcheck // the test is over
	return New(metrics, store, Options{Account: accounttest.New(now)})
}

func checkError(t *testing.T, err error, code, says string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), says) {
		t.Errorf("got %v, want %s with %q", err, code, says)
	}
}

func many[T any](n int, v T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = v
	}
	return out
}

func TestPutMetricDataRefuses(t *testing.T) {
	type datum = types.MetricDatum
	s := newService(t)
	one := func(change func(*datum)) []datum {
		d := datum{MetricName: aws.String("m")}
		change(&d)
		return []datum{d}
	}
	valued := func(change func(*datum)) []datum {
		return one(func(d *datum) { d.Value = aws.Float64(1); change(d) })
	}
	set := func(count, low, high float64) *types.StatisticSet {
		return &types.StatisticSet{SampleCount: &count, Sum: aws.Float64(1), Minimum: &low, Maximum: &high}
	}
	dimension := func(name, value string) []types.Dimension { return []types.Dimension{{Name: &name, Value: &value}} }
	const (
		value       = "InvalidParameterValueException"
		absent      = "MissingRequiredParameterException"
		combination = "InvalidParameterCombinationException"
	)
	for _, c := range []struct {
		name       string
		data       []datum
		code, says string
	}{
		{"nothing", nil, absent, "MetricData"},
		{"too many", many(1001, valued(func(*datum) {})[0]), value, "1000"},
		{"no name", valued(func(d *datum) { d.MetricName = nil }), absent, "MetricData.member.1.MetricName"},
		{"a long name", valued(func(d *datum) { d.MetricName = aws.String(strings.Repeat("a", 256)) }), value, "MetricName"},
		{"a name beyond ASCII", valued(func(d *datum) { d.MetricName = aws.String("é") }), value, "MetricName"},
		{"no value", one(func(*datum) {}), absent, "MetricData.member.1.Value"},
		{"NaN", one(func(d *datum) { d.Value = aws.Float64(math.NaN()) }), value, "Value"},
		{"too large", one(func(d *datum) { d.Value = aws.Float64(math.Ldexp(1, 361)) }), value, "2^360"},
		{"value and set", valued(func(d *datum) { d.StatisticValues = &types.StatisticSet{} }), combination, "StatisticValues"},
		{"value and values", valued(func(d *datum) { d.Values = []float64{1} }), combination, "Values"},
		{"counts alone", valued(func(d *datum) { d.Counts = []float64{1} }), combination, "Counts"},
		{"too many values", one(func(d *datum) { d.Values = many(151, 1.0) }), value, "150"},
		{"fewer counts", one(func(d *datum) { d.Values, d.Counts = []float64{1, 2}, []float64{1} }), value, "Counts"},
		{"a count of 0", one(func(d *datum) { d.Values, d.Counts = []float64{1}, []float64{0} }), value, "Counts.member.1"},
		{"a NaN among values", one(func(d *datum) { d.Values = []float64{1, math.Inf(1)} }), value, "Values.member.2"},
		{"half a set", one(func(d *datum) {
			d.StatisticValues = &types.StatisticSet{SampleCount: aws.Float64(1), Sum: aws.Float64(1)}
		}), absent, "StatisticValues.Minimum"},
		{"a set of nothing", one(func(d *datum) { d.StatisticValues = set(0, 1, 1) }), value, "SampleCount"},
		{"a set upside down", one(func(d *datum) { d.StatisticValues = set(1, 2, 1) }), value, "Minimum"},
		{"an unknown unit", valued(func(d *datum) { d.Unit = "Parsec" }), value, "Unit"},
		{"a resolution", valued(func(d *datum) { d.StorageResolution = aws.Int32(10) }), value, "StorageResolution"},
		{"too old", valued(func(d *datum) { d.Timestamp = aws.Time(noon.Add(-14*24*time.Hour - time.Second)) }), value, "two weeks"},
		{"too new", valued(func(d *datum) { d.Timestamp = aws.Time(noon.Add(2*time.Hour + time.Second)) }), value, "two hours"},
		{"31 dimensions", valued(func(d *datum) { d.Dimensions = many(31, dimension("a", "b")[0]) }), value, "30"},
		{"a dimension without value", valued(func(d *datum) { d.Dimensions = dimension("a", "") }), absent, "Dimensions.member.1.Value"},
		{"a dimension with a colon", valued(func(d *datum) { d.Dimensions = dimension(":a", "b") }), value, "Dimensions.member.1.Name"},
		{
			"a dimension twice", valued(func(d *datum) { d.Dimensions = append(dimension("a", "b"), dimension("a", "c")...) }),
			value, "twice",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			good := datum{MetricName: aws.String("good"), Value: aws.Float64(1)}
			_, err := s.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: c.data})
			checkError(t, err, c.code, c.says)
			if len(c.data) == 1 {
				both := append([]datum{good}, c.data...)
				_, err = s.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: both})
				checkError(t, err, c.code, strings.ReplaceAll(c.says, "MetricData.member.1", "MetricData.member.2"))
			}
		})
	}
	if out, err := s.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{}); err != nil || len(out.Metrics) > 0 {
		t.Errorf("refused calls have left %+v, %v", out, err)
	}
}

func TestPutMetricAlarmRefuses(t *testing.T) {
	type input = cloudwatch.PutMetricAlarmInput
	s := newService(t)
	base := func() *input {
		return &input{
			AlarmName:          aws.String("a"),
			Namespace:          aws.String("n"),
			MetricName:         aws.String("m"),
			Statistic:          types.StatisticSum,
			Period:             aws.Int32(60),
			EvaluationPeriods:  aws.Int32(3),
			Threshold:          aws.Float64(1),
			ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		}
	}
	metric := types.MetricDataQuery{Id: aws.String("m1"), MetricStat: &types.MetricStat{
		Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")},
		Period: aws.Int32(60),
		Stat:   aws.String("p90"),
	}}
	expression := func(id, text string) types.MetricDataQuery { return types.MetricDataQuery{Id: &id, Expression: &text} }
	maths := func(queries ...types.MetricDataQuery) func(*input) {
		return func(in *input) {
			in.Namespace = nil
			in.MetricName = nil
			in.Statistic = ""
			in.Period = nil
			in.Metrics = queries
		}
	}
	banded := func(operator types.ComparisonOperator, id string, change func(*input)) func(*input) {
		return func(in *input) {
			maths(metric, expression("b1", "ANOMALY_DETECTION_BAND(m1, 2)"))(in)
			in.Threshold = nil
			in.ThresholdMetricId = &id
			in.ComparisonOperator = operator
			if change != nil {
				change(in)
			}
		}
	}
	const (
		value       = "InvalidParameterValueException"
		absent      = "MissingRequiredParameterException"
		combination = "InvalidParameterCombinationException"
	)
	for _, c := range []struct {
		name       string
		change     func(*input)
		code, says string
	}{
		{"no name", func(in *input) { in.AlarmName = nil }, absent, "AlarmName"},
		{"no metric", func(in *input) { in.MetricName = nil }, absent, "MetricName"},
		{"no threshold", func(in *input) { in.Threshold = nil }, absent, "Threshold"},
		{"no periods", func(in *input) { in.EvaluationPeriods = nil }, absent, "EvaluationPeriods"},
		{"no operator", func(in *input) { in.ComparisonOperator = "" }, absent, "ComparisonOperator"},
		{"an operator", func(in *input) { in.ComparisonOperator = "Equal" }, validationCode, "LessThanLowerOrGreaterThanUpperThreshold"},
		{"a period", func(in *input) { in.Period = aws.Int32(5) }, validationCode, "Period"},
		{"more than a day", func(in *input) { in.EvaluationPeriods = aws.Int32(1441) }, validationCode, "86400"},
		{"M over N", func(in *input) { in.DatapointsToAlarm = aws.Int32(4) }, validationCode, "DatapointsToAlarm"},
		{"0 of N", func(in *input) { in.DatapointsToAlarm = aws.Int32(0) }, validationCode, "DatapointsToAlarm"},
		{"missing data", func(in *input) { in.TreatMissingData = aws.String("guess") }, validationCode, "TreatMissingData"},
		{"two statistics", func(in *input) { in.ExtendedStatistic = aws.String("p9") }, combination, "ExtendedStatistic"},
		{"no statistic", func(in *input) { in.Statistic = "" }, combination, "Statistic"},
		{
			"an extended statistic", func(in *input) { in.Statistic, in.ExtendedStatistic = "", aws.String("q9") },
			value, "ExtendedStatistic",
		},
		{"an action", func(in *input) { in.AlarmActions = []string{"mail me"} }, validationCode, "AlarmActions"},
		{"six actions", func(in *input) { in.OKActions = many(6, "http://x") }, validationCode, "OKActions"},
		{"a tag of AWS's", func(in *input) {
			in.Tags = []types.Tag{{Key: aws.String("aws:x"), Value: aws.String("")}}
		}, value, "Tags.member.1.Key"},
		{"a metric and maths", func(in *input) { in.Metrics = []types.MetricDataQuery{metric} }, combination, "Metrics"},
		{
			"maths that returns nothing",
			maths(types.MetricDataQuery{Id: metric.Id, MetricStat: metric.MetricStat, ReturnData: aws.Bool(false)}),
			validationCode, "Exactly one",
		},
		{"maths that returns two", maths(metric, expression("e1", "m1*2")), validationCode, "Exactly one"},
		{"maths that doesn't parse", maths(expression("e1", "m1+")), validationCode, "e1"},
		{"maths of nothing", maths(metric, expression("e1", "m9*2")), validationCode, "m9"},
		{"maths in a circle", maths(metric, expression("e1", "e2+1"), expression("e2", "e1+1")), validationCode, "itself"},
		{"an id", maths(expression("E1", "1")), validationCode, "Id"},
		{
			"a threshold and a band", banded("GreaterThanUpperThreshold", "b1", func(in *input) { in.Threshold = aws.Float64(1) }),
			combination, "ThresholdMetricId",
		},
		{
			"a band's operator with a threshold", func(in *input) { in.ComparisonOperator = "LessThanLowerThreshold" },
			validationCode, "ThresholdMetricId",
		},
		{"a threshold's operator with a band", banded("LessThanThreshold", "b1", nil), validationCode, "Threshold"},
		{"a band that doesn't exist", banded("LessThanLowerThreshold", "b2", nil), validationCode, "ThresholdMetricId"},
		{"a band that isn't one", banded("LessThanLowerThreshold", "m1", nil), validationCode, "ThresholdMetricId"},
		{"a band without metrics", func(in *input) {
			in.Threshold = nil
			in.ThresholdMetricId = aws.String("b1")
			in.ComparisonOperator = "LessThanLowerThreshold"
		}, validationCode, "ThresholdMetricId"},
		{"a band that scales", banded("LessThanLowerThreshold", "b1", func(in *input) {
			in.AlarmActions = []string{"arn:aws:autoscaling:us-east-1:000000000000:scalingPolicy:x"}
		}), validationCode, "Auto Scaling"},
		{"an id twice", maths(metric, metric), validationCode, "twice"},
		{"a search", maths(expression("e1", "SUM(SEARCH('{n} m', 'Sum', 60))")), validationCode, "SEARCH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := base()
			c.change(in)
			_, err := s.PutMetricAlarm(t.Context(), in)
			checkError(t, err, c.code, c.says)
		})
	}
	if out, err := s.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{}); err != nil || len(out.MetricAlarms) > 0 {
		t.Errorf("refused calls have left %+v, %v", out, err)
	}
}

// TestEmptyAlarmMembers: an empty list of dimensions is none, and StateReasonData may be empty.
func TestEmptyAlarmMembers(t *testing.T) {
	s := newService(t)
	if _, err := s.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName:          aws.String("a"),
		Dimensions:         []types.Dimension{},
		EvaluationPeriods:  aws.Int32(1),
		Threshold:          aws.Float64(1),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		Metrics: []types.MetricDataQuery{{Id: aws.String("m"), MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")},
			Period: aws.Int32(60), Stat: aws.String("Sum"),
		}}},
	}); err != nil {
		t.Fatal(err)
	}
	in := &cloudwatch.SetAlarmStateInput{
		AlarmName: aws.String("a"), StateValue: types.StateValueOk, StateReason: aws.String("r"), StateReasonData: aws.String(""),
	}
	if _, err := s.SetAlarmState(t.Context(), in); err != nil {
		t.Error(err)
	}
}

// An alarm that is put again keeps its state and its tags; its history tells each change.
func TestAlarmsAreUpdated(t *testing.T) {
	s := newService(t)
	put := func(threshold float64) {
		t.Helper()
		_, err := s.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
			AlarmName:          aws.String("a"),
			Namespace:          aws.String("n"),
			MetricName:         aws.String("m"),
			Statistic:          types.StatisticSum,
			Period:             aws.Int32(60),
			EvaluationPeriods:  aws.Int32(3),
			Threshold:          &threshold,
			ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
			Tags:               []types.Tag{{Key: aws.String("t"), Value: aws.String("1")}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	ok := &cloudwatch.SetAlarmStateInput{AlarmName: aws.String("a"), StateValue: types.StateValueOk, StateReason: aws.String("r")}
	if _, err := s.SetAlarmState(t.Context(), ok); err != nil {
		t.Fatal(err)
	}
	untag := &cloudwatch.UntagResourceInput{ResourceARN: aws.String(s.alarmArn("a")), TagKeys: []string{"t"}}
	if _, err := s.UntagResource(t.Context(), untag); err != nil {
		t.Fatal(err)
	}
	put(2)
	out, err := s.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{})
	if err != nil || len(out.MetricAlarms) != 1 || *out.MetricAlarms[0].Threshold != 2 ||
		out.MetricAlarms[0].StateValue != types.StateValueOk || *out.MetricAlarms[0].StateReason != "r" {
		t.Errorf("got %+v, %v", out, err)
	}
	tags, err := s.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: aws.String(s.alarmArn("a"))})
	if err != nil || len(tags.Tags) != 0 {
		t.Errorf("got %+v, %v", tags, err)
	}
	history, err := s.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{ScanBy: types.ScanByTimestampAscending})
	var summaries []string
	for _, h := range history.AlarmHistoryItems {
		summaries = append(summaries, *h.HistorySummary)
	}
	got := strings.Join(summaries, "; ")
	if err != nil || got != `Alarm "a" created; Alarm updated from INSUFFICIENT_DATA to OK; Alarm "a" updated` {
		t.Errorf("got %s, %v", got, err)
	}
	if data := *history.AlarmHistoryItems[2].HistoryData; !strings.Contains(data, `"threshold":2`) {
		t.Errorf("got %s", data)
	}
}

// DeleteAlarms skips names without an alarm. It deletes nothing if a remaining composite alarm needs one of the alarms.
func TestDeleteAlarms(t *testing.T) {
	s := newService(t)
	for _, name := range []string{"a", "b", "c"} {
		_, err := s.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
			AlarmName:          &name,
			Namespace:          aws.String("n"),
			MetricName:         aws.String("m"),
			Statistic:          types.StatisticSum,
			Period:             aws.Int32(60),
			EvaluationPeriods:  aws.Int32(3),
			Threshold:          aws.Float64(1),
			ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	both := &cloudwatch.PutCompositeAlarmInput{AlarmName: aws.String("both"), AlarmRule: aws.String("ALARM(a) OR ALARM(b)")}
	if _, err := s.PutCompositeAlarm(t.Context(), both); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names   []string
		refused bool
		left    string
	}{
		{[]string{"none"}, false, "a b c"},
		{[]string{"none", "c"}, false, "a b"},
		{[]string{"a", "none"}, true, "a b"},
		{[]string{"a", "b", "both"}, false, ""},
	} {
		if _, err := s.DeleteAlarms(t.Context(), &cloudwatch.DeleteAlarmsInput{AlarmNames: c.names}); (err != nil) != c.refused {
			t.Errorf("%v: %v", c.names, err)
		}
		out, err := s.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, a := range out.MetricAlarms {
			left = append(left, *a.AlarmName)
		}
		if got := strings.Join(left, " "); got != c.left {
			t.Errorf("%v leaves %s, not %s", c.names, got, c.left)
		}
	}
}

// AWS's own namespaces are refused, except the one for load balancers, which Pintle doesn't have.
func TestPutMetricDataForLoadBalancer(t *testing.T) {
	s := newService(t)
	put := func(namespace string) error {
		data := []types.MetricDatum{{MetricName: aws.String("RequestCountPerTarget"), Value: aws.Float64(1)}}
		_, err := s.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: &namespace, MetricData: data})
		return err
	}
	if err := put("AWS/ApplicationELB"); err != nil {
		t.Error(err)
	}
	checkError(t, put("AWS/ECS"), "InvalidParameterValueException", "Namespace")
	checkError(t, put("Pintle/Usage"), "InvalidParameterValueException", "Namespace") // what machines cost
	if err := put("Pintle/Worker"); err != nil {
		t.Error(err)
	}
}

// The next page of the history starts after the last item even if that item was deleted meanwhile, in either order.
func TestHistoryPages(t *testing.T) {
	s := newService(t)
	var keys []string
	err := s.store.Update(t.Context(), func(tx *state.Tx) error {
		a := &state.Alarm{Metric: &types.MetricAlarm{AlarmName: aws.String("a")}}
		for i := range 6 {
			tx.AddAlarmHistory(a, types.HistoryItemTypeAction, string(rune('a'+i)), nil, noon.Add(time.Duration(i)*time.Second))
		}
		for h := range tx.AlarmHistory.All() {
			keys = append(keys, h.Key())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	summaries := func(in *cloudwatch.DescribeAlarmHistoryInput) (got string) {
		t.Helper()
		in.MaxRecords = aws.Int32(2)
		out, err := s.DescribeAlarmHistory(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range out.AlarmHistoryItems {
			got += *h.HistorySummary
		}
		in.NextToken = out.NextToken
		return got
	}
	newest := &cloudwatch.DescribeAlarmHistoryInput{}
	oldest := &cloudwatch.DescribeAlarmHistoryInput{ScanBy: types.ScanByTimestampAscending}
	if got := summaries(newest) + " " + summaries(oldest); got != "fe ab" {
		t.Errorf("first pages: %s", got)
	}
	err = s.store.Update(t.Context(), func(tx *state.Tx) error {
		tx.AlarmHistory.Delete(keys[4])
		tx.AlarmHistory.Delete(keys[1])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := summaries(newest) + " " + summaries(oldest); got != "dc cd" {
		t.Errorf("second pages: %s", got)
	}
	_, err = validation.Checked(constraints, s.DescribeAlarmHistory)(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{ScanBy: "Sideways"})
	checkError(t, err, validationCode, "scanBy")
}

func TestPutCompositeAlarmRefuses(t *testing.T) {
	type input = cloudwatch.PutCompositeAlarmInput
	s := newService(t)
	for _, c := range []struct {
		name       string
		in         input
		code, says string
	}{
		{"no name", input{AlarmRule: aws.String("TRUE")}, "MissingRequiredParameterException", "AlarmName"},
		{"no rule", input{AlarmName: aws.String("c")}, validationCode, "AlarmRule"},
		{"a rule", input{AlarmName: aws.String("c"), AlarmRule: aws.String("ALARM(")}, validationCode, "at character"},
		{"an unknown alarm", input{AlarmName: aws.String("c"), AlarmRule: aws.String("ALARM(x)")}, validationCode, "x does not exist"},
		{"itself", input{AlarmName: aws.String("c"), AlarmRule: aws.String("ALARM(c)")}, validationCode, "itself"},
		{
			"a suppressor without periods",
			input{AlarmName: aws.String("c"), AlarmRule: aws.String("TRUE"), ActionsSuppressor: aws.String("x")},
			validationCode, "ActionsSuppressorWaitPeriod",
		},
		{
			"periods without a suppressor",
			input{AlarmName: aws.String("c"), AlarmRule: aws.String("TRUE"), ActionsSuppressorWaitPeriod: aws.Int32(1)},
			validationCode, "ActionsSuppressor",
		},
		{
			"a suppressor that doesn't exist",
			input{
				AlarmName:                        aws.String("c"),
				AlarmRule:                        aws.String("TRUE"),
				ActionsSuppressor:                aws.String("x"),
				ActionsSuppressorWaitPeriod:      aws.Int32(1),
				ActionsSuppressorExtensionPeriod: aws.Int32(1),
			},
			validationCode, "ActionsSuppressor",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.PutCompositeAlarm(t.Context(), &c.in)
			checkError(t, err, c.code, c.says)
		})
	}
}

// TestUntilNow: a query that ends now, to the second, includes data reported this second.
func TestUntilNow(t *testing.T) {
	s := newService(t)
	_, err := s.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("N"), MetricData: []types.MetricDatum{
		{
			MetricName:        aws.String("m"),
			Value:             aws.Float64(5),
			Timestamp:         aws.Time(noon.Add(-30 * time.Second)),
			StorageResolution: aws.Int32(1),
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	start := noon.Add(-5 * time.Minute)
	for _, c := range []struct {
		period int32
		end    time.Duration // before noon
		want   int
	}{
		{60, 30 * time.Second, 1},
		{60, 31 * time.Second, 1},
		{60, time.Minute, 0},
		{300, 30 * time.Second, 1},
		{10, 30 * time.Second, 0},
		{10, 30*time.Second - time.Millisecond, 1},
		{1, 30 * time.Second, 0},
		{1, 30*time.Second - time.Millisecond, 1},
	} {
		end := noon.Add(-c.end)
		statistics, err := s.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
			Namespace:  aws.String("N"),
			MetricName: aws.String("m"),
			StartTime:  &start,
			EndTime:    &end,
			Period:     &c.period,
			Statistics: []types.Statistic{types.StatisticSum},
		})
		if err != nil || len(statistics.Datapoints) != c.want {
			t.Errorf("by %d s until %s before noon: %d statistics, %v, want %d", c.period, c.end, len(statistics.Datapoints), err, c.want)
		}
		data, err := s.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
			StartTime: &start,
			EndTime:   &end,
			MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("m"), MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("N"), MetricName: aws.String("m")},
				Period: &c.period,
				Stat:   aws.String("Sum"),
			}}},
		})
		if err != nil || len(data.MetricDataResults) != 1 || len(data.MetricDataResults[0].Values) != c.want {
			t.Errorf("by %d s until %s before noon: %v, %v, want %d values", c.period, c.end, data, err, c.want)
		}
	}
}
