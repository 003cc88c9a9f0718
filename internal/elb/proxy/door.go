package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// route is what a listener does with what comes. It is never changed.
type route struct {
	balancer *routing.Balancer
	listener *routing.Listener
	pools    map[string]*pool
	tls      *tls.Config // nil without TLS
	scheme   string      // http or https
	port     string      // that clients see
}

func newRoute(b *routing.Balancer, l *routing.Listener, pools map[string]*pool, old *route) *route {
	r := &route{balancer: b, listener: l, pools: pools, scheme: strings.ToLower(l.Protocol), port: strconv.Itoa(l.ServedPort())}
	if !routing.IsEncrypted(l.Protocol) {
		return r
	}
	if old != nil && old.tls != nil && old.listener.Protocol == l.Protocol && old.listener.ALPNPolicy == l.ALPNPolicy && old.balancer.Attributes.DisableHTTP2 == b.Attributes.DisableHTTP2 &&
		old.listener.MinTLS == l.MinTLS &&
		reflect.DeepEqual(old.listener.Certificates, l.Certificates) {
		r.tls = old.tls // with its keys, so that clients resume their sessions
		return r
	}
	r.tls = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if l.MinTLS == "1.3" {
		r.tls.MinVersion = tls.VersionTLS13
	}
	switch {
	case l.Protocol == routing.TLS:
		r.tls.NextProtos = l.ALPN()
	case b.Attributes.DisableHTTP2:
		r.tls.NextProtos = []string{"http/1.1"}
	}
	for _, c := range l.Certificates {
		pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.PrivateKey))
		if err == nil { // Validate has read it
			r.tls.Certificates = append(r.tls.Certificates, pair)
		}
	}
	return r
}

// url is a request's URL, with the port.
func (r *route) url(host, path, query string) string {
	port := ""
	if strings.LastIndexByte(host, ':') <= strings.LastIndexByte(host, ']') {
		port = ":" + r.port
	}
	if query != "" {
		query = "?" + query
	}
	return r.scheme + "://" + host + port + path + query
}

// idle is how long a connection may be idle.
func (r *route) idle() time.Duration {
	seconds := r.listener.IdleTimeoutSeconds
	if seconds == 0 {
		seconds = r.balancer.IdleSeconds()
	}
	return time.Duration(seconds) * time.Second
}

// door is an open port. What comes through it goes where its route says at the moment, by whatever protocol that has.
type door struct {
	entry
	listener net.Listener
	leaving  atomic.Bool   // it closes; no connection gets another request
	letIn    chan struct{} // closed when all connections that the listener has accepted are let in

	mu      sync.Mutex
	conns   map[*clientConn]*porter // nil for those that have none
	closed  bool
	servers []*server // the last gets new connections; others had another idle time-out
}

// server is an HTTP server and the connections on their way to it.
type server struct {
	http.Server
	inbox *inbox
}

// set changes the route.
func (d *door) set(r *route) {
	d.route.Store(r)
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.servers, func(s *server) bool { return s.IdleTimeout == r.idle() }); i >= 0 {
		of := d.servers[i]
		d.servers = append(slices.Delete(slices.Clone(d.servers), i, i+1), of)
		return
	}
	s := &server{inbox: newInbox(d.listener.Addr())}
	s.Handler = d
	s.IdleTimeout = r.idle()
	s.ReadHeaderTimeout = r.idle()
	s.MaxHeaderBytes = 64 << 10
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 128}
	s.ConnState = noteState
	s.ErrorLog = log.New(logWriter{d.proxy}, "", 0)
	d.servers = append(d.servers, s)
	d.proxy.work.Go(func() { s.Serve(s.inbox) }) //nolint:errcheck // it ends with its inbox
}

// logWriter takes what HTTP servers say of their clients, which is for who looks closely only.
type logWriter struct{ proxy *Proxy }

func (w logWriter) Write(b []byte) (int, error) {
	w.proxy.Log.Debug("client", "problem", string(b))
	return len(b), nil
}

// accept lets connections in.
func (d *door) accept() {
	defer close(d.letIn)
	for {
		c, err := d.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors are left, most likely
			d.proxy.pause("accept", err)
			continue
		}
		if kept := d.admit(c); kept != nil {
			d.serve(kept)
		}
	}
}

