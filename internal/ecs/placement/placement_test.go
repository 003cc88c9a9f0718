package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func node(id string, gpus int) Instance {
	i := Instance{
		ID:         id,
		CPU:        8192,
		MemoryMiB:  32768,
		Active:     true,
		Connected:  true,
		GPUModel:   "V100",
		Attributes: map[string]string{"zone": "a"},
	}
	for g := range gpus {
		i.GPUs = append(i.GPUs, GPU{ID: fmt.Sprintf("%s-gpu%d", id, g)})
	}
	return i
}

func gpus(n int) []ContainerGPUs { return []ContainerGPUs{{"main", n}} }

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func TestReasons(t *testing.T) {
	cases := []struct {
		name    string
		change  func(*Instance)
		held    Allocation
		request Request
		want    string
	}{
		{"no agent", func(i *Instance) { i.Connected = false }, Allocation{}, Request{}, NoAgent},
		{"GPUs taken", nil, Allocation{GPUs: []Grant{{"c", "a-gpu0", 1000}}}, Request{GPUs: gpus(2)}, NoGPU},
		{"a share taken", nil, Allocation{GPUs: []Grant{{"c", "a-gpu0", 600}, {"c", "a-gpu1", 600}}}, Request{MilliGPU: 500}, NoGPU},
		{"a GPU broken", func(i *Instance) { i.GPUs[0].Faulty = true }, Allocation{}, Request{GPUs: gpus(2)}, NoGPU},
		{"one broken that was taken", func(i *Instance) { i.GPUs[0].Faulty = true },
			Allocation{GPUs: []Grant{{"c", "a-gpu0", 1000}}}, Request{GPUs: gpus(1)}, ""},
		{"another model", nil, Allocation{}, Request{GPUs: gpus(1), GPUModels: []string{"A100"}}, NoGPU},
		{"no CPU", nil, Allocation{CPU: 8000}, Request{CPU: 193}, NoCPU},
		{"no memory", nil, Allocation{MemoryMiB: 32768}, Request{MemoryMiB: 1}, NoMemory},
		{"a port taken", nil, Allocation{PortsTCP: []uint16{80}}, Request{PortsTCP: []uint16{80}}, NoPorts},
		{"a port of the instance's own", func(i *Instance) { i.PortsTCP = []uint16{22} }, Allocation{},
			Request{PortsTCP: []uint16{22}}, NoPorts},
		{"the other protocol", nil, Allocation{PortsTCP: []uint16{80}}, Request{PortsUDP: []uint16{80}}, ""},
		{"no attribute", nil, Allocation{}, Request{Attributes: []Attribute{{Name: "ecs.capability.x"}}}, NoAttribute},
		{"an attribute", nil, Allocation{}, Request{Attributes: []Attribute{{Name: "zone"}}}, ""},
		{"an attribute's value", nil, Allocation{}, Request{Attributes: []Attribute{{Name: "zone", Value: "a"}}}, ""},
		{"another value", nil, Allocation{}, Request{Attributes: []Attribute{{Name: "zone", Value: "b"}}}, NoAttribute},
		{"not distinct", nil, Allocation{Group: "g"}, Request{Group: "g", DistinctInstance: true}, NotDistinct},
		{"no member", nil, Allocation{}, Request{MemberOf: []func(*Node) bool{func(*Node) bool { return false }}}, NotMember},
		{"all of it", nil, Allocation{}, Request{CPU: 8192, MemoryMiB: 32768, GPUs: gpus(2)}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			i := node("a", 2)
			if c.change != nil {
				c.change(&i)
			}
			cl := New(nil)
			cl.Upsert(i)
			cl.Reserve("a", "old", c.held)
			plan, reasons := cl.Place(&c.request, random())
			if c.want == "" {
				if plan.InstanceID != "a" {
					t.Fatalf("not placed: %v", reasons)
				}
				return
			}
			if len(reasons) != 1 || reasons[0] != (Reason{"a", c.want}) {
				t.Fatalf("got %v %v, want %s", plan, reasons, c.want)
			}
		})
	}
}

func TestNoInstancesNoReasons(t *testing.T) {
	if _, reasons := New(nil).Place(&Request{}, random()); len(reasons) != 0 {
		t.Fatalf("got %v", reasons)
	}
}

