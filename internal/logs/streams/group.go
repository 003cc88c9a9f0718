package streams

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/wal"
)

// group is one log group: its log, and an index of its streams' batches in it.
type group struct {
	id  int
	dir string
	log *wal.Log

	mu      sync.RWMutex
	meta    Group
	streams map[string]*stream
	bytes   int64              // of all events
	pending map[string]pending // streams that queued records will create or delete
	closed  bool
}

// pending is a stream's state once all queued records are on disk.
type pending struct {
	records int
	exists  bool
}

// stream is one log stream.
type stream struct {
	Stream
	batches []place // in the order in which they were written
}

// place is a batch's place in the log and the times that it covers.
type place struct {
	at    wal.Position
	size  int
	first int64
	last  int64
}

// bytes returns the size of the batch's events.
func (p place) bytes() int64 { return int64(p.size - headSize) }

func (s *stream) bytes() (sum int64) {
	for _, b := range s.batches {
		sum += b.bytes()
	}
	return sum
}

const logKind = "streams"

// openGroup reads a group's description and the heads of its records.
func openGroup(dir string, id int, flushed func(took time.Duration)) (*group, error) {
	g := &group{id: id, dir: dir, streams: map[string]*stream{}, pending: map[string]pending{}}
	if err := readMeta(dir, &g.meta); err != nil {
		return nil, err
	}
	options := wal.Options{
		Kind:   logKind,
		Exists: true,
		Peek:   headSize + maxName,
		Resume: true, // the index only holds what is on disk

		Flushed: flushed,
	}
	var err error
	g.log, err = wal.Open(dir, options, func(at wal.Position, b []byte) error {
		h, err := parseHead(b)
		if err != nil { // Peek leaves bodies unverified, so this may be damage
			return &file.Damage{
				Path:   filepath.Join(dir, fmt.Sprintf("%09d.log", at.Segment)),
				Offset: at.Offset,
				What:   "frame fails its checksum",
			}
		}
		g.index(at, &h)
		return nil
	})
	return g, err
}

// index adds a record to the index. The caller holds mu, or is the only user.
func (g *group) index(at wal.Position, h *head) {
	switch h.kind {
	case streamDeleted:
		if s := g.streams[h.name]; s != nil {
			g.bytes -= s.bytes()
		}
		delete(g.streams, h.name)
	case streamCreated:
		if g.streams[h.name] == nil { // keepStreams may have written it behind the stream's first events
			g.streams[h.name] = &stream{Stream: Stream{Name: h.name, CreatedAt: h.at}}
		}
	case eventBatch:
		s := g.streams[h.name]
		if s == nil { // the segment that created it has expired
			s = &stream{Stream: Stream{Name: h.name, CreatedAt: h.first}}
			g.streams[h.name] = s
		}
		if s.First == 0 || h.first < s.First {
			s.First = h.first
		}
		s.Last = max(s.Last, h.last)
		s.LastIngestion = h.at
		b := place{at, headSize + h.length, h.first, h.last}
		g.bytes += b.bytes()
		s.batches = append(s.batches, b)
	}
}

func (g *group) describe() Group {
	g.mu.RLock()
	defer g.mu.RUnlock()
	meta := g.meta
	meta.Bytes = g.bytes
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
	return g.append(record{Kind: streamCreated, Stream: name, At: now})
}

func (g *group) deleteStream(name string) error {
	if !g.has(name) {
		return ErrNoStream
	}
	return g.append(record{Kind: streamDeleted, Stream: name})
}

// append writes a record. Concurrent appends share a sync.
func (g *group) append(r record) error {
	if size := r.size(); size > maxRecord || len(r.Stream) > maxName {
		return fmt.Errorf("streams: a record of %d bytes is too large", size)
	}
	h := r.head()
	g.mu.Lock()
	if err := g.checkQueued(&r); err != nil {
		g.mu.Unlock()
		return err
	}
	if g.log.End().Offset > maxSegment {
		g.log.Roll()
	}
	_, written := g.log.Append(r.append, func(at wal.Position, err error) { g.written(at, &h, err) })
	g.mu.Unlock()
	return written.Wait()
}

