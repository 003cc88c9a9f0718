package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/ecs/placement"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const cluster = "arn:cluster/c"

func instance(id string, gpus int) *state.ContainerInstance {
	row := &state.ContainerInstance{ClusterArn: cluster, Capacity: state.Resources{CPU: 4096, MemoryMiB: 4096}}
	row.ContainerInstanceArn = aws.String(id)
	row.Status = aws.String("ACTIVE")
	row.AgentConnected = true
	row.Attributes = []types.Attribute{{Name: aws.String("ecs.availability-zone"), Value: aws.String("zone-of-" + id)}}
	for g := range gpus {
		row.GPUs = append(row.GPUs, state.GPU{ID: fmt.Sprintf("%s-gpu%d", id, g)})
	}
	return row
}

func taskOn(id, on string, need Need, gpus []state.HeldGPU) *state.Task {
	return &state.Task{
		Task: types.Task{
			TaskArn:              aws.String(id),
			ClusterArn:           aws.String(cluster),
			ContainerInstanceArn: aws.String(on),
			LastStatus:           aws.String("PENDING"),
			DesiredStatus:        aws.String("RUNNING"),
			Group:                aws.String("g"),
		},
		Reserved: need.Reserved,
		GPUs:     gpus,
	}
}

// TestMatchesStore places, advances, stops and refuses tasks at random. After each transaction the scheduler must
// answer like one that was told only of the store's rows.
func TestMatchesStore(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := New(1)
		dir := t.TempDir()
		store := statetest.OpenIn(t, dir, s)
		defer store.Close()
		instances := []string{"i0", "i1", "i2"}
		for n := range rapid.IntRange(1, 15).Draw(r, "transactions") {
			refuse := errors.New("refused")
			err := store.Update(context.Background(), func(tx *state.Tx) error {
				id := rapid.SampledFrom(instances).Draw(r, "instance")
				switch rapid.IntRange(0, 4).Draw(r, "what") {
				case 0:
					row := instance(id, rapid.IntRange(0, 3).Draw(r, "gpus"))
					if old := tx.ContainerInstances.Get(id); old != nil { // a node keeps its devices
						row = old
					}
					next := *row
					next.AgentConnected = rapid.Bool().Draw(r, "connected")
					next.GPUs = slices.Clone(row.GPUs)
					for i := range next.GPUs {
						next.GPUs[i].Fault = rapid.SampledFrom([]*state.GPUFault{nil, nil, {Reason: "Xid 79"}}).Draw(r, "fault")
					}
					tx.ContainerInstances.Put(&next)
				case 1, 2:
					need := needOf(r)
					p, failures := s.Place(tx.View, request(need))
					if len(failures) == 0 {
						tx.Tasks.Put(taskOn(fmt.Sprint("t", n), p.InstanceArn, need, p.GPUs))
					}
				case 3:
					for old := range tx.Tasks.All() {
						if aws.ToString(old.LastStatus) == "STOPPED" {
							continue // it doesn't come back
						}
						next := *old
						next.LastStatus = aws.String(rapid.SampledFrom([]string{"RUNNING", "STOPPED"}).Draw(r, "status"))
						tx.Tasks.Put(&next)
						break
					}
				case 4:
					for old := range tx.Tasks.All() {
						tx.Tasks.Delete(*old.TaskArn)
						break
					}
				}
				if rapid.IntRange(0, 3).Draw(r, "refuse") == 0 {
					return refuse
				}
				return nil
			})
			if err != nil && !errors.Is(err, refuse) {
				r.Fatal(err) // the ledger refused what the scheduler had planned
			}
			compareWithStore(r, store, s, instances)
		}
	})
}

