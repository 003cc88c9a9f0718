package gpu

import (
	"context"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/pintle/pintle/internal/acs"
)

const mebibyte = 1 << 20

// NVML is a node's real GPUs.
type NVML struct {
	lib     nvml.Interface
	handles []nvml.Device
	devices []acs.GPUDevice
	driver  string
}

// NewNVML finds the GPUs through NVML. Without the library or a device it returns an error that says
// so; the caller decides whether that matters. lib is nvml.New() but in tests.
func NewNVML(lib nvml.Interface) (*NVML, error) {
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML: %v", ret)
	}
	n := &NVML{lib: lib}
	n.driver, _ = lib.SystemGetDriverVersion()
	count, ret := lib.DeviceGetCount()
	if ret != nvml.SUCCESS || count == 0 {
		lib.Shutdown()
		return nil, fmt.Errorf("NVML finds %d GPUs: %v", count, ret)
	}
	for i := range count {
		if err := n.add(i); err != nil {
			lib.Shutdown()
			return nil, err
		}
	}
	n.link()
	return n, nil
}

func (n *NVML) add(i int) error {
	d, ret := n.lib.DeviceGetHandleByIndex(i)
	if ret != nvml.SUCCESS {
		return fmt.Errorf("NVML: GPU %d: %v", i, ret)
	}
	id, ret := d.GetUUID()
	if ret != nvml.SUCCESS {
		return fmt.Errorf("NVML: the id of GPU %d: %v", i, ret)
	}
	device := acs.GPUDevice{ID: id}
	device.Model, _ = d.GetName()
	if m, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
		device.MemoryMiB = int64(m.Total / mebibyte)
	}
	if node, ret := numaNode(d); ret == nvml.SUCCESS && node >= 0 {
		device.NUMA = node
	}
	n.handles, n.devices = append(n.handles, d), append(n.devices, device)
	return nil
}

// numaNode asks for a device's NUMA node; older drivers cannot tell, and the mock panics.
func numaNode(d nvml.Device) (node int, ret nvml.Return) {
	defer func() {
		if recover() != nil {
			ret = nvml.ERROR_NOT_SUPPORTED
		}
	}()
	return d.GetNumaNodeId()
}

// link counts the active NVLinks between each pair of devices. Links through an NVSwitch end at the
// switch: then every device reaches every other with all of its links.
func (n *NVML) link() {
	byBus := map[[32]int8]int{}
	for i, d := range n.handles {
		if pci, ret := pciInfo(d); ret == nvml.SUCCESS {
			byBus[pci.BusId] = i
		}
	}
	for i, d := range n.handles {
		links := make([]int, len(n.handles))
		switched := 0
		for l := range nvml.NVLINK_MAX_LINKS {
			remote, ok := nvLink(d, l)
			if !ok {
				continue
			}
			if j, ok := byBus[remote.BusId]; ok {
				links[j]++
			} else {
				switched++
			}
		}
		for j := range links {
			if j != i {
				links[j] += switched
			}
		}
		n.devices[i].Links = links
	}
}

func pciInfo(d nvml.Device) (pci nvml.PciInfo, ret nvml.Return) {
	defer func() {
		if recover() != nil {
			ret = nvml.ERROR_NOT_SUPPORTED
		}
	}()
	return d.GetPciInfo()
}

// nvLink is the other end of a device's link, where the link is up.
func nvLink(d nvml.Device, link int) (remote nvml.PciInfo, up bool) {
	defer func() {
		if recover() != nil {
			up = false
		}
	}()
	if state, ret := d.GetNvLinkState(link); ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
		return remote, false
	}
	remote, ret := d.GetNvLinkRemotePciInfo(link)
	return remote, ret == nvml.SUCCESS
}

// Devices is Source's.
func (n *NVML) Devices() []acs.GPUDevice { return n.devices }

// Driver is Source's.
func (n *NVML) Driver() string { return n.driver }

// Load is Source's. A figure that a device does not give is 0.
func (n *NVML) Load(context.Context, func(string) float64) []acs.GPULoad {
	var out []acs.GPULoad
	for i, d := range n.handles {
		l := acs.GPULoad{ID: n.devices[i].ID, MemoryMiB: n.devices[i].MemoryMiB}
		if u, ret := d.GetUtilizationRates(); ret == nvml.SUCCESS {
			l.UtilizationPct = float64(u.Gpu)
		}
		if m, ret := d.GetMemoryInfo(); ret == nvml.SUCCESS {
			l.MemoryUsedMiB = int64(m.Used / mebibyte)
		}
		if c, ret := d.GetTemperature(nvml.TEMPERATURE_GPU); ret == nvml.SUCCESS {
			l.TemperatureC = float64(c)
		}
		if mw, ret := d.GetPowerUsage(); ret == nvml.SUCCESS {
			l.PowerW = float64(mw) / 1000
		}
		out = append(out, l)
	}
	return out
}

// Close lets go of NVML.
func (n *NVML) Close() { n.lib.Shutdown() }
