package wal

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// maxTorn is how many torn tails a log keeps.
const maxTorn = 8

// cutTorn cuts off a torn tail and keeps it beside the segment.
func cutTorn(dir string, g *scan) error {
	b, err := os.ReadFile(g.path)
	if err != nil {
		return err
	}
	from := g.torn.from
	if err := file.Replace(fmt.Sprintf("%s.%d.torn", g.path, from), b[from:], true); err != nil {
		return err
	}
	if err := dropTorn(dir); err != nil {
		return err
	}
	if from == 0 {
		return errors.Join(os.Remove(g.path), file.SyncDir(dir))
	}
	f, err := os.OpenFile(g.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(from), f.Sync(), f.Close())
}

// dropTorn removes the oldest torn tails beyond maxTorn.
func dropTorn(dir string) error {
	paths, err := file.Glob(dir, "*.torn")
	if err != nil || len(paths) <= maxTorn {
		return err
	}
	made := map[string]time.Time{}
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		made[p] = info.ModTime()
	}
	slices.SortStableFunc(paths, func(a, b string) int { return made[a].Compare(made[b]) })
	for _, p := range paths[:len(paths)-maxTorn] {
		err = errors.Join(err, os.Remove(p))
	}
	return err
}

func damagedName(path string) string { return filepath.Base(path) + ".damaged" }

// Check lists all damage of a log that nobody has open. With repair, it rebuilds the log from the frames that are whole and keeps
// the damaged files beside it (….damaged). A directory without a log has no damage.
func Check(dir, kind string, repair bool) ([]file.Damage, error) {
	path := filepath.Join(dir, markerFile)
	numbers, err := segments(dir)
	if err != nil {
		return nil, err
	}
	m, err := lockMarker(path)
	if errors.Is(err, os.ErrNotExist) {
		if len(numbers) == 0 {
			return nil, nil
		}
		m, err = &marker{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer m.release() //nolint:errcheck // everything that matters was synced
	s := survey{dir: dir, kind: kind, marker: &m.plate}
	lost := ""
	if m.file == nil {
		lost = "is missing"
	} else {
		lost = m.read(kind)
	}
	if lost != "" {
		s.found(path, -1, lost, "makes it anew from the segments that are there")
		if m.plate, err = guess(dir, kind, numbers); err != nil {
			return s.damage, err
		}
	}
	if err := s.run(); err != nil {
		return s.damage, err
	}
	if !repair || len(s.damage) == 0 {
		return s.damage, nil
	}
	return s.damage, (&mender{survey: &s, lost: lost != ""}).run()
}

// guess builds a marker from the segments, in place of a lost one.
func guess(dir, kind string, numbers []int) (plate, error) {
	p := plate{magic: markerMagic, kind: kind, first: 1}
	if len(numbers) > 0 {
		p.first = uint64(numbers[0])
	}
	for _, n := range numbers {
		b, err := os.ReadFile(segmentPath(dir, n))
		if err != nil {
			return p, err
		}
		if is, wrong := parsePlate(b[:min(plateSize, len(b))], segmentMagic, kind); wrong == "" {
			p.id = is.id
			return p, nil
		}
	}
	return p, nil
}

// mender rebuilds a log from the frames that are whole.
type mender struct {
	*survey
	lost bool    // the marker is
	last segment // the last one rebuilt
	out  *bufio.Writer
}

// run rebuilds segment by segment. Each is replaced at once, so an interrupted repair can be run again.
func (m *mender) run() error {
	for _, g := range m.segments {
		if err := m.rewrite(g); err != nil {
			return err
		}
	}
	p := *m.marker
	p.flags |= flagClean | flagRepaired
	if len(m.segments) == 0 {
		p.first = p.last + 1
	} else {
		p.first = uint64(m.segments[0].number)
		p.last, p.end, p.sum = uint64(m.last.number), uint64(m.last.end), m.last.sum
	}
	path := filepath.Join(m.dir, markerFile)
	if m.lost {
		if err := file.Quarantine(path); err != nil {
			return err
		}
	}
	if err := file.Replace(path, p.append(nil), true); err != nil {
		return err
	}
	return file.SyncDir(m.dir)
}

// rewrite writes a segment's frames to a new file, unless the segment is whole and in its place.
func (m *mender) rewrite(g *scan) error {
	before := m.last
	p := plate{magic: segmentMagic, kind: m.kind, id: m.marker.id, first: uint64(g.number)}
	if before.end > 0 {
		p.last, p.end, p.sum = uint64(before.number), uint64(before.end), before.sum
	}
	if len(g.gaps) == 0 && (g.plate == p || before.end == 0) {
		m.last = segment{number: g.number, end: g.end, sum: g.sum}
		return nil
	}
	f, err := os.CreateTemp(m.dir, file.Unfinished+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone already when all went well
	m.out = bufio.NewWriter(f)
	m.last = segment{number: g.number, seed: seedOf(m.marker.id, g.number), end: plateSize, sum: p.running()}
	if _, err = m.out.Write(p.append(nil)); err == nil {
		again := survey{dir: m.dir, kind: m.kind, marker: m.marker, visit: m.keep, past: true}
		_, err = again.scan(g.number, 0)
	}
	if err = errors.Join(err, m.out.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	if len(g.gaps) > 0 {
		if err := file.Quarantine(g.path); err != nil {
			return err
		}
	}
	return errors.Join(os.Rename(f.Name(), g.path), file.SyncDir(m.dir))
}

// keep appends a frame to those already kept.
func (m *mender) keep(_ Position, body []byte) error {
	b := appendFrame(nil, m.last.seed, m.last.end, true, func(b []byte) []byte { return append(b, body...) })
	m.last.sum = chain(m.last.sum, b)
	m.last.end += int64(len(b))
	_, err := m.out.Write(b)
	return err
}
