package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/journaltest"
)

func openJournal(ctx context.Context, place string) (store.Journal, error) { return Open(ctx, place) }

func TestMain(m *testing.M) { journaltest.Main(m, openJournal) }

func TestJournal(t *testing.T) {
	journaltest.Run(t, openJournal)
	journaltest.RunDurable(t, openJournal)
	journaltest.RunOnFiles(t, openJournal)
}

// TestForgets: deletions are forgotten after a while. A follower that may have missed one is told so; one that has not goes on.
func TestForgets(t *testing.T) {
	j, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // the test is over
	j.remembered, j.forgetEvery = 4, 2
	for revision := range int64(10) {
		changes := []store.Change{{Table: "t", Key: "kept", Data: []byte("x")}, {Table: "t", Key: string(rune('a' + revision))}}
		if err := j.Write(revision+1, changes); err != nil {
			t.Fatal(err)
		}
	}
	since := func(revision int64) (n int, err error) {
		_, err = j.Since(t.Context(), revision, func(store.Change) error { n++; return nil })
		return n, err
	}
	for revision, want := range map[int64]int{0: 5, 6: 5, 9: 2, 10: 0} {
		if n, err := since(revision); err != nil || n != want {
			t.Errorf("%d changes since %d (%v), want %d", n, revision, err, want)
		}
	}
	for _, revision := range []int64{1, 5, 11} {
		if _, err := since(revision); !errors.Is(err, store.ErrCompacted) {
			t.Errorf("since %d: %v", revision, err)
		}
	}
}

// TestAnotherLayout: a file of another version is refused, and left as it is.
func TestAnotherLayout(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.conn.ExecContext(t.Context(), `UPDATE meta SET value = 1 WHERE name = 'format'; DROP TABLE rows;`); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err := Open(t.Context(), dir); err == nil {
		j.Close() //nolint:errcheck // the test has failed
		t.Error("it was opened")
	}
}

// TestStrangeDirectory: what a URI would take for something else is but a part of a directory's name.
func TestStrangeDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b#c%20[d] ü")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	j, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := os.Stat(filepath.Join(dir, "state.db")); err != nil {
		t.Error(err)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if second, err := Open(t.Context(), dir); err == nil {
		second.Close()
		t.Fatal("two journals opened one file")
	}
}
