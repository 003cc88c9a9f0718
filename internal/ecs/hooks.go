package ecs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/ecs/lifecyclehook"
	"github.com/pintle/pintle/internal/ecs/trafficshift"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Deployments' lifecycle hooks: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-lifecycle-hooks.html

// How long a lifecycle hook may wait, in minutes: two weeks for somebody, a day for a function.
const (
	maxPause      = 20160
	maxInvocation = 1440
)

// checkHook checks a lifecycle hook.
func checkHook(h *types.DeploymentLifecycleHook) error {
	const at = "deploymentConfiguration.lifecycleHooks."
	if h.TargetType != "" && !slices.Contains(h.TargetType.Values(), h.TargetType) {
		return invalidParameter(at+"targetType must be one of %v, not %q.", h.TargetType.Values(), h.TargetType)
	}
	if len(h.LifecycleStages) == 0 {
		return invalidParameter(at + "lifecycleStages must not be empty.")
	}
	for _, stage := range h.LifecycleStages {
		if !slices.Contains(stage.Values(), stage) {
			return invalidParameter(at+"lifecycleStages must be among %v, not %q.", stage.Values(), stage)
		}
	}
	most := maxInvocation
	check := checkFunctionHook
	if !trafficshift.CallsFunction(h) {
		most = maxPause
		check = checkPause
	}
	if err := check(h); err != nil || h.TimeoutConfiguration == nil {
		return err
	}
	c := h.TimeoutConfiguration
	if n := c.TimeoutInMinutes; n != nil && (*n < 1 || int(*n) > most) {
		return invalidParameter(at+"timeoutConfiguration.timeoutInMinutes must be between 1 and %d, not %d.", most, *n)
	}
	if c.Action != "" && !slices.Contains(c.Action.Values(), c.Action) {
		return invalidParameter(at+"timeoutConfiguration.action must be one of %v, not %q.", c.Action.Values(), c.Action)
	}
	return nil
}

func checkPause(h *types.DeploymentLifecycleHook) error {
	const at = "deploymentConfiguration.lifecycleHooks."
	if h.HookTargetArn != nil || h.RoleArn != nil || h.HookDetails != nil {
		return invalidParameter(at + "hookTargetArn, roleArn and hookDetails must not be given with the targetType PAUSE.")
	}
	for _, stage := range h.LifecycleStages {
		if stage == types.DeploymentLifecycleHookStageTestTrafficShift || stage == types.DeploymentLifecycleHookStageProductionTrafficShift {
			return invalidParameter(at+"lifecycleStages: a hook with the targetType PAUSE cannot be at the stage %s.", stage)
		}
	}
	return nil
}

func checkFunctionHook(h *types.DeploymentLifecycleHook) error {
	const at = "deploymentConfiguration.lifecycleHooks."
	switch function := aws.ToString(h.HookTargetArn); {
	case !strings.HasPrefix(function, "arn:aws:lambda:") || !strings.Contains(function, ":function:"):
		return invalidParameter(at+"hookTargetArn must be the ARN of a Lambda function, not %q.", function)
	case aws.ToString(h.RoleArn) == "":
		return invalidParameter(at + "roleArn must not be empty.")
	case h.HookDetails == nil:
		return nil
	}
	details, err := h.HookDetails.MarshalSmithyDocument()
	if err != nil || len(details) > lifecyclehook.MaxDetails {
		return invalidParameter(at+"hookDetails must be JSON of at most %d bytes.", lifecyclehook.MaxDetails)
	}
	return nil
}

