// Package gpu finds a node's GPUs and reads their load: through NVML where there are real ones, or
// made up after an instance type, and marked as such wherever they show. It pins nothing: the control
// plane says which task gets which device.
package gpu

import (
	"context"
	"crypto/sha256"
	"fmt"

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
	Load(ctx context.Context, busy func(id string) float64) []acs.GPULoad
}

// None is a node without GPUs.
type None struct{}

// Devices is Source's.
func (None) Devices() []acs.GPUDevice { return nil }

// Driver is Source's.
func (None) Driver() string { return "" }

// Load is Source's.
func (None) Load(context.Context, func(string) float64) []acs.GPULoad { return nil }

// Simulated is a node with the GPUs of an instance type, none of which exist.
type Simulated struct {
	devices []acs.GPUDevice
	typ     instancetype.Type
}

// NewSimulated makes the GPUs of an instance type. The same node name gives the same ids again.
func NewSimulated(node string, t instancetype.Type) *Simulated {
	s := &Simulated{typ: t}
	for i := range t.GPUs {
		s.devices = append(s.devices, acs.GPUDevice{
			ID: simulatedID(node, i), Model: t.GPUModel, MemoryMiB: t.GPUMemMiB, NUMA: t.NUMA(i), Links: t.Links(i), Simulated: true,
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
)

// Load is Source's.
func (s *Simulated) Load(_ context.Context, busy func(id string) float64) []acs.GPULoad {
	var out []acs.GPULoad
	for _, d := range s.devices {
		b := min(max(busy(d.ID), 0), 1)
		out = append(out, acs.GPULoad{
			ID: d.ID, UtilizationPct: 100 * b, MemoryUsedMiB: int64(b * float64(d.MemoryMiB)), MemoryMiB: d.MemoryMiB,
			TemperatureC: idleCelsius + b*(busyCelsius-idleCelsius), PowerW: idleWatt + b*(busyWatt-idleWatt), Simulated: true,
		})
	}
	return out
}
