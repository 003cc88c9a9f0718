// Package gpu finds a node's GPUs, reads their load and says which of them are broken. It reads real GPUs through NVML or from a
// dcgm-exporter that already watches them; or it simulates those of an instance type, and they're marked as simulated wherever they show.
// It pins nothing: the control plane decides which task gets which device.
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
	// Devices lists the node's GPUs, always in the same order.
	Devices() []acs.GPUDevice
	// Driver returns the driver's version, or "".
	Driver() string
	// Load samples each device. Only simulated devices use busy, which returns a device's load from 0 to 1. All that we know of their load
	// is how much of its CPUs the device's task uses, or what the task says itself.
	Load(ctx context.Context, busy func(id string) float64) []Sample
	// Recovered reports whether the driver says that a device needs no repair. If it's false, the driver may just not say.
	Recovered(id string) bool
}

// Sample is one sample of a device.
type Sample struct {
	acs.GPULoad
	// Fault is why no task may have the device: what its state shows now, and what the driver reported since the last sample.
	Fault string
	// Figures are further metrics, without those that the device doesn't report.
	Figures map[string]float64
}

// MemoryFreeMiB returns what is left of the device's memory: neither used nor kept by the driver for itself.
func (s *Sample) MemoryFreeMiB() int64 {
	return s.MemoryMiB - s.MemoryUsedMiB - int64(s.Figures[fbReserved])
}

// None is a node without GPUs.
type None struct{}

// Devices implements Source.
func (None) Devices() []acs.GPUDevice { return nil }

// Driver implements Source.
func (None) Driver() string { return "" }

// Load implements Source.
func (None) Load(context.Context, func(string) float64) []Sample { return nil }

// Recovered implements Source.
func (None) Recovered(string) bool { return false }

// Simulated simulates the GPUs of an instance type.
type Simulated struct {
	devices []acs.GPUDevice
	typ     instancetype.Type
	sampled time.Time          // last
	energy  map[string]float64 // millijoules

	mu   sync.Mutex
	xids map[string][]uint64 // simulated errors that no sample has returned yet
}

// NewSimulated simulates the GPUs of an instance type. The same node name always gives the same ids.
func NewSimulated(node string, t instancetype.Type) *Simulated {
	s := &Simulated{typ: t, energy: map[string]float64{}, xids: map[string][]uint64{}}
	for i := range t.GPUs {
		s.devices = append(s.devices, acs.GPUDevice{
			ID:        simulatedID(node, i),
			Model:     t.GPUModel,
			MemoryMiB: t.GPUMemMiB,
			NUMA:      t.NUMA(i),
			Links:     t.Links(i),
			Index:     i,
			Bus:       fmt.Sprintf("00000000:%02X:00.0", i+1),
			Simulated: true,
		})
	}
	return s
}

// simulatedID returns an id in NVML's form: GPU- and a UUID.
func simulatedID(node string, i int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s/%d", node, i))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// Devices implements Source.
func (s *Simulated) Devices() []acs.GPUDevice { return s.devices }

// Driver implements Source.
func (s *Simulated) Driver() string { return "simulated" }

// What a simulated device reports when idle and when fully busy.
const (
	idleCelsius, busyCelsius = 35, 75
	idleWatt, busyWatt       = 40, 250
	idleMHz, busyMHz         = 300, 1500
	memoryMHz                = 900
)

// maxPending is how many simulated errors of a device may wait for the next sample.
const maxPending = 64

// Fail simulates an error (XID) of a device.
func (s *Simulated) Fail(id string, xid uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := slices.ContainsFunc(s.devices, func(d acs.GPUDevice) bool { return d.ID == id })
	if !known || len(s.xids[id]) == maxPending {
		return fmt.Errorf("cannot simulate an error of GPU %s", id)
	}
	s.xids[id] = append(s.xids[id], xid)
	return nil
}

// Recovered implements Source.
func (*Simulated) Recovered(string) bool { return false }

// Load implements Source.
func (s *Simulated) Load(_ context.Context, busy func(id string) float64) []Sample {
	s.mu.Lock()
	xids := s.xids
	s.xids = map[string][]uint64{}
	s.mu.Unlock()
	var since float64 // seconds
	if !s.sampled.IsZero() {
		since = time.Since(s.sampled).Seconds()
	}
	s.sampled = time.Now()
	var out []Sample
	for _, d := range s.devices {
		b := min(max(busy(d.ID), 0), 1)
		l := acs.GPULoad{
			ID:             d.ID,
			UtilizationPct: new(100 * b),
			MemoryUsedMiB:  int64(b * float64(d.MemoryMiB)),
			MemoryMiB:      d.MemoryMiB,
			TemperatureC:   idleCelsius + b*(busyCelsius-idleCelsius),
			PowerW:         idleWatt + b*(busyWatt-idleWatt),
			Simulated:      true,
			XIDErrors:      xids[d.ID],
		}
		s.energy[d.ID] += 1000 * l.PowerW * since
		out = append(out, Sample{l, Fault(Signs{XIDs: l.XIDErrors}), s.figures(&l, b)})
	}
	return out
}

// figures simulates what a device with this load would report besides.
func (s *Simulated) figures(l *acs.GPULoad, busy float64) map[string]float64 {
	m := map[string]float64{}
	for _, f := range Figures {
		m[f.Name] = 0
	}
	m[smClock] = idleMHz + busy*(busyMHz-idleMHz)
	m[memClock] = memoryMHz
	m[memTemp] = l.TemperatureC
	m[energy] = s.energy[l.ID]
	m[memCopyUtil] = 100 * busy
	m[engineActive] = busy
	m[tensorActive] = busy
	m[dramActive] = busy
	return m
}
