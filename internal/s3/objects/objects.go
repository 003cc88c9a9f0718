// Package objects keeps objects in buckets, and older versions of them where a bucket keeps those. Their bytes are in files with names of its
// own; everything else, and the bytes of small objects, is in one SQLite file beside them. What a call has acknowledged is on disk. It knows
// nothing of AWS: a bucket's settings (but Versioning) and an object's attributes are the caller's, and so are the messages that a change
// owes, which are stored with the change until they are settled. Package s3 and the delivery loop use it.
package objects

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/groupcommit"
	"github.com/pintle/pintle/internal/sqlitefile"
)

// The errors that a caller decides on.
var (
	ErrNoBucket  = errors.New("there is no such bucket")
	ErrExists    = errors.New("the bucket exists")
	ErrNotEmpty  = errors.New("the bucket is not empty")
	ErrNoObject  = errors.New("there is no such object")
	ErrNoVersion = errors.New("the object has no such version")
	ErrNoUpload  = errors.New("there is no such upload")
)

// Bucket is a bucket and its settings.
type Bucket struct {
	Name     string
	Created  time.Time
	Settings map[string]json.RawMessage
}

// Object is a version of an object, without its bytes.
type Object struct {
	Bucket, Key string
	ID          string // of this content; another put of the key makes another
	Version     string // Null, or what names it among the key's versions
	Marker      bool   // it has no content, and says that the key was deleted
	Latest      bool   // whether it is the newest version of its key
	Size        int64
	ETag        string
	Modified    time.Time
	Sequence    int64 // grows with each change of any key
	Parts       int   // number of parts that it was made of; 0 for a single put
	Attributes  json.RawMessage
}

// Store keeps all buckets. Its methods may be called from any goroutine.
type Store struct {
	// Flushed, unless nil, is told how long each group of changes took to get onto the disk. It's set before anything is changed.
	Flushed func(took time.Duration)

	dir    string
	now    func() time.Time
	db     *sqlitefile.DB
	reads  *readers
	flush  func(*sql.Tx) error // commits; tests have it fail
	writer *groupcommit.Writer[func(*sql.Tx) error]
	owing  chan struct{} // signals that something new is owed
	owes   bool          // the current group of changes owes something; only the writer uses it

	turn sync.Mutex // held while a group of changes is committed, and while the store is held for a backup

	mu     sync.Mutex
	pinned map[string]int // number of readers, by file name
	doomed map[string]bool
	held   int // backups that need all files

	dirsMu sync.Mutex
	dirs   map[string]bool // those of files that are durable
}

// format is the version of the index's layout.
const format = 3

// Objects has the latest version of each key, versions the older ones, which no key has without a latest one. A rebuilt index can tell their
// rows apart, because the third columns differ.

// index is the database beside the files. Its cache limits the memory.
var index = sqlitefile.Options{CacheKiB: 16384, Schema: `
	CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
	INSERT OR IGNORE INTO meta VALUES ('format', 3), ('sequence', 0);
	CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, created INTEGER NOT NULL, settings BLOB NOT NULL) WITHOUT ROWID;
	CREATE TABLE IF NOT EXISTS objects (bucket TEXT, key BLOB, id TEXT NOT NULL, version TEXT NOT NULL, marker INTEGER NOT NULL,
		size INTEGER NOT NULL, etag TEXT NOT NULL, modified INTEGER NOT NULL, sequence INTEGER NOT NULL, parts INTEGER NOT NULL,
		attributes BLOB, PRIMARY KEY (bucket, key)) WITHOUT ROWID;
	CREATE TABLE IF NOT EXISTS versions (bucket TEXT, key BLOB, sequence INTEGER, id TEXT NOT NULL, version TEXT NOT NULL,
		marker INTEGER NOT NULL, size INTEGER NOT NULL, etag TEXT NOT NULL, modified INTEGER NOT NULL, parts INTEGER NOT NULL,
		attributes BLOB, PRIMARY KEY (bucket, key, sequence DESC)) WITHOUT ROWID;
	CREATE INDEX IF NOT EXISTS null_versions ON versions (bucket, key) WHERE version = 'null';
	CREATE TABLE IF NOT EXISTS uploads (bucket TEXT, key BLOB, id TEXT, started INTEGER NOT NULL, attributes BLOB,
		PRIMARY KEY (bucket, key, id)) WITHOUT ROWID;
	CREATE TABLE IF NOT EXISTS files (owner TEXT, number INTEGER, name TEXT NOT NULL, size INTEGER NOT NULL, etag TEXT NOT NULL,
		modified INTEGER NOT NULL, checksum TEXT NOT NULL, sums BLOB, data BLOB, PRIMARY KEY (owner, number));
	CREATE INDEX IF NOT EXISTS files_by_name ON files (name) WHERE name != '';
	CREATE TABLE IF NOT EXISTS owed (id INTEGER PRIMARY KEY AUTOINCREMENT, destination TEXT NOT NULL, body BLOB NOT NULL,
		since INTEGER NOT NULL, due INTEGER NOT NULL, tries INTEGER NOT NULL);
	CREATE INDEX IF NOT EXISTS owed_by_due ON owed (due, id);`}

