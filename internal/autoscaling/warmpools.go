package autoscaling

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// PutWarmPool gives a group a warm pool, or changes the one that it has. What isn't given stays; a MaxGroupPreparedCapacity of -1 goes.
func (s *Service) PutWarmPool(ctx context.Context, in *api.PutWarmPoolInput) (*api.PutWarmPoolOutput, error) {
	if in.PoolState == types.WarmPoolStateHibernated {
		return nil, invalid("PoolState must be Stopped or Running: Pintle's machines don't hibernate.")
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		pool := types.WarmPoolConfiguration{}
		if old := g.WarmPoolConfiguration; old != nil {
			pool = *old
		}
		if pool.Status == types.WarmPoolStatusPendingDelete {
			return invalid("The warm pool of AutoScalingGroup %s is pending delete", g.Name())
		}
		pool.MinSize = cmp.Or(in.MinSize, pool.MinSize, aws.Int32(0))
		pool.PoolState = cmp.Or(in.PoolState, pool.PoolState, types.WarmPoolStateStopped)
		pool.InstanceReusePolicy = cmp.Or(in.InstanceReusePolicy, pool.InstanceReusePolicy)
		pool.MaxGroupPreparedCapacity = cmp.Or(in.MaxGroupPreparedCapacity, pool.MaxGroupPreparedCapacity)
		if most := pool.MaxGroupPreparedCapacity; most != nil && *most < 0 {
			pool.MaxGroupPreparedCapacity = nil
		}
		g.WarmPoolConfiguration = &pool
		g.Failures, g.NotBefore = 0, nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.PutWarmPoolOutput{}, nil
}

// DescribeWarmPool describes a group's warm pool and the instances in it.
func (s *Service) DescribeWarmPool(_ context.Context, in *api.DescribeWarmPoolInput) (*api.DescribeWarmPoolOutput, error) {
	v := s.store.View()
	g, err := findGroup(v, in.AutoScalingGroupName)
	if err != nil {
		return nil, err
	}
	var rows []*state.Instance
	for i := range v.Instances.By(state.InstancesByGroup, g.Name()) {
		if i.Member.IsWarm() {
			rows = append(rows, i)
		}
	}
	rows, next, err := account.Sorted(listing("DescribeWarmPool "+g.Name(), pageDefault, pageDefault), rows, in.MaxRecords, in.NextToken,
		func(i *state.Instance) string { return *i.InstanceId })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeWarmPoolOutput{Instances: []types.Instance{}, WarmPoolConfiguration: g.WarmPoolConfiguration, NextToken: next}
	for _, row := range rows {
		out.Instances = append(out.Instances, instanceOf(row))
	}
	return out, nil
}

// DeleteWarmPool terminates the instances of a group's warm pool. The pool is gone with the last one. With ForceDelete they don't wait for
// lifecycle hooks.
func (s *Service) DeleteWarmPool(ctx context.Context, in *api.DeleteWarmPoolInput) (*api.DeleteWarmPoolOutput, error) {
	err := s.change(ctx, in.AutoScalingGroupName, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		if g.WarmPoolConfiguration == nil {
			return invalid("No warm pool found for AutoScalingGroup %s", g.Name())
		}
		warm := slices.DeleteFunc(slices.Collect(tx.Instances.By(state.InstancesByGroup, g.Name())), func(i *state.Instance) bool {
			return !i.Member.IsWarm()
		})
		if len(warm) == 0 {
			g.WarmPoolConfiguration = nil
			return nil
		}
		pool := *g.WarmPoolConfiguration
		pool.Status = types.WarmPoolStatusPendingDelete
		g.WarmPoolConfiguration = &pool
		if aws.ToBool(in.ForceDelete) {
			forceOut(tx, g, warm, s.now())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteWarmPoolOutput{}, nil
}

// forceOut takes instances out of the warm pool, past the lifecycle hooks.
func forceOut(tx *state.Tx, g *state.AutoScalingGroup, warm []*state.Instance, now time.Time) {
	for _, i := range warm {
		if !i.Member.IsLeaving() {
			tx.Leave(g, i, "At "+state.Stamp(now)+" the warm pool was force deleted in response to a user request.", now)
		}
		row := tx.Instances.Get(*i.InstanceId).Clone()
		row.Member.LifecycleState = types.LifecycleStateWarmedTerminatingProceed
		row.Member.Waits = nil
		tx.Instances.Put(row)
	}
}
