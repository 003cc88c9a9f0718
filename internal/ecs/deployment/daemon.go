package deployment

import "slices"

// daemon brings a DAEMON service nearer to one task on each instance that it wants: never two at a time on
// one, so the old task goes before the new one comes.
func (d *step) daemon() {
	on, wanted := map[string][]Task{}, map[string]bool{}
	for _, instance := range d.service.Instances {
		wanted[instance] = true
	}
	for _, t := range d.tasks {
		on[t.Instance] = append(on[t.Instance], t)
		if !wanted[t.Instance] {
			d.leave(t)
		}
	}
	for _, instance := range d.service.Instances {
		switch {
		case len(on[instance]) > 0:
			d.keepOne(on[instance])
		case d.mayStart() && len(d.plan.StartOn) < batch:
			d.plan.StartOn = append(d.plan.StartOn, instance)
		}
		if len(on[instance]) == 0 && d.primary.State != Failed {
			d.wake(d.primary.NotBefore)
		}
	}
}

// leave stops the task of an instance that the service does not want, or that is no longer there for it.
func (d *step) leave(t Task) {
	keep := d.min
	d.min = 0 // the minimum is of the instances that it wants
	d.stop(t)
	d.min = keep
}

// keepOne stops all but one good task of an instance, and those that have to be replaced.
func (d *step) keepOne(tasks []Task) {
	slices.SortStableFunc(tasks, func(a, b Task) int { return b.worth() - a.worth() })
	kept := false
	for _, t := range tasks {
		switch {
		case d.good(t) && !kept:
			kept = true
		case d.primary.State != Failed && (d.mayStart() || d.good(t)):
			d.stop(t)
		}
	}
}
