// Package sqlitefile opens SQLite databases and finds damage in them. SQLite keeps no checksums in its file, and silently ignores its log
// from the first bad frame on. So a file beside the database, NAME-guard, keeps a checksum of each page, and a mark of how far the log
// reached at the last commit.
//
// In SQLite's WAL mode the database's file only changes in checkpoints. This package makes them, and replaces the guard after each one,
// while the log still has every page that may differ. The mark is overwritten after each commit's sync, without a sync of its own.
//
// Every byte that is changed, missing or surplus is found: in the database's file, in the guard, and in the log up to the last
// acknowledged commit. After a power failure the mark may be out of date. Damage behind the mark is then still found if a later commit
// follows it. Only the very last commit can't be told from a torn one.
//
// A write that fails never ends a database. A failed commit is cut off from the log again, and refused (write.go). After a failed sync of the
// database's file, nothing is written until all that checkpoints have moved was written again and synced. The log has it until then.
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
	"sync/atomic"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/pintle/pintle/internal/file"
)

// Options describe a database.
type Options struct {
	// Schema creates the tables and the initial rows if they don't exist. A table WITHOUT ROWID must begin with its primary key's
	// columns.
	Schema string
	// Exclusive keeps other readers out, and saves the file that readers share.
	Exclusive bool
	CacheKiB  int
}

// DB is an open database. One goroutine at a time may write to it.
type DB struct {
	path    string
	options Options
	lock    *os.File
	writes  *sql.DB
	conn    *sql.Conn
	log     *os.File // of SQLite, to see how far it reaches
	pages   *os.File // the database's file. SQLite's locks on it end with the first close of it, so it stays open as long as conn
	beside  *os.File // the guard's file
	guard   *guard
	sync    func(*os.File) error // (*os.File).Sync, except in tests

	// What failed, and must be done before the next transaction.
	torn      bool   // a commit failed; its frames may be behind the log's end
	unmarked  bool   // the mark isn't where the last commit ended
	unguarded bool   // the guard's file is older than the database's
	moved     uint32 // how many frames of the log are in the database's file, in that case
	unsynced  bool   // a checkpoint or its sync failed, so the disk may lack pages that were moved

	foldAt uint32       // how many pages in the log only make the next attempt to move them
	held   atomic.Int32 // backups that need the files; the log grows meanwhile

	moves moves
}

// foldAfter is how many pages may be in the log only before they are moved into the database's file.
const foldAfter = 4096

func logPath(path string) string   { return path + "-wal" }
func guardPath(path string) string { return path + "-guard" }

// Open opens a database, creating it if there is none. The error is a *file.Damage if the files don't hold what was written, and
// file.ErrLocked if another process has the database open.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	lock, err := file.Lock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("open %s (is another pintle using it?): %w", path, err)
	}
	db := &DB{path: path, options: o, lock: lock, foldAt: foldAfter, sync: (*os.File).Sync}
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
	if db.pages, err = os.OpenFile(db.path, os.O_RDWR, 0); err != nil {
		return err
	}
	return db.recover(ctx, found.log)
}

// recover moves the log's pages into the database's file, so that SQLite begins a new log, and creates the tables.
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

// address is what the driver opens. Only fold makes checkpoints.
func (db *DB) address() string {
	a := "file:" + (&url.URL{Path: db.path}).EscapedPath() +
		"?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(0)" +
		fmt.Sprintf("&_pragma=page_size(%d)&_pragma=cache_size(-%d)", pageSize, db.options.CacheKiB)
	if db.options.Exclusive {
		a += "&_pragma=locking_mode(exclusive)"
	}
	return a
}

// Readers opens up to n connections that only read. Close them before the database.
func (db *DB) Readers(n int) (*sql.DB, error) {
	reads, err := sql.Open("sqlite", db.address()+"&_pragma=query_only(true)")
	if err != nil {
		return nil, err
	}
	reads.SetMaxOpenConns(n)
	reads.SetMaxIdleConns(n)
	return reads, nil
}

// Conn returns the one connection that writes. Call Ready before a statement that begins a transaction on it, and Committed or Failed after
// one that commits.
func (db *DB) Conn() *sql.Conn { return db.conn }

