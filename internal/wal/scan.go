package wal

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/pintle/pintle/internal/file"
)

// scan is what a segment's file was found to hold.
type scan struct {
	path   string
	number int
	size   int64
	plate  plate
	end    int64  // of the good part
	sum    uint32 // running, there
	gaps   []gap
	torn   *gap // the one that isn't damage
	marked bool // a frame ends where the marker says, with its running checksum
}

// gap is a part of a segment that holds no valid frame.
type gap struct {
	from      int64
	to        int64
	what      string
	unwritten bool // it may never have been written in full
	grouped   bool // a group starts behind it
}

// sector is the unit that a disk writes whole or not at all.
const sector = 512

// window reads a file piece by piece.
type window struct {
	file  io.ReaderAt
	whole int64 // its size
	read  int   // how much at a time
	buf   []byte
	at    int64
}

// slice returns bytes of the file; they are valid until the next call.
func (w *window) slice(offset int64, n int) ([]byte, error) {
	if offset >= w.at && offset+int64(n) <= w.at+int64(len(w.buf)) {
		return w.buf[offset-w.at:][:n], nil
	}
	size := int(min(int64(max(n, w.read)), w.whole-offset))
	w.buf = slices.Grow(w.buf[:0], size)[:size]
	w.at = offset
	if got, err := w.file.ReadAt(w.buf, offset); got < size {
		return nil, err
	}
	return w.buf[:n], nil
}

// scanner reads a segment.
type scanner struct {
	*scan
	window
	seed   uint32
	marker *plate
	peek   int  // bytes to read of each body; 0 for all
	past   bool // go on behind a gap
	visit  func(Position, []byte) error
}

// run reads frame after frame.
func (s *scanner) run() error {
	if wrong := s.readPlate(); wrong != "" {
		g := gap{to: plateSize, what: wrong}
		g.unwritten = s.size < plateSize || s.zero(0, plateSize)
		g.to = min(g.to, s.size)
		s.gaps = append(s.gaps, g)
	}
	s.end, s.sum = plateSize, s.plate.running()
	s.checkMarked()
	for offset := int64(plateSize); offset < s.size; {
		h, bad, err := s.frame(offset)
		if err != nil {
			return err
		}
		if bad != nil {
			if err := s.skip(bad); err != nil {
				return err
			}
			offset = bad.to
			continue
		}
		offset += int64(FrameHead + h.length)
	}
	return nil
}

func (s *scanner) readPlate() (wrong string) {
	b, err := s.slice(0, int(min(plateSize, s.size)))
	if err != nil {
		return err.Error()
	}
	p, wrong := parsePlate(b, segmentMagic, s.marker.kind)
	if wrong == "" && (p.id != s.marker.id || p.first != uint64(s.number)) {
		wrong = "belongs to another log, or elsewhere in it"
	}
	if wrong == "" {
		s.plate = p
	}
	return wrong
}

// frame reads and visits the frame at an offset; bad is what is there instead of one.
func (s *scanner) frame(offset int64) (h head, bad *gap, err error) {
	left := s.size - offset
	if left < FrameHead {
		return h, &gap{from: offset, to: s.size, what: "frame is cut short", unwritten: true}, nil
	}
	b, err := s.slice(offset, FrameHead)
	if err != nil {
		return h, nil, err
	}
	h, ok := parseHead(b, s.seed, offset)
	if !ok {
		return h, &gap{from: offset, to: offset + 1, what: "frame's head fails its checksum", unwritten: s.zero(offset, offset+FrameHead)}, nil
	}
	if h.begins { // all before it had been synced
		for i := range s.gaps {
			s.gaps[i].grouped = true
		}
	}
	whole := int64(FrameHead + h.length)
	if whole > left {
		return h, &gap{from: offset, to: s.size, what: "frame is cut short", unwritten: true}, nil
	}
	want := h.length
	if s.peek > 0 {
		want = min(want, s.peek)
	}
	if b, err = s.slice(offset, FrameHead+want); err != nil {
		return h, nil, err
	}
	if want == h.length && checksum(b[FrameHead:]) != h.body {
		return h, &gap{from: offset, to: offset + whole, what: "frame fails its checksum", unwritten: s.zero(offset, offset+whole)}, nil
	}
	if len(s.gaps) == 0 {
		s.end, s.sum = offset+whole, chain(s.sum, b)
		s.checkMarked()
	}
	if s.visit == nil || len(s.gaps) > 0 && !s.past {
		return h, nil, nil
	}
	return h, nil, s.visit(Position{s.number, offset}, b[FrameHead:])
}

// checkMarked notes whether this is where the marker points.
func (s *scanner) checkMarked() {
	if s.marker.last == uint64(s.number) && s.marker.end == uint64(s.end) && s.marker.sum == s.sum {
		s.marked = true
	}
}

// skip goes from a bad place to the next frame's head.
func (s *scanner) skip(bad *gap) error {
	for ; bad.to < s.size; bad.to++ {
		if s.size-bad.to < FrameHead {
			bad.to = s.size
			break
		}
		b, err := s.slice(bad.to, FrameHead)
		if err != nil {
			return err
		}
		if h, ok := parseHead(b, s.seed, bad.to); ok && bad.to+int64(FrameHead+h.length) <= s.size {
			break
		}
	}
	s.gaps = append(s.gaps, *bad)
	return nil
}

