package gpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
)

// machine is a DGX A100, with what the mock leaves out. Its GPUs' links end at remote, the others are
// down; events are what the driver has to say.
func machine(links int, remote func(gpu, link int) string, events ...nvml.EventData) *dgxa100.Server {
	s := dgxa100.New()
	set := &mock.EventSet{FreeFunc: func() nvml.Return { return nvml.SUCCESS }, WaitFunc: func(uint32) (e nvml.EventData, ret nvml.Return) {
		if len(events) == 0 {
			return e, nvml.ERROR_TIMEOUT
		}
		e, events = events[0], events[1:]
		e.Device = s.Devices[e.GpuInstanceId]
		return e, nvml.SUCCESS
	}}
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return set, nvml.SUCCESS }
	for i := range s.Devices {
		d := s.Devices[i].(*dgxa100.Device)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return pci(bus(i)), nvml.SUCCESS }
		d.GetNvLinkStateFunc = func(l int) (nvml.EnableState, nvml.Return) {
			if l < links {
				return nvml.FEATURE_ENABLED, nvml.SUCCESS
			}
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		}
		d.GetNvLinkRemotePciInfoFunc = func(l int) (nvml.PciInfo, nvml.Return) { return pci(remote(i, l)), nvml.SUCCESS }
		d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return { return nvml.SUCCESS }
		d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
			if i == 7 {
				return 3, nvml.SUCCESS
			}
			return 0, nvml.SUCCESS
		}
		d.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) { return nvml.Utilization{Gpu: uint32(10 * i)}, nvml.SUCCESS }
		d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 40, nvml.SUCCESS }
		d.GetPowerUsageFunc = func() (uint32, nvml.Return) { return 61500, nvml.SUCCESS }
	}
	return s
}

func bus(gpu int) string { return fmt.Sprintf("00000000:%02X:00.0", gpu+1) }

func pci(bus string) (p nvml.PciInfo) {
	for i := range bus {
		p.BusId[i] = int8(bus[i])
	}
	return p
}

func toSwitch(int, int) string { return "00000000:C1:00.0" }

func find(t *testing.T, lib nvml.Interface) *NVML {
	t.Helper()
	n, err := NewNVML(lib)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func TestNVMLFindsAMachinesGPUs(t *testing.T) {
	n := find(t, machine(12, toSwitch))
	seen := map[string]bool{}
	for _, d := range n.Devices() {
		seen[d.ID] = true
		if d.Simulated || d.Model == "" || d.MemoryMiB != 40960 {
			t.Errorf("got %+v", d)
		}
	}
	if len(seen) != 8 || n.Driver() == "" {
		t.Errorf("%d ids, want 8; driver %q", len(seen), n.Driver())
	}
}

func TestNVLinks(t *testing.T) {
	neighbour := func(gpu, _ int) string { return bus(gpu ^ 1) }
	for _, c := range []struct {
		name   string
		links  int
		remote func(gpu, link int) string
		want   []int // of GPU 2
	}{
		{"none", 0, toSwitch, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		{"through switches", 12, toSwitch, []int{12, 12, 0, 12, 12, 12, 12, 12}},
		{"in pairs", 4, neighbour, []int{0, 0, 0, 4, 0, 0, 0, 0}},
	} {
		if got := find(t, machine(c.links, c.remote)).Devices()[2].Links; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNVMLLoadAndErrors(t *testing.T) {
	n := find(t, machine(0, toSwitch, nvml.EventData{GpuInstanceId: 2, EventData: 79}, nvml.EventData{GpuInstanceId: 2, EventData: 31}))
	l := n.Load(context.Background(), nil)
	if g := l[2]; g.UtilizationPct != 20 || g.TemperatureC != 40 || g.PowerW != 61.5 || g.MemoryMiB != 40960 || !slices.Equal(g.XIDErrors, []uint64{79, 31}) {
		t.Errorf("got %+v", g)
	}
	if !slices.Equal(l[7].XIDErrors, []uint64{eccXID}) {
		t.Errorf("memory errors from before are %v", l[7].XIDErrors)
	}
	if l = n.Load(context.Background(), nil); l[2].XIDErrors != nil || l[7].XIDErrors != nil {
		t.Errorf("told again: %+v", l)
	}
}

func TestSlices(t *testing.T) {
	s := machine(0, toSwitch)
	d := s.Devices[0].(*dgxa100.Device)
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i > 1 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{
			GetUUIDFunc:       func() (string, nvml.Return) { return fmt.Sprintf("MIG-%d", i), nvml.SUCCESS },
			GetNameFunc:       func() (string, nvml.Return) { return "A100 MIG 3g.20gb", nvml.SUCCESS },
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 20 << 30}, nvml.SUCCESS },
		}, nvml.SUCCESS
	}
	got := find(t, s).Devices()
	if len(got) != 9 || got[0].ID != "MIG-0" || got[1].ID != "MIG-1" || got[1].MemoryMiB != 20480 {
		t.Errorf("got %+v", got)
	}
}

func TestWithoutNVML(t *testing.T) {
	missing := &mock.Interface{InitFunc: func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }}
	missing.ExtensionsFunc = func() nvml.ExtendedInterface { return nil }
	if _, err := NewNVML(missing); err == nil {
		t.Error("found GPUs without the library")
	}
	empty := dgxa100.New()
	empty.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	if _, err := NewNVML(empty); err == nil {
		t.Error("found GPUs where there are none")
	}
}

func TestNUMANode(t *testing.T) {
	root := t.TempDir()
	for bus, content := range map[string]string{"0000:01:00.0": "1\n", "0000:02:00.0": "-1\n"} {
		if err := os.MkdirAll(filepath.Join(root, bus), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, bus, "numa_node"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for gpu, want := range []int{1, 0, 0} {
		if got := numaNode(root, busID(pci(bus(gpu)))); got != want {
			t.Errorf("GPU %d: node %d, want %d", gpu, got, want)
		}
	}
}