// Begin begins a transaction. End it with Commit, or with its own Rollback.
func (db *DB) Begin() (*sql.Tx, error) {
	if err := db.Ready(); err != nil {
		return nil, err
	}
	return db.conn.BeginTx(context.Background(), nil)
}

// Commit makes a transaction durable. Errors are as for Failed.
func (db *DB) Commit(tx *sql.Tx) error {
	if err := tx.Commit(); err != nil {
		return db.Failed(err)
	}
	db.Committed()
	return nil
}

// Close moves everything into the database's file and closes it. Close its readers first.
func (db *DB) Close() error {
	if err := db.fold(); err != nil {
		// On closing, SQLite would still move its log into the file, and the guard would be wrong. So the database stays open until
		// the process ends, as it does when a store can't be written.
		return errors.Join(err, db.lock.Close())
	}
	return db.release()
}

// release closes everything that is open.
func (db *DB) release() (err error) {
	if db.conn != nil {
		err = db.conn.Close()
	}
	if db.writes != nil {
		err = errors.Join(err, db.writes.Close())
	}
	for _, f := range []*os.File{db.log, db.pages, db.beside, db.lock} {
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
	if _, err := db.beside.WriteAt(m.encode(), 0); err != nil {
		return err
	}
	db.guard.mark = m
	return nil
}

// look reads the headers of the frames behind a mark. After the last commit, frames may be left over from an earlier log, with other
// salts, or from a transaction that was rolled back and has no end.
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

// openLog opens the log if there is one yet.
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

// fold moves the log's pages into the database's file, and then their checksums into the guard. SQLite doesn't restart its log before the
// next commit, so after a crash between the two steps the pages are still in the log.
func (db *DB) fold() error {
	if db.guard.frames == db.guard.folded && !db.unguarded {
		return nil
	}
	return db.moves.note(db.path, db.move())
}

func (db *DB) move() error {
	var busy, frames, moved int64
	err := db.conn.QueryRowContext(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`).Scan(&busy, &frames, &moved)
	if err != nil {
		db.unsynced = true
		return fmt.Errorf("move the log of %s into it: %w", db.path, err)
	}
	db.moved, db.unguarded = uint32(max(moved, 0)), true
	return db.guardMoved()
}

// guardMoved brings the guard up to date after a checkpoint.
func (db *DB) guardMoved() error {
	if err := db.syncMoved(); err != nil {
		return err
	}
	if err := db.take(db.moved); err != nil {
		return err
	}
	if err := db.writeGuard(); err != nil {
		return err
	}
	db.unguarded = false
	return nil
}

// syncMoved makes the pages durable that checkpoints have moved. SQLite syncs its file only once all of the log is in it, and never moves a
// page twice, though the kernel may have dropped it after a failed sync. So after one, all pages are written again first.
func (db *DB) syncMoved() error {
	if db.unsynced {
		if err := db.moveAgain(); err != nil {
			return err
		}
	}
	db.unsynced = true
	if err := db.sync(db.pages); err != nil {
		return fmt.Errorf("sync %s: %w", db.path, err)
	}
	db.unsynced = false
	return nil
}

// moveAgain writes the pages that were moved once more, as the log has them. Readers may read the same pages meanwhile, so each is written
// in its last version only.
func (db *DB) moveAgain() error {
	last := map[uint32]uint32{} // pages' frames
	var head [frameHead]byte
	var size uint32
	for i := range db.moved {
		if _, err := db.log.ReadAt(head[:], frameOffset(i)); err != nil {
			return fmt.Errorf("read the log of %s: %w", db.path, err)
		}
		f := parseFrame(head[:], db.guard.header)
		last[f.page] = i
		if f.size > 0 {
			size = f.size
		}
	}
	var b [pageSize]byte
	for page, i := range last {
		if page > size { // it was cut off
			continue
		}
		if _, err := db.log.ReadAt(b[:], frameOffset(i)+frameHead); err != nil {
			return fmt.Errorf("read the log of %s: %w", db.path, err)
		}
		if _, err := db.pages.WriteAt(b[:], int64(page-1)*pageSize); err != nil {
			return err
		}
	}
	return nil
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
