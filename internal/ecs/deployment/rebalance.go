package deployment

import (
	"cmp"
	"slices"
)

// Availability Zone rebalancing moves one task at a time: a steady service gets one more task in the zone with the
// fewest, and loses one in the fullest zone once the new one is healthy.
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-rebalancing.html

// rebalances reports whether tasks may be moved between zones: not during a deployment, nor without room for one more.
func (d *step) rebalances() bool {
	return len(d.service.Zones) > 0 && d.primary.State == Completed && d.max > d.desired
}

// rebalance plans one more task in a zone that has at least two fewer than another, if a task of that other zone may be
// stopped.
func (d *step) rebalance() {
	if !d.rebalances() {
		return
	}
	zones := map[string]int{}
	for _, t := range d.tasks {
		zones[t.Zone]++
	}
	most, movable := 0, 0 // tasks in the fullest zone, and in the fullest with an unprotected one
	for _, t := range d.tasks {
		most = max(most, zones[t.Zone])
		if !d.now.Before(t.ProtectedUntil) {
			movable = max(movable, zones[t.Zone])
		}
	}
	d.plan.Rebalancing = len(d.below(zones, most)) > 0
	few := d.below(zones, movable)
	switch {
	case !d.plan.Rebalancing:
	case len(few) == 0:
		for _, t := range d.tasks {
			if d.now.Before(t.ProtectedUntil) {
				d.hold(t)
			}
		}
	case !d.mayStart():
		d.wake(d.primary.NotBefore)
	case len(d.tasks) < d.max:
		d.plan.StartIn = few
	}
}

// below lists the zones with at least two tasks fewer than a fuller one, emptiest first.
func (d *step) below(zones map[string]int, fuller int) []string {
	few := slices.DeleteFunc(slices.Clone(d.service.Zones), func(zone string) bool { return zones[zone] > fuller-2 })
	slices.SortFunc(few, func(a, b string) int { return cmp.Or(cmp.Compare(zones[a], zones[b]), cmp.Compare(a, b)) })
	return few
}
