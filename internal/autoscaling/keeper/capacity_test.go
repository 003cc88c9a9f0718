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

// providerWorld is a world with a capacity provider for the group g of g4dn.xlarge instances, and the tasks of its cluster.
type providerWorld struct {
	testing.TB
	store *state.Store
	loop  *Loop
	now   time.Time
	tasks int
}

// withProvider runs a test with a capacity provider that has managed scaling.
func withProvider(t *testing.T, change func(*Options, *ecstypes.AutoScalingGroupProvider), test func(*providerWorld)) {
	c := newProviderWorld(t, t.TempDir(), change)
	defer c.store.Close() //nolint:errcheck // the test is over
	test(c)
}

func newProviderWorld(t testing.TB, dir string, change func(*Options, *ecstypes.AutoScalingGroupProvider)) *providerWorld {
	store, _ := newWorld(t, dir)
	provider := &ecstypes.AutoScalingGroupProvider{
		AutoScalingGroupArn:          aws.String("arn:g"),
		ManagedTerminationProtection: ecstypes.ManagedTerminationProtectionDisabled,
		ManagedDraining:              ecstypes.ManagedDrainingEnabled,
		ManagedScaling: &ecstypes.ManagedScaling{
			Status:                 ecstypes.ManagedScalingStatusEnabled,
			TargetCapacity:         aws.Int32(100),
			MinimumScalingStepSize: aws.Int32(1),
			MaximumScalingStepSize: aws.Int32(10_000),
			InstanceWarmupPeriod:   aws.Int32(0),
		},
	}
	c := &providerWorld{TB: t, store: store, now: time.Now()}
	o := Options{
		Now:        func() time.Time { return c.now },
		CloudWatch: quiet{},
		Lost:       time.Hour,
		ScaleIn:    time.Minute,
		Put:        func([]metrics.Sample) error { return nil },
	}
	if change != nil {
		change(&o, provider)
	}
	changeGroup(t, store, func(g *state.AutoScalingGroup) { g.MaxSize = aws.Int32(10) })
	put(t, store, func(tx *state.Tx) {
		tx.CapacityProviders.Put(&state.CapacityProvider{CapacityProvider: ecstypes.CapacityProvider{
			CapacityProviderArn:      aws.String("arn:p"),
			Name:                     aws.String("p"),
			AutoScalingGroupProvider: provider,
		}})
	})
	c.loop = New(store, o)
	return c
}

// addTasks adds tasks of one GPU that wait for the provider.
func (c *providerWorld) addTasks(n int) {
	c.addTasksOf(n, state.Waiting{CPU: 1024, MemoryMiB: 1024, GPUs: 1})
}

// addTasksOf adds tasks with a need that wait for the provider.
func (c *providerWorld) addTasksOf(n int, need state.Waiting) {
	put(c, c.store, func(tx *state.Tx) {
		for range n {
			c.tasks++
			tx.Tasks.Put(&state.Task{Waiting: &need, Task: ecstypes.Task{
				TaskArn:              aws.String(fmt.Sprintf("task-%02d", c.tasks)),
				TaskDefinitionArn:    aws.String("d"),
				ClusterArn:           aws.String("c"),
				CapacityProviderName: aws.String("p"),
				LastStatus:           aws.String("PROVISIONING"),
				DesiredStatus:        aws.String("RUNNING"),
			}})
		}
	})
}

