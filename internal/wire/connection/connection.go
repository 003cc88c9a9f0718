// Package connection counts a server's connections by the address that they come from, so that nobody's connections keep others out.
// A connection is a stranger's until a request on it was accepted. When there is no room for another, the address with the most
// connections loses the one that has done nothing for the longest time; one with a request under way stays as long as others have none. Plane listens through it, and wire says whom it knows.
package connection

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Limits say how many connections there may be. Web sockets count as strangers until Release.
type Limits struct {
	Strangers int
	Known     int // beyond it, callers stay strangers
}

// Listener accepts connections and counts them.
type Listener struct {
	net.Listener
	limits Limits

	mu        sync.Mutex
	strangers crowd
	known     int
	idle      crowd // the known ones between two requests
}

// Limit returns a listener that keeps within limits. An http.Server must use its Context and its State.
func Limit(l net.Listener, limits Limits) *Listener {
	return &Listener{Listener: l, limits: limits}
}

// conn is one connection.
type conn struct {
	net.Conn
	listener *Listener
	from     netip.Prefix
	known    bool
	gone     bool // closed, or released
	place    place
}

// Accept implements net.Listener. It closes another stranger's connection if there are too many.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, listener: l, from: From(accepted.RemoteAddr().String())}
	l.mu.Lock()
	var victim *conn
	if l.strangers.size >= l.limits.Strangers {
		victim = l.strangers.takeFirst()
	}
	l.strangers.add(c, false)
	l.mu.Unlock()
	victim.drop()
	return c, nil
}

// drop closes a connection that had to go.
func (c *conn) drop() {
	if c != nil {
		c.Close() //nolint:errcheck // it's gone either way
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.listener.forget(c)
	return c.Conn.Close()
}

// CloseWrite lets the server end an answer before it closes the connection, so that the client can read it.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// forget stops counting a connection.
func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone {
		return
	}
	c.gone = true
	l.strangers.remove(c)
	l.idle.remove(c)
	if c.known {
		l.known--
	}
}

// State follows a connection's state, as the ConnState of an http.Server.
func (l *Listener) State(nc net.Conn, state http.ConnState) {
	c := ours(nc)
	if c == nil {
		return
	}
	if state == http.StateClosed {
		l.forget(c)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case c.gone:
	case !c.known && (state == http.StateIdle || state == http.StateActive): // it does something
		l.strangers.remove(c)
		l.strangers.add(c, state == http.StateActive)
	case c.known && state == http.StateIdle:
		l.idle.add(c, false)
	case c.known && state == http.StateActive:
		l.idle.remove(c)
	}
}

// ours returns the connection that a server got from a Listener, perhaps through TLS.
func ours(nc net.Conn) *conn {
	if outer, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = outer.NetConn()
	}
	c, _ := nc.(*conn)
	return c
}

type contextKey struct{}

// Context makes requests know their connection, as the ConnContext of an http.Server.
func (l *Listener) Context(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, ours(nc))
}

// Know notes that the connection of a request belongs to somebody who may call. If there are too many of those, the one that has been
// idle for longest makes room, or else this one stays a stranger.
func Know(ctx context.Context) {
	c, _ := ctx.Value(contextKey{}).(*conn)
	if c == nil {
		return
	}
	c.listener.know(c).drop()
}

// Release stops counting the connection of a request that opens a web socket. Call it once the other end has shown who it is: anybody can
// open one.
func Release(ctx context.Context) {
	if c, _ := ctx.Value(contextKey{}).(*conn); c != nil {
		c.listener.forget(c)
	}
}

func (l *Listener) know(c *conn) (victim *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.gone || c.known {
		return nil
	}
	if l.known >= l.limits.Known {
		if victim = l.idle.takeFirst(); victim == nil {
			return nil
		}
		victim.gone = true
		l.known--
	}
	l.strangers.remove(c)
	c.known = true
	l.known++
	return victim
}

// From returns the place that a remote address belongs to. Whoever has one address of IPv6 has the network of 2^64 around it.
func From(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{} // a pipe, in tests
	}
	ip := at.Addr().Unmap()
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	from, _ := ip.WithZone("").Prefix(bits) // it only fails if there are too many bits
	return from
}