// TestMixSurvivesRestart lets tasks of one GPU teach placement that whole machines needn't be kept whole, and checks
// that it still knows after the store was reopened.
func TestMixSurvivesRestart(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	open := func() (*state.Store, *Scheduler) {
		s := New(1)
		store := statetest.OpenIn(t, dir, s)
		return store, s
	}
	store, s := open()
	update := func(fn func(*state.Tx)) {
		t.Helper()
		if err := store.Update(ctx, func(tx *state.Tx) error { fn(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	oneGPU := Need{Reserved: state.Resources{CPU: 1024, MemoryMiB: 1024}, GPUs: []placement.ContainerGPUs{{Container: "main", Count: 1}}}
	expect := func(when, want string) {
		t.Helper()
		update(func(tx *state.Tx) {
			if p, failures := s.Place(tx.View, request(oneGPU)); p.InstanceArn != want {
				t.Errorf("%s the task goes to %q, want %s: %v", when, p.InstanceArn, want, failures)
			}
		})
	}
	held := func(id, on, gpu string) *state.Task {
		return taskOn(id, on, oneGPU, []state.HeldGPU{{Container: "main", ID: gpu, Milli: placement.WholeGPU}})
	}
	update(func(tx *state.Tx) {
		snug, roomy := instance("snug", 8), instance("roomy", 8)
		snug.Capacity = state.Resources{CPU: 40000, MemoryMiB: 140000}
		roomy.Capacity = state.Resources{CPU: 400000, MemoryMiB: 1400000}
		tx.ContainerInstances.Put(snug)
		tx.ContainerInstances.Put(roomy)
		tx.Tasks.Put(held("first", "roomy", "roomy-gpu0"))
	})
	expect("at first", "roomy")
	for range 100 {
		update(func(tx *state.Tx) {
			tooMany := oneGPU
			tooMany.GPUs = []placement.ContainerGPUs{{Container: "main", Count: 9}}
			s.Place(tx.View, request(tooMany))
		})
	}
	expect("after refusals", "roomy")
	update(func(tx *state.Tx) {
		for i := range 20 {
			ended := held(fmt.Sprint("ended", i), "snug", "snug-gpu0")
			ended.LastStatus = aws.String("STOPPED")
			tx.Tasks.Put(ended)
		}
	})
	expect("after tasks of one GPU", "snug")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store, s = open()
	defer store.Close()
	expect("after a restart", "snug")
}

func needOf(r *rapid.T) Need {
	n := Need{Reserved: state.Resources{
		CPU:       rapid.Int64Range(1, 3000).Draw(r, "cpu"),
		MemoryMiB: rapid.Int64Range(1, 3000).Draw(r, "memory"),
	}}
	if g := rapid.IntRange(0, 2).Draw(r, "need"); g > 0 {
		n.GPUs = []placement.ContainerGPUs{{Container: "main", Count: g}}
	}
	return n
}

func request(need Need) Request {
	return Request{ClusterArn: cluster, TaskDefinition: &state.TaskDefinition{}, Need: need, Group: "g"}
}

// compareWithStore checks that both schedulers agree on whether each of several tasks fits each instance.
func compareWithStore(r *rapid.T, store *state.Store, s *Scheduler, instances []string) {
	v := store.View()
	fresh := New(1)
	for row := range v.ContainerInstances.All() {
		fresh.Change(nil, row)
	}
	for row := range v.Tasks.All() {
		fresh.Change(nil, row)
	}
	small := request(Need{})
	launch := &Launch{ClusterArn: small.ClusterArn, TaskDefinition: small.TaskDefinition}
	if got, want := s.Zones(v, launch), fresh.Zones(v, launch); !slices.Equal(got, want) {
		r.Fatalf("the zones are %v, the store's rows say %v", got, want)
	}
	for _, id := range instances {
		for _, cpu := range []int64{1, 1000, 2000, 4096} {
			for gpus := range 4 {
				need := Need{Reserved: state.Resources{CPU: cpu, MemoryMiB: cpu}}
				if gpus > 0 {
					need.GPUs = []placement.ContainerGPUs{{Container: "main", Count: gpus}}
				}
				_, got := s.PlaceOn(v, id, request(need))
				_, want := fresh.PlaceOn(v, id, request(need))
				if reason(got) != reason(want) {
					r.Fatalf("%d CPU and %d GPUs on %s: %q, the store's rows say %q", cpu, gpus, id, reason(got), reason(want))
				}
			}
		}
	}
}

func reason(f *types.Failure) string {
	if f == nil {
		return ""
	}
	return *f.Reason
}

// TestMaxWaiting checks that as many tasks of a cluster wait for their capacity provider as ECS's quota allows, and
// none for a provider that doesn't grow.
func TestMaxWaiting(t *testing.T) {
	s := New(1)
	store := statetest.Open(t, s)
	err := store.Update(context.Background(), func(tx *state.Tx) error {
		for name, status := range map[string]types.ManagedScalingStatus{"grows": types.ManagedScalingStatusEnabled,
			"stays": types.ManagedScalingStatusDisabled} {
			tx.CapacityProviders.Put(&state.CapacityProvider{CapacityProvider: types.CapacityProvider{
				CapacityProviderArn:      &name,
				Name:                     &name,
				AutoScalingGroupProvider: &types.AutoScalingGroupProvider{ManagedScaling: &types.ManagedScaling{Status: status}},
			}})
		}
		launch := func(cluster, provider string) *state.Task {
			task, _ := s.Launch(tx, &Launch{
				ClusterArn:       cluster,
				TaskDefinition:   &state.TaskDefinition{TaskDefinition: types.TaskDefinition{TaskDefinitionArn: aws.String("d")}},
				Overrides:        &types.TaskOverride{},
				CapacityProvider: provider,
				MayWait:          true,
			})
			return task
		}
		if launch(cluster, "stays") != nil {
			t.Error("a task waits for a provider that does not grow")
		}
		for n := range 500 {
			if task := launch(cluster, "grows"); task == nil || *task.LastStatus != "PROVISIONING" || task.Waiting == nil {
				t.Fatalf("task %d does not wait: %v", n, task)
			}
		}
		if launch(cluster, "grows") != nil {
			t.Error("501 tasks wait in a cluster")
		}
		if launch(cluster+"2", "grows") == nil {
			t.Error("the tasks of another cluster count")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestFargateElsewhere: a task of Fargate goes to its own cluster's instances, and where these have no room to those for all clusters, of which it
// holds its share until it ends, after a restart, too. Others stay in their cluster. Groups of one name in two clusters are two.
func TestFargateElsewhere(t *testing.T) {
	const own, all = "arn:aws:ecs:r:a:cluster/own", "arn:aws:ecs:r:a:cluster/all"
	dir := t.TempDir()
	in := func(cluster, id string) *state.ContainerInstance {
		row := instance(state.InCluster(cluster, "container-instance", id), 0)
		row.ClusterArn = cluster
		return row
	}
	mine, theirs := in(own, "i"), in(all, "i")
	need := Need{Reserved: state.Resources{CPU: 2048, MemoryMiB: 4096}}
	request := Request{ClusterArn: own, TaskDefinition: &state.TaskDefinition{}, Need: need, Group: "g", Fargate: true}
	held := func(id, on string) *state.Task {
		row := taskOn(id, on, need, nil)
		row.ClusterArn, row.LaunchType = aws.String(own), types.LaunchTypeFargate
		return row
	}
	s := New(1)
	s.Serverless = all
	store := statetest.OpenIn(t, dir, s)
	update := func(change func(tx *state.Tx)) {
		t.Helper()
		if err := store.Update(context.Background(), func(tx *state.Tx) error { change(tx); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, r Request, want string, failures int) {
		t.Helper()
		update(func(tx *state.Tx) {
			if p, why := s.Place(tx.View, r); p.InstanceArn != want || len(why) != failures {
				t.Errorf("%s the task goes to %q, want %q: %v", when, p.InstanceArn, want, why)
			}
		})
	}
	ec2 := request
	ec2.Fargate = false
	update(func(tx *state.Tx) { tx.ContainerInstances.Put(theirs) })
	if !s.Ready(own, true) || s.Ready(own, false) {
		t.Error("without instances of its own, a cluster is not ready for Fargate alone")
	}
	expect("without instances of its own", request, *theirs.ContainerInstanceArn, 0)
	expect("by the launch type EC2", ec2, "", 1)
	update(func(tx *state.Tx) { tx.ContainerInstances.Put(mine) })
	expect("with an instance of its own", request, *mine.ContainerInstanceArn, 0)
	update(func(tx *state.Tx) { tx.Tasks.Put(held("a", *mine.ContainerInstanceArn)) })
	distinct := request
	distinct.Need = Need{}
	distinct.Constraints = []types.PlacementConstraint{{Type: types.PlacementConstraintTypeDistinctInstance}}
	expect("where its own instance is full", request, *theirs.ContainerInstanceArn, 0)
	update(func(tx *state.Tx) {
		other := held("other", *theirs.ContainerInstanceArn)
		other.ClusterArn = aws.String(all)
		tx.Tasks.Put(other)
	})
	expect("beside a group of another cluster", distinct, *theirs.ContainerInstanceArn, 0)
	update(func(tx *state.Tx) {
		tx.Tasks.Delete("other")
		tx.Tasks.Put(held("b", *theirs.ContainerInstanceArn))
	})
	expect("where all are full", request, "", 2)
	expect("with its group on all", distinct, "", 2)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s = New(1) // by now there are no instances for all
	store = statetest.OpenIn(t, dir, s)
	defer store.Close()
	request.ClusterArn = all
	expect("after a restart", request, "", 1)
	update(func(tx *state.Tx) {
		ended := *tx.Tasks.Get("b")
		ended.LastStatus = aws.String("STOPPED")
		tx.Tasks.Put(&ended)
	})
	expect("after a task's end", request, *theirs.ContainerInstanceArn, 0)
}
