package pages

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/console/login"
	"github.com/pintle/pintle/internal/ecs/nodelink"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const aCluster = "arn:aws:ecs:us-east-1:000000000000:cluster/default"

// fleet answers for a cluster whose nodes' GPUs have a load.
type fleet struct{ load float64 }

func (f *fleet) Telemetry(instanceArn string) (t nodelink.Telemetry, has bool) {
	for g := range 8 {
		load := f.load
		t.GPUs = append(t.GPUs, acs.GPULoad{ID: gpuID(instanceArn, g), UtilizationPct: &load, MemoryMiB: 32768, MemoryUsedMiB: 1024, TemperatureC: 50})
	}
	return t, true
}

func (f *fleet) Call(_ context.Context, in any) (any, error) {
	switch in := in.(type) {
	case *ecs.ListContainerInstancesInput:
		return &ecs.ListContainerInstancesOutput{}, nil
	case *ecs.ListTasksInput:
		return &ecs.ListTasksOutput{}, nil
	case *ecs.ListClustersInput:
		return &ecs.ListClustersOutput{}, nil
	case *ecs.DescribeContainerInstancesInput:
		return &ecs.DescribeContainerInstancesOutput{ContainerInstances: []types.ContainerInstance{{ContainerInstanceArn: aws.String(instanceArn(in.ContainerInstances[0]))}}}, nil
	}
	return nil, fmt.Errorf("nobody expects %T", in)
}

func instanceArn(id string) string {
	return "arn:aws:ecs:us-east-1:000000000000:container-instance/default/" + id
}

func gpuID(instanceArn string, n int) string {
	return fmt.Sprintf("GPU-%s-%d", state.NameOf(instanceArn), n)
}

// withNodes returns pages of a cluster with nodes of eight GPUs, every other of which is held by a task.
func withNodes(t testing.TB, nodes int, f *fleet) *Pages {
	t.Helper()
	store := statetest.Open(t)
	t.Cleanup(func() { store.Close() })
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for i := range nodes {
			arn := instanceArn(fmt.Sprintf("%032x", i))
			row := &state.ContainerInstance{
				ContainerInstance: types.ContainerInstance{ContainerInstanceArn: &arn, Status: aws.String("ACTIVE"), AgentConnected: true},
				ClusterArn:        aCluster,
			}
			task := &state.Task{Task: types.Task{
				TaskArn:    aws.String(fmt.Sprintf("arn:aws:ecs:us-east-1:000000000000:task/default/%032x", i)),
				ClusterArn: aws.String(aCluster), ContainerInstanceArn: &arn, Group: aws.String("service:<train>"),
				LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
			}}
			for g := range 8 {
				row.GPUs = append(row.GPUs, state.GPU{ID: gpuID(arn, g)})
				task.GPUs = append(task.GPUs, state.HeldGPU{Container: "main", ID: gpuID(arn, g), Milli: 1000})
			}
			tx.ContainerInstances.Put(row)
			if i%2 == 0 {
				tx.Tasks.Put(task)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{MayList: everybody, Now: time.Now, Store: store, Link: f, Services: f, Sessions: login.New(login.Options{Now: time.Now})})
}

// TestCluster: the page has 512 nodes and counts all of them. What their GPUs do is told when it's asked for.
func TestCluster(t *testing.T) {
	p := withNodes(t, 600, &fleet{load: 57})
	page := send(p, "GET", "/console/", nil).Body.String()
	for _, want := range []string{"<b>600</b> nodes", "<b>4800</b> GPUs", "<b>2400</b> free", `class="held l5"`, `class="free l5"`, "Page 1 of 2"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if n := strings.Count(page, `class="node`); n != nodesOfAPage+1 { // and the list of them
		t.Errorf("the page has %d nodes", n-1)
	}
	tip := send(p, "GET", "/console/nodes/default/"+fmt.Sprintf("%032x", 2)+"/gpus", nil)
	if got := tip.Body.String(); strings.Count(got, "\n") != 7 || !strings.Contains(got, "57 % load, 1.0 GiB of 32.0 GiB, 50 °C, task 0") ||
		!strings.HasPrefix(tip.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("the tip is %s", got)
	}
}

// TestOwners: owners are named with their colours, which are different ones as long as there are enough.
func TestOwners(t *testing.T) {
	page := send(withNodes(t, 4, &fleet{}), "GET", "/console/?by=owner", nil).Body.String()
	if !strings.Contains(page, " &lt;train&gt;: <b>16</b>") {
		t.Errorf("the page doesn't name an owner: %s", page)
	}
	held := map[string]int{}
	for n := range ownerColours {
		held[fmt.Sprint("service ", n)] = 1
	}
	seen := map[int]bool{}
	for _, c := range coloursOf(held) {
		seen[c] = true
	}
	if len(seen) != ownerColours {
		t.Errorf("%d owners have %d colours", ownerColours, len(seen))
	}
	held["one more"] = 1
	if got := len(coloursOf(held)); got != ownerColours+1 {
		t.Errorf("%d of %d owners have a colour", got, ownerColours+1)
	}
}

// BenchmarkCluster renders the page of a large cluster, whose nodes' load changes each time, and the changes.
func BenchmarkCluster(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			f := &fleet{}
			p := withNodes(b, nodes, f)
			page := func() string { return send(p, "GET", "/console/", nil).Body.String() }
			b.ReportAllocs()
			for b.Loop() {
				f.load = float64((int(f.load) + 10) % 100)
				b.SetBytes(int64(len(page())))
			}
		})
	}
}
