package instancetype

// family is the set of types that share a name before the dot.
type family struct {
	name     string
	model    string // model of its GPUs; empty means no GPUs
	gpuMiB   int64
	topology Topology
	nvLinks  int
	sizes    []size
}

// size is one type of a family.
type size struct {
	name  string
	vcpus int
	gib   float64
	gpus  int
}

// gSizes returns the sizes of the G families since g5. Their memory is proportional to their vCPUs.
func gSizes(gibPerVCPU float64) []size {
	sizes := []size{
		{"xlarge", 4, 0, 1},
		{"2xlarge", 8, 0, 1},
		{"4xlarge", 16, 0, 1},
		{"8xlarge", 32, 0, 1},
		{"12xlarge", 48, 0, 4},
		{"16xlarge", 64, 0, 1},
		{"24xlarge", 96, 0, 4},
		{"48xlarge", 192, 0, 8},
	}
	for i := range sizes {
		sizes[i].gib = float64(sizes[i].vcpus) * gibPerVCPU
	}
	return sizes
}

// plainSizes returns sizes without GPUs. Their memory is proportional to their vCPUs.
func plainSizes(gibPerVCPU float64, names ...string) []size {
	vcpus := map[string]int{
		"medium": 1, "large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32, "9xlarge": 36, "10xlarge": 40,
		"12xlarge": 48,
		"16xlarge": 64, "18xlarge": 72, "24xlarge": 96, "32xlarge": 128, "48xlarge": 192,
	}
	var sizes []size
	for _, n := range names {
		sizes = append(sizes, size{n, vcpus[n], float64(vcpus[n]) * gibPerVCPU, 0})
	}
	return sizes
}

