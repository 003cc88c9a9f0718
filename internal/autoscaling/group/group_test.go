package group

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestVictims(t *testing.T) {
	all := []Instance{
		{ID: "old", LaunchedAt: noon.Add(-150 * time.Minute), Version: 2},
		{ID: "mid", LaunchedAt: noon.Add(-115 * time.Minute), Version: 1},
		{ID: "new", LaunchedAt: noon.Add(-time.Minute), Version: 2},
		{ID: "other", LaunchedAt: noon.Add(-2 * time.Minute), Version: -1, Protected: true},
	}
	for _, c := range []struct{ policy, want string }{
		{"OldestInstance", "[old mid new]"},
		{"NewestInstance", "[new mid old]"},
		{"OldestLaunchTemplate", "[mid new old]"},
		{"ClosestToNextInstanceHour", "[mid old new]"},
		{"Default", "[mid old new]"},
	} {
		if got := fmt.Sprint(Victims(all, 4, []string{c.policy}, noon)); got != c.want {
			t.Errorf("%s: %s, want %s", c.policy, got, c.want)
		}
	}
	all[1].Busy = true
	if got := fmt.Sprint(Victims(all, 2, []string{"Default"}, noon)); got != "[old new]" {
		t.Errorf("the busy one goes last: %s", got)
	}
}

// TestProtected: whatever the policies, no protected instance goes, and no more go than asked for.
func TestProtected(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all []Instance
		for i := range rapid.IntRange(0, 20).Draw(r, "instances") {
			all = append(all, Instance{
				ID:         fmt.Sprint(i),
				LaunchedAt: noon.Add(-time.Duration(rapid.IntRange(0, 500).Draw(r, "minutes")) * time.Minute),
				Protected:  rapid.Bool().Draw(r, "protected"),
				Busy:       rapid.Bool().Draw(r, "busy"),
				Version:    rapid.Int64Range(-1, 3).Draw(r, "version"),
			})
		}
		number := rapid.IntRange(-2, 25).Draw(r, "number")
		got := Victims(all, number, rapid.SliceOf(rapid.SampledFrom(Policies)).Draw(r, "policies"), noon)
		free := slices.DeleteFunc(slices.Clone(all), func(i Instance) bool { return i.Protected })
		if len(got) != min(max(number, 0), len(free)) || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
			r.Fatalf("%d of %d: %v", number, len(free), got)
		}
		for _, id := range got {
			if !slices.ContainsFunc(free, func(i Instance) bool { return i.ID == id }) {
				r.Fatalf("%s is protected", id)
			}
		}
	})
}

