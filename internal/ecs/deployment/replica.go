package deployment

import (
	"cmp"
	"slices"
)

// replicas brings a REPLICA service nearer to its desired count.
func (d *step) replicas() {
	need := max(d.desired-d.count(d.good), 0)
	if d.primary.State == Failed {
		need = 0
	}
	room := max(d.max-len(d.tasks), 0)
	if d.mayStart() {
		d.plan.Start = min(need, room, batch)
	}
	if need > 0 {
		d.wake(d.primary.NotBefore)
	}
	d.shrink()
	if d.primary.State != Failed {
		d.dropUseless()
		d.replaceUnhealthy(need > room)
	}
	d.replace(need)
}

// shrink stops what the PRIMARY deployment has too much of.
func (d *step) shrink() {
	surplus := d.count(d.good) - d.desired
	if d.primary.State == Failed { // nothing replaces the others' tasks: they count
		surplus = d.count(d.live) - d.desired
	}
	if d.plan.Rebalancing && surplus == 1 { // the one that is to take another's place
		d.stopSome(d.count(d.fine)-d.desired, d.fine)
		return
	}
	d.stopSome(surplus, func(t Task) bool { return d.good(t) || d.primary.State == Failed })
}

// dropUseless stops tasks that are to be replaced and serve nobody: nothing is lost with them.
func (d *step) dropUseless() {
	for _, t := range d.tasks {
		if d.leaving(t) && (t.Status == Pending || t.Status == Unhealthy) {
			d.stop(t)
		}
	}
}

// leaving says whether a task has to be replaced however well it is.
func (d *step) leaving(t Task) bool { return d.live(t) && (t.Deployment != d.primary.ID || t.Draining) }

// replaceUnhealthy stops unhealthy tasks once others have taken their place; or one at a time, where
// there is no room for others beside them.
func (d *step) replaceUnhealthy(full bool) {
	unhealthy := func(t Task) bool { return d.live(t) && t.Status == Unhealthy && !d.leaving(t) }
	replaced := d.count(d.fine) + d.count(unhealthy) - d.desired
	if replaced <= 0 && full && d.count(d.live) == len(d.tasks) {
		replaced = 1
	}
	d.stopSome(replaced, unhealthy)
}

// replace stops healthy tasks that have to go, the oldest deployment's first: as many as have been
// replaced; and where no more can be started beside them, as many as the healthy minimum allows.
func (d *step) replace(need int) {
	leaving := d.count(d.leaving)
	if leaving == 0 || d.primary.State == Failed {
		return
	}
	replaced := d.count(d.fine) + leaving - d.desired
	waiting := need - d.plan.Start
	if d.primary.Unplaced {
		waiting = need
	}
	stopping := len(d.tasks) - d.count(d.live)
	if !d.mayStart() { // the place would stay empty
		waiting = 0
	}
	d.stopSome(max(replaced, min(waiting-stopping, d.healthy-d.min)), d.leaving)
}

// stopSome stops up to n of the tasks that are meant, one after the other: those of the oldest deployment first,
// of these what is not healthy, then from the zone and the instance that have most of the service's tasks.
func (d *step) stopSome(n int, meant func(Task) bool) {
	if n <= 0 {
		return
	}
	var candidates []Task
	zones, instances := map[string]int{}, map[string]int{}
	for _, t := range d.tasks {
		if d.live(t) && meant(t) {
			candidates = append(candidates, t)
			zones[t.Zone]++
			instances[t.Instance]++
		}
	}
	for ; n > 0 && len(candidates) > 0 && !d.full(); n-- {
		first := 0
		for i := range candidates {
			if d.before(candidates[i], candidates[first], zones, instances) {
				first = i
			}
		}
		t := candidates[first]
		candidates = slices.Delete(candidates, first, first+1)
		if !d.stop(t) {
			n++
			continue
		}
		zones[t.Zone]--
		instances[t.Instance]--
	}
}

// before says whether a task is to be stopped before another.
func (d *step) before(a, b Task, zones, instances map[string]int) bool {
	return cmp.Or(
		cmp.Compare(d.age[b.Deployment], d.age[a.Deployment]),
		cmp.Compare(a.worth(), b.worth()),
		cmp.Compare(zones[b.Zone], zones[a.Zone]),
		cmp.Compare(instances[b.Instance], instances[a.Instance]),
		cmp.Compare(a.ID, b.ID)) < 0
}

// worth orders tasks by what is lost with them.
func (t Task) worth() int { return slices.Index(worths, t.Status) }

var worths = []Status{Unhealthy, Pending, Running, Healthy}
