package streams

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/wal/waltest"
)

// TestRandomDamage: whatever happens to the store's files after a clean end or a kill, the store names the damage or has every
// event. After a repair it has everything that wasn't damaged.
func TestRandomDamage(t *testing.T) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // torn ends are many
	dir := t.TempDir()
	s := open(t, dir)
	for _, name := range []string{"deleted", "g", "h", "empty"} {
		if err := s.CreateGroup(Group{Name: name, CreatedAt: 1, RetentionDays: 7}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteGroup("deleted"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"g", "h"} {
		for i := range int64(30) {
			stream := fmt.Sprint("s", i%3)
			if i < 3 {
				if err := s.CreateStream(name, stream, 1); err != nil {
					t.Fatal(err)
				}
			}
			if i%8 == 7 {
				s.groups[name].log.Roll()
			}
			events := []Event{event(i, fmt.Sprint("event ", i)), event(i, strings.Repeat("x", 100))}
			if err := s.Append(name, stream, i, events); err != nil {
				t.Fatal(err)
			}
		}
	}
	killed := waltest.Copy(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	trials := waltest.Trials{
		Images:    []string{dir, killed},
		Read:      contents,
		Check:     Check,
		FlipLoses: 2,
		FileLoses: 2 * 8,
	}
	trials.Run(t)
}

// contents returns every event and every group. A group whose description was lost keeps its name but loses its retention.
func contents(t testing.TB, dir string) (map[string]bool, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // we only read it
	out := map[string]bool{}
	for _, g := range s.Groups() {
		out["group "+g.Name] = true
		events, _, err := s.Read(t.Context(), g.Name, Range{Limit: 1000})
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			out[fmt.Sprint(g.Name, e.Stream, e.Timestamp, e.Message)] = true
		}
	}
	return out, nil
}

// TestGroupWithoutDescription: a group without a description is damage, and its segments aren't removed. After a repair it has its
// name and its events.
func TestGroupWithoutDescription(t *testing.T) {
	for _, what := range []string{"removed", "flipped"} {
		dir := t.TempDir()
		s := withGroup(t, dir, "a")
		if err := s.Append("g", "a", 1, []Event{event(1, "kept")}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		path := filepath.Join(dir, "1", metaFile)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[10] ^= 1
		if err := errors.Join(os.Remove(path)); err != nil {
			t.Fatal(err)
		}
		if what == "flipped" {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			_, err := Open(dir)
			if damage := new(file.Damage); !errors.As(err, &damage) || damage.Path != path {
				t.Fatalf("%s: it says %v", what, err)
			}
		}
		if found, err := Check(dir, true); err != nil || len(found) != 1 {
			t.Fatalf("%s: found are %v, %v", what, found, err)
		}
		s = open(t, dir)
		if got, _, err := s.Read(t.Context(), "g", Range{Limit: 10}); err != nil || len(got) != 1 {
			t.Errorf("%s: after the repair there are %v, %v", what, got, err)
		}
	}
}

// TestDeletedHalfway: a group whose deletion was interrupted is gone. One whose creation was interrupted exists completely or not at all.
func TestDeletedHalfway(t *testing.T) {
	dir := t.TempDir()
	s := withGroup(t, dir, "a")
	if err := s.CreateGroup(Group{Name: "h"}); err != nil {
		t.Fatal(err)
	}
	next := s.catalog.clone()
	delete(next.Groups, 1)
	if err := next.write(dir); err != nil {
		t.Fatal(err)
	}
	if err := makeGroup(dir, 3, Group{Name: "made"}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range 2 {
		s = open(t, dir)
		if groups := s.Groups(); len(groups) != 2 || groups[0].Name != "h" || groups[1].Name != "made" {
			t.Errorf("the groups are %+v", groups)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(groupDir(dir, 1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the deleted group's directory: %v", err)
	}
	s = open(t, dir)
	if err := s.CreateGroup(Group{Name: "next"}); err != nil || s.groups["next"].id != 4 {
		t.Errorf("the next group: %v", err)
	}
}
