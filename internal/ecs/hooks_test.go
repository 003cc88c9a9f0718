package ecs

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// TestLifecycleHookRefusals: a hook that could not be carried out is refused by the member that is at fault.
func TestLifecycleHookRefusals(t *testing.T) {
	const function = "arn:aws:lambda:us-east-1:000000000000:function:check"
	const pause = types.DeploymentLifecycleHookTargetTypePause
	minutes := func(n int32) *types.DeploymentLifecycleHookTimeoutConfiguration {
		return &types.DeploymentLifecycleHookTimeoutConfiguration{TimeoutInMinutes: &n}
	}
	for _, c := range []struct {
		says   string // "" is allowed
		change func(*types.DeploymentLifecycleHook)
	}{
		{"", func(*types.DeploymentLifecycleHook) {}},
		{"", func(h *types.DeploymentLifecycleHook) { h.HookTargetArn = aws.String(function + ":live") }},
		{"", func(h *types.DeploymentLifecycleHook) {
			h.TargetType = types.DeploymentLifecycleHookTargetTypeAwsLambda
		}},
		{"", func(h *types.DeploymentLifecycleHook) { h.TimeoutConfiguration = minutes(1440) }},
		{"timeoutInMinutes must be between 1 and 1440", func(h *types.DeploymentLifecycleHook) { h.TimeoutConfiguration = minutes(1441) }},
		{"hookTargetArn must be the ARN of a Lambda function", func(h *types.DeploymentLifecycleHook) { h.HookTargetArn = nil }},
		{"hookTargetArn must be the ARN of a Lambda function", func(h *types.DeploymentLifecycleHook) { h.HookTargetArn = aws.String("check") }},
		{"invokes functions of account", func(h *types.DeploymentLifecycleHook) {
			h.HookTargetArn = aws.String("arn:aws:lambda:us-east-1:111111111111:function:check")
		}},
		{"roleArn must not be empty", func(h *types.DeploymentLifecycleHook) { h.RoleArn = nil }},
		{"cannot be assumed by ecs.amazonaws.com", func(h *types.DeploymentLifecycleHook) { h.RoleArn = aws.String("arn:aws:iam::000000000000:role/other") }},
		{"lifecycleStages must not be empty", func(h *types.DeploymentLifecycleHook) { h.LifecycleStages = nil }},
		{"lifecycleStages must be among", func(h *types.DeploymentLifecycleHook) { h.LifecycleStages[0] = "BAKE_TIME" }},
		{"targetType must be one of", func(h *types.DeploymentLifecycleHook) { h.TargetType = "STEP_FUNCTION" }},
		{"must not be given with the targetType PAUSE", func(h *types.DeploymentLifecycleHook) { h.TargetType = pause }},
		{"cannot be at the stage PRODUCTION_TRAFFIC_SHIFT", func(h *types.DeploymentLifecycleHook) {
			*h = types.DeploymentLifecycleHook{TargetType: pause, LifecycleStages: h.LifecycleStages}
		}},
		{"hookDetails must be JSON of at most", func(h *types.DeploymentLifecycleHook) {
			h.HookDetails, _ = state.Document([]byte(`"` + strings.Repeat("x", 256<<10) + `"`)) //nolint:errcheck // it's JSON
		}},
	} {
		s, _ := newTestService(t)
		s.opts.Trusts = func(role, _ string) bool { return strings.HasSuffix(role, "role/hooks") }
		h := types.DeploymentLifecycleHook{
			HookTargetArn:   aws.String(function),
			RoleArn:         aws.String("arn:aws:iam::000000000000:role/hooks"),
			LifecycleStages: []types.DeploymentLifecycleHookStage{"PRODUCTION_TRAFFIC_SHIFT"},
		}
		c.change(&h)
		in := validService()
		in.DeploymentConfiguration = &types.DeploymentConfiguration{
			Strategy: types.DeploymentStrategyBlueGreen, LifecycleHooks: []types.DeploymentLifecycleHook{h}}
		_, err := s.CreateService(t.Context(), in)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", h, err, c.says)
		}
	}
}

// TestTasksHooks: a task can't have a function invoked as a role that it doesn't have itself, neither by a new service nor by a changed one.
func TestTasksHooks(t *testing.T) {
	s, _ := newTestService(t)
	create(t, s, nil)
	for _, c := range []struct {
		role    string
		allowed bool
	}{{"arn:aws:iam::000000000000:role/own", true}, {"arn:aws:iam::000000000000:role/other", false}} {
		ctx := call.With(t.Context(), call.Call{Identity: call.Identity{Principal: "p", Task: "t", Role: "arn:aws:iam::000000000000:role/own"}})
		_, err := s.UpdateService(ctx, &ecs.UpdateServiceInput{Service: aws.String("s"), DeploymentConfiguration: &types.DeploymentConfiguration{
			Strategy: types.DeploymentStrategyBlueGreen, LifecycleHooks: []types.DeploymentLifecycleHook{{
				HookTargetArn: aws.String("arn:aws:lambda:us-east-1:000000000000:function:check"), RoleArn: &c.role,
				LifecycleStages: []types.DeploymentLifecycleHookStage{"PRE_SCALE_UP"},
			}}}})
		if (err == nil) != c.allowed {
			t.Errorf("%s: %v", c.role, err)
		}
	}
}
