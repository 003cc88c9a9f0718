package keeper

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/state"
)

// calm steps until instances have also been launched into the pool, stopped and started again.
func calm(t testing.TB, store *state.Store, l *Loop) {
	t.Helper()
	settle(t, store, l)
	settle(t, store, l)
}

// pool gives the group a warm pool.
func pool(t testing.TB, store *state.Store, config types.WarmPoolConfiguration) {
	t.Helper()
	changeGroup(t, store, func(g *state.AutoScalingGroup) { g.WarmPoolConfiguration = &config })
}

func desire(t testing.TB, store *state.Store, n int32) {
	t.Helper()
	changeGroup(t, store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = &n })
}

func expect(t testing.TB, store *state.Store, what, all string) {
	t.Helper()
	if got := strings.Join(states(store), " "); got != all {
		t.Errorf("%s: %s, want %s", what, got, all)
	}
}

// TestWarmPool: instances are launched ahead and stopped, taken into service before new ones are launched, and replaced in the pool.
func TestWarmPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		desire(t, store, 1)
		pool(t, store, types.WarmPoolConfiguration{PoolState: types.WarmPoolStateStopped, MaxGroupPreparedCapacity: aws.Int32(3)})
		mustStep(t, l)
		expect(t, store, "at first", "Pending Warmed:Pending Warmed:Pending")
		calm(t, store, l)
		expect(t, store, "warmed", "InService Warmed:Stopped Warmed:Stopped")
		if v := store.View(); underWay(v, v.AutoScalingGroups.Get("g")) {
			t.Error("what waits in the pool keeps simple scaling from acting")
		}
		before := map[string]bool{}
		for i := range store.View().Instances.All() {
			before[*i.InstanceId] = true
			if i.Member.LifecycleState == types.LifecycleStateWarmedStopped && i.Name() != ec2types.InstanceStateNameStopped {
				t.Errorf("a stopped instance is %s", i.Name())
			}
		}
		desire(t, store, 3)
		mustStep(t, l)
		expect(t, store, "taken", "InService Pending Pending")
		calm(t, store, l)
		expect(t, store, "in service", "InService InService InService")
		for i := range store.View().Instances.All() {
			if !before[*i.InstanceId] {
				t.Errorf("%s was launched anew", *i.InstanceId)
			}
		}
		desire(t, store, 4)
		calm(t, store, l)
		expect(t, store, "without one in the pool", "InService InService InService InService")
		desire(t, store, 1)
		calm(t, store, l)
		expect(t, store, "scaled in", "InService Warmed:Stopped Warmed:Stopped")
		changeGroup(t, store, func(g *state.AutoScalingGroup) {
			g.WarmPoolConfiguration = &types.WarmPoolConfiguration{Status: types.WarmPoolStatusPendingDelete}
		})
		calm(t, store, l)
		expect(t, store, "without a pool", "InService")
		if g := store.View().AutoScalingGroups.Get("g"); g.WarmPoolConfiguration != nil {
			t.Error("the pool is still there")
		}
	})
}

// TestReuse: with a policy that says so, what scales in goes back into the pool, as far as that has room.
func TestReuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		desire(t, store, 3)
		calm(t, store, l)
		reuse := &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(true)}
		pool(t, store, types.WarmPoolConfiguration{
			PoolState: types.WarmPoolStateRunning, MaxGroupPreparedCapacity: aws.Int32(3), InstanceReusePolicy: reuse,
		})
		var ids []string
		for i := range store.View().Instances.All() {
			ids = append(ids, *i.InstanceId)
		}
		desire(t, store, 1)
		mustStep(t, l)
		calm(t, store, l)
		expect(t, store, "returned", "InService Warmed:Running Warmed:Running")
		desire(t, store, 2)
		calm(t, store, l)
		expect(t, store, "taken again", "InService InService Warmed:Running")
		for i := range store.View().Instances.All() {
			if !slices.Contains(ids, *i.InstanceId) {
				t.Errorf("%s is new", *i.InstanceId)
			}
		}
	})
}

// TestWarmHooks: an instance goes through the launch hooks on its way into the pool, and again on its way into service.
func TestWarmHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		changeGroup(t, store, func(g *state.AutoScalingGroup) {
			g.Hooks = []types.LifecycleHook{{
				AutoScalingGroupName: aws.String("g"),
				LifecycleHookName:    aws.String("h"),
				LifecycleTransition:  aws.String(launching),
				DefaultResult:        aws.String("ABANDON"),
				HeartbeatTimeout:     aws.Int32(60),
				GlobalTimeout:        aws.Int32(600),
			}}
		})
		proceed := func() {
			put(t, store, func(tx *state.Tx) {
				for _, i := range slices.Collect(tx.Instances.All()) {
					if i.Member != nil && i.Member.Waits != nil {
						row := i.Clone()
						row.Member.Waits.Proceed = true
						tx.Instances.Put(row)
					}
				}
			})
			calm(t, store, l)
		}
		pool(t, store, types.WarmPoolConfiguration{PoolState: types.WarmPoolStateStopped, MinSize: aws.Int32(1), MaxGroupPreparedCapacity: aws.Int32(0)})
		calm(t, store, l)
		expect(t, store, "on the way into the pool", "Warmed:Pending:Wait")
		proceed()
		expect(t, store, "in the pool", "Warmed:Stopped")
		pool(t, store, types.WarmPoolConfiguration{PoolState: types.WarmPoolStateStopped, MaxGroupPreparedCapacity: aws.Int32(1)})
		desire(t, store, 1)
		calm(t, store, l)
		expect(t, store, "on the way into service", "Pending:Wait")
		for i := range store.View().Instances.By(state.InstancesByGroup, "g") {
			if from, to := way(i, launching); from != "WarmPool" || to != "AutoScalingGroup" {
				t.Errorf("it comes from %s into %s", from, to)
			}
		}
		proceed()
		expect(t, store, "in service", "InService")
	})
}

