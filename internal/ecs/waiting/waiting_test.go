package waiting

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const cluster = "arn:aws:ecs:us-east-1:000000000000:cluster/c"

// world is a store with a task definition of one GPU. Its tasks belong to the capacity provider p.
type world struct {
	testing.TB
	store     *state.Store
	scheduler *scheduler.Scheduler
	tasks     int
	late      func(time.Duration)
}

func open(t testing.TB, dir string) *world {
	t.Helper()
	scheduler := scheduler.New(1)
	store := statetest.OpenIn(t, dir, scheduler)
	w := &world{t, store, scheduler, 0, func(time.Duration) {}}
	w.change(func(tx *state.Tx) {
		for name, gpus := range map[string]string{"one": "1", "two": "2", "four": "4"} {
			tx.TaskDefinitions.Put(&state.TaskDefinition{TaskDefinition: types.TaskDefinition{
				TaskDefinitionArn: aws.String(name),
				Family:            aws.String(name),
				Status:            types.TaskDefinitionStatusActive,
				NetworkMode:       types.NetworkModeHost,
				ContainerDefinitions: []types.ContainerDefinition{{
					Name:                 aws.String("main"),
					Memory:               aws.Int32(64),
					ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: &gpus}},
				}},
			}})
		}
	})
	return w
}

func (w *world) change(change func(*state.Tx)) {
	w.Helper()
	if err := w.store.Update(context.Background(), func(tx *state.Tx) error { change(tx); return nil }); err != nil {
		w.Fatal(err)
	}
}

// wait adds a waiting task.
func (w *world) wait(definition string, gpus int) string {
	w.tasks++
	arn := fmt.Sprintf("task-%02d", w.tasks)
	w.change(func(tx *state.Tx) {
		tx.Tasks.Put(&state.Task{Waiting: &state.Waiting{MemoryMiB: 64, GPUs: gpus}, Task: types.Task{
			TaskArn:              &arn,
			ClusterArn:           aws.String(cluster),
			TaskDefinitionArn:    &definition,
			CapacityProviderName: aws.String("p"),
			Overrides:            &types.TaskOverride{},
			CreatedAt:            new(time.Now()),
			LastStatus:           aws.String("PROVISIONING"),
			DesiredStatus:        aws.String("RUNNING"),
			Containers:           []types.Container{{Name: aws.String("main")}},
		}})
	})
	return arn
}

// node registers a container instance of a provider.
func (w *world) node(name, provider string, gpus int, change func(*state.ContainerInstance)) {
	row := &state.ContainerInstance{ClusterArn: cluster, Capacity: state.Resources{
		CPU:       4096,
		MemoryMiB: 4096,
	}, ContainerInstance: types.ContainerInstance{
		ContainerInstanceArn: &name,
		CapacityProviderName: &provider,
		Status:               aws.String("ACTIVE"),
		AgentConnected:       true,
	}}
	for g := range gpus {
		row.GPUs = append(row.GPUs, state.GPU{ID: fmt.Sprintf("%s-gpu-%d", name, g)})
	}
	if change != nil {
		change(row)
	}
	w.change(func(tx *state.Tx) { tx.ContainerInstances.Put(row) })
}

func (w *world) expect(task, status, instance string) {
	w.Helper()
	t := w.store.View().Tasks.Get(task)
	if *t.LastStatus != status || aws.ToString(t.ContainerInstanceArn) != instance ||
		(t.Waiting != nil) != (status == "PROVISIONING") && status != "STOPPED" {
		w.Errorf("%s is %s on %q, want %s on %q", task, *t.LastStatus, aws.ToString(t.ContainerInstanceArn), status, instance)
	}
}

// running runs a test beside the loop.
func running(t *testing.T, test func(*world)) { runningAfter(t, func(*world) {}, test) }

// runningAfter is like running, but calls before first, before the loop starts.
func runningAfter(t *testing.T, before, test func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, t.TempDir())
		before(w)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- Run(ctx, w.store, w.scheduler, time.Now, w.late) }()
		test(w)
		cancel()
		if err := <-done; err != context.Canceled {
			t.Errorf("the loop ended with %v", err)
		}
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestTellsHowLateItLooks: each look that a second brought is told of, and none while no task waits.
func TestTellsHowLateItLooks(t *testing.T) {
	var told []time.Duration
	runningAfter(t, func(w *world) { w.late = func(d time.Duration) { told = append(told, d) } }, func(w *world) {
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(told) > 0 {
			t.Errorf("nothing waits, and it looked at %v", told)
		}
		w.wait("one", 1)
		time.Sleep(4*time.Second + 500*time.Millisecond)
		synctest.Wait()
		if !slices.Equal(told, make([]time.Duration, 4)) {
			t.Errorf("it was late by %v, want four times nothing", told)
		}
	})
}

