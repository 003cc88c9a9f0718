package sqlitefile

import (
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// moves knows whether what was committed can be moved into the database's file, for whoever looks after the disk. Nobody else is told: commits
// stand in the log.
type moves struct {
	mu    sync.Mutex
	err   error // of the last attempt
	times int   // that it has failed in a row
	since time.Time
}

// note notes an attempt's outcome and returns it. It logs the first of several failures, and their end.
func (m *moves) note(path string, err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil && m.err == nil:
		m.since = time.Now()
		slog.Error("what was committed can't be moved into the database: nothing is lost, but its log (FILE-wal) grows until this works, or "+
			"nothing can be written. Look whether the disk is full or fails", "file", path, "error", err)
	case err == nil && m.err != nil:
		slog.Info("what was committed is moved into the database again", "file", path, "times", m.times,
			"after", time.Since(m.since).Round(time.Second))
		m.times = 0
	}
	if err != nil {
		m.times++
	}
	m.err = err
	return err
}

// Failing returns why what was committed can't be moved into the database's file, or nil if it can. Any goroutine may ask.
func (db *DB) Failing() error {
	m := &db.moves
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		return nil
	}
	return fmt.Errorf("what is committed to %s stays in its log: moving it failed %d times since %s: %w",
		db.path, m.times, m.since.UTC().Format(time.RFC3339), m.err)
}
