package keeper

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/state"
)

// balancedWorld is a store with the group g, attached to the target group web, and a loop over it.
type balancedWorld struct {
	testing.TB
	store *state.Store
	loop  *Loop
}

// inBalancedWorld runs a test of the group behind a load balancer.
func inBalancedWorld(t *testing.T, test func(w *balancedWorld)) {
	synctest.Test(t, func(t *testing.T) {
		store, l := newWorld(t, t.TempDir())
		defer store.Close() //nolint:errcheck // the test is over
		put(t, store, func(tx *state.Tx) {
			for _, name := range []string{"web", "api"} {
				tx.TargetGroups.Put(&state.TargetGroup{TargetGroup: elb.TargetGroup{
					TargetGroupArn: &name, TargetType: "instance", Port: aws.Int32(8080), Protocol: "HTTP",
				}})
			}
		})
		changeGroup(t, store, func(g *state.AutoScalingGroup) {
			g.DesiredCapacity = aws.Int32(1)
			g.TargetGroupARNs = []string{"web"}
			g.HealthCheckType = aws.String("ELB")
			g.HealthCheckGracePeriod = aws.Int32(60)
		})
		test(&balancedWorld{t, store, l})
	})
}

// expect lets things settle, and compares the states of instances and, with a colon before them, of targets.
func (w *balancedWorld) expect(when string, want ...string) {
	w.Helper()
	settle(w, w.store, w.loop)
	var targets []string
	for t := range w.store.View().Targets.All() {
		switch {
		case t.Draining != nil:
			targets = append(targets, ":"+t.Group+" drains")
		case t.Port != 8080 || t.AutoScalingGroup != "g":
			w.Errorf("%+v", t)
		default:
			targets = append(targets, ":"+t.Group)
		}
	}
	slices.Sort(targets)
	got := append(states(w.store), targets...)
	if !slices.Equal(got, want) {
		w.Errorf("%s: %q, want %q", when, got, want)
	}
}

// drained is what the loop of the load balancers does once nothing is under way.
func (w *balancedWorld) drained() {
	put(w, w.store, func(tx *state.Tx) {
		for _, t := range slices.Collect(tx.Targets.All()) {
			if t.Draining != nil {
				tx.DeleteTarget(t)
			}
		}
	})
}

func (w *balancedWorld) checked(is elb.TargetHealthStateEnum) {
	put(w, w.store, func(tx *state.Tx) {
		for _, t := range slices.Collect(tx.Targets.All()) {
			tx.Targets.Put(t.Checked(elb.TargetHealth{State: is}, time.Now()))
		}
	})
}

func (w *balancedWorld) desire(n int32) {
	changeGroup(w, w.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = &n })
}

// one returns an instance of the group.
func (w *balancedWorld) one() *state.Instance {
	for i := range w.store.View().Instances.By(state.InstancesByGroup, "g") {
		return i
	}
	w.Fatal("the group has no instance")
	return nil
}

// TestBehindLoadBalancer: an instance is registered after its launch hook, and drains before its terminating one.
func TestBehindLoadBalancer(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		changeGroup(w, w.store, func(g *state.AutoScalingGroup) {
			for _, transition := range []string{launching, terminating} {
				g.Hooks = append(g.Hooks, types.LifecycleHook{
					LifecycleHookName: &transition, LifecycleTransition: &transition, DefaultResult: aws.String("CONTINUE"), HeartbeatTimeout: aws.Int32(60),
				})
			}
		})
		w.expect("at the launch hook", "Pending:Wait")
		time.Sleep(time.Minute)
		w.expect("after it", "InService", ":web")
		w.desire(0)
		w.expect("leaving", "Terminating", ":web drains")
		activity := w.store.View().GroupActivities.Get(w.one().Member.Activity)
		if activity.StatusCode != types.ScalingActivityStatusCodeWaitingForELBConnectionDraining {
			t.Error(activity.StatusCode)
		}
		w.drained()
		w.expect("at the terminating hook", "Terminating:Wait")
		time.Sleep(time.Minute)
		w.expect("after it")
	})
}