// TestPlacesAtOnce checks that the oldest task, and no later one, is placed as soon as an instance of its provider has
// come.
func TestPlacesAtOnce(t *testing.T) {
	running(t, func(w *world) {
		first := w.wait("one", 1)
		time.Sleep(time.Minute)
		second := w.wait("one", 1)
		w.node("others", "q", 4, nil)
		time.Sleep(time.Minute)
		w.expect(first, "PROVISIONING", "")
		w.node("ours", "p", 1, nil)
		synctest.Wait()
		w.expect(first, "PENDING", "ours")
		w.expect(second, "PROVISIONING", "")
		if task := w.store.View().Tasks.Get(first); len(task.GPUs) != 1 || len(task.Containers[0].GpuIds) != 1 {
			t.Errorf("it holds %v and shows %v", task.GPUs, task.Containers[0].GpuIds)
		}
	})
}

// TestPlacesWhatOthersLeave checks that a task gets what another one leaves within a second.
func TestPlacesWhatOthersLeave(t *testing.T) {
	running(t, func(w *world) {
		w.node("ours", "p", 1, nil)
		first := w.wait("one", 1)
		synctest.Wait()
		w.expect(first, "PENDING", "ours")
		second := w.wait("one", 1)
		time.Sleep(10 * time.Second)
		w.expect(second, "PROVISIONING", "")
		w.change(func(tx *state.Tx) {
			tx.Tasks.Put(tx.Tasks.Get(first).Stopped(types.TaskStopCodeEssentialContainerExited, "", time.Now()))
		})
		time.Sleep(recheckEvery)
		synctest.Wait()
		w.expect(second, "PENDING", "ours")
	})
}

// TestHopelessTasksStop checks that a task stops at once when its capacity provider's instances turn out to lack what it needs, and
// that its stopped reason names that. It waits as long as nobody knows.
func TestHopelessTasksStop(t *testing.T) {
	runningAfter(t, func(w *world) {
		w.change(func(tx *state.Tx) {
			td := *tx.TaskDefinitions.Get("one")
			td.RequiresAttributes = []types.Attribute{{Name: aws.String("ecs.capability.efs")}}
			tx.TaskDefinitions.Put(&td)
			statetest.PutProvider(tx, "p", "g4dn.xlarge")
		})
	}, func(w *world) {
		hopeless := w.wait("one", 1)
		time.Sleep(time.Minute)
		w.expect(hopeless, "PROVISIONING", "")
		w.node("ours", "p", 1, func(i *state.ContainerInstance) {
			i.RegisteredAt = new(time.Now())
			i.Attributes = []types.Attribute{{Name: aws.String("ecs.os-type"), Value: aws.String("linux")}}
		})
		synctest.Wait()
		w.expect(hopeless, "STOPPED", "")
		task := w.store.View().Tasks.Get(hopeless)
		if got := *task.StoppedReason; got != "ATTRIBUTE. Missing attribute: ecs.capability.efs." {
			t.Error(got)
		}
	})
}

// TestSmallTasksPass checks that a task without room doesn't hold up tasks of another kind.
func TestSmallTasksPass(t *testing.T) {
	running(t, func(w *world) {
		large, small := w.wait("two", 2), w.wait("one", 1)
		w.node("ours", "p", 1, nil)
		synctest.Wait()
		w.expect(large, "PROVISIONING", "")
		w.expect(small, "PENDING", "ours")
	})
}

// TestTasksElsewherePass checks that a task whose constraint leaves no room doesn't hold up tasks that may go
// elsewhere.
func TestTasksElsewherePass(t *testing.T) {
	running(t, func(w *world) {
		tasks := map[string]string{}
		for _, rack := range []string{"a", "b"} {
			tasks[rack] = w.wait("one", 1)
			w.change(func(tx *state.Tx) {
				bound := *tx.Tasks.Get(tasks[rack])
				bound.Waiting = &state.Waiting{MemoryMiB: 64, GPUs: 1, Constraints: []types.PlacementConstraint{{
					Type:       types.PlacementConstraintTypeMemberOf,
					Expression: aws.String("attribute:rack == " + rack),
				}}}
				tx.Tasks.Put(&bound)
			})
		}
		w.node("ours", "p", 2, func(i *state.ContainerInstance) {
			i.Attributes = []types.Attribute{{Name: aws.String("rack"), Value: aws.String("b")}}
		})
		synctest.Wait()
		w.expect(tasks["a"], "PROVISIONING", "")
		w.expect(tasks["b"], "PENDING", "ours")
	})
}

