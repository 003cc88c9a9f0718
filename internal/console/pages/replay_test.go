package pages

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	scalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	grouptypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/console/login"
)

// scaled answers for a service that ran four tasks in the last hours at a metric of 50, its policy's target.
type scaled struct {
	counted  time.Duration // for how long its tasks have been counted
	measured time.Duration // and for how long its metric
	period   int32
	queue    bool // the metric is of a queue
	value    float64
	denied   error
}

func (s scaled) Call(_ context.Context, in any) (any, error) {
	switch in := in.(type) {
	case *ecs.DescribeServicesInput:
		return &ecs.DescribeServicesOutput{Services: []ecstypes.Service{{ServiceName: &in.Services[0]}}}, s.denied
	case *applicationautoscaling.DescribeScalableTargetsInput:
		return &applicationautoscaling.DescribeScalableTargetsOutput{ScalableTargets: []scalingtypes.ScalableTarget{{MinCapacity: aws.Int32(0), MaxCapacity: aws.Int32(10)}}}, nil
	case *applicationautoscaling.DescribeScalingPoliciesInput:
		return &applicationautoscaling.DescribeScalingPoliciesOutput{ScalingPolicies: []scalingtypes.ScalingPolicy{{
			PolicyName: aws.String(nasty), Alarms: []scalingtypes.Alarm{{AlarmName: aws.String("high")}, {AlarmName: aws.String("low")}},
			TargetTrackingScalingPolicyConfiguration: &scalingtypes.TargetTrackingScalingPolicyConfiguration{TargetValue: aws.Float64(50)},
		}}}, nil
	case *autoscaling.DescribeAutoScalingGroupsInput:
		return &autoscaling.DescribeAutoScalingGroupsOutput{AutoScalingGroups: []grouptypes.AutoScalingGroup{{MinSize: aws.Int32(0), MaxSize: aws.Int32(10), DefaultCooldown: aws.Int32(300)}}}, s.denied
	case *autoscaling.DescribePoliciesInput:
		return &autoscaling.DescribePoliciesOutput{ScalingPolicies: []grouptypes.ScalingPolicy{{
			PolicyName: aws.String(nasty), Alarms: []grouptypes.Alarm{{AlarmName: aws.String("high")}, {AlarmName: aws.String("low")}},
			TargetTrackingConfiguration: &grouptypes.TargetTrackingConfiguration{TargetValue: aws.Float64(50)},
		}}}, nil
	case *cloudwatch.DescribeAlarmsInput:
		high := types.MetricAlarm{
			AlarmName: aws.String("high"), ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold, EvaluationPeriods: aws.Int32(3),
			Namespace: aws.String("AWS/ECS"), MetricName: aws.String("CPUUtilization"), Statistic: types.StatisticAverage, Period: &s.period,
		}
		if s.queue {
			high.Namespace = aws.String("AWS/SQS")
		}
		low := high
		low.AlarmName, low.ComparisonOperator, low.EvaluationPeriods = aws.String("low"), types.ComparisonOperatorLessThanThreshold, aws.Int32(15)
		return &cloudwatch.DescribeAlarmsOutput{MetricAlarms: []types.MetricAlarm{high, low}}, nil
	case *cloudwatch.GetMetricDataInput:
		q := in.MetricDataQueries[0].MetricStat
		since, value := s.measured, s.value
		if name := *q.Metric.MetricName; name == "RunningTaskCount" || name == "GroupInServiceInstances" {
			since, value = s.counted, 4
		}
		r := types.MetricDataResult{Label: q.Metric.MetricName}
		for at := *in.StartTime; at.Before(*in.EndTime); at = at.Add(time.Duration(*q.Period) * time.Second) {
			if !at.Before(noon.Add(-since)) {
				r.Timestamps, r.Values = append(r.Timestamps, at), append(r.Values, value)
			}
		}
		return &cloudwatch.GetMetricDataOutput{MetricDataResults: []types.MetricDataResult{r}}, nil
	}
	return nil, fmt.Errorf("nobody expects %T", in)
}

func (s scaled) page(query string) (status int, html string) {
	return s.pageOf("services/prod/web", query)
}

// pageOf returns the replay of a service or a group.
func (s scaled) pageOf(what, query string) (status int, html string) {
	o := Options{Now: func() time.Time { return noon.Add(10 * time.Second) }, Services: s, Sessions: login.New(login.Options{Now: time.Now})}
	w := send(New(o), "GET", "/console/scaling/"+what+"/replay"+query, nil)
	return w.Code, w.Body.String()
}

