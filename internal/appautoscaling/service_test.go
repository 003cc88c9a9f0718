package appautoscaling

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/validation"
)

// constraints check inputs, as package wire does before a call.
var constraints = validation.New(API(nil).Constraints)

const (
	web       = "service/default/web"
	namespace = types.ServiceNamespaceEcs
	dimension = types.ScalableDimensionECSServiceDesiredCount
)

// world is a service with fakes of its dependencies.
type world struct {
	*Service
	t      *testing.T
	alarms map[string]*cloudwatch.PutMetricAlarmInput
	now    time.Time
	full   bool // CloudWatch takes no more alarms
}

func (w *world) PutMetricAlarm(
	_ context.Context, in *cloudwatch.PutMetricAlarmInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricAlarmOutput, error) {
	if w.full {
		return nil, &smithy.GenericAPIError{Code: "LimitExceeded", Message: "no more alarms"}
	}
	w.alarms[*in.AlarmName] = in
	return &cloudwatch.PutMetricAlarmOutput{}, nil
}

func (w *world) DeleteAlarms(
	_ context.Context, in *cloudwatch.DeleteAlarmsInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.DeleteAlarmsOutput, error) {
	for _, name := range in.AlarmNames {
		if w.alarms[name] == nil {
			return nil, &smithy.GenericAPIError{Code: "ResourceNotFound"}
		}
		delete(w.alarms, name)
	}
	return &cloudwatch.DeleteAlarmsOutput{}, nil
}

