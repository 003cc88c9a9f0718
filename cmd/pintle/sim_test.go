package main

import (
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/sim"
)

// TestParallelReplays: each result stays with its name, however many replays run in parallel. The race detector checks that too. A fleet that
// takes no task is an error.
func TestParallelReplays(t *testing.T) {
	node, err := instancetype.Lookup("g4dn.xlarge")
	if err != nil {
		t.Fatal(err)
	}
	c := &simCmd{Reaction: []string{"faithful", "fast"}}
	for range 5 {
		c.Policy = append(c.Policy, "../../examples/sim/gpu.json")
	}
	s := sim.Scenario{
		Requests: []sim.Request{{Work: time.Second}},
		Length:   time.Minute,
		Slots:    1,
		Min:      1,
		Max:      1,
		Fleet:    []instancetype.Type{node},
	}
	if s.TaskDefinition, err = c.taskDefinition(); err != nil {
		t.Fatal(err)
	}
	runs, err := c.replay(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 10 {
		t.Errorf("%d replays, want 10", len(runs))
	}
	for _, run := range runs {
		if run.Result == nil || run.Result.Requests != 1 {
			t.Errorf("%s came to %+v", run.Name, run.Result)
		}
	}
	if s.Fleet[0], err = instancetype.Lookup("c5.large"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.replay(t.Context(), s); err == nil || !strings.Contains(err.Error(), "--fleet") {
		t.Errorf("nodes without GPUs: %v", err)
	}
}
