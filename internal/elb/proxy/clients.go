package proxy

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/twoway"
)

// clients are the connections of a proxy's clients, or their flows of datagrams, by the place that they come from, so that nobody's keep others
// out.
type clients struct {
	most int

	mu   sync.Mutex
	size int
	from map[netip.Prefix]*list.List // of *caller; the first has been there for the longest time
}

// caller is a connection or a flow, as it's counted.
type caller struct {
	from    netip.Prefix
	element *list.Element // among the clients; nil if it isn't counted
	idle    atomic.Bool   // it's between two requests, or a flow whose client hasn't gone on after an answer
	cut     func()        // ends it
	// passed is when something last passed, for flows alone: nobody sees the end of one, so they may have been over for long.
	passed *twoway.Quiet
}

// quietEnough is how long nothing must have passed in a flow that has to go for a new place's first one, though its client went on after an answer.
// One who sends in others' names can do that blindly, but would have to go on doing it for each of them.
const quietEnough = 10 * time.Second

func newClients(most int) *clients { return &clients{most: most, from: map[netip.Prefix]*list.List{}} }

// admit counts a connection. If there is no room for it, one of the place with the most has to go, unless that is the place of the new one.
func (a *clients) admit(c *caller) (victim *caller, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.size >= a.most {
		if victim = a.victim(c.from); victim == nil {
			return nil, false
		}
		a.remove(victim)
	}
	mates := a.from[c.from]
	if mates == nil {
		mates = list.New()
		a.from[c.from] = mates
	}
	c.element = mates.PushBack(c)
	a.size++
	return victim, true
}

// victim returns the connection that makes room for one more of a place, or nil: the oldest without a request, or else the oldest, of the
// place with the most. That place keeps more than the other one then has. If no place has more, one without a request makes room for the first of a
// new place, or else the quietest flow: datagrams may come in the names of ten thousand others.
func (a *clients) victim(newcomer netip.Prefix) *caller {
	least := 1
	if mates := a.from[newcomer]; mates != nil {
		least = mates.Len() + 1
	}
	var crowd *list.List
	for _, mates := range a.from {
		if mates.Len() > least {
			crowd = mates
			least = mates.Len()
		}
	}
	switch {
	case crowd == nil && least == 1:
		if c := a.anyIdle(); c != nil {
			return c
		}
		return a.quietest()
	case crowd == nil:
		return nil
	}
	for e := crowd.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*caller); c.idle.Load() {
			return c
		}
	}
	return crowd.Front().Value.(*caller)
}

// anyIdle returns a connection without a request, or nil.
func (a *clients) anyIdle() *caller {
	for _, mates := range a.from {
		if c := mates.Front().Value.(*caller); c.idle.Load() {
			return c
		}
	}
	return nil
}

// quietest returns the flow in which nothing has passed for the longest time, if that's long enough, or nil.
func (a *clients) quietest() (found *caller) {
	last := time.Now().Add(-quietEnough)
	for _, mates := range a.from {
		c := mates.Front().Value.(*caller)
		if c.passed != nil && c.passed.Since().Before(last) {
			found = c
			last = c.passed.Since()
		}
	}
	return found
}

// forget stops counting a connection.
func (a *clients) forget(c *caller) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(c)
}

// remove is called with mu held.
func (a *clients) remove(c *caller) {
	if c.element == nil {
		return
	}
	mates := a.from[c.from]
	mates.Remove(c.element)
	if mates.Len() == 0 {
		delete(a.from, c.from)
	}
	c.element = nil
	a.size--
}

// count returns how many there are.
func (a *clients) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size
}

// clientConn is a connection that its door knows.
type clientConn struct {
	net.Conn
	caller
	door   *door
	unread []byte       // what a porter has read, and not served
	heard  atomic.Int32 // more than 0 once its server has read a request

	mu        sync.Mutex
	isLimited bool      // somebody else has said until when there may be writes
	until     time.Time // when there may be writes, unless it's limited
}

func newClientConn(c net.Conn, d *door) *clientConn {
	kept := &clientConn{Conn: c, door: d}
	kept.from = placeOf(c.RemoteAddr())
	kept.cut = func() { kept.Close() } //nolint:errcheck // it's gone either way
	return kept
}

// placeOf returns the place that an address belongs to. Whoever has one address of IPv6 has the network of 2^64 around it.
func placeOf(remote net.Addr) netip.Prefix {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{} // a pipe, in tests
	}
	return placeOfIP(tcp.AddrPort().Addr())
}

func placeOfIP(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap()
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	place, _ := ip.WithZone("").Prefix(bits) //nolint:errcheck // it only fails if there are too many bits
	return place
}

// Read implements net.Conn.
func (c *clientConn) Read(b []byte) (int, error) {
	if len(c.unread) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.unread)
	if c.unread = c.unread[n:]; len(c.unread) == 0 {
		c.unread = nil // so that the porter's buffer can go
	}
	return n, nil
}

// Write implements net.Conn. A client who takes nothing for as long as a connection may be idle, or up to twice that, is cut, also after a request's
// handler has returned: net/http's server would wait for ever. A deadline costs too much to be set for each write.
func (c *clientConn) Write(b []byte) (int, error) {
	now := time.Now()
	c.mu.Lock()
	if idle := c.door.route.Load().idle(); idle > 0 && !c.isLimited && c.until.Sub(now) < idle {
		c.until = now.Add(2 * idle)
		c.Conn.SetWriteDeadline(c.until) //nolint:errcheck // the write tells
	}
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// SetWriteDeadline implements net.Conn.
func (c *clientConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isLimited, c.until = !t.IsZero(), time.Time{}
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *clientConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	c.door.mu.Lock()
	delete(c.door.conns, c)
	c.door.mu.Unlock()
	c.door.proxy.clients.forget(&c.caller)
	return c.Conn.Close()
}

// CloseWrite ends one direction.
func (c *clientConn) CloseWrite() error { return twoway.CloseWrite(c.Conn) }

// noteState follows whether a connection has a request, as the ConnState of an http.Server.
func noteState(nc net.Conn, state http.ConnState) {
	if outer, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
		nc = outer.NetConn()
	}
	if c, ok := nc.(*clientConn); ok {
		c.idle.Store(state == http.StateIdle)
		if state == http.StateActive {
			c.heard.CompareAndSwap(0, 1)
		}
	}
}
