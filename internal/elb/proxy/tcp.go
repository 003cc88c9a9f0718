package proxy

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/twoway"
)

// passThrough carries a connection of a network load balancer to a target.
func (d *door) passThrough(client net.Conn, r *route) {
	if r.tls != nil {
		secured := tls.Server(client, r.tls)
		ctx, cancel := context.WithTimeout(d.proxy.ctx, dialTimeout)
		err := secured.HandshakeContext(ctx)
		cancel()
		if err != nil {
			client.Close() //nolint:errcheck // it's of no use
			return
		}
		client = secured
	}
	defer client.Close()
	forward := r.listener.Rules[0].Actions[0].Forward
	i := routing.ChooseGroup(forward, rand.Uint64())
	if i < 0 {
		return // no group has a weight
	}
	pool := r.pools[forward.Groups[i].ARN]
	from := addressOf(client.RemoteAddr())
	flow := &Flow{Balancer: r.balancer.ARN, Listener: r.listener.ARN, Group: pool.group.ARN, Client: from, Start: time.Now()}
	defer func() {
		flow.Duration = time.Since(flow.Start)
		d.proxy.Observer.Flow(flow)
	}()
	if d.proxy.isOwnEnd(client) {
		return
	}
	t, server := d.connect(pool, from.Addr(), func(t *target) (net.Conn, error) { return d.dialFor(client, t, pool.group) })
	if t == nil {
		return
	}
	defer t.end()
	defer d.proxy.closeOwn(server)
	if d.proxy.isOwnEnd(client) { // it's known only once its dial has returned, which may be after the connection came here
		return
	}
	flow.Target = t.Target
	flow.Received, flow.Sent = twoway.Carry(client, server, r.idle())
}

// isOwnEnd reports whether a client is the proxy itself, on behalf of another client: if a target is a listener of this process, a connection would
// go round for ever. (An application load balancer's requests go round until they came a long way, which their headers tell.)
func (p *Proxy) isOwnEnd(client net.Conn) bool {
	_, isOwn := p.ends.Load(endOfConn(client.RemoteAddr(), client.LocalAddr()))
	return isOwn
}

// closeOwn closes a connection to a target.
func (p *Proxy) closeOwn(server net.Conn) {
	p.ends.Delete(endOfConn(server.LocalAddr(), server.RemoteAddr()))
	server.Close() //nolint:errcheck // it's gone either way
}

// dialFor connects to a target on behalf of a client: with the header of the PROXY protocol and by TLS, if the group is for that.
func (d *door) dialFor(client net.Conn, t *target, g *routing.Group) (net.Conn, error) {
	c, err := t.dial(d.proxy.ctx)
	if err != nil {
		return nil, err
	}
	d.proxy.ends.Store(endOfConn(c.LocalAddr(), c.RemoteAddr()), true)
	c.SetDeadline(time.Now().Add(dialTimeout)) //nolint:errcheck // the next line tells
	if g.Attributes.ProxyProtocol {
		_, err = c.Write(proxyHeader(addressOf(client.RemoteAddr()), addressOf(client.LocalAddr())))
	}
	if err == nil && g.Protocol == routing.TLS {
		config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // as AWS: targets have certificates of their own making
		if outer, ok := client.(*tls.Conn); ok && outer.ConnectionState().NegotiatedProtocol != "" {
			config.NextProtos = []string{outer.ConnectionState().NegotiatedProtocol}
		}
		inner := tls.Client(c, config)
		err = inner.Handshake()
		c = inner
	}
	if err != nil {
		d.proxy.closeOwn(c)
		return nil, err
	}
	return c, c.SetDeadline(time.Time{})
}
