package metrics

import (
	"slices"
	"sort"
)

// bin is a series' data for one second if fine, otherwise for one minute.
type bin struct {
	at   int64 // seconds since 1970
	fine bool
	Set
}

// sample is a bin to be added to its series.
type sample struct {
	series uint32
	bin
}

// head is the data since the last flush. The log has it on disk.
type head struct {
	bins map[uint32][]bin // by series, in order
	size int              // memory, in units of one bin
}

func newHead() *head { return &head{bins: map[uint32][]bin{}} }

// add inserts a sample in order of time, or adds it to the bin of its time.
func (h *head) add(s sample) {
	bins := h.bins[s.series]
	i := len(bins)
	if i > 0 && !bins[i-1].before(&s.bin) {
		i = sort.Search(len(bins), func(i int) bool { return !bins[i].before(&s.bin) })
	}
	if i < len(bins) && bins[i].at == s.at && bins[i].fine == s.fine {
		before := weight(&bins[i].Set)
		bins[i].Add(s.Set)
		h.size += weight(&bins[i].Set) - before
		return
	}
	h.bins[s.series] = slices.Insert(bins, i, s.bin)
	h.size += weight(&s.Set)
}

// weight returns how many bins' worth of memory a set takes.
func weight(s *Set) int { return 1 + len(s.Values)/4 }

func (b *bin) before(o *bin) bool {
	if b.at != o.at {
		return b.at < o.at
	}
	return b.fine && !o.fine
}

// ids returns the head's series, in order.
func (h *head) ids() []uint32 {
	ids := make([]uint32, 0, len(h.bins))
	for id := range h.bins {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// within returns a series' bins with times in [start, end).
func (h *head) within(id uint32, start, end int64) []bin {
	bins := h.bins[id]
	from := sort.Search(len(bins), func(i int) bool { return bins[i].at >= start })
	to := sort.Search(len(bins), func(i int) bool { return bins[i].at >= end })
	return bins[from:max(from, to)]
}
