package deployment

import "slices"

// daemon moves a DAEMON service towards one task on each wanted instance. An instance never has two, so the old task
// goes before the new one starts.
func (d *step) daemon() {
	on := map[string][]Task{} // by instance
	wanted := map[string]bool{}
	for _, instance := range d.service.Instances {
		wanted[instance] = true
	}
	for _, t := range d.tasks {
		on[t.Instance] = append(on[t.Instance], t)
		if !wanted[t.Instance] {
			d.stopUnwanted(t)
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

// stopUnwanted stops the task of an instance that the service doesn't want any more.
func (d *step) stopUnwanted(t Task) {
	keep := d.min
	d.min = 0 // the minimum counts wanted instances alone
	d.stop(t)
	d.min = keep
}

// keepOne stops an instance's tasks except one good one.
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
