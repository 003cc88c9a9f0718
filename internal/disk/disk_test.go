package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a disk of which only a test and the reserve's files take room.
type fake struct {
	free     atomic.Int64 // without what the files take
	readOnly atomic.Bool
}

func (f *fake) look(dir string) (Room, error) {
	free := f.free.Load()
	for _, name := range []string{forEnds, forStart} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			free -= info.Size()
		}
	}
	return Room{Free: uint64(max(free, 0)), ReadOnly: f.readOnly.Load()}, nil
}

func TestUnwritable(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("another"), false},
		{syscall.EIO, false}, // a read may have it
		{Unwritable(syscall.EIO), true},
		{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, true},
		{fmt.Errorf("wrapped: %w", &Full{}), true},
	} {
		if got := IsUnwritable(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
	if Unwritable(nil) != nil {
		t.Error("nil is marked")
	}
}

// TestSpace follows a disk that is filled, and freed again.
func TestSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, disk, out := t.TempDir(), &fake{}, &bytes.Buffer{}
		disk.free.Store(1 << 30)
		s := &Space{dir: dir, look: disk.look}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Watch(ctx, slog.New(slog.NewTextHandler(out, nil))) }()
		has := func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		}
		for i, step := range []struct {
			free         int64
			changes      string
			ends         bool
			keepsForEnds bool
		}{
			{1 << 30, "", true, true},
			{(12 + 32) << 20, "no space left on " + dir + " (12 MB free, needs 64 MB)", true, true},
			{(1 + 32) << 20, "no space left on " + dir + " (17 MB free, needs 64 MB)", true, false},
			{(1 + 16) << 20, "no space left on " + dir + " (1 MB free, needs 64 MB)", false, false},
			{(70 + 16) << 20, "", true, false},
			{1 << 30, "", true, true},
		} {
			disk.free.Store(step.free)
			time.Sleep(3 * time.Second)
			synctest.Wait()
			changes := s.Check(ForChanges)
			if got := fmt.Sprint(changes); got != step.changes && (changes != nil || step.changes != "") {
				t.Errorf("step %d: changes: %v", i, changes)
			}
			if err := s.Check(ForEnds); (err == nil) != step.ends {
				t.Errorf("step %d: ends: %v", i, err)
			}
			if err := s.Check(ForStops); err != nil {
				t.Errorf("step %d: stops: %v", i, err)
			}
			if has(forEnds) != step.keepsForEnds || !has(forStart) {
				t.Errorf("step %d: %t, %t are kept", i, has(forEnds), has(forStart))
			}
		}
		cancel()
		if <-done; strings.Count(out.String(), "\n") != 2 {
			t.Errorf("it logs\n%s", out)
		}
	})
}

// TestStopsGiveUpTheReserve: a stop that comes before anyone else has noticed gets the room that is kept.
func TestStopsGiveUpTheReserve(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, forEnds), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Space{dir: dir, look: (&fake{}).look}
	if err := s.Check(ForStops); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, forEnds)); err == nil {
		t.Error("the room is still kept")
	}
}

func TestReadOnly(t *testing.T) {
	disk := &fake{}
	disk.free.Store(1 << 40)
	disk.readOnly.Store(true)
	s := &Space{dir: "/data", look: disk.look}
	if err := s.Check(ForStops); err == nil {
		t.Error("stops go on where nothing can be written")
	}
	if err := s.Check(ForEnds); err == nil || err.Error() != "the file system of /data is read-only" {
		t.Errorf("it says %v", err)
	}
	if err := (*Space)(nil).Check(ForChanges); err != nil {
		t.Errorf("no space: %v", err)
	}
}

// TestRealDisk: the room of a directory is known, and a start gives up what was kept for it only if it must.
func TestRealDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, forStart), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := OpenSpace(dir)
	if room := s.now(); room.Free == 0 || room.ReadOnly {
		t.Errorf("the disk has %+v", room)
	}
	if err := s.Check(0); err != nil {
		t.Error(err)
	}
}
