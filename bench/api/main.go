// Command api measures Pintle over HTTP as clients see it: durable RunTask, DescribeTasks, the time to the first answer, and
// memory. The same run measures moto's server, if installed. Both get the same calls, though moto keeps nothing on disk and
// runs nothing. The load comes from this process, on the same machine.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	binary := flag.String("pintle", "bin/pintle", "the binary to measure")
	seconds := flag.Float64("seconds", 4, "how long each figure is measured")
	flag.Parse()
	window := time.Duration(*seconds * float64(time.Second))
	if err := run(*binary, window); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// figure is one line of the table.
type figure struct {
	name  string
	unit  string
	value map[string]float64 // by server
}

func run(binary string, window time.Duration) error {
	servers := []starter{func() (*server, error) { return startPintle(binary) }}
	if _, err := exec.LookPath("moto_server"); err == nil {
		servers = append(servers, startMoto)
	} else {
		fmt.Println("moto_server is not installed: Pintle's side alone")
	}
	table := []*figure{}
	add := func(name, unit, server string, v float64) {
		i := slices.IndexFunc(table, func(f *figure) bool { return f.name == name })
		if i < 0 {
			i = len(table)
			table = append(table, &figure{name, unit, map[string]float64{}})
		}
		table[i].value[server] = v
	}
	for _, start := range servers {
		s, err := start()
		if err != nil {
			return err
		}
		err = s.measure(window, func(name, unit string, v float64) { add(name, unit, s.name, v) })
		s.stop()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	print(table)
	return nil
}

func print(table []*figure) {
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("load average %s\n%-52s %14s %14s %9s\n", strings.Join(strings.Fields(string(load))[:3], " "), "", "Pintle", "moto", "ratio")
	for _, f := range table {
		ours, theirs := f.value["pintle"], f.value["moto"]
		fmt.Printf("%-52s %10.1f %-3s", f.name, ours, f.unit)
		if theirs > 0 {
			fmt.Printf(" %10.1f %-3s %8.1f", theirs, f.unit, ours/theirs)
		}
		fmt.Println()
	}
}

// measure takes all figures of one server.
func (s *server) measure(window time.Duration, add func(name, unit string, v float64)) error {
	add("start to first answer", "ms", float64(s.Startup.Microseconds())/1000)
	add("memory, idle", "MB", s.RSS())
	measure := func(name string, clients int, operation, body string, check func([]byte) error) error {
		before := s.CPU()
		n, rate, p99, err := s.load(clients, window, operation, body, check)
		if err != nil {
			return err
		}
		name = fmt.Sprintf("%s, %d clients", name, clients)
		add(name, "/s", rate)
		add(name+", p99", "ms", p99)
		add(name+", the server's CPU", "µs", float64((s.CPU()-before).Microseconds())/float64(n))
		return nil
	}
	for _, clients := range []int{1, 8, 64} {
		if err := measure("RunTask", clients, "RunTask", s.launch, checkPlaced); err != nil {
			return err
		}
	}
	arns, total, err := s.listTasks()
	if err != nil {
		return err
	}
	add("tasks there", "", float64(total))
	add("memory, with them", "MB", s.RSS())
	body, err := json.Marshal(map[string]any{"cluster": "default", "tasks": arns})
	if err != nil {
		return err
	}
	return measure(fmt.Sprintf("DescribeTasks of %d", len(arns)), 8, "DescribeTasks", string(body), checkDescribed)
}