// checkQueued refuses a record that makes no sense after the records queued before it. The caller holds mu.
func (g *group) checkQueued(r *record) error {
	if g.closed {
		return ErrNoGroup // another call deleted it
	}
	if err := g.log.Stalled(); err != nil {
		return err
	}
	c, ok := g.pending[r.Stream]
	if !ok {
		c.exists = g.streams[r.Stream] != nil
	}
	switch {
	case r.Kind == streamCreated && c.exists:
		return ErrExists
	case r.Kind != streamCreated && !c.exists:
		return ErrNoStream
	case r.Kind != eventBatch:
		g.pending[r.Stream] = pending{c.records + 1, r.Kind == streamCreated}
	}
	return nil
}

// written is called with a record's outcome. Readers only see what is on disk.
func (g *group) written(at wal.Position, h *head, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.kind != eventBatch {
		if c := g.pending[h.name]; c.records > 1 {
			g.pending[h.name] = pending{c.records - 1, c.exists}
		} else {
			delete(g.pending, h.name)
		}
	}
	if err == nil {
		g.index(at, h)
	}
}

func (g *group) close() error {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	return g.log.Close()
}

const day = 24 * 60 * 60 * 1000

// expiry returns the time before which events have expired, or 0 if they never expire.
func (g *group) expiry(now int64) int64 {
	if g.meta.RetentionDays == 0 {
		return 0
	}
	return now - int64(g.meta.RetentionDays)*day
}

// sweep removes segments whose events have all expired, oldest first: a later segment may hold the deletion of a stream in an earlier one.
// The current segment stays.
func (g *group) sweep(now int64) error {
	for {
		n, kept, err := g.forgetOldest(now)
		if err != nil || n == 0 {
			return err
		}
		if err := kept.Wait(); err != nil {
			return err
		}
		if err := g.log.RemoveBefore(n + 1); err != nil {
			return err
		}
	}
}

// forgetOldest drops the oldest segment from the index if all of it has expired, and returns its number, otherwise 0. The caller may
// remove the segment once kept is on disk: records of streams that only this segment created.
func (g *group) forgetOldest(now int64) (number int, kept *wal.Group, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := g.expiry(now)
	if before == 0 || g.closed || g.log.Stalled() != nil || len(g.pending) > 0 { // a stream whose deletion is queued must not be kept
		return 0, nil, nil
	}
	oldest := g.log.First()
	current := g.log.End().Segment
	if oldest == current || !g.log.Applied(current) { // a queued record of an earlier segment may not have expired
		return 0, nil, nil
	}
	for _, s := range g.streams {
		if slices.ContainsFunc(s.batches, func(b place) bool { return b.at.Segment == oldest && b.last >= before }) {
			return 0, nil, nil
		}
	}
	for _, s := range g.streams {
		held := s.bytes()
		s.batches = slices.DeleteFunc(s.batches, func(b place) bool { return b.at.Segment == oldest })
		g.bytes -= held - s.bytes()
	}
	return oldest, g.keepStreams(), nil
}

// keepStreams rewrites the records of empty streams, because the segment that created them will be removed. The caller holds mu.
func (g *group) keepStreams() (kept *wal.Group) {
	for _, name := range slices.Sorted(maps.Keys(g.streams)) {
		if s := g.streams[name]; len(s.batches) == 0 {
			r := record{Kind: streamCreated, Stream: name, At: s.CreatedAt}
			_, kept = g.log.Append(r.append, nil)
		}
	}
	return kept
}

const metaFile = "group.json"

func writeMeta(dir string, meta Group) error {
	return errors.Join(replaceDescription(dir, meta), file.SyncDir(dir))
}

// replaceDescription is writeMeta without the directory's sync.
func replaceDescription(dir string, meta Group) error {
	return file.WriteSealed(filepath.Join(dir, metaFile), meta, true)
}

// readMeta reads a group's description, which exists as long as the group.
func readMeta(dir string, meta *Group) error {
	path := filepath.Join(dir, metaFile)
	err := file.ReadSealed(path, meta)
	if errors.Is(err, os.ErrNotExist) {
		return &file.Damage{Path: path, Offset: -1, What: "is missing"}
	}
	return err
}
