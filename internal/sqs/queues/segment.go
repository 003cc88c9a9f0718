package queues

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/file"
)

const (
	defaultMaxSegment = 16 << 20
	defaultSlack      = 4 * defaultMaxSegment
)

// segment is one file of the log.
type segment struct {
	number int
	file   *os.File
	size   int64    // with what is on its way to it
	named  bool     // whether its name is on disk; the writer's
	first  *message // of those whose record lies in it
}

// link notes that a message's record lies at a place.
func (m *message) link(p place) {
	m.place = p
	g := p.segment
	m.next, m.prev = g.first, nil
	if g.first != nil {
		g.first.prev = m
	}
	g.first = m
}

// unlink notes that a message's record does not count any more.
func (m *message) unlink() {
	if m.prev != nil {
		m.prev.next = m.next
	} else {
		m.place.segment.first = m.next
	}
	if m.next != nil {
		m.next.prev = m.prev
	}
	m.next, m.prev, m.place.segment = nil, nil, nil
}

func (s *Store) segmentPath(number int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%09d.log", number))
}

// openSegment begins a new segment behind all others.
func (s *Store) openSegment() error {
	number := 1
	if n := len(s.segments); n > 0 {
		number = s.segments[n-1].number + 1
	}
	f, err := os.OpenFile(s.segmentPath(number), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	s.segments = append(s.segments, &segment{number: number, file: f})
	return nil
}

// load replays the log, and cuts off what a crash has torn.
func (s *Store) load() error {
	paths, err := file.Glob(s.dir, "*.log")
	if err != nil {
		return err
	}
	var torn *segment
	for _, path := range paths {
		g := &segment{named: true}
		if _, err := fmt.Sscanf(filepath.Base(path), "%d.log", &g.number); err != nil {
			return fmt.Errorf("%s is no segment", path)
		}
		if g.file, err = os.OpenFile(path, os.O_RDWR, 0o600); err != nil {
			return err
		}
		s.segments = append(s.segments, g)
		if err := s.replay(g); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		info, err := g.file.Stat()
		if err != nil {
			return err
		}
		if torn != nil && info.Size() > 0 { // a segment is on disk before the next one is written
			return fmt.Errorf("%s: %w", s.segmentPath(torn.number), errCorrupt)
		}
		if info.Size() > g.size {
			torn = g
		}
	}
	if torn != nil { // on disk before what comes next, which may be in another segment
		return errors.Join(torn.file.Truncate(torn.size), torn.file.Sync())
	}
	if len(s.segments) > 0 {
		return nil
	}
	if err := s.openSegment(); err != nil {
		return err
	}
	return file.SyncDir(s.dir)
}

func (s *Store) replay(g *segment) (err error) {
	g.size, err = file.ReadFrames(g.file, func(payload []byte, offset int64) error {
		records, err := parsePayload(payload)
		if err != nil {
			return err
		}
		for i := range records {
			if err := s.apply(&records[i], g, offset); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
