package deployment

import (
	"cmp"
	"slices"
)

// replicas moves a REPLICA service towards its desired count.
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

// shrink stops surplus tasks of the PRIMARY deployment.
func (d *step) shrink() {
	surplus := d.count(d.good) - d.desired
	if d.primary.State == Failed { // nothing will replace other deployments' tasks, so they count
		surplus = d.count(d.live) - d.desired
	}
	if d.plan.Rebalancing && surplus == 1 { // the task that replaces one in the fullest zone
		d.stopSome(d.count(d.fine)-d.desired, d.fine)
		return
	}
	d.stopSome(surplus, func(t Task) bool { return d.good(t) || d.primary.State == Failed })
}

// dropUseless stops tasks that have to be replaced and serve nobody: pending and unhealthy ones.
func (d *step) dropUseless() {
	for _, t := range d.tasks {
		if d.isLeaving(t) && (t.Status == Pending || t.Status == Unhealthy) {
			d.stop(t)
		}
	}
}

// isLeaving reports whether a task has to be replaced however healthy it is.
func (d *step) isLeaving(t Task) bool {
	return d.live(t) && (t.Deployment != d.primary.ID || t.Draining)
}

// replaceUnhealthy stops unhealthy tasks once others have taken their place. If full, there is no room for others beside them,
// so it stops one at a time.
func (d *step) replaceUnhealthy(full bool) {
	unhealthy := func(t Task) bool { return d.live(t) && t.Status == Unhealthy && !d.isLeaving(t) }
	replaced := d.count(d.fine) + d.count(unhealthy) - d.desired
	if replaced <= 0 && full && d.count(d.live) == len(d.tasks) {
		replaced = 1
	}
	d.stopSome(replaced, unhealthy)
}

// replace stops tasks that have to go, the oldest deployment's first: as many as healthy new ones have replaced. If new tasks
// don't fit beside them, it stops as many as the healthy minimum allows.
func (d *step) replace(need int) {
	leaving := d.count(d.isLeaving)
	if leaving == 0 || d.primary.State == Failed {
		return
	}
	replaced := d.count(d.fine) + leaving - d.desired
	waiting := need - d.plan.Start
	if d.primary.Unplaced {
		waiting = need
	}
	stopping := len(d.tasks) - d.count(d.live)
	if !d.mayStart() { // nothing would fill the place
		waiting = 0
	}
	d.stopSome(max(replaced, min(waiting-stopping, d.healthy-d.min)), d.isLeaving)
}

// stopSome stops up to n matching tasks: the oldest deployment's first, then unhealthy ones, then those in the zone and on
// the instance with the most of the service's tasks.
func (d *step) stopSome(n int, matches func(Task) bool) {
	if n <= 0 {
		return
	}
	var candidates []Task
	zones, instances := map[string]int{}, map[string]int{}
	for _, t := range d.tasks {
		if d.live(t) && matches(t) {
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

// before reports whether to stop a before b.
func (d *step) before(a, b Task, zones, instances map[string]int) bool {
	return cmp.Or(
		cmp.Compare(d.age[b.Deployment], d.age[a.Deployment]),
		cmp.Compare(a.worth(), b.worth()),
		cmp.Compare(zones[b.Zone], zones[a.Zone]),
		cmp.Compare(instances[b.Instance], instances[a.Instance]),
		cmp.Compare(a.ID, b.ID)) < 0
}

// worth orders tasks by what a stop would lose.
func (t Task) worth() int { return slices.Index(worths, t.Status) }

var worths = []Status{Unhealthy, Pending, Running, Healthy}
