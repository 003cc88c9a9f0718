package state

import (
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/store"
)

// DriftDetection is a search for drift in a stack, and what came of it.
type DriftDetection struct {
	ID      string
	Stack   string // its ID
	At      time.Time
	Status  types.StackDriftDetectionStatus
	Reason  string                 `json:",omitempty"`
	Drift   types.StackDriftStatus // of the stack
	Drifted int32                  // how many resources have drifted
}

// ResourceDrift is what the last search found of a resource of a stack.
type ResourceDrift struct {
	Stack      string // its ID
	Name       string // the logical ID
	PhysicalID string
	At         time.Time
	Status     types.StackResourceDriftStatus
	Found      []byte `json:",omitempty"` // the properties and how they differ, encrypted
}

// Key returns the stack's ID and the name.
func (d *ResourceDrift) Key() string { return d.Stack + " " + d.Name }

// DriftsOf returns what the last searches found of a stack's resources, by their names.
func (v *View) DriftsOf(stack string) iter.Seq[*ResourceDrift] {
	return under(v.ResourceDrifts, stack, func(d *ResourceDrift) string { return d.Stack })
}

// DriftOf returns what the last search found of a resource that stands, or nil if it was never checked.
func (v *View) DriftOf(r *StackResource) *ResourceDrift {
	d := v.ResourceDrifts.Get(r.Stack + " " + r.Name)
	if d == nil || d.PhysicalID != r.PhysicalID {
		return nil
	}
	return d
}

// LastDetection returns the last search for drift in a stack, or nil if there was none.
func (v *View) LastDetection(stack string) (last *DriftDetection) {
	for d := range v.DriftDetections.By(DetectionsByStack, stack) {
		if last == nil || d.At.After(last.At) {
			last = d
		}
	}
	return last
}

// MaxDetections is how many searches for drift are kept of a stack.
const MaxDetections = 20

var (
	// DetectionsByStack finds the searches for drift in a stack by its ID.
	DetectionsByStack = Index[*DriftDetection]{Name: "stack", Value: func(d *DriftDetection) string { return d.Stack }}

	driftDetections = &store.Definition[*DriftDetection]{
		Name:     "drift_detections",
		Key:      func(d *DriftDetection) string { return d.ID },
		Indexes:  []Index[*DriftDetection]{DetectionsByStack},
		Lifetime: withStack(func(d *DriftDetection) (key, stack string) { return d.ID, d.Stack }),
	}
	resourceDrifts = &store.Definition[*ResourceDrift]{
		Name:     "resource_drifts",
		Key:      (*ResourceDrift).Key,
		Lifetime: withResource,
	}
)

// withResource keeps what was found of a resource as long as its stack has it.
func withResource(t Table[*ResourceDrift], _ time.Time) (expired []string) {
	all := stackResources.In(t.View())
	for d := range t.All() {
		there := false
		for r := range all.Behind(d.Key() + " ") {
			there = r.Stack == d.Stack && r.Name == d.Name
			break
		}
		if !there {
			expired = append(expired, d.Key())
		}
	}
	return expired
}
