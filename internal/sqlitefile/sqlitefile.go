// Package sqlitefile opens SQLite databases whose damage is found. SQLite has no checksums in its file, and takes its log up to
// the first bad frame without a word; so a file beside, NAME-guard, has a checksum of each page of the database, and a mark
// of how far the log reached at the last commit.
//
// In SQLite's WAL mode the database's file changes in checkpoints alone. They are made here, and the guard is replaced after each,
// while the log still has every page that may differ. The mark is written over after each commit's sync and costs none of its own.
//
// Found is a byte that differs, is missing or is too many in the database's file, in the guard, and in the log as far as commits were
// acknowledged. After a power failure the mark may be behind; then what lies behind the mark is still known to be damaged where
// a later commit follows it, and only the very last commit cannot be told from one that was torn.
package sqlitefile

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/pintle/pintle/internal/file"
)

// Options say what a database is.
type Options struct {
	// Schema makes the tables, and the rows that are there from the start, where they are not there yet. A table WITHOUT ROWID
	// begins with its primary key's columns.
	Schema string
	// Exclusive lets nobody else read the database, and saves the file that readers share.
	Exclusive bool
	CacheKiB  int
}

// DB is a database that is open. One goroutine at a time may write to it.
type DB struct {
	path    string
	options Options
	lock    *os.File
	writes  *sql.DB
	conn    *sql.Conn
	log     *os.File // SQLite's, to see how far it reaches
	beside  *os.File // the guard
	guard   *guard
}

// foldAfter is how many pages the log may have that the database's file has not.
const foldAfter = 4096

func logPath(path string) string   { return path + "-wal" }
func guardPath(path string) string { return path + "-guard" }

// Open opens a database, and makes it where there is none. Its error is a *file.Damage where the files do not hold what was
// written, and file.ErrLocked where another process has it.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	lock, err := file.Lock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open %s (is another pintle using it?): %w", path, err)
	}
	db := &DB{path: path, options: o, lock: lock}
	if err := db.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.release())
	}
	return db, nil
}

func (db *DB) open(ctx context.Context) error {
	found, err := inspect(db.path)
	if err != nil {
		return err
	}
	if err := found.err(); err != nil {
		return err
	}
	if err := found.prepare(); err != nil {
		return err
	}
	if db.beside, err = os.OpenFile(guardPath(db.path), os.O_WRONLY, 0); err != nil {
		return err
	}
	db.guard = found.guard
	if db.writes, err = sql.Open("sqlite", db.address()); err != nil {
		return err
	}
	db.writes.SetMaxOpenConns(1)
	if db.conn, err = db.writes.Conn(ctx); err != nil {
		return err
	}
	return db.recover(ctx, found.log)
}

// recover moves what the log has into the database's file, so that SQLite begins a new log, and makes the tables.
func (db *DB) recover(ctx context.Context, l *walLog) error {
	if n := l.whole(); n > 0 {
		db.guard.mark = l.markAt(n, db.guard.mark)
	}
	if err := db.openLog(); err != nil {
		return err
	}
	if err := db.fold(); err != nil {
		return err
	}
	if _, err := db.conn.ExecContext(ctx, db.options.Schema); err != nil {
		return err
	}
	if err := db.advance(); err != nil {
		return err
	}
	return db.fold()
}

