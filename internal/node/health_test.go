package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/node/gpu"
)

// awaitFault waits for an inventory in which the GPU has a fault with the text, or no fault if the text is "".
func awaitFault(t *testing.T, s *peer, id, text string) {
	t.Helper()
	for {
		for _, g := range receive[*acs.PintleNodeInventory](t, s).GPUs {
			if g.ID == id && (text == "" && g.Fault == nil || text != "" && g.Fault != nil && strings.Contains(g.Fault.Reason, text)) {
				return
			}
		}
	}
}

// TestBrokenGPU: the node reports a fault at once, also after a restart of the agent, until the user says that the GPU is repaired.
func TestBrokenGPU(t *testing.T) {
	p, b, dir := newPlane(t), newFakeRuntime(), t.TempDir()
	a, end := startNode(t, p, b, dir)
	id := a.config.GPUs.Devices()[1].ID
	s := p.next("acs")
	awaitFault(t, s, id, "")
	s.send(t, &acs.PintleGPUFault{GPU: id, XID: 31})
	s.send(t, &acs.PintleGPUFault{GPU: id, XID: 79})
	awaitFault(t, s, id, "Xid 79")
	s.send(t, &acs.PintleGPUFault{GPU: id, XID: 48}) // it is broken already
	for len(a.sampler.GPUs()) == 0 || lastError(&a.sampler.GPUs()[1]) != 48 {
		time.Sleep(10 * time.Millisecond)
	}
	end()

	_, end = startNode(t, p, b, dir)
	defer end()
	s = p.next("acs")
	if m := receive[*acs.PintleNodeInventory](t, s); m.GPUs[1].Fault == nil || !strings.Contains(m.GPUs[1].Fault.Reason, "Xid 79") ||
		m.GPUs[0].Fault != nil || time.Since(m.GPUs[1].Fault.Since) > time.Minute {
		t.Errorf("the next agent tells of %+v", m.GPUs)
	}
	s.send(t, &acs.PintleGPUFault{GPU: id})
	awaitFault(t, s, id, "")
}

// repaired is a source whose driver says that some GPUs need no repair.
type repaired struct {
	gpu.Source
	ids []string
}

func (r repaired) Recovered(id string) bool {
	for _, other := range r.ids {
		if id == other {
			return true
		}
	}
	return false
}

func TestFaultDuration(t *testing.T) {
	for _, c := range []struct {
		name string
		boot string
		gpus gpu.Source
		want bool
	}{
		{"the next agent", "b1", gpu.None{}, true},
		{"after a reboot", "b2", gpu.None{}, false},
		{"the driver says that the GPU needs no repair", "b1", repaired{gpu.None{}, []string{"GPU-1"}}, false},
		{"the driver says so of another GPU", "b1", repaired{gpu.None{}, []string{"GPU-2"}}, true},
	} {
		dir := t.TempDir()
		f := newFaults(dir)
		if err := f.load("b1", gpu.None{}); err != nil {
			t.Fatal(err)
		}
		if news, err := f.note("GPU-1", "Xid 79", time.Now()); !news || err != nil {
			t.Fatal(news, err)
		}
		if news, _ := f.note("GPU-1", "Xid 48", time.Now()); news {
			t.Error("a second fault is news")
		}
		next := newFaults(dir)
		if err := next.load(c.boot, c.gpus); err != nil {
			t.Fatal(err)
		}
		if got := next.addTo([]acs.GPUDevice{{ID: "GPU-1"}})[0].Fault; (got != nil) != c.want || got != nil && got.Reason != "Xid 79" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	if bootID() == "" {
		t.Error("the machine's start has no name")
	}
}

// TestUnreadableFaultFile: the node works on with an unreadable file.
func TestUnreadableFaultFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gpu-faults.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFaults(dir)
	if err := f.load("b", gpu.None{}); err == nil {
		t.Error("it was read")
	}
	if news, err := f.note("GPU-1", "Xid 79", time.Now()); !news || err != nil {
		t.Error(news, err)
	}
}

// TestRealGPUsSimulateNoErrors: a request to simulate an error does nothing to a real GPU.
func TestRealGPUsSimulateNoErrors(t *testing.T) {
	typ, err := instancetype.Lookup("p3.8xlarge")
	if err != nil {
		t.Fatal(err)
	}
	simulated := gpu.NewSimulated("n", typ)
	a := New(Config{
		Name:    "n",
		DataDir: t.TempDir(),
		Runtime: newFakeRuntime(),
		GPUs:    repaired{Source: simulated},
		Log:     slog.New(slog.DiscardHandler),
	})
	a.applyFault(&acs.PintleGPUFault{GPU: simulated.Devices()[0].ID, XID: 79})
	if l := simulated.Load(context.Background(), func(string) float64 { return 0 }); l[0].XIDErrors != nil {
		t.Errorf("it has %v", l[0].XIDErrors)
	}
}
