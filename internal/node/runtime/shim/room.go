package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// checkRoom says why the machine, whose processes are at proc, should start no container: it has nearly as many threads as its kernel gives numbers
// to. The shims and programs of a few thousand containers are as many, and where there's no room for another thread the agent itself ends, and the
// control plane with it if that runs beside.
func checkRoom(proc string) error {
	load, _ := os.ReadFile(filepath.Join(proc, "loadavg")) //nolint:errcheck // then nobody knows
	fields := strings.Fields(string(load))
	if len(fields) < 4 {
		return nil
	}
	_, text, _ := strings.Cut(fields[3], "/") // running/all
	threads, err := strconv.Atoi(text)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	for _, name := range []string{"pid_max", "threads-max"} {
		b, _ := os.ReadFile(filepath.Join(proc, "sys/kernel", name)) //nolint:errcheck // as above
		most, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err == nil && threads > most-most/8 {
			return fmt.Errorf("the machine has %d threads, which leaves too little room for more containers: kernel.%s is %d", threads, name, most)
		}
	}
	return nil
}