// address is what the driver opens. Checkpoints are made by fold alone.
func (db *DB) address() string {
	a := "file:" + (&url.URL{Path: db.path}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(0)" +
		fmt.Sprintf("&_pragma=page_size(%d)&_pragma=cache_size(-%d)", pageSize, db.options.CacheKiB)
	if db.options.Exclusive {
		a += "&_pragma=locking_mode(exclusive)"
	}
	return a
}

// Readers are up to n connections that only read. They are to be closed before the database is.
func (db *DB) Readers(n int) (*sql.DB, error) {
	reads, err := sql.Open("sqlite", db.address()+"&_pragma=query_only(true)")
	if err != nil {
		return nil, err
	}
	reads.SetMaxOpenConns(n)
	reads.SetMaxIdleConns(n)
	return reads, nil
}

// Conn is the one connection that writes. Whoever commits on it by a statement calls Committed then.
func (db *DB) Conn() *sql.Conn { return db.conn }

// Begin begins a transaction, which Commit ends, or its own Rollback.
func (db *DB) Begin() (*sql.Tx, error) { return db.conn.BeginTx(context.Background(), nil) }

// Commit makes a transaction durable. After an error nobody knows whether it is.
func (db *DB) Commit(tx *sql.Tx) error {
	if err := tx.Commit(); err != nil {
		return err
	}
	return db.Committed()
}

// Committed marks how far the log reaches after a commit, and moves it into the database's file where it has become long. After an error
// nobody knows whether the next start finds what was committed.
func (db *DB) Committed() error {
	if err := db.advance(); err != nil {
		return fmt.Errorf("mark the end of the log of %s: %w", db.path, err)
	}
	if db.guard.frames-db.guard.folded < foldAfter {
		return nil
	}
	return db.fold()
}

// Close ends the database with all that it has in its one file. Its readers are closed before.
func (db *DB) Close() error {
	if err := db.fold(); err != nil {
		// SQLite would still move its log into the file when it is closed, and the guard would not know of that. So it stays open
		// until the process ends, which is what a store that cannot be written is for.
		return errors.Join(err, db.lock.Close())
	}
	return db.release()
}

// release closes what is open.
func (db *DB) release() (err error) {
	if db.conn != nil {
		err = db.conn.Close()
	}
	if db.writes != nil {
		err = errors.Join(err, db.writes.Close())
	}
	for _, f := range []*os.File{db.log, db.beside, db.lock} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// advance moves the mark to the last commit in the log.
func (db *DB) advance() error {
	m := db.guard.mark
	if err := db.look(&m); err != nil || m == db.guard.mark {
		return err
	}
	db.guard.mark = m
	_, err := db.beside.WriteAt(m.encode(), 0)
	return err
}

// look reads the headers of the frames behind a mark. Behind the last commit there may be what is left of an earlier round, with other
// salts, or of a transaction that was undone, which has no end.
func (db *DB) look(m *mark) error {
	if err := db.openLog(); err != nil || db.log == nil {
		return err
	}
	var header [headerSize]byte
	if _, err := db.log.ReadAt(header[:], 0); err != nil {
		return ignoreEnd(err)
	}
	if header != m.header {
		*m = mark{header: header}
	}
	var buf [frameHead]byte
	for at := m.frames; ; at++ {
		if _, err := db.log.ReadAt(buf[:], frameOffset(at)); err != nil {
			return ignoreEnd(err)
		}
		f := parseFrame(buf[:], header)
		if !f.ours {
			return nil
		}
		if f.size > 0 {
			m.frames = at + 1
			m.sum = f.sum
		}
	}
}

// openLog opens the log, where there is one yet.
func (db *DB) openLog() (err error) {
	if db.log == nil {
		db.log, err = os.Open(logPath(db.path))
	}
	if errors.Is(err, os.ErrNotExist) {
		db.log = nil
		return nil
	}
	return err
}

// fold moves the log's pages into the database's file, and then puts their checksums into the guard. SQLite begins its log anew
// with the next commit at the earliest, so a crash between the two finds the pages in the log.
func (db *DB) fold() error {
	if db.guard.frames == db.guard.folded {
		return nil
	}
	var busy, frames, moved int64
	err := db.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &moved)
	if err != nil {
		return fmt.Errorf("move the log of %s into it: %w", db.path, err)
	}
	if err := db.take(uint32(max(moved, 0))); err != nil {
		return err
	}
	return db.writeGuard()
}

// take puts the checksums of the log's pages up to a frame into the guard.
func (db *DB) take(moved uint32) error {
	g := db.guard
	if moved <= g.folded {
		return nil
	}
	buf := make([]byte, frameSize)
	in := io.NewSectionReader(db.log, frameOffset(g.folded), int64(moved-g.folded)*frameSize)
	var size uint32
	for range moved - g.folded {
		if _, err := io.ReadFull(in, buf); err != nil {
			return fmt.Errorf("read the log of %s: %w", db.path, err)
		}
		g.set(binary.BigEndian.Uint32(buf), pageSum(buf[frameHead:]))
		if n := binary.BigEndian.Uint32(buf[4:]); n > 0 {
			size = n
		}
	}
	if size > 0 && uint32(len(g.sums)) > size {
		g.sums = g.sums[:size]
	}
	g.folded = moved
	return nil
}

// writeGuard replaces the guard.
func (db *DB) writeGuard() error {
	path := guardPath(db.path)
	if err := file.Replace(path, db.guard.encode(), true); err != nil {
		return err
	}
	if err := file.SyncDir(filepath.Dir(path)); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if db.beside != nil {
		err = db.beside.Close()
	}
	db.beside = f
	return err
}
