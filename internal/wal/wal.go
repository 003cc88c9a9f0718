// Package wal keeps a log: segments of checksummed frames, with one sync for all who wait. Queues, log streams and metrics are
// made of such logs; what a frame means is theirs to know. Nothing here knows a service or a clock.
//
// # Files
//
// A log is a directory with segments (000000001.log, …) and a marker. A segment starts with a plate: what kind of log this is, the
// log's random id, the segment's number, and of its predecessor the number, the end and the running checksum. Frames follow. The
// checksum of a frame's head covers the log's id, the segment, the offset, the length and the body's checksum, so a frame counts in
// its place alone. The running checksum goes over the plate and all heads, and so over every byte. The first frame of each group
// that was synced together says so: where it is whole, all before it had been synced.
//
// The marker names the first and the last segment, where the last one ends and its running checksum. It is written after each sync
// and before anybody is told, without a sync of its own: so a killed process leaves a marker that tells exactly what was
// acknowledged. A machine that loses power may leave an older one, by as much as the kernel had not written back yet. Beginning a
// segment and removing one sync it. A clean close says so in the marker.
//
// # What is damage, and what a torn tail
//
// After a clean close every byte is known: any difference is damage. Otherwise, too, a bad frame is damage
//
//   - before the end that the marker tells;
//   - where another segment, or the first frame of a later group, follows;
//   - where it is there whole and wrong: it neither runs past the end of the file nor has a disk sector that is all zero, as
//     sectors are that were never written.
//
// What is left is a torn tail: it was never acknowledged. Opening cuts it off, keeps it beside the segment (….torn, the last few)
// and logs it. So is a last segment behind the marker whose plate was not written. A segment that is missing, has another plate
// than its successor or the marker expects, or is longer or shorter than they say, is damage, as is a marker that fails its
// checksum or is missing beside segments. Opening refuses damage; Check lists it, and repairs it.
//
// One thing stays unknown: bytes that were acknowledged shortly before a power failure, where the marker that tells of them was
// lost with the power and they are cut off or zeroed besides.
package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/pintle/pintle/internal/file"
)

// ErrClosed is what an append gets once the log is closed, or has failed.
var ErrClosed = errors.New("the log is closed")

// Options say what a log is and how it is kept.
type Options struct {
	// Kind is what the log is of, in up to eight letters. A log of another kind is refused.
	Kind string
	// Exists says that the log must be there: one that is missing is damage.
	Exists bool
	// From is the first segment that counts; those before it are removed, as RemoveBefore does.
	From int
	// Peek has segments but the last read without their bodies: replay gets that many bytes of each at most, which were not
	// verified. Where it is 0 all is read and verified.
	Peek int
	// NoSync gives up durability: for a log that is thrown away.
	NoSync bool
	// Resume says that the store can do without what was refused, since it changes nothing before that is on disk. Then a write
	// that fails is taken back, and the log goes on; else it ends the log. A failed sync always does.
	Resume bool
	// Failed is called when the log has ended, with no lock held; nil where Failed's channel is enough.
	Failed func(error)
}

// Position is where a frame lies.
type Position struct {
	Segment int
	Offset  int64
}

// Log is a log. Its methods may be called from any goroutine.
type Log struct {
	dir  string
	opts Options
	id   uint64

	mu       sync.Mutex
	last     *segment // that appends go to
	next     *Group   // that they belong to
	applied  Position // how far frames' callbacks have come: behind this one
	flushing bool
	err      error // why nothing can be appended any more
	spare    []byte
	failed   chan struct{}
	running  sync.WaitGroup // of the flusher

	marker   *marker
	repaired bool

	filesMu sync.RWMutex // held while files are read, so that they stay
	files   map[int]*os.File
}

// segment is the segment that is written.
type segment struct {
	number int
	plate  plate
	seed   uint32
	end    int64  // with what is on its way to it
	sum    uint32 // running, of all before end
	made   bool   // whether its file is there; the flusher's
}

