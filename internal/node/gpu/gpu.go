// Package gpu finds a node's GPUs, reads their load and says which of them are broken: through NVML where
// there are real ones, from a dcgm-exporter that watches them already, or made up after an instance type,
// and marked as such wherever they show. It pins nothing: the control
// plane says which task gets which device.
package gpu

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/instancetype"
)

// Source is where a node's GPUs come from.
type Source interface {
	// Devices are the node's, in an order that lasts.
	Devices() []acs.GPUDevice
	// Driver is the version of the driver, or empty.
	Driver() string
	// Load reads what each device is doing; busy tells the share of the CPUs that a device's task was
	// given which it uses, which is all that can be known of a simulated device.
	Load(ctx context.Context, busy func(id string) float64) []Sample
	// Recovered reports whether the driver itself says that a device needs no repair. Where it is false, the
	// driver may just not say.
	Recovered(id string) bool
}

// Sample is what was seen of a device at once.
type Sample struct {
	acs.GPULoad
	// Fault is why no task may have it, by what shows and what the driver said since the last look.
	Fault string
	// Figures are what else is known of it. Those that a device does not give are left out.
	Figures map[string]float64
}

// None is a node without GPUs.
type None struct{}

// Devices is Source's.
func (None) Devices() []acs.GPUDevice { return nil }

// Driver is Source's.
func (None) Driver() string { return "" }

// Load is Source's.
func (None) Load(context.Context, func(string) float64) []Sample { return nil }

// Recovered is Source's.
func (None) Recovered(string) bool { return false }

// Simulated is a node with the GPUs of an instance type, none of which exist.
type Simulated struct {
	devices []acs.GPUDevice
	typ     instancetype.Type
	looked  time.Time
	energy  map[string]float64 // millijoules

	mu   sync.Mutex
	xids map[string][]uint64 // made up, and not seen yet
}

// NewSimulated makes the GPUs of an instance type. The same node name gives the same ids again.
func NewSimulated(node string, t instancetype.Type) *Simulated {
	s := &Simulated{typ: t, energy: map[string]float64{}, xids: map[string][]uint64{}}
	for i := range t.GPUs {
		s.devices = append(s.devices, acs.GPUDevice{
			ID: simulatedID(node, i), Model: t.GPUModel, MemoryMiB: t.GPUMemMiB, NUMA: t.NUMA(i), Links: t.Links(i),
			Index: i, Bus: fmt.Sprintf("00000000:%02X:00.0", i+1), Simulated: true,
		})
	}
	return s
}

// simulatedID looks like NVML's ids: GPU- and a UUID.
func simulatedID(node string, i int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s/%d", node, i))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// Devices is Source's.
func (s *Simulated) Devices() []acs.GPUDevice { return s.devices }

// Driver is Source's.
func (s *Simulated) Driver() string { return "simulated" }

// The figures that a simulated device shows idle and fully busy.
const (
	idleCelsius, busyCelsius = 35, 75
	idleWatt, busyWatt       = 40, 250
	idleMHz, busyMHz         = 300, 1500
	memoryMHz                = 900
)

// maxMadeUp is the most errors of a device that wait to be seen.
const maxMadeUp = 64

// Fail makes up an error of the driver's.
func (s *Simulated) Fail(id string, xid uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := slices.ContainsFunc(s.devices, func(d acs.GPUDevice) bool { return d.ID == id })
	if !known || len(s.xids[id]) == maxMadeUp {
		return fmt.Errorf("no error can be made up of GPU %s", id)
	}
	s.xids[id] = append(s.xids[id], xid)
	return nil
}

// Recovered is Source's.
func (*Simulated) Recovered(string) bool { return false }

// Load is Source's.
func (s *Simulated) Load(_ context.Context, busy func(id string) float64) []Sample {
	s.mu.Lock()
	xids := s.xids
	s.xids = map[string][]uint64{}
	s.mu.Unlock()
	var since float64 // seconds
	if !s.looked.IsZero() {
		since = time.Since(s.looked).Seconds()
	}
	s.looked = time.Now()
	var out []Sample
	for _, d := range s.devices {
		b := min(max(busy(d.ID), 0), 1)
		l := acs.GPULoad{
			ID: d.ID, UtilizationPct: 100 * b, MemoryUsedMiB: int64(b * float64(d.MemoryMiB)), MemoryMiB: d.MemoryMiB,
			TemperatureC: idleCelsius + b*(busyCelsius-idleCelsius), PowerW: idleWatt + b*(busyWatt-idleWatt), Simulated: true,
			XIDErrors: xids[d.ID],
		}
		s.energy[d.ID] += 1000 * l.PowerW * since
		out = append(out, Sample{l, Fault(Signs{XIDs: l.XIDErrors}), s.figures(&l, b)})
	}
	return out
}

// figures make up what a device with this load would tell besides.
func (s *Simulated) figures(l *acs.GPULoad, busy float64) map[string]float64 {
	m := map[string]float64{}
	for _, f := range Figures {
		m[f.Name] = 0
	}
	m[smClock], m[memClock], m[memTemp] = idleMHz+busy*(busyMHz-idleMHz), memoryMHz, l.TemperatureC
	m[energy], m[memCopyUtil] = s.energy[l.ID], l.UtilizationPct
	m[engineActive], m[tensorActive], m[dramActive] = busy, busy, busy
	return m
}
