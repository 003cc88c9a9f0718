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

// marker is the file that tells what was acknowledged. Who has it open has the log to itself.
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
	for range 20 { // a process that is being started has the lock of the one that starts it for a moment
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return &marker{file: f}, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", path, file.ErrLocked), f.Close())
}

// read reads the marker; it returns what is wrong with it.
func (m *marker) read(kind string) (wrong string) {
	b, err := io.ReadAll(io.NewSectionReader(m.file, 0, plateSize+1))
	if err != nil {
		return err.Error()
	}
	m.plate, wrong = parsePlate(b, markerMagic, kind)
	return wrong
}

// write writes the marker in place: it lies in one sector. The caller holds mu.
func (m *marker) write(sync bool) error {
	var b [plateSize]byte
	if _, err := m.file.WriteAt(m.append(b[:0]), 0); err != nil {
		return err
	}
	if !sync {
		return nil
	}
	return m.file.Sync()
}

// dirty notes that what is behind the end may be anything from now on.
func (m *marker) dirty(noSync bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.flags&flagClean == 0 {
		return nil
	}
	m.flags &^= flagClean
	return m.write(!noSync)
}

// reach notes how far the log is on disk.
func (m *marker) reach(at Position, sum uint32, noSync bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	began := m.last != uint64(at.Segment)
	m.last, m.end, m.sum = uint64(at.Segment), uint64(at.Offset), sum
	return m.write(began && !noSync)
}

// begin notes that the log begins with a segment.
func (m *marker) begin(number int, noSync bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if uint64(number) <= m.first {
		return nil
	}
	m.first = uint64(number)
	return m.write(!noSync)
}

// close notes that nothing is behind the end. It needs no sync: without this a log is taken for one whose process was killed.
func (m *marker) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.flags&flagClean != 0 {
		return nil
	}
	m.flags |= flagClean
	return m.write(false)
}

func (m *marker) release() error { return m.file.Close() }
