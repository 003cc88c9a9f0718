package placement

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// ranking orders the cluster's shapes by what a request of one kind costs on them, cheapest first. It is kept between
// decisions. A decision changes one node, so the next use adds a few new shapes and needn't walk all instances.
type ranking struct {
	best []ranked
	seen int // how many of all births it includes
	used int // when it was last used
}

type ranked struct {
	cost  float64
	shape *shape
}

// ranks holds the rankings by kind of request, and the recently added shapes (births).
type ranks struct {
	byKind    map[kind]*ranking
	births    []*shape
	forgotten int // births dropped from the list
	uses      int
}

const (
	maxRankings = 256
	minBirths   = 1024
)

// born records a new shape. A ranking that has missed births which are no longer listed is dropped: it's cheaper to
// rebuild.
func (k *ranks) born(s *shape, shapes int) {
	if len(k.births) >= 2*shapes+minBirths {
		half := len(k.births) / 2
		k.births = slices.Delete(k.births, 0, half)
		k.forgotten += half
		for name, rk := range k.byKind {
			if rk.seen < k.forgotten {
				delete(k.byKind, name)
			}
		}
	}
	k.births = append(k.births, s)
}

// ranking returns the request's up-to-date ranking.
func (c *Cluster) ranking(r *Request) *ranking {
	k := &c.ranks
	name := r.kind()
	rk := k.byKind[name]
	if rk == nil {
		k.dropOne()
		rk = c.newRanking(r)
		if k.byKind == nil {
			k.byKind = map[kind]*ranking{}
		}
		k.byKind[name] = rk
	}
	for _, s := range k.births[rk.seen-k.forgotten:] {
		rk.add(c, s, r)
	}
	rk.seen = k.forgotten + len(k.births)
	k.uses++
	rk.used = k.uses
	return rk
}

// newRanking ranks all current shapes.
func (c *Cluster) newRanking(r *Request) *ranking {
	rk := &ranking{seen: c.ranks.forgotten + len(c.ranks.births)}
	for _, n := range c.nodes {
		if n.member > 0 {
			continue // the shape's first member stands for it
		}
		if p, fits := c.price(n.shape, r); fits {
			rk.best = append(rk.best, ranked{p.cost, n.shape})
		}
	}
	slices.SortStableFunc(rk.best, func(a, b ranked) int { return cmp.Compare(a.cost, b.cost) })
	return rk
}

// add ranks a new shape, if it still exists.
func (rk *ranking) add(c *Cluster, s *shape, r *Request) {
	if len(s.members) == 0 {
		return
	}
	p, fits := c.price(s, r)
	if !fits {
		return
	}
	at, _ := slices.BinarySearchFunc(rk.best, p.cost, func(e ranked, cost float64) int { return cmp.Compare(e.cost, cost) })
	rk.best = slices.Insert(rk.best, at, ranked{p.cost, s})
}

// dropOne drops the ranking that was used longest ago, if there are too many.
func (k *ranks) dropOne() {
	if len(k.byKind) < maxRankings {
		return
	}
	var oldest kind
	used := k.uses + 1
	for name, rk := range k.byKind {
		if rk.used < used {
			oldest, used = name, rk.used
		}
	}
	delete(k.byKind, oldest)
}

const (
	tied    = 1e-9 // costs closer than this count as equal
	maxDead = 16   // shapes without members that a search may meet before it removes them
)

// cheapest picks the cheapest node that accepts the request, and picks among equals at random.
func (c *Cluster) cheapest(r *Request, rnd *rand.Rand) *Node {
	c.updateForecast()
	rk := c.ranking(r)
	var found *Node
	var cost float64
	equals, dead := 0, 0
	for _, e := range rk.best {
		if len(e.shape.members) == 0 {
			dead++
			continue
		}
		if found != nil && e.cost > cost+tied {
			break
		}
		n := e.shape.pick(r, rnd)
		if n == nil {
			continue
		}
		cost = e.cost
		if equals += len(e.shape.members); rnd.IntN(equals) < len(e.shape.members) {
			found = n
		}
	}
	if dead > maxDead {
		rk.best = slices.DeleteFunc(rk.best, func(e ranked) bool { return len(e.shape.members) == 0 })
	}
	return found
}

// pick returns one of the shape's members that accepts the request, starting at a random one.
func (s *shape) pick(r *Request, rnd *rand.Rand) *Node {
	start := rnd.IntN(len(s.members))
	for i := range s.members {
		if n := s.members[(start+i)%len(s.members)]; n.accepts(r) {
			return n
		}
	}
	return nil
}
