package store

import (
	"context"
	"errors"
)

// Journal keeps rows durably. Each group of commits carries a revision, one above that of the group before it. So a follower can
// ask for what it has not seen, and a writer that has missed something is refused. journaltest.Run says what a journal must do.
type Journal interface {
	// Since hands over the last version of every row that was changed after the revision, in the order of the changes, and
	// returns the journal's last revision. After revision 0 that is every row. Rows that were deleted come with nil Data, or, after
	// revision 0, not at all. It gives ErrCompacted where deletions of that time are forgotten, and to who knows more than it does.
	Since(ctx context.Context, revision int64, row func(Change) error) (last int64, err error)
	// Write makes the changes durable together or not at all, as a revision that must follow the last one: an error that wraps
	// ErrStale says that it does not. One that wraps ErrInDoubt says that the journal cannot know whether it has kept the
	// changes; any other says that nothing was kept.
	Write(revision int64, changes []Change) error
	Close() error
}

var (
	// ErrInDoubt marks a journal's error after which the disk may or may not hold the changes.
	ErrInDoubt = errors.New("the journal cannot tell whether it kept the last write")
	// ErrStale marks the refusal of a write that does not follow the journal's last revision: somebody else has written.
	ErrStale = errors.New("the journal was written to by another")
	// ErrCompacted marks the refusal to tell what has changed since a revision that is too long ago: start again from 0.
	ErrCompacted = errors.New("the journal has forgotten what was deleted since that revision")
)

// Change is one row as the journal keeps it; nil Data is a row that was deleted.
type Change struct {
	Table, Key string
	Data       []byte
}