// TestDrainsNoLongerThanTheDelay: an instance goes when its target group's delay is over, whoever still has connections.
func TestDrainsNoLongerThanTheDelay(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		w.expect("in service", "InService", ":web")
		w.desire(0)
		w.expect("leaving", "Terminating", ":web drains")
		time.Sleep(299 * time.Second)
		w.expect("still", "Terminating", ":web drains")
		time.Sleep(time.Second)
		w.expect("it's gone", ":web drains") // until the load balancers' loop looks
	})
}

// TestTargetGroupsChange: instances in service join a target group that is attached, and leave one that is detached.
func TestTargetGroupsChange(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		w.expect("in service", "InService", ":web")
		attach := func(arns ...string) {
			changeGroup(w, w.store, func(g *state.AutoScalingGroup) { g.TargetGroupARNs = arns })
		}
		attach("web", "api")
		w.expect("one more", "InService", ":api", ":web")
		attach("api")
		w.expect("one less", "InService", ":api", ":web drains")
		if has := w.one().Member.TargetGroups; !slices.Equal(has, []string{"web", "api"}) {
			t.Error(has)
		}
		w.drained()
		w.expect("it has drained", "InService", ":api")
		if has := w.one().Member.TargetGroups; !slices.Equal(has, []string{"api"}) {
			t.Error(has)
		}
		put(w, w.store, func(tx *state.Tx) { // by hand
			tx.Targets.Delete(state.TargetKey("api", *w.one().InstanceId, 8080))
		})
		w.expect("what a user deregisters stays so", "InService")
		put(w, w.store, func(tx *state.Tx) { tx.TargetGroups.Delete("api") })
		w.desire(2)
		w.expect("the target group is gone", "InService", "InService")
	})
}

// TestNotAddedToLoadBalancer: what comes into service while AddToLoadBalancer is suspended isn't registered later on either.
func TestNotAddedToLoadBalancer(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		changeGroup(w, w.store, func(g *state.AutoScalingGroup) {
			g.SuspendedProcesses = []types.SuspendedProcess{{ProcessName: aws.String("AddToLoadBalancer")}}
		})
		w.expect("suspended", "InService")
		changeGroup(w, w.store, func(g *state.AutoScalingGroup) { g.SuspendedProcesses = nil })
		w.desire(2)
		w.expect("resumed", "InService", "InService", ":web")
	})
}

// TestUnhealthyTargetsAreReplaced: after the grace period, if the group's checks are the load balancer's.
func TestUnhealthyTargetsAreReplaced(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		w.expect("in service", "InService", ":web")
		first := *w.one().InstanceId
		w.checked("unhealthy")
		w.expect("in its grace period", "InService", ":web")
		time.Sleep(time.Minute)
		w.expect("after it", "InService", "Terminating", ":web", ":web drains")
		why := ""
		for a := range w.store.View().GroupActivities.All() {
			if *a.Description == "Terminating EC2 instance: "+first {
				why = *a.Cause
			}
		}
		if _, after, _ := cutStamp(why); after != "an instance was taken out of service in response to an ELB system health check failure." {
			t.Errorf("%q", why)
		}
		w.drained()
		w.expect("it's replaced", "InService", ":web")
		changeGroup(w, w.store, func(g *state.AutoScalingGroup) { g.HealthCheckType = aws.String("EC2") })
		w.checked("unhealthy")
		time.Sleep(time.Hour)
		w.expect("EC2's checks alone", "InService", ":web")
	})
}

// cutStamp cuts the time that a cause begins with.
func cutStamp(cause string) (stamp, rest string, ok bool) {
	const n = len("At 2006-01-02T15:04:05Z ")
	if len(cause) < n {
		return cause, "", false
	}
	return cause[:n], cause[n:], true
}

