package test

import (
	"fmt"
	"strings"
	"testing"
)

// TestScalingCLI sets up with the AWS CLI what docs and blogs set up: bounds, a policy on a custom metric, steps and a
// schedule. It's all still there after a kill.
func TestScalingCLI(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.2xlarge")
	scaling := func(operation string, args ...string) string {
		return p.AWS(append([]string{"application-autoscaling", operation, "--service-namespace", "ecs", "--output", "text"}, args...)...)
	}
	web := []string{"--scalable-dimension", "ecs:service:DesiredCount", "--resource-id", "service/default/web"}
	with := func(args ...string) []string { return append(web[:len(web):len(web)], args...) }

	p.createGPUService("web", 0)
	scaling("register-scalable-target", with("--min-capacity", "1", "--max-capacity", "10")...)
	high := scaling("put-scaling-policy", with("--policy-name", "cpu75", "--policy-type", "TargetTrackingScaling",
		"--query", "Alarms[0].AlarmName", "--target-tracking-scaling-policy-configuration",
		`{"TargetValue":75,"PredefinedMetricSpecification":{"PredefinedMetricType":"ECSServiceAverageCPUUtilization"},`+
			`"ScaleOutCooldown":60,"ScaleInCooldown":60}`)...)
	if !strings.HasPrefix(high, "TargetTracking-service/default/web-AlarmHigh-") {
		t.Errorf("the alarm is %s", high)
	}
	scaling("put-scaling-policy", with("--policy-name", "steps", "--policy-type", "StepScaling",
		"--step-scaling-policy-configuration",
		"AdjustmentType=ChangeInCapacity,Cooldown=60,StepAdjustments=[{MetricIntervalLowerBound=0,ScalingAdjustment=2}]")...)
	scaling("put-scheduled-action", with("--scheduled-action-name", "nights", "--schedule", "cron(0 20 * * ? *)",
		"--timezone", "America/New_York", "--scalable-target-action", "MinCapacity=0")...)

	p.Kill()
	p.Start()
	got := scaling("describe-scalable-targets", "--resource-ids", "service/default/web",
		"--query", "ScalableTargets[].[MinCapacity,MaxCapacity]")
	if got != "1\t10" {
		t.Errorf("the bounds are %s", got)
	}
	got = scaling("describe-scaling-policies", "--query", "ScalingPolicies[].[PolicyName,PolicyType]")
	if got != "cpu75\tTargetTrackingScaling\nsteps\tStepScaling" {
		t.Errorf("the policies are %s", got)
	}
	got = scaling("describe-scheduled-actions", "--query", "ScheduledActions[].[ScheduledActionName,Schedule,Timezone]")
	if got != "nights\tcron(0 20 * * ? *)\tAmerica/New_York" {
		t.Errorf("the scheduled actions are %s", got)
	}
	scaling("deregister-scalable-target", web...)
	if got := scaling("describe-scaling-policies", "--query", "length(ScalingPolicies)"); got != "0" {
		t.Errorf("%s policies are left", got)
	}
}

// createGPUService creates a service whose tasks take one GPU each.
func (p *Pintle) createGPUService(name string, desired int) {
	p.t.Helper()
	p.AWS("ecs", "register-task-definition", "--family", name, "--container-definitions",
		`[{"name":"main","image":"i","memory":64,"command":["sleep","600"],"resourceRequirements":[{"type":"GPU","value":"1"}]}]`)
	p.AWS("ecs", "create-service", "--service-name", name, "--task-definition", name, "--desired-count", fmt.Sprint(desired))
}

// TestScalingBadInput sends requests that must be refused, and checks that nothing changed.
func TestScalingBadInput(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.2xlarge")
	const (
		target = "AnyScaleFrontendService."
		web    = `"ServiceNamespace":"ecs","ScalableDimension":"ecs:service:DesiredCount","ResourceId":"service/default/web"`
	)
	for _, c := range []struct{ operation, body, code, says string }{
		{"RegisterScalableTarget", `{}`, "ValidationException", "serviceNamespace"},
		{"RegisterScalableTarget", `{` + web + `,"MinCapacity":"1"}`, "SerializationException", "MinCapacity"},
		{"RegisterScalableTarget", `{` + web + `,"minCapacity":1}`, "SerializationException", "minCapacity"},
		{"RegisterScalableTarget", `{` + web + `,"MinCapacity":-1,"MaxCapacity":1}`, "ValidationException", "minCapacity"},
		{"RegisterScalableTarget", `{` + strings.Replace(web, "service/default/web", "table/web",
			1) + `,"MinCapacity":1,"MaxCapacity":1}`, "ValidationException", "resourceId"},
		{"DescribeScalableTargets", `{"ServiceNamespace":"nosuch"}`, "ValidationException", "serviceNamespace"},
		{"DescribeScalableTargets", `{"ServiceNamespace":"ecs","NextToken":"x"}`, "InvalidNextTokenException", "nextToken"},
		{"PutScalingPolicy", `{` + web + `,"PolicyName":"p"}`, "ObjectNotFoundException", "No scalable target registered"},
		{"PutScheduledAction",
			`{` + web + `,"ScheduledActionName":"a","Schedule":"rate(1 minute)","ScalableTargetAction":{"MinCapacity":1}}`,
			"ObjectNotFoundException", "No scalable target registered"},
		{"DeleteScheduledAction", `{` + web + `,"ScheduledActionName":"a"}`, "ObjectNotFoundException", "a"},
		{"DeregisterScalableTarget", `{` + web + `}`, "ObjectNotFoundException", "No scalable target found"},
		{"GetPredictiveScalingForecast", `{}`, "NotImplementedException", "GetPredictiveScalingForecast"},
		{"ScaleUp", `{}`, "UnknownOperationException", "ScaleUp"},
	} {
		status, answer, err := p.Post(target+c.operation, c.body)
		if err != nil || status < 400 || !strings.Contains(answer, `"`+c.code+`"`) || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s: got %d %s, %v, want %s naming %q", c.operation, c.body, status, answer, err, c.code, c.says)
		}
	}
	if _, answer, err := p.Post(target+"DescribeScalableTargets", `{"ServiceNamespace":"ecs"}`); err != nil ||
		answer != `{"ScalableTargets":[]}` {
		t.Errorf("refused calls have changed something: %s, %v", answer, err)
	}
}
