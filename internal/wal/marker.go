package wal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
)

const markerFile = "marker"

// marker is the file that records what was acknowledged. It is locked, and so owns the log for the process that has it open.
type marker struct {
	file *os.File

	mu sync.Mutex
	plate
}

// openMarker opens a log's marker and locks it.
func openMarker(path, kind string) (*marker, error) {
	m, err := lockMarker(path)
	if err != nil {
		return nil, err
	}
	if wrong := m.read(kind); wrong != "" {
		m.release() //nolint:errcheck // nothing was written
		return nil, &file.Damage{Path: path, Offset: 0, What: wrong, Repair: "makes it anew from the segments that are there"}
	}
	return m, nil
}

func lockMarker(path string) (*marker, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for range 20 { // a child that is just starting briefly shares its parent's lock
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return &marker{file: f}, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", path, file.ErrLocked), f.Close())
}

// read reads the marker and returns what is wrong with it.
func (m *marker) read(kind string) (wrong string) {
	b, err := io.ReadAll(io.NewSectionReader(m.file, 0, plateSize+1))
	if err != nil {
		return err.Error()
	}
	m.plate, wrong = parsePlate(b, markerMagic, kind)
	return wrong
}

// write writes the marker in place, which is safe because it fits in one sector. If that fails, the same change writes it again later. The
// caller holds mu.
func (m *marker) write(next plate, sync bool) error {
	var b [plateSize]byte
	if _, err := m.file.WriteAt(next.append(b[:0]), 0); err != nil {
		return err
	}
	if sync {
		if err := m.file.Sync(); err != nil {
			return err
		}
	}
	m.plate = next
	return nil
}

// dirty notes that from now on the file may go beyond the recorded end.
func (m *marker) dirty(noSync bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.flags&flagClean == 0 {
		return nil
	}
	next := m.plate
	next.flags &^= flagClean
	return m.write(next, !noSync)
}

// reach notes how far the log is on disk. A log that isn't synced keeps the note in memory until it's closed.
func (m *marker) reach(at Position, sum uint32, noSync bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.plate
	next.last, next.end, next.sum = uint64(at.Segment), uint64(at.Offset), sum
	if noSync {
		m.plate = next
		return nil
	}
	return m.write(next, next.last != m.last)
}

// begin notes the log's first segment.
func (m *marker) begin(number int, noSync bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if uint64(number) <= m.first {
		return nil
	}
	next := m.plate
	next.first = uint64(number)
	return m.write(next, !noSync)
}

// begins returns the log's first segment.
func (m *marker) begins() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.first)
}

// close notes that nothing lies beyond the end. It needs no sync: if the note is lost, the log just looks as if it had been killed.
func (m *marker) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.flags&flagClean != 0 {
		return nil
	}
	next := m.plate
	next.flags |= flagClean
	return m.write(next, false)
}

func (m *marker) release() error { return m.file.Close() }