// Sizes that many families share.
var (
	c5Sizes = []string{"large", "xlarge", "2xlarge", "4xlarge", "9xlarge", "12xlarge", "18xlarge", "24xlarge"}
	m5Sizes = []string{"large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge"}
	i6Sizes = append(m5Sizes[:len(m5Sizes):len(m5Sizes)], "32xlarge")
	a6Sizes = append(m5Sizes[:len(m5Sizes):len(m5Sizes)], "32xlarge", "48xlarge")
	i7Sizes = append(m5Sizes[:len(m5Sizes):len(m5Sizes)], "48xlarge")
	g6Sizes = []string{"medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge"}
	t3Sizes = []size{{"nano", 2, 0.5, 0}, {"micro", 2, 1, 0}, {"small", 2, 2, 0}, {"medium", 2, 4, 0}, {"large", 2, 8, 0},
		{"xlarge", 4, 16, 0}, {"2xlarge", 8, 32, 0}}
	t2Sizes = []size{{"nano", 1, 0.5, 0}, {"micro", 1, 1, 0}, {"small", 1, 2, 0}, {"medium", 2, 4, 0}, {"large", 2, 8, 0},
		{"xlarge", 4, 16, 0}, {"2xlarge", 8, 32, 0}}
	families = []family{
		{"p2", "Tesla K80", 12288, PCIe, 0, []size{{"xlarge", 4, 61, 1}, {"8xlarge", 32, 488, 8}, {"16xlarge", 64, 732, 16}}},
		{"p3", "Tesla V100-SXM2-16GB", 16384, CubeMesh, 0,
			[]size{{"2xlarge", 8, 61, 1}, {"8xlarge", 32, 244, 4}, {"16xlarge", 64, 488, 8}}},
		{"p3dn", "Tesla V100-SXM2-32GB", 32768, CubeMesh, 0, []size{{"24xlarge", 96, 768, 8}}},
		{"p4d", "NVIDIA A100-SXM4-40GB", 40960, Switched, 12, []size{{"24xlarge", 96, 1152, 8}}},
		{"p4de", "NVIDIA A100-SXM4-80GB", 81920, Switched, 12, []size{{"24xlarge", 96, 1152, 8}}},
		{"p5", "NVIDIA H100 80GB HBM3", 81920, Switched, 18, []size{{"4xlarge", 16, 256, 1}, {"48xlarge", 192, 2048, 8}}},
		{"p5e", "NVIDIA H200", 144384, Switched, 18, []size{{"48xlarge", 192, 2048, 8}}},
		{"p5en", "NVIDIA H200", 144384, Switched, 18, []size{{"48xlarge", 192, 2048, 8}}},
		{"g2", "GRID K520", 4096, PCIe, 0, []size{{"2xlarge", 8, 15, 1}, {"8xlarge", 32, 60, 4}}},
		{"g3s", "Tesla M60", 8192, PCIe, 0, []size{{"xlarge", 4, 30.5, 1}}},
		{"g3", "Tesla M60", 8192, PCIe, 0, []size{{"4xlarge", 16, 122, 1}, {"8xlarge", 32, 244, 2}, {"16xlarge", 64, 488, 4}}},
		{"g4dn", "Tesla T4", 16384, PCIe, 0, []size{
			{"xlarge", 4, 16, 1},
			{"2xlarge", 8, 32, 1},
			{"4xlarge", 16, 64, 1},
			{"8xlarge", 32, 128, 1},
			{"12xlarge", 48, 192, 4},
			{"16xlarge", 64, 256, 1},
			{"metal", 96, 384, 8},
		}},
		{"g5", "NVIDIA A10G", 24576, PCIe, 0, gSizes(4)},
		{"g5g", "NVIDIA T4G", 16384, PCIe, 0, []size{
			{"xlarge", 4, 8, 1},
			{"2xlarge", 8, 16, 1},
			{"4xlarge", 16, 32, 1},
			{"8xlarge", 32, 64, 1},
			{"16xlarge", 64, 128, 2},
			{"metal", 64, 128, 2},
		}},
		{"g6", "NVIDIA L4", 24576, PCIe, 0, gSizes(4)},
		{"g6e", "NVIDIA L40S", 49152, PCIe, 0, gSizes(8)},

		{name: "a1", sizes: plainSizes(2, "medium", "large", "xlarge", "2xlarge", "4xlarge")},
		{name: "c1", sizes: []size{{"medium", 2, 1.7, 0}, {"xlarge", 8, 7, 0}}},
		{name: "c3", sizes: plainSizes(1.875, "large", "xlarge", "2xlarge", "4xlarge", "8xlarge")},
		{name: "c4", sizes: []size{{"large", 2, 3.75, 0}, {"xlarge", 4, 7.5, 0}, {"2xlarge", 8, 15, 0}, {"4xlarge", 16, 30, 0},
			{"8xlarge", 36, 60, 0}}},
		{name: "c5", sizes: plainSizes(2, c5Sizes...)},
		{name: "c5a", sizes: plainSizes(2, m5Sizes...)},
		{name: "c5d", sizes: plainSizes(2, c5Sizes...)},
		{name: "c6i", sizes: plainSizes(2, i6Sizes...)},
		{name: "c6a", sizes: plainSizes(2, a6Sizes...)},
		{name: "c6g", sizes: plainSizes(2, g6Sizes...)},
		{name: "c7i", sizes: plainSizes(2, i7Sizes...)},
		{name: "c7g", sizes: plainSizes(2, g6Sizes...)},
		{name: "i3", sizes: plainSizes(7.625, "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")},
		{name: "m1", sizes: []size{{"small", 1, 1.7, 0}, {"medium", 1, 3.75, 0}, {"large", 2, 7.5, 0}, {"xlarge", 4, 15, 0}}},
		{name: "m2", sizes: []size{{"xlarge", 2, 17.1, 0}, {"2xlarge", 4, 34.2, 0}, {"4xlarge", 8, 68.4, 0}}},
		{name: "m3", sizes: plainSizes(3.75, "medium", "large", "xlarge", "2xlarge")},
		{name: "m4", sizes: plainSizes(4, "large", "xlarge", "2xlarge", "4xlarge", "10xlarge", "16xlarge")},
		{name: "m5", sizes: plainSizes(4, m5Sizes...)},
		{name: "m5a", sizes: plainSizes(4, m5Sizes...)},
		{name: "m5d", sizes: plainSizes(4, m5Sizes...)},
		{name: "m6i", sizes: plainSizes(4, i6Sizes...)},
		{name: "m6a", sizes: plainSizes(4, a6Sizes...)},
		{name: "m6g", sizes: plainSizes(4, g6Sizes...)},
		{name: "m7g", sizes: plainSizes(4, g6Sizes...)},
		{name: "m7i", sizes: plainSizes(4, i7Sizes...)},
		{name: "r3", sizes: plainSizes(7.625, "large", "xlarge", "2xlarge", "4xlarge", "8xlarge")},
		{name: "r4", sizes: plainSizes(7.625, "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")},
		{name: "r5", sizes: plainSizes(8, m5Sizes...)},
		{name: "r5a", sizes: plainSizes(8, m5Sizes...)},
		{name: "r6a", sizes: plainSizes(8, a6Sizes...)},
		{name: "r6g", sizes: plainSizes(8, g6Sizes...)},
		{name: "r7g", sizes: plainSizes(8, g6Sizes...)},
		{name: "r6i", sizes: plainSizes(8, i6Sizes...)},
		{name: "r7i", sizes: plainSizes(8, i7Sizes...)},
		{name: "t1", sizes: []size{{"micro", 1, 0.613, 0}}},
		{name: "t2", sizes: t2Sizes},
		{name: "t3", sizes: t3Sizes},
		{name: "t3a", sizes: t3Sizes},
		{name: "t4g", sizes: t3Sizes},
	}
)
