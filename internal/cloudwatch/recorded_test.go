package cloudwatch

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// TestAsAWSAnswers checks details that were seen on AWS: empty lists that are there, and what is taken or refused.
func TestAsAWSAnswers(t *testing.T) {
	s := newService(t)
	_, err := s.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("n"),
		MetricData: []types.MetricDatum{{
			MetricName: aws.String("m"),
			Values:     []float64{1, 10},
			StatisticValues: &types.StatisticSet{
				SampleCount: aws.Float64(10),
				Sum:         aws.Float64(55),
				Minimum:     aws.Float64(1),
				Maximum:     aws.Float64(10),
			},
		}},
	})
	if err != nil {
		t.Errorf("a statistic set together with values: %v", err)
	}
	data, err := s.GetMetricData(t.Context(), &cloudwatch.GetMetricDataInput{
		StartTime: aws.Time(noon.Add(-time.Hour)),
		EndTime:   aws.Time(noon.Add(time.Hour)),
		MetricDataQueries: []types.MetricDataQuery{{
			Id: aws.String("m"),
			MetricStat: &types.MetricStat{
				Metric: &types.Metric{Namespace: aws.String("n"), MetricName: aws.String("m")},
				Period: aws.Int32(10),
				Stat:   aws.String("Sum"),
			},
		}},
	})
	if err != nil || data.Messages == nil || len(data.MetricDataResults) != 1 || len(data.MetricDataResults[0].Values) != 1 {
		t.Errorf("data: %+v %v", data, err)
	}
	tags, err := s.ListTagsForResource(t.Context(), &cloudwatch.ListTagsForResourceInput{ResourceARN: aws.String(s.alarmArn("gone"))})
	if err != nil || tags.Tags == nil || len(tags.Tags) > 0 {
		t.Errorf("tags of an alarm that is gone: %+v %v", tags, err)
	}
	_, err = s.PutDashboard(t.Context(), &cloudwatch.PutDashboardInput{DashboardName: aws.String("a b"), DashboardBody: aws.String("{}")})
	checkError(t, err, "InvalidParameterValueException", "DashboardName contains invalid characters")
	_, err = s.ListMetrics(t.Context(), &cloudwatch.ListMetricsInput{NextToken: aws.String("x")})
	checkError(t, err, "InvalidParameterValueException", "NextToken")
}
