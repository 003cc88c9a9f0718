package keeper

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/state"
)

// cas is a world with a capacity provider of the group g, of g4dn.xlarge, and the tasks of its cluster.
type cas struct {
	testing.TB
	store *state.Store
	loop  *Loop
	now   time.Time
	tasks int
}

// withProvider runs a test with a provider that has managed scaling.
func withProvider(t *testing.T, change func(*Options, *ecstypes.AutoScalingGroupProvider), test func(*cas)) {
	c := newCAS(t, t.TempDir(), change)
	defer c.store.Close() //nolint:errcheck // the test is over
	test(c)
}

func newCAS(t testing.TB, dir string, change func(*Options, *ecstypes.AutoScalingGroupProvider)) *cas {
	store, _ := world(t, dir)
	provider := &ecstypes.AutoScalingGroupProvider{
		AutoScalingGroupArn: aws.String("arn:g"), ManagedTerminationProtection: ecstypes.ManagedTerminationProtectionDisabled, ManagedDraining: ecstypes.ManagedDrainingEnabled,
		ManagedScaling: &ecstypes.ManagedScaling{
			Status: ecstypes.ManagedScalingStatusEnabled, TargetCapacity: aws.Int32(100), MinimumScalingStepSize: aws.Int32(1), MaximumScalingStepSize: aws.Int32(10_000), InstanceWarmupPeriod: aws.Int32(0),
		},
	}
	c := &cas{TB: t, store: store, now: time.Now()}
	o := Options{Now: func() time.Time { return c.now }, CloudWatch: quiet{}, Lost: time.Hour, ScaleIn: time.Minute, Put: func([]metrics.Sample) error { return nil }}
	if change != nil {
		change(&o, provider)
	}
	changeGroup(t, store, func(g *state.AutoScalingGroup) { g.MaxSize = aws.Int32(10) })
	put(t, store, func(tx *state.Tx) {
		tx.CapacityProviders.Put(&state.CapacityProvider{CapacityProvider: ecstypes.CapacityProvider{CapacityProviderArn: aws.String("arn:p"), Name: aws.String("p"), AutoScalingGroupProvider: provider}})
	})
	c.loop = New(store, o)
	return c
}

// wait adds tasks of one GPU that wait for the provider.
func (c *cas) wait(n int) { c.waitFor(n, state.Waiting{CPU: 1024, MemoryMiB: 1024, GPUs: 1}) }

// waitFor adds tasks that wait for the provider.
func (c *cas) waitFor(n int, need state.Waiting) {
	put(c, c.store, func(tx *state.Tx) {
		for range n {
			c.tasks++
			tx.Tasks.Put(&state.Task{Waiting: &need, Task: ecstypes.Task{
				TaskArn: aws.String(fmt.Sprintf("task-%02d", c.tasks)), ClusterArn: aws.String("c"), CapacityProviderName: aws.String("p"), LastStatus: aws.String("PROVISIONING"), DesiredStatus: aws.String("RUNNING"),
			}})
		}
	})
}

// live does a second of the fleet's, the agents' and the scheduler's work: machines come and go, register, and get a task each.
func (c *cas) live(seconds int) {
	for range seconds {
		machines(c, c.store)
		put(c, c.store, func(tx *state.Tx) {
			for _, i := range slices.Collect(tx.Instances.All()) {
				arn := "node-" + *i.InstanceId
				switch node := tx.ContainerInstances.Get(arn); {
				case i.Over() && node != nil:
					tx.ContainerInstances.Delete(arn)
				case i.Name() == "running" && node == nil:
					tx.ContainerInstances.Put(&state.ContainerInstance{ClusterArn: "c", ContainerInstance: ecstypes.ContainerInstance{
						AgentConnected:       true,
						ContainerInstanceArn: &arn, Ec2InstanceId: i.InstanceId, Status: aws.String("ACTIVE"), RegisteredAt: new(c.now),
					}})
				}
			}
			for _, t := range slices.Collect(tx.Tasks.By(state.TasksByLastStatus, "PROVISIONING")) {
				for node := range tx.ContainerInstances.By(state.InstancesByCluster, *t.ClusterArn) {
					if *node.Status == "ACTIVE" && !busy(tx.View, node, true) && hasRoom(c, tx.Instances.Get(*node.Ec2InstanceId), t.Waiting) {
						row := *t
						row.ContainerInstanceArn, row.LastStatus, row.Waiting = node.ContainerInstanceArn, aws.String("RUNNING"), nil
						tx.Tasks.Put(&row)
						break
					}
				}
			}
		})
		step1(c, c.loop)
		c.now = c.now.Add(time.Second)
	}
}

