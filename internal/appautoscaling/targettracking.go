package appautoscaling

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudwatch/metricmath"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// The range of TargetValue, from TargetTrackingScalingPolicyConfiguration.
const (
	minTarget = 8.515920e-109
	maxTarget = 1.174271e+108
)

// maxQueries is the most metrics and expressions per alarm.
const maxQueries = 10

func checkTargetTracking(c *types.TargetTrackingScalingPolicyConfiguration) error {
	const at = "targetTrackingScalingPolicyConfiguration."
	if c == nil {
		return missing("targetTrackingScalingPolicyConfiguration")
	}
	if !(*c.TargetValue >= minTarget && *c.TargetValue <= maxTarget) {
		return invalid(at+"targetValue must be between %v and %v, not %v", minTarget, maxTarget, *c.TargetValue)
	}
	if err := checkCooldown(at+"scaleOutCooldown", c.ScaleOutCooldown); err != nil {
		return err
	}
	if err := checkCooldown(at+"scaleInCooldown", c.ScaleInCooldown); err != nil {
		return err
	}
	switch {
	case (c.PredefinedMetricSpecification == nil) == (c.CustomizedMetricSpecification == nil):
		return invalid("%s must have exactly one of predefinedMetricSpecification and customizedMetricSpecification",
			strings.TrimSuffix(at, "."))
	case c.PredefinedMetricSpecification != nil:
		return checkPredefined(c.PredefinedMetricSpecification)
	case len(c.CustomizedMetricSpecification.Metrics) > 0:
		return checkQueries(c.CustomizedMetricSpecification)
	}
	return checkCustomized(c.CustomizedMetricSpecification)
}

// The predefined metrics with a period of 20 seconds, from the Amazon ECS Developer Guide's page "Faster auto scaling with
// high-resolution metrics". The SDK doesn't know them yet. Pintle stores these metrics by the second for every service.
const (
	averageCPUUtilizationHighResolution    types.MetricType = "ECSServiceAverageCPUUtilizationHighResolution"
	averageMemoryUtilizationHighResolution types.MetricType = "ECSServiceAverageMemoryUtilizationHighResolution"
)

func checkPredefined(p *types.PredefinedMetricSpecification) error {
	switch p.PredefinedMetricType {
	case types.MetricTypeECSServiceAverageCPUUtilization, types.MetricTypeECSServiceAverageMemoryUtilization,
		averageCPUUtilizationHighResolution, averageMemoryUtilizationHighResolution:
		if p.ResourceLabel != nil {
			return invalid("resourceLabel is only for the predefinedMetricType ALBRequestCountPerTarget")
		}
		return nil
	case types.MetricTypeALBRequestCountPerTarget:
		if _, _, ok := scaling.SplitLabel(aws.ToString(p.ResourceLabel)); !ok {
			return invalid("resourceLabel %q must be of the form app/NAME/ID/targetgroup/NAME/ID", aws.ToString(p.ResourceLabel))
		}
		return nil
	}
	return invalid("predefinedMetricType %q is not for ECS; it takes ECSServiceAverageCPUUtilization and "+
		"ECSServiceAverageMemoryUtilization, also with HighResolution, and ALBRequestCountPerTarget", p.PredefinedMetricType)
}

func checkCustomized(c *types.CustomizedMetricSpecification) error {
	switch {
	case aws.ToString(c.MetricName) == "":
		return missing("customizedMetricSpecification.metricName")
	case aws.ToString(c.Namespace) == "":
		return missing("customizedMetricSpecification.namespace")
	case c.Statistic == "":
		return missing("customizedMetricSpecification.statistic")
	case !slices.Contains(c.Statistic.Values(), c.Statistic):
		return invalid("customizedMetricSpecification.statistic must be Average, Minimum, Maximum, SampleCount or Sum, not %q", c.Statistic)
	}
	for _, d := range c.Dimensions {
		if aws.ToString(d.Name) == "" || aws.ToString(d.Value) == "" {
			return invalid("customizedMetricSpecification.dimensions must have names and values")
		}
	}
	return nil
}