// serve hands a connection on.
func (d *door) serve(c *clientConn) {
	r := d.route.Load()
	switch {
	case routing.IsNetwork(r.listener.Protocol):
		d.proxy.work.Go(func() { d.passThrough(c, r) })
	case r.tls != nil:
		d.enter(tls.Server(c, r.tls))
	default:
		p := newPorter(c)
		if p == nil {
			d.enter(c)
			return
		}
		d.setPorter(c, p)
		d.proxy.work.Go(p.serve)
	}
}

// setPorter notes who serves a connection, unless it's gone.
func (d *door) setPorter(c *clientConn, p *porter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.conns[c]; ok {
		d.conns[c] = p
	}
}

// enter gives a connection to the HTTP server.
func (d *door) enter(c net.Conn) {
	d.mu.Lock()
	s := d.servers[len(d.servers)-1]
	d.mu.Unlock()
	select {
	case s.inbox.conns <- c:
	case <-s.inbox.closed:
		c.Close() //nolint:errcheck // the door is closed
	}
}

// admit counts a connection, or closes it and returns nil if there are too many.
func (d *door) admit(c net.Conn) *clientConn {
	kept := newClientConn(c, d)
	victim, ok := d.proxy.clients.admit(&kept.caller)
	if victim != nil {
		victim.cut()
	}
	d.mu.Lock()
	closed := d.closed
	if ok && !closed {
		d.conns[kept] = nil
	}
	d.mu.Unlock()
	if !ok || closed {
		kept.Close() //nolint:errcheck // it was never let in
		return nil
	}
	return kept
}

// close takes no more connections. By the time that the port refuses others, no connection gets another request.
func (d *door) close() {
	d.leaving.Store(true)
	d.listener.Close() //nolint:errcheck // it's gone either way
}

// drain takes no more connections, and waits until those that there are have ended. After the proxy's time for that they are cut.
func (d *door) drain() {
	d.close()
	ctx, cancel := context.WithTimeout(d.proxy.ctx, d.proxy.DrainTime)
	defer cancel()
	select {
	case <-d.letIn: // one that was accepted as the listener closed waits for its answer, too
	case <-ctx.Done():
	}
	d.mu.Lock()
	servers := d.servers
	for _, p := range d.conns {
		if p != nil {
			p.leave()
		}
	}
	d.mu.Unlock()
	for _, s := range servers {
		s.SetKeepAlivesEnabled(false) // not in close, whose caller waits: it closes what is idle, and TLS tells clients so that read nothing
	}
	until(ctx, func() bool { return d.porters() == 0 }) // until then a server may get connections of theirs
	d.hearAll(ctx)
	for _, s := range servers {
		s.Shutdown(ctx) //nolint:errcheck // what is late is cut below
	}
	until(ctx, func() bool { return d.open() == 0 }) // web sockets and flows are no server's
	d.mu.Lock()
	d.closed = true
	late := make([]*clientConn, 0, len(d.conns))
	for c := range d.conns {
		late = append(late, c)
	}
	d.mu.Unlock()
	for _, c := range late {
		c.Close() //nolint:errcheck // it's gone either way
	}
	for _, s := range servers {
		s.Close() //nolint:errcheck // as above
	}
}

// hearAll waits until all connections have sent a request, or have had the time to: of those that it reads in its shutdown, a server answers none.
func (d *door) hearAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, newComerTime)
	defer cancel()
	until(ctx, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		all := true
		for c := range d.conns {
			all = all && c.heard.Load() > 1
			c.heard.CompareAndSwap(1, 2) // so that it has been so for a while: a server tells us a moment before it looks whether it shuts down
		}
		return all
	})
}

// until waits for something that changes seldom.
func until(ctx context.Context, is func() bool) {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for ctx.Err() == nil && !is() {
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
}

func (d *door) open() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.conns)
}

// porters returns how many connections have one.
func (d *door) porters() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.conns {
		if p != nil {
			n++
		}
	}
	return n
}

// inbox is a listener that gets its connections from a door.
type inbox struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func newInbox(addr net.Addr) *inbox {
	return &inbox{conns: make(chan net.Conn), closed: make(chan struct{}), addr: addr}
}

// Accept implements net.Listener.
func (i *inbox) Accept() (net.Conn, error) {
	select {
	case c := <-i.conns:
		return c, nil
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (i *inbox) Close() error {
	i.once.Do(func() { close(i.closed) })
	return nil
}

// Addr implements net.Listener.
func (i *inbox) Addr() net.Addr { return i.addr }
