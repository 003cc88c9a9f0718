package store

import (
	"context"
	"time"
)

// Lifetime returns the keys of the rows whose time is up.
type Lifetime[R any] func(t Table[R], now time.Time) []string

// KeepFor keeps a row for d after it ended. ended returns nil for a row that hasn't.
func KeepFor[R any](d time.Duration, ended func(R) *time.Time) Lifetime[R] {
	return func(t Table[R], now time.Time) (expired []string) {
		for row := range t.All() {
			if at := ended(row); at != nil && now.Sub(*at) > d {
				expired = append(expired, t.table.key(row))
			}
		}
		return expired
	}
}

// KeepForBy is KeepFor for a table in which only rows with the value in the index can have ended. It scans no others.
func KeepForBy[R any](index Index[R], value string, d time.Duration, ended func(R) *time.Time) Lifetime[R] {
	return func(t Table[R], now time.Time) (expired []string) {
		for row := range t.By(index, value) {
			if at := ended(row); at != nil && now.Sub(*at) > d {
				expired = append(expired, t.table.key(row))
			}
		}
		return expired
	}
}

// KeepLatest keeps the rows of the last d. The table's keys must be in the order of time, so that the scan can end at the first row
// that stays.
func KeepLatest[R any](d time.Duration, at func(R) *time.Time) Lifetime[R] {
	return func(t Table[R], now time.Time) (expired []string) {
		for row := range t.All() {
			if when := at(row); when != nil && now.Sub(*when) <= d {
				break
			}
			expired = append(expired, t.table.key(row))
		}
		return expired
	}
}

// sweepEvery is how often RunSweeper sweeps.
const sweepEvery = time.Minute

// RunSweeper sweeps the store, and the other stores with it, until ctx ends.
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

// Sweep deletes the rows of all tables whose time is up.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		for _, t := range s.schema.tables {
			t.sweep(tx, now)
		}
		return nil
	})
}
