// Command openb replays the public openb trace of Alibaba's GPU clusters through Pintle's placement, by
// the protocol of "Beware of Fragmentation" (USENIX ATC 2023), beside its rivals: how many GPUs are
// left idle when tasks arrive until they would need more than there are? The README beside it tells the
// protocol, where the data is, and what came out.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pintle/pintle/internal/decide/placement"
)

func main() {
	data := flag.String("data", "", "folder with the trace's CSV files")
	lists := flag.String("lists", "default,gpushare40,gpuspec10,multigpu20", "task lists, by the end of their names")
	seeds := flag.Int("seeds", 10, "how many orders of arrival, from seed 42 on")
	gradient := flag.Float64("gradient", placement.DefaultMix().Gradient, "Pintle's weight of added fragments against best fit")
	flag.Parse()
	if *data == "" {
		fmt.Fprintln(os.Stderr, "openb: --data names the folder with the trace's CSV files; README.md says where they are")
		os.Exit(2)
	}
	nodes, err := readNodes(filepath.Join(*data, "openb_node_list_gpu_node.csv"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "openb:", err)
		os.Exit(1)
	}
	fmt.Printf("%d nodes, %d GPUs, %d seeds; means over the seeds, last ties broken at random\n", len(nodes), gpuCount(nodes), *seeds)
	for name := range strings.SplitSeq(*lists, ",") {
		tasks, err := readTasks(filepath.Join(*data, "openb_pod_list_"+name+".csv"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "openb:", err)
			os.Exit(1)
		}
		report(name, compare(nodes, tasks, *seeds, *gradient))
	}
}

// policy is one way to place tasks.
type policy struct {
	name     string
	gradient float64
	bestFit  float64
	random   bool
}

// outcome is the share of the GPUs in use at the arrived demands of marks, mean over the seeds.
type outcome struct {
	policy policy
	used   [3]float64
	idle   float64 // GPUs, at the last mark
}

// marks are the arrived demands, as shares of the cluster's GPUs, at which is measured.
var marks = [3]float64{0.95, 1.00, 1.30}

func compare(nodes []placement.Instance, tasks []task, seeds int, gradient float64) []outcome {
	policies := []policy{
		{name: "Random", random: true}, {name: "BestFit", bestFit: 1}, {name: "FGD, random ties", gradient: 1}, {name: "Pintle", gradient: gradient, bestFit: 1},
	}
	out := make([]outcome, len(policies))
	for i, p := range policies {
		out[i].policy = p
		runs := make([][3]float64, seeds)
		var wg sync.WaitGroup
		slots := make(chan struct{}, 2)
		for s := range seeds {
			wg.Go(func() {
				slots <- struct{}{}
				runs[s] = replay(nodes, tasks, p, uint64(42+s))
				<-slots
			})
		}
		wg.Wait()
		for _, r := range runs {
			for m := range marks {
				out[i].used[m] += r[m] / float64(seeds)
			}
		}
		out[i].idle = (1 - out[i].used[2]) * float64(gpuCount(nodes))
	}
	return out
}

// replay lets the tasks arrive in a random order, and again drawn at random, until they have asked for
// 1.3 times the cluster's GPUs. A task that does not fit when it arrives is dropped; none departs.
func replay(nodes []placement.Instance, tasks []task, p policy, seed uint64) (used [3]float64) {
	rnd := rand.New(rand.NewPCG(seed, seed))
	mix := mixOf(tasks)
	mix.Gradient, mix.BestFit = p.gradient, p.bestFit
	cluster := placement.New(mix)
	for _, n := range nodes {
		cluster.Upsert(n)
	}
	total := float64(gpuCount(nodes) * placement.WholeGPU)
	arrived, placed, mark := 0.0, 0.0, 0
	order := rnd.Perm(len(tasks))
	for i := 0; ; i++ {
		for mark < len(marks) && arrived >= marks[mark]*total {
			used[mark] = placed / total
			mark++
		}
		if mark == len(marks) {
			return used
		}
		k := rnd.IntN(len(tasks))
		if i < len(order) {
			k = order[i]
		}
		t := &tasks[k]
		arrived += float64(t.milli())
		r := t.request
		if p.random {
			r.Strategy = []placement.Strategy{{Type: "random"}}
		}
		plan, _ := cluster.Place(&r, rnd)
		if plan.InstanceID == "" {
			continue
		}
		placed += float64(t.milli())
		cluster.Reserve(plan.InstanceID, fmt.Sprint(i), placement.Allocation{CPU: r.CPU, MemoryMiB: r.MemoryMiB, GPUs: plan.GPUs})
	}
}

func report(list string, out []outcome) {
	var bestFit float64
	for _, o := range out {
		if o.policy.name == "BestFit" {
			bestFit = o.idle
		}
	}
	fmt.Printf("\n%s\n%-18s %12s %12s %12s %14s %14s\n", list, "policy", "used at 95%", "at 100%", "at 130%", "GPUs idle", "of BestFit's")
	for _, o := range out {
		fmt.Printf("%-18s %11.2f%% %11.2f%% %11.2f%% %14.0f %14.2f\n", o.policy.name, 100*o.used[0], 100*o.used[1], 100*o.used[2], o.idle, o.idle/bestFit)
	}
}
