package rollout

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/store/journaltest"
)

const (
	settle = 40 * time.Second
	// starting and stopping are how long the world's nodes take.
	starting = 2 * time.Second
	stopping = 3 * time.Second
)

// world is a control plane with its services loop, and nodes that obey their tasks' rows.
type world struct {
	t       testing.TB
	journal *journaltest.Memory
	store   *state.Store
	ecs     *ecs.Service
	loop    *Loop
	ctx     context.Context
	end     func()
	ports   atomic.Int32 // the last one that was bound
	behind  atomic.Bool  // load balancers' processes haven't taken up the latest rules
}

// newWorld opens a world on what a journal holds, and runs it until the test ends.
func newWorld(t testing.TB, rows journaltest.Rows) *world {
	t.Helper()
	w := &world{t: t, journal: journaltest.NewMemory(rows)}
	scheduler := scheduler.New(1)
	loop := New(scheduler, Options{
		Now: time.Now, Settle: settle, Log: slog.New(slog.DiscardHandler),
		CarriedOut: func(v *state.View, arn string) bool { return v.ForwardOf(arn) != nil && !w.behind.Load() },
	})
	store := statetest.OpenOn(t, w.journal, scheduler, loop)
	w.store = store
	w.loop = loop
	w.ecs = ecs.New(store, scheduler, ecs.Options{Account: accounttest.New(time.Now)})
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	var running sync.WaitGroup
	running.Go(func() { loop.Run(ctx, store) }) //nolint:errcheck // it ends with ctx
	running.Go(func() { w.nodes(ctx) })
	w.end = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.end)
	return w
}

// nodes plays every node. A wanted task starts after a while, or fails if its image is "broken". A task that is no
// longer wanted stops.
func (w *world) nodes(ctx context.Context) {
	seen := map[string]bool{}
	for {
		v := w.store.Watch()
		for task := range v.Tasks.All() {
			id := *task.TaskArn + " " + *task.DesiredStatus
			if seen[id] || *task.LastStatus == "STOPPED" || task.Deregistering {
				continue
			}
			seen[id] = true
			if *task.DesiredStatus == "STOPPED" {
				time.AfterFunc(stopping, func() { w.report(ctx, task, "STOPPED", aws.Int32(143)) })
			} else if *task.LastStatus == "PENDING" || *task.LastStatus == "PROVISIONING" && task.Waiting == nil {
				time.AfterFunc(starting, func() {
					if *task.Containers[0].Image == "broken" {
						w.report(ctx, task, "STOPPED", nil)
					} else {
						w.report(ctx, task, "RUNNING", nil)
					}
				})
			}
		}
		if v.Changed(ctx) != nil {
			return
		}
	}
}

func (w *world) report(ctx context.Context, task *state.Task, status string, exit *int32) {
	if status == "RUNNING" && *w.store.View().Tasks.Get(*task.TaskArn).DesiredStatus == "STOPPED" {
		return
	}
	in := &awsecs.SubmitTaskStateChangeInput{Cluster: task.ClusterArn, Task: task.TaskArn, Status: &status}
	for _, c := range task.Containers {
		change := types.ContainerStateChange{ContainerName: c.Name, Status: &status, ExitCode: exit}
		if status == "RUNNING" {
			change.NetworkBindings = []types.NetworkBinding{
				{ContainerPort: aws.Int32(80), HostPort: new(w.ports.Add(1))},
				{ContainerPort: aws.Int32(80), HostPort: new(30000 + w.ports.Load()), Protocol: types.TransportProtocolUdp},
			}
		}
		in.Containers = append(in.Containers, change)
	}
	if _, err := w.ecs.SubmitTaskStateChange(ctx, in); err != nil && ctx.Err() == nil {
		w.t.Error(err)
	}
}

// cluster creates the default cluster, with nodes of 4,096 CPU units and one GPU each.
func (w *world) cluster(nodes int) {
	w.t.Helper()
	if _, err := w.ecs.CreateCluster(w.ctx, &awsecs.CreateClusterInput{}); err != nil {
		w.t.Fatal(err)
	}
	for range nodes {
		w.node()
	}
}

