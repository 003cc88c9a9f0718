// Package sqlite is a store's journal in one SQLite file. SQLite's own write-ahead log is the real journal: a commit is one append
// and one fsync to it. SQLite folds it into the rows now and then, so that opening doesn't have to replay much. The file is locked
// while it is open, because it belongs to one control plane.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pintle/pintle/internal/backup"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/sqlitefile"
	"github.com/pintle/pintle/internal/store"
)

// Journal implements store.Journal.
type Journal struct {
	db   *sqlitefile.DB
	conn *sql.Conn // the only one, so that statements stay prepared

	mu         sync.Mutex // one use of the connection at a time
	statements statements

	remembered  int64 // revisions for which deletions are remembered
	forgetEvery int64 // revisions between two sweeps of older deletions
}

// statements are what each commit needs, prepared once.
type statements struct {
	begin, commit, rollback *sql.Stmt
	advance                 *sql.Stmt
	putOne, putMany         *sql.Stmt
}

const (
	// format is the version of the file's layout. A file of another version is refused, not guessed at.
	format = 2
	// many is the number of rows of putMany.
	many = 16
	// A row's rowid is the revision of its last change, followed by the change's place in that revision. So rows lie in the order
	// of their changes, and a follower only reads the end of the table.
	placeBits  = 20
	maxChanges = 1 << placeBits
)

// Open opens the journal in the directory, and creates it if there is none.
func Open(ctx context.Context, dir string) (*Journal, error) {
	path := filepath.Join(dir, "state.db")
	j, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open %s (is another pintle using it?): %w", path, err)
	}
	return j, nil
}

// database is the file. A row that was deleted stays for a while, without data, for followers.
var database = sqlitefile.Options{Exclusive: true, CacheKiB: 32768, Schema: fmt.Sprintf(`
	CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
	INSERT OR IGNORE INTO meta VALUES ('format', %d), ('revision', 0), ('forgotten', 0);
	CREATE TABLE IF NOT EXISTS rows (seq INTEGER PRIMARY KEY, tbl TEXT NOT NULL, key TEXT NOT NULL, data BLOB, UNIQUE (tbl, key));
	CREATE INDEX IF NOT EXISTS deleted ON rows (seq) WHERE data IS NULL;`, format)}

