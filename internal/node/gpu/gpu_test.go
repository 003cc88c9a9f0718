package gpu

import (
	"context"
	"slices"
	"testing"

	"github.com/pintle/pintle/internal/instancetype"
)

func TestSimulatedGPUsAreStableAndMarked(t *testing.T) {
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
	if *load[2].UtilizationPct != 50 || *load[0].UtilizationPct != 0 || !load[0].Simulated {
		t.Errorf("got %+v", load)
	}
}

func TestSimulatedErrors(t *testing.T) {
	typ, err := instancetype.Lookup("p3.16xlarge")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSimulated("a", typ)
	id := s.Devices()[3].ID
	for _, xid := range []uint64{31, 79} {
		if err := s.Fail(id, xid); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Fail("GPU-none", 79); err == nil {
		t.Error("a GPU that is not there fails")
	}
	idle := func(string) float64 { return 0 }
	l := s.Load(t.Context(), idle)
	if !slices.Equal(l[3].XIDErrors, []uint64{31, 79}) || l[3].Fault != "Xid 79, it has fallen off the bus" || l[2].Fault != "" {
		t.Errorf("got %+v", l[3])
	}
	if l := s.Load(t.Context(), idle); l[3].XIDErrors != nil || l[3].Fault != "" {
		t.Errorf("told again: %+v", l[3])
	}
}
