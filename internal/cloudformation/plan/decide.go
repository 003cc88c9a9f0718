package plan

import (
	"slices"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// Action is what becomes of a resource.
type Action int

// The actions.
const (
	Keep Action = iota
	Create
	Update     // in place
	Replace    // another one is created, and the old one deleted once nothing can be rolled back any more
	MayReplace // as Replace, or Update: that depends on what isn't known yet
	Delete
)

// Type is what a plan asks of a resource type.
type Type interface {
	// Changes compares two states of a resource's properties, of which some may be template.Unknown.
	Changes(before, after map[string]any) []Change
}

// Change is a property that changes.
type Change struct {
	Name     string
	Replaces bool // whether a new resource takes the old one's place
	Unknown  bool // whether what it becomes isn't known yet, so that it may stay what it is; Decide says so
}

// Standing is a resource that is there.
type Standing struct {
	Type       string
	Properties map[string]any
	Halfway    bool // whether a change of it has failed, and nobody knows how much of it was done
}

// Wanted is a resource as it's to be.
type Wanted struct {
	Type       string
	Kind       Type
	Properties map[string]any
	// WillReplace is whether the resource's update policy asks for a new one where what its instances are launched from changes.
	WillReplace bool
	// Stirs is whether the resource changes though its properties may not, as a stack in the stack does whose template has changed.
	Stirs bool
}

// Decision is what becomes of a resource that stands, and why.
type Decision struct {
	Action
	Changes []Change
}

// Decide says what becomes of a resource that stands and is to stand.
func Decide(have *Standing, want *Wanted) Decision {
	d := Decision{Changes: want.Kind.Changes(have.Properties, want.Properties)}
	if len(d.Changes) > 0 || have.Halfway || want.Stirs {
		d.Action = Update
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		c.Unknown = template.HasUnknown(want.Properties[c.Name])
		switch {
		case !c.Replaces || d.Action == Replace:
		case c.Unknown:
			d.Action = MayReplace
		default:
			d.Action = Replace
		}
	}
	if have.Type != want.Type || want.WillReplace && launchesOthers(d.Changes) {
		d.Action = Replace
	}
	return d
}

// Replaces reports whether changes make a new resource.
func Replaces(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Replaces })
}

// launchProperties are those of an Auto Scaling group that say what its instances are launched from, and where.
var launchProperties = []string{"LaunchConfigurationName", "LaunchTemplate", "MixedInstancesPolicy", "VPCZoneIdentifier"}

func launchesOthers(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return slices.Contains(launchProperties, c.Name) })
}