// TestStandbyDrains: instances that leave service without ending drain first, and are registered when they come back.
func TestStandbyDrains(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		w.expect("in service", "InService", ":web")
		move(w, w.store, types.LifecycleStateEnteringStandby, 0)
		w.expect("to standby", "EnteringStandby", ":web drains")
		w.drained()
		w.expect("on standby", "Standby")
		move(w, w.store, types.LifecycleStatePending, 1)
		w.expect("back", "InService", ":web")
		id := move(w, w.store, types.LifecycleStateDetaching, 0)
		w.expect("to be detached", "Detaching", ":web drains")
		w.drained()
		w.expect("detached")
		if i := w.store.View().Instances.Get(id); i.IsOver() || i.Member != nil {
			t.Errorf("%+v", i)
		}
	})
}

// TestEndingsDoNotWait: an instance that has ended, or whose group is deleted, leaves its target groups at once.
func TestEndingsDoNotWait(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		w.expect("in service", "InService", ":web")
		put(w, w.store, func(tx *state.Tx) { tx.Instances.Put(w.one().In("terminated")) })
		w.expect("it ended", "InService", ":web", ":web drains")
		w.drained()
		changeGroup(w, w.store, func(g *state.AutoScalingGroup) {
			g.Deleting = true
			g.DesiredCapacity = aws.Int32(0)
		})
		w.expect("the group is gone", ":web drains")
	})
}

// TestPoolDrains: an instance that goes back to the warm pool drains before it stops.
func TestPoolDrains(t *testing.T) {
	inBalancedWorld(t, func(w *balancedWorld) {
		w.expect("in service", "InService", ":web")
		pool(w, w.store, types.WarmPoolConfiguration{
			MaxGroupPreparedCapacity: aws.Int32(1),
			InstanceReusePolicy:      &types.InstanceReusePolicy{ReuseOnScaleIn: aws.Bool(true)},
		})
		w.desire(0)
		w.expect("going back", "Warmed:Pending", ":web drains")
		w.drained()
		w.expect("in the pool", "Warmed:Stopped")
		w.desire(1)
		w.expect("in service again", "InService", ":web")
	})
}

// TestRefreshWaitsForTargets: a refresh goes on when a new instance passes the load balancer's checks, unless these don't count, and also if no
// load balancer asks for them.
func TestRefreshWaitsForTargets(t *testing.T) {
	for _, c := range []struct {
		name          string
		checks        string
		used, healthy bool
		waits         bool
	}{
		{"not yet healthy", "ELB", true, false, true},
		{"healthy", "ELB", true, true, false},
		{"of a target group without a listener", "ELB", false, false, false},
		{"in a group with EC2's checks alone", "EC2", true, false, false},
	} {
		inBalancedWorld(t, func(w *balancedWorld) {
			if c.used {
				put(w, w.store, func(tx *state.Tx) {
					tx.Listeners.Put(&state.Listener{Listener: elb.Listener{
						ListenerArn: aws.String("listener"), LoadBalancerArn: aws.String("balancer"), Port: aws.Int32(80),
						DefaultActions: []elb.Action{{Type: elb.ActionTypeEnumForward, TargetGroupArn: aws.String("web")}},
					}})
				})
			}
			changeGroup(w, w.store, func(g *state.AutoScalingGroup) { g.HealthCheckType = &c.checks })
			w.expect(c.name+": in service", "InService", ":web")
			w.checked("healthy")
			old := *w.one().InstanceId
			startRefresh(w, w.store, types.RefreshPreferences{
				MinHealthyPercentage: aws.Int32(100), MaxHealthyPercentage: aws.Int32(200), InstanceWarmup: aws.Int32(0),
			})
			settle(w, w.store, w.loop)
			if c.healthy {
				w.checked("healthy")
			}
			settle(w, w.store, w.loop)
			time.Sleep(time.Second)
			settle(w, w.store, w.loop)
			leaves := w.store.View().Instances.Get(old).Member.IsLeaving()
			over := refreshOf(w.store).Status == types.InstanceRefreshStatusSuccessful
			if leaves == c.waits || over == c.waits {
				t.Errorf("%s: the old instance leaves: %t; the refresh is over: %t", c.name, leaves, over)
			}
		})
	}
}
