package sqlitefile

import (
	"bytes"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file/filetest"
)

// insert inserts rows of a kilobyte each in one transaction.
func insert(db *DB, from, n int) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := tx.Exec(`INSERT INTO t VALUES (?, ?)`, from+i, make([]byte, 1000)); err != nil {
			tx.Rollback() //nolint:errcheck // SQLite may have rolled back by itself
			return Mark(err)
		}
	}
	return db.Commit(tx)
}

// rowsOf lists the rows by number.
func rowsOf(t *testing.T, db *DB) (out []int) {
	t.Helper()
	rows, err := db.Conn().QueryContext(t.Context(), `SELECT n FROM t ORDER BY n`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// TestFullDisk fills the disk again and again, wherever a commit or a checkpoint happens to be. What fails is undone, the rest is there, and
// neither this process nor the next one finds any damage.
func TestFullDisk(t *testing.T) {
	if !filetest.Alone(t) {
		return
	}
	for _, exclusive := range []bool{true, false} {
		rnd := rand.New(rand.NewPCG(1, 2))
		path := filepath.Join(t.TempDir(), "x.db")
		o := Options{Exclusive: exclusive, CacheKiB: 64, Schema: `CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b BLOB)`}
		var want []int
		failed := 0
		for run := range 8 {
			db, err := Open(t.Context(), path, o)
			if err != nil {
				t.Fatal(err)
			}
			for range 30 {
				if rnd.IntN(4) == 0 {
					db.foldAt = 1
				}
				free := filetest.Fill(t, uint64(rnd.IntN(1+int(db.guard.frames+30)*frameSize)))
				from, n := rnd.IntN(1<<40), 1+rnd.IntN(40)
				err := insert(db, from, n)
				if err == nil {
					for i := range n {
						want = append(want, from+i)
					}
				} else if failed++; !errors.Is(err, disk.ErrUnwritable) {
					t.Error(err)
				}
				slices.Sort(want)
				if got := rowsOf(t, db); !slices.Equal(got, want) {
					t.Fatalf("%d rows are seen, want %d", len(got), len(want))
				}
				free()
				if from++; rnd.IntN(2) == 0 {
					continue
				}
				if err := insert(db, 1<<40+from, 1); err != nil {
					t.Fatalf("with room again: %v", err)
				}
				want = append(want, 1<<40+from)
			}
			slices.Sort(want)
			left := filepath.Join(t.TempDir(), "x.db") // as a killed process would
			if err := os.CopyFS(filepath.Dir(left), os.DirFS(filepath.Dir(path))); err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if run%2 == 0 {
				path = left
			}
		}
		db, err := Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsOf(t, db); !slices.Equal(got, want) || failed == 0 || len(want) == 0 {
			t.Errorf("%d rows are there, want %d, after %d failures", len(got), len(want), failed)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoRoomToUndo: a failed commit that can't be undone at once is undone before the next one.
func TestNoRoomToUndo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := Open(t.Context(), path, Options{Schema: `CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b BLOB)`})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test is over
	if err := insert(db, 1, 1); err != nil {
		t.Fatal(err)
	}
	log := logPath(path)
	if err := errors.Join(os.Rename(log, log+".away"), os.Mkdir(log, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := db.Failed(errors.New("a commit")); !errors.Is(err, ErrInDoubt) || !errors.Is(err, disk.ErrUnwritable) {
		t.Errorf("it says %v", err)
	}
	if err := insert(db, 2, 1); !errors.Is(err, disk.ErrUnwritable) {
		t.Errorf("a transaction before it is undone: %v", err)
	}
	if err := errors.Join(os.Remove(log), os.Rename(log+".away", log)); err != nil {
		t.Fatal(err)
	}
	if err := insert(db, 2, 1); err != nil {
		t.Error(err)
	}
	if got := rowsOf(t, db); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("there are %v", got)
	}
}

// TestASyncOfMovedPagesFails: a reader keeps a checkpoint from moving all of the log, so SQLite doesn't sync what it moves. When the sync fails
// at last, and the kernel drops the pages, they are written again from the log, from which SQLite would move the rest only. Until that
// works, nothing is written, and all is read.
func TestASyncOfMovedPagesFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := Open(t.Context(), path, Options{Schema: `CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b BLOB)`})
	must(t, err)
	reads, err := db.Readers(1)
	must(t, err)
	must(t, insert(db, 0, 100))
	old, err := os.ReadFile(path)
	must(t, err)
	reader, err := reads.Begin()
	must(t, err)
	var n int
	must(t, reader.QueryRow(`SELECT count(*) FROM t`).Scan(&n))
	must(t, insert(db, 100, 100))

	synced := 0
	db.sync = func(f *os.File) error { synced++; return f.Sync() }
	must(t, db.fold())
	if db.guard.folded == 0 || db.guard.folded == db.guard.frames || synced == 0 {
		t.Fatalf("%d of %d frames were moved, with %d syncs of the file", db.guard.folded, db.guard.frames, synced)
	}
	must(t, reader.Rollback())
	db.sync = func(f *os.File) error {
		_, err := f.WriteAt(old, 0) // a sync that fails
		return errors.Join(err, f.Truncate(int64(len(old))), errors.New("input/output error"))
	}
	if db.fold() == nil {
		t.Fatal("the failed sync goes unseen")
	}
	if err := insert(db, 200, 1); !errors.Is(err, disk.ErrUnwritable) {
		t.Errorf("after a failed sync a write ends with %v", err)
	}
	db.sync = (*os.File).Sync
	must(t, insert(db, 200, 1))
	if got := rowsOf(t, db); len(got) != 201 {
		t.Errorf("%d rows are there, want 201", len(got))
	}
	must(t, reads.Close())
	must(t, db.Close())
	db, err = Open(t.Context(), path, Options{})
	must(t, err)
	if got := rowsOf(t, db); len(got) != 201 {
		t.Errorf("the next process finds %d rows, want 201", len(got))
	}
	must(t, db.Close())
}

// TestFailingMovesAreTold: an operator hears once that what is committed can't be moved into the database, and once that it can again.
func TestFailingMovesAreTold(t *testing.T) {
	var told bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&told, nil)))
	defer slog.SetDefault(before)
	path := filepath.Join(t.TempDir(), "x.db")
	db, err := Open(t.Context(), path, Options{Schema: `CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, b BLOB)`})
	must(t, err)
	must(t, insert(db, 0, 100))
	if err := db.Failing(); err != nil || told.Len() > 0 {
		t.Errorf("before anything fails it says %v and logs %s", err, &told)
	}
	db.sync = func(*os.File) error { return errors.New("input/output error") }
	db.foldAt = 1
	must(t, insert(db, 100, 1)) // the commit stands
	for range 3 {
		if insert(db, 101, 1) == nil {
			t.Error("it writes all the same")
		}
	}
	if err := db.Failing(); err == nil || !strings.Contains(err.Error(), "failed 4 times since") || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("while it fails it says %v", err)
	}
	if lines := strings.Count(told.String(), "\n"); lines != 1 || !strings.Contains(told.String(), path) {
		t.Errorf("while it fails it logs %s", &told)
	}
	told.Reset()
	db.sync = (*os.File).Sync
	must(t, insert(db, 101, 1))
	if err := db.Failing(); err != nil || strings.Count(told.String(), "\n") != 1 || !strings.Contains(told.String(), "times=4") {
		t.Errorf("afterwards it says %v and logs %s", err, &told)
	}
	must(t, db.Close())
}
