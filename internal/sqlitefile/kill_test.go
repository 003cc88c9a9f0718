package sqlitefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestKilledInACommit stops a commit after each write that SQLite makes for it, as a SIGKILL does: after the header of a log that starts
// again, after a frame's header, and after its page. The database opens with what was acknowledged, also after it was closed, and after it
// was killed again.
func TestKilledInACommit(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(t *testing.T, db *DB)
		starts bool // the log, with the next commit
	}{
		{"all in the log", func(*testing.T, *DB) {}, false},
		{"half in the log", func(t *testing.T, db *DB) { must(t, db.fold()); must(t, insert(db, 20, 1)) }, false},
		{"nothing in the log", func(t *testing.T, db *DB) { must(t, db.fold()) }, true},
	} {
		path := filepath.Join(t.TempDir(), "test.db")
		db := openExclusive(t, path)
		must(t, insert(db, 0, 20))
		c.before(t, db)
		rows := len(rowsOf(t, db))
		before := t.TempDir()
		copyFiles(t, filepath.Dir(path), before)
		old, err := os.ReadFile(logPath(path))
		must(t, err)
		must(t, insert(db, rows, 10))
		log, err := os.ReadFile(logPath(path))
		must(t, err)
		must(t, db.Close())
		from := len(old)
		if c.starts {
			from = headerSize
		}
		to := from + frameSize // of a shorter log, at least the first frame
		if !c.starts {
			to = len(log)
		}
		for at := from; at < to; at += frameSize {
			for _, cut := range []int{at, at + frameHead, at + frameSize - 1} {
				torn := append([]byte(nil), log[:cut]...)
				if cut < len(old) {
					torn = append(torn, old[cut:]...)
				}
				t.Run(fmt.Sprintf("%s/%d", c.name, cut-from), func(t *testing.T) { openTorn(t, before, torn, rows) })
			}
		}
	}
}

// openTorn opens a database, of which the log has a torn commit at its end, again and again.
func openTorn(t *testing.T, from string, log []byte, rows int) {
	dir := t.TempDir()
	copyFiles(t, from, dir)
	path := filepath.Join(dir, "test.db")
	must(t, os.WriteFile(logPath(path), log, 0o600))
	db := openExclusive(t, path)
	killed := t.TempDir()
	copyFiles(t, dir, killed)
	must(t, db.Close())
	for _, dir := range []string{dir, killed} {
		db := openExclusive(t, filepath.Join(dir, "test.db"))
		if n := len(rowsOf(t, db)); n != rows {
			t.Errorf("it has %d rows, want %d", n, rows)
		}
		must(t, insert(db, rows, 1))
		again := t.TempDir()
		copyFiles(t, dir, again)
		must(t, db.Close())
		db = openExclusive(t, filepath.Join(again, "test.db"))
		if n := len(rowsOf(t, db)); n != rows+1 {
			t.Errorf("it has %d rows, want %d", n, rows+1)
		}
		must(t, db.Close())
	}
}

func openExclusive(t *testing.T, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, Options{Exclusive: true, Schema: `CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b BLOB)`})
	must(t, err)
	return db
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
