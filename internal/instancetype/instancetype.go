// Package instancetype holds what Pintle knows of EC2's instance types: vCPUs, memory, and GPUs with their model,
// memory and links. Simulated nodes are built from it. It is data. The figures come from
// https://aws.amazon.com/ec2/instance-types/ and NVIDIA.
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
	NVLinks   int // of each GPU, if they end at switches
}

// Topology says how a type's GPUs are linked.
type Topology int

// The topologies.
const (
	PCIe     Topology = iota // no NVLink
	Switched                 // every GPU linked to every other, through NVSwitch
	CubeMesh                 // V100 in one or two quads, as in a p3.8xlarge and a p3.16xlarge
)

// cubeMesh holds the links between eight V100: one or two within a quad, and two or one to the opposite GPU.
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

// Links returns how many NVLinks lead from GPU i to each of the type's GPUs.
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

// NUMA returns the NUMA node of GPU i. Machines with eight GPUs or more have two nodes.
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
	return Type{}, fmt.Errorf("unknown instance type %q: the families with GPUs are %s, such as in g4dn.xlarge; those without are %s", name,
		strings.Join(familyNames(true), ", "), strings.Join(familyNames(false), ", "))
}

func (f family) typeOf(s size) Type {
	t := Type{Name: f.name + "." + s.name, VCPUs: s.vcpus, MemoryMiB: int64(s.gib * 1024), GPUs: s.gpus}
	if s.gpus > 0 {
		t.GPUModel = f.model
		t.GPUMemMiB = f.gpuMiB
		t.Topology = f.topology
		t.NVLinks = f.nvLinks
	}
	if s.gpus == 1 {
		t.Topology = PCIe
		t.NVLinks = 0
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

// familyNames lists the families that have GPUs, or those that have none.
func familyNames(withGPUs bool) []string {
	var out []string
	for _, f := range families {
		if (f.model != "") == withGPUs {
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
