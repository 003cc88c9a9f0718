package routing

import (
	"hash/fnv"
	"math"
	"net/netip"
	"strconv"
)

// Standing is what is known of a target when one is chosen.
type Standing struct {
	State       State
	Outstanding int     // requests that it has not answered
	HealthyFor  float64 // seconds since it became healthy
	Tried       bool    // it has refused this request already
}

// MayServe tells which targets new requests may go to: the healthy ones, or all if none is healthy. A target that is draining, unused or
// was tried gets none.
func MayServe(all []Standing) func(i int) bool {
	open := true
	for i := range all {
		if all[i].State == Healthy && !all[i].Tried {
			open = false
		}
	}
	return func(i int) bool {
		s := &all[i]
		switch {
		case s.Tried || s.State == Draining || s.State == Unused:
			return false
		case open:
			return true
		}
		return s.State == Healthy
	}
}

// Choose picks a target by the group's algorithm, or -1 if there is none. A turn that grows by one with each choice makes round robin;
// any other numbers spread requests just as evenly in the long run.
func Choose(g *Group, all []Standing, turn uint64) int {
	may := MayServe(all)
	if g.Attributes.Algorithm == LeastOutstanding {
		return leastOutstanding(all, may, turn)
	}
	count, total := 0, 0.0
	for i := range all {
		if may(i) {
			count++
			total += warmth(g, &all[i])
		}
	}
	if count == 0 {
		return -1
	}
	if total == float64(count) { // all are warm
		return nth(all, may, int(turn%uint64(count)))
	}
	return byWarmth(g, all, may, spread(turn)*total)
}

func leastOutstanding(all []Standing, may func(int) bool, turn uint64) int {
	best, ties := math.MaxInt, 0
	for i := range all {
		if !may(i) {
			continue
		}
		if all[i].Outstanding < best {
			best, ties = all[i].Outstanding, 0
		}
		if all[i].Outstanding == best {
			ties++
		}
	}
	if ties == 0 {
		return -1
	}
	return nth(all, func(i int) bool { return may(i) && all[i].Outstanding == best }, int(turn%uint64(ties)))
}

// nth returns the n-th that may serve.
func nth(all []Standing, may func(int) bool, n int) int {
	for i := range all {
		if !may(i) {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return -1
}

// byWarmth returns the target at a point of the line that all of them make up, each as long as it's warm.
func byWarmth(g *Group, all []Standing, may func(int) bool, point float64) int {
	last := -1
	for i := range all {
		if !may(i) {
			continue
		}
		last = i
		if point -= warmth(g, &all[i]); point < 0 {
			break
		}
	}
	return last
}

// coldest is the share that a target gets when its slow start begins.
const coldest = 0.01

// warmth is the share that a target gets of what a warm one would. It grows steadily while the target is in slow start.
func warmth(g *Group, s *Standing) float64 {
	duration := float64(g.Attributes.SlowStartSeconds)
	if s.State != Healthy || duration == 0 || s.HealthyFor >= duration {
		return 1
	}
	return max(coldest, s.HealthyFor/duration)
}

// spread turns 0, 1, 2, … into numbers from 0 up to 1 that lie evenly however many they are: multiples of the golden ratio.
func spread(turn uint64) float64 {
	const golden = 0x9E3779B97F4A7C15 // 2^64 divided by it
	return float64(turn*golden>>11) / (1 << 53)
}

// ChooseGroup picks a group by weight, or -1 if no group has any.
func ChooseGroup(f *Forward, turn uint64) int {
	total := 0
	for _, g := range f.Groups {
		total += g.Weight
	}
	point := int(spread(turn) * float64(total))
	for i, g := range f.Groups {
		if point -= g.Weight; point < 0 {
			return i
		}
	}
	return -1
}

// ChooseBySource picks a target by the address that a flow comes from, or -1 if there is none. When targets come and go, only the sources
// of those that went, and a fair share of all others for those that came, move.
func ChooseBySource(g *Group, all []Standing, source netip.Addr) int {
	may := MayServe(all)
	best, chosen := uint64(0), -1
	for i := range all {
		if !may(i) {
			continue
		}
		h := fnv.New64a()
		address := source.Unmap().As16()
		h.Write(address[:])                                                      //nolint:errcheck // a hash takes everything
		h.Write([]byte(g.Targets[i].ID + ":" + strconv.Itoa(g.Targets[i].Port))) //nolint:errcheck // as above
		if score := mix(h.Sum64()); chosen < 0 || score > best {
			best, chosen = score, i
		}
	}
	return chosen
}

// mix makes all bits of a number depend on all others, which FNV's last bytes don't.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
