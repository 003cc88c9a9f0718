package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pintle/pintle/internal/disk"
)

// ErrInDoubt marks the error of a commit that failed and couldn't be undone yet. This process never sees the changes, and undoes them before
// the next transaction. If it ends before that, the next one may find them.
var ErrInDoubt = errors.New("the disk may hold it all the same")

// Ready prepares for a transaction: it completes what failed earlier. While that goes on failing, nothing can be written.
func (db *DB) Ready() error {
	if !db.torn && !db.unmarked && !db.unguarded {
		return nil
	}
	if err := db.complete(); err != nil {
		return disk.Unwritable(fmt.Errorf("%s: %w", db.path, err))
	}
	return nil
}

func (db *DB) complete() error {
	if db.torn {
		if err := db.undo(); err != nil {
			return err
		}
	}
	if db.unmarked {
		if err := db.advance(); err != nil {
			return err
		}
		db.unmarked = false
	}
	if db.unguarded {
		return db.moves.note(db.path, db.guardMoved())
	}
	return nil
}

// Committed marks how far the log reaches after a commit, and moves a long log into the database's file. The commit stands whether that
// works or not. SQLite begins no new log before the next transaction, so what fails is done before that.
func (db *DB) Committed() {
	if err := db.advance(); err != nil {
		db.unmarked = true
		return
	}
	waiting := db.guard.frames - db.guard.folded
	if waiting < db.foldAt || db.held.Load() > 0 {
		return
	}
	db.foldAt = foldAfter
	if err := db.fold(); err != nil { // the log goes on growing
		db.foldAt = waiting + foldAfter/16
	}
}

// Failed undoes a commit that failed with an error, and returns the error. It's ErrInDoubt, too, if the commit couldn't be undone.
func (db *DB) Failed(err error) error {
	db.torn = true
	if undo := db.undo(); undo != nil {
		err = errors.Join(err, ErrInDoubt, undo)
	}
	return disk.Unwritable(fmt.Errorf("%s: %w", db.path, err))
}

// undo removes what a failed commit has left. SQLite ignores it and would write over it, but a shorter commit leaves the rest, whose last
// frame looks like a commit's end. After a failed sync all of the next commit's frames are written anew, so none that the kernel has
// dropped is taken for written.
func (db *DB) undo() error {
	db.conn.ExecContext(context.Background(), `ROLLBACK`) //nolint:errcheck // SQLite may have rolled back by itself
	log, err := os.OpenFile(logPath(db.path), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		db.torn = false
		return nil
	}
	if err != nil {
		return err
	}
	var header [headerSize]byte
	if _, err := log.ReadAt(header[:], 0); ignoreEnd(err) != nil {
		return errors.Join(err, log.Close())
	}
	end := int64(0) // of a log that has no commit yet
	if header == db.guard.header {
		end = frameOffset(db.guard.frames)
	}
	if err := errors.Join(log.Truncate(end), log.Sync(), log.Close()); err != nil {
		return err
	}
	db.torn = false
	return nil
}

// Mark marks SQLite's errors that say that the disk can't be written.
func Mark(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return disk.Unwritable(err)
	}
	return err
}
