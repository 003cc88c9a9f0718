// Package tally counts the requests that were answered, and how long that took, by operation and by code. Wire tells it of each; whoever shows
// figures reads it.
package tally

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/histogram"
)

// Kind is what requests are counted by.
type Kind struct {
	Service   string
	Operation string // "" if it isn't one of the service's
	Code      string // of the error; "" without one
}

// Bounds are the upper bounds of the classes by which times are counted, in seconds. A last class has what took longer.
var Bounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// Times are how long requests took.
type Times struct {
	Classes []uint64 // how many, by class
	Sum     time.Duration
}

// Tally counts. Its zero value is ready for use, by any goroutine.
type Tally struct{ kinds sync.Map }

// Answered counts a request.
func (t *Tally) Answered(k Kind, took time.Duration) {
	of, ok := t.kinds.Load(k)
	if !ok {
		of, _ = t.kinds.LoadOrStore(k, histogram.New(Bounds))
	}
	of.(*histogram.Histogram).Observe(took)
}

// Each calls f for each kind that was seen, in order.
func (t *Tally) Each(f func(Kind, Times)) {
	var all []Kind
	t.kinds.Range(func(k, _ any) bool {
		all = append(all, k.(Kind))
		return true
	})
	slices.SortFunc(all, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Code, b.Code))
	})
	for _, k := range all {
		of, _ := t.kinds.Load(k)
		classes, sum := of.(*histogram.Histogram).Counts()
		f(k, Times{classes, sum})
	}
}