// TestPinsTheBestConnected uses two islands of four devices each, as in a p3.16xlarge.
func TestPinsTheBestConnected(t *testing.T) {
	i := node("a", 8)
	for g := range i.GPUs {
		i.GPUs[g].NUMA = g / 4
		i.GPUs[g].Links = make([]int, 8)
		for o := range 8 {
			if o/4 == g/4 && o != g {
				i.GPUs[g].Links[o] = 2
			}
		}
	}
	cl := New(nil)
	cl.Upsert(i)
	cl.Reserve("a", "one", Allocation{GPUs: []Grant{{"c", "a-gpu1", 1000}}})
	plan, _ := cl.Place(&Request{GPUs: gpus(4)}, random())
	var ids []string
	for _, g := range plan.GPUs {
		ids = append(ids, g.ID)
	}
	if want := []string{"a-gpu4", "a-gpu5", "a-gpu6", "a-gpu7"}; !slices.Equal(ids, want) {
		t.Errorf("four devices are %v, want the whole island %v", ids, want)
	}
	plan, _ = cl.Place(&Request{GPUs: gpus(1)}, random())
	if id := plan.GPUs[0].ID; !slices.Contains([]string{"a-gpu0", "a-gpu2", "a-gpu3"}, id) {
		t.Errorf("one device is %s, which breaks up the whole island", id)
	}
}

func TestGPUsGoByContainer(t *testing.T) {
	cl := New(nil)
	cl.Upsert(node("a", 4))
	plan, _ := cl.Place(&Request{GPUs: []ContainerGPUs{{"x", 1}, {"y", 2}}}, random())
	seen := map[string]bool{}
	by := map[string]int{}
	for _, g := range plan.GPUs {
		by[g.Container]++
		seen[g.ID] = true
	}
	if by["x"] != 1 || by["y"] != 2 || len(seen) != 3 {
		t.Fatalf("got %v", plan)
	}
}

// TestContainersGetDevicesTogether uses two islands of two devices. Each container's pair must be one of them.
func TestContainersGetDevicesTogether(t *testing.T) {
	i := node("a", 4)
	for g := range i.GPUs {
		i.GPUs[g].Links = make([]int, 4)
		i.GPUs[g].Links[(g+2)%4] = 1
	}
	cl := New(nil)
	cl.Upsert(i)
	plan, _ := cl.Place(&Request{GPUs: []ContainerGPUs{{"x", 2}, {"y", 2}}}, random())
	want := []Grant{{"x", "a-gpu0", 1000}, {"x", "a-gpu2", 1000}, {"y", "a-gpu1", 1000}, {"y", "a-gpu3", 1000}}
	if !slices.Equal(plan.GPUs, want) {
		t.Fatalf("got %v, want %v", plan.GPUs, want)
	}
}

func TestSharesFillDevices(t *testing.T) {
	cl := New(nil)
	cl.Upsert(node("a", 2))
	for i, milli := range []int{600, 300, 100} {
		plan, _ := cl.Place(&Request{MilliGPU: milli, GPUs: []ContainerGPUs{{Container: "main"}}}, random())
		if want := (Grant{"main", "a-gpu0", milli}); plan.GPUs[0] != want {
			t.Fatalf("share %d is %v, want %v", i, plan.GPUs[0], want)
		}
		cl.Reserve("a", fmt.Sprint(i), Allocation{GPUs: plan.GPUs})
	}
}

func TestLargeMachinesArePinnedToo(t *testing.T) {
	i := node("a", 16)
	for g := range i.GPUs {
		i.GPUs[g].NUMA = g % 2
	}
	cl := New(nil)
	cl.Upsert(i)
	plan, _ := cl.Place(&Request{GPUs: gpus(8)}, random())
	seen := map[string]bool{}
	for _, g := range plan.GPUs {
		seen[g.ID] = true
		if slices.IndexFunc(i.GPUs, func(d GPU) bool { return d.ID == g.ID })%2 != 0 {
			t.Errorf("%s is on the other NUMA node", g.ID)
		}
	}
	if len(seen) != 8 {
		t.Errorf("got %d devices: %v", len(seen), plan)
	}
}

func TestChosenInstances(t *testing.T) {
	cl := New(nil)
	cl.Upsert(node("a", 1))
	draining := node("d", 1)
	draining.Active = false
	cl.Upsert(draining)
	never := []func(*Node) bool{func(*Node) bool { return false }}
	cases := []struct {
		name    string
		on      string
		request Request
		placeOn string
		hosts   string
	}{
		{"fits", "a", Request{GPUs: gpus(1)}, "", ""},
		{"too large", "a", Request{GPUs: gpus(2)}, NoGPU, NoGPU},
		{"unknown", "x", Request{}, Missing, Missing},
		{"draining", "d", Request{}, NotActive, NotActive},
		{"constrained", "a", Request{MemberOf: never}, "", NotMember},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, got := cl.PlaceOn(c.on, &c.request); got != c.placeOn {
				t.Errorf("PlaceOn says %q, want %q", got, c.placeOn)
			}
			if got := cl.CanHost(c.on, &c.request); got != c.hosts {
				t.Errorf("CanHost says %q, want %q", got, c.hosts)
			}
		})
	}
}