// TestReplayPage: twice the target takes half of the tasks, from the minute at which 15 were below it.
func TestReplayPage(t *testing.T) {
	day := scaled{counted: 24 * time.Hour, measured: 24 * time.Hour, period: 60, value: 50}
	_, page := day.page("?hours=2&target=100&out=60&in=60&min=1&max=8")
	for _, want := range []string{
		"<td>As it was</td><td class=\"number\">8.00</td><td class=\"number\">4</td><td class=\"number\">4</td><td class=\"number\">0 %</td>",
		"<td>Policy as it is</td><td class=\"number\">8.00</td>",
		"<td>Policy above</td><td class=\"number\">4.50</td><td class=\"number\">2</td><td class=\"number\">4</td><td class=\"number\">0 %</td><td class=\"number\">1</td>",
		"target: 100", "replayed: 2<", "as it was: 4<", "a minimum of 0 is replayed as 1", `name="target" type="number" value="100"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
	if strings.Contains(page, "<script>alert") {
		t.Error("the policy's name isn't text")
	}
	full := day
	full.value = 100
	if _, page := full.page(""); !strings.Contains(page, "at 100 percent in 60 of 60 periods") {
		t.Errorf("a metric that was full isn't told of: %s", page)
	}
	young := day
	young.counted = 30 * time.Minute
	if _, page := young.page("?hours=24"); !strings.Contains(page, "<td>As it was</td><td class=\"number\">2.00</td>") {
		t.Errorf("half an hour is replayed as %s", page)
	}
}

// TestReplayOfGroup: a group's instances are replayed as a service's tasks are, with a warm-up instead of cool-downs.
func TestReplayOfGroup(t *testing.T) {
	day := scaled{counted: 24 * time.Hour, measured: 24 * time.Hour, period: 60, value: 50}
	_, page := day.pageOf("groups/fleet", "?hours=2&target=100&warmup=60&min=1&max=8")
	for _, want := range []string{
		"Replay of fleet", "Instances in service", "<td>As it was</td><td class=\"number\">8.00</td>",
		"<td>Policy above</td><td class=\"number\">4.50</td><td class=\"number\">2</td><td class=\"number\">4</td><td class=\"number\">0 %</td><td class=\"number\">1</td>",
		`name="warmup" type="number" value="60"`, "target: 100", "Instances always find a place",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s: %s", want, page)
		}
	}
	if strings.Contains(page, "cool-down") || strings.Contains(page, "<script>alert") {
		t.Errorf("a group has cool-downs, or its policy's name isn't text: %s", page)
	}
	day.counted = 0
	if _, page := day.pageOf("groups/fleet", ""); !strings.Contains(page, "enable-metrics-collection") {
		t.Errorf("a group that isn't counted gets %s", page)
	}
}

// TestReplaysRefused: what isn't known or isn't bounded is refused with the reason.
func TestReplaysRefused(t *testing.T) {
	day := scaled{counted: 24 * time.Hour, measured: 24 * time.Hour, period: 60, value: 50}
	change := func(do func(*scaled)) scaled { s := day; do(&s); return s }
	for name, c := range map[string]struct {
		scaled
		query  string
		status int
		want   string
	}{
		"no Container Insights": {change(func(s *scaled) { s.counted = 0 }), "", 200, "Container Insights"},
		"a young service":       {change(func(s *scaled) { s.counted = 10 * time.Minute }), "", 200, "for 10m0s, since 11:50Z. A replay takes 20m0s at least"},
		"no metric":             {change(func(s *scaled) { s.measured = 30 * time.Minute }), "", 200, "There were running tasks in 60 periods, and CloudWatch has the policy&#39;s metric in 30 of them"},
		"seconds for a day":     {change(func(s *scaled) { s.period = 10 }), "?hours=4", 200, "replay no more than three"},
		"a queue's seconds":     {change(func(s *scaled) { s.period, s.queue = 10, true }), "", 200, "looks ahead"},
		"a week":                {day, "?hours=168", 400, "hours must be a whole number from 1 to 24"},
		"no target":             {day, "?target=0", 400, "target must be a number above 0"},
		"no number":             {day, "?target=NaN", 400, "target must be"},
		"too many tasks":        {day, "?max=100000", 400, "max must be a whole number from 1 to 5000"},
		"less than the minimum": {day, "?min=5&max=4", 400, "max must be a whole number from 5"},
		"not for this visitor":  {change(func(s *scaled) { s.denied = errNotFound("not yours") }), "", 404, "not yours"},
	} {
		if status, page := c.page(c.query); status != c.status || !strings.Contains(page, c.want) {
			t.Errorf("%s: %d %s", name, status, page)
		}
	}
}
