package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/pintle/pintle/internal/acs"
)

const mebibyte = 1 << 20

// pciDevices is where the kernel describes PCI devices.
const pciDevices = "/sys/bus/pci/devices"

// NVML is a node's real GPUs. One goroutine reads their load.
type NVML struct {
	lib    nvml.Interface
	driver string
	gpus   []*nvmlGPU
	events nvml.EventSet // nil if the driver has no events
}

// nvmlGPU is a device, or a slice of one (MIG).
type nvmlGPU struct {
	acs.GPUDevice
	handle nvml.Device
	board  nvml.Device // the whole device; a slice takes temperature and power from it
	bus    string
	xids   []uint64 // the driver's errors since the last Load
}

// NewNVML finds the GPUs through NVML. Without the library or a device it returns an error that says so, and the caller decides whether
// that matters. lib is nvml.New(), except in tests.
func NewNVML(lib nvml.Interface) (*NVML, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML: %w", ret)
	}
	n := &NVML{lib: lib}
	if err := n.find(); err != nil {
		lib.Shutdown() //nolint:errcheck // the first error matters more
		return nil, err
	}
	n.driver, _ = lib.SystemGetDriverVersion()
	n.findLinks()
	n.subscribe()
	return n, nil
}

func (n *NVML) find() error {
	count, ret := n.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("NVML: count GPUs: %w", ret)
	}
	for i := range count {
		d, ret := n.lib.DeviceGetHandleByIndex(i)
		if ret == nvml.ERROR_GPU_IS_LOST {
			continue // a lost GPU doesn't even report its id, so the node has one less
		}
		if ret != nvml.SUCCESS {
			return fmt.Errorf("NVML: GPU %d: %w", i, ret)
		}
		for _, slice := range slicesOf(d) {
			if err := n.add(i, slice, d); err != nil && !errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
				return fmt.Errorf("NVML: GPU %d: %w", i, err)
			}
		}
	}
	if len(n.gpus) == 0 {
		return fmt.Errorf("NVML finds no GPUs")
	}
	return nil
}

// slicesOf lists the slices of a device (MIG), or the device itself if it has none.
func slicesOf(d nvml.Device) []nvml.Device {
	if mode, _, ret := d.GetMigMode(); ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return []nvml.Device{d}
	}
	most, _ := d.GetMaxMigDeviceCount()
	var out []nvml.Device
	for i := range most {
		if slice, ret := d.GetMigDeviceHandleByIndex(i); ret == nvml.SUCCESS {
			out = append(out, slice)
		}
	}
	return out
}

func (n *NVML) add(index int, d, board nvml.Device) error {
	id, ret := d.GetUUID()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("its id: %w", ret)
	}
	g := &nvmlGPU{handle: d, board: board}
	g.ID = id
	g.Index = index
	g.Model, _ = d.GetName()
	if d != board {
		_, g.Profile, _ = strings.Cut(g.Model, " MIG ")
		if slice, ret := d.GetGpuInstanceId(); ret == nvml.SUCCESS {
			g.Slice = strconv.Itoa(slice)
		}
	}
	if m, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		g.MemoryMiB = int64(m.Total / mebibyte)
	}
	if pci, ret := board.GetPciInfo(); ret == nvml.SUCCESS {
		g.Bus = busName(pci)
		g.bus = busID(g.Bus)
		g.NUMA = numaNode(pciDevices, g.bus)
	}
	n.gpus = append(n.gpus, g)
	return nil
}

// busName returns a PCI device's address as NVIDIA writes it: 00000000:3B:00.0.
func busName(pci nvml.PciInfo) string {
	var b strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// busID converts NVIDIA's form of a PCI address to the kernel's: 0000:3b:00.0.
func busID(name string) string {
	s := strings.ToLower(name)
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) > 4 {
		return domain[len(domain)-4:] + ":" + rest
	}
	return s
}

// numaNode returns the NUMA node of a PCI device, or 0 on a machine with only one.
func numaNode(root, bus string) int {
	b, err := os.ReadFile(filepath.Join(root, bus, "numa_node"))
	if err != nil {
		return 0
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return max(node, 0) // the kernel says -1 for none
}

// findLinks counts the active NVLinks between each pair of devices. A link that ends at an NVSwitch, or whose end the driver doesn't
// report, counts towards every other device.
func (n *NVML) findLinks() {
	byBus := map[string]int{}
	for i, g := range n.gpus {
		byBus[g.bus] = i
	}
	for i, g := range n.gpus {
		links := make([]int, len(n.gpus))
		switched := 0
		for l := range nvml.NVLINK_MAX_LINKS {
			if state, ret := g.board.GetNvLinkState(l); ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
				continue
			}
			remote, ret := g.board.GetNvLinkRemotePciInfo(l)
			if j, ok := byBus[busID(busName(remote))]; ok && ret == nvml.SUCCESS {
				links[j]++
			} else {
				switched++
			}
		}
		for j := range links {
			if n.gpus[j].bus != g.bus {
				links[j] += switched
			}
		}
		n.gpus[i].Links = links
	}
}

// subscribe asks the driver to report errors (XID), including those of ECC. If it can't, the GPUs are used all the same.
func (n *NVML) subscribe() {
	events, ret := n.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	n.events = events
	for _, g := range n.gpus {
		g.board.RegisterEvents(nvml.EventTypeXidCriticalError, events) //nolint:errcheck // not every device has events
	}
}