// TestWarmTakesNoTasks: a container instance of a running pool is DRAINING until its machine comes into service.
func TestWarmTakesNoTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		pool(t, store, types.WarmPoolConfiguration{PoolState: types.WarmPoolStateRunning, MinSize: aws.Int32(1), MaxGroupPreparedCapacity: aws.Int32(1)})
		mustStep(t, l)
		status := func() (status string) {
			for c := range store.View().ContainerInstances.All() {
				status = *c.Status
			}
			return status
		}
		put(t, store, func(tx *state.Tx) {
			for i := range tx.Instances.All() {
				tx.ContainerInstances.Put(&state.ContainerInstance{ContainerInstance: ecstypes.ContainerInstance{
					ContainerInstanceArn: aws.String("arn:c"), Ec2InstanceId: i.InstanceId, Status: aws.String("ACTIVE"), AgentConnected: true,
				}})
			}
		})
		calm(t, store, l)
		if expect(t, store, "in the pool", "Warmed:Running"); status() != "DRAINING" {
			t.Errorf("in the pool it is %s", status())
		}
		pool(t, store, types.WarmPoolConfiguration{PoolState: types.WarmPoolStateRunning, MaxGroupPreparedCapacity: aws.Int32(1)})
		desire(t, store, 1)
		calm(t, store, l)
		if expect(t, store, "in service", "InService"); status() != "ACTIVE" {
			t.Errorf("in service it is %s", status())
		}
	})
}

// TestWarmFails: an instance of the pool that somebody ends is replaced, and one that never starts delays the next.
func TestWarmFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		pool(t, store, types.WarmPoolConfiguration{PoolState: types.WarmPoolStateStopped, MinSize: aws.Int32(1), MaxGroupPreparedCapacity: aws.Int32(1)})
		calm(t, store, l)
		var was string
		put(t, store, func(tx *state.Tx) {
			for _, i := range slices.Collect(tx.Instances.All()) {
				was = *i.InstanceId
				tx.Instances.Put(i.Terminating("Client", "by hand"))
			}
		})
		calm(t, store, l)
		expect(t, store, "replaced", "Warmed:Stopped")
		for i := range store.View().Instances.By(state.InstancesByGroup, "g") {
			if *i.InstanceId == was {
				t.Error("it is still there")
			}
		}
	})
}

// TestWarmPoolsSettle: whatever changes, the group and its pool come to have what they're to have, and a deleted group goes with its pool.
func TestWarmPoolsSettle(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store, l := newWorld(t, t.TempDir())
		for range rapid.IntRange(1, 5).Draw(r, "changes") {
			n := rapid.Int32Range(0, 5).Draw(r, "desired")
			config := types.WarmPoolConfiguration{
				MinSize:             aws.Int32(rapid.Int32Range(0, 2).Draw(r, "least")),
				PoolState:           rapid.SampledFrom([]types.WarmPoolState{"Stopped", "Running"}).Draw(r, "state"),
				InstanceReusePolicy: &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(rapid.Bool().Draw(r, "reuse"))},
			}
			desire(t, store, n)
			pool(t, store, config)
			for range rapid.IntRange(0, 4).Draw(r, "steps") {
				mustStep(t, l)
				if rapid.Bool().Draw(r, "machines") {
					runMachines(t, store)
				}
			}
		}
		calm(t, store, l)
		calm(t, store, l)
		g := store.View().AutoScalingGroups.Get("g")
		in, ready := 0, 0
		for i := range store.View().Instances.By(state.InstancesByGroup, "g") {
			switch {
			case i.Member.LifecycleState == types.LifecycleStateInService:
				in++
			case i.Member.IsReady():
				ready++
			default:
				r.Fatalf("there is one %s", i.Member.LifecycleState)
			}
		}
		if in != int(*g.DesiredCapacity) || ready != g.WarmPoolTarget() {
			r.Fatalf("%d in service of %d, %d ready of %d", in, *g.DesiredCapacity, ready, g.WarmPoolTarget())
		}
		changeGroup(t, store, func(g *state.AutoScalingGroup) { g.Deleting, g.DesiredCapacity = true, aws.Int32(0) })
		calm(t, store, l)
		if store.View().AutoScalingGroups.Get("g") != nil {
			r.Fatalf("the group is still there with %v", states(store))
		}
	})
}
