package placement

import "math/bits"

// set is a set of node indexes (Cluster.nodes), 64 to a word. Words beyond its end are empty.
type set []uint64

func (s set) word(w int) uint64 {
	if w >= len(s) {
		return 0
	}
	return s[w]
}

func (s *set) add(i int) {
	for len(*s) <= i/64 {
		*s = append(*s, 0)
	}
	(*s)[i/64] |= 1 << (i % 64)
}

func (s set) remove(i int) {
	if i/64 < len(s) {
		s[i/64] &^= 1 << (i % 64)
	}
}

func (s set) size() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// next returns the first member from i on, or -1.
func (s set) next(i int) int {
	for w := i / 64; w < len(s); w++ {
		word := s[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// nth returns the member that has n members before it, or -1.
func (s set) nth(n int) int {
	for w, word := range s {
		if in := bits.OnesCount64(word); n >= in {
			n -= in
			continue
		}
		for range n {
			word &= word - 1
		}
		return w*64 + bits.TrailingZeros64(word)
	}
	return -1
}

// covers reports whether s contains all of the other set.
func (s set) covers(of set) bool {
	for w := range of {
		if of[w]&^s.word(w) != 0 {
			return false
		}
	}
	return true
}

func (s set) subtract(other set) {
	for w := range min(len(s), len(other)) {
		s[w] &^= other[w]
	}
}

// column holds a non-negative number for each node, as one set per bit: the b-th set holds the nodes whose number has
// bit b. That way 64 nodes are compared at a time.
type column []set

// put changes a node's number. Usually few bits differ.
func (c *column) put(i int, old, number int64) {
	for diff := uint64(old ^ number); diff != 0; diff &= diff - 1 {
		b := bits.TrailingZeros64(diff)
		for len(*c) <= b {
			*c = append(*c, nil)
		}
		if number>>b&1 == 1 {
			(*c)[b].add(i)
		} else {
			(*c)[b].remove(i)
		}
	}
}

func (c column) get(i int) (number int64) {
	for b, s := range c {
		number |= int64(s.word(i/64)>>(i%64)&1) << b
	}
	return number
}

// keepAtLeast removes the nodes with a smaller number from a set. It goes from the highest bit to the lowest, and keeps
// apart the nodes that are already above the number and those that equal it so far.
func (c column) keepAtLeast(number int64, of set) {
	if bits.Len64(uint64(number)) > len(c) {
		clear(of)
		return
	}
	for w := range of {
		above, equal := uint64(0), of[w]
		for b := len(c) - 1; b >= 0 && equal != 0; b-- {
			one := c[b].word(w)
			if number>>b&1 == 1 {
				equal &= one
				continue
			}
			above |= equal & one
			equal &^= one
		}
		of[w] = above | equal
	}
}

// keepLeast keeps only the nodes of a set with the smallest number.
func (c column) keepLeast(of set) {
	for b := len(c) - 1; b >= 0; b-- {
		if !c[b].covers(of) {
			of.subtract(c[b])
		}
	}
}

// sum adds up the numbers of some nodes.
func (c column) sum(of sparseSet) (sum int64) {
	for b, s := range c {
		n := 0
		for _, p := range of {
			n += bits.OnesCount64(p.bits & s.word(p.word))
		}
		sum += int64(n) << b
	}
	return sum
}

// sparseSet is a set that is mostly empty: its non-empty words, in order.
type sparseSet []sparseWord

type sparseWord struct {
	word int
	bits uint64
}

// add adds a node. Nodes must be added in order.
func (a *sparseSet) add(i int) {
	if last := len(*a) - 1; last < 0 || (*a)[last].word != i/64 {
		*a = append(*a, sparseWord{word: i / 64})
	}
	(*a)[len(*a)-1].bits |= 1 << (i % 64)
}

func (a sparseSet) intersects(s set) bool {
	for _, p := range a {
		if p.bits&s.word(p.word) != 0 {
			return true
		}
	}
	return false
}

// addTo adds the members that are also in from to a set of the same length.
func (a sparseSet) addTo(to, from set) {
	for _, p := range a {
		if p.word < len(from) {
			to[p.word] |= p.bits & from[p.word]
		}
	}
}
