package store

import (
	"context"
	"time"
)

// Lifetime says which rows of a table are over at a time, by their keys.
type Lifetime[R any] func(t Table[R], now time.Time) []string

// KeepFor keeps a row for a while after it has ended. ended gives nil for one that has not.
func KeepFor[R any](d time.Duration, ended func(*R) *time.Time) Lifetime[R] {
	return func(t Table[R], now time.Time) (over []string) {
		for row := range t.All() {
			if at := ended(row); at != nil && now.Sub(*at) > d {
				over = append(over, t.def.Key(row))
			}
		}
		return over
	}
}

// KeepForBy is KeepFor of a table in which the rows with a value in an index alone can have ended: it looks at no others.
func KeepForBy[R any](index Index[R], value string, d time.Duration, ended func(*R) *time.Time) Lifetime[R] {
	return func(t Table[R], now time.Time) (over []string) {
		for row := range t.By(index, value) {
			if at := ended(row); at != nil && now.Sub(*at) > d {
				over = append(over, t.def.Key(row))
			}
		}
		return over
	}
}

// KeepLatest keeps the rows of a while, of a table whose keys are in the order of time: it looks no further than the first that
// stays.
func KeepLatest[R any](d time.Duration, at func(*R) *time.Time) Lifetime[R] {
	return func(t Table[R], now time.Time) (over []string) {
		for row := range t.All() {
			if when := at(row); when != nil && now.Sub(*when) <= d {
				break
			}
			over = append(over, t.def.Key(row))
		}
		return over
	}
}

func (d *Definition[R]) sweep(tx *Tx, now time.Time) {
	if d.Lifetime == nil {
		return
	}
	t := d.In(&tx.View)
	for _, key := range d.Lifetime(t, now) {
		t.Delete(key)
	}
}

// sweepEvery is how often RunSweeper looks.
const sweepEvery = time.Minute

// RunSweeper sweeps the store until ctx ends, and has other stores swept with it, at a time in milliseconds since 1970.
func (s *Store) RunSweeper(ctx context.Context, now func() time.Time, others ...func(unixMilli int64) error) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		at := now()
		if err := s.Sweep(ctx, at); err != nil {
			return err
		}
		for _, sweep := range others {
			if err := sweep(at.UnixMilli()); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Sweep forgets the rows that are over at a time, of all tables.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		for _, t := range s.schema.tables {
			t.sweep(tx, now)
		}
		return nil
	})
}
