package placement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func node(id string, gpus int) Instance {
	i := Instance{ID: id, CPU: 8192, MemoryMiB: 32768, Active: true, Connected: true, GPUModel: "V100", Attributes: map[string]string{"zone": "a"}}
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
		{"another model", nil, Allocation{}, Request{GPUs: gpus(1), GPUModels: []string{"A100"}}, NoGPU},
		{"no CPU", nil, Allocation{CPU: 8000}, Request{CPU: 193}, NoCPU},
		{"no memory", nil, Allocation{MemoryMiB: 32768}, Request{MemoryMiB: 1}, NoMemory},
		{"a port taken", nil, Allocation{PortsTCP: []uint16{80}}, Request{PortsTCP: []uint16{80}}, NoPorts},
		{"a port of the instance's own", func(i *Instance) { i.PortsTCP = []uint16{22} }, Allocation{}, Request{PortsTCP: []uint16{22}}, NoPorts},
		{"the other protocol", nil, Allocation{PortsTCP: []uint16{80}}, Request{PortsUDP: []uint16{80}}, ""},
		{"no attribute", nil, Allocation{}, Request{Attributes: []string{"ecs.capability.x"}}, NoAttribute},
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

// TestPinsTheBestConnected has two islands of four devices each, as a p3.16xlarge is built.
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

// TestPlaceHoldsItsPromises drives a cluster with random instances and tasks. Whatever is placed
// fits; what is not placed fits nowhere; what is chosen costs no more than anything else would; no
// device is given out more than once over; and releasing everything leaves what was there.
func TestPlaceHoldsItsPromises(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		cl := New(nil)
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		for i := range rapid.IntRange(1, 6).Draw(r, "instances") {
			n := node(fmt.Sprintf("i%d", i), rapid.IntRange(0, 4).Draw(r, "gpus"))
			n.CPU = rapid.Int64Range(1, 4).Draw(r, "cpu") * 1024
			n.Connected = rapid.IntRange(0, 9).Draw(r, "connected") > 0
			cl.Upsert(n)
		}
		held := map[string]string{}
		for i := range rapid.IntRange(0, 40).Draw(r, "steps") {
			if len(held) > 0 && rapid.IntRange(0, 3).Draw(r, "release") == 0 {
				id := rapid.SampledFrom(sorted(held)).Draw(r, "task")
				cl.Release(held[id], id)
				delete(held, id)
				continue
			}
			req := Request{CPU: rapid.Int64Range(0, 3000).Draw(r, "cpu"), MemoryMiB: rapid.Int64Range(0, 9000).Draw(r, "memory"), Group: "g"}
			switch rapid.IntRange(0, 2).Draw(r, "kind") {
			case 0:
				req.GPUs = gpus(rapid.IntRange(1, 4).Draw(r, "need"))
			case 1:
				req.MilliGPU = rapid.IntRange(1, 999).Draw(r, "milli")
			}
			plan, reasons := cl.Place(&req, rnd)
			if len(reasons) > 0 {
				for _, n := range cl.nodes {
					if n.takes(&req) {
						r.Fatalf("%+v was refused with %v, and fits %s", req, reasons, n.ID)
					}
				}
				continue
			}
			n := cl.nodes[plan.InstanceID]
			if !n.takes(&req) {
				r.Fatalf("%+v was placed on %s, which does not take it", req, n.ID)
			}
			got, _, _ := cl.mix.cost(&cl.scale, n.shape, &req)
			for _, o := range cl.nodes {
				if c, _, fits := cl.mix.cost(&cl.scale, o.shape, &req); fits && c < got-tied {
					r.Fatalf("placed on %s at %v, %s costs %v", n.ID, got, o.ID, c)
				}
			}
			id := fmt.Sprintf("t%d", i)
			cl.Reserve(plan.InstanceID, id, Allocation{CPU: req.CPU, MemoryMiB: req.MemoryMiB, GPUs: plan.GPUs, Group: "g"})
			held[id] = plan.InstanceID
			sound(r, cl)
		}
		for id, on := range held {
			cl.Release(on, id)
		}
		for _, n := range cl.nodes {
			if n.freeCPU != n.CPU || n.freeMemory != n.MemoryMiB || n.wholeFree() != len(n.GPUs) || len(n.groups) != 0 {
				r.Fatalf("%s is not whole again: %+v", n.ID, n)
			}
		}
	})
}

func sound(r *rapid.T, cl *Cluster) {
	for _, n := range cl.nodes {
		if n.freeCPU < 0 || n.freeMemory < 0 {
			r.Fatalf("%s owes CPU or memory: %+v", n.ID, n)
		}
		for i, f := range n.freeGPU {
			if f < 0 || f > WholeGPU {
				r.Fatalf("device %s has %d thousandths free", n.GPUs[i].ID, f)
			}
		}
	}
	members := 0
	for k, s := range cl.shapes {
		members += len(s.members)
		for _, n := range s.members {
			if n.key() != k {
				r.Fatalf("%s is in the wrong shape", n.ID)
			}
		}
	}
	if members != len(cl.nodes) {
		r.Fatalf("%d nodes in shapes, %d in all", members, len(cl.nodes))
	}
}

func sorted(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// BenchmarkPlace is one decision on a cluster that is two thirds full, and the booking of it and of a
// task that ends, so that the picture changes as it does in life.
func BenchmarkPlace(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			cl := New(nil)
			for i := range nodes {
				n := node(fmt.Sprintf("i%d", i), 8)
				n.CPU, n.MemoryMiB = 65536, 499712
				cl.Upsert(n)
			}
			rnd := random()
			kinds := []Request{
				{CPU: 2048, MemoryMiB: 8192, GPUs: gpus(1)}, {CPU: 4096, MemoryMiB: 30000, GPUs: gpus(2)},
				{CPU: 8192, MemoryMiB: 60000, GPUs: gpus(4)}, {CPU: 1024, MemoryMiB: 2048}, {CPU: 1024, MemoryMiB: 4096, MilliGPU: 300},
			}
			type placed struct{ on, id string }
			var tasks []placed
			place := func(i int) {
				req := &kinds[rnd.IntN(len(kinds))]
				plan, reasons := cl.Place(req, rnd)
				if len(reasons) > 0 {
					return
				}
				t := placed{plan.InstanceID, fmt.Sprint(i)}
				cl.Reserve(t.on, t.id, Allocation{CPU: req.CPU, MemoryMiB: req.MemoryMiB, GPUs: plan.GPUs})
				tasks = append(tasks, t)
			}
			for i := range nodes * 3 {
				place(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				place(nodes*3 + i)
				k := rnd.IntN(len(tasks))
				cl.Release(tasks[k].on, tasks[k].id)
				tasks[k] = tasks[len(tasks)-1]
				tasks = tasks[:len(tasks)-1]
			}
		})
	}
}
