package insights

import (
	"cmp"
	"slices"
	"strings"
)

// ordered is the sink that puts rows in order. It holds about twice as many as its limit.
type ordered struct {
	order
	run   *Run
	keeps []string
	kept  []*row
	seen  map[string]*row // by the values that dedup compares
	next  int             // how many rows to hold before the worst are dropped
	worst *row            // rows behind it don't count; nil if there may still be too few
}

func (s *stage) sink(r *Run) sink {
	if s.stats != nil {
		return &grouped{stats: s.stats, run: r, groups: map[string]*group{}}
	}
	return &ordered{order: s.order, run: r, keeps: s.keeps, seen: map[string]*row{}, next: spare}
}

const spare = 1000

func (o *ordered) add(r *row) {
	for _, k := range o.by {
		r.keys = append(r.keys, k.of(r))
	}
	if o.worst != nil && o.compare(o.worst, r) <= 0 {
		return
	}
	if !o.isFirst(r) {
		return
	}
	r.settle(o.keeps)
	if o.kept = append(o.kept, r); len(o.kept) >= o.next {
		o.cut()
		o.next = 2*len(o.kept) + spare
	}
}

// isFirst reports whether dedup keeps a row. Of rows that are alike it keeps the first. Rows without one of the values all stay.
func (o *ordered) isFirst(r *row) bool {
	if o.dedup == nil {
		return true
	}
	values := make([]value, len(o.dedup))
	for i, of := range o.dedup {
		if values[i] = of(r); values[i].kind == missing {
			return true
		}
	}
	r.key = keyOf(values)
	if old := o.seen[r.key]; old != nil {
		if o.compare(old, r) <= 0 {
			return false
		}
		o.run.release(old)
		old.gone = true
	}
	o.seen[r.key] = r
	return true
}

// compare orders rows by the keys, and rows with the same keys as they came.
func (o *ordered) compare(a, b *row) int {
	for i, k := range o.by {
		c := compare(a.keys[i], b.keys[i])
		if k.descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return newer(a, b)
}

// newer orders the newest events first.
func newer(a, b *row) int {
	return cmp.Or(cmp.Compare(b.at, a.at), slices.Compare(b.place[:], a.place[:]))
}

// cut drops the rows beyond the limit.
func (o *ordered) cut() {
	o.kept = slices.DeleteFunc(o.kept, func(r *row) bool { return r.gone })
	slices.SortFunc(o.kept, o.compare)
	if o.limit == 0 || len(o.kept) < o.limit {
		return
	}
	for _, r := range o.kept[o.limit:] {
		o.run.release(r)
		delete(o.seen, r.key)
	}
	clear(o.kept[o.limit:])
	o.kept = o.kept[:o.limit]
	o.worst = o.kept[o.limit-1]
}

func (o *ordered) rows() []*row {
	o.cut()
	for _, r := range o.kept {
		r.keys = nil
	}
	return o.kept
}

// keyOf makes one text of values, so that they can be found by it.
func keyOf(values []value) string {
	var b strings.Builder
	for _, v := range values {
		s := v.String()
		b.WriteByte('0' + byte(min(v.kind, text)))
		b.WriteString(strings.ReplaceAll(s, "\x00", "\x00\x00"))
		b.WriteString("\x00.")
	}
	return b.String()
}
