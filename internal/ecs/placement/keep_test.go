package placement

import (
	"fmt"
	"testing"
)

// holding is an instance of four GPUs, 8,192 CPU units and 8,192 MiB, of which tasks hold some.
func holding(c *Cluster, id string, gpus int, cpu int64) {
	i := Instance{ID: id, CPU: 8192, MemoryMiB: 8192, Active: true, Connected: true}
	for g := range 4 {
		i.GPUs = append(i.GPUs, GPU{ID: fmt.Sprint(id, g)})
	}
	c.Upsert(i)
	a := Allocation{CPU: cpu}
	for g := range gpus {
		a.GPUs = append(a.GPUs, Grant{ID: fmt.Sprint(id, g), Milli: WholeGPU})
	}
	c.Reserve(id, "held-"+id, a)
}

// TestKept: others get on an instance what the task that it keeps room for doesn't need.
func TestKept(t *testing.T) {
	large := &Request{Task: "large", GPUs: gpus(3), CPU: 4096, MemoryMiB: 4096, PortsTCP: []uint16{80}}
	for _, c := range []struct {
		name    string
		held    int
		request Request
		want    string
	}{
		{"the last device but two", 2, Request{GPUs: gpus(1)}, NoGPU},
		{"a share of one", 2, Request{MilliGPU: 100}, NoGPU},
		{"the fourth device", 0, Request{GPUs: gpus(1)}, ""},
		{"the third and fourth device", 0, Request{GPUs: gpus(2)}, NoGPU},
		{"nothing", 2, Request{}, ""},
		{"the CPU that is left", 2, Request{CPU: 3072}, ""},
		{"more CPU", 2, Request{CPU: 3073}, NoCPU},
		{"the memory that is left", 2, Request{MemoryMiB: 4096}, ""},
		{"more memory", 2, Request{MemoryMiB: 4097}, NoMemory},
		{"its port", 2, Request{PortsTCP: []uint16{80}}, NoPorts},
		{"another port", 2, Request{PortsTCP: []uint16{81}}, ""},
		{"the task itself, too early", 2, *large, NoGPU},
		{"the task itself", 1, *large, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := New(nil)
			holding(cluster, "a", c.held, 1024)
			cluster.Keep("a", "large", large)
			if got := cluster.CanHost("a", &c.request); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			plan, reasons := cluster.Place(&c.request, random())
			if placed := plan.InstanceID != ""; placed != (c.want == "") || !placed && reasons[0].Reason != c.want {
				t.Errorf("placed: %v, reasons %v, want %q", placed, reasons, c.want)
			}
			if _, reason := cluster.PlaceOn("a", &Request{CPU: 7168}); reason != "" {
				t.Errorf("somebody who names the instance gets %s", reason)
			}
			cluster.Unkeep("large")
			if got := cluster.CanHost("a", &Request{CPU: 7168}); got != "" {
				t.Errorf("when nothing is kept any more: %s", got)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	large := &Request{Task: "large", GPUs: gpus(4)}
	all := func(string) bool { return true }
	c := New(nil)
	expect := func(when, want string, filter func(string) bool) {
		t.Helper()
		if got := c.Nearest(large, filter); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	expect("without instances", "", all)
	holding(c, "a", 4, 0)
	expect("with nothing free", "", all)
	holding(c, "b", 3, 0)
	holding(c, "c", 2, 0)
	expect("it lacks fewest", "c", all)
	expect("the next one passes", "b", func(id string) bool { return id != "c" })
	c.Keep("c", "other", &Request{Task: "other", GPUs: gpus(3)})
	expect("another task keeps that", "b", all)
	c.Keep("b", "large", large)
	c.Release("b", "held-b")
	expect("all that is kept is free", "b", all)
	c.Unkeep("large")
	expect("it needs nothing kept", "", all)
	c.Remove("b")
	c.Unkeep("other")
	c.Keep("c", "large", large)
	c.Remove("c")
	expect("its instance is gone", "", all)
}