// hasRoom reports whether an instance's type fits a task.
func hasRoom(t testing.TB, i *state.Instance, w *state.Waiting) bool {
	t.Helper()
	has, err := instancetype.Lookup(string(i.InstanceType))
	if err != nil {
		t.Fatal(err)
	}
	return int64(has.VCPUs)*1024 >= w.CPU && has.MemoryMiB >= w.MemoryMiB && has.GPUs >= w.GPUs
}

// stop has the first n tasks that run stopped.
func (c *cas) stop(n int) {
	put(c, c.store, func(tx *state.Tx) {
		for _, t := range slices.Collect(tx.Tasks.By(state.TasksByLastStatus, "RUNNING"))[:n] {
			tx.Tasks.Put(t.Stopped(ecstypes.TaskStopCodeUserInitiated, "", c.now))
		}
	})
}

func (c *cas) expect(when string, desired, instances int) {
	c.Helper()
	v := c.store.View()
	if got, n := int(*v.AutoScalingGroups.Get("g").DesiredCapacity), len(v.ActiveMembers("g")); got != desired || n != instances {
		c.Errorf("%s: %d instances of %d, want %d of %d", when, n, got, instances, desired)
	}
}

// TestManagedScalingBothWays goes from nothing to ten instances, to three, and to nothing: each time once fewer have been enough
// for as long as they have to be.
func TestManagedScalingBothWays(t *testing.T) {
	withProvider(t, nil, func(c *cas) {
		c.wait(10)
		c.live(1)
		c.expect("at once", 10, 10)
		c.live(120)
		c.expect("with a task each", 10, 10)
		c.stop(7)
		c.live(55)
		c.expect("before the time", 10, 10)
		c.live(10)
		c.expect("after the time", 3, 3)
		c.stop(3)
		c.live(65)
		c.expect("at the end", 0, 0)
	})
}

// TestScaleInHalves gives up at most half the group a minute: "Managed scale-in behavior" in ECS's developer guide.
func TestScaleInHalves(t *testing.T) {
	withProvider(t, func(o *Options, _ *ecstypes.AutoScalingGroupProvider) {
		o.ScaleIn, o.ScaleInPause = 15*time.Minute, time.Minute
	}, func(c *cas) {
		c.wait(10)
		c.live(20)
		c.stop(10)
		c.live(15*60 - 5)
		c.expect("before 15 minutes", 10, 10)
		for i, want := range []int{5, 3, 2, 1, 0, 0} {
			c.live(60)
			c.expect(fmt.Sprintf("step %d", i+1), want, want)
		}
	})
}

// TestScaleInStartsAnew: what comes in between stops the scale-in, which starts from the beginning.
func TestScaleInStartsAnew(t *testing.T) {
	withProvider(t, nil, func(c *cas) {
		c.wait(4)
		c.live(20)
		c.stop(4)
		c.live(50)
		c.wait(4)
		c.live(5)
		c.stop(4)
		c.live(55)
		c.expect("a minute after the first end", 4, 4)
		c.live(10)
		c.expect("a minute after the second end", 0, 0)
	})
}

// TestNewTasksDoNotWaitForWarmUp: tasks that come while instances do get theirs at once; nothing is launched twice for one.
func TestNewTasksDoNotWaitForWarmUp(t *testing.T) {
	withProvider(t, func(_ *Options, p *ecstypes.AutoScalingGroupProvider) {
		p.ManagedScaling.InstanceWarmupPeriod = aws.Int32(300)
	}, func(c *cas) {
		c.wait(2)
		step1(c, c.loop)
		c.expect("the first", 2, 2)
		c.wait(3)
		step1(c, c.loop)
		c.expect("all", 5, 5)
		c.live(250)
		c.expect("later", 5, 5)
	})
}

