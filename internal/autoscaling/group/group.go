// Package group decides what becomes of an Auto Scaling group's instances: which go when it shrinks, and of what type and in
// which zone the next ones are. It is pure: it knows no clock and no store. The page that it follows is
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
package group

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Instance is an instance of a group.
type Instance struct {
	ID         string
	Zone       string
	LaunchedAt time.Time
	Protected  bool  // from scale-in
	Busy       bool  // it runs tasks of a capacity provider that looks after its group: those without go first
	Version    int64 // of its launch template; one that has another template than the group's now has -1
}

// Policies are the termination policies that there are.
var Policies = []string{"AllocationStrategy", "ClosestToNextInstanceHour", "Default", "NewestInstance", "OldestInstance", "OldestLaunchConfiguration", "OldestLaunchTemplate"}

// Victims are the instances that go when a group shrinks by a number: never one that is protected, so that they may be
// fewer. Each comes from the zone that has most; there, or among all zones that have as many, the first policy decides, and
// the next ones among those that it finds equal.
func Victims(all []Instance, number int, policies []string, now time.Time) []string {
	left := map[string]int{} // in each zone
	for _, i := range all {
		left[i.Zone]++
	}
	candidates := slices.DeleteFunc(slices.Clone(all), func(i Instance) bool { return i.Protected })
	slices.SortStableFunc(candidates, func(a, b Instance) int {
		if c := compareBusy(a, b); c != 0 {
			return c
		}
		for _, p := range policies {
			if c := compare(p, a, b, now); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.ID, b.ID)
	})
	ranks := map[string][]int{} // of each zone's candidates
	for rank, i := range candidates {
		ranks[i.Zone] = append(ranks[i.Zone], rank)
	}
	var out []string
	for range min(max(number, 0), len(candidates)) {
		var firsts []int
		for _, zone := range ranks {
			if len(zone) > 0 {
				firsts = append(firsts, zone[0])
			}
		}
		next := candidates[slices.MinFunc(firsts, func(i, j int) int {
			a, b := candidates[i], candidates[j]
			return cmp.Or(compareBusy(a, b), cmp.Compare(left[b.Zone], left[a.Zone]), cmp.Compare(i, j))
		})]
		out = append(out, next.ID)
		left[next.Zone]--
		ranks[next.Zone] = ranks[next.Zone][1:]
	}
	return out
}

// compareBusy has those without tasks go first, whatever their zone.
func compareBusy(a, b Instance) int {
	switch {
	case a.Busy == b.Busy:
		return 0
	case b.Busy:
		return -1
	}
	return 1
}

// Zone is where the next instance is launched: in the zone that has fewest, the first of the list among equals. One where
// launches have failed is left out while there is another:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-availability-zone-balanced.html
func Zone(zones []string, have map[string]int, failed []string) string {
	healthy := slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return slices.Contains(failed, z) })
	if len(healthy) == 0 {
		healthy = zones
	}
	return slices.MinFunc(healthy, func(a, b string) int { return cmp.Compare(have[a], have[b]) })
}

// compare is below 0 where a goes before b.
func compare(policy string, a, b Instance, now time.Time) int {
	switch policy {
	case "OldestInstance":
		return a.LaunchedAt.Compare(b.LaunchedAt)
	case "NewestInstance":
		return b.LaunchedAt.Compare(a.LaunchedAt)
	case "OldestLaunchTemplate", "OldestLaunchConfiguration":
		return cmp.Compare(a.Version, b.Version)
	case "ClosestToNextInstanceHour":
		return cmp.Compare(untilHour(a, now), untilHour(b, now))
	}
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(untilHour(a, now), untilHour(b, now))) // Default
}

// untilHour is how long it is until an instance has been there for a whole number of hours.
func untilHour(i Instance, now time.Time) time.Duration {
	return time.Hour - now.Sub(i.LaunchedAt)%time.Hour
}

// Size is what an instance type has.
type Size struct {
	Type      string
	CPU       int64 // units
	MemoryMiB int64
	GPUs      int
	Price     float64 // of an hour; 0 where it is not known
}

// fits reports whether one of the size has room for what is needed.
func (s Size) fits(need Size) bool {
	return need.CPU <= s.CPU && need.MemoryMiB <= s.MemoryMiB && need.GPUs <= s.GPUs
}

// cheaper orders sizes by price. Those whose price is not known come last, by what they have, which tells what they cost to some
// degree: GPUs before processors before memory.
func cheaper(a, b Size) int {
	price := func(s Size) float64 { return cmp.Or(s.Price, math.Inf(1)) }
	return cmp.Or(cmp.Compare(price(a), price(b)), cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.CPU, b.CPU), cmp.Compare(a.MemoryMiB, b.MemoryMiB))
}

// Need is what the next instance is to have room for: the most that anything needs, where a size has all of that, else the
// largest need that fits a size, since an instance for two unlike ones might be none for either. What fits none does not count.
func Need(sizes, needs []Size) (need Size) {
	fits := func(n Size) bool { return slices.ContainsFunc(sizes, func(s Size) bool { return s.fits(n) }) }
	var largest Size
	for _, n := range needs {
		if !fits(n) {
			continue
		}
		need = Size{CPU: max(need.CPU, n.CPU), MemoryMiB: max(need.MemoryMiB, n.MemoryMiB), GPUs: max(need.GPUs, n.GPUs)}
		if cmp.Or(cmp.Compare(n.GPUs, largest.GPUs), cmp.Compare(n.CPU, largest.CPU), cmp.Compare(n.MemoryMiB, largest.MemoryMiB)) > 0 {
			largest = n
		}
	}
	if fits(need) {
		return need
	}
	return largest
}

// Fitting are the sizes that fit what is needed; all where none does.
func Fitting(sizes []Size, need Size) []Size {
	fitting := slices.DeleteFunc(slices.Clone(sizes), func(s Size) bool { return !s.fits(need) })
	if len(fitting) == 0 {
		return sizes
	}
	return fitting
}

// Pick is the type of the next instance: of those that fit what is needed, the first of the list, or, where that is wanted,
// the cheapest. Where none fits, it is picked from all.
func Pick(sizes []Size, need Size, cheapest bool) Size {
	fitting := Fitting(sizes, need)
	if cheapest {
		return slices.MinFunc(fitting, cheaper)
	}
	return fitting[0]
}

// Pool names the machines of a type in a zone.
func Pool(zone, typeName string) string { return zone + "/" + typeName }

// Working are the sizes whose pool in a zone is none of those that have failed.
func Working(zone string, sizes []Size, failed []string) []Size {
	return slices.DeleteFunc(slices.Clone(sizes), func(s Size) bool { return slices.Contains(failed, Pool(zone, s.Type)) })
}

// Place is where the next instance is launched, and of what type: in the zone that Zone says, of the type that Pick says, but for
// pools in which launches have failed, while there are others. There are no sizes where the type is not known.
func Place(zones []string, have map[string]int, sizes []Size, failed []string, cheapest bool) (zone string, size Size) {
	out := slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return len(Working(z, sizes, failed)) > 0 })
	zone = Zone(zones, have, out)
	if working := Working(zone, sizes, failed); len(working) > 0 {
		return zone, Pick(working, Size{}, cheapest)
	}
	if len(sizes) > 0 {
		size = Pick(sizes, Size{}, cheapest)
	}
	return zone, size
}
