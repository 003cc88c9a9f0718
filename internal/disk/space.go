package disk

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// How much room changes need. What ends something, and so may make room, goes on for longer. What stops a task is tried as long as the disk
// can be written at all: it needs a few KB, and the last of the room is for it alone.
const (
	ForChanges = 64 << 20
	ForEnds    = 4 << 20
	ForStops   = 0
)

// ballastSize is the size of each of the files that keep room. It's enough to stop thousands of tasks, or to open all stores.
const ballastSize = 16 << 20

// The files that keep room: one for what ends something, one for the next start. They are given up when there is no other room.
const (
	forEnds  = "reserve-for-ends"
	forStart = "reserve-for-start"
)

// A look at a disk with plenty of room counts for a moment. Nobody fills that much in the meantime.
const (
	freshFor = 100 * time.Millisecond
	plenty   = 4 << 30
)

// Space is the room for a directory. Its methods may be called from any goroutine.
type Space struct {
	dir  string
	look func(dir string) (Room, error) // tests replace it

	mu   sync.Mutex
	at   time.Time // of the last look
	room Room
}

// Room is what a file system has.
type Room struct {
	Free     uint64 // bytes
	ReadOnly bool
}

// Full refuses a change, because it needs more room than there is.
type Full struct {
	Dir  string
	Room Room
	Need uint64
}

func (f *Full) Error() string {
	if f.Room.ReadOnly {
		return fmt.Sprintf("the file system of %s is read-only", f.Dir)
	}
	return fmt.Sprintf("no space left on %s (%d MB free, needs %d MB)", f.Dir, f.Room.Free>>20, f.Need>>20)
}

// Is makes it an ErrUnwritable.
func (f *Full) Is(target error) bool { return target == ErrUnwritable }

// OpenSpace returns the space of a directory, which must exist. If there is no room to open the stores in it, it gives up the room that was
// kept for that.
func OpenSpace(dir string) *Space {
	s := &Space{dir: dir, look: lookAt}
	if room := s.now(); room.Free < ballastSize {
		s.giveUp(forStart)
	}
	return s
}

func lookAt(dir string) (Room, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return Room{}, err
	}
	return Room{Free: fs.Bavail * uint64(fs.Bsize), ReadOnly: fs.Flags&syscall.MS_RDONLY != 0}, nil
}

// now returns the room, as it was a moment ago at most. A failed look counts for unlimited room: the writes themselves will tell.
func (s *Space) now() Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.room.Free > plenty && time.Since(s.at) < freshFor {
		return s.room
	}
	room, err := s.look(s.dir)
	if err != nil {
		room = Room{Free: 1 << 62}
	}
	s.at, s.room = time.Now(), room
	return room
}

// Check refuses a change that needs more room than there is. A nil Space has room for all.
func (s *Space) Check(need uint64) error {
	if s == nil {
		return nil
	}
	room := s.now()
	if room.Free < ForEnds && need <= ForEnds && s.giveUp(forEnds) {
		room = s.now()
	}
	if room.Free < need || room.ReadOnly {
		return &Full{s.dir, room, need}
	}
	return nil
}

// giveUp removes a file that keeps room, and reports whether there was one.
func (s *Space) giveUp(name string) bool { return os.Remove(filepath.Join(s.dir, name)) == nil }

// keep makes the files that keep room, if there is enough for all else.
func (s *Space) keep() {
	for _, name := range []string{forStart, forEnds} {
		path := filepath.Join(s.dir, name)
		if info, err := os.Stat(path); err == nil && info.Size() == ballastSize || s.now().Free < ForChanges+2*ballastSize {
			continue
		}
		if err := allocate(path); err != nil { // not every file system can; then there is only what Check keeps free
			os.Remove(path) //nolint:errcheck // there may be none
		}
	}
}

func allocate(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return syscall.Fallocate(int(f.Fd()), 0, 0, ballastSize)
}

// Watch logs when the room for changes ends and when there is some again, once each. It keeps room in reserve, and gives it up when it's
// needed. It runs until ctx ends.
func (s *Space) Watch(ctx context.Context, log *slog.Logger) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before error
	for {
		s.keep()
		s.Check(ForEnds) //nolint:errcheck // loops write without asking; what is kept is for them, too
		why := s.Check(ForChanges)
		switch {
		case before == nil && why != nil:
			log.Warn("changes are refused until there is room; reads and what ends something go on", "error", why)
		case before != nil && why == nil:
			log.Info("there is room again; changes go on", "path", s.dir)
		}
		before = why
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
