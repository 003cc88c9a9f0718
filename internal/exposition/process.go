package exposition

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// AddProcess adds what Prometheus's own clients tell of their process.
func (p *Page) AddProcess(began time.Time) {
	p.Add(Metric{Name: "go_goroutines", Help: "Goroutines."}, float64(runtime.NumGoroutine()))
	p.Add(Metric{Name: "process_start_time_seconds", Help: "When the process began, in seconds since 1970."}, float64(began.UnixMilli())/1000)
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		p.Add(Metric{Name: "process_cpu_seconds_total", Help: "Processor time.", Counter: true},
			time.Duration(used.Utime.Nano()+used.Stime.Nano()).Seconds())
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		p.Add(Metric{Name: "process_open_fds", Help: "Open file descriptors."}, float64(len(open)))
	}
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(b)); len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1]) //nolint:errcheck // the kernel writes numbers
			p.Add(Metric{Name: "process_resident_memory_bytes", Help: "Memory in use."}, float64(pages*os.Getpagesize()))
		}
	}
}
