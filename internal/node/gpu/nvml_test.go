package gpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
)

// machine returns a mock of a DGX A100, completed with what the mock leaves out. Each GPU has the given number of links, which end at
// remote; its other links are down. events are what the driver reports.
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
		d.GetClockInfoFunc = func(c nvml.ClockType) (uint32, nvml.Return) {
			return map[nvml.ClockType]uint32{nvml.CLOCK_SM: 1410, nvml.CLOCK_MEM: 1215}[c], nvml.SUCCESS
		}
		d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 123456, nvml.SUCCESS }
		d.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 5, nvml.SUCCESS }
		d.GetEncoderUtilizationFunc = func() (uint32, uint32, nvml.Return) { return 6, 0, nvml.SUCCESS }
		d.GetDecoderUtilizationFunc = func() (uint32, uint32, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
		d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{Reserved: 300 << 20}, nvml.SUCCESS }
		d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 2, false, i == 5, nvml.SUCCESS }
		d.GetFieldValuesFunc = fields(map[uint32]uint32{nvml.FI_DEV_MEMORY_TEMP: 44})
	}
	return s
}

// fields returns a GetFieldValues that knows these fields and no others.
func fields(known map[uint32]uint32) func([]nvml.FieldValue) nvml.Return {
	return func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			v, ok := known[values[i].FieldId]
			if !ok {
				values[i].NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
			}
			binary.NativeEndian.PutUint32(values[i].Value[:], v)
		}
		return nvml.SUCCESS
	}
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

func TestNVMLDevices(t *testing.T) {
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
	if g := l[2]; g.UtilizationPct != 20 || g.TemperatureC != 40 || g.PowerW != 61.5 || g.MemoryMiB != 40960 ||
		!slices.Equal(g.XIDErrors, []uint64{79, 31}) {
		t.Errorf("got %+v", g)
	}
	if l[2].Fault != "Xid 79, it has fallen off the bus" || l[7].Fault != "memory errors that could not be corrected: 3" ||
		l[5].Fault != "a row of its memory could not be remapped" || l[0].Fault != "" {
		t.Errorf("the faults are %q, %q, %q and %q", l[2].Fault, l[7].Fault, l[5].Fault, l[0].Fault)
	}
	want := map[string]float64{
		smClock: 1410, memClock: 1215, memTemp: 44, energy: 123456, pcieReplays: 5, encoderUtil: 6, fbReserved: 300, memCopyUtil: 0,
		remappedCorr: 1, remappedUnc: 2, remapFailure: 1, engineActive: 0.5,
	}
	if !maps.Equal(l[5].Figures, want) {
		t.Errorf("figures %v, want %v", l[5].Figures, want)
	}
	if l = n.Load(context.Background(), nil); l[2].XIDErrors != nil || l[2].Fault != "" {
		t.Errorf("told again: %+v", l)
	}
}

// TestLostGPU: a lost GPU's error is reported although the GPU itself no longer answers, and an agent that starts then has the other GPUs.
func TestLostGPU(t *testing.T) {
	s := machine(0, toSwitch, nvml.EventData{GpuInstanceId: 2, EventData: 79})
	n := find(t, s)
	lost := s.Devices[2].(*dgxa100.Device)
	lost.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_GPU_IS_LOST }
	if l := n.Load(t.Context(), nil); l[2].Fault != "Xid 79, it has fallen off the bus" || l[1].Fault != "" {
		t.Errorf("the faults are %q and %q", l[2].Fault, l[1].Fault)
	}
	lost.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	byIndex := s.DeviceGetHandleByIndexFunc
	s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i == 5 {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return byIndex(i)
	}
	if n := find(t, s); len(n.Devices()) != 6 || len(n.Load(t.Context(), nil)) != 6 {
		t.Errorf("without two that are lost there are %d", len(n.Devices()))
	}
}

func TestFaultsThatTheDriverReports(t *testing.T) {
	s := machine(0, toSwitch)
	action := func(gpu int, a nvml.DeviceGpuRecoveryAction) {
		s.Devices[gpu].(*dgxa100.Device).GetFieldValuesFunc = fields(map[uint32]uint32{nvml.FI_DEV_GET_GPU_RECOVERY_ACTION: uint32(a)})
	}
	action(0, nvml.GPU_RECOVERY_ACTION_NONE)
	action(1, nvml.GPU_RECOVERY_ACTION_NODE_REBOOT)
	n := find(t, s)
	for gpu, ret := range map[int]nvml.Return{2: nvml.ERROR_GPU_IS_LOST, 3: nvml.ERROR_RESET_REQUIRED} {
		d := s.Devices[gpu].(*dgxa100.Device)
		d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 9, ret }
	}
	s.Devices[4].(*dgxa100.Device).GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	s.Devices[4].(*dgxa100.Device).GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_GPU_IS_LOST }
	l := n.Load(t.Context(), nil)
	for gpu, want := range []string{
		"", "the driver asks to reboot the machine", "the driver has lost it", "the driver wants it reset", "the driver has lost it",
	} {
		if l[gpu].Fault != want {
			t.Errorf("GPU %d: %q, want %q", gpu, l[gpu].Fault, want)
		}
	}
	for gpu, want := range []bool{true, false, false} { // the driver doesn't say for GPU 2
		if got := n.Recovered(n.Devices()[gpu].ID); got != want {
			t.Errorf("GPU %d needs no repair: %v, want %v", gpu, got, want)
		}
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
			GetUUIDFunc:          func() (string, nvml.Return) { return fmt.Sprintf("MIG-%d", i), nvml.SUCCESS },
			GetGpuInstanceIdFunc: func() (int, nvml.Return) { return 1 + i, nvml.SUCCESS },
			GetNameFunc:          func() (string, nvml.Return) { return "A100 MIG 3g.20gb", nvml.SUCCESS },
			GetMemoryInfoFunc:    func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 20 << 30}, nvml.SUCCESS },
		}, nvml.SUCCESS
	}
	got := find(t, s).Devices()
	if len(got) != 9 || got[0].ID != "MIG-0" || got[1].ID != "MIG-1" || got[1].MemoryMiB != 20480 || got[1].Index != 0 ||
		got[1].Slice != "2" || got[1].Profile != "3g.20gb" || got[2].Index != 1 || got[2].Slice != "" {
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
		if got := numaNode(root, busID(bus(gpu))); got != want {
			t.Errorf("GPU %d: node %d, want %d", gpu, got, want)
		}
	}
}
