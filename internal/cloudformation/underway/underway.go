// Package underway carries out what rows say is under way, each row in a goroutine of its own, one durable step at a time: stacks' operations,
// and Cloud Control's requests. What the steps are is for those who own the rows to know.
package underway

import (
	"context"
	"iter"
	"time"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/refusal"
)

// Work is what is carried out.
type Work struct {
	// Open lists the ids of what is under way, as a view has it. It reads no more of the view, which waits for changes of what was read.
	Open func(*state.View) iter.Seq[string]
	// Step does what can be done now, and reports whether anything was. It's called by one goroutine at a time for each id.
	Step func(ctx context.Context, id string) (moved bool, err error)
	// IsOver reports whether nothing is left to do.
	IsOver func(v *state.View, id string) bool
	// Failed is told of errors for which a step is tried again.
	Failed func(id string, err error)
}

// Run carries out what is under way, and what comes to be, until ctx ends.
func Run(ctx context.Context, rows *state.Store, w Work) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan string)
	running := map[string]bool{}
	defer func() {
		cancel()
		for range running {
			<-ended
		}
	}()
	for {
		v := rows.Watch()
		for id := range w.Open(v) {
			if !running[id] {
				running[id] = true
				go func() {
					w.carry(ctx, rows, id)
					ended <- id
				}()
			}
		}
		changed, stop := context.WithCancel(ctx)
		select {
		case id := <-ended:
			delete(running, id)
		case err := <-v.ChangedCh(changed):
			if err != nil {
				stop()
				return err
			}
		}
		stop()
	}
}

// How long a row waits before it's looked at again when nothing could be done, or tried again after an error.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 3 * time.Second
)

// Safely does something of which a panic is an error: a bug costs the one row that it's met in, and not the process.
func Safely(do func() (moved bool, err error)) (moved bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refusal.Panic(p)
		}
	}()
	return do()
}

// carry carries out one row's work to its end.
func (w *Work) carry(ctx context.Context, rows *state.Store, id string) {
	pause := firstPause
	for {
		moved, err := Safely(func() (bool, error) { return w.Step(ctx, id) })
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.Failed(id, err)
		case moved:
			pause = firstPause
			continue
		}
		if w.IsOver(rows.View(), id) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
}
