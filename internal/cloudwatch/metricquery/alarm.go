package metricquery

import (
	"cmp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// OfAlarm returns the queries for what an alarm watches: its metric math, or its metric as the only query.
func OfAlarm(m *types.MetricAlarm) []types.MetricDataQuery {
	if len(m.Metrics) > 0 {
		return m.Metrics
	}
	return []types.MetricDataQuery{{Id: aws.String("m1"), MetricStat: &types.MetricStat{
		Metric: &types.Metric{Namespace: m.Namespace, MetricName: m.MetricName, Dimensions: m.Dimensions},
		Period: m.Period,
		Stat:   aws.String(cmp.Or(aws.ToString(m.ExtendedStatistic), string(m.Statistic))),
		Unit:   m.Unit,
	}}}
}

// PeriodOfAlarm returns the period of an alarm's data points: its metric's, or the longest in its metric math, as New
// computes it.
func PeriodOfAlarm(m *types.MetricAlarm) time.Duration {
	longest := aws.ToInt32(m.Period)
	for _, q := range m.Metrics {
		longest = max(longest, aws.ToInt32(q.Period))
		if q.MetricStat != nil {
			longest = max(longest, aws.ToInt32(q.MetricStat.Period))
		}
	}
	return time.Duration(longest) * time.Second
}
