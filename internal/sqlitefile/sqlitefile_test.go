package sqlitefile

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/file/damagetest"
)

var trials = flag.Int("damage.trials", 120, "how many files are damaged at random")

var options = Options{CacheKiB: 1024, Schema: `
	CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
	INSERT OR IGNORE INTO meta VALUES ('revision', 0);
	CREATE TABLE IF NOT EXISTS short (bucket TEXT, key BLOB, value TEXT NOT NULL, PRIMARY KEY (bucket, key)) WITHOUT ROWID;
	CREATE TABLE IF NOT EXISTS long (key TEXT NOT NULL, number INTEGER, data BLOB, PRIMARY KEY (key, number));
	CREATE INDEX IF NOT EXISTS long_by_number ON long (number) WHERE number > 3;
	CREATE TABLE IF NOT EXISTS counted (id INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL);`}

// rows is a database's content.
type rows map[string]string

func openDB(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// read returns everything that a database has. An index and its table must agree.
func read(t testing.TB, db *DB) rows {
	t.Helper()
	out := rows{}
	for _, q := range []string{
		`SELECT 'short/' || bucket || '/' || key, value FROM short`,
		`SELECT 'long/' || key || '/' || number, data FROM long`,
		`SELECT 'counted/' || id, body FROM counted`,
		`SELECT 'meta/' || name, value FROM meta`,
	} {
		found, err := db.Conn().QueryContext(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for found.Next() {
			var key, value string
			if err := found.Scan(&key, &value); err != nil {
				t.Fatal(err)
			}
			out[key] = value
		}
		if err := errors.Join(found.Err(), found.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var said string
	if err := db.Conn().QueryRowContext(context.Background(), `PRAGMA integrity_check`).Scan(&said); err != nil || said != "ok" {
		t.Fatalf("SQLite says %q, %v", said, err)
	}
	return out
}

// write makes n transactions.
func write(t testing.TB, db *DB, from, n int, rnd *rand.Rand) {
	t.Helper()
	for i := from; i < from+n; i++ {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		for j := range 10 {
			text := strings.Repeat(fmt.Sprintf("%d.%d ", i, j), 1+rnd.IntN(30))
			_, err1 := tx.Exec(`INSERT OR REPLACE INTO short VALUES (?, ?, ?)`, fmt.Sprint("b", i%3), []byte(fmt.Sprint(rnd.IntN(2000))), text)
			long := strings.Repeat(text, 1+rnd.IntN(30)) // of the column's type: a repair tells tables' rows apart by their types
			_, err2 := tx.Exec(`INSERT OR REPLACE INTO long VALUES (?, ?, ?)`, fmt.Sprint("k", rnd.IntN(1000)), j, []byte(long))
			_, err3 := tx.Exec(`INSERT INTO counted (body) VALUES (?)`, []byte(text))
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
		}
		_, err1 := tx.Exec(`DELETE FROM long WHERE key = ?`, fmt.Sprint("k", rnd.IntN(1000)))
		_, err2 := tx.Exec(`UPDATE meta SET value = ? WHERE name = 'revision'`, i+1)
		if err := errors.Join(err1, err2, db.Commit(tx)); err != nil {
			t.Fatal(err)
		}
	}
}

// world is a directory with a database, and what it holds.
type world struct {
	name string
	dir  string
	rows rows
}

// worlds are a database that was closed, one whose process was killed with everything in the log, and one that was
// killed later, with some in the log and some not.
func worlds(t testing.TB) []world {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "test.db")
	copied := func(name string, content rows) world {
		w := world{name, t.TempDir(), content}
		copyFiles(t, filepath.Dir(path), w.dir)
		return w
	}
	db := openDB(t, path)
	write(t, db, 0, 60, rnd)
	killed := copied("killed", read(t, db))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	closed := copied("closed", killed.rows)
	db = openDB(t, path)
	write(t, db, 60, 20, rnd)
	if err := db.fold(); err != nil {
		t.Fatal(err)
	}
	write(t, db, 80, 5, rnd)
	mixed := copied("killed later", read(t, db))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return []world{killed, closed, mixed}
}

func copyFiles(t testing.TB, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// TestReopen has everything again after a clean end and after a kill, in files that nobody else can read.
func TestReopen(t *testing.T) {
	for _, w := range worlds(t) {
		t.Run(w.name, func(t *testing.T) {
			path := filepath.Join(w.dir, "test.db")
			for range 2 {
				db := openDB(t, path)
				if got := read(t, db); !maps.Equal(got, w.rows) {
					t.Errorf("%d rows, want %d", len(got), len(w.rows))
				}
				checkModes(t, w.dir)
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(logPath(path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the log is still there: %v", err)
			}
			found, err := inspect(path)
			if err != nil || len(found.damage) > 0 || found.guard.frames != found.guard.folded {
				t.Errorf("found %v, %v", found.damage, err)
			}
		})
	}
}

func checkModes(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s, %v", e.Name(), info.Mode(), err)
		}
	}
}

// TestLocked: a database that is open is not opened again.
func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := openDB(t, path)
	if _, err := Open(t.Context(), path, options); !errors.Is(err, file.ErrLocked) {
		t.Errorf("got %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openDB(t, path)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamageIsFound damages a random file again and again: the database opens with all that it had, or with an error that
// names a file. It must find a fair part of what is done to it.
func TestDamageIsFound(t *testing.T) {
	all := worlds(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for i := range *trials {
		w := all[i%len(all)]
		dir := t.TempDir()
		copyFiles(t, w.dir, dir)
		path := filepath.Join(dir, "test.db")
		files, err := file.Glob(dir, "test.db*")
		if err != nil {
			t.Fatal(err)
		}
		how := damagetest.Hurt(t, files[rnd.IntN(len(files))], rnd)
		db, err := Open(t.Context(), path, options)
		var damage *file.Damage
		switch {
		case errors.As(err, &damage):
			found++
			if filepath.Dir(damage.Path) != dir || damage.What == "" {
				t.Errorf("%s, %s: %v", w.name, how, damage)
			}
		case err != nil:
			t.Errorf("seed %d: %s, %s: %v", seed, w.name, how, err)
		default:
			if got := read(t, db); !maps.Equal(got, w.rows) {
				t.Errorf("seed %d: %s, %s: a silent loss: %d rows of %d", seed, w.name, how, len(got), len(w.rows))
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d of %d were found; what the others did was harmless", found, *trials)
	if found < *trials/3 {
		t.Errorf("only %d of %d were found: the test shows little", found, *trials)
	}
}

// differing counts the rows that are not the same in both.
func differing(a, b rows) (n int) {
	for key := range b {
		if a[key] != b[key] {
			n++
		}
	}
	for key := range a {
		if _, ok := b[key]; !ok {
			n++
		}
	}
	return n
}

// TestRepair damages a random file again and again, and repairs it. It can be opened then, has all rows where the repair says that
// nothing is lost, and all but those of a page or two where no more than a bit had flipped.
func TestRepair(t *testing.T) {
	all := worlds(t)
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	found, kept, lost := 0, 0, 0
	for i := range *trials {
		w := all[i%len(all)]
		dir := t.TempDir()
		copyFiles(t, w.dir, dir)
		path := filepath.Join(dir, "test.db")
		files, err := file.Glob(dir, "test.db*")
		if err != nil {
			t.Fatal(err)
		}
		how := damagetest.Hurt(t, files[rnd.IntN(len(files))], rnd)
		damage, err := Check(t.Context(), path, options, false)
		if err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		again, err := Check(t.Context(), path, options, true)
		if err != nil || len(again) != len(damage) {
			t.Fatalf("seed %d: %s, %s: found %d, then %d: %v", seed, w.name, how, len(damage), len(again), err)
		}
		db, err := Open(t.Context(), path, options)
		if err != nil {
			t.Fatalf("seed %d: %s, %s: after the repair: %v", seed, w.name, how, err)
		}
		got := read(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if len(damage) == 0 {
			if !maps.Equal(got, w.rows) {
				t.Errorf("seed %d: %s, %s: a silent loss", seed, w.name, how)
			}
			continue
		}
		found++
		kept += len(got)
		lost += len(w.rows) - len(got)
		claims := strings.Contains(again[0].Repair, "nothing is lost")
		inPlace := strings.HasPrefix(how, "flip") || strings.HasPrefix(how, "scramble")
		if claims && !maps.Equal(got, w.rows) || inPlace && differing(got, w.rows) > 200 {
			t.Errorf("seed %d: %s, %s: %d rows after the repair, of %d: %v", seed, w.name, how, len(got), len(w.rows), again)
		}
	}
	t.Logf("%d of %d were damaged; %d rows were kept, %d lost", found, *trials, kept, lost)
	if found < *trials/3 || kept < lost {
		t.Errorf("%d of %d were damaged; %d rows were kept, %d lost", found, *trials, kept, lost)
	}
}

// FuzzGuard: whatever stands in a guard's file, it's read or refused, and what is read is written the same.
func FuzzGuard(f *testing.F) {
	g := &guard{sums: []uint32{1, 2, 3}}
	f.Add(g.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := decodeGuard(b)
		if err == nil && !bytes.Equal(g.encode(), b) {
			t.Error("it is written otherwise than it was read")
		}
	})
}

// FuzzLog: whatever stands in a log, SQLite would take no more frames of it than are there.
func FuzzLog(f *testing.F) {
	f.Add(make([]byte, headerSize+frameSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := &walLog{size: int64(len(b))}
		if err := l.read(bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		if l.whole() > l.run() || int(l.run()) > len(l.frames) || len(l.frames)*frameSize > len(b) {
			t.Errorf("%d whole frames of %d of %d", l.whole(), l.run(), len(l.frames))
		}
		l.broken()
	})
}

// FuzzTree: whatever stands on a page or in a record, it's read or refused.
func FuzzTree(f *testing.F) {
	page := make([]byte, pageSize)
	page[0], page[4], page[8], page[9] = leafTable, 1, 0x0f, 0xf0
	copy(page[0xff0:], []byte{5, 1, 3, 1, 15, 7, 'x'})
	f.Add(page)
	f.Fuzz(func(t *testing.T, b []byte) {
		page := make([]byte, pageSize)
		copy(page, b)
		for _, n := range []uint32{1, 2} {
			node := parseNode(n, page)
			if node == nil {
				continue
			}
			for _, c := range node.cells {
				parseRecord(c.payload)
			}
		}
		parseRecord(b)
	})
}