func TestZone(t *testing.T) {
	abc := []string{"a", "b", "c"}
	for _, c := range []struct {
		name   string
		have   map[string]int
		failed []string
		want   string
	}{
		{"the first", nil, nil, "a"},
		{"the zone with the fewest", map[string]int{"a": 2, "b": 2, "c": 1}, nil, "c"},
		{"the first zone with the fewest", map[string]int{"a": 1}, nil, "b"},
		{"not where launches failed", map[string]int{"a": 2, "b": 1}, []string{"c"}, "b"},
		{"launches failed everywhere", map[string]int{"a": 2, "b": 1}, abc, "c"},
	} {
		if got := Zone(abc, c.have, c.failed); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestPlace(t *testing.T) {
	zones, sizes := []string{"a", "b"}, []Size{{Type: "x"}, {Type: "y"}}
	for _, c := range []struct {
		name   string
		sizes  []Size
		failed []string
		want   string
	}{
		{"the first", sizes, nil, "a/x"},
		{"another type in the same zone", sizes, []string{"a/x"}, "a/y"},
		{"another zone", sizes, []string{"a/x", "a/y"}, "b/x"},
		{"the last", sizes, []string{"a/x", "a/y", "b/x"}, "b/y"},
		{"all again", sizes, []string{"a/x", "a/y", "b/x", "b/y"}, "a/x"},
		{"unknown types", nil, []string{"a/x"}, "a/"},
	} {
		zone, size := Place(zones, nil, c.sizes, c.failed, false)
		if got := Pool(zone, size.Type); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestVictimsOfZones(t *testing.T) {
	at := func(id, zone string, minutes int, busy bool) Instance {
		return Instance{ID: id, Zone: zone, LaunchedAt: noon.Add(-time.Duration(minutes) * time.Minute), Busy: busy}
	}
	all := []Instance{at("a1", "a", 90, false), at("b1", "b", 80, false), at("b2", "b", 70, false), at("b3", "b", 60, false)}
	if got := fmt.Sprint(Victims(all, 4, []string{"OldestInstance"}, noon)); got != "[b1 b2 a1 b3]" {
		t.Errorf("the zones come before the policy: %s", got)
	}
	for i := 1; i <= 3; i++ {
		all[i].Busy = true
	}
	if got := fmt.Sprint(Victims(all, 2, []string{"OldestInstance"}, noon)); got != "[a1 b1]" {
		t.Errorf("those without tasks go before the zones: %s", got)
	}
}

// TestBalance: after launches and scale-ins in any order, zones without failures differ by at most one instance.
func TestBalance(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		zones := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(r, "zones")]
		var all []Instance
		have := map[string]int{}
		for n := range rapid.IntRange(1, 30).Draw(r, "steps") {
			if rapid.Bool().Draw(r, "launch") {
				zone := Zone(zones, have, nil)
				have[zone]++
				all = append(all, Instance{
					ID:         fmt.Sprint(n),
					Zone:       zone,
					LaunchedAt: noon.Add(-time.Duration(rapid.IntRange(0, 500).Draw(r, "minutes")) * time.Minute),
				})
				continue
			}
			gone := Victims(all, rapid.IntRange(0, 5).Draw(r, "number"), []string{rapid.SampledFrom(Policies).Draw(r, "policy")}, noon)
			all = slices.DeleteFunc(all, func(i Instance) bool {
				if slices.Contains(gone, i.ID) {
					have[i.Zone]--
					return true
				}
				return false
			})
			for _, a := range zones {
				for _, b := range zones {
					if have[a]-have[b] > 1 {
						r.Fatalf("%v", have)
					}
				}
			}
		}
	})
}

func TestNeed(t *testing.T) {
	cpus := Size{Type: "c5.4xlarge", CPU: 16384, MemoryMiB: 32768}
	gpu := Size{Type: "g4dn.xlarge", CPU: 4096, MemoryMiB: 16384, GPUs: 1}
	wide := Size{CPU: 8192, MemoryMiB: 1024}
	oneGPU := Size{CPU: 1024, MemoryMiB: 8192, GPUs: 1}
	little := Size{CPU: 2048, MemoryMiB: 512}
	for _, c := range []struct {
		name  string
		needs []Size
		want  Size
	}{
		{"nothing", nil, Size{}},
		{"one size has room for both", []Size{little, oneGPU}, Size{CPU: 2048, MemoryMiB: 8192, GPUs: 1}},
		{"no size has room for both", []Size{wide, oneGPU}, oneGPU},
		{"then for the rest", []Size{wide, little}, Size{CPU: 8192, MemoryMiB: 1024}},
		{"a need that fits no size doesn't count", []Size{{GPUs: 8}, wide}, wide},
		{"nothing fits", []Size{{GPUs: 8}}, Size{}},
	} {
		if got := Need([]Size{cpus, gpu}, c.needs); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestPick(t *testing.T) {
	small := Size{Type: "c5.large", CPU: 2048, MemoryMiB: 4096}
	gpu := Size{Type: "g4dn.xlarge", CPU: 4096, MemoryMiB: 16384, GPUs: 1}
	big := Size{Type: "g4dn.12xlarge", CPU: 49152, MemoryMiB: 196608, GPUs: 4}
	dear, cheap := gpu, big // the big one is already paid for
	dear.Price = 0.5
	cheap.Price = 0.1
	for _, c := range []struct {
		name     string
		of       []Size
		need     Size
		cheapest bool
		want     string
	}{
		{"the first that fits", []Size{big, gpu, small}, Size{}, false, "g4dn.12xlarge"},
		{"without prices the smallest", []Size{big, gpu, small}, Size{}, true, "c5.large"},
		{"the smallest with a GPU", []Size{big, gpu, small}, Size{GPUs: 1}, true, "g4dn.xlarge"},
		{"the only one with two", []Size{big, gpu, small}, Size{GPUs: 2}, true, "g4dn.12xlarge"},
		{"none has five", []Size{big, gpu, small}, Size{GPUs: 5}, true, "c5.large"},
		{"the cheapest", []Size{dear, cheap}, Size{GPUs: 1}, true, "g4dn.12xlarge"},
		{"a size without a price comes last", []Size{small, dear}, Size{}, true, "g4dn.xlarge"},
		{"the first, whatever it costs", []Size{dear, cheap}, Size{}, false, "g4dn.xlarge"},
	} {
		if got := Pick(c.of, c.need, c.cheapest); got.Type != c.want {
			t.Errorf("%s: %s, want %s", c.name, got.Type, c.want)
		}
	}
}
