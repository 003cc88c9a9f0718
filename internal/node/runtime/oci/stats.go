package oci

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/containerd/cgroups/v3"
	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/containerd/cgroups/v3/cgroup2"

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
	if spec.Network.Mode != "host" {
		s.RxBytes, s.TxBytes = networkOf(st.PID)
	}
	return s, nil
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
	s.CPU = time.Duration(m.GetCPU().GetUsage().GetTotal())
	used := m.GetMemory().GetUsage().GetUsage()
	s.MemoryBytes = int64(used - min(used, m.GetMemory().GetTotalInactiveFile()))
	for _, e := range m.GetBlkio().GetIoServiceBytesRecursive() {
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
	s.CPU = time.Duration(m.GetCPU().GetUsageUsec()) * time.Microsecond
	s.MemoryBytes = int64(m.GetMemory().GetUsage() - min(m.GetMemory().GetUsage(), m.GetMemory().GetInactiveFile()))
	for _, e := range m.GetIo().GetUsage() {
		s.ReadBytes += int64(e.Rbytes)
		s.WrBytes += int64(e.Wbytes)
	}
	return s, nil
}

// networkOf sums the traffic of all interfaces in a process's network namespace except loopback, in bytes.
func networkOf(pid int) (received, sent int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		return 0, 0 // it has ended
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		name, counters, ok := strings.Cut(lines.Text(), ":")
		if !ok || strings.TrimSpace(name) == "lo" {
			continue
		}
		var rx, tx, skip int64
		if _, err := fmt.Sscan(counters, &rx, &skip, &skip, &skip, &skip, &skip, &skip, &skip, &tx); err == nil {
			received, sent = received+rx, sent+tx
		}
	}
	return received, sent
}
