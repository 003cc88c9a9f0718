package oci

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// cgroupOf returns a container's cgroup, as a path below the hierarchy's root.
func cgroupOf(s *runtime.Spec) string { return cmp.Or(s.CgroupParent, "/pintle") + "/" + s.ID }

// Stats implements runtime.Runtime.
func (r *Runtime) Stats(_ context.Context, id string) (runtime.Stats, error) {
	dir, spec, err := r.containers.Open(id)
	if err != nil {
		return runtime.Stats{}, err
	}
	st, started, err := shim.ReadState(dir)
	if err != nil || !started || !st.Running() {
		return runtime.Stats{At: time.Now()}, err
	}
	s, err := mounted(cgroupOf(spec)).stats()
	if err != nil {
		return runtime.Stats{}, err
	}
	s.At = time.Now()
	if spec.MemoryBytes > 0 {
		s.MemoryLimit = spec.MemoryBytes
	}
	d := s.Docker
	d.Read = s.At.UTC()
	d.CPUStats.CPUUsage.TotalUsage = uint64(s.CPU)
	d.MemoryStats.Limit = uint64(s.MemoryLimit)
	for _, e := range d.BlkioStats.IoServiceBytesRecursive {
		switch strings.ToLower(e.Op) {
		case "read":
			s.ReadBytes += int64(e.Value)
		case "write":
			s.WrBytes += int64(e.Value)
		}
	}
	if spec.Network.Mode != "host" {
		d.Networks = networksOf(st.PID)
	}
	for _, n := range d.Networks {
		s.RxBytes += int64(n.RxBytes)
		s.TxBytes += int64(n.TxBytes)
	}
	return s, nil
}

// networksOf returns the traffic of all interfaces in a process's network namespace except loopback.
func networksOf(pid int) map[string]container.NetworkStats {
	out := map[string]container.NetworkStats{}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		return out // it has ended
	}
	for line := range strings.Lines(string(b)) {
		name, counters, ok := strings.Cut(line, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "lo" {
			continue
		}
		var n container.NetworkStats
		var skip uint64
		_, err := fmt.Sscan(counters, &n.RxBytes, &n.RxPackets, &n.RxErrors, &n.RxDropped, &skip, &skip, &skip, &skip,
			&n.TxBytes, &n.TxPackets, &n.TxErrors, &n.TxDropped)
		if err == nil {
			out[name] = n
		}
	}
	return out
}
