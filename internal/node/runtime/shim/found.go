package shim

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// found makes the state of a running container anew, whose file is damaged, out of what the kernel knows: the oldest child of the container's
// shim is its first process. Younger ones were left to the shim by that. It reports false if the shim is gone.
func found(dir string) (st State, ok bool) {
	shim, ok := pidOf(dir)
	if !ok {
		return st, false
	}
	st.StartTime = math.MaxUint64
	for _, pid := range program.ChildrenOf(shim) {
		if at, err := program.StartTime(pid); err == nil && at < st.StartTime {
			st.PID, st.StartTime = pid, at
		}
	}
	return st, st.PID != 0
}

// pidOf finds the shim of the container in dir: the process that was started with the directory and holds its FIFO open.
func pidOf(dir string) (pid int, ok bool) {
	alive, err := os.Stat(filepath.Join(dir, program.AliveFile))
	if err != nil {
		return 0, false
	}
	commands, _ := file.Glob("/proc", "*/cmdline") // the pattern is fine
	for _, path := range commands {
		process := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(path) // the process may have ended
		if bytes.HasSuffix(command, []byte(filepath.Base(dir)+"\x00")) && holds(process, alive) {
			return pid, true
		}
	}
	return 0, false
}

// holds reports whether a process, by its directory in /proc, has the file open.
func holds(process string, f os.FileInfo) bool {
	descriptors, _ := os.ReadDir(filepath.Join(process, "fd")) // the process may have ended
	for _, d := range descriptors {
		if open, err := os.Stat(filepath.Join(process, "fd", d.Name())); err == nil && os.SameFile(open, f) {
			return true
		}
	}
	return false
}
