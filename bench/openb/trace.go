package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/decide/placement"
)

// task is one line of a task list.
type task struct{ request placement.Request }

// milli is the GPUs that the task asks for, in thousandths.
func (t *task) milli() int {
	n := t.request.MilliGPU
	for _, g := range t.request.GPUs {
		n += g.Count * placement.WholeGPU
	}
	return n
}

func readNodes(path string) ([]placement.Instance, error) {
	rows, err := read(path, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, err
	}
	var out []placement.Instance
	for _, r := range rows {
		n := placement.Instance{ID: r[0], CPU: number(r[1]), MemoryMiB: number(r[2]), GPUModel: r[4], Active: true, Connected: true}
		for g := range number(r[3]) {
			n.GPUs = append(n.GPUs, placement.GPU{ID: fmt.Sprintf("%s/%d", r[0], g)})
		}
		out = append(out, n)
	}
	return out, nil
}

func gpuCount(nodes []placement.Instance) int {
	n := 0
	for _, i := range nodes {
		n += len(i.GPUs)
	}
	return n
}

func readTasks(path string) ([]task, error) {
	rows, err := read(path, "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")
	if err != nil {
		return nil, err
	}
	var out []task
	for _, r := range rows {
		t := task{placement.Request{CPU: number(r[0]), MemoryMiB: number(r[1])}}
		gpus, milli := int(number(r[2])), int(number(r[3]))
		switch {
		case gpus == 1 && milli < placement.WholeGPU:
			t.request.MilliGPU = milli
		case gpus > 0:
			t.request.GPUs = []placement.ContainerGPUs{{Container: "main", Count: gpus}}
		}
		if r[4] != "" {
			t.request.GPUModels = strings.Split(r[4], "|")
		}
		out = append(out, t)
	}
	return out, nil
}

// read reads the named columns; one that a file does not have is empty.
func read(path string, columns ...string) ([][]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var out [][]string
	for _, line := range all[1:] {
		row := make([]string, len(columns))
		for i, c := range columns {
			if at := slices.Index(all[0], c); at >= 0 {
				row[i] = line[at]
			}
		}
		out = append(out, row)
	}
	return out, nil
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// covered is the share of the tasks that the classes of the mix stand for, as in the paper.
const covered = 0.95

// mixOf is the classes of a task list: its most common kinds of tasks.
func mixOf(tasks []task) *placement.Mix {
	type kind struct {
		cpu, memory int64
		gpus, milli int
		models      string
	}
	count := map[kind]int{}
	for _, t := range tasks {
		r := t.request
		k := kind{cpu: r.CPU, memory: r.MemoryMiB, milli: r.MilliGPU, models: strings.Join(r.GPUModels, "|")}
		for _, g := range r.GPUs {
			k.gpus += g.Count
		}
		count[k]++
	}
	var kinds []kind
	for k := range count {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b kind) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	mix := &placement.Mix{}
	sum := 0
	for _, k := range kinds {
		if float64(sum) >= covered*float64(len(tasks)) {
			break
		}
		sum += count[k]
		c := placement.Class{CPU: k.cpu, MemoryMiB: k.memory, GPUs: k.gpus, MilliGPU: k.milli, Weight: float64(count[k]) / float64(len(tasks))}
		if k.models != "" {
			c.Models = strings.Split(k.models, "|")
		}
		mix.Classes = append(mix.Classes, c)
	}
	return mix
}
