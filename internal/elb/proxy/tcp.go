package proxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// passThrough carries a connection of a network load balancer to a target.
func (d *door) passThrough(client net.Conn, r *route) {
	defer client.Close()
	forward := r.listener.Rules[0].Actions[0].Forward
	i := routing.ChooseGroup(forward, rand.Uint64())
	if i < 0 {
		return // no group has a weight
	}
	pool := r.pools[forward.Groups[i].ARN]
	from, _ := netip.ParseAddrPort(client.RemoteAddr().String())
	flow := &Flow{Balancer: r.balancer.ARN, Listener: r.listener.ARN, Group: pool.group.ARN, Client: from, Start: time.Now()}
	defer func() {
		flow.Duration = time.Since(flow.Start)
		d.proxy.Observer.Flow(flow)
	}()
	t, server := d.connect(pool, from.Addr())
	if t == nil {
		return
	}
	defer t.end()
	defer server.Close()
	flow.Target = t.Target
	var quiet quiet
	quiet.touch()
	var back sync.WaitGroup
	back.Go(func() { flow.Sent = quiet.carry(client, server, r.idle()) })
	flow.Received = quiet.carry(server, client, r.idle())
	back.Wait()
}

// connect connects to a target. As nothing was sent yet, one that refuses may be followed by another.
func (d *door) connect(group *pool, from netip.Addr) (*target, net.Conn) {
	var tried []*target
	for range maxTries {
		_, t := d.acquire(group, tried, func(p *pool, all []routing.Standing) int {
			if p.group.Attributes.Stickiness.Type == routing.BySource {
				return routing.ChooseBySource(p.group, all, from)
			}
			return routing.Choose(p.group, all, p.turn.Add(1))
		})
		if t == nil {
			return nil, nil
		}
		c, err := t.dial(d.proxy.ctx)
		if err == nil {
			return t, c
		}
		t.end()
		tried = append(tried, t)
	}
	return nil, nil
}

// quiet knows when something last passed on a connection, in either direction.
type quiet struct{ last atomic.Int64 }

func (q *quiet) touch() { q.last.Store(time.Now().UnixNano()) }

// carry copies one direction until its end, and ends that on the other side. If both directions were idle for too long, or one is broken,
// both connections are closed.
func (q *quiet) carry(to, from net.Conn, idle time.Duration) (total int64) {
	buffer := buffers.Get()
	defer buffers.Put(buffer)
	for {
		from.SetReadDeadline(time.Unix(0, q.last.Load()).Add(idle)) //nolint:errcheck // the read tells
		n, err := from.Read(buffer)
		if n > 0 {
			q.touch()
			to.SetWriteDeadline(time.Now().Add(idle)) //nolint:errcheck // the write tells
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
			total += int64(n)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, q.last.Load())) < idle {
			continue // the other direction is busy
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) && closeWrite(to) == nil {
			return total
		}
		break
	}
	to.Close()   //nolint:errcheck // it's gone either way
	from.Close() //nolint:errcheck // as above
	return total
}
