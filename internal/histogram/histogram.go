// Package histogram counts how long things take, by classes, as Prometheus wants to read it. Whoever does those things tells it, from any
// goroutine, and whoever shows figures reads it. It knows no names and no labels.
package histogram

import (
	"slices"
	"sync/atomic"
	"time"
)

// Histogram counts durations by the classes of its bounds. A nil one counts nothing.
type Histogram struct {
	bounds  []float64
	classes []atomic.Uint64
	sum     atomic.Int64
}

// New returns a histogram whose classes have these upper bounds, in seconds, in ascending order. A last class has what took longer.
func New(bounds []float64) *Histogram {
	return &Histogram{bounds: bounds, classes: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts a duration. One below zero, as of clocks that differ, counts as zero.
func (h *Histogram) Observe(took time.Duration) {
	if h == nil {
		return
	}
	took = max(took, 0)
	class, _ := slices.BinarySearch(h.bounds, took.Seconds())
	h.classes[class].Add(1)
	h.sum.Add(int64(took))
}

// Counts returns how many durations there were in each class, and their sum.
func (h *Histogram) Counts() (classes []uint64, sum time.Duration) {
	for i := range h.classes {
		classes = append(classes, h.classes[i].Load())
	}
	return classes, time.Duration(h.sum.Load())
}
