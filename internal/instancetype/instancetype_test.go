package instancetype

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLookup(t *testing.T) {
	cases := []struct {
		name  string
		vcpus int
		mib   int64
		gpus  int
	}{
		{"p3.2xlarge", 8, 62464, 1},
		{"p3.16xlarge", 64, 499712, 8},
		{"c5.2xlarge", 8, 16384, 0},
		{"g4dn.xlarge", 4, 16384, 1},
		{"m5.large", 2, 8192, 0},
		{"p2.16xlarge", 64, 749568, 16},
		{"g5.12xlarge", 48, 196608, 4},
		{"g6e.48xlarge", 192, 1572864, 8},
		{"p5.48xlarge", 192, 2097152, 8},
		{"t3.micro", 2, 1024, 0},
		{"r5.24xlarge", 96, 786432, 0},
		{"c5.9xlarge", 36, 73728, 0},
		{"m6g.medium", 1, 4096, 0},
		{"m1.small", 1, 1740, 0},
		{"m1.xlarge", 4, 15360, 0},
		{"m2.4xlarge", 8, 70041, 0},
		{"m3.medium", 1, 3840, 0},
		{"m4.10xlarge", 40, 163840, 0},
		{"c1.medium", 2, 1740, 0},
		{"c3.large", 2, 3840, 0},
		{"c4.8xlarge", 36, 61440, 0},
		{"g2.8xlarge", 32, 61440, 4},
		{"g5g.16xlarge", 64, 131072, 2},
		{"r3.large", 2, 15616, 0},
		{"r4.16xlarge", 64, 499712, 0},
		{"i3.2xlarge", 8, 62464, 0},
		{"t1.micro", 1, 627, 0},
		{"t4g.micro", 2, 1024, 0},
		{"c6a.48xlarge", 192, 393216, 0},
	}
	for _, c := range cases {
		got, err := Lookup(c.name)
		if err != nil || got.VCPUs != c.vcpus || got.MemoryMiB != c.mib || got.GPUs != c.gpus {
			t.Errorf("%s is %+v, %v", c.name, got, err)
		}
	}
	for _, bad := range []string{"", "p3", "p3.3xlarge", "c5.0xlarge", "x9.large", "c5.1000xlarge", "c5.3xlarge", "t3.metal"} {
		if got, err := Lookup(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

func TestLinksAreMutual(t *testing.T) {
	for _, typ := range All() {
		for i := range typ.GPUs {
			for j, n := range typ.Links(i) {
				if back := typ.Links(j)[i]; back != n || i == j && n != 0 {
					t.Errorf("%s: %d links from %d to %d, %d back", typ.Name, n, i, j, back)
				}
			}
		}
	}
}

func TestTopology(t *testing.T) {
	for _, c := range []struct {
		name     string
		gpu      int
		links    []int
		numaNode int
	}{
		{"p3.2xlarge", 0, nil, 0},
		{"p3.8xlarge", 1, []int{1, 0, 2, 1}, 0},
		{"p3.16xlarge", 6, []int{0, 0, 1, 0, 1, 2, 0, 2}, 1},
		{"p4d.24xlarge", 0, []int{0, 12, 12, 12, 12, 12, 12, 12}, 0},
		{"p5.48xlarge", 7, []int{18, 18, 18, 18, 18, 18, 18, 0}, 1},
		{"p5.4xlarge", 0, nil, 0},
		{"g5.48xlarge", 4, nil, 1},
	} {
		typ, err := Lookup(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := typ.Links(c.gpu); !slices.Equal(got, c.links) || typ.NUMA(c.gpu) != c.numaNode {
			t.Errorf("%s, GPU %d: links %v, NUMA node %d", c.name, c.gpu, got, typ.NUMA(c.gpu))
		}
	}
}

func TestReadPrices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.json")
	for text, says := range map[string]string{
		`{"g4dn.xlarge": 0.526, "c5.large": 1}`: "",
		`{"g4dn.huge": 1}`:                      "g4dn.huge",
		`{"g4dn.xlarge": 0}`:                    "g4dn.xlarge",
		`{"g4dn.xlarge": -1}`:                   "g4dn.xlarge",
		`{"g4dn.xlarge": "1"}`:                  "g4dn.xlarge",
		`[]`:                                    "prices.json",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadPrices(path)
		if says == "" && (err != nil || got["g4dn.xlarge"] != 0.526) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want it to name %s", text, err, says)
		}
	}
}
