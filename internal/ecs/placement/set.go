package placement

import "math/bits"

// set is a set of nodes by their places in Cluster.nodes, 64 of them a word. Words beyond its end are
// empty.
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

// next is the first member from i on, or -1.
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

// nth is the member that n others stand before.
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

// covers says whether all of a set is in s too.
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

// column is a number, not negative, for each node, kept as a set for each of its bits: the b-th holds
// the nodes whose number has bit b. So 64 nodes are compared at a time.
type column []set

// put gives a node another number, of which few bits are other ones.
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

// keepAtLeast takes the nodes with a smaller number out of a set. It goes from the highest bit to the
// lowest, and tells apart nodes that are above the number and those that are equal to it so far.
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

// keepLeast takes all out of a set but the nodes with the smallest number.
func (c column) keepLeast(of set) {
	for b := len(c) - 1; b >= 0; b-- {
		if !c[b].covers(of) {
			of.subtract(c[b])
		}
	}
}

// sum adds up the numbers of some nodes.
func (c column) sum(of nodesAlike) (sum int64) {
	for b, s := range c {
		n := 0
		for _, p := range of {
			n += bits.OnesCount64(p.bits & s.word(p.word))
		}
		sum += int64(n) << b
	}
	return sum
}

// nodesAlike is a set that is mostly empty: the words of it that are not, in order.
type nodesAlike []wordOfSet

type wordOfSet struct {
	word int
	bits uint64
}

// add adds a node that comes after those that are there.
func (a *nodesAlike) add(i int) {
	if last := len(*a) - 1; last < 0 || (*a)[last].word != i/64 {
		*a = append(*a, wordOfSet{word: i / 64})
	}
	(*a)[len(*a)-1].bits |= 1 << (i % 64)
}

func (a nodesAlike) meets(s set) bool {
	for _, p := range a {
		if p.bits&s.word(p.word) != 0 {
			return true
		}
	}
	return false
}

// addTo adds those that are also in from to a set of the same length.
func (a nodesAlike) addTo(to, from set) {
	for _, p := range a {
		if p.word < len(from) {
			to[p.word] |= p.bits & from[p.word]
		}
	}
}
