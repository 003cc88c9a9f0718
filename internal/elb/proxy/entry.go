package proxy

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// address is a port that a proxy has open, by what travels there.
type address struct {
	network string // tcp or udp
	port    int
}

// opening is an open port: a door for connections, or a gate for datagrams.
type opening interface {
	set(*route)
	current() *route
	accept() // until it's closed
	close()
	drain() // closes it, and lets end what there is
}

// entry is what both kinds are made of.
type entry struct {
	proxy *Proxy
	route atomic.Pointer[route]
}

func (e *entry) current() *route { return e.route.Load() }

// acquire chooses a target of a group and counts a request there; nil if no target may have it. If all that the group had have left
// since, it asks the group as it is now, which it also returns.
func (e *entry) acquire(p *pool, tried []*target, choose func(*pool, []routing.Standing) int) (*pool, *target) {
	for {
		t := p.acquire(tried, func(all []routing.Standing) int { return choose(p, all) })
		now := e.route.Load().pools[p.group.ARN]
		if t != nil || now == nil || now == p {
			return p, t
		}
		p = now
	}
}

// connect connects to a target. As nothing was sent yet, one that refuses may be followed by another.
func (e *entry) connect(group *pool, from netip.Addr, dial func(*target) (net.Conn, error)) (*target, net.Conn) {
	var tried []*target
	for begun, i := time.Now(), 0; i < maxTries && time.Since(begun) <= maxTrying; i++ {
		_, t := e.acquire(group, tried, func(p *pool, all []routing.Standing) int {
			if p.group.Attributes.Stickiness.Type == routing.BySource {
				return routing.ChooseBySource(p.group, all, from)
			}
			return routing.Choose(p.group, all, p.turn.Add(1))
		})
		if t == nil {
			return nil, nil
		}
		c, err := dial(t)
		if err == nil {
			return t, c
		}
		t.end()
		tried = append(tried, t)
	}
	return nil, nil
}
