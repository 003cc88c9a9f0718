package deployment

import (
	"cmp"
	"slices"
)

// Availability Zone rebalancing, one task at a time: a service that is steady gets one more task in the zone that
// has fewest, and loses one of the fullest zone once that one is healthy.
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/service-rebalancing.html

// rebalances says whether tasks may be moved between zones: not during a deployment, nor without room for one more.
func (d *step) rebalances() bool {
	return len(d.service.Zones) > 0 && d.primary.State == Completed && d.max > d.desired
}

// rebalance has a task started for a steady service where one is missing: in a zone that has at least two less than
// another, of which one may be stopped.
func (d *step) rebalance() {
	if !d.rebalances() {
		return
	}
	zones := map[string]int{}
	for _, t := range d.tasks {
		zones[t.Zone]++
	}
	most, movable := 0, 0 // tasks in the fullest zone, and in the fullest that has one to give
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

// below are the zones that have at least two tasks less than a fuller one, those with fewest first.
func (d *step) below(zones map[string]int, fuller int) []string {
	few := slices.DeleteFunc(slices.Clone(d.service.Zones), func(zone string) bool { return zones[zone] > fuller-2 })
	slices.SortFunc(few, func(a, b string) int { return cmp.Or(cmp.Compare(zones[a], zones[b]), cmp.Compare(a, b)) })
	return few
}
