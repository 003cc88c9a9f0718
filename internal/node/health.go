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

// faults are the faults of the node's GPUs, kept on disk. The driver reports an error only once, so the node remembers which GPUs are
// broken. It forgets a fault after a reboot; when the agent starts and the driver says that the GPU needs no repair, as it may after a
// reset; and when the user says that it was repaired. If the GPU still shows the fault, the next sample brings it back.
type faults struct {
	path string

	mu    sync.Mutex
	boot  string
	byGPU map[string]acs.GPUFault
}

// faultFile is the content of the file.
type faultFile struct {
	Boot   string // the boot id under which they were seen
	Faults map[string]acs.GPUFault
}

func newFaults(dir string) *faults {
	return &faults{path: filepath.Join(dir, "gpu-faults.json"), byGPU: map[string]acs.GPUFault{}}
}

// load reads the faults from the last run, except those that are over.
func (f *faults) load(boot string, gpus gpu.Source) error {
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
			f.byGPU[id] = fault
		}
	}
	return nil
}

// note keeps a GPU's fault, and reports whether it's new. The first fault stays, since later ones are often its consequence.
func (f *faults) note(id, reason string, now time.Time) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.byGPU[id]; known {
		return false, nil
	}
	f.byGPU[id] = acs.GPUFault{Reason: reason, Since: now.UTC().Truncate(time.Millisecond)}
	return true, f.write()
}

// forget drops a GPU's fault.
func (f *faults) forget(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byGPU, id)
	return f.write()
}

func (f *faults) write() error { return file.WriteJSON(f.path, faultFile{f.boot, f.byGPU}, true) }

// addTo returns the devices with their faults.
func (f *faults) addTo(devices []acs.GPUDevice) []acs.GPUDevice {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]acs.GPUDevice, len(devices))
	for i, d := range devices {
		if fault, broken := f.byGPU[d.ID]; broken {
			d.Fault = &fault
		}
		out[i] = d
	}
	return out
}

// bootID identifies this boot of the machine. If the kernel has no boot id, all boots look the same.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") //nolint:errcheck // see above
	return strings.TrimSpace(string(b))
}

// noteFaults stores the faults that a sample found, and tells the control plane about new ones.
func (a *Agent) noteFaults(found map[string]string) {
	changed := false
	for id, reason := range found {
		first, err := a.faults.note(id, reason, time.Now())
		if err != nil {
			a.log.Error("cannot write down a GPU's fault", "gpu", id, "error", err)
		}
		if first {
			a.log.Error("a GPU is broken: no task gets it any more", "gpu", id, "reason", reason)
			changed = true
		}
	}
	if changed {
		a.updateInventory()
	}
}

// applyFault does what the user asked for a GPU: it simulates an error, or forgets a fault.
func (a *Agent) applyFault(m *acs.PintleGPUFault) {
	if m.XID == 0 {
		if err := a.faults.forget(m.GPU); err != nil {
			a.log.Error("cannot forget a GPU's fault", "gpu", m.GPU, "error", err)
		}
		a.updateInventory()
		return
	}
	s, simulated := a.config.GPUs.(*gpu.Simulated)
	if !simulated {
		a.log.Warn("only simulated GPUs can simulate errors", "gpu", m.GPU)
		return
	}
	if err := s.Fail(m.GPU, m.XID); err != nil {
		a.log.Warn("cannot simulate an error", "error", err)
	}
}
