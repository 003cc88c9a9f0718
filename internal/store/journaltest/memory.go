package journaltest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/pintle/pintle/internal/store"
)

// Memory is a journal in memory that outlives the stores opened on it. Tests use it where a disk would only cost time.
type Memory struct {
	mu       sync.Mutex
	rows     Rows
	revision int64
	failure  func() error
	kept     func(Rows)
}

// Rows are what a journal holds, by table and key.
type Rows map[[2]string]Kept

// Kept is the last write of a row. Data is nil for a deletion.
type Kept struct {
	Data  []byte
	place [2]int64 // the revision, and the place among its changes
}

// NewMemory makes a journal that holds the rows, which may come from another journal's OnWrite.
func NewMemory(rows Rows) *Memory {
	m := &Memory{rows: maps.Clone(rows)}
	if m.rows == nil {
		m.rows = Rows{}
	}
	for _, k := range m.rows {
		m.revision = max(m.revision, k.place[0])
	}
	return m
}

// FailWith makes each write call the function first, and fail with its error if it returns one.
func (m *Memory) FailWith(failure func() error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = failure
}

// OnWrite calls the function with a copy of all rows after each write.
func (m *Memory) OnWrite(kept func(Rows)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = kept
}

// Since implements store.Journal.
func (m *Memory) Since(_ context.Context, revision int64, row func(store.Change) error) (int64, error) {
	m.mu.Lock()
	rows, last := maps.Clone(m.rows), m.revision
	m.mu.Unlock()
	if revision > last {
		return 0, store.ErrCompacted
	}
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b [2]string) int {
		x, y := rows[a].place, rows[b].place
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]))
	})
	for _, k := range keys {
		if revision > 0 && rows[k].place[0] <= revision {
			continue
		}
		if err := row(store.Change{Table: k[0], Key: k[1], Data: rows[k].Data}); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// Write implements store.Journal.
func (m *Memory) Write(revision int64, changes []store.Change) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failure != nil {
		if err := m.failure(); err != nil {
			return err
		}
	}
	if revision != m.revision+1 {
		return store.ErrStale
	}
	for i, c := range changes {
		m.rows[[2]string{c.Table, c.Key}] = Kept{c.Data, [2]int64{revision, int64(i)}}
	}
	m.revision = revision
	if m.kept != nil {
		m.kept(maps.Clone(m.rows))
	}
	return nil
}

// Close implements store.Journal.
func (m *Memory) Close() error { return nil }
