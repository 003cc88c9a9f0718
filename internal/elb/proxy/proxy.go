// Package proxy carries a load balancer's traffic: it listens, asks package routing where each request goes, sends it there, and checks
// the targets' health. It keeps nothing, and knows of AWS's API only what routing's types say. Command pintle balancer runs one.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httputil"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// Config says how a proxy works. Zero values work.
type Config struct {
	Host        string // the address that it listens at; 127.0.0.1 if empty
	Observer    Observer
	Log         *slog.Logger
	Connections int           // the most connections of clients; 10,000 if 0. If they are too many, the address with the most loses one
	DrainTime   time.Duration // how long connections of a listener that goes may take to end; 30 s if 0

	// Listen and Dial are those of package net, unless a test has others.
	Listen func(network, address string) (net.Listener, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// listen is net.Listen, without keep-alive probes: who is gone is found by the idle time-outs, and to ask for them takes four system calls for each
// connection.
func listen(network, address string) (net.Listener, error) {
	l := net.ListenConfig{KeepAlive: -1}
	return l.Listen(context.Background(), network, address)
}

// dialTimeout is how long a target may take to accept a connection, as with AWS.
const dialTimeout = 10 * time.Second

func (c Config) withDefaults() Config {
	c.Host = cmp.Or(c.Host, "127.0.0.1")
	c.Connections = cmp.Or(c.Connections, 10_000)
	c.DrainTime = cmp.Or(c.DrainTime, 30*time.Second)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Observer == nil {
		c.Observer = nobody{}
	}
	if c.Listen == nil {
		c.Listen = listen
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return c
}

// Proxy is a running proxy. Whoever calls Set also calls Run.
type Proxy struct {
	Config
	ctx     context.Context // ends the health checks, and what's left of the traffic
	cancel  context.CancelFunc
	work    sync.WaitGroup
	clients *clients
	flows   *clients // of datagrams
	ends    sync.Map // network load balancers' own addresses towards their targets: of connections, and of flows of datagrams
	reverse *httputil.ReverseProxy
	cookies atomic.Pointer[cookies]

	mu      sync.Mutex
	ended   bool
	doors   map[address]opening
	pools   map[string]*pool
	leaving map[*target]bool // they drain, and no group has them anymore
}

// New returns a proxy without listeners.
func New(c Config) *Proxy {
	p := &Proxy{Config: c.withDefaults(), doors: map[address]opening{}, pools: map[string]*pool{}, leaving: map[*target]bool{}}
	p.clients = newClients(p.Connections)
	p.flows = newClients(p.Connections)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.reverse = p.newReverse()
	return p
}

// Run carries traffic until the context ends. Then it takes no more, and lets what there is come to its end.
func (p *Proxy) Run(ctx context.Context) error {
	<-ctx.Done()
	p.mu.Lock()
	p.ended = true
	var draining sync.WaitGroup
	for _, d := range p.doors {
		draining.Go(d.drain)
	}
	p.mu.Unlock()
	draining.Wait()
	p.cancel()
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.pools {
		for _, t := range pool.targets {
			t.cut()
		}
	}
	return nil
}

// Set makes the proxy carry out another configuration, which the caller changes no more. Connections of listeners that stay stay open;
// those of listeners that go end as their requests do. A configuration that can't be carried out changes nothing.
func (p *Proxy) Set(b routing.Balancers) error {
	if err := routing.Validate(&b); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errors.New("the proxy has ended")
	}
	opened, err := p.openLocked(&b)
	if err != nil {
		return err
	}
	p.cookies.Store(newCookies(b.CookieKey, p.cookies.Load()))
	retire := p.setPoolsLocked(&b)
	wanted := map[address]bool{}
	for i := range b.Balancers {
		for j := range b.Balancers[i].Listeners {
			l := &b.Balancers[i].Listeners[j]
			for _, at := range addresses(l) {
				wanted[at] = true
				if d := opened[at]; d != nil {
					p.doors[at] = d
				}
				p.doors[at].set(newRoute(&b.Balancers[i], l, p.pools, p.doors[at].current()))
			}
		}
	}
	for _, d := range opened {
		p.work.Go(d.accept)
	}
	retire() // now that all listeners know of others, so that no request finds draining targets alone
	for at, d := range p.doors {
		if !wanted[at] {
			delete(p.doors, at)
			d.close() // at once, so that the port is free; drain closes what else there is
			p.work.Go(d.drain)
		}
	}
	return nil
}

// addresses are where a listener is.
func addresses(l *routing.Listener) (all []address) {
	for _, network := range routing.Networks(l.Protocol) {
		all = append(all, address{network, l.ServedPort()})
	}
	return all
}

// openLocked opens the ports that are new: all or none.
func (p *Proxy) openLocked(b *routing.Balancers) (map[address]opening, error) {
	opened := map[address]opening{}
	for i := range b.Balancers {
		for j := range b.Balancers[i].Listeners {
			l := &b.Balancers[i].Listeners[j]
			for _, at := range addresses(l) {
				if p.doors[at] != nil {
					continue
				}
				d, err := p.open(at)
				if err != nil {
					for _, d := range opened {
						d.close() // nobody knows it yet
					}
					return nil, fmt.Errorf("listener %s: %w", l.ARN, err)
				}
				opened[at] = d
			}
		}
	}
	return opened, nil
}

func (p *Proxy) open(at address) (opening, error) {
	hostPort := net.JoinHostPort(p.Host, strconv.Itoa(at.port))
	if at.network == "udp" {
		c, err := net.ListenPacket("udp", hostPort)
		if err != nil {
			return nil, err
		}
		return newGate(p, c)
	}
	listener, err := p.Listen("tcp", hostPort)
	if err != nil {
		return nil, err
	}
	return &door{entry: entry{proxy: p}, listener: listener, letIn: make(chan struct{}), conns: map[*clientConn]*porter{}}, nil
}

// pause says why nothing comes in at the moment, and waits a little: no descriptors are left, most likely.
func (p *Proxy) pause(what string, err error) {
	p.Log.Warn(what, "error", err)
	select {
	case <-p.ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// setPoolsLocked makes the groups what they are to be. Targets that stay keep their health, their connections and their count.
// What it returns makes the others drain.
func (p *Proxy) setPoolsLocked(b *routing.Balancers) (retire func()) {
	used := routing.Used(b)
	kept := map[*target]bool{}
	pools := map[string]*pool{}
	var leave []*target
	for i := range b.Groups {
		g := &b.Groups[i]
		next := &pool{group: g, turn: new(atomic.Uint64)}
		old := p.pools[g.ARN]
		if old != nil {
			next.turn = old.turn
		}
		for _, config := range g.Targets {
			t := old.find(g, config)
			if t == nil {
				t = p.newTarget(g, config)
			}
			t.set(g, used[g.ARN])
			if config.Draining {
				leave = append(leave, t)
			}
			kept[t] = true
			next.targets = append(next.targets, t)
		}
		pools[g.ARN] = next
	}
	for _, old := range p.pools {
		for _, t := range old.targets {
			if !kept[t] {
				p.leaving[t] = true
				leave = append(leave, t)
			}
		}
	}
	p.pools = pools
	return func() {
		for _, t := range leave {
			t.retire()
		}
	}
}

// Serves reports whether a listener is served at a port.
func (p *Proxy) Serves(l *routing.Listener, port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, network := range routing.Networks(l.Protocol) {
		if d := p.doors[address{network, port}]; d == nil || d.current().listener.ARN != l.ARN {
			return false
		}
	}
	return true
}

// IsOpen reports whether the proxy listens at a port of a network, tcp or udp.
func (p *Proxy) IsOpen(network string, port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doors[address{network, port}] != nil
}

// TargetHealth is the health of a group's target.
type TargetHealth struct {
	Group  string // its ARN
	Target routing.Target
	Health routing.Health
	// Drained means that it drains, and nothing is under way there.
	Drained bool
}

// Health returns the health of all targets, of those too that still drain.
func (p *Proxy) Health() []TargetHealth {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []TargetHealth
	for _, pool := range p.pools {
		for _, t := range pool.targets {
			out = append(out, TargetHealth{pool.group.ARN, t.Target, t.currentHealth(), t.isGone()})
		}
	}
	for t := range p.leaving {
		if t.isGone() {
			delete(p.leaving, t)
			continue
		}
		out = append(out, TargetHealth{t.group, t.Target, t.currentHealth(), false})
	}
	return out
}
