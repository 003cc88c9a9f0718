package gpu

import (
	"context"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"

	"github.com/pintle/pintle/internal/instancetype"
)

func TestNVMLFindsAMachinesGPUs(t *testing.T) {
	n, err := NewNVML(dgxa100.New())
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	seen := map[string]bool{}
	for _, d := range n.Devices() {
		seen[d.ID] = true
		if d.Simulated || d.Model == "" || d.MemoryMiB == 0 {
			t.Errorf("got %+v", d)
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d ids, want 8", len(seen))
	}
}

func TestSimulatedGPUsLastAndSaySo(t *testing.T) {
	typ, err := instancetype.Lookup("p3.16xlarge")
	if err != nil {
		t.Fatal(err)
	}
	a, again, other := NewSimulated("a", typ), NewSimulated("a", typ), NewSimulated("b", typ)
	for i, d := range a.Devices() {
		if !d.Simulated || d.ID != again.Devices()[i].ID || d.ID == other.Devices()[i].ID {
			t.Errorf("device %d: %+v", i, d)
		}
	}
	load := a.Load(context.Background(), func(id string) float64 {
		if id == a.Devices()[2].ID {
			return 0.5
		}
		return 0
	})
	if load[2].UtilizationPct != 50 || load[0].UtilizationPct != 0 || !load[0].Simulated {
		t.Errorf("got %+v", load)
	}
}
