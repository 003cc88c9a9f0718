package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/gpu"
)

// The health of the node's GPUs. The driver tells of an error once, so the node remembers which GPUs are
// broken. It forgets a fault when the machine has booted since; when, as the agent starts, the driver itself
// says that the GPU needs no repair, as it may after a reset; and when the user says that it was repaired. What
// still shows then brings the fault back with the next look.

// faults are the node's, on disk.
type faults struct {
	path string

	mu   sync.Mutex
	boot string
	of   map[string]acs.GPUFault // by GPU
}

// faultFile is what is on disk.
type faultFile struct {
	Boot   string // the machine's start that they are from
	Faults map[string]acs.GPUFault
}

func newFaults(dir string) *faults {
	return &faults{path: filepath.Join(dir, "gpu-faults.json"), of: map[string]acs.GPUFault{}}
}

// recall reads the faults from before, less those that are over.
func (f *faults) recall(boot string, gpus gpu.Source) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.boot = boot
	var old faultFile
	if err := file.ReadJSON(f.path, &old); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if old.Boot != boot {
		return nil
	}
	for id, fault := range old.Faults {
		if !gpus.Recovered(id) {
			f.of[id] = fault
		}
	}
	return nil
}

// note keeps a GPU's fault, and says whether that is news. The first fault stays: what follows is often its
// consequence.
func (f *faults) note(id, reason string, now time.Time) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.of[id]; known {
		return false, nil
	}
	f.of[id] = acs.GPUFault{Reason: reason, Since: now.UTC().Truncate(time.Millisecond)}
	return true, f.write()
}

// forget drops a GPU's fault.
func (f *faults) forget(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, id)
	return f.write()
}

func (f *faults) write() error { return file.WriteJSON(f.path, faultFile{f.boot, f.of}, true) }

// mark writes their faults to the devices.
func (f *faults) mark(devices []acs.GPUDevice) []acs.GPUDevice {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]acs.GPUDevice, len(devices))
	for i, d := range devices {
		if fault, broken := f.of[d.ID]; broken {
			d.Fault = &fault
		}
		out[i] = d
	}
	return out
}

// bootID names this start of the machine. Where the kernel does not tell, every start is the same.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") //nolint:errcheck // see above
	return strings.TrimSpace(string(b))
}

// broken keeps what a look at the GPUs has shown, and tells the control plane what is news.
func (a *Agent) broken(found map[string]string) {
	news := false
	for id, reason := range found {
		first, err := a.faults.note(id, reason, time.Now())
		if err != nil {
			a.log.Error("cannot write down a GPU's fault", "gpu", id, "error", err)
		}
		if first {
			a.log.Error("a GPU is broken: no task gets it any more", "gpu", id, "reason", reason)
			news = true
		}
	}
	if news {
		a.tellInventory()
	}
}

// fault does what the user wants of a GPU: an error made up, or its fault forgotten.
func (a *Agent) fault(m *acs.PintleGPUFault) {
	if m.XID == 0 {
		if err := a.faults.forget(m.GPU); err != nil {
			a.log.Error("cannot forget a GPU's fault", "gpu", m.GPU, "error", err)
		}
		a.tellInventory()
		return
	}
	s, simulated := a.config.GPUs.(*gpu.Simulated)
	if !simulated {
		a.log.Warn("errors are made up of simulated GPUs alone", "gpu", m.GPU)
		return
	}
	if err := s.Fail(m.GPU, m.XID); err != nil {
		a.log.Warn("cannot make up an error", "error", err)
	}
}
