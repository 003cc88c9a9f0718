package autoscaling

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/state"
)

// warm puts an instance of the group that was in no group into its warm pool.
func (w *world) warm(id string, in types.LifecycleState) {
	w.update(func(tx *state.Tx) {
		i := tx.Instances.Get(id).Clone()
		i.Member = &state.Member{Group: "g", LifecycleState: in}
		tx.Instances.Put(i)
	})
}

// TestWarmPool: a pool is put, changed in what a call says, described apart from the group's instances, and deleted with its own.
func TestWarmPool(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	put := func(in api.PutWarmPoolInput) types.WarmPoolConfiguration {
		in.AutoScalingGroupName = aws.String("g")
		w.must(errOf(w.PutWarmPool(ctx, &in)))
		out, err := w.DescribeWarmPool(ctx, &api.DescribeWarmPoolInput{AutoScalingGroupName: aws.String("g")})
		w.must(err)
		return *out.WarmPoolConfiguration
	}
	if p := put(api.PutWarmPoolInput{}); *p.MinSize != 0 || p.PoolState != types.WarmPoolStateStopped || p.MaxGroupPreparedCapacity != nil {
		t.Errorf("by default: %+v", p)
	}
	if p := put(api.PutWarmPoolInput{MinSize: aws.Int32(1), MaxGroupPreparedCapacity: aws.Int32(4)}); *p.MinSize != 1 || *p.MaxGroupPreparedCapacity != 4 {
		t.Errorf("with sizes: %+v", p)
	}
	if p := put(api.PutWarmPoolInput{MaxGroupPreparedCapacity: aws.Int32(-1)}); *p.MinSize != 1 || p.MaxGroupPreparedCapacity != nil {
		t.Errorf("without the most: %+v", p)
	}
	w.warm(free, types.LifecycleStateWarmedRunning)
	groups, err := w.DescribeAutoScalingGroups(ctx, &api.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"g"}})
	w.must(err)
	g := groups.AutoScalingGroups[0]
	for _, i := range g.Instances {
		if *i.InstanceId == free {
			t.Error("an instance of the pool is among the group's")
		}
	}
	pool, err := w.DescribeWarmPool(ctx, &api.DescribeWarmPoolInput{AutoScalingGroupName: aws.String("g")})
	w.must(err)
	if *g.WarmPoolSize != 1 || len(pool.Instances) != 1 || pool.Instances[0].LifecycleState != types.LifecycleStateWarmedRunning {
		t.Errorf("the pool has %d: %+v", *g.WarmPoolSize, pool.Instances)
	}
	before := *w.store.View().AutoScalingGroups.Get("g").DesiredCapacity
	w.must(errOf(w.TerminateInstanceInAutoScalingGroup(ctx, &api.TerminateInstanceInAutoScalingGroupInput{
		InstanceId: aws.String(free), ShouldDecrementDesiredCapacity: aws.Bool(true),
	})))
	if after := *w.store.View().AutoScalingGroups.Get("g").DesiredCapacity; after != before {
		t.Errorf("one less in the pool makes the capacity %d of %d", after, before)
	}
	w.must(errOf(w.DeleteWarmPool(ctx, &api.DeleteWarmPoolInput{AutoScalingGroupName: aws.String("g"), ForceDelete: aws.Bool(true)})))
	if i := w.store.View().Instances.Get(free); i.Member.LifecycleState != types.LifecycleStateWarmedTerminatingProceed {
		t.Errorf("its instance is %s", i.Member.LifecycleState)
	}
	if p := w.store.View().AutoScalingGroups.Get("g").WarmPoolConfiguration; p.Status != types.WarmPoolStatusPendingDelete {
		t.Errorf("the pool is %+v", p)
	}
}

// TestWarmPoolWithoutInstances: a pool that has none is gone at once.
func TestWarmPoolWithoutInstances(t *testing.T) {
	w := newWorld(t)
	w.must(errOf(w.PutWarmPool(t.Context(), &api.PutWarmPoolInput{AutoScalingGroupName: aws.String("g")})))
	w.must(errOf(w.DeleteWarmPool(t.Context(), &api.DeleteWarmPoolInput{AutoScalingGroupName: aws.String("g")})))
	if p := w.store.View().AutoScalingGroups.Get("g").WarmPoolConfiguration; p != nil {
		t.Errorf("the pool is %+v", p)
	}
}

func TestWarmPoolRefuses(t *testing.T) {
	refuseAll(t, []refusedCall{
		{"put: hibernated", func(w *world, ctx context.Context) error {
			in := &api.PutWarmPoolInput{AutoScalingGroupName: aws.String("g"), PoolState: types.WarmPoolStateHibernated}
			return errOf(w.PutWarmPool(ctx, in))
		}, invalidCode, "don't hibernate"},
		{"put: no group", func(w *world, ctx context.Context) error {
			return errOf(w.PutWarmPool(ctx, &api.PutWarmPoolInput{AutoScalingGroupName: aws.String("nope")}))
		}, invalidCode, "nope"},
		{"describe: no group", func(w *world, ctx context.Context) error {
			return errOf(w.DescribeWarmPool(ctx, &api.DescribeWarmPoolInput{AutoScalingGroupName: aws.String("nope")}))
		}, invalidCode, "nope"},
		{"delete: no pool", func(w *world, ctx context.Context) error {
			return errOf(w.DeleteWarmPool(ctx, &api.DeleteWarmPoolInput{AutoScalingGroupName: aws.String("g")}))
		}, invalidCode, "No warm pool found"},
	})
}
