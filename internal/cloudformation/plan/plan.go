// Package plan says what makes of a stack's resources what a template says: which are created, changed in place, replaced and deleted, and
// which wait for which; what doesn't depend on each other may be done at the same time. It is pure: what stands, and what a resource is to be,
// is told to it.
//
// A plan is made as a whole once, to be shown: a change set. The loop that carries one out asks again after each step, by the same graph and
// the same decision, because what one resource turns out to be decides what the next one is to be.
package plan

import "github.com/pintle/pintle/internal/cloudformation/template"

// Source is what a plan is made from: a template's resources as they are to be, and those that stand.
type Source interface {
	// Wanted returns a resource as it's to be, or nil if the stack isn't to have it. Those that it needs were asked for before.
	Wanted(r *template.Resource) (*Wanted, error)
	// Standing returns the resource that stands under a name, or nil. It's asked after Wanted.
	Standing(name string) (*Standing, error)
	// Stays notes that a resource isn't replaced. If it changes, its attributes aren't known before it has. Resources that need it are asked
	// for later.
	Stays(name string, changes bool)
}

// Step is what is done for one resource. It comes after the steps of the resources that it needs.
type Step struct {
	Name   string
	Wanted *Wanted // nil for one that is deleted
	Decision
}

// Of makes a plan: steps for the template's resources that don't stay as they are, and for those left over of the ones that stand, which are
// named in the order in which to list them.
func Of(t *template.Template, g Graph, standing []string, src Source) (steps []Step, err error) {
	wanted := map[string]bool{}
	err = g.Walk(t, func(r *template.Resource, _ bool) (bool, error) {
		step, err := stepOf(r, src)
		if err != nil {
			return false, err
		}
		wanted[r.Name] = step.Wanted != nil
		if step.Action != Keep {
			steps = append(steps, step)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range standing {
		if !wanted[name] {
			steps = append(steps, Step{Name: name, Decision: Decision{Action: Delete}})
		}
	}
	return steps, nil
}

// stepOf decides on one resource of a template. One that the stack isn't to have is kept as it is here: it's told apart by Wanted.
func stepOf(r *template.Resource, src Source) (step Step, err error) {
	step = Step{Name: r.Name}
	if step.Wanted, err = src.Wanted(r); err != nil || step.Wanted == nil {
		return step, err
	}
	have, err := src.Standing(r.Name)
	if err != nil {
		return step, err
	}
	if have == nil {
		step.Action = Create
		return step, nil
	}
	step.Decision = Decide(have, step.Wanted)
	if step.Action == Keep || step.Action == Update {
		src.Stays(r.Name, step.Action == Update)
	}
	return step, nil
}