// checkHooks checks the functions and roles of a call's lifecycle hooks. A task can't have a function invoked as a role that it doesn't have itself.
func (s *Service) checkHooks(c call.Call, in *types.DeploymentConfiguration) error {
	if in == nil {
		return nil
	}
	const at = "deploymentConfiguration.lifecycleHooks."
	for i := range in.LifecycleHooks {
		h := &in.LifecycleHooks[i]
		role := aws.ToString(h.RoleArn)
		switch {
		case !trafficshift.CallsFunction(h):
		case s.opts.IsForeign(aws.ToString(h.HookTargetArn)):
			return invalidParameter(at+"hookTargetArn %s: Pintle invokes functions of account %s in %s alone.", aws.ToString(h.HookTargetArn),
				s.opts.ID, s.opts.Region)
		case c.Task != "" && role != c.Role:
			return &types.AccessDeniedException{
				Message: aws.String(account.NotAuthorized(c.Principal, "iam:PassRole", role, "a task can pass its own role only")),
			}
		case !s.opts.Trusts(role, servicePrincipal):
			return invalidParameter(at+"roleArn: the role %s cannot be assumed by %s.", role, servicePrincipal)
		}
	}
	return nil
}

// servicePrincipal is ECS as roles trust it.
const servicePrincipal = "ecs.amazonaws.com"

// hookOf returns a lifecycle hook that a service's deployment has come to, or nil.
func hookOf(row *state.Service, id string) *state.Hook {
	if row == nil || len(row.Deployments) == 0 || row.Deployments[0].Shift == nil {
		return nil
	}
	hooks := row.Deployments[0].Shift.Hooks
	i := slices.IndexFunc(hooks, func(h state.Hook) bool { return *h.HookId == id })
	if i < 0 {
		return nil
	}
	return &hooks[i]
}

// settleHook ends a lifecycle hook of a service, of which row is a copy. Package rollout goes on from there.
func (s *Service) settleHook(tx *state.Tx, row *state.Service, id string, status types.DeploymentLifecycleHookStatus) {
	d := &row.Deployments[0]
	next := *d.Shift
	next.Hooks = slices.Clone(d.Shift.Hooks)
	d.Shift = &next
	hookOf(row, id).Status = status
	tx.Services.Put(row)
	if record, ok := clone(tx.ServiceDeployments.Get(d.ServiceDeploymentArn)); ok {
		record.LifecycleHookDetails = next.HookDetails()
		record.UpdatedAt = s.now()
		tx.ServiceDeployments.Put(record)
	}
}

// ContinueServiceDeployment ends the pause of a lifecycle hook: the deployment goes on, or package rollout rolls it back.
func (s *Service) ContinueServiceDeployment(
	ctx context.Context, in *ecs.ContinueServiceDeploymentInput,
) (*ecs.ContinueServiceDeploymentOutput, error) {
	arn, id := aws.ToString(in.ServiceDeploymentArn), aws.ToString(in.HookId)
	switch {
	case arn == "":
		return nil, invalidParameter("serviceDeploymentArn must not be empty.")
	case id == "":
		return nil, invalidParameter("hookId must not be empty.")
	case in.Action != "" && !slices.Contains(in.Action.Values(), in.Action):
		return nil, invalidParameter("action must be one of %v, not %q.", in.Action.Values(), in.Action)
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		record, old, err := underWay(tx, arn)
		if err != nil {
			return err
		}
		if old == nil {
			return invalidParameter("serviceDeploymentArn: the service deployment %s is %s, and cannot be continued.", arn, record.Status)
		}
		h := hookOf(old, id)
		switch {
		case h == nil:
			return invalidParameter("hookId: the service deployment %s has no lifecycle hook %s.", arn, id)
		case h.Status != types.DeploymentLifecycleHookStatusAwaitingAction:
			return invalidParameter("hookId: the lifecycle hook %s is %s, and awaits no action.", id, h.Status)
		}
		status := types.DeploymentLifecycleHookStatusSucceeded
		if in.Action == types.DeploymentLifecycleHookActionRollback {
			status = types.DeploymentLifecycleHookStatusFailed
		}
		s.settleHook(tx, old.Clone(), id, status)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.ContinueServiceDeploymentOutput{ServiceDeploymentArn: &arn}, nil
}

// DeploymentPrefix begins the ARNs of service deployments, whose lifecycle hooks have functions invoked.
const DeploymentPrefix = "arn:aws:ecs:"

// errInProgress has a function invoked again.
var errInProgress = errors.New("the lifecycle hook is in progress")

// Tell invokes the function of a lifecycle hook, and notes what it says. While that's IN_PROGRESS, the invocation stays owed.
func (s *Service) Tell(ctx context.Context, d delivery.Debt) error {
	c, err := lifecyclehook.Parse(d.Body)
	if err != nil {
		return fmt.Errorf("%w: %w", delivery.ErrGone, err)
	}
	h := hookOf(s.store.View().Services.Get(c.Service), c.Event.ExecutionID)
	if h == nil || h.Status != types.DeploymentLifecycleHookStatusInProgress {
		return nil // its deployment is over, or it has timed out
	}
	answer, err := s.invokeHook(ctx, c)
	_, isLasting := errors.AsType[hookError](err)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !isLasting && !delivery.IsLasting(err):
		return &delivery.Retry{After: min(time.Second<<min(d.Tries, 5), maxHookRetry), Err: err}
	case err != nil:
		return s.noteHook(ctx, c, types.DeploymentLifecycleHookStatusFailed, err.Error())
	case answer.Status != types.DeploymentLifecycleHookStatusInProgress:
		return s.noteHook(ctx, c, answer.Status, "the function returned "+string(answer.Status))
	case answer.Details != nil:
		if err := s.keepDetails(ctx, d.ID, c, answer); err != nil {
			return err
		}
	}
	return &delivery.Retry{After: answer.Delay, Err: errInProgress}
}

