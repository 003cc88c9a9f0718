package report

import (
	"testing"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name     string
		opinions []routing.State
		want     routing.State // none if nobody can tell
	}{
		{"nobody has checked", nil, ""},
		{"one", []routing.State{routing.Healthy}, routing.Healthy},
		{"all", []routing.State{routing.Healthy, routing.Healthy}, routing.Healthy},
		{"one checks still", []routing.State{routing.Healthy, routing.Initial}, routing.Initial},
		{"one checks still, the other way round", []routing.State{routing.Initial, routing.Unhealthy}, routing.Initial},
		{"they disagree", []routing.State{routing.Healthy, routing.Unhealthy}, ""},
		{"none thinks well", []routing.State{routing.Unhealthy, routing.Unhealthy}, routing.Unhealthy},
		{"it drained before", []routing.State{routing.Draining}, ""},
		{"it wasn't used before", []routing.State{routing.Unused, routing.Healthy}, routing.Healthy},
	} {
		var all []routing.Health
		for _, s := range c.opinions {
			all = append(all, routing.Health{State: s})
		}
		got, ok := Verdict(all)
		if got.State != c.want || ok != (c.want != "") {
			t.Errorf("%s: %v %v", c.name, got.State, ok)
		}
	}
}

func TestTimes(t *testing.T) {
	c := &Count{}
	for i := range 100_000 {
		c.Time(time.Duration(i) * time.Millisecond)
	}
	if len(c.Times) > 8*90 || c.Times[0] != 1 || c.Times[1000] != 1 || c.Times[1_200_000] != 100 {
		t.Error(len(c.Times), c.Times)
	}
}
