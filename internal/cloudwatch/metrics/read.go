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
	// Unit limits the query to one unit. With "", each unit gets its own points.
	Unit string
	// Points cover Period seconds each: [Start, Start+Period), and so on before End. Data that has been rolled
	// up counts only in whole steps, so Start should be at a minute, or at a multiple of Period if that is shorter.
	Start, End, Period int64
}

// Point is what was reported in one period.
type Point struct {
	At   int64
	Unit string
	Set
}

// Read returns the points that have data, ordered by time, then by unit.
func (s *Store) Read(q Query) ([]Point, error) {
	t := tierFor(q.Start, q.Period)
	start := max(q.Start, t.oldest(s.opts.Now().Unix()))
	from, to := start, q.End
	if t.step == 1 { // whole minutes, to know whether they have seconds
		from = floor(start, minute)
		to = floor(q.End+minute-1, minute)
	}
	s.blocksMu.RLock() // so that a flush doesn't move data from the head into blocks meanwhile
	defer s.blocksMu.RUnlock()
	wanted, points := s.readHeads(q, t, from, to)
	for _, one := range wanted {
		for _, b := range s.blocks {
			if b.Step != t.step && !(t.step == 1 && b.Step == minute) || b.Last < from || b.First >= to {
				continue
			}
			if err := b.read(one.id, func(b bin) { points.take(one.unit, b, t, start) }); err != nil {
				return nil, err
			}
		}
	}
	points.addMinutes(start)
	return points.sorted(), nil
}

// readHeads returns the series that a query asks for, and their points in memory.
func (s *Store) readHeads(q Query, t tier, from, to int64) (wanted []*series, p *points) {
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
			for _, b := range h.within(one.id, from, to) {
				b.at = floor(b.at, t.step)
				p.take(one.unit, b, t, q.Start)
			}
		}
	}
	return wanted, p
}

// tierFor returns the coarsest tier whose steps align with the periods.
func tierFor(start, period int64) tier {
	for i := len(tiers) - 1; i > 0; i-- {
		if start%tiers[i].step == 0 && period%tiers[i].step == 0 {
			return tiers[i]
		}
	}
	return tiers[0]
}

// Within limits a range to where points of a period can be: as far back as they are kept, and a day ahead. Callers
// that allocate something for every period need this bound.
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
	// The point of the previous bin, which is mostly that of the next one too.
	last pointKey
	set  *Set
	// seconds has the minutes in which something was reported by the second, and minutes what was reported by the minute, for a query
	// by the second. noted is the last of seconds: bins come in order, so that most are of the same minute as the one before.
	seconds map[pointKey]bool
	noted   pointKey
	minutes []minuteBin
}

// minuteBin is what a series has for a minute.
type minuteBin struct {
	unit string
	bin
}

const minute = 60

// take adds a bin of a tier. For a query by the second it puts those of minutes aside.
func (p *points) take(unit string, b bin, t tier, start int64) {
	switch {
	case t.step > 1:
		p.add(unit, b, start)
	case b.fine:
		p.note(pointKey{floor(b.at, minute), unit})
		p.add(unit, b, start)
	default:
		p.minutes = append(p.minutes, minuteBin{unit, b})
	}
}

// note keeps that a minute has seconds.
func (p *points) note(k pointKey) {
	if p.seconds != nil && k == p.noted {
		return
	}
	if p.seconds == nil {
		p.seconds = map[pointKey]bool{}
	}
	p.seconds[k], p.noted = true, k
}

// addMinutes adds the minutes in which nothing was reported by the second, at their beginning: so CloudWatch answers a short period for a
// metric of standard resolution.
func (p *points) addMinutes(start int64) {
	for _, b := range p.minutes {
		if !p.seconds[pointKey{b.at, b.unit}] {
			p.add(b.unit, b.bin, start)
		}
	}
}

func (p *points) add(unit string, b bin, start int64) {
	if b.at < start || b.at < p.q.Start || b.at >= p.q.End {
		return
	}
	k := pointKey{p.q.Start + floor(b.at-p.q.Start, p.q.Period), unit}
	if p.set == nil || k != p.last {
		p.last = k
		p.set = p.at[k]
		if p.set == nil {
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

// listedFor is how long after its last report a metric is listed: API_ListMetrics.
const listedFor = 14 * 24 * time.Hour

// Metrics returns at most limit metrics after a key, in the order of their keys. They satisfy keep and were reported
// within two weeks and not before since. more reports whether there are more than limit.
func (s *Store) Metrics(after string, since int64, limit int, keep func(*Metric) bool) (found []Metric, more bool) {
	since = max(since, s.opts.Now().Add(-listedFor).Unix())
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

// byKey returns all metrics in the order of their keys. It sorts them only after metrics were added or forgotten.
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
