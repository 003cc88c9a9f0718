package resources

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/pintle/pintle/internal/wire/call"
)

// lifecycleHook has the properties of AWS::AutoScaling::LifecycleHook. Its physical ID is the name.
type lifecycleHook struct {
	AutoScalingGroupName  *string `cfn:"required,create"`
	LifecycleHookName     *string `cfn:"create"`
	LifecycleTransition   *string `cfn:"required"`
	DefaultResult         *string
	HeartbeatTimeout      *int32
	NotificationMetadata  *string
	NotificationTargetARN *string
	RoleARN               *string
}

var _ = add(&kind[*lifecycleHook]{
	name:       "AWS::AutoScaling::LifecycleHook",
	live:       liveHook,
	identifier: []string{"AutoScalingGroupName", "LifecycleHookName"},
	physical:   "LifecycleHookName",
	id:         func(s Step, h *lifecycleHook) string { return s.named(h.LifecycleHookName, 255) },
	create: func(ctx context.Context, s Step, h *lifecycleHook) (string, error) {
		name := s.named(h.LifecycleHookName, 255)
		return name, putHook(ctx, s, name, h)
	},
	update: func(ctx context.Context, s Step, name string, before, after *lifecycleHook) error {
		hook := *after
		hook.DefaultResult = cmp.Or(hook.DefaultResult, aws.String("ABANDON"))
		hook.HeartbeatTimeout = cmp.Or(hook.HeartbeatTimeout, aws.Int32(3600))
		if before.NotificationTargetARN != nil {
			hook.NotificationTargetARN = cmp.Or(hook.NotificationTargetARN, aws.String("")) // takes the old one away
		}
		return putHook(ctx, s, name, &hook)
	},
	delete: deleteHook,
	read: func(ctx context.Context, s Step, name string, h *lifecycleHook) (Made, error) {
		return Made{}, findHook(ctx, s, name, h)
	},
})

func putHook(ctx context.Context, s Step, name string, h *lifecycleHook) error {
	return did[autoscaling.PutLifecycleHookOutput](ctx, s, &autoscaling.PutLifecycleHookInput{
		AutoScalingGroupName:  h.AutoScalingGroupName,
		LifecycleHookName:     &name,
		LifecycleTransition:   h.LifecycleTransition,
		DefaultResult:         h.DefaultResult,
		HeartbeatTimeout:      h.HeartbeatTimeout,
		NotificationMetadata:  h.NotificationMetadata,
		NotificationTargetARN: h.NotificationTargetARN,
		RoleARN:               h.RoleARN,
	})
}

// findHook returns errMissing if a hook, or its group, isn't there.
func findHook(ctx context.Context, s Step, name string, h *lifecycleHook) error {
	if _, err := describeGroup(ctx, s, *h.AutoScalingGroupName); err != nil {
		return err
	}
	out, err := call.Do[autoscaling.DescribeLifecycleHooksOutput](ctx, s.Services, &autoscaling.DescribeLifecycleHooksInput{
		AutoScalingGroupName: h.AutoScalingGroupName,
		LifecycleHookNames:   []string{name},
	})
	if err == nil && len(out.LifecycleHooks) == 0 {
		err = errMissing
	}
	return err
}

func deleteHook(ctx context.Context, s Step, name string, h *lifecycleHook) error {
	if err := findHook(ctx, s, name, h); err != nil {
		return err
	}
	return did[autoscaling.DeleteLifecycleHookOutput](ctx, s, &autoscaling.DeleteLifecycleHookInput{
		AutoScalingGroupName: h.AutoScalingGroupName,
		LifecycleHookName:    &name,
	})
}

func liveHook(ctx context.Context, s Step, name string, h *lifecycleHook) (*lifecycleHook, error) {
	if _, err := describeGroup(ctx, s, *h.AutoScalingGroupName); err != nil {
		return nil, err
	}
	out, err := call.Do[autoscaling.DescribeLifecycleHooksOutput](ctx, s.Services, &autoscaling.DescribeLifecycleHooksInput{
		AutoScalingGroupName: h.AutoScalingGroupName,
		LifecycleHookNames:   []string{name},
	})
	if err == nil && len(out.LifecycleHooks) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	is := out.LifecycleHooks[0]
	return &lifecycleHook{
		AutoScalingGroupName:  is.AutoScalingGroupName,
		LifecycleHookName:     is.LifecycleHookName,
		LifecycleTransition:   is.LifecycleTransition,
		DefaultResult:         is.DefaultResult,
		HeartbeatTimeout:      is.HeartbeatTimeout,
		NotificationMetadata:  is.NotificationMetadata,
		NotificationTargetARN: is.NotificationTargetARN,
		RoleARN:               is.RoleARN,
	}, nil
}
