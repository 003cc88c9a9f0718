// Package objects keeps objects in buckets: their bytes in files with names of its own, everything else, and
// the bytes of small ones, in one SQLite file beside them. What a call has acknowledged is on the disk. It knows nothing of AWS: what a
// bucket is set to and what an object is described by are the caller's, and so are the messages that a change
// may owe somebody, which are kept with the change until they are settled. s3 and s3/notifications
// use it.
package objects

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/groupcommit"
)

// The errors that a caller decides on.
var (
	ErrNoBucket = errors.New("there is no such bucket")
	ErrExists   = errors.New("the bucket exists")
	ErrNotEmpty = errors.New("the bucket is not empty")
	ErrNoObject = errors.New("there is no such object")
	ErrNoUpload = errors.New("there is no such upload")
)

// Bucket is a bucket and what it is set to.
type Bucket struct {
	Name     string
	Created  time.Time
	Settings map[string]json.RawMessage
}

// Object is an object, without its bytes.
type Object struct {
	Bucket, Key string
	ID          string // of this content under this key; another put makes another
	Size        int64
	ETag        string
	Modified    time.Time
	Sequence    int64 // grows with each change of any key
	Parts       int   // that it was put together from; 0 where it came in one
	Attributes  json.RawMessage
}

// Store is the store. Its methods may be called from any goroutine.
type Store struct {
	dir    string
	now    func() time.Time
	reads  *sql.DB
	writes *sql.DB
	writer *groupcommit.Writer[func(*sql.Tx) error]
	owing  chan struct{} // has a value when something new is owed
	owes   bool          // whether the group of changes that is being made owes something; the writer's alone

	mu     sync.Mutex
	pinned map[string]int // how many read a file
	doomed map[string]bool
}

// format is the version of the index's layout.
const format = 1

// pragmas let readers go on while the writer commits, and make a commit durable. The cache bounds the memory.
const pragmas = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(4096)"

// maxReaders is how many reads of the index go on at a time.
const maxReaders = 4

// Open opens the store in the directory, and makes it where there is none. Nobody else may have it open.
func Open(dir string, now func() time.Time) (*Store, error) {
	s := &Store{
		dir: dir, now: now, owing: make(chan struct{}, 1),
		pinned: map[string]int{}, doomed: map[string]bool{},
	}
	if err := s.makeDirs(); err != nil {
		return nil, err
	}
	path := "file:" + (&url.URL{Path: filepath.Join(dir, "index.db")}).EscapedPath() + pragmas
	var err error
	if s.writes, err = sql.Open("sqlite", path); err != nil {
		return nil, err
	}
	s.writes.SetMaxOpenConns(1)
	if err := s.init(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), s.writes.Close())
	}
	if s.reads, err = sql.Open("sqlite", path+"&_pragma=query_only(true)"); err != nil {
		return nil, errors.Join(err, s.writes.Close())
	}
	s.reads.SetMaxOpenConns(maxReaders)
	s.reads.SetMaxIdleConns(maxReaders)
	s.writer = groupcommit.Start(s.commit)
	return s, nil
}

func (s *Store) init() error {
	_, err := s.writes.Exec(`
		CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
		INSERT OR IGNORE INTO meta VALUES ('format', 1), ('sequence', 0);
		CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, created INTEGER NOT NULL, settings BLOB NOT NULL) WITHOUT ROWID;
		CREATE TABLE IF NOT EXISTS objects (bucket TEXT, key BLOB, id TEXT NOT NULL, size INTEGER NOT NULL, etag TEXT NOT NULL,
			modified INTEGER NOT NULL, sequence INTEGER NOT NULL, parts INTEGER NOT NULL, attributes BLOB, PRIMARY KEY (bucket, key)) WITHOUT ROWID;
		CREATE TABLE IF NOT EXISTS uploads (bucket TEXT, key BLOB, id TEXT, started INTEGER NOT NULL, attributes BLOB,
			PRIMARY KEY (bucket, key, id)) WITHOUT ROWID;
		CREATE TABLE IF NOT EXISTS files (owner TEXT, number INTEGER, name TEXT NOT NULL, size INTEGER NOT NULL, etag TEXT NOT NULL,
			modified INTEGER NOT NULL, checksum TEXT NOT NULL, data BLOB, PRIMARY KEY (owner, number));
		CREATE INDEX IF NOT EXISTS files_by_name ON files (name) WHERE name != '';
		CREATE TABLE IF NOT EXISTS owed (id INTEGER PRIMARY KEY AUTOINCREMENT, destination TEXT NOT NULL, body BLOB NOT NULL,
			since INTEGER NOT NULL, due INTEGER NOT NULL, tries INTEGER NOT NULL);
		CREATE INDEX IF NOT EXISTS owed_by_due ON owed (due, id);`)
	if err != nil {
		return err
	}
	var have int
	if err := s.writes.QueryRow(`SELECT value FROM meta WHERE name = 'format'`).Scan(&have); err != nil {
		return err
	}
	if have != format {
		return fmt.Errorf("it has layout %d, this version of pintle reads layout %d", have, format)
	}
	return nil
}

// Close ends the store after the changes that it has taken.
func (s *Store) Close() error {
	s.writer.Close()
	return errors.Join(s.reads.Close(), s.writes.Close())
}

// update runs fn in a transaction, and returns once what it changed is durable. Changes run one at a time, and
// those that wait share one flush; one that fails is undone alone.
func (s *Store) update(ctx context.Context, fn func(*sql.Tx) error) error {
	return s.writer.Update(ctx, fn)
}

// commit runs a group of changes, flushes once, and answers them all.
func (s *Store) commit(group iter.Seq[*groupcommit.Change[func(*sql.Tx) error]]) bool {
	tx, err := s.writes.Begin()
	var taken []*groupcommit.Change[func(*sql.Tx) error]
	for c := range group {
		failed := err
		if failed == nil {
			failed = within(tx, c.Do)
		}
		if failed != nil {
			c.Answer(failed)
			continue
		}
		taken = append(taken, c)
	}
	if err != nil {
		return true // the next group may have more luck
	}
	if err = tx.Commit(); err != nil {
		err = errors.Join(errInDoubt, err, ignoreDone(tx.Rollback()))
	} else if s.owes {
		select {
		case s.owing <- struct{}{}:
		default: // there is a value already
		}
	}
	s.owes = false
	for _, c := range taken {
		c.Answer(err)
	}
	return true
}

// errInDoubt marks a commit that failed: the disk may have it or not.
var errInDoubt = errors.New("object store: the index could not be written")

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// within runs fn in a part of the transaction that is undone alone where it fails.
func within(tx *sql.Tx, fn func(*sql.Tx) error) (err error) {
	if _, err := tx.Exec(`SAVEPOINT one`); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a change of the object store: %v", p)
		}
		if err != nil {
			_, undo := tx.Exec(`ROLLBACK TO one`)
			err = errors.Join(err, undo)
		}
		if _, release := tx.Exec(`RELEASE one`); release != nil {
			err = errors.Join(err, release)
		}
	}()
	return fn(tx)
}

// querier is a transaction, or the readers.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func unix(n int64) time.Time { return time.Unix(0, n).UTC() }

// makeDirs makes the directories of the files, durably.
func (s *Store) makeDirs() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for i := range 256 {
		if err := os.MkdirAll(filepath.Join(s.dir, fmt.Sprintf("%02x", i)), 0o700); err != nil {
			return err
		}
	}
	return file.SyncDir(s.dir)
}