// TestGivesUp checks that a task which found no instance for half an hour is stopped, and says why. See "Amazon ECS API
// failure reasons" in ECS's developer guide, DescribeTasks.
func TestGivesUp(t *testing.T) {
	for _, c := range []struct {
		name string
		node func(*world)
		want string
	}{
		{"no instance came", func(*world) {}, "EMPTY CAPACITY PROVIDER"},
		{"only another provider's", func(w *world) { w.node("others", "q", 4, nil) }, "EMPTY CAPACITY PROVIDER"},
		{"it drains", func(w *world) {
			w.node("ours", "p", 4, func(i *state.ContainerInstance) { i.Status = aws.String("DRAINING") })
		}, "NO ACTIVE INSTANCES"},
		{"too few GPUs", func(w *world) { w.node("ours", "p", 1, nil) }, "RESOURCE:GPU"},
		{"its agent is away", func(w *world) {
			w.node("ours", "p", 4, func(i *state.ContainerInstance) { i.AgentConnected = false })
		}, "AGENT"},
		{"the nearest counts", func(w *world) {
			w.node("away", "p", 4, func(i *state.ContainerInstance) { i.AgentConnected = false })
			w.node("small", "p", 1, nil)
		}, "RESOURCE:GPU"},
	} {
		t.Run(c.name, func(t *testing.T) {
			running(t, func(w *world) {
				task := w.wait("two", 2)
				c.node(w)
				time.Sleep(patience - time.Second)
				w.expect(task, "PROVISIONING", "")
				time.Sleep(2 * time.Second)
				w.expect(task, "STOPPED", "")
				if got := w.store.View().Tasks.Get(task); got.StopCode != types.TaskStopCodeTaskFailedToStart ||
					*got.StoppedReason != c.want || got.StoppedAt == nil {
					t.Errorf("it was stopped as %s: %s, want %s", got.StopCode, *got.StoppedReason, c.want)
				}
			})
		})
	}
}

// TestPatienceOfTheLoop checks that a control plane that was away counts tasks' time from its own start.
func TestPatienceOfTheLoop(t *testing.T) {
	var task string
	runningAfter(t, func(w *world) {
		task = w.wait("one", 1)
		time.Sleep(2 * patience)
	}, func(w *world) {
		time.Sleep(patience - time.Second)
		w.expect(task, "PROVISIONING", "")
		time.Sleep(2 * time.Second)
		w.expect(task, "STOPPED", "")
	})
}

// TestPlace checks, for random tasks and instances, that no instance uses more GPUs than it has, that every task that
// fits is placed, and that exactly those that waited too long are stopped.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := open(t, t.TempDir())
		defer w.store.Close() //nolint:errcheck // the test is over
		start := time.Now()
		asked, free := map[string]int{}, map[string]int{}
		for range rapid.IntRange(0, 12).Draw(r, "tasks") {
			gpus := rapid.IntRange(1, 2).Draw(r, "gpus")
			asked[w.wait([]string{"one", "two"}[gpus-1], gpus)] = gpus
		}
		for n := range rapid.IntRange(0, 4).Draw(r, "nodes") {
			name := fmt.Sprint("node", n)
			free[name] = rapid.IntRange(0, 4).Draw(r, "devices")
			w.node(name, "p", free[name], nil)
		}
		late := rapid.Bool().Draw(r, "late")
		now := start.Add(map[bool]time.Duration{false: time.Minute, true: patience + time.Minute}[late])
		w.change(func(tx *state.Tx) { Place(tx, w.scheduler, start, now) })
		left := maps.Clone(asked)
		for task := range w.store.View().Tasks.All() {
			if task.ContainerInstanceArn != nil {
				free[*task.ContainerInstanceArn] -= asked[*task.TaskArn]
				delete(left, *task.TaskArn)
			} else if stopped := *task.LastStatus == "STOPPED"; stopped != late {
				r.Fatalf("%s is %s, late: %v", *task.TaskArn, *task.LastStatus, late)
			}
		}
		for name, n := range free {
			if n < 0 {
				r.Fatalf("%s has %d GPUs too few", name, -n)
			}
			for task, gpus := range left {
				if gpus <= n {
					r.Fatalf("%s waits for %d GPUs, and %s has %d free", task, gpus, name, n)
				}
			}
		}
	})
}

