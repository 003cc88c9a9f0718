// Package instancetype is what Pintle knows of EC2's instance types: vCPUs, memory, and GPUs with their
// model, memory and how they are linked. Simulated nodes are built from it. It is data; the figures are
// those of https://aws.amazon.com/ec2/instance-types/ and NVIDIA's own.
package instancetype

import (
	"fmt"
	"slices"
	"strings"
)

// Type is one instance type.
type Type struct {
	Name      string
	VCPUs     int
	MemoryMiB int64
	GPUs      int
	GPUModel  string
	GPUMemMiB int64
	Topology  Topology
	NVLinks   int // of each GPU, where they end at switches
}

// Topology says how a type's GPUs are linked.
type Topology int

// The topologies that there are.
const (
	PCIe     Topology = iota // no NVLink
	Switched                 // every GPU to every other, through NVSwitch
	CubeMesh                 // V100 in one or two quads, as a p3.8xlarge and a p3.16xlarge have them
)

// cubeMesh is the links between eight V100: within a quad one or two, and two or one to the GPU that
// stands opposite.
var cubeMesh = [8][8]int{
	{0, 1, 1, 2, 2, 0, 0, 0},
	{1, 0, 2, 1, 0, 2, 0, 0},
	{1, 2, 0, 2, 0, 0, 1, 0},
	{2, 1, 2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 1, 1, 2},
	{0, 2, 0, 0, 1, 0, 2, 1},
	{0, 0, 1, 0, 1, 2, 0, 2},
	{0, 0, 0, 1, 2, 1, 2, 0},
}

// Links is how many NVLinks lead from GPU i to each of the type's GPUs.
func (t Type) Links(i int) []int {
	if t.Topology == PCIe || t.GPUs < 2 {
		return nil
	}
	links := make([]int, t.GPUs)
	for j := range links {
		switch {
		case j == i:
		case t.Topology == CubeMesh:
			links[j] = cubeMesh[i][j]
		default:
			links[j] = t.NVLinks
		}
	}
	return links
}

// NUMA is the NUMA node of GPU i: machines of eight GPUs and more have two.
func (t Type) NUMA(i int) int {
	if t.GPUs < 8 {
		return 0
	}
	return i / (t.GPUs / 2)
}

// Lookup finds a type by its name.
func Lookup(name string) (Type, error) {
	familyName, sizeName, _ := strings.Cut(name, ".")
	for _, f := range families {
		if f.name != familyName {
			continue
		}
		for _, s := range f.sizes {
			if s.name == sizeName {
				return f.typeOf(s), nil
			}
		}
		return Type{}, fmt.Errorf("unknown instance type %q: %s comes as %s", name, familyName, strings.Join(f.types(), ", "))
	}
	return Type{}, fmt.Errorf("unknown instance type %q: use one with GPUs (%s) or one of the families %s", name, strings.Join(GPUTypes(), ", "), strings.Join(plain(), ", "))
}

func (f family) typeOf(s size) Type {
	t := Type{Name: f.name + "." + s.name, VCPUs: s.vcpus, MemoryMiB: int64(s.gib * 1024), GPUs: s.gpus}
	if s.gpus > 0 {
		t.GPUModel, t.GPUMemMiB, t.Topology, t.NVLinks = f.model, f.gpuMiB, f.topology, f.nvLinks
	}
	if s.gpus == 1 {
		t.Topology, t.NVLinks = PCIe, 0
	}
	return t
}

func (f family) types() []string {
	var out []string
	for _, s := range f.sizes {
		out = append(out, f.name+"."+s.name)
	}
	return out
}

// GPUTypes lists the types with GPUs.
func GPUTypes() []string {
	var out []string
	for _, f := range families {
		if f.model != "" {
			out = append(out, f.types()...)
		}
	}
	return out
}

// plain lists the families without GPUs.
func plain() []string {
	var out []string
	for _, f := range families {
		if f.model == "" {
			out = append(out, f.name)
		}
	}
	slices.Sort(out)
	return out
}

// All lists every type.
func All() []Type {
	var out []Type
	for _, f := range families {
		for _, s := range f.sizes {
			out = append(out, f.typeOf(s))
		}
	}
	return out
}
