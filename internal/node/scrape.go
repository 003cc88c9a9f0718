package node

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/gpu"
)

// This file exports a node's GPUs to Prometheus. Names and labels are those of NVIDIA's dcgm-exporter (its default-counters.csv), so its
// dashboards work here. Like the exporter, the node leaves out what a device doesn't report. We add labels for the task, which are empty
// while a GPU is free.

// gpuLabels are dcgm-exporter's labels and ours. Those of a slice are empty for a whole device, which Prometheus treats as absent.
var gpuLabels = []string{
	"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "GPU_I_PROFILE", "GPU_I_ID", "DCGM_FI_DRIVER_VERSION", "simulated",
	"task", "container",
}

// gauge is one metric of a GPU.
type gauge struct {
	desc  *prometheus.Desc
	value func(*acs.GPULoad) float64
}

// utilization is left out where the device doesn't say: 0 would be an idle GPU.
var utilization = prometheus.NewDesc("DCGM_FI_DEV_GPU_UTIL", "How busy the GPU is, in percent.", gpuLabels, nil)

func newGauge(name, help string, value func(*acs.GPULoad) float64) gauge {
	return gauge{prometheus.NewDesc(name, help, gpuLabels, nil), value}
}

var gauges = []gauge{
	newGauge("DCGM_FI_DEV_GPU_TEMP", "The GPU's temperature, in degrees Celsius.", func(g *acs.GPULoad) float64 { return g.TemperatureC }),
	newGauge("DCGM_FI_DEV_POWER_USAGE", "The power that the GPU draws, in watts.", func(g *acs.GPULoad) float64 { return g.PowerW }),
	newGauge("DCGM_FI_DEV_FB_USED", "The GPU's memory in use, in MiB.", func(g *acs.GPULoad) float64 { return float64(g.MemoryUsedMiB) }),
	newGauge("DCGM_FI_DEV_FB_FREE", "The GPU's memory that is free, in MiB.", func(g *acs.GPULoad) float64 {
		return float64(g.MemoryMiB - g.MemoryUsedMiB)
	}),
	newGauge("DCGM_FI_DEV_XID_ERRORS", "The number of the last error (XID) that the driver gave; 0 is none.", lastError),
}

func lastError(g *acs.GPULoad) float64 {
	if len(g.XIDErrors) == 0 {
		return 0
	}
	return float64(g.XIDErrors[len(g.XIDErrors)-1])
}

// figures are the metrics that only some devices have, in the order of gpu.Figures.
var figures = func() []*prometheus.Desc {
	var out []*prometheus.Desc
	for _, f := range gpu.Figures {
		out = append(out, prometheus.NewDesc(f.Name, f.Help, gpuLabels, nil))
	}
	return out
}()

// Describe implements prometheus.Collector. It names no metrics, because the nodes of one machine share them.
func (a *Agent) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (a *Agent) Collect(out chan<- prometheus.Metric) {
	devices := map[string]acs.GPUDevice{}
	for _, d := range a.config.GPUs.Devices() {
		devices[d.ID] = d
	}
	for _, g := range a.sampler.GPUs() {
		d := devices[g.ID]
		n := strconv.Itoa(d.Index)
		task := g.TaskArn[strings.LastIndexByte(g.TaskArn, '/')+1:]
		labels := []string{
			n, g.ID, d.Bus, "nvidia" + n, d.Model, a.config.Name, d.Profile, d.Slice, a.config.GPUs.Driver(),
			strconv.FormatBool(g.Simulated), task, g.Container,
		}
		if g.UtilizationPct != nil {
			out <- prometheus.MustNewConstMetric(utilization, prometheus.GaugeValue, *g.UtilizationPct, labels...)
		}
		for _, m := range gauges {
			out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, m.value(&g.GPULoad), labels...)
		}
		for j, f := range gpu.Figures {
			v, ok := g.Figures[f.Name]
			if !ok {
				continue
			}
			kind := prometheus.GaugeValue
			if f.Counter {
				kind = prometheus.CounterValue
			}
			out <- prometheus.MustNewConstMetric(figures[j], kind, v, labels...)
		}
	}
}
