// Command openb replays the public openb trace of Alibaba's GPU clusters through Pintle's placement and its rivals, by the
// protocol of "Beware of Fragmentation" (USENIX ATC 2023). It measures how many GPUs stay idle when tasks arrive until they
// would need more GPUs than there are. The README next to it describes the protocol, says where to get the data, and lists the
// results.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pintle/pintle/internal/ecs/placement"
)

func main() {
	data := flag.String("data", "", "folder with the trace's CSV files")
	lists := flag.String("lists", "default,gpushare40,gpuspec10,multigpu20", "task lists, by the end of their names")
	seeds := flag.Int("seeds", 10, "how many orders of arrival, from seed 42 on")
	flag.Parse()
	if *data == "" {
		fmt.Fprintln(os.Stderr, "openb: --data names the folder with the trace's CSV files; README.md says where they are")
		os.Exit(2)
	}
	if err := run(*data, strings.Split(*lists, ","), *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "openb:", err)
		os.Exit(1)
	}
}

func run(data string, lists []string, seeds int) error {
	nodes, err := readNodes(filepath.Join(data, "openb_node_list_gpu_node.csv"))
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, %d GPUs; means over %d seeds\n", len(nodes), gpuCount(nodes), seeds)
	for _, name := range lists {
		tasks, err := readTasks(filepath.Join(data, "openb_pod_list_"+name+".csv"))
		if err != nil {
			return err
		}
		report(name, nodes, tasks, seeds)
	}
	return nil
}

// policy is one way to place tasks on the trace's nodes.
type policy struct {
	name string
	new  func(nodes []placement.Instance, tasks []task, rnd *rand.Rand) placer
}

// placer places tasks one after another, each for good. It reports whether there was room.
type placer interface{ place(*task) bool }

func policies() []policy {
	return []policy{
		rivalPolicy("Random", random, randomTies),
		rivalPolicy("DotProd", dotProduct, randomTies),
		rivalPolicy("BestFit", bestFit, randomTies),
		rivalPolicy("FGD, random ties", fragmentation, randomTies),
		rivalPolicy("FGD, ties by name", fragmentation, tiesByName),
		{"Pintle, mix given", func(nodes []placement.Instance, tasks []task, rnd *rand.Rand) placer {
			return newPintle(nodes, mixOf(tasks), rnd)
		}},
		{"Pintle", func(nodes []placement.Instance, _ []task, rnd *rand.Rand) placer {
			return newPintle(nodes, nil, rnd)
		}},
	}
}

// pintle is the placement that RunTask uses.
type pintle struct {
	cluster *placement.Cluster
	rnd     *rand.Rand
	tasks   int
}

func newPintle(nodes []placement.Instance, mix placement.Mix, rnd *rand.Rand) *pintle {
	p := &pintle{cluster: placement.New(mix), rnd: rnd}
	for _, n := range nodes {
		p.cluster.Upsert(n)
	}
	return p
}

func (p *pintle) place(t *task) bool {
	r := &t.request
	plan, _ := p.cluster.Place(r, p.rnd)
	if plan.InstanceID == "" {
		return false
	}
	p.cluster.Learn(r)
	p.tasks++
	p.cluster.Reserve(plan.InstanceID, fmt.Sprint(p.tasks), placement.Allocation{CPU: r.CPU, MemoryMiB: r.MemoryMiB, GPUs: plan.GPUs})
	return true
}

// marks are the arrived demands at which GPUs in use are measured, as shares of the cluster's GPUs.
var marks = [3]float64{0.95, 1.00, 1.30}

// replay lets the tasks arrive in a random order, and then more of them drawn at random, until they have asked for 1.3 times
// the cluster's GPUs. A task that doesn't fit when it arrives is dropped, and no task leaves. replay returns the share of the
// GPUs in use at each mark.
func replay(p placer, tasks []task, gpus int, arrivals *rand.Rand) (used [3]float64) {
	total := float64(gpus * placement.WholeGPU)
	arrived := 0
	placed := 0
	mark := 0
	order := arrivals.Perm(len(tasks))
	for i := 0; ; i++ {
		for mark < len(marks) && float64(arrived) >= marks[mark]*total {
			used[mark] = float64(placed) / total
			mark++
		}
		if mark == len(marks) {
			return used
		}
		next := arrivals.IntN(len(tasks))
		if i < len(order) {
			next = order[i]
		}
		t := &tasks[next]
		arrived += t.milli()
		if p.place(t) {
			placed += t.milli()
		}
	}
}

// measure returns the mean of replay's results over the seeds. All policies see the same arrivals.
func measure(p policy, nodes []placement.Instance, tasks []task, seeds int) (mean [3]float64) {
	runs := make([][3]float64, seeds)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for s := range seeds {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			seed := uint64(42 + s)
			placer := p.new(nodes, tasks, rand.New(rand.NewPCG(seed, 1)))
			runs[s] = replay(placer, tasks, gpuCount(nodes), rand.New(rand.NewPCG(seed, 0)))
		})
	}
	wg.Wait()
	for _, r := range runs {
		for m := range marks {
			mean[m] += r[m] / float64(seeds)
		}
	}
	return mean
}

func report(list string, nodes []placement.Instance, tasks []task, seeds int) {
	all := policies()
	used := make([][3]float64, len(all))
	idle := func(i, mark int) float64 { return (1 - used[i][mark]) * float64(gpuCount(nodes)) }
	bestFit := 0
	for i, p := range all {
		used[i] = measure(p, nodes, tasks, seeds)
		if p.name == "BestFit" {
			bestFit = i
		}
	}
	fmt.Printf("\n%-18s %14s %26s %22s\n", list, "GPUs in use", "GPUs idle when arrived", "idle, of BestFit's")
	fmt.Printf("%-18s %14s %10s %7s %7s %22s\n", "", "at 130 %", "95 %", "100 %", "130 %", "at 130 %")
	for i, p := range all {
		fmt.Printf("%-18s %12.2f %% %10.0f %7.0f %7.0f %22.3f\n",
			p.name, 100*used[i][2], idle(i, 0), idle(i, 1), idle(i, 2), idle(i, 2)/idle(bestFit, 2))
	}
}
