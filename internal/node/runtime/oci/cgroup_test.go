package oci

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
)

// tree writes files as the kernel shows them, and returns their directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

var ofV1 = map[string]string{
	"cpuacct/pintle/c/cpuacct.usage":                  "2500000000\n",
	"cpuacct/pintle/c/cpuacct.usage_percpu":           "1500000000 1000000000 \n",
	"cpuacct/pintle/c/cpuacct.stat":                   "user 200\nsystem 50\n",
	"cpu/pintle/c/cpu.stat":                           "nr_periods 10\nnr_throttled 3\nthrottled_time 7000\n",
	"memory/pintle/c/memory.usage_in_bytes":           "9000\n",
	"memory/pintle/c/memory.max_usage_in_bytes":       "9500\n",
	"memory/pintle/c/memory.failcnt":                  "4\n",
	"memory/pintle/c/memory.stat":                     "cache 4000\ntotal_inactive_file 3000\n",
	"memory/pintle/c/memory.oom_control":              "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
	"pids/pintle/c/pids.current":                      "5\n",
	"pids/pintle/c/pids.max":                          "max\n",
	"blkio/pintle/c/blkio.io_service_bytes_recursive": "Total 0\n",
	"blkio/pintle/c/blkio.throttle.io_service_bytes":  "8:0 Read 4096\n8:0 Write 512\n8:0 Sync 512\nTotal 4608\n",
}

var ofV2 = map[string]string{
	"pintle/c/cpu.stat":       "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\nnr_periods 10\nnr_throttled 3\nthrottled_usec 7\n",
	"pintle/c/memory.current": "9000\n",
	"pintle/c/memory.stat":    "anon 5000\ninactive_file 3000\n",
	"pintle/c/memory.events":  "low 0\nhigh 0\nmax 2\noom 1\noom_kill 1\n",
	"pintle/c/pids.current":   "5\n",
	"pintle/c/pids.max":       "64\n",
	"pintle/c/io.stat":        "8:0 rbytes=4096 wbytes=512 rios=1 wios=1 dbytes=0 dios=0\n8:16 \n",
}

// TestStatsOfCgroups: both versions of control groups are read.
func TestStatsOfCgroups(t *testing.T) {
	throttled := container.ThrottlingData{Periods: 10, ThrottledPeriods: 3, ThrottledTime: 7000}
	for name, c := range map[string]struct {
		cgroup cgroup
		want   container.StatsResponse
	}{
		"the first": {cgroup{tree(t, ofV1), false, "/pintle/c"}, container.StatsResponse{
			CPUStats: container.CPUStats{ThrottlingData: throttled, CPUUsage: container.CPUUsage{
				PercpuUsage: []uint64{1500000000, 1000000000}, UsageInKernelmode: 500000000, UsageInUsermode: 2000000000,
			}},
			MemoryStats: container.MemoryStats{
				Usage: 9000, MaxUsage: 9500, Failcnt: 4, Stats: map[string]uint64{"cache": 4000, "total_inactive_file": 3000},
			},
			PidsStats: container.PidsStats{Current: 5},
			BlkioStats: container.BlkioStats{IoServiceBytesRecursive: []container.BlkioStatEntry{
				{Major: 8, Op: "Read", Value: 4096}, {Major: 8, Op: "Write", Value: 512}, {Major: 8, Op: "Sync", Value: 512},
			}},
		}},
		"the second": {cgroup{tree(t, ofV2), true, "/pintle/c"}, container.StatsResponse{
			CPUStats: container.CPUStats{ThrottlingData: throttled, CPUUsage: container.CPUUsage{
				UsageInKernelmode: 500000000, UsageInUsermode: 2000000000,
			}},
			MemoryStats: container.MemoryStats{Usage: 9000, Stats: map[string]uint64{"anon": 5000, "inactive_file": 3000}},
			PidsStats:   container.PidsStats{Current: 5, Limit: 64},
			BlkioStats: container.BlkioStats{IoServiceBytesRecursive: []container.BlkioStatEntry{
				{Major: 8, Op: "read", Value: 4096}, {Major: 8, Op: "write", Value: 512},
			}},
		}},
	} {
		got, err := c.cgroup.stats()
		if err != nil || got.CPU != 2500*time.Millisecond || got.MemoryBytes != 6000 || !reflect.DeepEqual(*got.Docker, c.want) {
			t.Errorf("%s: %+v, %v: %+v\nwant %+v", name, got, err, got.Docker, c.want)
		}
		if !c.cgroup.oomKilled() {
			t.Errorf("%s: nothing was killed", name)
		}
		c.cgroup.path = "/pintle/gone"
		if got, err := c.cgroup.stats(); err == nil || c.cgroup.oomKilled() {
			t.Errorf("%s: one that is gone has %+v", name, got)
		}
	}
}
