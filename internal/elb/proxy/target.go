package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/twoway"
)

// pool is a group with its targets at the moment. It is never changed.
type pool struct {
	group   *routing.Group
	targets []*target
	turn    *atomic.Uint64
}

// find returns the running target that a configuration means, or nil. One that came back while it drained is a new one.
func (p *pool) find(g *routing.Group, config routing.Target) *target {
	if p == nil || p.group.Protocol != g.Protocol || p.group.ProtocolVersion != g.ProtocolVersion {
		return nil
	}
	for _, t := range p.targets {
		if t.Key() == config.Key() && t.Address == config.Address && (config.Draining || !t.draining.Load()) {
			return t
		}
	}
	return nil
}

// standings tells what is known of the targets. Those in tried have refused.
func (p *pool) standings(into []routing.Standing, tried []*target) []routing.Standing {
	now := time.Now()
	for _, t := range p.targets {
		s := t.standing(now)
		for _, other := range tried {
			s.Tried = s.Tried || other == t
		}
		into = append(into, s)
	}
	return into
}

// rooms are lent for standings, which each request asks for.
var rooms = sync.Pool{New: func() any { return new([]routing.Standing) }}

// acquire chooses a target and counts a request there; nil if no target may have it.
func (p *pool) acquire(tried []*target, choose func([]routing.Standing) int) *target {
	room := rooms.Get().(*[]routing.Standing)
	defer rooms.Put(room)
	for range len(p.targets) + 1 {
		*room = p.standings((*room)[:0], tried)
		i := choose(*room)
		if i < 0 {
			return nil
		}
		if p.targets[i].begin() {
			return p.targets[i]
		}
	}
	return nil
}

// target is a member of a group while the proxy runs: from its registration until it has drained.
type target struct {
	routing.Target
	proxy   *Proxy
	group   string
	address string
	// transport has connections to this target alone, so that they can be cut.
	transport   *http.Transport
	lane        *lane
	outstanding atomic.Int64
	draining    atomic.Bool
	stop        context.CancelFunc // ends the checks
	idle        chan struct{}      // hears that the last request of a draining target has ended
	changed     chan struct{}      // hears of another health check
	gone        chan struct{}      // closed when it has drained

	mu           sync.Mutex
	config       *routing.Group
	used         bool
	health       routing.Health
	healthySince time.Time
	conns        map[net.Conn]bool
}

func (p *Proxy) newTarget(g *routing.Group, config routing.Target) *target {
	ctx, stop := context.WithCancel(p.ctx)
	t := &target{
		Target: config, proxy: p, group: g.ARN, config: g,
		address: net.JoinHostPort(config.Address, strconv.Itoa(config.Port)),
		stop:    stop, idle: make(chan struct{}, 1), changed: make(chan struct{}, 1), gone: make(chan struct{}),
		health: routing.Registered(), conns: map[net.Conn]bool{},
	}
	t.transport = t.newTransport(g)
	t.lane = &lane{dial: t.dial}
	p.work.Go(func() { t.checkUntil(ctx) })
	return t
}

func (t *target) newTransport(g *routing.Group) *http.Transport {
	protocols := new(http.Protocols)
	switch {
	case g.ProtocolVersion != routing.HTTP2 && g.ProtocolVersion != routing.GRPC:
		protocols.SetHTTP1(true)
	case g.Protocol == routing.HTTPS:
		protocols.SetHTTP2(true)
	default:
		protocols.SetUnencryptedHTTP2(true)
	}
	return &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return t.dial(ctx) },
		Protocols:              protocols,
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as AWS: targets have certificates of their own making
		TLSHandshakeTimeout:    dialTimeout,
		DisableCompression:     true, // answers pass as they are
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        maxIdleTime,
		MaxResponseHeaderBytes: maxResponseHeader,
		ExpectContinueTimeout:  time.Second,
	}
}

// set takes up what may change of a target's group.
func (t *target) set(g *routing.Group, used bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	differs := t.used != used || t.config.Check() != g.Check()
	t.config, t.used = g, used
	if t.draining.Load() {
		return
	}
	switch {
	case !used:
		t.health = routing.OutOfUse()
	case t.health.State == routing.Unused:
		t.health = routing.Registered()
	}
	if differs {
		select {
		case t.changed <- struct{}{}:
		default:
		}
	}
}

// isGone reports whether the target has drained.
func (t *target) isGone() bool {
	select {
	case <-t.gone:
		return true
	default:
		return false
	}
}

func (t *target) currentHealth() routing.Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.health
}

func (t *target) standing(now time.Time) routing.Standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	return routing.Standing{
		State:       t.health.State,
		Outstanding: int(t.outstanding.Load()),
		HealthyFor:  now.Sub(t.healthySince).Seconds(),
	}
}

// begin counts a request, unless the target drains. The count comes first, so that draining doesn't end between the two.
func (t *target) begin() bool {
	t.outstanding.Add(1)
	if t.draining.Load() {
		t.end()
		return false
	}
	return true
}

// end counts a request off.
func (t *target) end() {
	if t.outstanding.Add(-1) == 0 && t.draining.Load() {
		select {
		case t.idle <- struct{}{}:
		default:
		}
	}
}

// retire lets the target's requests end, for as long as its group's delay.
func (t *target) retire() {
	if t.draining.Swap(true) {
		return
	}
	t.stop()
	t.mu.Lock()
	t.health = routing.Deregistering()
	g := t.config
	t.mu.Unlock()
	t.proxy.work.Go(func() {
		defer close(t.gone)
		if t.empties(time.Duration(g.DeregistrationSeconds())*time.Second) || g.Terminates() {
			t.cut()
		}
	})
}

// empties waits for the end of what is under way, and reports whether that came in time. The end of the proxy ends it, too.
func (t *target) empties(delay time.Duration) bool {
	over := time.NewTimer(delay)
	defer over.Stop()
	for t.outstanding.Load() > 0 {
		select {
		case <-t.idle:
		case <-over.C:
			return false
		case <-t.proxy.ctx.Done():
			return true
		}
	}
	return true
}

// cut closes all connections.
func (t *target) cut() {
	t.transport.CloseIdleConnections()
	t.mu.Lock()
	open := t.conns
	t.conns = nil
	t.mu.Unlock()
	for c := range open {
		c.Close() //nolint:errcheck // it's gone either way
	}
}

// dialError says that a target could not be reached, so that it has seen nothing of a request.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// dial connects to the target.
func (t *target) dial(ctx context.Context) (net.Conn, error) { return t.dialNetwork(ctx, "tcp") }

func (t *target) dialNetwork(ctx context.Context, network string) (net.Conn, error) {
	c, err := t.proxy.Dial(ctx, network, t.address)
	if err != nil {
		return nil, dialError{err}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		c.Close() //nolint:errcheck // it was cut before it was used
		return nil, dialError{net.ErrClosed}
	}
	kept := &targetConn{Conn: c, target: t}
	t.conns[kept] = true
	return kept, nil
}

// targetConn is a connection that its target knows.
type targetConn struct {
	net.Conn
	target *target
}

func (c *targetConn) Close() error {
	c.target.mu.Lock()
	delete(c.target.conns, c)
	c.target.mu.Unlock()
	return c.Conn.Close()
}

// SyscallConn implements syscall.Conn.
func (c *targetConn) SyscallConn() (syscall.RawConn, error) {
	inner, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("it's no socket")
	}
	return inner.SyscallConn()
}

// CloseWrite ends one direction.
func (c *targetConn) CloseWrite() error { return twoway.CloseWrite(c.Conn) }