// maxReaders is the most concurrent reads of the index.
const maxReaders = 4

// Open opens the store in a directory, creating it if there is none. Nobody else may have it open.
func Open(dir string, now func() time.Time) (*Store, error) {
	s := &Store{
		dir: dir, now: now, owing: make(chan struct{}, 1),
		pinned: map[string]int{}, doomed: map[string]bool{}, dirs: map[string]bool{},
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.db, err = sqlitefile.Open(context.Background(), s.index(), index); err != nil {
		return nil, err
	}
	conns, err := s.db.Readers(maxReaders)
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	s.reads = &readers{DB: conns, prepared: map[string]*sql.Stmt{}}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), s.reads.Close(), s.db.Close())
	}
	s.flush = s.db.Commit
	s.writer = groupcommit.Start(s.commit)
	return s, nil
}

// Failing returns why the index's commits can't be moved into its file, or nil if they can.
func (s *Store) Failing() error { return s.db.Failing() }

func (s *Store) checkFormat() error {
	var have int
	if err := s.reads.QueryRow(`SELECT value FROM meta WHERE name = 'format'`).Scan(&have); err != nil {
		return err
	}
	if have != format {
		return fmt.Errorf("it has layout %d, this version of pintle reads layout %d", have, format)
	}
	return nil
}

// Waiting returns how many changes wait to be made.
func (s *Store) Waiting() int { return s.writer.Waiting() }

// Close closes the store after the changes already submitted.
func (s *Store) Close() error {
	s.writer.Close()
	return errors.Join(s.reads.Close(), s.db.Close())
}

// update runs fn in a transaction, and returns once its changes are durable. Changes run one at a time. Those that wait share one flush;
// a failing one is undone alone.
func (s *Store) update(ctx context.Context, fn func(*sql.Tx) error) error {
	return sqlitefile.Mark(s.writer.Update(ctx, fn))
}

// commit runs a group of changes, flushes once, and answers them all. A later group may succeed where this one fails.
func (s *Store) commit(group iter.Seq[*groupcommit.Change[func(*sql.Tx) error]]) bool {
	s.turn.Lock()
	defer s.turn.Unlock()
	tx, err := s.db.Begin()
	var taken []*groupcommit.Change[func(*sql.Tx) error]
	for c := range group {
		failed := err
		if failed == nil {
			failed = within(tx, c.Do)
		}
		if errors.Is(failed, errBroken) {
			err = failed
		}
		if failed != nil {
			c.Answer(failed)
			continue
		}
		taken = append(taken, c)
	}
	switch {
	case tx == nil:
	case err != nil:
		tx.Rollback() //nolint:errcheck // SQLite may have rolled back by itself
	default:
		began := time.Now()
		err = s.flush(tx)
		if s.Flushed != nil {
			s.Flushed(time.Since(began))
		}
	}
	if err == nil && s.owes {
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

// errBroken marks a change's error that ended the whole transaction.
var errBroken = errors.New("object store: the transaction is broken")

// within runs fn in a savepoint, so that a failure undoes only fn.
func within(tx *sql.Tx, fn func(*sql.Tx) error) (err error) {
	if _, err := tx.Exec(`SAVEPOINT one`); err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a change of the object store: %v", p)
		}
		if err != nil {
			if _, undo := tx.Exec(`ROLLBACK TO one`); undo != nil {
				err = errors.Join(errBroken, err, undo)
				return
			}
		}
		if _, release := tx.Exec(`RELEASE one`); release != nil {
			err = errors.Join(errBroken, err, release)
		}
	}()
	return fn(tx)
}

// querier is a transaction, or the connections for reading.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// index returns the path of the file that holds everything but the bytes of large objects.
func (s *Store) index() string { return filepath.Join(s.dir, "index.db") }

func unix(n int64) time.Time { return time.Unix(0, n).UTC() }