// TestTooLargeTask: a task that fits no instance of the group neither grows it nor keeps it large.
func TestTooLargeTask(t *testing.T) {
	withProvider(t, nil, func(c *cas) {
		c.wait(2)
		c.live(10)
		put(c, c.store, func(tx *state.Tx) {
			tx.Tasks.Put(&state.Task{Waiting: &state.Waiting{GPUs: 4}, Task: ecstypes.Task{
				TaskArn: aws.String("large"), ClusterArn: aws.String("other"), CapacityProviderName: aws.String("p"), LastStatus: aws.String("PROVISIONING"), DesiredStatus: aws.String("RUNNING"),
			}})
		})
		c.stop(1)
		c.live(5)
		c.expect("with a task that fits none", 2, 2)
		c.live(65)
		c.expect("a minute later", 1, 1)
	})
}

// TestUnregistered: an instance that runs and never registers is no help to the tasks that wait; once it has had its warm-up, and a
// minute at least, another one is launched.
// TestUnlikeTasks: where no type of a group fits all tasks that wait, each gets an instance of one that fits it.
func TestUnlikeTasks(t *testing.T) {
	withProvider(t, nil, func(c *cas) {
		changeGroup(t, c.store, func(g *state.AutoScalingGroup) {
			g.MixedInstancesPolicy = &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{
				LaunchTemplateSpecification: g.LaunchTemplate,
				Overrides:                   []types.LaunchTemplateOverrides{{InstanceType: aws.String("c5.large")}, {InstanceType: aws.String("c5.4xlarge")}, {InstanceType: aws.String("g4dn.xlarge")}},
			}}
			g.LaunchTemplate = nil
		})
		c.waitFor(1, state.Waiting{CPU: 8192, MemoryMiB: 1024})
		c.wait(2)
		c.live(30)
		c.expect("with an instance for each", 3, 3)
		count := map[string]int{}
		for i := range c.store.View().Instances.All() {
			count[string(i.InstanceType)]++
		}
		if want := map[string]int{"c5.4xlarge": 1, "g4dn.xlarge": 2}; !maps.Equal(count, want) {
			t.Errorf("instances %v, want %v", count, want)
		}
	})
}

func TestUnregistered(t *testing.T) {
	for warmup, within := range map[int32]int{0: 60, 300: 300} {
		withProvider(t, func(_ *Options, p *ecstypes.AutoScalingGroupProvider) {
			p.ManagedScaling.InstanceWarmupPeriod = &warmup
		}, func(c *cas) {
			boot := func(seconds int) {
				for range seconds {
					step1(c, c.loop)
					machines(c, c.store)
					c.now = c.now.Add(time.Second)
				}
			}
			c.wait(1)
			boot(within - 5)
			c.expect("before", 1, 1)
			boot(15)
			c.expect("after", 2, 2)
		})
	}
}

// TestManagedDraining: an instance that its group ends waits for its tasks at ECS's own hook, DRAINING, and takes no new ones.
func TestManagedDraining(t *testing.T) {
	withProvider(t, nil, func(c *cas) {
		c.wait(2)
		c.live(20)
		g := c.store.View().AutoScalingGroups.Get("g")
		if h := g.Hook("ecs-managed-draining-termination-hook"); h == nil || *h.HeartbeatTimeout != 3600 || *h.DefaultResult != "CONTINUE" {
			t.Errorf("the hooks are %+v", g.Hooks)
		}
		if len(g.Tags) != 1 || *g.Tags[0].Key != "AmazonECSManaged" || !*g.Tags[0].PropagateAtLaunch {
			t.Errorf("the tags are %+v", g.Tags)
		}
		changeGroup(c, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(1) })
		c.live(600)
		if got := states(c.store); !slices.Equal(got, []string{"InService", "Terminating:Wait"}) {
			t.Errorf("the instances are %v", got)
		}
		draining := 0
		for node := range c.store.View().ContainerInstances.All() {
			if *node.Status == "DRAINING" {
				draining++
			}
		}
		if draining != 1 {
			t.Errorf("%d are DRAINING", draining)
		}
		c.stop(2)
		c.live(5)
		if got := states(c.store); !slices.Equal(got, []string{"InService"}) {
			t.Errorf("without tasks the instances are %v", got)
		}
		put(c, c.store, func(tx *state.Tx) { tx.CapacityProviders.Delete("arn:p") })
		c.live(1)
		if h := c.store.View().AutoScalingGroups.Get("g").Hooks; len(h) > 0 {
			t.Errorf("without a provider there are the hooks %+v", h)
		}
	})
}

