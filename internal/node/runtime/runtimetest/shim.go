package runtimetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// Shim is the program that runs beside each container. It's set while WithShim runs.
var Shim shim.Program

// WithShim builds pintle-shim as it is shipped, runs the tests of a package with it, and returns their exit code.
func WithShim(run func() int) int {
	dir, err := os.MkdirTemp("", "pintle-shim-")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // in the directory for temporary files
		Shim = shim.Program{filepath.Join(dir, "pintle-shim")}
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", Shim[0], "github.com/pintle/pintle/cmd/pintle-shim")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests need pintle-shim:", err)
		return 1
	}
	return run()
}
