package autoscaling

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsarn "github.com/aws/aws-sdk-go-v2/aws/arn"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

// The limits of lifecycle hooks, from API_PutLifecycleHook and the user guide's page on hooks.
const (
	maxHooks         = 50
	defaultHeartbeat = 3600
	minHeartbeat     = 30
	maxHeartbeat     = 7200
	maxWait          = 48 * time.Hour // or 100 heartbeat timeouts, whichever is less
	maxMetadata      = 4000
)

var hookName = pattern.New(`^[A-Za-z0-9_/-]+$`, 255)

// mergeHook makes a lifecycle hook from a call, over the old one if there is one.
func (s *Service) mergeHook(in *api.PutLifecycleHookInput, old *types.LifecycleHook) (*types.LifecycleHook, error) {
	h := types.LifecycleHook{DefaultResult: aws.String("ABANDON"), HeartbeatTimeout: aws.Int32(defaultHeartbeat)}
	if old != nil {
		h = *old
	}
	h.AutoScalingGroupName = in.AutoScalingGroupName
	h.LifecycleHookName = in.LifecycleHookName
	h.LifecycleTransition = cmp.Or(in.LifecycleTransition, h.LifecycleTransition)
	h.DefaultResult = cmp.Or(in.DefaultResult, h.DefaultResult)
	h.HeartbeatTimeout = cmp.Or(in.HeartbeatTimeout, h.HeartbeatTimeout)
	h.NotificationMetadata = cmp.Or(in.NotificationMetadata, h.NotificationMetadata)
	h.NotificationTargetARN = cmp.Or(in.NotificationTargetARN, h.NotificationTargetARN)
	h.RoleARN = cmp.Or(in.RoleARN, h.RoleARN)
	if aws.ToString(h.NotificationTargetARN) == "" { // an empty target removes the old one
		h.NotificationTargetARN = nil
		h.RoleARN = nil
	}
	transition, result, heartbeat := aws.ToString(h.LifecycleTransition), *h.DefaultResult, *h.HeartbeatTimeout
	switch {
	case !hookName.MatchString(aws.ToString(h.LifecycleHookName)):
		return nil, invalid("LifecycleHookName %q must have 1 to 255 letters, digits, hyphens, underscores and slashes",
			aws.ToString(h.LifecycleHookName))
	case transition != launching && transition != terminating:
		return nil, invalid("LifecycleTransition must be %s or %s, not %q", launching, terminating, transition)
	case result != "CONTINUE" && result != "ABANDON":
		return nil, invalid("DefaultResult must be CONTINUE or ABANDON, not %q", result)
	case heartbeat < minHeartbeat || heartbeat > maxHeartbeat:
		return nil, invalid("HeartbeatTimeout must be between %d and %d seconds, not %d", minHeartbeat, maxHeartbeat, heartbeat)
	case h.NotificationMetadata != nil && (*h.NotificationMetadata == "" || len(*h.NotificationMetadata) > maxMetadata):
		return nil, invalid("NotificationMetadata must have 1 to %d characters", maxMetadata)
	case h.NotificationTargetARN != nil && !s.isQueue(*h.NotificationTargetARN) && !isTopic(*h.NotificationTargetARN):
		return nil, invalid("NotificationTargetARN must be the ARN of an SQS queue or of an SNS topic, not %q", *h.NotificationTargetARN)
	case h.NotificationTargetARN != nil && aws.ToString(h.RoleARN) == "":
		return nil, invalid("RoleARN must be given with NotificationTargetARN")
	}
	h.GlobalTimeout = new(min(int32(maxWait.Seconds()), 100*heartbeat))
	return &h, nil
}

func (s *Service) isQueue(arn string) bool {
	_, ours := s.opts.ResourceOf("sqs", "", arn)
	return ours
}

func isTopic(arn string) bool {
	a, err := awsarn.Parse(arn)
	return err == nil && a.Service == "sns" && a.Resource != "" && !strings.Contains(a.Resource, ":")
}

// testTarget sends a hook's notification target a test message, as every call that names a target does:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
func (s *Service) testTarget(ctx context.Context, g *state.AutoScalingGroup, h *types.LifecycleHook) error {
	if h.NotificationTargetARN == nil {
		return nil
	}
	body, err := s.testNotice(g)
	if err != nil {
		return err
	}
	if isTopic(*h.NotificationTargetARN) {
		err = s.publishTest(ctx, g, *h.NotificationTargetARN, body)
	} else {
		_, err = s.opts.Queues.SendMessage(ctx, &sqs.SendMessageInput{
			QueueUrl:    new(s.opts.QueueURL(*h.NotificationTargetARN)),
			MessageBody: &body,
		})
	}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return invalid("Unable to publish test message to notification target %s using IAM role %s. Please check your target and "+
			"role configuration and try to put lifecycle hook again.", *h.NotificationTargetARN, *h.RoleARN)
	}
	return err
}

// putHook adds a hook to a group, or changes the one of that name.
func (s *Service) putHook(g *state.AutoScalingGroup, in *api.PutLifecycleHookInput) (*types.LifecycleHook, error) {
	old := g.Hook(aws.ToString(in.LifecycleHookName))
	h, err := s.mergeHook(in, old)
	switch {
	case err != nil:
		return nil, err
	case old != nil:
		*old = *h
	case len(g.Hooks) >= maxHooks:
		return nil, &types.LimitExceededFault{Message: new("The group already has the maximum number of lifecycle hooks")}
	default:
		g.Hooks = append(g.Hooks, *h)
	}
	return h, nil
}