// Open opens the log in a directory, which it makes where there is none, and hands all frames to replay. Bodies must not be kept.
// Damage is a *file.Damage.
func Open(dir string, opts Options, replay func(Position, []byte) error) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := file.Clean(dir); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, opts: opts, failed: make(chan struct{}), files: map[int]*os.File{}}
	if err := l.openMarker(); err != nil {
		return nil, err
	}
	if err := l.load(replay); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	l.next = newGroup()
	return l, nil
}

// openMarker opens the marker, or makes it where there is no log yet.
func (l *Log) openMarker() (err error) {
	path := filepath.Join(l.dir, markerFile)
	l.marker, err = openMarker(path, l.opts.Kind)
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	numbers, err := segments(l.dir)
	if err != nil {
		return err
	}
	if len(numbers) > 0 || l.opts.Exists {
		return &file.Damage{Path: path, Offset: -1, What: "is missing", Repair: "makes it anew from the segments that are there"}
	}
	p := plate{magic: markerMagic, kind: l.opts.Kind, id: rand.Uint64(), flags: flagClean, first: 1}
	if err := file.Replace(path, p.append(nil), !l.opts.NoSync); err != nil {
		return err
	}
	if !l.opts.NoSync {
		if err := file.SyncDir(l.dir); err != nil {
			return err
		}
	}
	l.marker, err = openMarker(path, l.opts.Kind)
	return err
}

// load replays the segments, cuts off a torn tail, and makes ready for what is appended.
func (l *Log) load(replay func(Position, []byte) error) error {
	l.id, l.repaired = l.marker.id, l.marker.flags&flagRepaired != 0
	if err := l.dropBefore(max(l.opts.From, int(l.marker.first))); err != nil {
		return err
	}
	s := survey{dir: l.dir, kind: l.opts.Kind, marker: &l.marker.plate, visit: replay, peek: l.opts.Peek}
	if err := s.run(); err != nil {
		return err
	}
	if len(s.damage) > 0 {
		return &s.damage[0]
	}
	l.last = &segment{number: max(int(l.marker.last), int(l.marker.first)-1)}
	for _, g := range s.segments {
		if err := l.adopt(g); err != nil {
			return err
		}
	}
	if !l.last.made {
		l.beginSegment(l.last.number + 1)
	}
	l.applied = Position{l.last.number, l.last.end}
	return nil
}

// adopt opens a segment that was read. What is torn of it goes; what the marker does not know yet can be seen from now on.
func (l *Log) adopt(g *scan) error {
	if g.torn != nil {
		slog.Warn("a log has a torn end, which was never acknowledged; it is kept beside the log",
			"path", g.path, "offset", g.torn.from, "bytes", g.size-g.torn.from)
		if err := cutTorn(l.dir, g); err != nil {
			return err
		}
		if g.torn.from == 0 { // it has not even a plate
			return nil
		}
	}
	f, err := os.OpenFile(g.path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	l.files[g.number] = f
	l.last = &segment{number: g.number, plate: g.plate, seed: seedOf(l.id, g.number), end: g.end, sum: g.sum, made: true}
	if m := &l.marker.plate; g.number < int(m.last) || g.number == int(m.last) && g.end == int64(m.end) {
		return nil
	}
	if !l.opts.NoSync {
		err = errors.Join(f.Sync(), file.SyncDir(l.dir))
	}
	return errors.Join(err, l.marker.reach(Position{g.number, g.end}, g.sum, l.opts.NoSync))
}

// Roll begins a new segment, unless nothing is in the last one, and returns its number. What was appended before lies in those
// before it.
func (l *Log) Roll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.end > plateSize {
		l.beginSegment(l.last.number + 1)
	}
	return l.last.number
}

// beginSegment has appends go to a new segment. The caller holds mu, or is the only user.
func (l *Log) beginSegment(number int) {
	before := l.last
	p := plate{magic: segmentMagic, kind: l.opts.Kind, id: l.id, first: uint64(number)}
	if before.end > 0 {
		p.last, p.end, p.sum = uint64(before.number), uint64(before.end), before.sum
	}
	l.last = &segment{number: number, plate: p, seed: seedOf(l.id, number), end: plateSize, sum: p.running()}
}

