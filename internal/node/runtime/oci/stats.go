package oci

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/moby/moby/api/types/container"

	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// cgroupOf returns a container's cgroup, as a path below the hierarchy's root.
func cgroupOf(s *runtime.Spec) string { return cmp.Or(s.CgroupParent, "/pintle") + "/" + s.ID }

const unified = "/sys/fs/cgroup"

// oomKilled reports whether the kernel killed a process in the cgroup because it ran out of memory.
func oomKilled(cgroup string) bool {
	if cgroups.Mode() == cgroups.Unified {
		g, err := cgroup2.Load(cgroup)
		if err != nil {
			return false
		}
		m, err := g.Stat()
		return err == nil && m.MemoryEvents != nil && m.MemoryEvents.OomKill > 0
	}
	b, err := os.ReadFile(path.Join(unified, "memory", cgroup, "memory.oom_control"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		var n int
		if _, err := fmt.Sscanf(line, "oom_kill %d", &n); err == nil {
			return n > 0
		}
	}
	return false
}

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
	read := statsOfV1
	if cgroups.Mode() == cgroups.Unified {
		read = statsOfV2
	}
	s, err := read(cgroupOf(spec))
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
	if spec.Network.Mode != "host" {
		d.Networks = networksOf(st.PID)
	}
	for _, n := range d.Networks {
		s.RxBytes += int64(n.RxBytes)
		s.TxBytes += int64(n.TxBytes)
	}
	return s, nil
}

// memoryStats reads a memory.stat file.
func memoryStats(path string) map[string]uint64 {
	out := map[string]uint64{}
	b, _ := os.ReadFile(path) // it may have ended
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}

func statsOfV1(cgroup string) (s runtime.Stats, err error) {
	g, err := cgroup1.Load(cgroup1.StaticPath(cgroup))
	if err != nil {
		return s, err
	}
	m, err := g.Stat(cgroup1.IgnoreNotExist)
	if err != nil {
		return s, err
	}
	d := new(container.StatsResponse)
	s.Docker = d
	s.CPU = time.Duration(m.GetCPU().GetUsage().GetTotal())
	d.CPUStats.CPUUsage.PercpuUsage = m.GetCPU().GetUsage().GetPerCPU()
	d.CPUStats.CPUUsage.UsageInKernelmode = m.GetCPU().GetUsage().GetKernel()
	d.CPUStats.CPUUsage.UsageInUsermode = m.GetCPU().GetUsage().GetUser()
	d.CPUStats.ThrottlingData = container.ThrottlingData{
		Periods:          m.GetCPU().GetThrottling().GetPeriods(),
		ThrottledPeriods: m.GetCPU().GetThrottling().GetThrottledPeriods(),
		ThrottledTime:    m.GetCPU().GetThrottling().GetThrottledTime(),
	}
	used := m.GetMemory().GetUsage().GetUsage()
	s.MemoryBytes = int64(used - min(used, m.GetMemory().GetTotalInactiveFile()))
	d.MemoryStats = container.MemoryStats{
		Usage:    used,
		MaxUsage: m.GetMemory().GetUsage().GetMax(),
		Failcnt:  m.GetMemory().GetUsage().GetFailcnt(),
		Stats:    memoryStats(path.Join(unified, "memory", cgroup, "memory.stat")),
	}
	d.PidsStats = container.PidsStats{Current: m.GetPids().GetCurrent(), Limit: m.GetPids().GetLimit()}
	for _, e := range m.GetBlkio().GetIoServiceBytesRecursive() {
		d.BlkioStats.IoServiceBytesRecursive = append(d.BlkioStats.IoServiceBytesRecursive,
			container.BlkioStatEntry{Major: e.Major, Minor: e.Minor, Op: e.Op, Value: e.Value})
		switch e.Op {
		case "Read":
			s.ReadBytes += int64(e.Value)
		case "Write":
			s.WrBytes += int64(e.Value)
		}
	}
	return s, nil
}

func statsOfV2(cgroup string) (s runtime.Stats, err error) {
	g, err := cgroup2.Load(cgroup)
	if err != nil {
		return s, err
	}
	m, err := g.Stat()
	if err != nil {
		return s, err
	}
	d := new(container.StatsResponse)
	s.Docker = d
	s.CPU = time.Duration(m.GetCPU().GetUsageUsec()) * time.Microsecond
	d.CPUStats.CPUUsage.UsageInKernelmode = m.GetCPU().GetSystemUsec() * 1000
	d.CPUStats.CPUUsage.UsageInUsermode = m.GetCPU().GetUserUsec() * 1000
	d.CPUStats.ThrottlingData = container.ThrottlingData{
		Periods:          m.GetCPU().GetNrPeriods(),
		ThrottledPeriods: m.GetCPU().GetNrThrottled(),
		ThrottledTime:    m.GetCPU().GetThrottledUsec() * 1000,
	}
	s.MemoryBytes = int64(m.GetMemory().GetUsage() - min(m.GetMemory().GetUsage(), m.GetMemory().GetInactiveFile()))
	d.MemoryStats = container.MemoryStats{
		Usage: m.GetMemory().GetUsage(),
		Stats: memoryStats(path.Join(unified, cgroup, "memory.stat")),
	}
	d.PidsStats = container.PidsStats{Current: m.GetPids().GetCurrent(), Limit: m.GetPids().GetLimit()}
	for _, e := range m.GetIo().GetUsage() {
		d.BlkioStats.IoServiceBytesRecursive = append(d.BlkioStats.IoServiceBytesRecursive,
			container.BlkioStatEntry{Major: e.Major, Minor: e.Minor, Op: "read", Value: e.Rbytes},
			container.BlkioStatEntry{Major: e.Major, Minor: e.Minor, Op: "write", Value: e.Wbytes})
		s.ReadBytes += int64(e.Rbytes)
		s.WrBytes += int64(e.Wbytes)
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