func (w *world) DescribeServices(
	_ context.Context, in *ecs.DescribeServicesInput, _ ...func(*ecs.Options),
) (*ecs.DescribeServicesOutput, error) {
	switch {
	case *in.Cluster != "default":
		return nil, &ecstypes.ClusterNotFoundException{}
	case in.Services[0] == "none":
		return &ecs.DescribeServicesOutput{}, nil
	case in.Services[0] == "gone":
		return &ecs.DescribeServicesOutput{Services: []ecstypes.Service{{Status: aws.String("INACTIVE")}}}, nil
	}
	return &ecs.DescribeServicesOutput{Services: []ecstypes.Service{{Status: aws.String("ACTIVE")}}}, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store := statetest.Open(t)
	w := &world{t: t, alarms: map[string]*cloudwatch.PutMetricAlarmInput{}, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	w.Service = New(store, Options{
		Account:  accounttest.New(func() time.Time { return w.now }),
		Alarms:   w,
		Services: w,
	})
	return w
}

func (w *world) register(id string, lowest, highest int32) string {
	w.t.Helper()
	out, err := w.RegisterScalableTarget(w.t.Context(), &api.RegisterScalableTargetInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        &id,
		MinCapacity:       &lowest,
		MaxCapacity:       &highest,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return *out.ScalableTargetARN
}

func tracking(name string, target float64) *api.PutScalingPolicyInput {
	return &api.PutScalingPolicyInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        aws.String(web),
		PolicyName:        &name,
		PolicyType:        types.PolicyTypeTargetTrackingScaling,
		TargetTrackingScalingPolicyConfiguration: &types.TargetTrackingScalingPolicyConfiguration{
			TargetValue: &target,
			PredefinedMetricSpecification: &types.PredefinedMetricSpecification{
				PredefinedMetricType: types.MetricTypeECSServiceAverageCPUUtilization,
			},
		},
	}
}

func (w *world) put(in *api.PutScalingPolicyInput) *api.PutScalingPolicyOutput {
	w.t.Helper()
	out, err := w.PutScalingPolicy(w.t.Context(), in)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// refused checks an error's code and that its message names the field.
func refused(t *testing.T, what string, err error, code, says string) {
	t.Helper()
	var e smithy.APIError
	if !errors.As(err, &e) || e.ErrorCode() != code || !strings.Contains(e.ErrorMessage(), says) {
		t.Errorf("%s: got %v, want %s naming %q", what, err, code, says)
	}
}

func TestRegister(t *testing.T) {
	w := newWorld(t)
	arn := w.register(web, 1, 4)
	if again := w.register(web, 2, 8); again != arn {
		t.Errorf("registered again, the ARN changes from %s to %s", arn, again)
	}
	out, err := w.DescribeScalableTargets(t.Context(), &api.DescribeScalableTargetsInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceIds:       []string{web},
	})
	if err != nil || len(out.ScalableTargets) != 1 {
		t.Fatal(out, err)
	}
	target := out.ScalableTargets[0]
	if *target.MinCapacity != 2 || *target.MaxCapacity != 8 || *target.ScalableTargetARN != arn ||
		*target.SuspendedState.ScheduledScalingSuspended ||
		!strings.HasSuffix(*target.RoleARN, "AWSServiceRoleForApplicationAutoScaling_ECSService") {
		t.Errorf("got %+v", target)
	}
	if _, err := validation.Checked(constraints, w.RegisterScalableTarget)(t.Context(), &api.RegisterScalableTargetInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        aws.String(web),
		SuspendedState:    &types.SuspendedState{DynamicScalingInSuspended: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	row := w.store.View().ScalableTargets.Get(resource{namespace, dimension, aws.String(web)}.key())
	if *row.MinCapacity != 2 || !*row.SuspendedState.DynamicScalingInSuspended || *row.SuspendedState.DynamicScalingOutSuspended ||
		!row.Unsettled {
		t.Errorf("got %+v, %+v", row, row.SuspendedState)
	}
}

func TestRegisterRefuses(t *testing.T) {
	w := newWorld(t)
	type in = *api.RegisterScalableTargetInput
	for _, c := range []struct {
		change func(in)
		says   string
	}{
		{func(in in) { in.ServiceNamespace = "" }, "serviceNamespace"},
		{func(in in) { in.ServiceNamespace = "dynamodb" }, "Unsupported service namespace"},
		{func(in in) { in.ScalableDimension = "" }, "scalableDimension"},
		{func(in in) { in.ScalableDimension = "ecs:service:Cpu" }, "scalableDimension"},
		{func(in in) { in.ResourceId = nil }, "resourceId"},
		{func(in in) { in.ResourceId = aws.String("service/web") }, "resourceId"},
		{func(in in) { in.ResourceId = aws.String("service/default/none") }, "ECS service doesn't exist"},
		{func(in in) { in.ResourceId = aws.String("service/default/gone") }, "ECS service doesn't exist"},
		{func(in in) { in.ResourceId = aws.String("service/other/web") }, "ECS service doesn't exist"},
		{func(in in) { in.MinCapacity = nil }, "minCapacity"},
		{func(in in) { in.MaxCapacity = nil }, "maxCapacity"},
		{func(in in) { in.MinCapacity = aws.Int32(-1) }, "minCapacity"},
		{func(in in) { in.MinCapacity = aws.Int32(5) }, "Maximum capacity cannot be less"},
		{func(in in) { in.Tags = map[string]string{"aws:x": ""} }, "aws:"},
	} {
		in := &api.RegisterScalableTargetInput{
			ServiceNamespace:  namespace,
			ScalableDimension: dimension,
			ResourceId:        aws.String(web),
			MinCapacity:       aws.Int32(1),
			MaxCapacity:       aws.Int32(4),
		}
		c.change(in)
		_, err := validation.Checked(constraints, w.RegisterScalableTarget)(t.Context(), in)
		refused(t, c.says, err, "ValidationException", c.says)
	}
	if w.store.Revision() != 0 {
		t.Error("a refused call changed something")
	}
}

// TestTargetTracking checks a policy and its alarms against the example in PutScalingPolicy's page.
func TestTargetTracking(t *testing.T) {
	w := newWorld(t)
	w.register(web, 1, 4)
	first := w.put(tracking("cpu75", 75))
	if len(first.Alarms) != 2 || len(w.alarms) != 2 ||
		!strings.Contains(*first.PolicyARN, ":resource/ecs/service/default/web:policyName/cpu75") {
		t.Fatalf("got %s with %d alarms, %d put", *first.PolicyARN, len(first.Alarms), len(w.alarms))
	}
	high, low := w.alarms[*first.Alarms[0].AlarmName], w.alarms[*first.Alarms[1].AlarmName]
	if !strings.HasPrefix(*high.AlarmName, "TargetTracking-service/default/web-AlarmHigh-") || *high.Threshold != 75 ||
		*high.EvaluationPeriods != 3 || *high.Period != 60 || high.ComparisonOperator != "GreaterThanThreshold" ||
		!slices.Equal(high.AlarmActions, []string{*first.PolicyARN}) {
		t.Errorf("the high alarm is %+v", high)
	}
	if !strings.HasPrefix(*low.AlarmName, "TargetTracking-service/default/web-AlarmLow-") || *low.Threshold != 67.5 ||
		*low.EvaluationPeriods != 15 || low.ComparisonOperator != "LessThanThreshold" {
		t.Errorf("the low alarm is %+v", low)
	}
	if *high.Namespace != "AWS/ECS" || *high.MetricName != "CPUUtilization" || len(high.Dimensions) != 2 ||
		*high.Dimensions[0].Value != "default" || *high.Dimensions[1].Value != "web" {
		t.Errorf("its metric is %s %s of %+v", *high.Namespace, *high.MetricName, high.Dimensions)
	}
	if again := w.put(tracking("cpu75", 50)); *again.PolicyARN != *first.PolicyARN ||
		*again.Alarms[0].AlarmName != *first.Alarms[0].AlarmName || *w.alarms[*high.AlarmName].Threshold != 50 {
		t.Errorf("put again, it is %+v", again)
	}
	outOnly := tracking("cpu75", 50)
	outOnly.TargetTrackingScalingPolicyConfiguration.DisableScaleIn = aws.Bool(true)
	if out := w.put(outOnly); len(out.Alarms) != 1 || len(w.alarms) != 1 {
		t.Errorf("with scale-in disabled it has %d alarms, and %d are there", len(out.Alarms), len(w.alarms))
	}
	step := &api.PutScalingPolicyInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        aws.String(web),
		PolicyName:        aws.String("cpu75"),
		PolicyType:        types.PolicyTypeStepScaling,
		StepScalingPolicyConfiguration: &types.StepScalingPolicyConfiguration{
			AdjustmentType:  types.AdjustmentTypeChangeInCapacity,
			StepAdjustments: []types.StepAdjustment{{MetricIntervalLowerBound: aws.Float64(0), ScalingAdjustment: aws.Int32(1)}},
		},
	}
	if out := w.put(step); len(out.Alarms) != 0 || len(w.alarms) != 0 {
		t.Errorf("as a step policy it has %d alarms, and %d are there", len(out.Alarms), len(w.alarms))
	}
	w.put(tracking("cpu75", 75))
	if _, err := w.DeregisterScalableTarget(t.Context(), &api.DeregisterScalableTargetInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        aws.String(web),
	}); err != nil {
		t.Fatal(err)
	}
	out, err := w.DescribeScalingPolicies(t.Context(), &api.DescribeScalingPoliciesInput{ServiceNamespace: namespace})
	if err != nil || len(out.ScalingPolicies) != 0 || len(w.alarms) != 0 {
		t.Errorf("deregistered, there are %d policies and %d alarms: %v", len(out.ScalingPolicies), len(w.alarms), err)
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.register(web, 1, 4)
	p := tracking("p", 100)
	c := p.TargetTrackingScalingPolicyConfiguration
	c.PredefinedMetricSpecification = &types.PredefinedMetricSpecification{
		PredefinedMetricType: types.MetricTypeALBRequestCountPerTarget,
		ResourceLabel:        aws.String("app/my-alb/778d/targetgroup/my-tg/943f"),
	}
	a := w.alarms[*w.put(p).Alarms[0].AlarmName]
	if *a.Namespace != "AWS/ApplicationELB" || *a.MetricName != "RequestCountPerTarget" || a.Statistic != "Sum" ||
		*a.Dimensions[0].Value != "app/my-alb/778d" || *a.Dimensions[1].Value != "targetgroup/my-tg/943f" {
		t.Errorf("requests: %+v", a)
	}
	w.opts.Reaction = scaling.Fast
	if a := w.alarms[*w.put(p).Alarms[0].AlarmName]; *a.Period != 60 || *a.EvaluationPeriods != 1 { // its target is for a minute
		t.Errorf("requests, fast: %d times %d s", *a.EvaluationPeriods, *a.Period)
	}
	w.opts.Reaction = scaling.Faithful
	for metric, name := range map[types.MetricType]string{
		averageCPUUtilizationHighResolution:    "CPUUtilization",
		averageMemoryUtilizationHighResolution: "MemoryUtilization",
	} {
		c.PredefinedMetricSpecification = &types.PredefinedMetricSpecification{PredefinedMetricType: metric}
		out := w.put(p)
		high, low := w.alarms[*out.Alarms[0].AlarmName], w.alarms[*out.Alarms[1].AlarmName]
		if *high.Namespace != "AWS/ECS" || *high.MetricName != name || *high.Period != 20 || *high.EvaluationPeriods != 3 ||
			*low.Period != 20 || *low.EvaluationPeriods != 45 {
			t.Errorf("high resolution: %+v, %+v", high, low)
		}
	}
	c.PredefinedMetricSpecification = nil
	c.CustomizedMetricSpecification = &types.CustomizedMetricSpecification{
		Namespace:  aws.String("GPU"),
		MetricName: aws.String("Utilization"),
		Statistic:  types.MetricStatisticAverage,
		Unit:       aws.String("Percent"),
		Dimensions: []types.MetricDimension{{Name: aws.String("ServiceName"), Value: aws.String("web")}},
	}
	a = w.alarms[*w.put(p).Alarms[0].AlarmName]
	if *a.Namespace != "GPU" || a.Statistic != "Average" || a.Unit != "Percent" || *a.Dimensions[0].Value != "web" || a.Metrics != nil {
		t.Errorf("customized: %+v", a)
	}
	query := func(id, expression string, returned bool) types.TargetTrackingMetricDataQuery {
		q := types.TargetTrackingMetricDataQuery{Id: &id, ReturnData: &returned}
		if expression != "" {
			q.Expression = &expression
			return q
		}
		q.MetricStat = &types.TargetTrackingMetricStat{
			Metric: &types.TargetTrackingMetric{Namespace: aws.String("AWS/SQS"), MetricName: aws.String("Visible")},
			Stat:   aws.String("Sum"),
		}
		return q
	}
	c.CustomizedMetricSpecification = &types.CustomizedMetricSpecification{
		Metrics: []types.TargetTrackingMetricDataQuery{query("m1", "", false), query("m2", "", false), query("e1", "m1 / m2", true)},
	}
	a = w.alarms[*w.put(p).Alarms[0].AlarmName]
	if len(a.Metrics) != 3 || *a.Metrics[0].MetricStat.Period != 60 || *a.Metrics[0].ReturnData || !*a.Metrics[2].ReturnData ||
		a.MetricName != nil || a.Period != nil {
		t.Errorf("metric math: %+v", a)
	}
	for says, metrics := range map[string][]types.TargetTrackingMetricDataQuery{
		"at character 5":            {query("m1", "", false), query("e1", "m1 /", true)},
		"names m3":                  {query("m1", "", false), query("e1", "m3", true)},
		"exactly one must have it":  {query("m1", "", true), query("e1", "m1", true)},
		"twice":                     {query("m1", "", false), query("m1", "m1", true)},
		"lower-case":                {query("M1", "", true)},
		"exactly one of expression": {{Id: aws.String("m1")}},
		"at most 10":                make([]types.TargetTrackingMetricDataQuery, 11),
	} {
		c.CustomizedMetricSpecification = &types.CustomizedMetricSpecification{Metrics: metrics}
		_, err := w.PutScalingPolicy(t.Context(), p)
		refused(t, says, err, "ValidationException", says)
	}
}

func TestPolicyRefuses(t *testing.T) {
	w := newWorld(t)
	_, err := validation.Checked(constraints, w.PutScalingPolicy)(t.Context(), tracking("p", 75))
	refused(t, "without a target", err, "ObjectNotFoundException",
		"No scalable target registered for service namespace: ecs, resource ID: service/default/web, scalable dimension: "+
			"ecs:service:DesiredCount")
	w.register(web, 1, 4)
	before := w.store.Revision()
	type policy = *api.PutScalingPolicyInput
	type config = *types.TargetTrackingScalingPolicyConfiguration
	for _, c := range []struct {
		change func(policy, config)
		says   string
	}{
		{func(in policy, _ config) { in.PolicyName = nil }, "policyName"},
		{func(in policy, _ config) { in.PolicyType = "Guess" }, "policyType"},
		{func(in policy, _ config) {
			in.PredictiveScalingPolicyConfiguration = &types.PredictiveScalingPolicyConfiguration{
				MetricSpecifications: []types.PredictiveScalingMetricSpecification{{TargetValue: aws.Float64(1)}},
			}
		}, "predictiveScalingPolicyConfiguration is not for"},
		{func(in policy, _ config) { in.PolicyType = types.PolicyTypePredictiveScaling }, "PredictiveScaling is not supported"},
		{func(in policy, _ config) { in.PolicyType = types.PolicyTypeStepScaling }, "targetTrackingScalingPolicyConfiguration is not for"},
		{func(in policy, _ config) {
			in.PolicyType = ""
			in.TargetTrackingScalingPolicyConfiguration = nil
		}, "stepScalingPolicyConfiguration"},
		{func(in policy, _ config) {
			in.PolicyType = ""
			in.TargetTrackingScalingPolicyConfiguration = nil
			in.StepScalingPolicyConfiguration = &types.StepScalingPolicyConfiguration{
				AdjustmentType:  "ChangeInCapacity",
				StepAdjustments: []types.StepAdjustment{{ScalingAdjustment: aws.Int32(1)}},
			}
		}, "neither"},
		{func(_ policy, c config) { c.TargetValue = nil }, "targetValue"},
		{func(_ policy, c config) { c.TargetValue = aws.Float64(0) }, "targetValue"},
		{func(_ policy, c config) { c.ScaleInCooldown = aws.Int32(-1) }, "scaleInCooldown"},
		{func(_ policy, c config) { c.ScaleOutCooldown = aws.Int32(-1) }, "scaleOutCooldown"},
		{func(_ policy, c config) { c.PredefinedMetricSpecification = nil }, "exactly one"},
		{func(_ policy, c config) {
			c.PredefinedMetricSpecification.PredefinedMetricType = types.MetricTypeRDSReaderAverageCPUUtilization
		}, "predefinedMetricType"},
		{func(_ policy, c config) {
			c.PredefinedMetricSpecification.PredefinedMetricType = types.MetricTypeALBRequestCountPerTarget
		}, "resourceLabel"},
		{func(_ policy, c config) {
			c.PredefinedMetricSpecification = nil
			c.CustomizedMetricSpecification = &types.CustomizedMetricSpecification{MetricName: aws.String("m")}
		}, "namespace"},
	} {
		in := tracking("p", 75)
		c.change(in, in.TargetTrackingScalingPolicyConfiguration)
		_, err := validation.Checked(constraints, w.PutScalingPolicy)(t.Context(), in)
		refused(t, c.says, err, "ValidationException", c.says)
	}
	w.full = true
	_, err = validation.Checked(constraints, w.PutScalingPolicy)(t.Context(), tracking("p", 75))
	refused(t, "no room for alarms", err, "FailedResourceAccessException", "no more alarms")
	_, err = validation.Checked(constraints, w.DeleteScalingPolicy)(t.Context(), &api.DeleteScalingPolicyInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        aws.String(web),
		PolicyName:        aws.String("none"),
	})
	refused(t, "delete", err, "ObjectNotFoundException", "none")
	if w.store.Revision() != before || len(w.alarms) > 0 {
		t.Error("a refused call changed something")
	}
}

// TestOnePolicyForAMetric: a target has one target tracking policy with each metric specification, whatever its name and its target.
func TestOnePolicyForAMetric(t *testing.T) {
	w := newWorld(t)
	w.register(web, 1, 4)
	w.register("service/default/other", 1, 4)
	custom := func(name, value string, statistic types.MetricStatistic) *api.PutScalingPolicyInput {
		in := tracking(name, 5)
		in.TargetTrackingScalingPolicyConfiguration.PredefinedMetricSpecification = nil
		in.TargetTrackingScalingPolicyConfiguration.CustomizedMetricSpecification = &types.CustomizedMetricSpecification{
			Namespace: aws.String("N"), MetricName: aws.String("M"), Statistic: statistic,
			Dimensions: []types.MetricDimension{
				{Name: aws.String("a"), Value: &value},
				{Name: aws.String("b"), Value: aws.String("2")},
			},
		}
		return in
	}
	elsewhere := tracking("elsewhere", 75)
	elsewhere.ResourceId = aws.String("service/default/other")
	for _, in := range []*api.PutScalingPolicyInput{
		tracking("cpu", 75), tracking("cpu", 50), elsewhere,
		custom("load", "1", "Average"), custom("load", "1", "Average"), custom("other", "2", "Average"), custom("most", "1", "Maximum"),
	} {
		w.put(in)
	}
	before, alarms := w.store.Revision(), len(w.alarms)
	turned := custom("again", "1", "Average")
	slices.Reverse(turned.TargetTrackingScalingPolicyConfiguration.CustomizedMetricSpecification.Dimensions)
	for _, in := range []*api.PutScalingPolicyInput{
		tracking("again", 50), custom("again", "1", "Average"), turned, custom("cpu", "1", "Average"),
	} {
		_, err := w.PutScalingPolicy(t.Context(), in)
		refused(t, *in.PolicyName, err, "ValidationException",
			"Only one TargetTrackingScaling policy for a given metric specification is allowed.")
	}
	if w.store.Revision() != before || len(w.alarms) != alarms {
		t.Error("a refused call changed something")
	}
}

func TestScheduledActions(t *testing.T) {
	w := newWorld(t)
	put := func(in api.PutScheduledActionInput) error {
		in.ServiceNamespace = namespace
		in.ScalableDimension = dimension
		in.ResourceId = aws.String(web)
		_, err := validation.Checked(constraints, w.PutScheduledAction)(t.Context(), &in)
		return err
	}
	action := &types.ScalableTargetAction{MinCapacity: aws.Int32(2)}
	nightly := api.PutScheduledActionInput{
		ScheduledActionName:  aws.String("nightly"),
		Schedule:             aws.String("cron(0 20 * * ? *)"),
		Timezone:             aws.String("Europe/Zurich"),
		ScalableTargetAction: action,
	}
	refused(t, "without a target", put(nightly), "ObjectNotFoundException", "No scalable target registered")
	w.register(web, 1, 4)
	before := w.store.Revision()
	for says, in := range map[string]api.PutScheduledActionInput{
		"scheduledActionName": {ScheduledActionName: aws.String("a/b"), Schedule: nightly.Schedule, ScalableTargetAction: action},
		"schedule":            {ScheduledActionName: aws.String("a"), ScalableTargetAction: action},
		"Schedule":            {ScheduledActionName: aws.String("a"), Schedule: aws.String("sometimes"), ScalableTargetAction: action},
		"Timezone": {
			ScheduledActionName:  aws.String("a"),
			Schedule:             nightly.Schedule,
			Timezone:             aws.String("Mars"),
			ScalableTargetAction: action,
		},
		"scalableTargetAction": {ScheduledActionName: aws.String("a"), Schedule: nightly.Schedule},
		"Maximum capacity": {
			ScheduledActionName:  aws.String("a"),
			Schedule:             nightly.Schedule,
			ScalableTargetAction: &types.ScalableTargetAction{MinCapacity: aws.Int32(2), MaxCapacity: aws.Int32(1)},
		},
		"scalableTargetAction.max": {
			ScheduledActionName:  aws.String("a"),
			Schedule:             nightly.Schedule,
			ScalableTargetAction: &types.ScalableTargetAction{MaxCapacity: aws.Int32(-1)},
		},
		"endTime": {
			ScheduledActionName:  aws.String("a"),
			Schedule:             nightly.Schedule,
			ScalableTargetAction: action,
			StartTime:            &w.now,
			EndTime:              &w.now,
		},
	} {
		refused(t, says, put(in), "ValidationException", says)
	}
	if w.store.Revision() != before {
		t.Error("a refused call changed something")
	}
	if err := put(nightly); err != nil {
		t.Fatal(err)
	}
	if err := put(api.PutScheduledActionInput{
		ScheduledActionName:  aws.String("nightly"),
		ScalableTargetAction: &types.ScalableTargetAction{MaxCapacity: aws.Int32(9)},
	}); err != nil {
		t.Fatal(err)
	}
	out, err := w.DescribeScheduledActions(t.Context(), &api.DescribeScheduledActionsInput{
		ServiceNamespace:     namespace,
		ResourceId:           aws.String(web),
		ScheduledActionNames: []string{"nightly"},
	})
	if err != nil || len(out.ScheduledActions) != 1 || *out.ScheduledActions[0].Timezone != "Europe/Zurich" ||
		*out.ScheduledActions[0].ScalableTargetAction.MaxCapacity != 9 {
		t.Fatalf("got %+v, %v", out, err)
	}
	row := slices.Collect(w.store.View().ScheduledActions.All())[0]
	if want := time.Date(2026, 11, 21, 19, 0, 0, 0, time.UTC); !row.DueAt.Equal(want) ||
		!strings.HasSuffix(*row.ScheduledActionARN, ":resource/ecs/service/default/web:scheduledActionName/nightly") {
		t.Errorf("it is due at %s: %s", row.DueAt, *row.ScheduledActionARN)
	}
	in := &api.DeleteScheduledActionInput{
		ServiceNamespace:    namespace,
		ScalableDimension:   dimension,
		ResourceId:          aws.String(web),
		ScheduledActionName: aws.String("nightly"),
	}
	if _, err := w.DeleteScheduledAction(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	_, err = w.DeleteScheduledAction(t.Context(), in)
	refused(t, "deleted twice", err, "ObjectNotFoundException", "nightly")
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	arn := w.register(web, 1, 4)
	if _, err := w.TagResource(t.Context(), &api.TagResourceInput{
		ResourceARN: &arn,
		Tags:        map[string]string{"a": "1", "b": "2"},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.UntagResource(t.Context(), &api.UntagResourceInput{ResourceARN: &arn, TagKeys: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	out, err := w.ListTagsForResource(t.Context(), &api.ListTagsForResourceInput{ResourceARN: &arn})
	if err != nil || len(out.Tags) != 1 || out.Tags["b"] != "2" {
		t.Errorf("got %v, %v", out, err)
	}
	_, err = validation.Checked(constraints, w.ListTagsForResource)(t.Context(), &api.ListTagsForResourceInput{
		ResourceARN: aws.String("arn:aws:s3:::x"),
	})
	refused(t, "another service's", err, "ValidationException", "resourceARN")
	_, err = validation.Checked(constraints, w.ListTagsForResource)(t.Context(), &api.ListTagsForResourceInput{
		ResourceARN: aws.String(arn + "0"),
	})
	refused(t, "unknown", err, "ResourceNotFoundException", arn)
	many := map[string]string{}
	for i := range 50 {
		many[strings.Repeat("x", i+1)] = ""
	}
	_, err = w.TagResource(t.Context(), &api.TagResourceInput{ResourceARN: &arn, Tags: many})
	refused(t, "51 tags", err, "TooManyTagsException", "51")
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.register("service/default/"+name, 1, 4)
	}
	var got []string
	in := &api.DescribeScalableTargetsInput{ServiceNamespace: namespace, MaxResults: aws.Int32(2)}
	for {
		out, err := w.DescribeScalableTargets(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range out.ScalableTargets {
			got = append(got, *target.ResourceId)
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	if want := []string{"service/default/a", "service/default/b", "service/default/c"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	_, err := validation.Checked(constraints, w.DescribeScalableTargets)(t.Context(), &api.DescribeScalableTargetsInput{
		ServiceNamespace: namespace,
		NextToken:        aws.String("x"),
	})
	refused(t, "token", err, "InvalidNextTokenException", "nextToken")
	_, err = validation.Checked(constraints, w.DescribeScalableTargets)(t.Context(), &api.DescribeScalableTargetsInput{
		ServiceNamespace: namespace,
		MaxResults:       aws.Int32(51),
	})
	refused(t, "size", err, "ValidationException", "maxResults")
}

// TestActivities: activities come newest first. Those that didn't scale are listed only on request.
func TestActivities(t *testing.T) {
	w := newWorld(t)
	err := w.store.Update(t.Context(), func(tx *state.Tx) error {
		for i, id := range []string{"0", "1", "2", "3"} {
			a := &state.ScalingActivity{ScalingActivity: types.ScalingActivity{
				ActivityId:        &id,
				ServiceNamespace:  namespace,
				ScalableDimension: dimension,
				ResourceId:        aws.String(web),
				StartTime:         &w.now,
			}}
			if i == 1 {
				a.NotScaledReasons = []types.NotScaledReason{{Code: aws.String("AlreadyAtMaxCapacity"), MaxCapacity: aws.Int32(4)}}
			}
			if i == 3 {
				a.ResourceId = aws.String("service/default/other")
			}
			tx.ScalingActivities.Put(a)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]*api.DescribeScalingActivitiesInput{
		"3 2 0":   {},
		"3 2 1 0": {IncludeNotScaledActivities: aws.Bool(true)},
		"2 1 0":   {IncludeNotScaledActivities: aws.Bool(true), ScalableDimension: dimension, ResourceId: aws.String(web)},
	} {
		in.ServiceNamespace = namespace
		in.MaxResults = aws.Int32(1)
		var got []string
		for {
			out, err := w.DescribeScalingActivities(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, *out.ScalingActivities[0].ActivityId)
			if in.NextToken = out.NextToken; in.NextToken == nil {
				break
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	_, err = validation.Checked(constraints, w.DescribeScalingActivities)(t.Context(), &api.DescribeScalingActivitiesInput{
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
	})
	refused(t, "a dimension alone", err, "ValidationException", "resourceId")
}

// TestOtherNamespaces: namespaces of AWS's that have nothing here are empty, and others are refused.
func TestOtherNamespaces(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		namespace types.ServiceNamespace
		says      string
	}{{types.ServiceNamespaceDynamodb, ""}, {types.ServiceNamespaceLambda, ""}, {"nowhere", "1 validation error detected: Value 'nowhere'"}} {
		targets, err := w.DescribeScalableTargets(t.Context(), &api.DescribeScalableTargetsInput{ServiceNamespace: c.namespace})
		_, policies := w.DescribeScalingPolicies(t.Context(), &api.DescribeScalingPoliciesInput{ServiceNamespace: c.namespace})
		_, actions := w.DescribeScheduledActions(t.Context(), &api.DescribeScheduledActionsInput{ServiceNamespace: c.namespace})
		_, activities := w.DescribeScalingActivities(t.Context(), &api.DescribeScalingActivitiesInput{ServiceNamespace: c.namespace})
		for _, err := range []error{err, policies, actions, activities} {
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.namespace, err)
			}
		}
		if err == nil && len(targets.ScalableTargets) > 0 {
			t.Errorf("%s has %+v", c.namespace, targets.ScalableTargets)
		}
	}
}
