package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
)

// read collects a range of events. It reads the batches by time, and stops once no remaining batch can hold an event that belongs
// before those found. A writer waits for at most one batch.
func (g *group) read(ctx context.Context, r Range) (events []Event, more bool, err error) {
	g.mu.RLock()
	places, err := g.candidates(r)
	g.mu.RUnlock()
	if err != nil {
		return nil, false, err
	}
	var found []Event
	for i, p := range places {
		if len(found) > r.Limit && isSettled(found, r, places[i:]) {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		batch, err := g.batch(p)
		if err != nil {
			return nil, false, err
		}
		for _, e := range batch {
			if err := ctx.Err(); err != nil { // Keep may take long, and its caller may have left
				return nil, false, err
			}
			if r.wants(e) {
				found = append(found, e)
			}
		}
		sortEvents(found, r.Backward)
	}
	if len(found) > r.Limit {
		return found[:r.Limit], true, nil
	}
	return found, false, nil
}

// Batch is some events of one stream, which were written together.
type Batch struct {
	Newest int64 // the time of its last event
	Events []Event
}

// Batches reads a group's events from start to end, both inclusive, batch by batch, the one with the newest event first. Nothing is
// locked while its caller looks at a batch.
func (s *Store) Batches(ctx context.Context, groupName string, start, end int64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		g, err := s.group(groupName)
		if err != nil {
			yield(Batch{}, err)
			return
		}
		r := Range{Start: start, End: end, Backward: true}
		g.mu.RLock()
		places, err := g.candidates(r)
		g.mu.RUnlock()
		for _, p := range places {
			var events []Event
			if err = ctx.Err(); err == nil {
				events, err = g.batch(p)
			}
			if err != nil {
				break
			}
			events = slices.DeleteFunc(events, func(e Event) bool { return !r.wants(e) })
			if !yield(Batch{p.last, events}, nil) {
				return
			}
		}
		if err != nil {
			yield(Batch{}, err)
		}
	}
}

// candidates lists the batches that may hold wanted events, in reading order.
func (g *group) candidates(r Range) ([]place, error) {
	var out []place
	names := r.Streams
	if names == nil {
		names = slices.Sorted(maps.Keys(g.streams))
	}
	start, end := r.bounds()
	for _, name := range names {
		s := g.streams[name]
		if s == nil {
			return nil, fmt.Errorf("%w: %s", ErrNoStream, name)
		}
		for _, b := range s.batches {
			if b.last >= start && b.first <= end {
				out = append(out, b)
			}
		}
	}
	slices.SortFunc(out, func(a, b place) int {
		if r.Backward {
			return cmp.Compare(b.last, a.last)
		}
		return cmp.Compare(a.first, b.first)
	})
	return out, nil
}

// bounds returns the range's times, narrowed by the events in After and Before.
func (r *Range) bounds() (start, end int64) {
	start, end = r.Start, r.End
	if end == 0 {
		end = 1<<63 - 1
	}
	if r.After != nil {
		start = max(start, r.After.Timestamp)
	}
	if r.Before != nil {
		end = min(end, r.Before.Timestamp)
	}
	return start, end
}

func (r *Range) wants(e Event) bool {
	start, end := r.bounds()
	if e.Timestamp < start || e.Timestamp > end {
		return false
	}
	if r.After != nil && e.ID.Compare(*r.After) <= 0 || r.Before != nil && e.ID.Compare(*r.Before) >= 0 {
		return false
	}
	return r.Keep == nil || r.Keep(e)
}

// isSettled reports whether the first Limit events are final: no remaining batch overlaps them.
func isSettled(found []Event, r Range, left []place) bool {
	edge := found[r.Limit].Timestamp
	if r.Backward {
		return left[0].last < edge
	}
	return left[0].first > edge
}

func sortEvents(events []Event, backward bool) {
	slices.SortFunc(events, func(a, b Event) int {
		if backward {
			return b.ID.Compare(a.ID)
		}
		return a.ID.Compare(b.ID)
	})
}

// batch reads the events of one batch, or none if they have expired meanwhile.
func (g *group) batch(p place) ([]Event, error) {
	b, err := g.log.Read(p.at, p.size)
	if errors.Is(err, os.ErrNotExist) {
		g.mu.RLock()
		defer g.mu.RUnlock()
		if g.closed {
			return nil, ErrNoGroup
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("streams: %w", err)
	}
	r, err := parseRecord(b)
	if err != nil {
		return nil, err
	}
	for i := range r.Events {
		r.Events[i].ID = ID{r.Events[i].Timestamp, p.at.Segment, p.at.Offset, i}
	}
	return r.Events, nil
}
