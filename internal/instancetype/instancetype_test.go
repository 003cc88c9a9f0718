package instancetype

import "testing"

func TestLookup(t *testing.T) {
	cases := []struct {
		name  string
		vcpus int
		mib   int64
		gpus  int
	}{
		{"p3.2xlarge", 8, 62464, 1}, {"p3.16xlarge", 64, 499712, 8}, {"c5.2xlarge", 8, 16384, 0},
		{"g4dn.xlarge", 4, 16384, 1}, {"m5.large", 2, 8192, 0}, {"p2.16xlarge", 64, 749568, 16},
	}
	for _, c := range cases {
		got, err := Lookup(c.name)
		if err != nil || got.VCPUs != c.vcpus || got.MemoryMiB != c.mib || got.GPUs != c.gpus {
			t.Errorf("%s is %+v, %v", c.name, got, err)
		}
	}
	for _, bad := range []string{"", "p3", "p3.3xlarge", "c5.0xlarge", "x9.large", "c5.1000xlarge"} {
		if got, err := Lookup(bad); err == nil {
			t.Errorf("%q is %+v", bad, got)
		}
	}
}

func TestLinksAreMutual(t *testing.T) {
	for _, name := range GPUTypes() {
		typ, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range typ.GPUs {
			for j, n := range typ.Links(i) {
				if back := typ.Links(j)[i]; back != n || i == j && n != 0 {
					t.Errorf("%s: %d links from %d to %d, %d back", name, n, i, j, back)
				}
			}
		}
	}
}
