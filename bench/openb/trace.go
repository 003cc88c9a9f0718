package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/ecs/placement"
)

// task is one line of a task list.
type task struct {
	request placement.Request
	alike   *task // the first task of its list with the same request
}

// gpus returns how many whole GPUs the task asks for.
func (t *task) gpus() int {
	n := 0
	for _, g := range t.request.GPUs {
		n += g.Count
	}
	return n
}

// milli returns the GPUs that the task asks for, in thousandths.
func (t *task) milli() int { return t.request.MilliGPU + t.gpus()*placement.WholeGPU }

func (t *task) takesModel(model string) bool {
	return t.milli() == 0 || len(t.request.GPUModels) == 0 || slices.Contains(t.request.GPUModels, model)
}

// class returns the task's kind, without a weight.
func (t *task) class() placement.Class {
	r := &t.request
	return placement.Class{CPU: r.CPU, MemoryMiB: r.MemoryMiB, GPUs: t.gpus(), MilliGPU: r.MilliGPU, Models: r.GPUModels}
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
	out := make([]task, len(rows))
	first := map[string]*task{}
	for i, r := range rows {
		t := &out[i]
		t.request = placement.Request{CPU: number(r[0]), MemoryMiB: number(r[1])}
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
		kind := fmt.Sprint(t.class())
		if first[kind] == nil {
			first[kind] = t
		}
		t.alike = first[kind]
	}
	return out, nil
}

// read reads the named columns. A column that the file doesn't have is empty.
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

// mixOf returns the classes of a task list: its most common kinds of tasks.
func mixOf(tasks []task) placement.Mix {
	count := map[*task]int{}
	var kinds []*task
	for i := range tasks {
		if tasks[i].alike == &tasks[i] {
			kinds = append(kinds, &tasks[i])
		}
		count[tasks[i].alike]++
	}
	slices.SortStableFunc(kinds, func(a, b *task) int { return cmp.Compare(count[b], count[a]) })
	var mix placement.Mix
	sum := 0
	for _, t := range kinds {
		if float64(sum) >= covered*float64(len(tasks)) {
			break
		}
		sum += count[t]
		c := t.class()
		c.Weight = float64(count[t]) / float64(len(tasks))
		mix = append(mix, c)
	}
	return mix
}
