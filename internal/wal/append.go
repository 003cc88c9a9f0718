package wal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
)

// Group is a batch of frames that one sync makes durable.
type Group struct {
	writes []write
	then   []callback
	behind *Group // refused together with this one
	writer *Log   // which whoever waits makes write the group; nil if a flusher does
	told   bool   // whether done is closed; only the flusher uses it
	done   chan struct{}
	err    error       // counts once done is closed
	late   atomic.Bool // it is on disk after all, although those who waited were told an error
}

// write is the part of a group that goes to one segment.
type write struct {
	segment *segment
	at      int64
	b       []byte
	before  uint32 // the running checksum before it
	sum     uint32 // and after it
}

type callback struct {
	at, end Position
	do      func(Position, error)
}

// maxSpare is the largest buffer that is kept for the next group.
const maxSpare = 4 << 20

// newGroup starts a group that takes appends. Without a sync to share, handing it to a flusher costs more than writing it.
func (l *Log) newGroup() *Group {
	g := &Group{done: make(chan struct{})}
	if l.opts.NoSync {
		g.writer = l
	}
	return g
}

// Wait returns once the group, and everything appended before it, is on disk. After an error that is disk.ErrUnwritable the group may still
// get there. A nil group has nothing to wait for.
func (g *Group) Wait() error {
	if g == nil {
		return nil
	}
	if g.writer != nil {
		g.writer.writeQueued()
	}
	<-g.done
	if g.late.Load() {
		return nil
	}
	return g.err
}

// tell gives the outcome to those who wait for the group. A group in doubt is told of twice.
func (g *Group) tell(err error) {
	if g.told {
		g.late.Store(err == nil)
		return
	}
	g.told, g.err = true, err
	close(g.done)
}

// Append queues a frame for the disk; fill appends its body to the buffer it is given. If then isn't nil, it is called once the frame
// is on disk or refused. These calls come one at a time, in the order of the log, before any Wait for the group returns. Without
// syncs (Options.NoSync), the disk is written, and then is called, when somebody waits for a group, or in Drain and Close.
func (l *Log) Append(fill func([]byte) []byte, then func(Position, error)) (Position, *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return Position{}, Refused(l.err)
	}
	s, g := l.last, l.next
	begins := len(g.writes) == 0 || g.writes[len(g.writes)-1].segment != s
	if begins {
		g.writes = append(g.writes, l.newWrite(s))
	}
	w := &g.writes[len(g.writes)-1]
	before := len(w.b)
	b := appendFrame(w.b, s.seed, s.end, begins, fill)
	if size := len(b) - before - FrameHead; size > MaxBody {
		if begins {
			g.writes = g.writes[:len(g.writes)-1]
		}
		return Position{}, Refused(fmt.Errorf("a frame of %d bytes is too long", size))
	}
	at := Position{s.number, s.end}
	s.sum = chain(s.sum, b[before:])
	s.end += int64(len(b) - before)
	w.b, w.sum = b, s.sum
	g.then = append(g.then, callback{at, Position{s.number, s.end}, then})
	if !l.flushing && !l.opts.NoSync {
		l.flushing = true
		l.running.Go(l.flush)
	}
	return at, g
}

// newWrite starts a write to a segment. A new segment starts with its plate.
func (l *Log) newWrite(s *segment) write {
	w := write{segment: s, at: s.end, b: l.spare[:0], before: s.sum}
	l.spare = nil
	if s.end == plateSize {
		w.at, w.b = 0, s.plate.append(w.b)
	}
	return w
}

// Refused returns a group of which nothing was written.
func Refused(err error) *Group {
	g := &Group{done: make(chan struct{})}
	g.tell(err)
	return g
}

// flush writes groups until none is left. It runs beside those who append.
func (l *Log) flush() {
	for {
		runtime.Gosched() // those woken by the last group may append again, and share the next sync
		if !l.writeNext() {
			return
		}
	}
}

// writeQueued writes, in the goroutine of whoever waits, what is queued.
func (l *Log) writeQueued() {
	l.writing.Lock()
	defer l.writing.Unlock()
	for l.writeNext() {
	}
}

// writeNext writes the next group and answers it, and reports whether there was one. Calls come one at a time.
func (l *Log) writeNext() bool {
	l.mu.Lock()
	g, failed := l.next, l.err
	if !g.told { // all that was in doubt is written
		l.stalled = nil
	}
	if len(g.writes) == 0 {
		l.flushing = false
		l.mu.Unlock()
		return false
	}
	l.next = l.newGroup()
	l.mu.Unlock()
	if failed == ErrClosed { //nolint:errorlint // Close still lets queued frames through; a failure wraps it
		failed = nil
	}
	if failed == nil {
		failed = l.persist(g)
	}
	l.answer(g, failed)
	return true
}

