// Package traffic is what a task's proxy for Service Connect does with connections: it listens where the task's containers look for others,
// and passes what they send to one of the tasks that are there. It never decides who those are: it's told, and goes on with what it was told
// last. The process beside a task runs one, which package connect starts.
package traffic

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Listener says what comes in at a socket, and where it goes.
type Listener struct {
	Name     string        // what it's called where something is said of it
	Protocol string        // http, http2, grpc or, if it's empty, TCP
	Idle     time.Duration // how long a connection may be idle; 0 is for ever
	Request  time.Duration // how long a request may take; 0 is for ever
	Endpoint string        // whose targets it leads to
}

// Target is a task at an endpoint.
type Target struct {
	Address   string // with a port
	Unhealthy bool   // its health checks say so
}

// Options configure a proxy.
type Options struct {
	Dial func(ctx context.Context, network, address string) (net.Conn, error) // nil dials
	Log  *slog.Logger
	Most int // the most connections of clients, and the most requests, at once; defaultMost if 0
}

// defaultMost bounds the memory that a task's containers can make its proxy take, which no limit of theirs counts.
const defaultMost = 2000

// Proxy passes traffic on.
type Proxy struct {
	opts Options

	connections room
	requests    room

	mu        sync.Mutex
	endpoints map[string]*endpoint
	doors     []*door
}

// door is a listener that is open.
type door struct {
	Listener
	proxy    *Proxy
	endpoint *endpoint
	counter  *counter
	server   *http.Server // nil for TCP
	failures failures

	ctx    context.Context // until the door is closed
	cancel context.CancelFunc
	open   sync.WaitGroup // connections of TCP
}

// New returns a proxy without listeners and targets.
func New(o Options) *Proxy {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	most := int64(cmp.Or(o.Most, defaultMost))
	return &Proxy{
		opts:        o,
		connections: room{most: most, what: "connections", log: o.Log},
		requests:    room{most: most, what: "requests", log: o.Log},
		endpoints:   map[string]*endpoint{},
	}
}

// dialTimeout is how long a connection to a target may take to open.
const dialTimeout = 5 * time.Second

// endpointLocked returns an endpoint, which may have no targets yet.
func (p *Proxy) endpointLocked(id string) *endpoint {
	e := p.endpoints[id]
	if e == nil {
		e = &endpoint{opts: p.opts}
		p.endpoints[id] = e
	}
	return e
}

// Open adds a listener. What it returns passes on what comes to the socket, until the proxy is closed.
func (p *Proxy) Open(l net.Listener, what Listener) (serve func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := &door{Listener: what, proxy: p, endpoint: p.endpointLocked(what.Endpoint), counter: &counter{}}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	l = &bounded{l, &p.connections}
	context.AfterFunc(d.ctx, func() { l.Close() })
	p.doors = append(p.doors, d)
	if what.Protocol == "" {
		return func() error { return d.acceptTCP(l) }
	}
	d.server = d.newServer()
	return func() error { return d.server.Serve(l) }
}

// Set says which targets endpoints have. Requests that are under way at others come to their end.
func (p *Proxy) Set(targets map[string][]Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(targets)) {
		p.endpointLocked(id).set(targets[id])
	}
}

// Close ends everything at once.
func (p *Proxy) Close() error {
	p.mu.Lock()
	doors := p.doors
	p.mu.Unlock()
	var errs []error
	for _, d := range doors {
		if d.server != nil {
			errs = append(errs, d.server.Close()) // first, so that it knows why its listener ends
		}
		d.cancel()
		d.open.Wait()
	}
	for _, e := range p.endpoints {
		e.set(nil)
	}
	return errors.Join(errs...)
}

// Counts returns what has passed at each listener since the last call, in the order in which they were opened.
func (p *Proxy) Counts() []Count {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Count, 0, len(p.doors))
	for _, d := range p.doors {
		c := d.counter.take()
		c.Targets = len(d.endpoint.all())
		out = append(out, c)
	}
	return out
}
