// Package filetest fills the disk for a test.
package filetest

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

const alone = "PINTLE_TEST_ALONE"

// Alone reports whether the test runs in a process of its own. If it doesn't, Alone starts one for it and fails if that fails: a
// process-wide limit must not hit the test's own reports, or other tests.
func Alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(alone) == t.Name() {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), alone+"="+t.Name())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Fill makes the disk look full to files beyond a size in bytes, until the returned function is called. The test must be Alone.
func Fill(t *testing.T, size uint64) (free func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}
}