// TestRegisteredTwice: an agent whose first registration was answered too late to hear of it has another one since. That is the
// instance's, with its tasks.
func TestRegisteredTwice(t *testing.T) {
	withProvider(t, nil, func(c *cas) {
		c.wait(1)
		c.live(10)
		put(c, c.store, func(tx *state.Tx) {
			i := slices.Collect(tx.Instances.All())[0]
			tx.ContainerInstances.Put(&state.ContainerInstance{ClusterArn: "c", ContainerInstance: ecstypes.ContainerInstance{
				ContainerInstanceArn: aws.String("a-lost-one"), Ec2InstanceId: i.InstanceId, Status: aws.String("ACTIVE"), RegisteredAt: i.LaunchTime,
			}})
		})
		changeGroup(t, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		c.live(10)
		if got := states(c.store); !slices.Equal(got, []string{"Terminating:Wait"}) {
			t.Errorf("an instance with a task is %v", got)
		}
		c.stop(1)
		c.live(5)
		c.expect("once its task has ended", 0, 0)
	})
}

// TestDrainingEnds: what does not end in 48 hours goes with its instance.
func TestDrainingEnds(t *testing.T) {
	withProvider(t, nil, func(c *cas) {
		c.wait(1)
		c.live(20)
		changeGroup(c, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		c.live(2)
		c.now = c.now.Add(48*time.Hour - 10*time.Second)
		c.live(1)
		if got := states(c.store); !slices.Equal(got, []string{string(types.LifecycleStateTerminatingWait)}) {
			t.Errorf("the instances are %v", got)
		}
		c.now = c.now.Add(10 * time.Second)
		c.live(3)
		if got := states(c.store); len(got) > 0 {
			t.Errorf("after 48 hours the instances are %v", got)
		}
	})
}

// TestTerminationProtectionHolds does anything to tasks and group: an instance with a task is never on its way out, there are never
// more instances than the group may have, and with the last task the last instance goes.
func TestTerminationProtectionHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newCAS(t, t.TempDir(), func(o *Options, p *ecstypes.AutoScalingGroupProvider) {
			p.ManagedTerminationProtection = ecstypes.ManagedTerminationProtectionEnabled
			p.ManagedScaling.TargetCapacity = aws.Int32(rapid.Int32Range(50, 100).Draw(r, "target"))
			o.ScaleIn, o.ScaleInPause = 10*time.Second, time.Duration(rapid.IntRange(0, 2).Draw(r, "pause"))*time.Second
		})
		defer c.store.Close() //nolint:errcheck // the test is over
		runs := func() int { return len(slices.Collect(c.store.View().Tasks.By(state.TasksByLastStatus, "RUNNING"))) }
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			switch rapid.IntRange(0, 2).Draw(r, "what") {
			case 0:
				c.wait(rapid.IntRange(1, 4).Draw(r, "tasks"))
			case 1:
				c.stop(rapid.IntRange(0, runs()).Draw(r, "ends"))
			case 2:
				n := rapid.Int32Range(0, 10).Draw(r, "desired")
				changeGroup(t, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = &n })
			}
			for range rapid.IntRange(0, 15).Draw(r, "seconds") {
				c.live(1)
				v := c.store.View()
				if n := len(v.ActiveMembers("g")); n > 10 {
					r.Fatalf("%d instances", n)
				}
				for i := range v.Instances.By(state.InstancesByGroup, "g") {
					if i.Member.Leaving() && busy(v, containerInstance(v, *i.InstanceId), false) {
						r.Fatalf("%s has a task and is %s", *i.InstanceId, i.Member.LifecycleState)
					}
				}
			}
		}
		for range 4 { // what still waits gets its instance, and ends
			c.live(5)
			c.stop(runs())
		}
		c.live(60)
		if n := len(c.store.View().ActiveMembers("g")); n > 0 {
			r.Fatalf("%d instances are left", n)
		}
	})
}

// TestTerminationProtection: whatever is desired of the group, an instance with a task stays.
func TestTerminationProtection(t *testing.T) {
	withProvider(t, func(_ *Options, p *ecstypes.AutoScalingGroupProvider) {
		p.ManagedTerminationProtection = ecstypes.ManagedTerminationProtectionEnabled
	}, func(c *cas) {
		c.wait(3)
		c.live(20)
		c.stop(1)
		changeGroup(c, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		c.live(5)
		if got := states(c.store); !slices.Equal(got, []string{"InService", "InService"}) {
			t.Errorf("the instances are %v", got)
		}
	})
}