// checkQueries checks a specification with metric math.
func checkQueries(c *types.CustomizedMetricSpecification) error {
	if c.MetricName != nil || c.Namespace != nil || c.Statistic != "" || c.Dimensions != nil || c.Unit != nil {
		return invalid("customizedMetricSpecification has both metrics and the members of a single metric")
	}
	if len(c.Metrics) > maxQueries {
		return invalid("customizedMetricSpecification.metrics has %d members, at most %d are allowed", len(c.Metrics), maxQueries)
	}
	known, returned := map[string]bool{}, 0
	for _, q := range c.Metrics {
		if known[aws.ToString(q.Id)] {
			return invalid("customizedMetricSpecification.metrics has the id %q twice", *q.Id)
		}
		known[aws.ToString(q.Id)] = true
		if q.ReturnData == nil || *q.ReturnData {
			returned++
		}
	}
	if returned != 1 {
		return invalid("customizedMetricSpecification.metrics has %d members with returnData, exactly one must have it", returned)
	}
	for _, q := range c.Metrics {
		if err := checkQuery(q, known); err != nil {
			return err
		}
	}
	return nil
}

func checkQuery(q types.TargetTrackingMetricDataQuery, known map[string]bool) error {
	id := aws.ToString(q.Id)
	switch {
	case id == "" || id[0] < 'a' || id[0] > 'z':
		return invalid("customizedMetricSpecification.metrics has the id %q; an id begins with a lower-case letter", id)
	case (q.Expression == nil) == (q.MetricStat == nil):
		return invalid("customizedMetricSpecification.metrics: %s must have exactly one of expression and metricStat", id)
	case q.Expression != nil:
		return checkExpression(id, *q.Expression, known)
	case q.MetricStat.Metric == nil || aws.ToString(q.MetricStat.Metric.MetricName) == "" ||
		aws.ToString(q.MetricStat.Metric.Namespace) == "" || aws.ToString(q.MetricStat.Stat) == "":
		return invalid("customizedMetricSpecification.metrics: the metricStat of %s must have a metric with metricName and "+
			"namespace, and a stat", id)
	}
	return nil
}

func checkExpression(id, text string, known map[string]bool) error {
	e, err := metricmath.Parse(text)
	if err != nil {
		return invalid("customizedMetricSpecification.metrics: the expression of %s: %v", id, err)
	}
	for _, other := range e.IDs() {
		if !known[other] || other == id {
			return invalid("customizedMetricSpecification.metrics: the expression of %s names %s, which is not one of the other ids",
				id, other)
		}
	}
	return nil
}

// alarms returns the names and ARNs of the alarms that a policy owns.
func (s *Service) alarms(p *state.ScalingPolicy) (out []types.Alarm) {
	for _, a := range s.specifications(p) {
		out = append(out, types.Alarm{AlarmName: new(a.Name), AlarmARN: new(s.opts.ARN("cloudwatch", "alarm:"+a.Name))})
	}
	return out
}

// specifications returns the alarms that a policy owns: two for target tracking, or one if scale-in is disabled.
func (s *Service) specifications(p *state.ScalingPolicy) []scaling.Alarm {
	if p.TargetTrackingScalingPolicyConfiguration == nil {
		return nil
	}
	t, r := scaling.TargetTrackingOf(p.TargetTrackingScalingPolicyConfiguration), s.reaction(p)
	all := []scaling.Alarm{t.High(*p.ResourceId, account.UUID(*p.PolicyARN, "high"), r)}
	if !t.DisableScaleIn {
		all = append(all, t.Low(*p.ResourceId, account.UUID(*p.PolicyARN, "low"), r))
	}
	return all
}

// reaction returns how fast a policy's alarms react: as the options say, or faster if its metric has high resolution.
func (s *Service) reaction(p *state.ScalingPolicy) scaling.Reaction {
	m := p.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification
	if m != nil && m.PredefinedMetricType == types.MetricTypeALBRequestCountPerTarget {
		return s.opts.Reaction.PerMinute()
	}
	if m != nil && strings.HasSuffix(string(m.PredefinedMetricType), "HighResolution") &&
		s.opts.Reaction.Period > scaling.HighResolution.Period {
		return scaling.HighResolution
	}
	return s.opts.Reaction
}

// putAlarms puts the alarms that a policy owns.
func (s *Service) putAlarms(ctx context.Context, p *state.ScalingPolicy) error {
	if s.opts.Alarms == nil {
		return nil
	}
	for _, a := range s.specifications(p) {
		in := &cloudwatch.PutMetricAlarmInput{
			AlarmName:          &a.Name,
			AlarmDescription:   new("DO NOT EDIT OR DELETE. For TargetTrackingScaling policy " + *p.PolicyARN + "."),
			AlarmActions:       []string{*p.PolicyARN},
			ActionsEnabled:     new(true),
			ComparisonOperator: cloudwatchtypes.ComparisonOperator(a.ComparisonOperator),
			Threshold:          &a.Threshold,
			EvaluationPeriods:  new(int32(a.EvaluationPeriods)),
		}
		setMetric(in, p, int32(a.Period.Seconds()))
		if _, err := s.opts.Alarms.PutMetricAlarm(ctx, in); err != nil {
			return refusedBy("CloudWatch", err)
		}
	}
	return nil
}