// persist writes a group. If that fails and can't be undone, it tries again until the group is on disk or the log is closed. It writes all
// bytes again, because after a failed sync the kernel may have dropped them.
func (l *Log) persist(g *Group) error {
	if l.opts.Flushed != nil {
		began := time.Now()
		defer func() { l.opts.Flushed(time.Since(began)) }()
	}
	for {
		l.turn.Lock()
		undo, err := l.write(g)
		l.turn.Unlock()
		if err == nil {
			return nil
		}
		err = disk.Unwritable(err)
		if undo != nil && l.opts.Resume && l.takeBack(g, undo) {
			return err
		}
		if l.opts.NoSync || !l.stall(g, err) {
			return l.fail(err)
		}
	}
}

// retryAfter is the pause between two attempts to write.
const retryAfter = 250 * time.Millisecond

// stall tells those who wait that their frames are in doubt, and pauses. It returns false if the log is being closed.
func (l *Log) stall(g *Group, err error) bool {
	l.mu.Lock()
	l.stalled = err
	g.tell(err)
	if len(l.next.writes) > 0 {
		l.next.tell(err)
	}
	l.mu.Unlock()
	pause := time.NewTimer(retryAfter)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-l.closing:
		return false
	}
}

// write writes a group. Each segment is on disk before the next one is written. undo is the write that failed, if nothing else of the group
// may be on disk.
func (l *Log) write(g *Group) (undo *write, err error) {
	if err := l.marker.dirty(l.opts.NoSync); err != nil {
		return &g.writes[0], err
	}
	for i := range g.writes {
		w := &g.writes[i]
		f, err := l.fileOf(w.segment)
		if err == nil {
			_, err = f.WriteAt(w.b, w.at)
		}
		if err != nil && i == 0 {
			return w, err
		}
		if err == nil {
			err = l.sync(f, w.segment)
		}
		if err == nil {
			err = l.marker.reach(Position{w.segment.number, w.at + int64(len(w.b))}, w.sum, l.opts.NoSync)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// fileOf returns a segment's file, and creates it if there is none yet.
func (l *Log) fileOf(s *segment) (*os.File, error) {
	l.filesMu.Lock()
	defer l.filesMu.Unlock()
	if f := l.files[s.number]; f != nil {
		return f, nil
	}
	f, err := os.OpenFile(segmentPath(l.dir, s.number), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		l.files[s.number] = f
	}
	return f, err
}

func (l *Log) sync(f *os.File, s *segment) error {
	if l.opts.NoSync {
		return nil
	}
	if err := l.syncFile(f); err != nil || s.made {
		return err
	}
	s.made = true
	return file.SyncDir(l.dir)
}

// takeBack undoes a failed write, and reports whether it could. Refused frames must not show up behind the next write. Groups queued behind
// this one are refused too, because their offsets assume it.
func (l *Log) takeBack(g *Group, w *write) bool {
	if l.cut(w) != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.segment.end, w.segment.sum = max(w.at, plateSize), w.before
	l.last = w.segment
	g.behind, l.next = l.next, l.newGroup()
	return true
}

// cut removes what may have been written.
func (l *Log) cut(w *write) error {
	l.filesMu.Lock()
	defer l.filesMu.Unlock()
	f := l.files[w.segment.number]
	if f == nil {
		return nil
	}
	if w.at > 0 {
		return f.Truncate(w.at)
	}
	delete(l.files, w.segment.number)
	w.segment.made = false
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// fail stops the log. What it holds is known when it is read again.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil || l.err == ErrClosed { //nolint:errorlint // a failure wraps it
		l.err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return l.err
}

// answer reports a group's outcome to everyone in it.
func (l *Log) answer(g *Group, err error) {
	for ; g != nil; g = g.behind {
		for _, c := range g.then {
			if err == nil {
				l.mu.Lock()
				l.applied = c.end
				l.mu.Unlock()
			}
			if c.do != nil {
				c.do(c.at, err)
			}
		}
		l.recycle(g)
		g.tell(err)
	}
}

// recycle keeps a group's buffer for the next one. Anyone who still holds the group only needs its outcome.
func (l *Log) recycle(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(g.writes) > 0 && cap(g.writes[0].b) <= maxSpare && l.spare == nil {
		l.spare = g.writes[0].b
	}
	g.writes, g.then = nil, nil
}
