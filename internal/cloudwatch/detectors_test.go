package cloudwatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// Anomaly detectors are keyed by what they watch, however the call spells it. Their state follows from their data.
func TestAnomalyDetectors(t *testing.T) {
	type input = cloudwatch.DescribeAnomalyDetectorsInput
	s := newService(t)
	put := func(in *cloudwatch.PutAnomalyDetectorInput) {
		t.Helper()
		if _, err := s.PutAnomalyDetector(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	dimensions := func(names ...string) (out []types.Dimension) {
		for _, n := range names {
			out = append(out, types.Dimension{Name: &n, Value: aws.String("v")})
		}
		return out
	}
	for i := range 5 {
		_, err := s.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{Namespace: aws.String("n"), MetricData: []types.MetricDatum{
			{MetricName: aws.String("m"), Timestamp: aws.Time(noon.Add(-time.Duration(i+1) * time.Minute)), Value: aws.Float64(1)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	put(&cloudwatch.PutAnomalyDetectorInput{Namespace: aws.String("n"), MetricName: aws.String("m"), Stat: aws.String("Sum")})
	put(&cloudwatch.PutAnomalyDetectorInput{
		Namespace:  aws.String("n"),
		MetricName: aws.String("m"),
		Stat:       aws.String("p90"),
		Dimensions: dimensions("a", "b"),
	})
	put(&cloudwatch.PutAnomalyDetectorInput{SingleMetricAnomalyDetector: &types.SingleMetricAnomalyDetector{
		Namespace:  aws.String("n"),
		MetricName: aws.String("m"),
		Stat:       aws.String("p90"),
		Dimensions: dimensions("b", "a"),
	}, Configuration: &types.AnomalyDetectorConfiguration{MetricTimezone: aws.String("Europe/Berlin")}})
	math := &types.MetricMathAnomalyDetector{MetricDataQueries: []types.MetricDataQuery{
		{
			Id:         aws.String("m1"),
			ReturnData: aws.Bool(false),
			MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")},
				Period: aws.Int32(60),
				Stat:   aws.String("Sum"),
			},
		},
		{Id: aws.String("e1"), Expression: aws.String("m1 * 2")},
	}}
	put(&cloudwatch.PutAnomalyDetectorInput{MetricMathAnomalyDetector: math})
	describe := func(in *input) (got []string) {
		t.Helper()
		out, err := s.DescribeAnomalyDetectors(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range out.AnomalyDetectors {
			zone := aws.ToString(d.Configuration.MetricTimezone)
			got = append(got, fmt.Sprintf("%s %d %s %v", aws.ToString(d.Stat), len(d.Dimensions), d.StateValue, zone))
		}
		if in.NextToken = out.NextToken; in.NextToken != nil {
			got = append(got, "more")
		}
		return got
	}
	const sum, p90, ofMath = "Sum 0 TRAINED ", "p90 2 TRAINED_INSUFFICIENT_DATA Europe/Berlin", " 0 TRAINED "
	pages := &input{MaxResults: aws.Int32(1)}
	for _, c := range []struct {
		in   *input
		want []string
	}{
		{&input{}, []string{p90, sum}},
		{&input{Dimensions: dimensions("a")}, []string{p90}},
		{&input{MetricName: aws.String("other")}, nil},
		{&input{AnomalyDetectorTypes: []types.AnomalyDetectorType{types.AnomalyDetectorTypeMetricMath}}, []string{ofMath}},
		{pages, []string{p90, "more"}},
		{pages, []string{sum}},
	} {
		if got := describe(c.in); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: got %q, want %q", c.in, got, c.want)
		}
	}
	remove := &cloudwatch.DeleteAnomalyDetectorInput{MetricMathAnomalyDetector: math}
	if _, err := s.DeleteAnomalyDetector(t.Context(), remove); err != nil {
		t.Error(err)
	}
	_, err := s.DeleteAnomalyDetector(t.Context(), remove)
	checkError(t, err, "ResourceNotFoundException", "anomaly detector")
}

func TestPutAnomalyDetectorRefuses(t *testing.T) {
	type (
		input         = cloudwatch.PutAnomalyDetectorInput
		configuration = types.AnomalyDetectorConfiguration
	)
	s := newService(t)
	single := &types.SingleMetricAnomalyDetector{Namespace: aws.String("n"), MetricName: aws.String("m"), Stat: aws.String("Sum")}
	configured := func(c configuration) *input {
		return &input{SingleMetricAnomalyDetector: single, Configuration: &c}
	}
	without := func(r types.Range) *input { return configured(configuration{ExcludedTimeRanges: []types.Range{r}}) }
	onMath := func(id, expression string) *input {
		metric := &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")},
			Period: aws.Int32(60),
			Stat:   aws.String("Sum"),
		}
		return &input{MetricMathAnomalyDetector: &types.MetricMathAnomalyDetector{MetricDataQueries: []types.MetricDataQuery{
			{Id: aws.String("m1"), MetricStat: metric, ReturnData: aws.Bool(false)}, {Id: &id, Expression: &expression},
		}}}
	}
	const (
		value       = "InvalidParameterValueException"
		absent      = "MissingRequiredParameterException"
		combination = "InvalidParameterCombinationException"
	)
	for _, c := range []struct {
		in         *input
		code, says string
	}{
		{&input{}, absent, "Namespace"},
		{&input{Namespace: aws.String("n")}, absent, "MetricName"},
		{&input{Namespace: aws.String("n"), MetricName: aws.String("m")}, absent, "Stat"},
		{&input{Namespace: aws.String("n"), MetricName: aws.String("m"), Stat: aws.String("Mean")}, value, "Stat"},
		{&input{Namespace: aws.String("n"), SingleMetricAnomalyDetector: single}, combination, "SingleMetricAnomalyDetector"},
		{&input{MetricMathAnomalyDetector: &types.MetricMathAnomalyDetector{}}, absent, "MetricDataQueries"},
		{
			&input{MetricMathAnomalyDetector: &types.MetricMathAnomalyDetector{
				MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("e"), Expression: aws.String("(")}},
			}},
			validationCode, "e",
		},
		{onMath("e", "ANOMALY_DETECTION_BAND(m1, 2)"), validationCode, "array of time series"},
		{onMath("pintleBand", "m1 * 2"), validationCode, "pintleBand"},
		{
			&input{SingleMetricAnomalyDetector: single, MetricCharacteristics: &types.MetricCharacteristics{}},
			validationCode, "MetricCharacteristics",
		},
		{configured(configuration{MetricTimezone: aws.String("Mars")}), value, "MetricTimezone"},
		{without(types.Range{StartTime: &noon}), absent, "ExcludedTimeRanges.member.1.EndTime"},
		{without(types.Range{StartTime: &noon, EndTime: &noon}), value, "ExcludedTimeRanges.member.1"},
	} {
		_, err := s.PutAnomalyDetector(t.Context(), c.in)
		checkError(t, err, c.code, c.says)
	}
	all := &cloudwatch.DescribeAnomalyDetectorsInput{AnomalyDetectorTypes: types.AnomalyDetectorType("").Values()}
	if out, err := s.DescribeAnomalyDetectors(t.Context(), all); err != nil || len(out.AnomalyDetectors) > 0 {
		t.Errorf("refused calls have left %+v, %v", out, err)
	}
}
