package node

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/exposition"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/gpu"
)

// exported are the metrics that dcgm-exporter 4.8 has by default, with their types: those in its etc/default-counters.csv, except the one
// that is a label.
var exported = map[string]dto.MetricType{
	"DCGM_FI_DEV_SM_CLOCK": dto.MetricType_GAUGE, "DCGM_FI_DEV_MEM_CLOCK": dto.MetricType_GAUGE,
	"DCGM_FI_DEV_MEMORY_TEMP": dto.MetricType_GAUGE, "DCGM_FI_DEV_GPU_TEMP": dto.MetricType_GAUGE,
	"DCGM_FI_DEV_POWER_USAGE": dto.MetricType_GAUGE, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": dto.MetricType_COUNTER,
	"DCGM_FI_DEV_PCIE_REPLAY_COUNTER": dto.MetricType_COUNTER,
	"DCGM_FI_DEV_GPU_UTIL":            dto.MetricType_GAUGE, "DCGM_FI_DEV_MEM_COPY_UTIL": dto.MetricType_GAUGE,
	"DCGM_FI_DEV_ENC_UTIL": dto.MetricType_GAUGE, "DCGM_FI_DEV_DEC_UTIL": dto.MetricType_GAUGE,
	"DCGM_FI_DEV_XID_ERRORS": dto.MetricType_GAUGE,
	"DCGM_FI_DEV_FB_FREE":    dto.MetricType_GAUGE, "DCGM_FI_DEV_FB_USED": dto.MetricType_GAUGE,
	"DCGM_FI_DEV_FB_RESERVED":            dto.MetricType_GAUGE,
	"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": dto.MetricType_GAUGE, "DCGM_FI_DEV_VGPU_LICENSE_STATUS": dto.MetricType_GAUGE,
	"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": dto.MetricType_COUNTER, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": dto.MetricType_COUNTER,
	"DCGM_FI_DEV_ROW_REMAP_FAILURE": dto.MetricType_GAUGE,
	"DCGM_FI_PROF_GR_ENGINE_ACTIVE": dto.MetricType_GAUGE, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": dto.MetricType_GAUGE,
	"DCGM_FI_PROF_DRAM_ACTIVE":   dto.MetricType_GAUGE,
	"DCGM_FI_PROF_PCIE_TX_BYTES": dto.MetricType_GAUGE, "DCGM_FI_PROF_PCIE_RX_BYTES": dto.MetricType_GAUGE,
}

// charted are the metrics in the panels and variables of dcgm-exporter's Grafana dashboard (12239), which selects by Hostname and gpu and
// groups by UUID.
var charted = []string{
	"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
	"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE",
}

// deviceLabels are the labels that dcgm-exporter gives every metric of a device.
var deviceLabels = []string{"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION"}

// TestMetricsAreDCGMExporters: the text that a node serves has every metric, type and label of dcgm-exporter's, and no other metrics.
func TestMetricsAreDCGMExporters(t *testing.T) {
	typ, err := instancetype.Lookup("p3.8xlarge")
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{Name: "host-1", DataDir: t.TempDir(), Runtime: newFakeRuntime(), GPUs: gpu.NewSimulated("n", typ)})
	id := a.config.GPUs.Devices()[1].ID
	a.sampler.load[id] = 0.75
	a.sampler.keep(a.config.GPUs.Load(t.Context(), a.sampler.busy), map[string]engine.Pin{id: {TaskArn: taskArn, Container: "main"}})
	families := scrape(t, a)
	for name, want := range exported {
		f := families[name]
		if f == nil || f.GetType() != want || f.GetHelp() == "" || len(f.Metric) != 4 {
			t.Errorf("%s is %v, want a %v of 4 GPUs", name, f, want)
			continue
		}
		for i, m := range f.Metric {
			labels := labelsOf(m)
			for _, l := range deviceLabels {
				if labels[l] == "" {
					t.Errorf("%s of GPU %d has no label %s", name, i, l)
				}
			}
		}
	}
	for _, name := range charted {
		if families[name] == nil {
			t.Errorf("the dashboard's %s is missing", name)
		}
	}
	if m := families["pintle_agent_connected"].GetMetric(); len(m) != 1 || m[0].GetGauge().GetValue() != 0 || labelsOf(m[0])["Hostname"] != "host-1" {
		t.Errorf("a node that isn't connected shows %v", m)
	}
	maps.DeleteFunc(families, func(name string, _ *dto.MetricFamily) bool { return strings.HasPrefix(name, "pintle_agent_") })
	if len(families) != len(exported) {
		t.Errorf("there are more: %v", slices.Collect(maps.Keys(families)))
	}
	i := slices.IndexFunc(families["DCGM_FI_DEV_GPU_UTIL"].Metric, func(m *dto.Metric) bool { return labelsOf(m)["UUID"] == id })
	m := families["DCGM_FI_DEV_GPU_UTIL"].Metric[i]
	want := map[string]string{
		"gpu": "1", "UUID": id, "pci_bus_id": "00000000:02:00.0", "device": "nvidia1", "modelName": typ.GPUModel, "Hostname": "host-1",
		"DCGM_FI_DRIVER_VERSION": "simulated", "simulated": "true", "task": "t1", "container": "main",
	}
	if got := labelsOf(m); !maps.Equal(got, want) || m.GetGauge().GetValue() != 75 {
		t.Errorf("%v of %v, want %v", m.GetGauge().GetValue(), got, want)
	}
	if v := families["DCGM_FI_PROF_GR_ENGINE_ACTIVE"].Metric[i].GetGauge().GetValue(); v != 0.75 {
		t.Errorf("the share of time in use is %v", v)
	}
}

