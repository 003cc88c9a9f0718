package oci

import (
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"

	"github.com/pintle/pintle/internal/node/runtime"
)

const (
	hierarchies = "/sys/fs/cgroup"
	tick        = 10 * time.Millisecond // what cpuacct.stat counts in, on every architecture that we build for
)

// cgroup is a container's. Its files are in one directory, or, where control groups are of the first version, in one below each controller's.
type cgroup struct {
	root    string
	unified bool
	path    string
}

func mounted(path string) cgroup { return cgroup{hierarchies, unifiedCgroups(), path} }

func (c cgroup) file(controller, name string) string {
	if c.unified {
		controller = ""
	}
	return path.Join(c.root, controller, c.path, name)
}

// counters reads a file of lines with a name and a number. One that is missing has none: its controller is off, or the container has ended.
func counters(path string) map[string]uint64 {
	out := map[string]uint64{}
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out
}

// number reads a file that has a single number. A missing one and "max", which is no limit, are 0.
func number(path string) uint64 {
	b, _ := os.ReadFile(path)
	n, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// oomKilled reports whether the kernel killed a process in the cgroup because it ran out of memory.
func (c cgroup) oomKilled() bool {
	name := "memory.oom_control"
	if c.unified {
		name = "memory.events"
	}
	return counters(c.file("memory", name))["oom_kill"] > 0
}

func (c cgroup) stats() (runtime.Stats, error) {
	if c.unified {
		return c.statsV2()
	}
	return c.statsV1()
}

func (c cgroup) statsV1() (s runtime.Stats, err error) {
	used := c.file("cpuacct", "cpuacct.usage")
	if _, err := os.Stat(used); err != nil {
		return s, err
	}
	d := new(container.StatsResponse)
	s.Docker = d
	s.CPU = time.Duration(number(used))
	perCPU, _ := os.ReadFile(used + "_percpu")
	for cpu := range strings.FieldsSeq(string(perCPU)) {
		n, _ := strconv.ParseUint(cpu, 10, 64)
		d.CPUStats.CPUUsage.PercpuUsage = append(d.CPUStats.CPUUsage.PercpuUsage, n)
	}
	ticks := counters(c.file("cpuacct", "cpuacct.stat"))
	d.CPUStats.CPUUsage.UsageInKernelmode = ticks["system"] * uint64(tick)
	d.CPUStats.CPUUsage.UsageInUsermode = ticks["user"] * uint64(tick)
	cpu := counters(c.file("cpu", "cpu.stat"))
	d.CPUStats.ThrottlingData = container.ThrottlingData{
		Periods: cpu["nr_periods"], ThrottledPeriods: cpu["nr_throttled"], ThrottledTime: cpu["throttled_time"],
	}
	d.MemoryStats = container.MemoryStats{
		Usage:    number(c.file("memory", "memory.usage_in_bytes")),
		MaxUsage: number(c.file("memory", "memory.max_usage_in_bytes")),
		Failcnt:  number(c.file("memory", "memory.failcnt")),
		Stats:    counters(c.file("memory", "memory.stat")),
	}
	s.MemoryBytes = withoutCache(d.MemoryStats, "total_inactive_file")
	d.PidsStats = c.processes()
	d.BlkioStats.IoServiceBytesRecursive = c.transfersV1()
	return s, nil
}

func (c cgroup) statsV2() (s runtime.Stats, err error) {
	used := c.file("cpu", "cpu.stat")
	if _, err := os.Stat(used); err != nil {
		return s, err
	}
	d := new(container.StatsResponse)
	s.Docker = d
	cpu := counters(used)
	s.CPU = time.Duration(cpu["usage_usec"]) * time.Microsecond
	d.CPUStats.CPUUsage.UsageInKernelmode = cpu["system_usec"] * 1000
	d.CPUStats.CPUUsage.UsageInUsermode = cpu["user_usec"] * 1000
	d.CPUStats.ThrottlingData = container.ThrottlingData{
		Periods: cpu["nr_periods"], ThrottledPeriods: cpu["nr_throttled"], ThrottledTime: cpu["throttled_usec"] * 1000,
	}
	d.MemoryStats = container.MemoryStats{
		Usage: number(c.file("memory", "memory.current")),
		Stats: counters(c.file("memory", "memory.stat")),
	}
	s.MemoryBytes = withoutCache(d.MemoryStats, "inactive_file")
	d.PidsStats = c.processes()
	d.BlkioStats.IoServiceBytesRecursive = c.transfersV2()
	return s, nil
}

// withoutCache returns the memory in use without the cached files that the kernel would take back first, as Docker does. inactive names them.
func withoutCache(m container.MemoryStats, inactive string) int64 {
	return int64(m.Usage - min(m.Usage, m.Stats[inactive]))
}

func (c cgroup) processes() container.PidsStats {
	return container.PidsStats{Current: number(c.file("pids", "pids.current")), Limit: number(c.file("pids", "pids.max"))}
}

// transfersV1 reads lines such as "8:0 Read 4096". Only some schedulers of disks count in the first file.
func (c cgroup) transfersV1() (out []container.BlkioStatEntry) {
	for _, name := range []string{"blkio.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"} {
		b, _ := os.ReadFile(c.file("blkio", name))
		for line := range strings.Lines(string(b)) {
			var e container.BlkioStatEntry
			if n, _ := fmt.Sscanf(line, "%d:%d %s %d", &e.Major, &e.Minor, &e.Op, &e.Value); n == 4 {
				out = append(out, e)
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// transfersV2 reads lines such as "8:0 rbytes=4096 wbytes=0 rios=1 wios=0".
func (c cgroup) transfersV2() (out []container.BlkioStatEntry) {
	b, _ := os.ReadFile(c.file("io", "io.stat"))
	for line := range strings.Lines(string(b)) {
		read, write := container.BlkioStatEntry{Op: "read"}, container.BlkioStatEntry{Op: "write"}
		n, _ := fmt.Sscanf(line, "%d:%d rbytes=%d wbytes=%d", &read.Major, &read.Minor, &read.Value, &write.Value)
		if n < 4 {
			continue
		}
		write.Major, write.Minor = read.Major, read.Minor
		out = append(out, read, write)
	}
	return out
}
