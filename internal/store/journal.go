package store

import (
	"context"
	"errors"
)

// Journal keeps rows durably. Each group of commits carries a revision, one above the group before it. So a follower can ask for
// what it hasn't seen, and the journal can refuse a writer that missed something. journaltest.Run is the full specification.
type Journal interface {
	// Since passes the last version of every row that changed after the revision to row, in the order of the changes, and returns
	// the journal's last revision. Since revision 0 that is every row. Deleted rows come with nil Data; since revision 0 they may
	// not come at all. Since returns ErrCompacted if deletions of that time are forgotten, or the revision is ahead of the journal.
	Since(ctx context.Context, revision int64, row func(Change) error) (last int64, err error)
	// Write makes the changes durable, all or none, under a revision that must follow the last one, else it returns ErrStale. After
	// another error Since doesn't tell of the changes, and the next Write may have their revision. A journal that has kept them all the
	// same, and can't undo that, returns ErrStale then. If the process ends before, the next one may find them.
	Write(revision int64, changes []Change) error
	Close() error
}

var (
	// ErrStale refuses a write that doesn't follow the journal's last revision: somebody else has written.
	ErrStale = errors.New("the journal was written to by another")
	// ErrCompacted refuses to list the changes since a revision that is too old: start again from 0.
	ErrCompacted = errors.New("the journal has forgotten what was deleted since that revision")
)

// Change is one row as the journal keeps it; nil Data is a row that was deleted.
type Change struct {
	Table string
	Key   string
	Data  []byte
}