// setMetric sets an alarm's metric to the policy's.
func setMetric(in *cloudwatch.PutMetricAlarmInput, p *state.ScalingPolicy, period int32) {
	c := p.TargetTrackingScalingPolicyConfiguration
	switch custom := c.CustomizedMetricSpecification; {
	case c.PredefinedMetricSpecification != nil:
		in.Period = &period
		setPredefined(in, p, c.PredefinedMetricSpecification)
	case len(custom.Metrics) > 0:
		in.Metrics = alarmQueries(custom.Metrics, period)
	default:
		in.Period = &period
		in.Namespace = custom.Namespace
		in.MetricName = custom.MetricName
		in.Statistic = cloudwatchtypes.Statistic(custom.Statistic)
		in.Unit = cloudwatchtypes.StandardUnit(aws.ToString(custom.Unit))
		for _, d := range custom.Dimensions {
			in.Dimensions = append(in.Dimensions, cloudwatchtypes.Dimension{Name: d.Name, Value: d.Value})
		}
	}
}

// setPredefined sets an alarm's metric to one that ECS or a load balancer publishes.
func setPredefined(in *cloudwatch.PutMetricAlarmInput, p *state.ScalingPolicy, metric *types.PredefinedMetricSpecification) {
	dimension := func(name, value string) cloudwatchtypes.Dimension {
		return cloudwatchtypes.Dimension{Name: &name, Value: &value}
	}
	if metric.PredefinedMetricType == types.MetricTypeALBRequestCountPerTarget {
		loadBalancer, targetGroup, _ := scaling.SplitLabel(aws.ToString(metric.ResourceLabel))
		in.Namespace = new("AWS/ApplicationELB")
		in.MetricName = new("RequestCountPerTarget")
		in.Statistic = cloudwatchtypes.StatisticSum
		in.Dimensions = []cloudwatchtypes.Dimension{dimension("LoadBalancer", loadBalancer), dimension("TargetGroup", targetGroup)}
		return
	}
	name := "CPUUtilization"
	if t := metric.PredefinedMetricType; t == types.MetricTypeECSServiceAverageMemoryUtilization ||
		t == averageMemoryUtilizationHighResolution {
		name = "MemoryUtilization"
	}
	cluster, service := resource{id: p.ResourceId}.parts()
	in.Namespace = new("AWS/ECS")
	in.MetricName = &name
	in.Statistic = cloudwatchtypes.StatisticAverage
	in.Unit = cloudwatchtypes.StandardUnitPercent
	in.Dimensions = []cloudwatchtypes.Dimension{dimension("ClusterName", cluster), dimension("ServiceName", service)}
}

// alarmQueries converts a policy's metrics to an alarm's.
func alarmQueries(metrics []types.TargetTrackingMetricDataQuery, period int32) (out []cloudwatchtypes.MetricDataQuery) {
	for _, m := range metrics {
		q := cloudwatchtypes.MetricDataQuery{
			Id:         m.Id,
			Expression: m.Expression,
			Label:      m.Label,
			ReturnData: new(m.ReturnData == nil || *m.ReturnData),
		}
		if m.MetricStat != nil {
			metric := &cloudwatchtypes.Metric{Namespace: m.MetricStat.Metric.Namespace, MetricName: m.MetricStat.Metric.MetricName}
			for _, d := range m.MetricStat.Metric.Dimensions {
				metric.Dimensions = append(metric.Dimensions, cloudwatchtypes.Dimension{Name: d.Name, Value: d.Value})
			}
			q.MetricStat = &cloudwatchtypes.MetricStat{
				Metric: metric,
				Period: &period,
				Stat:   m.MetricStat.Stat,
				Unit:   cloudwatchtypes.StandardUnit(aws.ToString(m.MetricStat.Unit)),
			}
		}
		out = append(out, q)
	}
	return out
}

// deleteAlarms deletes alarms. It's no error if one is gone already.
func (s *Service) deleteAlarms(ctx context.Context, alarms []types.Alarm) error {
	if s.opts.Alarms == nil {
		return nil
	}
	for _, a := range alarms {
		_, err := s.opts.Alarms.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{*a.AlarmName}})
		var refused smithy.APIError
		if err != nil && !(errors.As(err, &refused) && strings.HasPrefix(refused.ErrorCode(), "ResourceNotFound")) {
			return &types.InternalServiceException{Message: account.Message("CloudWatch: alarm %s could not be deleted: %v", *a.AlarmName, err)}
		}
	}
	return nil
}
