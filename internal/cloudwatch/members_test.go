package cloudwatch

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// TestNoOtherAccounts: metrics of other accounts aren't taken for those of this one.
func TestNoOtherAccounts(t *testing.T) {
	s := newService(t)
	metric := &types.MetricStat{
		Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")}, Period: aws.Int32(60), Stat: aws.String("Sum"),
	}
	if _, err := s.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("n"), MetricData: []types.MetricDatum{{MetricName: aws.String("m"), Value: aws.Float64(1)}},
	}); err != nil {
		t.Fatal(err)
	}
	for account, refused := range map[string]bool{s.opts.ID: false, "111111111111": true} {
		query := []types.MetricDataQuery{{Id: aws.String("q"), MetricStat: metric, AccountId: &account}}
		_, data := s.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
			MetricDataQueries: query, StartTime: aws.Time(noon.Add(-3600e9)), EndTime: &noon,
		})
		_, alarm := s.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
			AlarmName: aws.String("a"), Metrics: query, EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1),
			ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
		})
		_, detector := s.PutAnomalyDetector(t.Context(), &cloudwatch.PutAnomalyDetectorInput{
			SingleMetricAnomalyDetector: &types.SingleMetricAnomalyDetector{
				AccountId: &account, Namespace: aws.String("n"), MetricName: aws.String("m"), Stat: aws.String("Sum"),
			},
		})
		for what, err := range map[string]error{"data": data, "alarm": alarm, "detector": detector} {
			if (err != nil) != refused {
				t.Errorf("%s of %s: got %v", what, account, err)
			}
		}
		list, err := s.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{
			Namespace: aws.String("n"), IncludeLinkedAccounts: aws.Bool(true), OwningAccount: &account,
		})
		if err != nil || (len(list.Metrics) == 0) != refused || len(list.OwningAccounts) != len(list.Metrics) {
			t.Errorf("metrics of %s: got %v, %v", account, list, err)
		}
	}
}

// TestDetectorsAsTheyAre: what models of anomaly detectors don't have is refused by name, and their defaults are taken.
func TestDetectorsAsTheyAre(t *testing.T) {
	s := newService(t)
	put := func(c types.AnomalyDetectorConfiguration) error {
		_, err := s.PutAnomalyDetector(t.Context(), &cloudwatch.PutAnomalyDetectorInput{
			SingleMetricAnomalyDetector: &types.SingleMetricAnomalyDetector{
				Namespace: aws.String("n"), MetricName: aws.String("m"), Stat: aws.String("Sum"),
			},
			Configuration: &c,
		})
		return err
	}
	if err := put(types.AnomalyDetectorConfiguration{AdaptationSpeed: "NORMAL", OutlierFilteringStrength: "MODERATE"}); err != nil {
		t.Error(err)
	}
	checkError(t, put(types.AnomalyDetectorConfiguration{AdaptationSpeed: "FAST"}), "ValidationException", "AdaptationSpeed")
	checkError(t, put(types.AnomalyDetectorConfiguration{OutlierFilteringStrength: "STRICT"}), "ValidationException", "OutlierFilteringStrength")
	_, err := s.DescribeAnomalyDetectors(t.Context(), &cloudwatch.DescribeAnomalyDetectorsInput{AnomalyDetectorIds: []string{"d"}})
	checkError(t, err, "InvalidParameterValueException", "AnomalyDetectorIds")
	_, err = s.DeleteAnomalyDetector(t.Context(), &cloudwatch.DeleteAnomalyDetectorInput{AnomalyDetectorId: aws.String("d")})
	checkError(t, err, "ResourceNotFoundException", "d")
	_, err = s.DescribeAlarmHistory(t.Context(), &cloudwatch.DescribeAlarmHistoryInput{AlarmContributorId: aws.String("c")})
	checkError(t, err, "ValidationException", "AlarmContributorId")
	_, err = s.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		MetricDataQueries: []types.MetricDataQuery{{Id: aws.String("q"), Expression: aws.String("1+1"), Period: aws.Int32(60)}},
		StartTime:         aws.Time(noon.Add(-3600e9)), EndTime: &noon, LabelOptions: &types.LabelOptions{Timezone: aws.String("Europe/Berlin")},
	})
	checkError(t, err, "ValidationException", "LabelOptions.Timezone")
}
