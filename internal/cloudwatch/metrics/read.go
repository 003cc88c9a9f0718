package metrics

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// Query asks for a metric's points.
type Query struct {
	Metric Metric
	// Unit narrows it down to what was reported in one unit; with "", each unit has points of its own.
	Unit string
	// Points are for Period seconds each: [Start, Start+Period), and so on before End. Of data that has
	// been rolled up, whole steps alone count: Start should be at a minute, or at a Period of less.
	Start, End, Period int64
}

// Point is what was reported in one period.
type Point struct {
	At   int64
	Unit string
	Set
}

// Read returns the points that there are, in order of time, then of unit.
func (s *Store) Read(q Query) ([]Point, error) {
	t := tierFor(q.Start, q.Period)
	start := max(q.Start, t.oldest(s.opts.Now().Unix()))
	s.blocksMu.RLock() // so that a flush does not move what is read
	defer s.blocksMu.RUnlock()
	wanted, points := s.readHeads(q, t, start)
	for _, one := range wanted {
		for _, b := range s.blocks {
			if b.Step != t.step || b.Last < start || b.First >= q.End {
				continue
			}
			if err := b.read(one.id, func(b bin) { points.add(one.unit, b, start) }); err != nil {
				return nil, err
			}
		}
	}
	return points.sorted(), nil
}

// readHeads returns the series that a query is for, and what is in memory of them.
func (s *Store) readHeads(q Query, t tier, start int64) (wanted []*series, p *points) {
	p = &points{q: q, at: map[pointKey]*Set{}}
	s.mu.RLock()
	defer s.mu.RUnlock()
	m := s.metrics[q.Metric.Key()]
	if m == nil {
		return nil, p
	}
	for _, one := range m.series {
		if q.Unit != "" && q.Unit != one.unit {
			continue
		}
		wanted = append(wanted, one)
		for _, h := range []*head{s.frozen, s.head} {
			if h == nil {
				continue
			}
			for _, b := range h.within(one.id, start, q.End) {
				if b.fine || t.step > 1 {
					b.at = floor(b.at, t.step)
					p.add(one.unit, b, q.Start)
				}
			}
		}
	}
	return wanted, p
}

// tierFor is the coarsest tier whose steps make up the periods.
func tierFor(start, period int64) tier {
	for i := len(tiers) - 1; i > 0; i-- {
		if start%tiers[i].step == 0 && period%tiers[i].step == 0 {
			return tiers[i]
		}
	}
	return tiers[0]
}

// Within narrows a range down to where points of a period can be: as far back as they are kept, and a
// day ahead. Whoever makes something of every period in a range bounds it so.
func (s *Store) Within(start, end time.Time, period time.Duration) (time.Time, time.Time) {
	now := s.opts.Now()
	oldest := now.Add(-tierFor(0, int64(period/time.Second)).keep)
	if start.Before(oldest) {
		start = oldest
	}
	if latest := now.Add(day); end.After(latest) {
		end = latest
	}
	return start, end
}

type pointKey struct {
	at   int64
	unit string
}

// points gathers bins into points.
type points struct {
	q  Query
	at map[pointKey]*Set
	// The point of the bin before, which is mostly that of the next one too.
	last pointKey
	set  *Set
}

func (p *points) add(unit string, b bin, start int64) {
	if b.at < start || b.at < p.q.Start || b.at >= p.q.End {
		return
	}
	k := pointKey{p.q.Start + floor(b.at-p.q.Start, p.q.Period), unit}
	if p.set == nil || k != p.last {
		if p.last, p.set = k, p.at[k]; p.set == nil {
			p.set = new(Set)
			p.at[k] = p.set
		}
	}
	p.set.Add(b.Set)
}

func (p *points) sorted() []Point {
	out := make([]Point, 0, len(p.at))
	for k, set := range p.at {
		out = append(out, Point{k.at, k.unit, *set})
	}
	slices.SortFunc(out, func(a, b Point) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return strings.Compare(a.Unit, b.Unit)
	})
	return out
}

// listed is how long after its last report a metric is listed: API_ListMetrics.
const listed = 14 * 24 * time.Hour

// Metrics returns the metrics behind a key, in the order of their keys, that keep wants and that were
// reported within two weeks, or since the time given. There are at most limit; more reports whether more
// would follow.
func (s *Store) Metrics(after string, since int64, limit int, keep func(*Metric) bool) (found []Metric, more bool) {
	since = max(since, s.opts.Now().Add(-listed).Unix())
	all := s.byKey()
	s.mu.RLock()
	defer s.mu.RUnlock()
	from := sort.Search(len(all), func(i int) bool { return all[i].key > after })
	for _, m := range all[from:] {
		if m.last < since || !keep(&m.Metric) {
			continue
		}
		if len(found) == limit {
			return found, true
		}
		found = append(found, m.Metric)
	}
	return found, false
}

// byKey is every metric in the order of keys. It is sorted once for all that are there.
func (s *Store) byKey() []*metricState {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted == nil {
		s.sorted = make([]*metricState, 0, len(s.metrics))
		for _, m := range s.metrics {
			s.sorted = append(s.sorted, m)
		}
		slices.SortFunc(s.sorted, func(a, b *metricState) int { return strings.Compare(a.key, b.key) })
	}
	return s.sorted
}