// readEvents stores the errors that the driver has reported since the last call.
func (n *NVML) readEvents() {
	if n.events == nil {
		return
	}
	for range maxEvents {
		e, ret := n.events.Wait(0)
		if ret != nvml.SUCCESS {
			return
		}
		pci, ret := e.Device.GetPciInfo() // fails for a lost device
		for _, g := range n.gpus {
			if e.Device == g.board || ret == nvml.SUCCESS && g.bus == busID(busName(pci)) {
				g.xids = append(g.xids, e.EventData)
			}
		}
	}
}

// maxEvents limits how many errors one call reads. A device that keeps failing says nothing new.
const maxEvents = 64

// Devices implements Source.
func (n *NVML) Devices() []acs.GPUDevice {
	var out []acs.GPUDevice
	for _, g := range n.gpus {
		out = append(out, g.GPUDevice)
	}
	return out
}

// Driver implements Source.
func (n *NVML) Driver() string { return n.driver }

// Load implements Source. A value that a device doesn't report is 0.
func (n *NVML) Load(context.Context, func(string) float64) []Sample {
	n.readEvents()
	var out []Sample
	for _, g := range n.gpus {
		l := acs.GPULoad{ID: g.ID, MemoryMiB: g.MemoryMiB, XIDErrors: g.xids}
		g.xids = nil
		figures := g.figures()
		if u, ret := g.handle.GetUtilizationRates(); ret == nvml.SUCCESS {
			l.UtilizationPct = float64(u.Gpu)
			figures[memCopyUtil] = float64(u.Memory)
			figures[engineActive] = float64(u.Gpu) / 100 // the closest that NVML has
		}
		if m, ret := g.handle.GetMemoryInfo(); ret == nvml.SUCCESS {
			l.MemoryUsedMiB = int64(m.Used / mebibyte)
		}
		if c, ret := g.board.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
			l.TemperatureC = float64(c)
		}
		if mw, ret := g.board.GetPowerUsage(); ret == nvml.SUCCESS {
			l.PowerW = float64(mw) / 1000
		}
		out = append(out, Sample{l, Fault(g.signs(l.XIDErrors)), figures})
	}
	return out
}

// signs reads the state of a device's health.
func (g *nvmlGPU) signs(xids []uint64) Signs {
	s := Signs{XIDs: xids}
	var ret nvml.Return
	if s.UncorrectedECC, ret = g.board.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); ret != nvml.SUCCESS {
		s.UncorrectedECC = 0
	}
	if _, memory := g.board.GetMemoryInfo(); memory == nvml.ERROR_GPU_IS_LOST || memory == nvml.ERROR_RESET_REQUIRED {
		ret = memory // without ECC, GetTotalEccErrors fails before it notices either
	}
	s.Lost = ret == nvml.ERROR_GPU_IS_LOST
	s.NeedsReset = ret == nvml.ERROR_RESET_REQUIRED
	if _, _, _, failed, ret := g.board.GetRemappedRows(); ret == nvml.SUCCESS {
		s.RemapFailed = failed
	}
	s.Recovery, _ = field(g.board, nvml.FI_DEV_GET_GPU_RECOVERY_ACTION)
	return s
}

// Recovered implements Source. Drivers report it since R565.
func (n *NVML) Recovered(id string) bool {
	for _, g := range n.gpus {
		if g.ID == id {
			action, ok := field(g.board, nvml.FI_DEV_GET_GPU_RECOVERY_ACTION)
			return ok && nvml.DeviceGpuRecoveryAction(action) == nvml.GPU_RECOVERY_ACTION_NONE
		}
	}
	return false
}

// field reads one of the device's numbered NVML fields, an unsigned integer.
func field(d nvml.Device, id uint32) (uint32, bool) {
	values := []nvml.FieldValue{{FieldId: id}}
	if ret := d.GetFieldValues(values); ret != nvml.SUCCESS || nvml.Return(values[0].NvmlReturn) != nvml.SUCCESS {
		return 0, false
	}
	return binary.NativeEndian.Uint32(values[0].Value[:]), true
}

// figures reads those of dcgm-exporter's metrics that NVML has.
func (g *nvmlGPU) figures() map[string]float64 {
	m := map[string]float64{}
	note := func(name string, v float64, ret nvml.Return) {
		if ret == nvml.SUCCESS {
			m[name] = v
		}
	}
	sm, ret := g.board.GetClockInfo(nvml.CLOCK_SM)
	note(smClock, float64(sm), ret)
	mem, ret := g.board.GetClockInfo(nvml.CLOCK_MEM)
	note(memClock, float64(mem), ret)
	mJ, ret := g.board.GetTotalEnergyConsumption()
	note(energy, float64(mJ), ret)
	replays, ret := g.board.GetPcieReplayCounter()
	note(pcieReplays, float64(replays), ret)
	enc, _, ret := g.board.GetEncoderUtilization()
	note(encoderUtil, float64(enc), ret)
	dec, _, ret := g.board.GetDecoderUtilization()
	note(decoderUtil, float64(dec), ret)
	memory, ret := g.handle.GetMemoryInfo_v2()
	note(fbReserved, float64(memory.Reserved/mebibyte), ret)
	corrected, uncorrected, _, failed, ret := g.board.GetRemappedRows()
	note(remappedCorr, float64(corrected), ret)
	note(remappedUnc, float64(uncorrected), ret)
	failure := 0.0
	if failed {
		failure = 1
	}
	note(remapFailure, failure, ret)
	if celsius, ok := field(g.board, nvml.FI_DEV_MEMORY_TEMP); ok {
		m[memTemp] = float64(celsius)
	}
	return m
}

// Close shuts NVML down.
func (n *NVML) Close() {
	if n.events != nil {
		n.events.Free() //nolint:errcheck // the process ends
	}
	n.lib.Shutdown() //nolint:errcheck // the process ends
}
