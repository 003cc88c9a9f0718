package placement

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// A ranking orders the cluster's shapes by what a placement of one kind of request on them costs,
// cheapest first. It is kept between decisions: one decision changes one node, so a ranking has one
// shape to add when it is used again. Thus a decision does not walk the instances.
type ranking struct {
	best []ranked
	seen int // how many of ranks.births it holds
	used int // when it was last used, to forget the least used
}

type ranked struct {
	cost  float64
	shape *shape
}

// ranks is the rankings by kind of request, and the shapes that came up since they began.
type ranks struct {
	byRequest map[string]*ranking
	births    []*shape
	uses      int
}

// maxRankings bounds how many kinds of requests are remembered.
const maxRankings = 64

// born notes a new shape. Once the births outgrow the shapes by far, starting over is cheaper.
func (k *ranks) born(s *shape, shapes int) {
	if len(k.births) > 4*shapes+1024 {
		k.births, k.byRequest = nil, nil
	}
	k.births = append(k.births, s)
}

// ranking returns the request's ranking, up to date.
func (c *Cluster) ranking(r *Request) *ranking {
	k := &c.ranks
	if k.byRequest == nil {
		k.byRequest = map[string]*ranking{}
		k.births = nil
		for _, s := range c.shapes {
			k.births = append(k.births, s)
		}
	}
	name := r.kind()
	rk := k.byRequest[name]
	if rk == nil {
		k.forget()
		rk = &ranking{}
		k.byRequest[name] = rk
	}
	k.uses++
	rk.used = k.uses
	rk.update(c, r)
	return rk
}

// forget drops the least used ranking where there are too many.
func (k *ranks) forget() {
	if len(k.byRequest) < maxRankings {
		return
	}
	oldest := ""
	for name, rk := range k.byRequest {
		if oldest == "" || rk.used < k.byRequest[oldest].used {
			oldest = name
		}
	}
	delete(k.byRequest, oldest)
}

// update adds the shapes that came up since the ranking was last used.
func (rk *ranking) update(c *Cluster, r *Request) {
	fresh := c.ranks.births[rk.seen:]
	rk.seen = len(c.ranks.births)
	bulk := len(fresh) > 16
	for _, s := range fresh {
		cost, _, fits := c.mix.cost(&c.scale, s, r)
		if !fits || len(s.members) == 0 {
			continue
		}
		if bulk {
			rk.best = append(rk.best, ranked{cost, s})
			continue
		}
		at, _ := slices.BinarySearchFunc(rk.best, cost, func(e ranked, c float64) int { return cmp.Compare(e.cost, c) })
		rk.best = slices.Insert(rk.best, at, ranked{cost, s})
	}
	if bulk {
		slices.SortFunc(rk.best, func(a, b ranked) int { return cmp.Compare(a.cost, b.cost) })
	}
}

// kind names what the cost of a shape depends on of a request.
func (r *Request) kind() string {
	var b strings.Builder
	for _, n := range []int64{r.CPU, r.MemoryMiB, int64(r.wholeGPUs()), int64(r.MilliGPU)} {
		b.WriteString(strconv.FormatInt(n, 36))
		b.WriteByte(' ')
	}
	b.WriteString(strings.Join(r.GPUModels, "|"))
	return b.String()
}

// tied is how far two costs may be apart and still count as equal.
const tied = 1e-9

// byFragmentation takes the cheapest node that the request may go to, and of equals one at random.
func (c *Cluster) byFragmentation(r *Request, rnd *rand.Rand) *Node {
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
		n, members := e.shape.pick(r, rnd)
		if n == nil {
			continue
		}
		cost = e.cost
		if equals += members; rnd.IntN(equals) < members {
			found = n
		}
	}
	if dead > 8 {
		rk.best = slices.DeleteFunc(rk.best, func(e ranked) bool { return len(e.shape.members) == 0 })
	}
	return found
}

// pick takes one of the shape's members that takes the request, beginning at a random one. It also
// says how many members the choice was from, to weigh it against other shapes.
func (s *shape) pick(r *Request, rnd *rand.Rand) (*Node, int) {
	start := rnd.IntN(len(s.members))
	for i := range s.members {
		n := s.members[(start+i)%len(s.members)]
		if n.takes(r) {
			return n, len(s.members)
		}
	}
	return nil, 0
}
