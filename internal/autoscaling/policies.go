package autoscaling

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// The types of policies.
const (
	simple         = "SimpleScaling"
	step           = "StepScaling"
	targetTracking = "TargetTrackingScaling"
)

// The most scaling policies and scheduled actions of a group.
const (
	maxPolicies = 50
	maxActions  = 125
)

// PutScalingPolicy creates or changes a scaling policy, and puts its alarms. The alarms come first: if the call is cut off
// between the two, repeating it puts the same alarms again.
func (s *Service) PutScalingPolicy(ctx context.Context, in *api.PutScalingPolicyInput) (*api.PutScalingPolicyOutput, error) {
	if !groupName.MatchString(aws.ToString(in.PolicyName)) {
		return nil, invalid("PolicyName %q must have 1 to 255 characters, none of them :, /, | or a control character",
			aws.ToString(in.PolicyName))
	}
	g, err := findGroup(s.store.View(), in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	row, err := s.newPolicy(g, in)
	if err != nil {
		return nil, err
	}
	if err := checkOthers(s.store.View(), row); err != nil {
		return nil, err
	}
	if err := s.putAlarms(ctx, row); err != nil {
		return nil, err
	}
	var oldAlarms []types.Alarm
	err = s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		if err := checkOthers(tx.View, row); err != nil {
			return err // meanwhile another policy has come
		}
		if old := tx.GroupPolicies.Get(row.Key()); old != nil {
			oldAlarms = old.Alarms
		}
		tx.GroupPolicies.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	oldAlarms = slices.DeleteFunc(slices.Clone(oldAlarms), func(a types.Alarm) bool {
		return slices.ContainsFunc(row.Alarms, func(b types.Alarm) bool { return *a.AlarmName == *b.AlarmName })
	})
	if err := s.deleteAlarms(ctx, oldAlarms); err != nil {
		return nil, err
	}
	return &api.PutScalingPolicyOutput{PolicyARN: row.PolicyARN, Alarms: notNil(row.Alarms)}, nil
}

// checkOthers refuses a policy that the group has no room for, or whose metric another of the group's policies tracks.
func checkOthers(v *state.View, row *state.GroupPolicy) error {
	all := slices.Collect(v.GroupPolicies.By(state.GroupPoliciesByGroup, *row.AutoScalingGroupName))
	if v.GroupPolicies.Get(row.Key()) == nil && len(all) >= maxPolicies {
		return &types.LimitExceededFault{Message: new("The group already has the maximum number of scaling policies")}
	}
	if row.TargetTrackingConfiguration == nil {
		return nil
	}
	metric := scaling.MetricOfGroup(row.TargetTrackingConfiguration)
	for _, p := range all {
		other := p.TargetTrackingConfiguration
		if other != nil && p.Key() != row.Key() && scaling.MetricOfGroup(other) == metric {
			return invalid(scaling.OneOfAMetric)
		}
	}
	return nil
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// policyRow makes a policy's row from a call, without checks.
func (s *Service) policyRow(g *state.AutoScalingGroup, in *api.PutScalingPolicyInput) *state.GroupPolicy {
	id := account.UUID(*g.AutoScalingGroupARN, *in.PolicyName)
	p := &state.GroupPolicy{ScalingPolicy: types.ScalingPolicy{
		AutoScalingGroupName:        in.AutoScalingGroupName,
		PolicyName:                  in.PolicyName,
		PolicyType:                  cmp.Or(in.PolicyType, aws.String(simple)),
		Enabled:                     cmp.Or(in.Enabled, aws.Bool(true)),
		PolicyARN:                   s.arn("scalingPolicy:" + id + ":autoScalingGroupName/" + g.Name() + ":policyName/" + *in.PolicyName),
		AdjustmentType:              in.AdjustmentType,
		Cooldown:                    in.Cooldown,
		EstimatedInstanceWarmup:     in.EstimatedInstanceWarmup,
		MetricAggregationType:       in.MetricAggregationType,
		MinAdjustmentMagnitude:      cmp.Or(in.MinAdjustmentMagnitude, in.MinAdjustmentStep),
		ScalingAdjustment:           in.ScalingAdjustment,
		StepAdjustments:             in.StepAdjustments,
		TargetTrackingConfiguration: in.TargetTrackingConfiguration,
	}}
	if *p.PolicyType != simple { // Terraform sends 0 for members that a type doesn't have
		p.ScalingAdjustment = nonZero(p.ScalingAdjustment)
		p.Cooldown = nonZero(p.Cooldown)
	}
	p.MinAdjustmentMagnitude = nonZero(p.MinAdjustmentMagnitude)
	return p
}

// newPolicy makes a policy's row from a call, and checks it.
func (s *Service) newPolicy(g *state.AutoScalingGroup, in *api.PutScalingPolicyInput) (*state.GroupPolicy, error) {
	p := s.policyRow(g, in)
	if aws.ToInt32(p.Cooldown) < 0 || aws.ToInt32(p.EstimatedInstanceWarmup) < 0 {
		return nil, invalid("Cooldown and EstimatedInstanceWarmup must not be negative")
	}
	if in.PredictiveScalingConfiguration != nil && *p.PolicyType != "PredictiveScaling" {
		return nil, invalid("PredictiveScalingConfiguration is not for the PolicyType %s", *p.PolicyType)
	}
	switch *p.PolicyType {
	case simple:
		if p.ScalingAdjustment == nil {
			return nil, missing("scalingAdjustment")
		}
		if len(p.StepAdjustments) > 0 || p.TargetTrackingConfiguration != nil || p.EstimatedInstanceWarmup != nil {
			return nil, invalid("StepAdjustments, TargetTrackingConfiguration and EstimatedInstanceWarmup are not for the " +
				"PolicyType SimpleScaling")
		}
		if err := (scaling.Step{
			AdjustmentType:         aws.ToString(p.AdjustmentType),
			MinAdjustmentMagnitude: int(aws.ToInt32(p.MinAdjustmentMagnitude)),
			Adjustments: []scaling.StepAdjustment{
				{Lower: aws.Float64(0), Adjustment: int(*p.ScalingAdjustment)},
			},
		}).Check(); err != nil {
			return nil, invalid("%v", err)
		}
	case step:
		p.MetricAggregationType = cmp.Or(p.MetricAggregationType, aws.String("Average"))
		if p.ScalingAdjustment != nil || p.Cooldown != nil || p.TargetTrackingConfiguration != nil {
			return nil, invalid("ScalingAdjustment, Cooldown and TargetTrackingConfiguration are not for the PolicyType StepScaling")
		}
		if err := scaling.StepOfGroup(&p.ScalingPolicy).Check(); err != nil {
			return nil, invalid("%v", err)
		}
	case targetTracking:
		if p.ScalingAdjustment != nil || p.Cooldown != nil || len(p.StepAdjustments) > 0 || p.AdjustmentType != nil {
			return nil, invalid("AdjustmentType, ScalingAdjustment, StepAdjustments and Cooldown are not for the PolicyType " +
				"TargetTrackingScaling")
		}
		if err := checkTracking(p.TargetTrackingConfiguration); err != nil {
			return nil, err
		}
		p.Alarms = s.alarms(p)
	default:
		return nil, invalid("PolicyType must be SimpleScaling, StepScaling or TargetTrackingScaling, not %q", *p.PolicyType)
	}
	return p, nil
}

func nonZero(n *int32) *int32 {
	if aws.ToInt32(n) == 0 {
		return nil
	}
	return n
}

func checkTracking(c *types.TargetTrackingConfiguration) error {
	switch {
	case c == nil:
		return missing("targetTrackingConfiguration")
	case c.TargetValue == nil || !(*c.TargetValue > 0 && *c.TargetValue < 1e108):
		return invalid("TargetTrackingConfiguration.TargetValue must be above 0")
	case (c.PredefinedMetricSpecification == nil) == (c.CustomizedMetricSpecification == nil):
		return invalid("TargetTrackingConfiguration must have exactly one of PredefinedMetricSpecification and " +
			"CustomizedMetricSpecification")
	case c.PredefinedMetricSpecification != nil:
		return checkPredefined(c.PredefinedMetricSpecification)
	}
	return checkCustomized(c.CustomizedMetricSpecification)
}

func checkPredefined(m *types.PredefinedMetricSpecification) error {
	switch m.PredefinedMetricType {
	case types.MetricTypeASGAverageCPUUtilization:
		if m.ResourceLabel != nil {
			return invalid("PredefinedMetricSpecification.ResourceLabel is only for the PredefinedMetricType ALBRequestCountPerTarget")
		}
		return nil
	case types.MetricTypeALBRequestCountPerTarget:
		if _, _, ok := scaling.SplitLabel(aws.ToString(m.ResourceLabel)); !ok {
			return invalid("PredefinedMetricSpecification.ResourceLabel %q must be of the form app/NAME/ID/targetgroup/NAME/ID",
				aws.ToString(m.ResourceLabel))
		}
		return nil
	case types.MetricTypeASGAverageNetworkIn, types.MetricTypeASGAverageNetworkOut:
		return invalid("PredefinedMetricSpecification.PredefinedMetricType: Pintle does not measure %s. It measures "+
			"ASGAverageCPUUtilization and ALBRequestCountPerTarget; name any other metric with CustomizedMetricSpecification.", m.PredefinedMetricType)
	}
	return invalid("PredefinedMetricSpecification.PredefinedMetricType must be one of %v, not %q",
		types.MetricType("").Values(), m.PredefinedMetricType)
}

func checkCustomized(m *types.CustomizedMetricSpecification) error {
	if len(m.Metrics) == 0 && (aws.ToString(m.MetricName) == "" || aws.ToString(m.Namespace) == "" || m.Statistic == "") {
		return invalid("CustomizedMetricSpecification must have MetricName, Namespace and Statistic, or Metrics")
	}
	if len(m.Metrics) > 0 && (m.MetricName != nil || m.Namespace != nil || m.Statistic != "") {
		return invalid("CustomizedMetricSpecification has both Metrics and the members of a single metric")
	}
	return nil
}

// specifications returns the alarms that a target tracking policy owns.
func (s *Service) specifications(p *state.GroupPolicy) []scaling.Alarm {
	c := p.TargetTrackingConfiguration
	t := scaling.TargetTracking{TargetValue: *c.TargetValue, DisableScaleIn: aws.ToBool(c.DisableScaleIn)}
	r := s.opts.Reaction
	if m := c.PredefinedMetricSpecification; m != nil && m.PredefinedMetricType == types.MetricTypeALBRequestCountPerTarget {
		r = r.PerMinute()
	}
	all := []scaling.Alarm{t.High(*p.AutoScalingGroupName, account.UUID(*p.PolicyARN, "high"), r)}
	if !t.DisableScaleIn {
		all = append(all, t.Low(*p.AutoScalingGroupName, account.UUID(*p.PolicyARN, "low"), r))
	}
	return all
}

func (s *Service) alarms(p *state.GroupPolicy) (out []types.Alarm) {
	for _, a := range s.specifications(p) {
		out = append(out, types.Alarm{AlarmName: new(a.Name), AlarmARN: new(s.opts.ARN("cloudwatch", "alarm:"+a.Name))})
	}
	return out
}

// putAlarms puts the alarms that a policy owns.
func (s *Service) putAlarms(ctx context.Context, p *state.GroupPolicy) error {
	if p.TargetTrackingConfiguration == nil {
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
		if err := setMetric(in, p, int32(a.Period.Seconds())); err != nil {
			return err
		}
		if _, err := s.opts.Alarms.PutMetricAlarm(ctx, in); err != nil {
			return alarmError(err)
		}
	}
	return nil
}

// setMetric sets an alarm's metric to the policy's. The types of metric queries have the same members in both services.
func setMetric(in *cloudwatch.PutMetricAlarmInput, p *state.GroupPolicy, period int32) error {
	c := p.TargetTrackingConfiguration.CustomizedMetricSpecification
	if c == nil {
		setPredefined(in, p, period)
		return nil
	}
	if len(c.Metrics) == 0 {
		in.Period = cmp.Or(c.Period, &period)
		in.Namespace = c.Namespace
		in.MetricName = c.MetricName
		in.Statistic = cloudwatchtypes.Statistic(c.Statistic)
		in.Unit = cloudwatchtypes.StandardUnit(aws.ToString(c.Unit))
		for _, d := range c.Dimensions {
			in.Dimensions = append(in.Dimensions, cloudwatchtypes.Dimension{Name: d.Name, Value: d.Value})
		}
		return nil
	}
	b, err := json.Marshal(c.Metrics)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &in.Metrics); err != nil {
		return err
	}
	for i := range in.Metrics {
		in.Metrics[i].ReturnData = cmp.Or(in.Metrics[i].ReturnData, aws.Bool(true))
		if m := in.Metrics[i].MetricStat; m != nil {
			m.Period = cmp.Or(m.Period, &period)
		}
	}
	return nil
}

// setPredefined sets an alarm's metric to the one that a policy names by its type.
func setPredefined(in *cloudwatch.PutMetricAlarmInput, p *state.GroupPolicy, period int32) {
	dimension := func(name, value string) cloudwatchtypes.Dimension {
		return cloudwatchtypes.Dimension{Name: &name, Value: &value}
	}
	in.Period = &period
	if m := p.TargetTrackingConfiguration.PredefinedMetricSpecification; m.PredefinedMetricType == types.MetricTypeALBRequestCountPerTarget {
		loadBalancer, targetGroup, _ := scaling.SplitLabel(aws.ToString(m.ResourceLabel))
		in.Namespace = new("AWS/ApplicationELB")
		in.MetricName = new("RequestCountPerTarget")
		in.Statistic = cloudwatchtypes.StatisticSum
		in.Dimensions = []cloudwatchtypes.Dimension{dimension("LoadBalancer", loadBalancer), dimension("TargetGroup", targetGroup)}
		return
	}
	in.Namespace = new("AWS/EC2")
	in.MetricName = new("CPUUtilization")
	in.Statistic = cloudwatchtypes.StatisticAverage
	in.Unit = cloudwatchtypes.StandardUnitPercent
	in.Dimensions = []cloudwatchtypes.Dimension{dimension("AutoScalingGroupName", *p.AutoScalingGroupName)}
}

// alarmError words CloudWatch's refusal as a ValidationError. It leaves other errors alone.
func alarmError(err error) error {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return invalid("CloudWatch: %s (Error Code: %s)", refused.ErrorMessage(), refused.ErrorCode())
	}
	return err
}

