// Package wal keeps a log: segments of checksummed frames, with one sync for everyone who waits. The stores of queues, log streams
// and metrics are built on it, and decide what a frame means. It knows no service, and reads a clock only to say
// how long the disk took.
//
// # Files
//
// A log is a directory with segments (000000001.log, …) and a marker. A segment starts with a plate: the kind of log, the log's
// random id, the segment's number, and its predecessor's number, end and running checksum. Frames follow. The checksum of a
// frame's head covers the log's id, the segment, the offset, the length and the body's checksum, so a frame is valid in its own
// place only. The running checksum covers the plate and all heads, and through them every byte. The first frame of each synced
// group is flagged: if that frame is whole, everything before it had been synced.
//
// The marker names the first and the last segment, where the last one ends, and its running checksum. It's written after each sync
// and before anybody is told, without a sync of its own. So a killed process leaves a marker that says exactly what was
// acknowledged. A power failure may leave an older marker, as old as the kernel's last write-back. Starting or removing a segment
// syncs the marker. A clean close is noted in it.
//
// # A disk that can't be written
//
// A failed write or sync never ends a log. With Options.Resume a failed write is cut off again and refused. Otherwise the log stalls: whoever
// waits is told disk.ErrUnwritable, the frames stay in memory, and the log writes them again at the same place until that works. Then it
// goes on. The store refuses changes while Log.Stalled isn't nil, and reads go on from memory.
//
// A failed sync isn't just repeated, because the kernel may have marked the pages as clean, and a second sync would succeed without them.
// Instead all bytes since the last good sync are written again first. They are those of one group, and still in memory. So a stalled group
// is in doubt: it's on disk once the log goes on, and it may be there in part, or not at all, if the process ends before. A torn end of it
// was never acknowledged, as after a kill.
//
// # Damage and torn tails
//
// After a clean close every byte is known, so any difference is damage. Without one, a bad frame is still damage
//
//   - before the end that the marker gives;
//   - if another segment, or the first frame of a later group, follows;
//   - if it is complete but wrong: it doesn't run past the end of the file, and none of its disk sectors is all zero, as sectors
//     are that were never written.
//
// Anything else is a torn tail, which was never acknowledged. Opening cuts it off, keeps it beside the segment (….torn, the last
// few) and logs it. A last segment that the marker doesn't know, and whose plate was never written, is a torn tail too. A segment
// is damaged if it's missing, if its plate isn't the one its successor or the marker expects, or if its length differs from theirs.
// A marker is damaged if it fails its checksum, or is missing beside segments. Opening refuses damage; Check lists and repairs it.
//
// One loss goes unseen: bytes acknowledged shortly before a power failure that were cut off or zeroed, if the failure also lost the
// marker that knew of them.
package wal

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// ErrClosed is what an append gets after the log was closed.
var ErrClosed = errors.New("the log is closed")

// Options say what a log holds and how it is kept.
type Options struct {
	// Kind says what the log holds, in up to eight letters. Opening refuses a log of another kind.
	Kind string
	// Exists says that the log must be there: a missing one is damage.
	Exists bool
	// From is the first segment still needed; those before it are removed, as RemoveBefore does.
	From int
	// Peek limits how many bytes of each body replay gets, except in the last segment. These bytes aren't verified. With 0,
	// everything is read and verified.
	Peek int
	// NoSync gives up durability, also across a kill of the process, for a log that is thrown away.
	NoSync bool
	// Resume says that the store changes nothing until it's on disk, and so can carry on without refused frames. A failed write is
	// then undone if it can be, and whoever waits knows that nothing of it is left.
	Resume bool
	// Flushed, unless nil, is told how long each group took to get onto the disk.
	Flushed func(took time.Duration)
}

// Position is the place of a frame.
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
	last     *segment // takes appends
	next     *Group   // collects them
	applied  Position // frames before this have had their callbacks
	flushing bool
	err      error // why nothing can be appended any more
	stalled  error // why the disk can't be written now
	spare    []byte
	running  sync.WaitGroup // of the flusher
	turn     sync.Mutex     // held while a group is written, and while the log is held for a backup
	writing  sync.Mutex     // held by whoever waits and writes, if there is no flusher
	closing  chan struct{}  // closed when what can't be written now is given up
	giveUp   sync.Once      // closes it

	marker   *marker
	repaired bool
	syncFile func(*os.File) error // tests have it fail

	filesMu sync.RWMutex // read-locked while files are read, so that they stay
	files   map[int]*os.File
	held    int // backups that need the segments, which are removed after them
}

