package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/gpu/nvml"
)

const mebibyte = 1 << 20

// pciDevices is where the kernel describes PCI devices.
const pciDevices = "/sys/bus/pci/devices"

// NVML is a node's real GPUs. One goroutine reads their load.
type NVML struct {
	lib     *nvml.Library
	log     *slog.Logger
	driver  string
	gpus    []*nvmlGPU
	events  nvml.Events
	watched bool            // the driver reports errors to events
	samples int             // how often Load was called
	told    map[string]bool // what is new since the agent's start, and was logged
}

// nvmlGPU is a device, or a slice of one (MIG).
type nvmlGPU struct {
	acs.GPUDevice
	handle nvml.Device
	board  nvml.Device // the whole device; a slice takes temperature and power from it
	bus    string
	xids   []uint64 // the driver's errors since the last Load
	silent int      // how many samples the driver has answered for it with nothing but an error
	gone   bool     // the driver no longer lists it
}

// OpenNVML finds the GPUs with the library of this machine's driver.
func OpenNVML(log *slog.Logger) (*NVML, error) {
	lib, err := nvml.Open(nvml.Name)
	if err != nil {
		return nil, err
	}
	return NewNVML(lib, log)
}

// NewNVML finds the GPUs through NVML. Without a driver or a device that answers it returns an error that says so, and the caller decides
// whether that matters.
func NewNVML(lib *nvml.Library, log *slog.Logger) (*NVML, error) {
	if ret := lib.Init(); ret != nvml.Success {
		return nil, fmt.Errorf("NVML: %w", ret)
	}
	n := &NVML{lib: lib, log: log, told: map[string]bool{}}
	var err error
	if n.gpus, err = n.find(func(gpu int, err error) {
		log.Warn("a GPU does not answer: the node goes without it", "index", gpu, "error", err)
	}); err == nil && len(n.gpus) == 0 {
		err = errors.New("NVML: there is no GPU that answers")
	}
	if err != nil {
		lib.Shutdown() //nolint:errcheck // the first error matters more
		return nil, err
	}
	n.driver, _ = lib.DriverVersion()
	n.findLinks()
	n.subscribe()
	return n, nil
}

// find lists the devices that answer, and calls leaveOut for each other one.
func (n *NVML) find(leaveOut func(gpu int, err error)) (out []*nvmlGPU, err error) {
	count, ret := n.lib.DeviceCount()
	if ret != nvml.Success {
		return nil, fmt.Errorf("NVML: count GPUs: %w", ret)
	}
	for i := range count {
		d, ret := n.lib.Device(i)
		if ret != nvml.Success {
			leaveOut(i, ret) // it doesn't even say its id
			continue
		}
		for _, slice := range slicesOf(d) {
			g, err := describe(i, slice, d)
			if err != nil {
				leaveOut(i, err)
				continue
			}
			out = append(out, g)
		}
	}
	return out, nil
}

// slicesOf lists the slices of a device (MIG), or the device itself if it has none.
func slicesOf(d nvml.Device) []nvml.Device {
	if sliced, ret := d.IsSliced(); ret != nvml.Success || !sliced {
		return []nvml.Device{d}
	}
	most, _ := d.MaxSlices()
	var out []nvml.Device
	for i := range most {
		if slice, ret := d.Slice(i); ret == nvml.Success {
			out = append(out, slice)
		}
	}
	return out
}