// TestUnreportedMetricsAreLeftOut: like dcgm-exporter, the node leaves out what a device doesn't report.
func TestUnreportedMetricsAreLeftOut(t *testing.T) {
	a := New(Config{Name: "n", DataDir: t.TempDir(), Runtime: newFakeRuntime()})
	a.sampler.keep([]gpu.Sample{
		{
			GPULoad: acs.GPULoad{ID: "GPU-1", UtilizationPct: new(0.0), MemoryMiB: 81559, MemoryUsedMiB: 21490},
			Figures: map[string]float64{"DCGM_FI_DEV_SM_CLOCK": 1410, "DCGM_FI_DEV_FB_RESERVED": 480},
		},
		{GPULoad: acs.GPULoad{ID: "MIG-2"}}, // NVML doesn't say how busy a slice is; 0 would be an idle one
	}, nil)
	families := scrape(t, a)
	if f := families["DCGM_FI_DEV_SM_CLOCK"]; f == nil || len(f.Metric) != 1 || families["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"] != nil ||
		len(families["DCGM_FI_DEV_GPU_UTIL"].Metric) != 1 || len(families["DCGM_FI_DEV_GPU_TEMP"].Metric) != 2 {
		t.Errorf("got %v", families)
	}
	if free := families["DCGM_FI_DEV_FB_FREE"].Metric[0].GetGauge().GetValue(); free != 59589 {
		t.Errorf("%v MiB of an H100 are free, 59589 by nvidia-smi", free)
	}
}

// scrape returns the node's metrics as Prometheus reads them.
func scrape(t *testing.T, a *Agent) map[string]*dto.MetricFamily {
	t.Helper()
	var page exposition.Page
	a.Expose(&page)
	var text bytes.Buffer
	if err := page.Write(&text); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(&text)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// labelsOf returns a metric's labels without empty ones, which Prometheus treats as absent.
func labelsOf(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.Label {
		if l.GetValue() != "" {
			out[l.GetName()] = l.GetValue()
		}
	}
	return out
}

// sliced is a node with one GPU that is cut into two slices.
type sliced struct{ gpu.None }

func (sliced) Devices() []acs.GPUDevice {
	return []acs.GPUDevice{{ID: "MIG-1", Index: 3, Slice: "1", Profile: "3g.20gb"}, {ID: "MIG-2", Index: 3, Slice: "2", Profile: "3g.20gb"}}
}

// TestSliceLabels: like dcgm-exporter, the node labels a slice with its device's number and its own.
func TestSliceLabels(t *testing.T) {
	a := New(Config{Name: "n", DataDir: t.TempDir(), Runtime: newFakeRuntime(), GPUs: sliced{}})
	a.sampler.keep([]gpu.Sample{{GPULoad: acs.GPULoad{ID: "MIG-1"}}, {GPULoad: acs.GPULoad{ID: "MIG-2"}}}, nil)
	m := scrape(t, a)["DCGM_FI_DEV_FB_USED"].Metric
	for i, id := range []string{"1", "2"} {
		if l := labelsOf(m[i]); l["gpu"] != "3" || l["device"] != "nvidia3" || l["GPU_I_ID"] != id || l["GPU_I_PROFILE"] != "3g.20gb" ||
			l["UUID"] != "MIG-"+id {
			t.Errorf("slice %s has the labels %v", id, l)
		}
	}
}