const (
	launching   = "autoscaling:EC2_INSTANCE_LAUNCHING"
	terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
)

// PutLifecycleHook creates or changes a lifecycle hook.
func (s *Service) PutLifecycleHook(ctx context.Context, in *api.PutLifecycleHookInput) (*api.PutLifecycleHookOutput, error) {
	if aws.ToString(in.NotificationTargetARN) != "" {
		g, err := findGroup(s.store.View(), in.AutoScalingGroupName)
		if err != nil {
			return nil, err
		}
		h, err := s.putHook(g.Clone(), in)
		if err != nil {
			return nil, err
		}
		if err := s.testTarget(ctx, g, h); err != nil {
			return nil, err
		}
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		_, err := s.putHook(g, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.PutLifecycleHookOutput{}, nil
}

func noHook(group, hook string) error {
	return invalid("No Lifecycle Hook found with AutoScalingGroupName %s and LifecycleHookName %s.", group, hook)
}

// DeleteLifecycleHook deletes a lifecycle hook. Instances that wait for it go on.
func (s *Service) DeleteLifecycleHook(ctx context.Context, in *api.DeleteLifecycleHookInput) (*api.DeleteLifecycleHookOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		name := aws.ToString(in.LifecycleHookName)
		if g.Hook(name) == nil {
			return noHook(g.Name(), name)
		}
		g.Hooks = slices.DeleteFunc(g.Hooks, func(h types.LifecycleHook) bool { return *h.LifecycleHookName == name })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteLifecycleHookOutput{}, nil
}

// DescribeLifecycleHooks lists a group's lifecycle hooks.
func (s *Service) DescribeLifecycleHooks(
	_ context.Context, in *api.DescribeLifecycleHooksInput,
) (*api.DescribeLifecycleHooksOutput, error) {
	g, err := findGroup(s.store.View(), in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeLifecycleHooksOutput{LifecycleHooks: []types.LifecycleHook{}}
	for _, h := range g.Hooks {
		if len(in.LifecycleHookNames) == 0 || slices.Contains(in.LifecycleHookNames, *h.LifecycleHookName) {
			out.LifecycleHooks = append(out.LifecycleHooks, h)
		}
	}
	return out, nil
}

// changeAction changes the lifecycle action that an instance waits for. The id or the token finds it.
func (s *Service) changeAction(
	ctx context.Context, groupName, hook, id, token *string, change func(*state.AutoScalingGroup, *state.LifecycleAction),
) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		g, err := findGroup(tx.View, groupName)
		if err != nil {
			return err
		}
		if g.Hook(aws.ToString(hook)) == nil {
			return noHook(g.Name(), aws.ToString(hook))
		}
		for i := range tx.Instances.By(state.InstancesByGroup, g.Name()) {
			w := i.Member.Waits
			if w == nil || w.Hook != *hook || id != nil && *i.InstanceId != *id || token != nil && w.Token != *token ||
				id == nil && token == nil {
				continue
			}
			row := i.Clone()
			change(g, row.Member.Waits)
			tx.Instances.Put(row)
			return nil
		}
		if id == nil && token != nil {
			return invalid("No active Lifecycle Action found with token %s", *token)
		}
		return invalid("No active Lifecycle Action found with instance ID %s", aws.ToString(id))
	})
}

// CompleteLifecycleAction ends an instance's wait: it goes on, or is abandoned.
func (s *Service) CompleteLifecycleAction(
	ctx context.Context, in *api.CompleteLifecycleActionInput,
) (*api.CompleteLifecycleActionOutput, error) {
	result := aws.ToString(in.LifecycleActionResult)
	if result != "CONTINUE" && result != "ABANDON" {
		return nil, invalid("LifecycleActionResult must be CONTINUE or ABANDON, not %q", result)
	}
	complete := func(_ *state.AutoScalingGroup, w *state.LifecycleAction) {
		w.Proceed = true
		w.Abandon = result == "ABANDON"
	}
	err := s.changeAction(ctx, in.AutoScalingGroupName, in.LifecycleHookName, in.InstanceId, in.LifecycleActionToken, complete)
	if err != nil {
		return nil, err
	}
	return &api.CompleteLifecycleActionOutput{}, nil
}

// RecordLifecycleActionHeartbeat gives a lifecycle action more time. It never shortens one that has more already, such as
// that of ECS's draining hook.
func (s *Service) RecordLifecycleActionHeartbeat(
	ctx context.Context, in *api.RecordLifecycleActionHeartbeatInput,
) (*api.RecordLifecycleActionHeartbeatOutput, error) {
	prolong := func(g *state.AutoScalingGroup, w *state.LifecycleAction) {
		h := g.Hook(w.Hook)
		until := s.now().Add(time.Duration(*h.HeartbeatTimeout) * time.Second)
		last := w.Since.Add(time.Duration(*h.GlobalTimeout) * time.Second)
		if until.After(last) {
			until = last
		}
		if until.After(w.Until) {
			w.Until = until
		}
	}
	err := s.changeAction(ctx, in.AutoScalingGroupName, in.LifecycleHookName, in.InstanceId, in.LifecycleActionToken, prolong)
	if err != nil {
		return nil, err
	}
	return &api.RecordLifecycleActionHeartbeatOutput{}, nil
}
