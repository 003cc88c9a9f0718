package resources

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// warmPool has the properties of AWS::AutoScaling::WarmPool. Its physical ID is the group's name.
type warmPool struct {
	AutoScalingGroupName     *string `cfn:"required,create"`
	InstanceReusePolicy      *types.InstanceReusePolicy
	MaxGroupPreparedCapacity *int32
	MinSize                  *int32
	PoolState                types.WarmPoolState
}

var _ = add(&kind[*warmPool]{
	name:       "AWS::AutoScaling::WarmPool",
	live:       liveWarmPool,
	identifier: []string{"AutoScalingGroupName"},
	id:         func(_ Step, p *warmPool) string { return aws.ToString(p.AutoScalingGroupName) },
	create: func(ctx context.Context, s Step, p *warmPool) (string, error) {
		return *p.AutoScalingGroupName, putWarmPool(ctx, s, "", nil, p)
	},
	update: putWarmPool,
	delete: func(ctx context.Context, s Step, group string, _ *warmPool) error {
		is, err := describeWarmPool(ctx, s, group)
		if err != nil {
			return err
		}
		if is.Status != types.WarmPoolStatusPendingDelete {
			in := &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: &group, ForceDelete: aws.Bool(true)}
			if err := did[autoscaling.DeleteWarmPoolOutput](ctx, s, in); err != nil {
				return err
			}
		}
		return ErrPending // until its instances are gone
	},
	read: func(ctx context.Context, s Step, group string, _ *warmPool) (Made, error) {
		_, err := describeWarmPool(ctx, s, group)
		return Made{}, err
	},
})

// putWarmPool says all that a pool has: what isn't given would stay as it was.
func putWarmPool(ctx context.Context, s Step, _ string, _, p *warmPool) error {
	return did[autoscaling.PutWarmPoolOutput](ctx, s, &autoscaling.PutWarmPoolInput{
		AutoScalingGroupName:     p.AutoScalingGroupName,
		InstanceReusePolicy:      cmp.Or(p.InstanceReusePolicy, &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(false)}),
		MaxGroupPreparedCapacity: cmp.Or(p.MaxGroupPreparedCapacity, aws.Int32(-1)),
		MinSize:                  cmp.Or(p.MinSize, aws.Int32(0)),
		PoolState:                cmp.Or(p.PoolState, types.WarmPoolStateStopped),
	})
}

func describeWarmPool(ctx context.Context, s Step, group string) (*types.WarmPoolConfiguration, error) {
	if _, err := describeGroup(ctx, s, group); err != nil {
		return nil, err
	}
	out, err := call.Do[autoscaling.DescribeWarmPoolOutput](ctx, s.Services, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: &group})
	if err == nil && out.WarmPoolConfiguration == nil {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	return out.WarmPoolConfiguration, nil
}

func liveWarmPool(ctx context.Context, s Step, group string, _ *warmPool) (*warmPool, error) {
	is, err := describeWarmPool(ctx, s, group)
	if err != nil {
		return nil, err
	}
	return &warmPool{
		AutoScalingGroupName:     &group,
		InstanceReusePolicy:      is.InstanceReusePolicy,
		MaxGroupPreparedCapacity: is.MaxGroupPreparedCapacity,
		MinSize:                  is.MinSize,
		PoolState:                is.PoolState,
	}, nil
}
