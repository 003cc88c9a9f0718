package main

import (
	"testing"

	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/ecs/placement"
	"github.com/pintle/pintle/internal/ecs/why"
)

// TestWhyInWords: the nearest instances stand below each other, and what isn't known isn't printed.
func TestWhyInWords(t *testing.T) {
	a := console.WhyAnswer{Subject: "service s", Status: "ACTIVE", Answer: why.Answer{
		Why:   "There is no place.",
		Wants: &why.Wants{MemoryMiB: 64, GPUs: 1, Ports: []string{"80/tcp"}},
		Closest: []why.Instance{
			{ID: "i", Type: "p3.8xlarge", Lacks: []placement.Lack{{Reason: placement.NoGPU, Needs: 1, Total: 4}}},
			{ID: "j", Lacks: []placement.Lack{{Reason: placement.NotActive}, {Reason: placement.NoAgent}}},
		},
		Change: "Free one.",
	}}
	want := `service s is ACTIVE. There is no place.
  wants:     64 MiB of memory; 1 GPU; port 80/tcp
  closest:   i (p3.8xlarge) has too little free: 0 GPUs, and it needs 1
             j is draining; has no connected agent
  to do:     Free one.
`
	if got := inWords(a); got != want {
		t.Errorf("it prints\n%s, want\n%s", got, want)
	}
}