// deleteAlarms deletes alarms. It's no error if one is gone already.
func (s *Service) deleteAlarms(ctx context.Context, alarms []types.Alarm) error {
	for _, a := range alarms {
		_, err := s.opts.Alarms.DeleteAlarms(ctx, &cloudwatch.DeleteAlarmsInput{AlarmNames: []string{*a.AlarmName}})
		var refused smithy.APIError
		if err != nil && !(errors.As(err, &refused) && strings.HasPrefix(refused.ErrorCode(), "ResourceNotFound")) {
			return alarmError(err)
		}
	}
	return nil
}

// findPolicy returns a policy by its ARN, or by its name in a group.
func findPolicy(v *state.View, group *string, name string) (*state.GroupPolicy, error) {
	for p := range v.GroupPolicies.All() {
		if *p.PolicyARN == name || *p.PolicyName == name && *p.AutoScalingGroupName == aws.ToString(group) {
			return p, nil
		}
	}
	return nil, invalid("PolicyName not found - No policy found with name or ARN %s", name)
}

// ExecutePolicy does what a simple or step scaling policy would do if its alarm went off.
func (s *Service) ExecutePolicy(ctx context.Context, in *api.ExecutePolicyInput) (*api.ExecutePolicyOutput, error) {
	p, err := findPolicy(s.store.View(), in.AutoScalingGroupName, *in.PolicyName)
	if err != nil {
		return nil, err
	}
	switch metric := in.MetricValue != nil || in.BreachThreshold != nil; {
	case *p.PolicyType == targetTracking:
		return nil, invalid("The policy %s cannot be executed: its type is TargetTrackingScaling", *p.PolicyName)
	case *p.PolicyType == step && (in.MetricValue == nil || in.BreachThreshold == nil):
		return nil, invalid("MetricValue and BreachThreshold must be given for a policy of the type StepScaling")
	case *p.PolicyType == simple && metric:
		return nil, invalid("MetricValue and BreachThreshold are not for a policy of the type SimpleScaling")
	}
	err = s.change(ctx, p.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		p := tx.GroupPolicies.Get(p.Key())
		if p == nil {
			return invalid("PolicyName not found - No policy found with name or ARN %s", *in.PolicyName)
		}
		now, before := s.now(), *g.DesiredCapacity
		if *p.PolicyType == simple && aws.ToBool(in.HonorCooldown) && g.IsCoolingDown(p.Cooldown, now) {
			return inProgress(g)
		}
		want := scaling.StepOfGroup(&p.ScalingPolicy)
		metric, threshold := aws.ToFloat64(in.MetricValue), aws.ToFloat64(in.BreachThreshold)
		if !want.Applies(metric, threshold) {
			return invalid("MetricValue %v is covered by no step adjustment of the policy %s", metric, *p.PolicyName)
		}
		after := int32(scaling.Bounds{Min: int(*g.MinSize), Max: int(*g.MaxSize)}.Clamp(want.Desired(int(before), metric, threshold)))
		if after == before {
			return nil
		}
		g.DesiredCapacity = &after
		g.Failures = 0
		g.NotBefore = nil
		g.Cause = fmt.Sprintf("At %s a user request executed policy %s changing the desired capacity from %d to %d.",
			state.Stamp(now), *p.PolicyName, before, after)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.ExecutePolicyOutput{}, nil
}

// DeletePolicy deletes a policy, given by its name or ARN, and the alarms that it owns.
func (s *Service) DeletePolicy(ctx context.Context, in *api.DeletePolicyInput) (*api.DeletePolicyOutput, error) {
	row, err := findPolicy(s.store.View(), in.AutoScalingGroupName, *in.PolicyName)
	if err != nil {
		return nil, err
	}
	if err := s.deleteAlarms(ctx, row.Alarms); err != nil {
		return nil, err
	}
	if err := s.store.Update(ctx, func(tx *state.Tx) error { tx.GroupPolicies.Delete(row.Key()); return nil }); err != nil {
		return nil, err
	}
	return &api.DeletePolicyOutput{}, nil
}

// DescribePolicies lists scaling policies.
func (s *Service) DescribePolicies(_ context.Context, in *api.DescribePoliciesInput) (*api.DescribePoliciesOutput, error) {
	var rows []*state.GroupPolicy
	for p := range s.store.View().GroupPolicies.All() {
		if (in.AutoScalingGroupName == nil || *p.AutoScalingGroupName == *in.AutoScalingGroupName) &&
			(len(in.PolicyNames) == 0 || slices.Contains(in.PolicyNames, *p.PolicyName) || slices.Contains(in.PolicyNames, *p.PolicyARN)) &&
			(len(in.PolicyTypes) == 0 || slices.Contains(in.PolicyTypes, *p.PolicyType)) {
			rows = append(rows, p)
		}
	}
	rows, next, err := account.Sorted(listing("DescribePolicies", pageDefault, pageMost), rows, in.MaxRecords, in.NextToken,
		(*state.GroupPolicy).Key)
	if err != nil {
		return nil, err
	}
	out := &api.DescribePoliciesOutput{ScalingPolicies: []types.ScalingPolicy{}, NextToken: next}
	for _, row := range rows {
		p := row.ScalingPolicy
		p.Alarms = notNil(p.Alarms)
		p.StepAdjustments = notNil(p.StepAdjustments)
		out.ScalingPolicies = append(out.ScalingPolicies, p)
	}
	return out, nil
}
