// Package group decides what happens to an Auto Scaling group's instances: which ones go when it shrinks, and which type and
// zone the next ones get. It's pure: no clock, no store. It follows
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
	Busy       bool  // runs tasks, if a capacity provider manages the group; instances without tasks go first
	Version    int64 // of its launch template; -1 if the template isn't the group's current one
}

// Policies are all termination policies.
var Policies = []string{
	"AllocationStrategy",
	"ClosestToNextInstanceHour",
	"Default",
	"NewestInstance",
	"OldestInstance",
	"OldestLaunchConfiguration",
	"OldestLaunchTemplate",
}

// Victims returns the ids of the instances that go when a group shrinks by a number. Protected instances never go, so there
// may be fewer. Instances that aren't busy go first. Then each victim comes from the zone with the most instances. In it, or
// among several such zones, the first policy decides. Each further policy breaks the ties of those before it.
func Victims(all []Instance, number int, policies []string, now time.Time) []string {
	left := map[string]int{} // instances left, by zone
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
	ranks := map[string][]int{} // ranks of the candidates, by zone
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

// compareBusy orders instances without tasks before busy ones.
func compareBusy(a, b Instance) int {
	switch {
	case a.Busy == b.Busy:
		return 0
	case b.Busy:
		return -1
	}
	return 1
}

// Zone returns the zone for the next instance: the one with the fewest instances, and the first in the list among equals.
// Zones where launches have failed are skipped unless all have:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-availability-zone-balanced.html
func Zone(zones []string, have map[string]int, failed []string) string {
	healthy := slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return slices.Contains(failed, z) })
	if len(healthy) == 0 {
		healthy = zones
	}
	return slices.MinFunc(healthy, func(a, b string) int { return cmp.Compare(have[a], have[b]) })
}

// compare orders two instances by a termination policy: below 0 if a goes before b.
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

// untilHour returns the time until an instance's next full hour since its launch.
func untilHour(i Instance, now time.Time) time.Duration {
	return time.Hour - now.Sub(i.LaunchedAt)%time.Hour
}

// Size is an instance type's capacity and price, or a need for capacity.
type Size struct {
	Type      string
	CPU       int64 // units: 1024 per vCPU
	MemoryMiB int64
	GPUs      int
	Price     float64 // per hour; 0 if unknown
}

// fits reports whether the size has room for a need.
func (s Size) fits(need Size) bool {
	return need.CPU <= s.CPU && need.MemoryMiB <= s.MemoryMiB && need.GPUs <= s.GPUs
}

// comparePrice orders sizes by price. Those without a known price come last, ordered by capacity, which roughly indicates
// their cost: first by GPUs, then CPU, then memory.
func comparePrice(a, b Size) int {
	price := func(s Size) float64 { return cmp.Or(s.Price, math.Inf(1)) }
	return cmp.Or(cmp.Compare(price(a), price(b)), cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.CPU, b.CPU),
		cmp.Compare(a.MemoryMiB, b.MemoryMiB))
}

// Need returns what the next instance must have room for: the maximum of all needs, if a size fits that. If none does, it's
// the largest need that fits a size, since unlike needs may call for different instances. Needs that fit no size don't count.
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

// Fitting returns the sizes that fit a need, or all sizes if none does.
func Fitting(sizes []Size, need Size) []Size {
	fitting := slices.DeleteFunc(slices.Clone(sizes), func(s Size) bool { return !s.fits(need) })
	if len(fitting) == 0 {
		return sizes
	}
	return fitting
}

// Pick returns the size of the next instance: the first that fits the need, or the cheapest if asked for. If none fits, it
// picks from all.
func Pick(sizes []Size, need Size, cheapest bool) Size {
	fitting := Fitting(sizes, need)
	if cheapest {
		return slices.MinFunc(fitting, comparePrice)
	}
	return fitting[0]
}

// Pool returns the name of the machines of a type in a zone.
func Pool(zone, typeName string) string { return zone + "/" + typeName }

// Working returns the sizes whose pool in a zone hasn't failed.
func Working(zone string, sizes []Size, failed []string) []Size {
	return slices.DeleteFunc(slices.Clone(sizes), func(s Size) bool { return slices.Contains(failed, Pool(zone, s.Type)) })
}

// Place returns the zone and size of the next instance, as Zone and Pick choose them. It skips pools where launches have
// failed, unless all have. sizes is empty if the group's types are unknown.
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
