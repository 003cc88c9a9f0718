// Package nvmltest has machines with NVIDIA's GPUs for tests: a library in C that is loaded as libnvidia-ml.so.1 and answers what a test
// writes into a file. It needs gcc, and fails a test without it.
package nvmltest

import (
	_ "embed"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/node/gpu/nvml"
)

//go:embed testdata/nvml.c
var source string

// Machine is a machine with GPUs. Its library is Dir's libnvidia-ml.so.1.
type Machine struct {
	Dir     string
	t       testing.TB
	answers map[string]string
}

// New returns a machine with idle GPUs. Their ids are those of UUID. Flags are for the compiler: -DOLD has a driver from before R510.
func New(t testing.TB, gpus int, flags ...string) *Machine {
	t.Helper()
	m := &Machine{Dir: t.TempDir(), t: t, answers: map[string]string{}}
	args := slices.Concat([]string{"-shared", "-fPIC", "-w"}, flags, []string{"-o", m.Library(), "-x", "c", "-", "-ldl"})
	gcc := exec.Command("gcc", args...)
	gcc.Stdin = strings.NewReader(source)
	if out, err := gcc.CombinedOutput(); err != nil {
		t.Fatalf("the stand-in for NVML needs gcc: %v\n%s", err, out)
	}
	m.answers = map[string]string{
		"count": fmt.Sprint(gpus), "driver": "580.95.05", "name": "NVIDIA A100-SXM4-40GB", "memory": fmt.Sprint(40 << 30), "used": "0",
		"reserved": fmt.Sprint(300 << 20), "utilization": "0", "temperature": "40", "power": "61500", "smclock": "1410",
		"memclock": "1215", "energy": "123456", "replays": "5", "encoder": "6", "ecc": "0", "remapped": "1", "unremapped": "2", "field82": "44",
	}
	for i := range gpus {
		m.answers[fmt.Sprintf("%d.uuid", i)] = UUID(i)
		m.answers[fmt.Sprintf("%d.bus", i)] = Bus(i)
	}
	m.write()
	return m
}

// UUID is the id of a GPU.
func UUID(gpu int) string { return fmt.Sprintf("GPU-0000000%d-1111-2222-3333-%012d", gpu, os.Getpid()) }

// Bus is the PCI address of a GPU.
func Bus(gpu int) string { return fmt.Sprintf("00000000:%02X:00.0", gpu+1) }

// Library is the path of the machine's library.
func (m *Machine) Library() string { return filepath.Join(m.Dir, nvml.Name) }

// Open loads the library.
func (m *Machine) Open() *nvml.Library {
	m.t.Helper()
	lib, err := nvml.Open(m.Library())
	if err != nil {
		m.t.Fatal(err)
	}
	return lib
}

// Set has the library give other answers from now on: keys and values by turns, as testdata/nvml.c describes them.
func (m *Machine) Set(answers ...string) *Machine {
	m.t.Helper()
	for pair := range slices.Chunk(answers, 2) {
		m.answers[pair[0]] = pair[1]
	}
	m.write()
	return m
}

// Unset has the library not support something any more.
func (m *Machine) Unset(keys ...string) {
	m.t.Helper()
	for _, k := range keys {
		delete(m.answers, k)
	}
	m.write()
}

// write replaces the file at once, since the library may be reading it.
func (m *Machine) write() {
	m.t.Helper()
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m.answers)) {
		fmt.Fprintf(&b, "%s %s\n", k, m.answers[k])
	}
	next := filepath.Join(m.Dir, "machine.next")
	if err := os.WriteFile(next, []byte(b.String()), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(m.Dir, "machine")); err != nil {
		m.t.Fatal(err)
	}
}
