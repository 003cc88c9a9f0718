package streams

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/pintle/pintle/internal/file"
)

// group is one log group: its segments, and where its streams' batches lie in them.
type group struct {
	dir string

	mu      sync.RWMutex
	meta    Group
	streams map[string]*stream
	files   map[int]*os.File // by number
	current int              // the segment that is written
	size    int64            // of it
	closed  bool

	queueMu  sync.Mutex
	queue    []*pending
	flushing bool
}

// stream is one log stream.
type stream struct {
	Stream
	batches []place // as they were written
}

// place is where a batch lies.
type place struct {
	segment     int
	offset      int64
	size        int
	first, last int64
}

// pending is a record on its way to disk.
type pending struct {
	rec  record
	done chan error
}

// openGroup reads a group's description and the heads of its segments.
func openGroup(dir string) (*group, error) {
	g := &group{dir: dir, streams: map[string]*stream{}, files: map[int]*os.File{}, current: 1}
	if err := file.ReadJSON(filepath.Join(dir, metaFile), &g.meta); err != nil {
		return nil, err
	}
	if err := file.Clean(dir); err != nil {
		return nil, err
	}
	numbers, err := segments(dir)
	if err != nil {
		return nil, err
	}
	for i, n := range numbers {
		if err := g.load(n, i == len(numbers)-1); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	if len(numbers) == 0 {
		return g, g.openSegment(1)
	}
	return g, nil
}

func (g *group) openSegment(number int) error {
	f, err := os.OpenFile(segmentPath(g.dir, number), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	g.files[number], g.current, g.size = f, number, 0
	return file.SyncDir(g.dir)
}

// load indexes one segment, and cuts off what a crash has torn of the last one.
func (g *group) load(number int, last bool) error {
	f, err := os.OpenFile(segmentPath(g.dir, number), os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	g.files[number], g.current = f, number
	g.size, err = scan(f, last, func(h head, stream string, offset int64) { g.index(number, offset, h, stream) })
	if err != nil {
		return err
	}
	if last {
		return f.Truncate(g.size)
	}
	return nil
}

// index notes a record. The caller holds mu, or is the only user.
func (g *group) index(segment int, offset int64, h head, name string) {
	switch h.kind {
	case streamGone:
		delete(g.streams, name)
	case streamMade:
		g.streams[name] = &stream{Stream: Stream{Name: name, CreatedAt: h.at}}
	case eventBatch:
		s := g.streams[name]
		if s == nil { // the segment in which it was made has expired
			s = &stream{Stream: Stream{Name: name, CreatedAt: h.first}}
			g.streams[name] = s
		}
		if s.First == 0 || h.first < s.First {
			s.First = h.first
		}
		s.Last, s.LastIngestion = max(s.Last, h.last), h.at
		s.Bytes += int64(h.length)
		s.batches = append(s.batches, place{segment, offset, headSize + h.length, h.first, h.last})
	}
}

func (g *group) describe() Group {
	g.mu.RLock()
	defer g.mu.RUnlock()
	meta := g.meta
	for _, s := range g.streams {
		meta.Bytes += s.Bytes
	}
	return meta
}

func (g *group) list() []Stream {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var out []Stream
	for _, name := range slices.Sorted(maps.Keys(g.streams)) {
		out = append(out, g.streams[name].Stream)
	}
	return out
}

func (g *group) has(stream string) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.streams[stream] != nil
}

func (g *group) createStream(name string, now int64) error {
	if g.has(name) {
		return ErrExists
	}
	return g.append(record{Kind: streamMade, Stream: name, At: now})
}

func (g *group) deleteStream(name string) error {
	if !g.has(name) {
		return ErrNoStream
	}
	return g.append(record{Kind: streamGone, Stream: name})
}

// append puts a record on disk. Whoever comes while a flush is under way waits for the next, and all
// that wait share it; the one that found none under way flushes for them.
func (g *group) append(r record) error {
	p := &pending{rec: r, done: make(chan error, 1)}
	g.queueMu.Lock()
	g.queue = append(g.queue, p)
	if g.flushing {
		g.queueMu.Unlock()
		return <-p.done
	}
	g.flushing = true
	for len(g.queue) > 0 {
		batch := g.queue
		g.queue = nil
		g.queueMu.Unlock()
		g.flush(batch)
		g.queueMu.Lock()
	}
	g.flushing = false
	g.queueMu.Unlock()
	return <-p.done
}

// flush writes a batch of records with one write and one sync, and answers those who wait.
func (g *group) flush(batch []*pending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var buf []byte
	var heads []head
	var taken []*pending
	for _, p := range batch {
		if err := g.accepts(&p.rec); err != nil {
			p.done <- err
			continue
		}
		b := p.rec.encode()
		h, err := parseHead(b)
		if err != nil {
			p.done <- fmt.Errorf("logstore: a record of %d bytes is too large", len(b))
			continue
		}
		buf, heads, taken = append(buf, b...), append(heads, h), append(taken, p)
	}
	err := g.write(buf)
	offset := g.size - int64(len(buf))
	for i, p := range taken {
		switch {
		case err == nil:
			g.index(g.current, offset, heads[i], p.rec.Stream)
			offset += int64(headSize + heads[i].length)
		case p.rec.Kind == streamMade:
			delete(g.streams, p.rec.Stream) // accepts has noted it
		}
		p.done <- err
	}
}

// accepts refuses a record that another one ahead of it has made impossible.
func (g *group) accepts(r *record) error {
	if g.closed {
		return ErrNoGroup // it was deleted meanwhile
	}
	_, exists := g.streams[r.Stream]
	if r.Kind == streamMade {
		if exists {
			return ErrExists
		}
		g.streams[r.Stream] = &stream{Stream: Stream{Name: r.Stream, CreatedAt: r.At}} // index makes it anew
		return nil
	}
	if !exists {
		return ErrNoStream
	}
	return nil
}

func (g *group) write(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if g.size > maxSegment {
		if err := g.openSegment(g.current + 1); err != nil {
			return err
		}
	}
	f := g.files[g.current]
	_, err := f.WriteAt(b, g.size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil { // what was refused must not come up behind what is written next
		return errors.Join(err, f.Truncate(g.size))
	}
	g.size += int64(len(b))
	return nil
}

func (g *group) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	var errs []error
	for _, f := range g.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

const day = 24 * 60 * 60 * 1000

// expiry is the time before which events are gone; 0 where they never are.
func (g *group) expiry(now int64) int64 {
	if g.meta.RetentionDays == 0 {
		return 0
	}
	return now - int64(g.meta.RetentionDays)*day
}

// sweep removes segments of which all events have expired, from the oldest on: a later one may hold the end of a stream
// that lies in those before it. The current one stays.
func (g *group) sweep(now int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.expiry(now)
	if before == 0 || g.closed {
		return nil
	}
	newest := map[int]int64{}
	for _, s := range g.streams {
		for _, b := range s.batches {
			newest[b.segment] = max(newest[b.segment], b.last)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(g.files)) {
		if n == g.current || newest[n] >= before {
			return nil
		}
		// Streams that were made in it must be known after the next start.
		for _, s := range g.streams {
			s.batches = slices.DeleteFunc(s.batches, func(b place) bool { return b.segment == n })
		}
		if err := g.keepStreams(); err != nil {
			return err
		}
		if err := errors.Join(g.files[n].Close(), os.Remove(segmentPath(g.dir, n))); err != nil {
			return err
		}
		delete(g.files, n)
	}
	return nil
}

// keepStreams writes the streams without any batch left again, since the segment that made them goes.
func (g *group) keepStreams() error {
	var buf []byte
	for _, name := range slices.Sorted(maps.Keys(g.streams)) {
		if s := g.streams[name]; len(s.batches) == 0 {
			r := record{Kind: streamMade, Stream: name, At: s.CreatedAt}
			buf = append(buf, r.encode()...)
		}
	}
	return g.write(buf)
}