// node adds a connected node.
func (w *world) node(attributes ...types.Attribute) string {
	w.t.Helper()
	out, err := w.ecs.RegisterContainerInstance(w.ctx, &awsecs.RegisterContainerInstanceInput{
		TotalResources: []types.Resource{
			{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: 4096},
			{Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: 4096},
		},
		PlatformDevices: []types.PlatformDevice{{Id: aws.String("GPU-" + state.NewID()), Type: types.PlatformDeviceTypeGpu}},
		Attributes:      append(attributes, types.Attribute{Name: aws.String("ecs.capability.container-health-check")}),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	arn := *out.ContainerInstance.ContainerInstanceArn
	w.update(func(tx *state.Tx) {
		row := *tx.ContainerInstances.Get(arn)
		row.AgentConnected = true
		tx.ContainerInstances.Put(&row)
	})
	return arn
}

func (w *world) update(fn func(*state.Tx)) {
	w.t.Helper()
	if err := w.store.Update(w.ctx, func(tx *state.Tx) error { fn(tx); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// define registers a revision of the family "f".
func (w *world) define(image string, change ...func(*types.ContainerDefinition)) {
	w.t.Helper()
	c := types.ContainerDefinition{Name: aws.String("main"), Image: &image, Cpu: 256, Memory: aws.Int32(64)}
	for _, f := range change {
		f(&c)
	}
	if _, err := w.ecs.RegisterTaskDefinition(w.ctx, &awsecs.RegisterTaskDefinitionInput{
		Family:               aws.String("f"),
		ContainerDefinitions: []types.ContainerDefinition{c},
	}); err != nil {
		w.t.Fatal(err)
	}
}

func oneGPU(c *types.ContainerDefinition) {
	c.ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}}
}

func (w *world) create(desired int32, change ...func(*awsecs.CreateServiceInput)) {
	w.t.Helper()
	in := &awsecs.CreateServiceInput{ServiceName: aws.String("s"), TaskDefinition: aws.String("f"), DesiredCount: &desired}
	for _, f := range change {
		f(in)
	}
	if _, err := w.ecs.CreateService(w.ctx, in); err != nil {
		w.t.Fatal(err)
	}
}

func daemon(in *awsecs.CreateServiceInput) {
	in.DesiredCount = nil
	in.SchedulingStrategy = types.SchedulingStrategyDaemon
}

func (w *world) change(in *awsecs.UpdateServiceInput) {
	w.t.Helper()
	in.Service = aws.String("s")
	if _, err := w.ecs.UpdateService(w.ctx, in); err != nil {
		w.t.Fatal(err)
	}
}

// after lets time pass, and returns the service then.
func (w *world) after(d time.Duration) types.Service {
	w.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	return w.service()
}

func (w *world) service() types.Service {
	w.t.Helper()
	out, err := w.ecs.DescribeServices(w.ctx, &awsecs.DescribeServicesInput{Services: []string{"s"}})
	if err != nil || len(out.Services) != 1 {
		w.t.Fatal(out, err)
	}
	return out.Services[0]
}

// tasks returns the service's wanted tasks, oldest first.
func (w *world) tasks() []*state.Task {
	var out []*state.Task
	for t := range w.store.View().Tasks.All() {
		if *t.DesiredStatus == "RUNNING" {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *state.Task) int { return a.CreatedAt.Compare(*b.CreatedAt) })
	return out
}

// expect checks a service's counts and the state of its PRIMARY deployment.
func expect(t testing.TB, s types.Service, running, pending int32, deployments int, rollout types.DeploymentRolloutState) {
	t.Helper()
	if s.RunningCount != running || s.PendingCount != pending || len(s.Deployments) != deployments ||
		s.Deployments[0].RolloutState != rollout {
		t.Errorf("%d running, %d pending, %d deployments, %s; want %d, %d, %d, %s\n%s",
			s.RunningCount, s.PendingCount, len(s.Deployments), s.Deployments[0].RolloutState, running, pending, deployments,
			rollout, strings.Join(events(s), "\n"))
	}
}

// events returns a service's events, oldest first, with ids cut to one letter.
func events(s types.Service) []string {
	var out []string
	for _, e := range s.Events {
		var words []string
		for _, word := range strings.Fields(*e.Message) {
			if n := len(strings.TrimRight(word, ".)")); n >= 24 {
				word = "ID" + word[n:]
			}
			words = append(words, word)
		}
		out = append(out, fmt.Sprint(strings.Join(words, " ")))
	}
	slices.Reverse(out)
	return out
}
