package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/state"
)

// GPU is one GPU in /pintle/gpus.
type GPU struct {
	Cluster        string
	Node           string
	InstanceType   string
	Connected      bool
	ID             string
	Model          string
	Simulated      bool
	Task           string // empty if the GPU is free
	Container      string
	Service        string   // the task's, if it has one
	UtilizationPct *float64 // nil if it isn't known
	MemoryUsedMiB  int64
	MemoryMiB      int64
	TemperatureC   float64
	PowerW         float64
	Fault          *state.GPUFault
}

// Fault is the body of /pintle/gpus/fault: an error to simulate on a simulated GPU. XID 0 means that a GPU was repaired.
type Fault struct {
	GPU string
	XID uint64
}

func (c *Console) serveGPUs(ctx context.Context, w http.ResponseWriter, _ []byte) {
	may := map[string]bool{}
	for cluster := range c.store.View().Clusters.All() {
		may[*cluster.ClusterArn] = c.opts.MayList(ctx, *cluster.ClusterName) == nil
	}
	writeJSON(w, c.gpus(func(clusterArn string) bool { return may[clusterArn] }))
}

// gpus returns all GPUs of the registered instances of some clusters.
func (c *Console) gpus(isOf func(clusterArn string) bool) []GPU {
	v := c.store.View()
	out := []GPU{}
	for n := range v.ContainerInstances.All() {
		if aws.ToString(n.Status) == "INACTIVE" || !isOf(n.ClusterArn) {
			continue
		}
		out = append(out, c.gpusOf(v, n)...)
	}
	return out
}

// gpusOf returns an instance's GPUs.
func (c *Console) gpusOf(v *state.View, n *state.ContainerInstance) (out []GPU) {
	holders := v.GPUHolders(*n.ContainerInstanceArn)
	telemetry, _ := c.link.Telemetry(*n.ContainerInstanceArn)
	loads := telemetry.Loads()
	for _, g := range n.GPUs {
		l := loads[g.ID]
		var task, service string
		holder, held := holders[g.ID]
		if held {
			task, service = state.NameOf(*holder.Task.TaskArn), state.NameOf(holder.Task.ServiceArn)
		}
		out = append(out, GPU{
			Cluster:        state.NameOf(n.ClusterArn),
			Node:           state.NameOf(*n.ContainerInstanceArn),
			InstanceType:   n.Type(),
			Connected:      n.AgentConnected,
			ID:             g.ID,
			Model:          g.Model,
			Simulated:      g.Simulated,
			Task:           task,
			Container:      holder.Container,
			Service:        service,
			UtilizationPct: l.UtilizationPct,
			MemoryUsedMiB:  l.MemoryUsedMiB,
			MemoryMiB:      l.MemoryMiB,
			TemperatureC:   l.TemperatureC,
			PowerW:         l.PowerW,
			Fault:          g.Fault,
		})
	}
	return out
}

func (c *Console) serveFault(ctx context.Context, w http.ResponseWriter, body []byte) {
	var f Fault
	if err := json.Unmarshal(body, &f); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if status, err := c.fault(ctx, f); err != nil {
		http.Error(w, err.Error(), status)
	}
}

// fault passes a Fault on to the GPU's node. A machine that was set up anew has left an instance behind that lists the same GPUs, so it goes
// to the one that is connected.
func (c *Console) fault(ctx context.Context, f Fault) (status int, err error) {
	status, err = http.StatusNotFound, fmt.Errorf("there is no GPU %q (pintle gpus lists all)", f.GPU)
	for n := range c.store.View().ContainerInstances.All() {
		i := slices.IndexFunc(n.GPUs, func(g state.GPU) bool { return g.ID == f.GPU })
		if i < 0 || aws.ToString(n.Status) == "INACTIVE" {
			continue
		}
		if f.XID != 0 && !n.GPUs[i].Simulated {
			return http.StatusBadRequest, fmt.Errorf("GPU %s is not simulated: errors can only be made up for simulated GPUs", f.GPU)
		}
		refusal := c.link.Fault(ctx, *n.ContainerInstanceArn, f.GPU, f.XID)
		if refusal == nil {
			return http.StatusOK, nil
		}
		status, err = http.StatusConflict, fmt.Errorf("node %s: %w", state.NameOf(*n.ContainerInstanceArn), refusal)
	}
	return status, err
}