// zero reports whether a sector that the range touches holds only zeros from the range's start on: it was never written.
func (s *scanner) zero(from, to int64) bool {
	for at := from - from%sector; at < min(to, s.size); at += sector {
		start := max(at, from)
		b := make([]byte, min(at+sector, s.size)-start)
		if _, err := s.file.ReadAt(b, start); err != nil {
			return false
		}
		if len(bytes.TrimLeft(b, "\x00")) == 0 {
			return true
		}
	}
	return false
}

// survey reads all segments of a log and lists what is wrong.
type survey struct {
	dir    string
	kind   string
	marker *plate // nil if it is lost
	visit  func(Position, []byte) error
	past   bool // go on behind damage
	peek   int

	segments []*scan
	damage   []file.Damage
}

// run reads the segments.
func (s *survey) run() error {
	numbers, err := segments(s.dir)
	if err != nil {
		return err
	}
	for i, n := range numbers {
		peek := s.peek
		if i == len(numbers)-1 {
			peek = 0
		}
		g, err := s.scan(n, peek)
		if err != nil {
			return err
		}
		s.segments = append(s.segments, g)
	}
	s.judgeMissing()
	for i, g := range s.segments {
		s.judge(g, i == len(s.segments)-1)
		if i > 0 {
			s.judgeChain(s.segments[i-1], g)
		}
	}
	slices.SortStableFunc(s.damage, func(a, b file.Damage) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Offset, b.Offset))
	})
	return nil
}

func (s *survey) scan(number, peek int) (*scan, error) {
	g := &scan{path: segmentPath(s.dir, number), number: number}
	f, err := os.Open(g.path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	g.size = info.Size()
	r := &scanner{
		scan:   g,
		window: window{file: f, whole: g.size, read: 1 << 18},
		seed:   seedOf(s.marker.id, number),
		marker: s.marker,
		peek:   peek,
	}
	r.past, r.visit = s.past, s.visit
	if peek > 0 {
		r.read = 1 << 14
	}
	return g, r.run()
}

func (s *survey) found(path string, offset int64, what, repair string) {
	s.damage = append(s.damage, file.Damage{Path: path, Offset: offset, What: what, Repair: repair})
}

const lostSegment = "goes on without it; what it held is lost"

// judgeMissing finds segments that the marker knows and the directory lacks.
func (s *survey) judgeMissing() {
	first, last := int(s.marker.first), int(s.marker.last)
	if len(s.segments) == 0 {
		if first <= last {
			s.found(segmentPath(s.dir, first), -1, "is missing", lostSegment)
		}
		return
	}
	if s.segments[0].number > first {
		s.found(segmentPath(s.dir, first), -1, "is missing", lostSegment)
	}
	if s.segments[len(s.segments)-1].number < last {
		s.found(segmentPath(s.dir, last), -1, "is missing", lostSegment)
	}
}

// judge tells a segment's damage from a torn tail.
func (s *survey) judge(g *scan, last bool) {
	for i := range g.gaps {
		bad := &g.gaps[i]
		if last && s.isTorn(g, bad) {
			g.torn = bad
			break
		}
		s.found(g.path, bad.from, bad.what, fmt.Sprintf("keeps the file as %s; %d bytes are lost", damagedName(g.path), bad.to-bad.from))
	}
	if s.marker.last != uint64(g.number) || len(g.gaps) > 0 && g.gaps[0].from < int64(s.marker.end) {
		return
	}
	what := ""
	switch {
	case g.end < int64(s.marker.end):
		what = fmt.Sprintf("ends before byte %d, up to which it was acknowledged", s.marker.end)
	case !g.marked:
		what = "is not what the marker says"
	case s.marker.flags&flagClean != 0 && g.size > int64(s.marker.end) && len(g.gaps) == 0:
		what = fmt.Sprintf("goes on behind byte %d, where it was closed", s.marker.end)
	}
	if what != "" {
		s.found(g.path, g.end, what, "keeps the frames that are whole; what else was acknowledged is lost")
	}
}

// isTorn reports whether a gap is where writing stopped, so that neither it nor what follows was acknowledged.
func (s *survey) isTorn(g *scan, bad *gap) bool {
	if !bad.unwritten || bad.grouped || s.marker.flags&flagClean != 0 {
		return false
	}
	if g.number == int(s.marker.last) {
		return bad.from >= int64(s.marker.end)
	}
	return g.number > int(s.marker.last)
}

// judgeChain compares a segment with what its successor records about it.
func (s *survey) judgeChain(before, g *scan) {
	if g.plate.magic == "" { // it has no plate, which judge has reported
		return
	}
	switch p := &g.plate; {
	case int(p.last) > before.number || p.last == 0:
		s.found(segmentPath(s.dir, g.number-1), -1, "is missing", lostSegment)
	case len(before.gaps) > 0:
	case int(p.last) != before.number || p.end != uint64(before.end) || p.sum != before.sum:
		s.found(before.path, before.end,
			"is not what the next segment says: it has another end", "keeps the frames that are whole; what else it held is lost")
	}
}
