package wal

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/pintle/pintle/internal/file"
)

// Group is a batch of frames that one sync makes durable.
type Group struct {
	writes []write
	then   []callback
	behind *Group // refused together with this one
	writer *Log   // which whoever waits makes write the group; nil if a flusher does
	done   chan struct{}
	err    error // counts once done is closed
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

// Wait returns once the group, and everything appended before it, is on disk. A nil group has nothing to wait for.
func (g *Group) Wait() error {
	if g == nil {
		return nil
	}
	if g.writer != nil {
		g.writer.writeQueued()
	}
	<-g.done
	return g.err
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
	g := &Group{done: make(chan struct{}), err: err}
	close(g.done)
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
		failed = l.write(g)
	}
	l.answer(g, failed)
	return true
}

// write writes a group. Each segment is on disk before the next one is written.
func (l *Log) write(g *Group) error {
	if err := l.marker.dirty(l.opts.NoSync); err != nil {
		return l.fail(err)
	}
	for i := range g.writes {
		w := &g.writes[i]
		f, err := l.fileOf(w.segment)
		if err == nil {
			_, err = f.WriteAt(w.b, w.at)
		}
		if err != nil {
			return l.takeBack(g, i, err)
		}
		if err := l.sync(f, w.segment); err != nil {
			return l.fail(err)
		}
		end := Position{w.segment.number, w.at + int64(len(w.b))}
		if err := l.marker.reach(end, w.sum, l.opts.NoSync); err != nil {
			return l.fail(err)
		}
	}
	return nil
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
	if err := f.Sync(); err != nil || s.made {
		return err
	}
	s.made = true
	return file.SyncDir(l.dir)
}

// takeBack undoes a failed write if the store can carry on without it and none of the group is on disk. Refused frames must not show
// up behind the next write. Groups queued behind this one are refused too, because their offsets assume it.
func (l *Log) takeBack(g *Group, written int, err error) error {
	w := &g.writes[written]
	if !l.opts.Resume || written > 0 {
		return l.fail(err)
	}
	if cut := l.cut(w); cut != nil {
		return l.fail(errors.Join(err, cut))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w.segment.end, w.segment.sum = max(w.at, plateSize), w.before
	l.last = w.segment
	g.behind, l.next = l.next, l.newGroup()
	return err
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
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// fail stops the log: after a failed write we cannot know what it holds without reading it again.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	first := l.err == nil || l.err == ErrClosed //nolint:errorlint // a failure wraps it
	if first {
		l.err = fmt.Errorf("%w: %w", ErrClosed, err)
		close(l.failed)
	}
	err = l.err
	l.mu.Unlock()
	if first && l.opts.Failed != nil {
		l.opts.Failed(err)
	}
	return err
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
		g.err = err
		l.recycle(g)
		close(g.done)
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