// maxHookRetry is the longest that a function waits for another try that Lambda had no room for.
const maxHookRetry = 30 * time.Second

// hookError is why a hook fails whose function was invoked, or may not be: another try would be of no use.
type hookError struct{ error }

// invokeHook invokes a hook's function as the hook's role, and waits for its answer.
func (s *Service) invokeHook(ctx context.Context, c lifecyclehook.Call) (a lifecyclehook.Answer, err error) {
	if !s.opts.Trusts(c.Role, servicePrincipal) {
		return a, hookError{fmt.Errorf("the role %s cannot be assumed by %s", c.Role, servicePrincipal)}
	}
	ctx = call.With(ctx, call.Call{Service: "ecs", Identity: call.Identity{Principal: c.Role, Role: c.Role}})
	out, err := call.Do[lambda.InvokeOutput](ctx, s.opts.Services, &lambda.InvokeInput{FunctionName: &c.Function, Payload: c.Payload()})
	if err != nil {
		return a, err
	}
	if out.FunctionError != nil {
		return a, hookError{fmt.Errorf("the function failed (%s): %s", *out.FunctionError, out.Payload[:min(len(out.Payload), 500)])}
	}
	if a, err = lifecyclehook.Read(out.Payload); err != nil {
		return a, hookError{err}
	}
	return a, nil
}

// noteHook ends a hook of which a function has said what becomes of it. Events of its service say why it failed.
func (s *Service) noteHook(ctx context.Context, c lifecyclehook.Call, status types.DeploymentLifecycleHookStatus, why string) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		id := c.Event.ExecutionID
		old := tx.Services.Get(c.Service)
		if h := hookOf(old, id); h == nil || h.Status != types.DeploymentLifecycleHookStatusInProgress {
			return nil
		}
		row := old.Clone()
		if status == types.DeploymentLifecycleHookStatusFailed {
			row.Event(state.Untold, fmt.Sprintf("(service %s) lifecycle hook %s failed at the stage %s: %s.", *row.ServiceName, c.Function,
				c.Event.LifecycleStage, why), *s.now())
		}
		s.settleHook(tx, row, id, status)
		return nil
	})
}

// keepDetails keeps what a function wants to be told when it's invoked again.
func (s *Service) keepDetails(ctx context.Context, debt string, c lifecyclehook.Call, a lifecyclehook.Answer) error {
	merged, err := lifecyclehook.Merge(c.Event.HookDetails, a.Details)
	if err != nil {
		return s.noteHook(ctx, c, types.DeploymentLifecycleHookStatusFailed, err.Error())
	}
	c.Event.HookDetails = merged
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Deliveries.Get(debt)
		if old == nil {
			return nil
		}
		row := *old
		row.Body = c.Text()
		tx.Deliveries.Put(&row)
		return nil
	})
}