// runFor plays fleet, agents and scheduler for some seconds: machines start, stop and register, and each gets one task.
func (c *providerWorld) runFor(seconds int) {
	for range seconds {
		runMachines(c, c.store)
		put(c, c.store, func(tx *state.Tx) {
			for _, i := range slices.Collect(tx.Instances.All()) {
				arn := "node-" + *i.InstanceId
				switch node := tx.ContainerInstances.Get(arn); {
				case i.IsOver() && node != nil:
					tx.ContainerInstances.Delete(arn)
				case i.Name() == "running" && node == nil:
					tx.ContainerInstances.Put(&state.ContainerInstance{ClusterArn: "c", ContainerInstance: ecstypes.ContainerInstance{
						AgentConnected:       true,
						ContainerInstanceArn: &arn,
						Ec2InstanceId:        i.InstanceId,
						Status:               aws.String("ACTIVE"),
						RegisteredAt:         new(c.now),
					}})
				}
			}
			for _, t := range slices.Collect(tx.Tasks.By(state.TasksByLastStatus, "PROVISIONING")) {
				for node := range tx.ContainerInstances.By(state.InstancesByCluster, *t.ClusterArn) {
					if *node.Status == "ACTIVE" && !busy(tx.View, node, true) &&
						hasRoom(c, tx.Instances.Get(*node.Ec2InstanceId), t.Waiting) {
						row := *t
						row.ContainerInstanceArn = node.ContainerInstanceArn
						row.LastStatus = aws.String("RUNNING")
						row.Waiting = nil
						tx.Tasks.Put(&row)
						break
					}
				}
			}
		})
		mustStep(c, c.loop)
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

// stopTasks stops the first n running tasks.
func (c *providerWorld) stopTasks(n int) {
	put(c, c.store, func(tx *state.Tx) {
		for _, t := range slices.Collect(tx.Tasks.By(state.TasksByLastStatus, "RUNNING"))[:n] {
			tx.Tasks.Put(t.Stopped(ecstypes.TaskStopCodeUserInitiated, "", c.now))
		}
	})
}

func (c *providerWorld) expect(when string, desired, instances int) {
	c.Helper()
	v := c.store.View()
	if got, n := int(*v.AutoScalingGroups.Get("g").DesiredCapacity), len(v.ActiveMembers("g")); got != desired || n != instances {
		c.Errorf("%s: %d instances of %d, want %d of %d", when, n, got, instances, desired)
	}
}

// TestManagedScalingBothWays scales from zero to ten instances, to three, and to zero. It scales in only after fewer instances
// have been enough for the required time.
func TestManagedScalingBothWays(t *testing.T) {
	withProvider(t, nil, func(c *providerWorld) {
		c.addTasks(10)
		c.runFor(1)
		c.expect("at once", 10, 10)
		c.runFor(120)
		c.expect("with a task each", 10, 10)
		c.stopTasks(7)
		c.runFor(55)
		c.expect("before the time", 10, 10)
		c.runFor(10)
		c.expect("after the time", 3, 3)
		c.stopTasks(3)
		c.runFor(65)
		c.expect("at the end", 0, 0)
	})
}

// TestScaleInHalves: managed scaling gives up at most half the group a minute: "Managed scale-in behavior" in ECS's developer guide.
func TestScaleInHalves(t *testing.T) {
	withProvider(t, func(o *Options, _ *ecstypes.AutoScalingGroupProvider) {
		o.ScaleIn = 15 * time.Minute
		o.ScaleInPause = time.Minute
	}, func(c *providerWorld) {
		c.addTasks(10)
		c.runFor(20)
		c.stopTasks(10)
		c.runFor(15*60 - 5)
		c.expect("before 15 minutes", 10, 10)
		for i, want := range []int{5, 3, 2, 1, 0, 0} {
			c.runFor(60)
			c.expect(fmt.Sprintf("step %d", i+1), want, want)
		}
	})
}

// TestScaleInStartsAnew: new tasks interrupt a scale-in, and its wait starts over.
func TestScaleInStartsAnew(t *testing.T) {
	withProvider(t, nil, func(c *providerWorld) {
		c.addTasks(4)
		c.runFor(20)
		c.stopTasks(4)
		c.runFor(50)
		c.addTasks(4)
		c.runFor(5)
		c.stopTasks(4)
		c.runFor(55)
		c.expect("a minute after the first end", 4, 4)
		c.runFor(10)
		c.expect("a minute after the second end", 0, 0)
	})
}

// TestNewTasksDoNotWaitForWarmUp: tasks that arrive while instances start get instances at once. No task gets two.
func TestNewTasksDoNotWaitForWarmUp(t *testing.T) {
	withProvider(t, func(_ *Options, p *ecstypes.AutoScalingGroupProvider) {
		p.ManagedScaling.InstanceWarmupPeriod = aws.Int32(300)
	}, func(c *providerWorld) {
		c.addTasks(2)
		mustStep(c, c.loop)
		c.expect("the first", 2, 2)
		c.addTasks(3)
		mustStep(c, c.loop)
		c.expect("all", 5, 5)
		c.runFor(250)
		c.expect("later", 5, 5)
	})
}

// TestTooLargeTask: a task that fits no instance of the group neither grows the group nor stops it from shrinking.
func TestTooLargeTask(t *testing.T) {
	withProvider(t, nil, func(c *providerWorld) {
		c.addTasks(2)
		c.runFor(10)
		put(c, c.store, func(tx *state.Tx) {
			tx.Tasks.Put(&state.Task{Waiting: &state.Waiting{GPUs: 4}, Task: ecstypes.Task{
				TaskArn:              aws.String("large"),
				ClusterArn:           aws.String("other"),
				CapacityProviderName: aws.String("p"),
				LastStatus:           aws.String("PROVISIONING"),
				DesiredStatus:        aws.String("RUNNING"),
			}})
		})
		c.stopTasks(1)
		c.runFor(5)
		c.expect("with a task that fits none", 2, 2)
		c.runFor(65)
		c.expect("a minute later", 1, 1)
	})
}

// TestUnlikeTasks: if no type of a group fits all waiting tasks, each task gets an instance of a type that fits it.
func TestUnlikeTasks(t *testing.T) {
	withProvider(t, nil, func(c *providerWorld) {
		changeGroup(t, c.store, func(g *state.AutoScalingGroup) {
			g.MixedInstancesPolicy = &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{
				LaunchTemplateSpecification: g.LaunchTemplate,
				Overrides: []types.LaunchTemplateOverrides{
					{InstanceType: aws.String("c5.large")},
					{InstanceType: aws.String("c5.4xlarge")},
					{InstanceType: aws.String("g4dn.xlarge")},
				},
			}}
			g.LaunchTemplate = nil
		})
		c.addTasksOf(1, state.Waiting{CPU: 8192, MemoryMiB: 1024})
		c.addTasks(2)
		c.runFor(30)
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

// TestTasksNobodyTakes: tasks that are too large for the group's type launch nothing. Of tasks that need something out of the
// ordinary, one instance shows whether the group's have it.
func TestTasksNobodyTakes(t *testing.T) {
	define := func(c *providerWorld, needs string) {
		put(c, c.store, func(tx *state.Tx) {
			tx.TaskDefinitions.Put(&state.TaskDefinition{TaskDefinition: ecstypes.TaskDefinition{
				TaskDefinitionArn:  aws.String("d"),
				RequiresAttributes: []ecstypes.Attribute{{Name: &needs}},
			}})
		})
	}
	for _, test := range []struct {
		name         string
		needs        string
		gpus         int
		first, later int // instances before and after the first has registered
	}{
		{"too many GPUs", "ecs.capability.task-eni", 2, 0, 0},
		{"nothing out of the ordinary", "ecs.capability.task-eni", 1, 4, 4},
		{"what the instances don't have", "ecs.capability.efs", 1, 1, 1},
		{"what the instances turn out to have", "ecs.capability.x", 1, 1, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			withProvider(t, nil, func(c *providerWorld) {
				define(c, test.needs)
				c.addTasksOf(4, state.Waiting{CPU: 1024, MemoryMiB: 1024, GPUs: test.gpus})
				mustStep(c, c.loop)
				c.expect("first", test.first, test.first)
				for range 30 {
					runMachines(c, c.store)
					put(c, c.store, func(tx *state.Tx) {
						for i := range tx.Instances.All() {
							arn := "node-" + *i.InstanceId
							if i.Name() != "running" || tx.ContainerInstances.Get(arn) != nil {
								continue
							}
							tx.ContainerInstances.Put(&state.ContainerInstance{ClusterArn: "c", ContainerInstance: ecstypes.ContainerInstance{
								AgentConnected:       true,
								ContainerInstanceArn: &arn,
								Ec2InstanceId:        i.InstanceId,
								Status:               aws.String("ACTIVE"),
								RegisteredAt:         new(c.now),
								Attributes: []ecstypes.Attribute{
									{Name: aws.String("ecs.capability.x")},
									{Name: aws.String("ecs.capability.task-eni")},
								},
							}})
						}
					})
					mustStep(c, c.loop)
					c.now = c.now.Add(time.Second)
					if test.later > 1 && len(states(c.store)) == test.later {
						break // nobody places these tasks, so more would be launched for them later
					}
				}
				c.expect("later", test.later, test.later)
			})
		})
	}
}

// TestTasksBesideOthers: an instance that comes has no tasks yet. So a task that wants to be beside others gets none, and one that wants
// to be away from them does at once.
func TestTasksBesideOthers(t *testing.T) {
	for _, test := range []struct {
		expression string
		instances  int
	}{
		{"task:group == databases", 0},
		{"task:group in [databases, service:web]", 0},
		{"task:group != databases", 3},
		{"not(task:group == databases)", 3},
		{"runningTasksCount < 1", 3},
		{"runningTasksCount > 0", 0},
		{"task:group == databases or attribute:ecs.instance-type == g4dn.xlarge", 3},
	} {
		t.Run(test.expression, func(t *testing.T) {
			withProvider(t, nil, func(c *providerWorld) {
				put(c, c.store, func(tx *state.Tx) {
					tx.TaskDefinitions.Put(&state.TaskDefinition{TaskDefinition: ecstypes.TaskDefinition{TaskDefinitionArn: aws.String("d")}})
				})
				c.addTasksOf(3, state.Waiting{CPU: 1024, MemoryMiB: 1024, GPUs: 1, Constraints: []ecstypes.PlacementConstraint{{
					Type:       ecstypes.PlacementConstraintTypeMemberOf,
					Expression: &test.expression,
				}}})
				mustStep(c, c.loop)
				c.expect("at once", test.instances, test.instances)
			})
		})
	}
}

// TestUnregistered: an instance that runs but never registers doesn't help the waiting tasks. After its warm-up, at least a
// minute, another one is launched.
func TestUnregistered(t *testing.T) {
	for warmup, within := range map[int32]int{0: 60, 300: 300} {
		withProvider(t, func(_ *Options, p *ecstypes.AutoScalingGroupProvider) {
			p.ManagedScaling.InstanceWarmupPeriod = &warmup
		}, func(c *providerWorld) {
			boot := func(seconds int) {
				for range seconds {
					mustStep(c, c.loop)
					runMachines(c, c.store)
					c.now = c.now.Add(time.Second)
				}
			}
			c.addTasks(1)
			boot(within - 5)
			c.expect("before", 1, 1)
			boot(15)
			c.expect("after", 2, 2)
		})
	}
}

// TestManagedDraining: an instance that leaves its group waits at ECS's own hook for its tasks to end. It's DRAINING, so it gets
// no new ones.
func TestManagedDraining(t *testing.T) {
	withProvider(t, nil, func(c *providerWorld) {
		c.addTasks(2)
		c.runFor(20)
		g := c.store.View().AutoScalingGroups.Get("g")
		if h := g.Hook("ecs-managed-draining-termination-hook"); h == nil || *h.HeartbeatTimeout != 3600 || *h.DefaultResult != "CONTINUE" {
			t.Errorf("the hooks are %+v", g.Hooks)
		}
		if len(g.Tags) != 1 || *g.Tags[0].Key != "AmazonECSManaged" || !*g.Tags[0].PropagateAtLaunch {
			t.Errorf("the tags are %+v", g.Tags)
		}
		changeGroup(c, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(1) })
		c.runFor(600)
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
		c.stopTasks(2)
		c.runFor(5)
		if got := states(c.store); !slices.Equal(got, []string{"InService"}) {
			t.Errorf("without tasks the instances are %v", got)
		}
		put(c, c.store, func(tx *state.Tx) { tx.CapacityProviders.Delete("arn:p") })
		c.runFor(1)
		if h := c.store.View().AutoScalingGroups.Get("g").Hooks; len(h) > 0 {
			t.Errorf("without a provider there are the hooks %+v", h)
		}
	})
}

// TestRegisteredTwice: an agent that missed the answer to its first registration registers again. The newer registration is the
// one with the tasks.
func TestRegisteredTwice(t *testing.T) {
	withProvider(t, nil, func(c *providerWorld) {
		c.addTasks(1)
		c.runFor(10)
		put(c, c.store, func(tx *state.Tx) {
			i := slices.Collect(tx.Instances.All())[0]
			tx.ContainerInstances.Put(&state.ContainerInstance{ClusterArn: "c", ContainerInstance: ecstypes.ContainerInstance{
				ContainerInstanceArn: aws.String("a-lost-one"),
				Ec2InstanceId:        i.InstanceId,
				Status:               aws.String("ACTIVE"),
				RegisteredAt:         i.LaunchTime,
			}})
		})
		changeGroup(t, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		c.runFor(10)
		if got := states(c.store); !slices.Equal(got, []string{"Terminating:Wait"}) {
			t.Errorf("an instance with a task is %v", got)
		}
		c.stopTasks(1)
		c.runFor(5)
		c.expect("once its task has ended", 0, 0)
	})
}

// TestDrainingEnds: an instance goes after 48 hours, even if its tasks haven't ended.
func TestDrainingEnds(t *testing.T) {
	withProvider(t, nil, func(c *providerWorld) {
		c.addTasks(1)
		c.runFor(20)
		changeGroup(c, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		c.runFor(2)
		c.now = c.now.Add(48*time.Hour - 10*time.Second)
		c.runFor(1)
		if got := states(c.store); !slices.Equal(got, []string{string(types.LifecycleStateTerminatingWait)}) {
			t.Errorf("the instances are %v", got)
		}
		c.now = c.now.Add(10 * time.Second)
		c.runFor(3)
		if got := states(c.store); len(got) > 0 {
			t.Errorf("after 48 hours the instances are %v", got)
		}
	})
}

// TestTerminationProtectionHolds makes random changes to tasks and group. An instance with a task must never be leaving, there
// must never be more instances than the group allows, and the last instance must go with the last task.
func TestTerminationProtectionHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := newProviderWorld(t, t.TempDir(), func(o *Options, p *ecstypes.AutoScalingGroupProvider) {
			p.ManagedTerminationProtection = ecstypes.ManagedTerminationProtectionEnabled
			p.ManagedScaling.TargetCapacity = aws.Int32(rapid.Int32Range(50, 100).Draw(r, "target"))
			o.ScaleIn = 10 * time.Second
			o.ScaleInPause = time.Duration(rapid.IntRange(0, 2).Draw(r, "pause")) * time.Second
		})
		defer c.store.Close() //nolint:errcheck // the test is over
		runs := func() int { return len(slices.Collect(c.store.View().Tasks.By(state.TasksByLastStatus, "RUNNING"))) }
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			switch rapid.IntRange(0, 2).Draw(r, "what") {
			case 0:
				c.addTasks(rapid.IntRange(1, 4).Draw(r, "tasks"))
			case 1:
				c.stopTasks(rapid.IntRange(0, runs()).Draw(r, "ends"))
			case 2:
				n := rapid.Int32Range(0, 10).Draw(r, "desired")
				changeGroup(t, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = &n })
			}
			for range rapid.IntRange(0, 15).Draw(r, "seconds") {
				c.runFor(1)
				v := c.store.View()
				if n := len(v.ActiveMembers("g")); n > 10 {
					r.Fatalf("%d instances", n)
				}
				for i := range v.Instances.By(state.InstancesByGroup, "g") {
					if i.Member.IsLeaving() && busy(v, containerInstance(v, *i.InstanceId), false) {
						r.Fatalf("%s has a task and is %s", *i.InstanceId, i.Member.LifecycleState)
					}
				}
			}
		}
		for range 4 { // waiting tasks get their instances, and end
			c.runFor(5)
			c.stopTasks(runs())
		}
		c.runFor(60)
		if n := len(c.store.View().ActiveMembers("g")); n > 0 {
			r.Fatalf("%d instances are left", n)
		}
	})
}

// TestTerminationProtection: whatever the desired capacity, an instance with a task stays.
func TestTerminationProtection(t *testing.T) {
	withProvider(t, func(_ *Options, p *ecstypes.AutoScalingGroupProvider) {
		p.ManagedTerminationProtection = ecstypes.ManagedTerminationProtectionEnabled
	}, func(c *providerWorld) {
		c.addTasks(3)
		c.runFor(20)
		c.stopTasks(1)
		changeGroup(c, c.store, func(g *state.AutoScalingGroup) { g.DesiredCapacity = aws.Int32(0) })
		c.runFor(5)
		if got := states(c.store); !slices.Equal(got, []string{"InService", "InService"}) {
			t.Errorf("the instances are %v", got)
		}
	})
}
