package node

import (
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/exposition"
	"github.com/pintle/pintle/internal/histogram"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/gpu"
)

// This file exports a node's GPUs to Prometheus. Names and labels are those of NVIDIA's dcgm-exporter (its default-counters.csv), so its
// dashboards work here. Like the exporter, the node leaves out what a device doesn't report. We add labels for the task, which are empty
// while a GPU is free.

// gauge is one metric of a GPU.
type gauge struct {
	exposition.Metric
	value func(*gpu.Sample) float64
}

// utilization is left out where the device doesn't say: 0 would be an idle GPU.
var utilization = exposition.Metric{Name: "DCGM_FI_DEV_GPU_UTIL", Help: "How busy the GPU is, in percent."}

func newGauge(name, help string, value func(*gpu.Sample) float64) gauge {
	return gauge{exposition.Metric{Name: name, Help: help}, value}
}

var gauges = []gauge{
	newGauge("DCGM_FI_DEV_GPU_TEMP", "The GPU's temperature, in degrees Celsius.", func(g *gpu.Sample) float64 { return g.TemperatureC }),
	newGauge("DCGM_FI_DEV_POWER_USAGE", "The power that the GPU draws, in watts.", func(g *gpu.Sample) float64 { return g.PowerW }),
	newGauge("DCGM_FI_DEV_FB_USED", "The GPU's memory in use, in MiB.", func(g *gpu.Sample) float64 { return float64(g.MemoryUsedMiB) }),
	newGauge("DCGM_FI_DEV_FB_FREE", "The GPU's memory that is free, in MiB.", func(g *gpu.Sample) float64 {
		return float64(g.MemoryFreeMiB())
	}),
	newGauge("DCGM_FI_DEV_XID_ERRORS", "The number of the last error (XID) that the driver gave; 0 is none.", lastError),
}

func lastError(g *gpu.Sample) float64 {
	if len(g.XIDErrors) == 0 {
		return 0
	}
	return float64(g.XIDErrors[len(g.XIDErrors)-1])
}

var prefetched = exposition.Metric{
	Name: "pintle_prefetched_images_total", Counter: true, Help: "Images that the node has pulled before its tasks wanted them.",
}

// What the agent does, by its node.
var (
	connected       = exposition.Metric{Name: "pintle_agent_connected", Help: "1 if the control plane's connection is open over which tasks come, or 0."}
	agentTasks      = exposition.Metric{Name: "pintle_agent_tasks", Help: "Tasks of the node that haven't ended, by what they do."}
	unreported      = exposition.Metric{Name: "pintle_agent_unreported_tasks", Help: "Tasks of which the control plane doesn't know the newest yet."}
	imagePulls      = exposition.Metric{Name: "pintle_agent_pull_seconds", Help: "How long pulls of images took.", Bounds: engine.PullBounds}
	containerStarts = exposition.Metric{Name: "pintle_agent_start_seconds", Help: "How long starts of containers took, once they were created.", Bounds: engine.StartBounds}
)

// exposeWork adds what the agent does.
func (a *Agent) exposeWork(page *exposition.Page) {
	host := exposition.Label{Name: "Hostname", Value: a.config.Name}
	page.Add(connected, map[bool]float64{true: 1}[a.acs.Load() != nil], host)
	select {
	case <-a.ready:
	default:
		return
	}
	f := a.engine.Figures()
	for status, n := range f.Tasks {
		page.Add(agentTasks, float64(n), host, exposition.Label{Name: "status", Value: status})
	}
	page.Add(unreported, float64(f.Unreported), host)
	add := func(m exposition.Metric, by map[string]*histogram.Histogram) {
		for outcome, h := range by {
			classes, sum := h.Counts()
			page.AddClasses(m, classes, sum.Seconds(), host, exposition.Label{Name: "outcome", Value: outcome})
		}
	}
	add(imagePulls, f.Pulls)
	add(containerStarts, f.Starts)
	if a.config.Prefetch {
		page.Add(prefetched, float64(a.engine.Prefetched()), host)
	}
}

// Expose adds the node's GPUs to a page of metrics, and what its agent does. The labels are dcgm-exporter's and ours. Those of a slice are empty for a whole device,
// which Prometheus treats as absent.
func (a *Agent) Expose(page *exposition.Page) {
	a.exposeWork(page)
	devices := map[string]acs.GPUDevice{}
	for _, d := range a.config.GPUs.Devices() {
		devices[d.ID] = d
	}
	for _, g := range a.sampler.GPUs() {
		d := devices[g.ID]
		n := strconv.Itoa(d.Index)
		labels := []exposition.Label{
			{Name: "gpu", Value: n},
			{Name: "UUID", Value: g.ID},
			{Name: "pci_bus_id", Value: d.Bus},
			{Name: "device", Value: "nvidia" + n},
			{Name: "modelName", Value: d.Model},
			{Name: "Hostname", Value: a.config.Name},
			{Name: "GPU_I_PROFILE", Value: d.Profile},
			{Name: "GPU_I_ID", Value: d.Slice},
			{Name: "DCGM_FI_DRIVER_VERSION", Value: a.config.GPUs.Driver()},
			{Name: "simulated", Value: strconv.FormatBool(g.Simulated)},
			{Name: "task", Value: g.TaskArn[strings.LastIndexByte(g.TaskArn, '/')+1:]},
			{Name: "container", Value: g.Container},
		}
		if g.UtilizationPct != nil {
			page.Add(utilization, *g.UtilizationPct, labels...)
		}
		for _, m := range gauges {
			page.Add(m.Metric, m.value(&g), labels...)
		}
		for _, f := range gpu.Figures { // those that only some devices have
			if v, ok := g.Figures[f.Name]; ok {
				page.Add(exposition.Metric{Name: f.Name, Help: f.Help, Counter: f.Counter}, v, labels...)
			}
		}
	}
}
