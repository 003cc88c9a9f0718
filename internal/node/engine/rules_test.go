package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/acs"
)

// opening are rules that let one port in.
func opening(port int) *acs.NetworkRules {
	return &acs.NetworkRules{In: []acs.NetworkRule{{Protocol: 6, From: port, To: port, Peers: []string{"0.0.0.0/0"}}}}
}

// firewalls records what an engine restricts namespaces to.
type firewalls struct {
	applied []string
	fail    error
}

func (f *firewalls) options(o *Options) {
	o.Restrict = func(netns string, t *acs.Task, ports []Port) error {
		port := 0
		if t.NetworkRules != nil {
			port = t.NetworkRules.In[0].From
		}
		f.applied = append(f.applied, fmt.Sprintf("%s lets %d to %d ports", netns, port, len(ports)))
		return f.fail
	}
}

func TestRulesOfSecurityGroups(t *testing.T) {
	f := &firewalls{}
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "run"))
		task.NetworkMode = "awsvpc"
		task.NetworkRules = opening(80)
		a.take(t, task)
		for _, rules := range []*acs.NetworkRules{opening(80), opening(81), nil} {
			if err := a.engine.SetRules(t.Context(), task.Arn, rules); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{"/run/netns/t lets 80 to 0 ports", "/run/netns/t lets 81 to 0 ports", "/run/netns/t lets 0 to 0 ports"}
		if !slices.Equal(f.applied, want) {
			t.Errorf("applied %q, want %q", f.applied, want)
		}
		a.take(t, stopOf(task))
		if err := a.engine.SetRules(t.Context(), task.Arn, opening(82)); err != nil || len(f.applied) != 3 {
			t.Errorf("after its end: %v, %q", err, f.applied)
		}
	}, f.options)
}

// TestTaskWithoutItsRules: a task never runs open because its rules could not be applied; and a later change is tried again.
func TestTaskWithoutItsRules(t *testing.T) {
	f := &firewalls{fail: errors.New("no nftables here")}
	alone(t, func(t *testing.T, a *agent) {
		task := newFakeTask("t", box("a", "run"))
		task.NetworkMode = "awsvpc"
		task.NetworkRules = opening(80)
		a.take(t, task)
		if r := a.last(task.Arn); r.Status != "STOPPED" || !strings.Contains(r.Reason, "no nftables here") {
			t.Errorf("got %+v", r)
		}
		if n := a.starts["t-a"]; n != 0 {
			t.Errorf("its container was started %d times", n)
		}
		f.fail = nil
		second := newFakeTask("u", box("a", "run"))
		second.NetworkMode = "awsvpc"
		second.NetworkRules = opening(80)
		a.take(t, second)
		f.fail = errors.New("busy")
		if err := a.engine.SetRules(t.Context(), second.Arn, opening(81)); err == nil {
			t.Error("a failed change isn't told")
		}
		f.fail = nil
		if err := a.engine.SetRules(t.Context(), second.Arn, opening(81)); err != nil || f.applied[len(f.applied)-1] != "/run/netns/u lets 81 to 0 ports" {
			t.Errorf("again: %v, %q", err, f.applied)
		}
	}, f.options)
}