func describe(index int, d, board nvml.Device) (*nvmlGPU, error) {
	id, ret := d.UUID()
	if ret != nvml.Success {
		return nil, fmt.Errorf("its id: %w", ret)
	}
	g := &nvmlGPU{handle: d, board: board}
	g.ID = id
	g.Index = index
	g.Model, _ = d.Name()
	if d != board {
		_, g.Profile, _ = strings.Cut(g.Model, " MIG ")
		if slice, ret := d.SliceID(); ret == nvml.Success {
			g.Slice = strconv.FormatUint(uint64(slice), 10)
		}
	}
	m, ret := d.Memory()
	if ret != nvml.Success && !ret.IsAbsence() { // a GPU that is broken says its id, and then nothing
		return nil, fmt.Errorf("%s: its memory: %w", id, ret)
	}
	g.MemoryMiB = int64(m.Total / mebibyte)
	if bus, ret := board.Bus(); ret == nvml.Success {
		g.Bus = bus
		g.bus = busID(bus)
		g.NUMA = numaNode(pciDevices, g.bus)
	}
	return g, nil
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
		for l := range nvml.MaxLinks {
			if active, ret := g.board.LinkIsActive(l); ret != nvml.Success || !active {
				continue
			}
			remote, ret := g.board.LinkRemoteBus(l)
			if j, ok := byBus[busID(remote)]; ok && ret == nvml.Success {
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
	events, ret := n.lib.Events()
	if ret != nvml.Success {
		return
	}
	n.events = events
	n.watched = true
	for _, g := range n.gpus {
		g.board.ReportErrors(events) //nolint:errcheck // not every device has events
	}
}

// readEvents stores the errors that the driver has reported since the last call.
func (n *NVML) readEvents() {
	if !n.watched {
		return
	}
	for range maxEvents {
		d, xid, ret := n.events.Next()
		if ret != nvml.Success {
			return
		}
		bus, ret := d.Bus() // fails for a lost device
		for _, g := range n.gpus {
			if d == g.board || ret == nvml.Success && g.bus == busID(bus) {
				g.xids = append(g.xids, xid)
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

// Load implements Source. A temperature or power that a device doesn't report is 0.
func (n *NVML) Load(context.Context, func(string) float64) []Sample {
	n.readEvents()
	if n.samples++; n.samples%lookAgain == 0 {
		n.look()
	}
	var out []Sample
	for _, g := range n.gpus {
		l := acs.GPULoad{ID: g.ID, MemoryMiB: g.MemoryMiB, XIDErrors: g.xids}
		g.xids = nil
		figures := g.figures()
		if u, ret := g.handle.Utilization(); ret == nvml.Success {
			l.UtilizationPct = new(float64(u.GPU))
			figures[memCopyUtil] = float64(u.Memory)
			figures[engineActive] = float64(u.GPU) / 100 // the closest that NVML has
		}
		m, ret := g.handle.Memory()
		l.MemoryUsedMiB = int64(m.Used / mebibyte)
		if m.Reserved > 0 {
			figures[fbReserved] = float64(m.Reserved / mebibyte)
		}
		if c, ret := g.board.Temperature(); ret == nvml.Success {
			l.TemperatureC = float64(c)
		}
		if mw, ret := g.board.Power(); ret == nvml.Success {
			l.PowerW = float64(mw) / 1000
		}
		out = append(out, Sample{l, Fault(g.signs(l.XIDErrors, ret)), figures})
	}
	return out
}

// lookAgain is after how many samples, one a second, the driver is asked again which devices there are.
const lookAgain = 60

// look asks the driver which devices there are. One that is no longer there, such as a slice that was destroyed, is a fault. A new one is
// only logged: an instance has the GPUs that it registered with.
func (n *NVML) look() {
	complete := true
	now, err := n.find(func(int, error) { complete = false })
	if err != nil {
		return // each device's own state tells
	}
	listed := map[string]bool{}
	for _, g := range now {
		listed[g.ID] = true
		known := slices.ContainsFunc(n.gpus, func(have *nvmlGPU) bool { return have.ID == g.ID })
		if !known && !n.told[g.ID] {
			n.told[g.ID] = true
			n.log.Warn("there is a new GPU: no task gets it until the agent is restarted", "gpu", g.ID)
		}
	}
	for _, g := range n.gpus {
		g.gone = complete && !listed[g.ID]
	}
}

// maxSilence is how many samples in a row the driver may fail to answer for a device. One failure may be chance.
const maxSilence = 5

// signs reads the state of a device's health. memory is what its memory was answered with.
func (g *nvmlGPU) signs(xids []uint64, memory nvml.Return) Signs {
	s := Signs{XIDs: xids, Gone: g.gone}
	var ret nvml.Return
	if s.UncorrectedECC, ret = g.board.UncorrectedErrors(); ret != nvml.Success {
		s.UncorrectedECC = 0
	}
	if memory == nvml.GPUIsLost || memory == nvml.ResetRequired {
		ret = memory // without ECC, the count of its errors fails before it notices either
	}
	s.Lost = ret == nvml.GPUIsLost
	s.NeedsReset = ret == nvml.ResetRequired
	g.silent++
	if memory == nvml.Success || memory.IsAbsence() {
		g.silent = 0
	}
	if g.silent >= maxSilence {
		s.Silent = memory.Error()
	}
	if rows, ret := g.board.RemappedRows(); ret == nvml.Success {
		s.RemapFailed = rows.Failed
	}
	if action, ret := g.board.Field(nvml.FieldRecoveryAction); ret == nvml.Success {
		s.Recovery = action
	}
	return s
}

// Recovered implements Source. Drivers report it since R565.
func (n *NVML) Recovered(id string) bool {
	for _, g := range n.gpus {
		if g.ID == id {
			action, ret := g.board.Field(nvml.FieldRecoveryAction)
			return ret == nvml.Success && action == 0
		}
	}
	return false
}

// figures reads those of dcgm-exporter's metrics that NVML has.
func (g *nvmlGPU) figures() map[string]float64 {
	m := map[string]float64{}
	note(m, smClock)(g.board.Clock(nvml.ClockSM))
	note(m, memClock)(g.board.Clock(nvml.ClockMemory))
	note(m, pcieReplays)(g.board.PCIeReplays())
	note(m, encoderUtil)(g.board.Encoder())
	note(m, decoderUtil)(g.board.Decoder())
	note(m, memTemp)(g.board.Field(nvml.FieldMemoryTemperature))
	if mJ, ret := g.board.Energy(); ret == nvml.Success {
		m[energy] = float64(mJ)
	}
	if rows, ret := g.board.RemappedRows(); ret == nvml.Success {
		m[remappedCorr] = float64(rows.Corrected)
		m[remappedUnc] = float64(rows.Uncorrected)
		m[remapFailure] = 0
		if rows.Failed {
			m[remapFailure] = 1
		}
	}
	return m
}

// note returns a function that notes a figure which the device reports.
func note(m map[string]float64, name string) func(uint32, nvml.Return) {
	return func(v uint32, ret nvml.Return) {
		if ret == nvml.Success {
			m[name] = float64(v)
		}
	}
}

// Close shuts NVML down.
func (n *NVML) Close() {
	if n.watched {
		n.events.Free() //nolint:errcheck // the process ends
	}
	n.lib.Shutdown() //nolint:errcheck // the process ends
}
