// Package instancetype is what Pintle knows of EC2's instance types: vCPUs, memory, and GPUs with their
// model, memory and how they are linked. Simulated nodes are built from it. It is data; the figures are
// those of https://aws.amazon.com/ec2/instance-types/ and NVIDIA's own.
package instancetype

import (
	"fmt"
	"slices"
	"strconv"
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
}

// Topology says how a type's GPUs are linked.
type Topology int

// The topologies that there are.
const (
	PCIe     Topology = iota // no NVLink
	AllToAll                 // every GPU to every other, through NVSwitch
	CubeMesh                 // eight V100 in two quads, as a p3.16xlarge has them
	Quad                     // four V100, each linked to the others
)

// Links is how many NVLinks there are from GPU i to each of the type's GPUs.
func (t Type) Links(i int) []int {
	if t.Topology == PCIe || t.GPUs < 2 {
		return nil
	}
	links := make([]int, t.GPUs)
	for j := range links {
		if j != i {
			links[j] = t.linksBetween(i, j)
		}
	}
	return links
}

// cubeMesh is the links between a DGX-1's eight V100: within a quad one or two, and two to the one
// GPU that stands opposite.
var cubeMesh = [8][8]int{
	{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
	{2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0},
}

func (t Type) linksBetween(i, j int) int {
	switch t.Topology {
	case AllToAll:
		return 12
	case CubeMesh:
		return cubeMesh[i][j]
	}
	return 2
}

// NUMA is the NUMA node of GPU i: machines of eight GPUs have two.
func (t Type) NUMA(i int) int {
	if t.GPUs < 8 {
		return 0
	}
	return i / (t.GPUs / 2)
}

// families with GPUs; sizes are name, vCPUs, GiB, GPUs.
type size struct {
	name  string
	vcpus int
	gib   float64
	gpus  int
}

type family struct {
	name     string
	model    string
	gpuMiB   int64
	topology Topology
	sizes    []size
}

var gpuFamilies = []family{
	{"p2", "Tesla K80", 12288, PCIe, []size{{"xlarge", 4, 61, 1}, {"8xlarge", 32, 488, 8}, {"16xlarge", 64, 732, 16}}},
	{"p3", "Tesla V100-SXM2-16GB", 16384, CubeMesh, []size{{"2xlarge", 8, 61, 1}, {"8xlarge", 32, 244, 4}, {"16xlarge", 64, 488, 8}}},
	{"p3dn", "Tesla V100-SXM2-32GB", 32768, CubeMesh, []size{{"24xlarge", 96, 768, 8}}},
	{"p4d", "NVIDIA A100-SXM4-40GB", 40960, AllToAll, []size{{"24xlarge", 96, 1152, 8}}},
	{"p4de", "NVIDIA A100-SXM4-80GB", 81920, AllToAll, []size{{"24xlarge", 96, 1152, 8}}},
	{"p5", "NVIDIA H100 80GB HBM3", 81920, AllToAll, []size{{"4xlarge", 16, 256, 1}, {"48xlarge", 192, 2048, 8}}},
	{"p5e", "NVIDIA H200", 144384, AllToAll, []size{{"48xlarge", 192, 2048, 8}}},
	{"p5en", "NVIDIA H200", 144384, AllToAll, []size{{"48xlarge", 192, 2048, 8}}},
	{"g3s", "Tesla M60", 8192, PCIe, []size{{"xlarge", 4, 30.5, 1}}},
	{"g3", "Tesla M60", 8192, PCIe, []size{{"4xlarge", 16, 122, 1}, {"8xlarge", 32, 244, 2}, {"16xlarge", 64, 488, 4}}},
	{"g4dn", "Tesla T4", 16384, PCIe, []size{{"xlarge", 4, 16, 1}, {"2xlarge", 8, 32, 1}, {"4xlarge", 16, 64, 1}, {"8xlarge", 32, 128, 1}, {"12xlarge", 48, 192, 4}, {"16xlarge", 64, 256, 1}, {"metal", 96, 384, 8}}},
	{"g5", "NVIDIA A10G", 24576, PCIe, []size{{"xlarge", 4, 16, 1}, {"2xlarge", 8, 32, 1}, {"4xlarge", 16, 64, 1}, {"8xlarge", 32, 128, 1}, {"12xlarge", 48, 192, 4}, {"16xlarge", 64, 256, 1}, {"24xlarge", 96, 384, 4}, {"48xlarge", 192, 768, 8}}},
	{"g6", "NVIDIA L4", 24576, PCIe, []size{{"xlarge", 4, 16, 1}, {"2xlarge", 8, 32, 1}, {"4xlarge", 16, 64, 1}, {"8xlarge", 32, 128, 1}, {"12xlarge", 48, 192, 4}, {"16xlarge", 64, 256, 1}, {"24xlarge", 96, 384, 4}, {"48xlarge", 192, 768, 8}}},
	{"g6e", "NVIDIA L40S", 49152, PCIe, []size{{"xlarge", 4, 32, 1}, {"2xlarge", 8, 64, 1}, {"4xlarge", 16, 128, 1}, {"8xlarge", 32, 256, 1}, {"12xlarge", 48, 384, 4}, {"16xlarge", 64, 512, 1}, {"24xlarge", 96, 768, 4}, {"48xlarge", 192, 1536, 8}}},
}

// gibPerVCPU is the memory of the families without GPUs, whose sizes follow one rule.
var gibPerVCPU = map[string]float64{
	"c5": 2, "c5d": 2, "c6i": 2, "c7i": 2, "c6g": 2, "m5": 4, "m5d": 4, "m6i": 4, "m7i": 4, "m6g": 4, "r5": 8, "r6i": 8, "r7i": 8,
}

// Lookup finds a type by its name.
func Lookup(name string) (Type, error) {
	familyName, sizeName, _ := strings.Cut(name, ".")
	for _, f := range gpuFamilies {
		for _, s := range f.sizes {
			if f.name == familyName && s.name == sizeName {
				return f.typeOf(s), nil
			}
		}
	}
	if perCPU, ok := gibPerVCPU[familyName]; ok {
		if n := vcpus(sizeName); n > 0 {
			return Type{Name: name, VCPUs: n, MemoryMiB: int64(float64(n) * perCPU * 1024)}, nil
		}
	}
	return Type{}, fmt.Errorf("unknown instance type %q: use one with GPUs (%s) or one of the families %s", name, strings.Join(GPUTypes(), ", "), strings.Join(plain(), ", "))
}

func (f family) typeOf(s size) Type {
	t := Type{Name: f.name + "." + s.name, VCPUs: s.vcpus, MemoryMiB: int64(s.gib * 1024), GPUs: s.gpus, GPUModel: f.model, GPUMemMiB: f.gpuMiB, Topology: f.topology}
	if f.topology == CubeMesh && s.gpus == 4 {
		t.Topology = Quad
	}
	if s.gpus == 1 {
		t.Topology = PCIe
	}
	return t
}

// vcpus is the vCPUs of a size: large is 2, xlarge 4, Nxlarge 4N.
func vcpus(size string) int {
	switch size {
	case "large":
		return 2
	case "xlarge":
		return 4
	}
	n, err := strconv.Atoi(strings.TrimSuffix(size, "xlarge"))
	if err != nil || !strings.HasSuffix(size, "xlarge") || n < 2 || n > 48 {
		return 0
	}
	return 4 * n
}

// GPUTypes lists the types with GPUs.
func GPUTypes() []string {
	var out []string
	for _, f := range gpuFamilies {
		for _, s := range f.sizes {
			out = append(out, f.name+"."+s.name)
		}
	}
	return out
}

func plain() []string {
	var out []string
	for f := range gibPerVCPU {
		out = append(out, f)
	}
	slices.Sort(out)
	return out
}
