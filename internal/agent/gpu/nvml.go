package gpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/pintle/pintle/internal/acs"
)

const mebibyte = 1 << 20

// pciDevices is where the kernel tells about PCI devices.
const pciDevices = "/sys/bus/pci/devices"

// NVML is a node's real GPUs. One goroutine reads their load.
type NVML struct {
	lib    nvml.Interface
	driver string
	gpus   []*nvmlGPU
	events nvml.EventSet // nil where the driver gives none
}

// nvmlGPU is a device, or a slice of one (MIG).
type nvmlGPU struct {
	acs.GPUDevice
	handle nvml.Device
	board  nvml.Device // the device itself, of which a slice shows temperature and power
	bus    string
	xids   []uint64 // the driver's errors since they were told last
}

// NewNVML finds the GPUs through NVML. Without the library or a device it returns an error that says
// so; the caller decides whether that matters. lib is nvml.New() but in tests.
func NewNVML(lib nvml.Interface) (*NVML, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML: %w", ret)
	}
	n := &NVML{lib: lib}
	if err := n.find(); err != nil {
		lib.Shutdown() //nolint:errcheck // the error above matters
		return nil, err
	}
	n.driver, _ = lib.SystemGetDriverVersion()
	n.link()
	n.listen()
	return n, nil
}

func (n *NVML) find() error {
	count, ret := n.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("NVML: count GPUs: %w", ret)
	}
	for i := range count {
		d, ret := n.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			return fmt.Errorf("NVML: GPU %d: %w", i, ret)
		}
		for _, slice := range parts(d) {
			if err := n.add(slice, d); err != nil {
				return fmt.Errorf("NVML: GPU %d: %w", i, err)
			}
		}
	}
	if len(n.gpus) == 0 {
		return fmt.Errorf("NVML finds no GPUs")
	}
	return nil
}

// parts are what a device is cut into (MIG), or the device itself.
func parts(d nvml.Device) []nvml.Device {
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

func (n *NVML) add(d, board nvml.Device) error {
	id, ret := d.GetUUID()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("its id: %w", ret)
	}
	g := &nvmlGPU{handle: d, board: board}
	g.ID = id
	g.Model, _ = d.GetName()
	if m, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		g.MemoryMiB = int64(m.Total / mebibyte)
	}
	if pci, ret := board.GetPciInfo(); ret == nvml.SUCCESS {
		g.bus = busID(pci)
		g.NUMA = numaNode(pciDevices, g.bus)
	}
	if n, ret := board.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); ret == nvml.SUCCESS && n > 0 {
		g.xids = append(g.xids, eccXID) // from before we listened
	}
	n.gpus = append(n.gpus, g)
	return nil
}

// eccXID is the driver's error code for memory errors that could not be corrected.
const eccXID = 48

// busID is a PCI device's address as the kernel writes it: 0000:3b:00.0.
func busID(pci nvml.PciInfo) string {
	var b strings.Builder
	for _, c := range pci.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	s := strings.ToLower(b.String())
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) > 4 {
		return domain[len(domain)-4:] + ":" + rest
	}
	return s
}

// numaNode is the NUMA node of a PCI device; 0 where there is but one.
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

// link counts the active NVLinks between each pair of devices. Links that end at an NVSwitch, or where
// the driver does not say, let a device reach every other.
func (n *NVML) link() {
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
			if j, ok := byBus[busID(remote)]; ok && ret == nvml.SUCCESS {
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

// listen asks the driver for its errors (XID), ECC's among them. A driver that gives none is no reason
// not to use its GPUs.
func (n *NVML) listen() {
	events, ret := n.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	n.events = events
	for _, g := range n.gpus {
		g.board.RegisterEvents(nvml.EventTypeXidCriticalError, events) //nolint:errcheck // not every device has them
	}
}

// hear takes the errors that have come.
func (n *NVML) hear() {
	if n.events == nil {
		return
	}
	for range maxEvents {
		e, ret := n.events.Wait(0)
		if ret != nvml.SUCCESS {
			return
		}
		pci, ret := e.Device.GetPciInfo()
		for _, g := range n.gpus {
			if ret == nvml.SUCCESS && g.bus == busID(pci) {
				g.xids = append(g.xids, e.EventData)
			}
		}
	}
}

// maxEvents bounds what is heard at once: a device that fails all the time says nothing new.
const maxEvents = 64

// Devices is Source's.
func (n *NVML) Devices() []acs.GPUDevice {
	var out []acs.GPUDevice
	for _, g := range n.gpus {
		out = append(out, g.GPUDevice)
	}
	return out
}

// Driver is Source's.
func (n *NVML) Driver() string { return n.driver }

// Load is Source's. A figure that a device does not give is 0.
func (n *NVML) Load(context.Context, func(string) float64) []acs.GPULoad {
	n.hear()
	var out []acs.GPULoad
	for _, g := range n.gpus {
		l := acs.GPULoad{ID: g.ID, MemoryMiB: g.MemoryMiB, XIDErrors: g.xids}
		g.xids = nil
		if u, ret := g.handle.GetUtilizationRates(); ret == nvml.SUCCESS {
			l.UtilizationPct = float64(u.Gpu)
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
		out = append(out, l)
	}
	return out
}

// Close lets go of NVML.
func (n *NVML) Close() {
	if n.events != nil {
		n.events.Free() //nolint:errcheck // the process ends
	}
	n.lib.Shutdown() //nolint:errcheck // the process ends
}
