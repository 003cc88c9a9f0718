package histogram

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// TestObserve: each duration is in one class, the one whose bound it doesn't pass.
func TestObserve(t *testing.T) {
	h := New([]float64{0.001, 1})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for _, took := range []time.Duration{-time.Second, 0, time.Millisecond, time.Millisecond + 1, time.Second, time.Minute} {
				h.Observe(took)
			}
		})
	}
	wait.Wait()
	classes, sum := h.Counts()
	if !slices.Equal(classes, []uint64{24, 16, 8}) || sum != 8*(2*time.Millisecond+1+61*time.Second) {
		t.Errorf("%v in %v", classes, sum)
	}
	(*Histogram)(nil).Observe(time.Second)
}