func open(ctx context.Context, path string) (*Journal, error) {
	db, err := sqlitefile.Open(ctx, path, database)
	if err != nil {
		return nil, err
	}
	j := &Journal{db: db, conn: db.Conn(), remembered: 1 << 16, forgetEvery: 1 << 10}
	if err := j.init(ctx); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Failing returns why commits can't be moved into the database's file, or nil if they can.
func (j *Journal) Failing() error { return j.db.Failing() }

// Check looks for damage of a journal that nobody has open, and repairs what it can if repair is set.
func Check(ctx context.Context, dir string, repair bool) ([]file.Damage, error) {
	return sqlitefile.Check(ctx, filepath.Join(dir, "state.db"), database, repair)
}

// init checks the layout, and prepares the statements.
func (j *Journal) init(ctx context.Context) error {
	have, err := j.meta(ctx, "format")
	if err != nil {
		return err
	}
	if have != format {
		return fmt.Errorf("it has layout %d, this version of pintle reads layout %d", have, format)
	}
	return j.prepare(ctx)
}

func (j *Journal) prepare(ctx context.Context) (err error) {
	const put = `INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)`
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&j.statements.begin, `BEGIN IMMEDIATE`},
		{&j.statements.commit, `COMMIT`},
		{&j.statements.rollback, `ROLLBACK`},
		{&j.statements.advance, `UPDATE meta SET value = ?1 WHERE name = 'revision' AND value = ?1 - 1`},
		{&j.statements.putOne, put},
		{&j.statements.putMany, put + strings.Repeat(`, (?, ?, ?, ?)`, many-1)},
	} {
		if *s.to, err = j.conn.PrepareContext(ctx, s.text); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) meta(ctx context.Context, name string) (value int64, err error) {
	err = j.conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = ?`, name).Scan(&value)
	return value, err
}

// Since implements store.Journal. Nothing is written while it reads.
func (j *Journal) Since(ctx context.Context, revision int64, row func(store.Change) error) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last, err := j.meta(ctx, "revision")
	if err != nil {
		return 0, err
	}
	forgotten, err := j.meta(ctx, "forgotten")
	if err != nil {
		return 0, err
	}
	if revision > last || revision > 0 && revision < forgotten {
		return 0, store.ErrCompacted
	}
	rows, err := j.conn.QueryContext(ctx, `SELECT tbl, key, data FROM rows WHERE seq >= ? ORDER BY seq`, (revision+1)<<placeBits)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var c store.Change
		if err := rows.Scan(&c.Table, &c.Key, &c.Data); err != nil {
			return 0, err
		}
		if err := row(c); err != nil {
			return 0, err
		}
	}
	return last, rows.Err()
}

// Write implements store.Journal.
func (j *Journal) Write(revision int64, changes []store.Change) error {
	if len(changes) > maxChanges {
		return fmt.Errorf("%d rows are changed at once, more than %d", len(changes), maxChanges)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.db.Ready(); err != nil {
		return err
	}
	if _, err := j.statements.begin.Exec(); err != nil {
		return sqlitefile.Mark(err)
	}
	if err := j.write(revision, changes); err != nil {
		j.statements.rollback.Exec() //nolint:errcheck // SQLite may have rolled back by itself
		return sqlitefile.Mark(err)
	}
	if _, err := j.statements.commit.Exec(); err != nil {
		return j.db.Failed(err)
	}
	j.db.Committed()
	return nil
}

func (j *Journal) write(revision int64, changes []store.Change) error {
	advanced, err := j.statements.advance.Exec(revision)
	if err != nil {
		return err
	}
	if n, err := advanced.RowsAffected(); err != nil || n != 1 {
		return errors.Join(store.ErrStale, err)
	}
	seq := revision << placeBits
	args := make([]any, 0, 4*many)
	for len(changes) > 0 {
		put, n := j.statements.putOne, 1
		if len(changes) >= many {
			put, n = j.statements.putMany, many
		}
		args = args[:0]
		for i := range changes[:n] {
			c := &changes[i]
			var data any // NULL
			if c.Data != nil {
				data = c.Data
			}
			args = append(args, seq, c.Table, c.Key, data)
			seq++
		}
		if _, err := put.Exec(args...); err != nil {
			return err
		}
		changes = changes[n:]
	}
	if revision%j.forgetEvery == 0 && revision > j.remembered {
		return j.forget(revision - j.remembered)
	}
	return nil
}

// forget forgets the deletions up to a revision.
func (j *Journal) forget(revision int64) error {
	const forget = `DELETE FROM rows WHERE data IS NULL AND seq < ?`
	if _, err := j.conn.ExecContext(context.Background(), forget, (revision+1)<<placeBits); err != nil {
		return err
	}
	_, err := j.conn.ExecContext(context.Background(), `UPDATE meta SET value = ? WHERE name = 'forgotten'`, revision)
	return err
}

// Hold holds the journal for a backup: nothing is written until it's resumed.
func (j *Journal) Hold() (backup.Held, error) {
	j.mu.Lock()
	held, err := j.db.Hold()
	if err != nil {
		j.mu.Unlock()
		return held, err
	}
	held.Resume = j.mu.Unlock
	return held, nil
}

// Close implements store.Journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.statements
	var err error
	for _, prepared := range []*sql.Stmt{s.begin, s.commit, s.rollback, s.advance, s.putOne, s.putMany} {
		if prepared != nil {
			err = errors.Join(err, prepared.Close())
		}
	}
	return errors.Join(err, j.db.Close())
}
