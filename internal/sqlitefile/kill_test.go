package sqlitefile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestKilledInACommit cuts the log off after each write that SQLite makes for a commit, as a SIGKILL does: after a frame's header, and
// after its page. The database opens with what was acknowledged, also after it was closed, and after it was killed again.
func TestKilledInACommit(t *testing.T) {
	for _, folded := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "test.db")
		db := openExclusive(t, path)
		must(t, insert(db, 0, 20))
		if folded {
			must(t, db.fold())
		}
		must(t, insert(db, 20, 1))
		before := t.TempDir()
		copyFiles(t, filepath.Dir(path), before)
		start := sizeOf(t, logPath(path))
		must(t, insert(db, 21, 20))
		end := sizeOf(t, logPath(path))
		if end-start < 3*frameSize {
			t.Fatalf("the commit is %d bytes long: the test shows nothing", end-start)
		}
		log, err := os.ReadFile(logPath(path))
		must(t, err)
		for at := start; at < end; at += frameSize {
			for _, cut := range []int64{at + frameHead, at + frameSize - 1} {
				t.Run(fmt.Sprintf("folded=%v/%d", folded, cut-start), func(t *testing.T) { openTorn(t, before, log[:cut]) })
			}
		}
		must(t, db.Close())
	}
}

// openTorn opens a database, of which the log has a torn commit at its end, again and again.
func openTorn(t *testing.T, from string, log []byte) {
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
		if n := len(rowsOf(t, db)); n != 21 {
			t.Errorf("it has %d rows, want 21", n)
		}
		must(t, insert(db, 21, 1))
		again := t.TempDir()
		copyFiles(t, dir, again)
		must(t, db.Close())
		db = openExclusive(t, filepath.Join(again, "test.db"))
		if n := len(rowsOf(t, db)); n != 22 {
			t.Errorf("it has %d rows, want 22", n)
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

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Size()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