// End is where the next frame will lie.
func (l *Log) End() Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Position{l.last.number, l.last.end}
}

// First is the first segment that is there.
func (l *Log) First() int {
	first := l.End().Segment
	l.filesMu.RLock()
	defer l.filesMu.RUnlock()
	for n := range l.files {
		first = min(first, n)
	}
	return first
}

// Applied reports whether the callbacks of all frames before a segment have returned, but for the one that asks.
func (l *Log) Applied(before int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.applied.Segment >= before || l.last.number < before {
		return l.applied.Segment >= before
	}
	return uint64(l.applied.Segment) == l.last.plate.last && uint64(l.applied.Offset) == l.last.plate.end
}

// RemoveBefore removes the segments before one.
func (l *Log) RemoveBefore(number int) error {
	return l.dropBefore(number)
}

func (l *Log) dropBefore(number int) error {
	if err := l.marker.begin(number, l.opts.NoSync); err != nil {
		return err
	}
	numbers, err := segments(l.dir)
	if err != nil {
		return err
	}
	l.filesMu.Lock()
	defer l.filesMu.Unlock()
	for _, n := range numbers {
		if n >= number {
			continue
		}
		if f := l.files[n]; f != nil {
			delete(l.files, n)
			err = errors.Join(err, f.Close())
		}
		err = errors.Join(err, os.Remove(segmentPath(l.dir, n)))
	}
	return err
}

// ReadAt reads bytes of a segment as they are, for a store that knows their checksum. The offset is in the segment.
func (l *Log) ReadAt(at Position, b []byte) error {
	l.filesMu.RLock()
	defer l.filesMu.RUnlock()
	f := l.files[at.Segment]
	if f == nil {
		return fmt.Errorf("%s: %w", segmentPath(l.dir, at.Segment), os.ErrNotExist)
	}
	if n, err := f.ReadAt(b, at.Offset); n < len(b) {
		return &file.Damage{Path: f.Name(), Offset: at.Offset, What: fmt.Sprintf("cannot be read: %v", err)}
	}
	return nil
}

// Read reads a frame's body, of which the length is known, and verifies it.
func (l *Log) Read(at Position, length int) ([]byte, error) {
	b := make([]byte, FrameHead+length)
	if err := l.ReadAt(at, b); err != nil {
		return nil, err
	}
	h, ok := parseHead(b, seedOf(l.id, at.Segment), at.Offset)
	if !ok || h.length != length || h.body != checksum(b[FrameHead:]) {
		return nil, l.Damage(at, "frame fails its checksum")
	}
	return b[FrameHead:], nil
}

// Damage names a place in the log.
func (l *Log) Damage(at Position, what string) *file.Damage {
	return &file.Damage{Path: segmentPath(l.dir, at.Segment), Offset: at.Offset, What: what}
}

// Repaired reports whether frames were lost to damage once: what the others refer to may be missing.
func (l *Log) Repaired() bool { return l.repaired }

// Failed is closed when nothing can be appended any more, after a write or a sync that failed: only reading the log anew tells what
// it holds. Reads go on.
func (l *Log) Failed() <-chan struct{} { return l.failed }

// Drain waits until all that was appended is on disk, or refused, and its callbacks have returned. Nothing must be appended meanwhile.
func (l *Log) Drain() { l.running.Wait() }

// Close ends the log once what was appended is on disk.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.err == nil {
		l.err = ErrClosed
	}
	l.mu.Unlock()
	l.running.Wait()
	l.mu.Lock()
	clean := l.err == ErrClosed //nolint:errorlint // a failure wraps it
	l.mu.Unlock()
	var err error
	if clean {
		err = l.marker.close()
	}
	return errors.Join(err, l.closeFiles())
}

func (l *Log) closeFiles() error {
	l.filesMu.Lock()
	defer l.filesMu.Unlock()
	var errs []error
	for _, f := range l.files {
		errs = append(errs, f.Close())
	}
	clear(l.files)
	return errors.Join(append(errs, l.marker.release())...)
}
