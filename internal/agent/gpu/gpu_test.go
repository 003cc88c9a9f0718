package gpu

import (
	"context"
	"testing"

	"github.com/pintle/pintle/internal/instancetype"
)

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
