package wal

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/pintle/pintle/internal/file"
)

// Group is what goes to disk together, with one sync.
type Group struct {
	writes []write
	then   []callback
	behind *Group // refused together with this one
	done   chan struct{}
	err    error // counts once done is closed
}

// write is what goes to one segment.
type write struct {
	segment *segment
	at      int64
	b       []byte
	before  uint32 // the running checksum ahead of it
	sum     uint32 // and behind it
}

type callback struct {
	at, end Position
	do      func(Position, error)
}

// maxSpare is how large a buffer is kept for the next group.
const maxSpare = 4 << 20

func newGroup() *Group { return &Group{done: make(chan struct{})} }

// Wait waits until the group is on disk, and all that was appended before it. There is nothing to wait for with a nil group.
func (g *Group) Wait() error {
	if g == nil {
		return nil
	}
	<-g.done
	return g.err
}

// Append puts a frame on its way to disk, whose body fill appends to what it is given. Where then is not nil it is called once the
// frame is on disk, or was refused: one after the other, in the order of the log, before any Wait for the group returns.
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
	if !l.flushing {
		l.flushing = true
		l.running.Go(l.flush)
	}
	return at, g
}

// newWrite begins what goes to a segment. A new one begins with its plate.
func (l *Log) newWrite(s *segment) write {
	w := write{segment: s, at: s.end, b: l.spare[:0], before: s.sum}
	l.spare = nil
	if s.end == plateSize {
		w.at, w.b = 0, s.plate.append(w.b)
	}
	return w
}

// Refused is a group of which nothing was written.
func Refused(err error) *Group {
	g := newGroup()
	g.err = err
	close(g.done)
	return g
}

// flush writes groups until there is nothing to write.
func (l *Log) flush() {
	for {
		runtime.Gosched() // whoever was woken by the group before may append once more, and share the next sync
		l.mu.Lock()
		g, failed := l.next, l.err
		if len(g.writes) == 0 {
			l.flushing = false
			l.mu.Unlock()
			return
		}
		l.next = newGroup()
		l.mu.Unlock()
		if failed == ErrClosed { //nolint:errorlint // closing lets through what was appended; a failure wraps it
			failed = nil
		}
		if failed == nil {
			failed = l.write(g)
		}
		l.answer(g, failed)
	}
}

// write writes a group. A segment is on disk before the next one is written.
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

// fileOf is a segment's file, which it makes where there is none yet.
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

// takeBack undoes a write that failed, where the store can go on without it and nothing of the group is on disk: what was refused
// must not come up behind what is written next. What waits behind the group is refused too, since it would lie further on.
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
	g.behind, l.next = l.next, newGroup()
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

// fail ends the log: what it holds cannot be known without reading it.
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

// answer tells all of a group what came of it.
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

// recycle keeps a group's buffer for the next one. Who still has the group needs no more of it.
func (l *Log) recycle(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(g.writes) > 0 && cap(g.writes[0].b) <= maxSpare && l.spare == nil {
		l.spare = g.writes[0].b
	}
	g.writes, g.then = nil, nil
}