// segment is the segment being written.
type segment struct {
	number int
	plate  plate
	seed   uint32
	end    int64  // including what is still queued
	sum    uint32 // running, of everything before end
	made   bool   // whether its file exists; only the flusher uses it
}

// Open opens the log in a directory, creating it if there is none, and hands all frames to replay, which must not keep the bodies.
// If the log is damaged the error is a *file.Damage.
func Open(dir string, opts Options, replay func(Position, []byte) error) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := file.Clean(dir); err != nil {
		return nil, err
	}
	l := &Log{dir: dir, opts: opts, closing: make(chan struct{}), files: map[int]*os.File{}, syncFile: (*os.File).Sync}
	if err := l.openMarker(); err != nil {
		return nil, err
	}
	if err := l.load(replay); err != nil {
		return nil, errors.Join(err, l.closeFiles())
	}
	l.next = l.newGroup()
	return l, nil
}

// openMarker opens the marker, or creates it for a new log.
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

// load replays the segments, cuts off a torn tail, and gets ready for appends.
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

// adopt opens a segment that was read, without its torn tail, and tells the marker of frames it doesn't know yet.
func (l *Log) adopt(g *scan) error {
	if g.torn != nil {
		slog.Warn("a log has a torn end, which was never acknowledged; it is kept beside the log",
			"path", g.path, "offset", g.torn.from, "bytes", g.size-g.torn.from)
		if err := cutTorn(l.dir, g); err != nil {
			return err
		}
		if g.torn.from == 0 { // not even the plate is there
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

// Roll starts a new segment, unless the last one is empty, and returns its number. Everything appended before is in earlier
// segments.
func (l *Log) Roll() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.end > plateSize {
		l.beginSegment(l.last.number + 1)
	}
	return l.last.number
}

// beginSegment directs appends to a new segment. The caller holds mu, or is the only user.
func (l *Log) beginSegment(number int) {
	before := l.last
	p := plate{magic: segmentMagic, kind: l.opts.Kind, id: l.id, first: uint64(number)}
	if before.end > 0 {
		p.last, p.end, p.sum = uint64(before.number), uint64(before.end), before.sum
	}
	l.last = &segment{number: number, plate: p, seed: seedOf(l.id, number), end: plateSize, sum: p.running()}
}

// End returns where the next frame will go.
func (l *Log) End() Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Position{l.last.number, l.last.end}
}

// First returns the number of the first segment that counts.
func (l *Log) First() int {
	first := l.End().Segment
	l.filesMu.RLock()
	defer l.filesMu.RUnlock()
	for n := range l.files {
		first = min(first, n)
	}
	return max(first, l.marker.begins())
}

// Applied reports whether the callbacks of all frames before a segment have returned, not counting a callback that asks.
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
	if l.held > 0 {
		return nil
	}
	for _, n := range numbers {
		if n >= number {
			continue
		}
		if f := l.files[n]; f != nil {
			delete(l.files, n)
			err = errors.Join(err, f.Close())
		}
		if gone := os.Remove(segmentPath(l.dir, n)); !errors.Is(gone, os.ErrNotExist) { // release may be at it, too
			err = errors.Join(err, gone)
		}
	}
	return err
}

// ReadAt reads raw bytes of a segment, for a store that knows their checksum. The offset counts from the segment's start.
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

// Read reads and verifies a frame's body of known length.
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

// Damage describes damage at a place in the log.
func (l *Log) Damage(at Position, what string) *file.Damage {
	return &file.Damage{Path: segmentPath(l.dir, at.Segment), Offset: at.Offset, What: what}
}

// Repaired reports whether a repair has ever dropped damaged frames. Other frames may refer to those.
func (l *Log) Repaired() bool { return l.repaired }

// Stalled returns why the disk can't be written now, or nil. A store refuses changes meanwhile. Reads go on.
func (l *Log) Stalled() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stalled
}

// Drain waits until every append is on disk or refused, and its callback has returned. Nothing may be appended afterwards: what can't be
// written now is given up.
func (l *Log) Drain() {
	l.giveUp.Do(func() { close(l.closing) })
	l.running.Wait()
	if l.opts.NoSync {
		l.writeQueued()
	}
}

// Close closes the log after writing what was appended.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.err == nil {
		l.err = ErrClosed
	}
	l.mu.Unlock()
	l.Drain()
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