// TestNewTasksTakeTheirTurn: while tasks wait for a provider, a service that has its share can't take what becomes free with the tasks that
// replace those which ended.
func TestNewTasksTakeTheirTurn(t *testing.T) {
	running(t, func(w *world) {
		w.provider("p")
		w.node("node", "p", 1, nil)
		launch := func(service string) string {
			w.Helper()
			time.Sleep(time.Millisecond) // the oldest comes first among equals
			var task *state.Task
			w.change(func(tx *state.Tx) {
				l := launchOf(tx, "one", "p")
				l.Group, l.ServiceArn = "service:"+service, service
				task, _ = w.scheduler.Launch(tx, l)
			})
			if task == nil {
				w.Fatal("the task is refused")
			}
			synctest.Wait()
			return *task.TaskArn
		}
		first := launch("greedy")
		w.expect(first, "PENDING", "node")
		modest := launch("modest")
		w.expect(modest, "PROVISIONING", "")
		w.stop(first) // the loop looks a second later at most; the replacement comes before
		again := launch("greedy")
		w.expect(modest, "PENDING", "node")
		w.expect(again, "PROVISIONING", "")
		w.stop(modest)
		time.Sleep(recheckEvery)
		synctest.Wait()
		w.expect(again, "PENDING", "node")
	})
}

// launchOf is the launch of a task of a definition, which may wait for its provider.
func launchOf(tx *state.Tx, definition, provider string) *scheduler.Launch {
	td := tx.TaskDefinitions.Get(definition)
	overrides := &types.TaskOverride{}
	return &scheduler.Launch{
		ClusterArn:       cluster,
		TaskDefinition:   td,
		Overrides:        overrides,
		Need:             scheduler.NeedOf(&td.TaskDefinition, overrides),
		Group:            "family:" + definition,
		CapacityProvider: provider,
		MayWait:          true,
		Now:              time.Now(),
	}
}

// TestNobodyJumpsTheQueue: a new task that can't wait, since its provider doesn't grow, it has none, or as many wait as may, gets only what
// those that wait leave. It gets that at once.
func TestNobodyJumpsTheQueue(t *testing.T) {
	const quota = 500
	for _, c := range []struct {
		name     string
		provider string
		waiting  int
		gpus     int // of the node that comes
		placed   bool
	}{
		{"the queue is full, one GPU", "p", quota, 1, false},
		{"the queue is full, a GPU for each", "p", quota, quota, false},
		{"the queue is full, a GPU for each and one more", "p", quota, quota + 1, true},
		{"no provider", "", 2, 2, false},
		{"no provider, room for all", "", 2, 3, true},
		{"no provider, nobody waits", "", 0, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := open(t, t.TempDir())
			defer w.store.Close() //nolint:errcheck // the test is over
			w.provider("p")
			for range c.waiting {
				w.wait("one", 1)
			}
			w.node("ours", "p", c.gpus, func(i *state.ContainerInstance) { i.Capacity.MemoryMiB = 64 << 10 })
			var got *state.Task
			w.change(func(tx *state.Tx) { got, _ = w.scheduler.Launch(tx, launchOf(tx, "one", c.provider)) })
			if placed := got != nil && got.ContainerInstanceArn != nil; placed != c.placed {
				t.Errorf("placed: %v, want %v", placed, c.placed)
			}
			for i := range min(c.waiting, c.gpus) {
				w.expect(fmt.Sprintf("task-%02d", i+1), "PENDING", "ours")
			}
		})
	}
}

// TestOthersPassTheFullQueue: a task that needs nothing of what those that wait lack is placed, however many wait.
func TestOthersPassTheFullQueue(t *testing.T) {
	w := open(t, t.TempDir())
	defer w.store.Close() //nolint:errcheck // the test is over
	w.provider("p")
	for range 500 {
		w.wait("two", 2)
	}
	w.node("ours", "p", 1, nil)
	w.change(func(tx *state.Tx) {
		if got, _ := w.scheduler.Launch(tx, launchOf(tx, "one", "p")); got == nil || got.ContainerInstanceArn == nil {
			t.Error("a task of one GPU doesn't get the one that no task of two can use")
		}
	})
}

// stop ends a task.
func (w *world) stop(task string) {
	w.change(func(tx *state.Tx) {
		tx.Tasks.Put(tx.Tasks.Get(task).Stopped(types.TaskStopCodeEssentialContainerExited, "", time.Now()))
	})
}

// provider makes a capacity provider that grows.
func (w *world) provider(name string) {
	w.change(func(tx *state.Tx) {
		tx.CapacityProviders.Put(&state.CapacityProvider{CapacityProvider: types.CapacityProvider{
			CapacityProviderArn: &name,
			Name:                &name,
			AutoScalingGroupProvider: &types.AutoScalingGroupProvider{
				ManagedScaling: &types.ManagedScaling{Status: types.ManagedScalingStatusEnabled},
			},
		}})
	})
}
