package state

import (
	"context"
	"time"
)

// RunDue calls fire in a transaction whenever a row is due, until ctx ends. next returns when the first one is, or nil if none will be; fire
// must move that. While too many events wait for their targets it isn't called: what was due meanwhile is late, as if nothing had run.
func (s *Store) RunDue(ctx context.Context, now func() time.Time, next func(*View) *time.Time, fire func(tx *Tx, now time.Time)) error {
	for {
		v := s.Watch()
		at := next(v)
		if at != nil && !at.After(now()) {
			full := false
			err := s.Update(ctx, func(tx *Tx) error {
				if full = s.Undelivered.IsFull(); !full {
					fire(tx, now())
				}
				return nil
			})
			if err != nil {
				return err
			}
			if !full {
				continue
			}
			at = new(now().Add(time.Second))
		}
		if err := waitFor(ctx, v, at, now); err != nil {
			return err
		}
	}
}

// waitFor waits until what a view has read changes, or a time comes.
func waitFor(ctx context.Context, v *View, at *time.Time, now func() time.Time) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	var due <-chan time.Time
	if at != nil {
		timer := time.NewTimer(at.Sub(now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-v.ChangedCh(waiting):
	}
	return ctx.Err()
}
