package oci

import (
	"context"
	"os"
	"path/filepath"

	"github.com/containerd/cgroups/v3"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/pintle/pintle/internal/node/runtime"
)

func unifiedCgroups() bool { return cgroups.Mode() == cgroups.Unified }

// cpuPeriod is the period that a CPU quota refers to, in microseconds.
const cpuPeriod = 100_000

// resources limits what the container may use.
func (b *bundle) resources(context.Context) error {
	s := b.spec
	res := &specs.LinuxResources{Memory: &specs.LinuxMemory{}, CPU: &specs.LinuxCPU{}}
	b.out.Linux.Resources = res
	if s.MemoryBytes > 0 {
		res.Memory.Limit = &s.MemoryBytes
		res.Memory.Swap = swap(s)
	}
	if s.MemoryReserve > 0 {
		res.Memory.Reservation = &s.MemoryReserve
	}
	if s.Swappiness != nil && *s.Swappiness >= 0 && !unifiedCgroups() {
		swappiness := uint64(*s.Swappiness)
		res.Memory.Swappiness = &swappiness
	}
	if s.CPUShares > 0 {
		shares := uint64(s.CPUShares)
		res.CPU.Shares = &shares
	}
	if s.CPUQuotaMilli > 0 {
		period, quota := uint64(cpuPeriod), s.CPUQuotaMilli*cpuPeriod/1000
		res.CPU.Period = &period
		res.CPU.Quota = &quota
	}
	return nil
}

// swap returns the limit of memory plus swap, by default twice the memory, as in Docker. It's nil if the kernel doesn't account for swap
// and so can't limit it.
func swap(s *runtime.Spec) *int64 {
	if !accountsSwap() {
		return nil
	}
	total := s.MemorySwap
	if total == 0 {
		total = 2 * s.MemoryBytes
	}
	return &total
}

func accountsSwap() bool {
	if unifiedCgroups() {
		swap, _ := filepath.Glob(hierarchies + "/*/memory.swap.max")
		memory, _ := filepath.Glob(hierarchies + "/*/memory.max")
		return len(swap) > 0 || len(memory) == 0 // without any cgroup to check, assume the kernel's default
	}
	_, err := os.Stat(hierarchies + "/memory/memory.memsw.limit_in_bytes")
	return err == nil
}