func TestReasonsAreBounded(t *testing.T) {
	cl := New(nil)
	for i := range 3 * maxReasons {
		cl.Upsert(node(fmt.Sprint(i), 1))
	}
	if _, reasons := cl.Place(&Request{GPUs: gpus(2)}, random()); len(reasons) != maxReasons {
		t.Fatalf("got %d reasons, want %d", len(reasons), maxReasons)
	}
}

// TestRemovedInstancesTakeTheirGroups removes an instance with tasks of a group, and adds it again.
func TestRemovedInstancesTakeTheirGroups(t *testing.T) {
	cl := New(nil)
	cl.Upsert(node("a", 0))
	cl.Reserve("a", "t", Allocation{Group: "g"})
	cl.Remove("a")
	cl.Remove("a")
	cl.Release("a", "t")
	if cl.Len() != 0 || cl.Active() || len(cl.shapes) != 0 {
		t.Fatalf("something is left: %+v", cl)
	}
	cl.Upsert(node("a", 0))
	if plan, reasons := cl.Place(&Request{Group: "g", DistinctInstance: true}, random()); plan.InstanceID != "a" {
		t.Fatalf("not placed: %v", reasons)
	}
}

func TestGPUTasksLeaveWholeMachinesWhole(t *testing.T) {
	cl := New(nil)
	for _, id := range []string{"a", "b"} {
		cl.Upsert(node(id, 8))
	}
	cl.Reserve("b", "old", Allocation{CPU: 1024, MemoryMiB: 4096, GPUs: []Grant{{"c", "b-gpu0", 1000}}})
	for range 20 {
		if plan, _ := cl.Place(&Request{CPU: 1024, MemoryMiB: 4096, GPUs: gpus(1)}, random()); plan.InstanceID != "b" {
			t.Fatal("a one-GPU task opened a whole machine")
		}
		if plan, _ := cl.Place(&Request{CPU: 1024, MemoryMiB: 4096}, random()); plan.InstanceID != "b" {
			t.Fatal("a task without a GPU opened a whole machine")
		}
	}
}

func TestStrategies(t *testing.T) {
	build := func() *Cluster {
		cl := New(nil)
		for i, zone := range []string{"a", "a", "b", "c"} {
			n := node(fmt.Sprintf("i%d", i), 2)
			n.Attributes = map[string]string{"zone": zone}
			cl.Upsert(n)
		}
		cl.Reserve("i0", "t0", Allocation{CPU: 100, MemoryMiB: 100, Group: "g"})
		cl.Reserve("i2", "t2", Allocation{CPU: 50, MemoryMiB: 200, Group: "g"})
		return cl
	}
	cases := []struct {
		name     string
		strategy []Strategy
		want     []string
	}{
		{"spread by zone", []Strategy{{"spread", "attribute:zone"}}, []string{"i3"}},
		{"spread by instance", []Strategy{{"spread", "instanceId"}}, []string{"i1", "i3"}},
		{"binpack CPU", []Strategy{{"binpack", "cpu"}}, []string{"i0"}},
		{"binpack memory", []Strategy{{"binpack", "memory"}}, []string{"i2"}},
		{"spread, then binpack", []Strategy{{"spread", "host"}, {"binpack", "memory"}}, []string{"i1", "i3"}},
		{"random", []Strategy{{"random", ""}}, []string{"i0", "i1", "i2", "i3"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			rnd, seen := random(), map[string]bool{}
			for range 100 {
				plan, _ := build().Place(&Request{CPU: 1, Group: "g", Strategy: c.strategy}, rnd)
				seen[plan.InstanceID] = true
			}
			for id := range seen {
				if !slices.Contains(c.want, id) {
					t.Errorf("placed on %s, want one of %v", id, c.want)
				}
			}
			if len(seen) != len(c.want) {
				t.Errorf("used %v, want all of %v", seen, c.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	cl := New(nil)
	cl.Upsert(Instance{ID: "a", Attributes: map[string]string{"x": "", "arch": "x86_64"}})
	r := &Request{Attributes: []Attribute{{"x", ""}, {"y", ""}, {"arch", "arm64"}}}
	if got := fmt.Sprint(cl.Missing("a", r)); got != "[y arch=arm64]" {
		t.Error(got)
	}
}
