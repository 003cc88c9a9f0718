package state

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// SQLite is a Journal in one file. SQLite's own write-ahead log is the journal proper: a commit is
// one append and one fsync to it, and SQLite folds it into the rows now and then, so that opening
// again costs no long replay. The file is locked while it is open: it has one control plane.
type SQLite struct {
	db *sql.DB
}

// format is the version of the file's layout. A file of another version is refused, not guessed at.
const format = 1

// OpenSQLite opens the journal in the directory, and makes it where there is none.
func OpenSQLite(ctx context.Context, dir string) (*SQLite, error) {
	path := filepath.Join(dir, "state.db")
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_pragma=busy_timeout(2000)&_pragma=locking_mode(exclusive)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=cache_size(-32768)&_pragma=wal_autocheckpoint(4096)")
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	j := &SQLite{db}
	if err := j.init(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s (is another pintle using it?): %w", path, err), db.Close())
	}
	return j, nil
}

// init makes the tables. Rows are long for a key's tree, which would keep each on pages of its own: so
// rows is a table with rowids, which new rows are appended to, and its tree of keys is small.
func (j *SQLite) init(ctx context.Context) error {
	_, err := j.db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
		CREATE TABLE IF NOT EXISTS rows (tbl TEXT NOT NULL, key TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tbl, key));
		INSERT OR IGNORE INTO meta VALUES ('format', 1), ('revision', 0);`)
	if err != nil {
		return err
	}
	have, err := j.meta(ctx, "format")
	if err != nil {
		return err
	}
	if have != format {
		return fmt.Errorf("it has layout %d, this version of pintle reads layout %d", have, format)
	}
	return nil
}

func (j *SQLite) meta(ctx context.Context, name string) (value int64, err error) {
	err = j.db.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = ?`, name).Scan(&value)
	return value, err
}

// Load is Journal's.
func (j *SQLite) Load(ctx context.Context, row func(table, key string, data []byte) error) (int64, error) {
	rows, err := j.db.QueryContext(ctx, `SELECT tbl, key, data FROM rows`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var table, key string
		var data []byte
		if err := rows.Scan(&table, &key, &data); err != nil {
			return 0, err
		}
		if err := row(table, key, data); err != nil {
			return 0, err
		}
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	return j.meta(ctx, "revision")
}

// Write is Journal's.
func (j *SQLite) Write(revision int64, changes []Change) error {
	tx, err := j.db.Begin()
	if err != nil {
		return err
	}
	if err := write(tx, revision, changes); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %w", ErrInDoubt, err)
	}
	return nil
}

func write(tx *sql.Tx, revision int64, changes []Change) error {
	put, err := tx.Prepare(`INSERT INTO rows VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data`)
	if err != nil {
		return err
	}
	defer put.Close()
	for _, c := range changes {
		if c.Data == nil {
			_, err = tx.Exec(`DELETE FROM rows WHERE tbl = ? AND key = ?`, c.Table, c.Key)
		} else {
			_, err = put.Exec(c.Table, c.Key, c.Data)
		}
		if err != nil {
			return err
		}
	}
	_, err = tx.Exec(`UPDATE meta SET value = ? WHERE name = 'revision'`, revision)
	return err
}

// Close is Journal's.
func (j *SQLite) Close() error { return j.db.Close() }
