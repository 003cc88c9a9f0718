package proxy

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/twoway"
)

// gate is an open port for datagrams. Those from one address and port are a flow, which stays with its target.
type gate struct {
	entry
	socket *net.UDPConn

	mu     sync.Mutex
	flows  map[netip.AddrPort]*datagrams // by the client
	closed bool
}

// datagrams is a flow between a client and a target.
type datagrams struct {
	caller
	gate     *gate
	client   netip.AddrPort
	target   *target
	server   net.Conn
	quiet    twoway.Quiet
	received atomic.Int64 // bytes from the client
	sent     atomic.Int64
	over     bool // guarded by the gate's mu
	tell     Flow
}

const (
	maxDatagram = 65507
	// datagramIdle is after how many seconds without a datagram a flow ends, as with AWS.
	datagramIdle = 120
)

func newGate(p *Proxy, c net.PacketConn) (*gate, error) {
	socket, ok := c.(*net.UDPConn)
	if !ok {
		return nil, errors.New("it's no socket for datagrams")
	}
	socket.SetReadBuffer(4 << 20) //nolint:errcheck // as much as the system gives
	return &gate{entry: entry{proxy: p}, socket: socket, flows: map[netip.AddrPort]*datagrams{}}, nil
}

// set changes the route. Flows that there are stay with their targets.
func (g *gate) set(r *route) { g.route.Store(r) }

// idle is how long a flow may be idle.
func (g *gate) idle() time.Duration {
	seconds := datagramIdle
	if l := g.route.Load().listener; l.Protocol == routing.UDP && l.IdleTimeoutSeconds > 0 {
		seconds = l.IdleTimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

// accept takes datagrams.
func (g *gate) accept() {
	room := make([]byte, maxDatagram)
	for {
		n, from, err := g.socket.ReadFromUDPAddrPort(room)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			g.proxy.pause("receive", err)
			continue
		}
		if f := g.flow(from); f != nil {
			f.pass(room[:n])
		}
	}
}

// flow returns a client's flow, which begins with its first datagram; nil if nobody may have it.
func (g *gate) flow(from netip.AddrPort) *datagrams {
	g.mu.Lock()
	f := g.flows[from]
	g.mu.Unlock()
	if f != nil && !f.isStranded() {
		return f
	}
	if f != nil {
		f.end()
	}
	return g.begin(from)
}

// begin begins a flow. Only accept calls it, so there is one of a client at a time. None begins with a flow's own end: if a target is a listener of
// this process, a datagram would go round for ever.
func (g *gate) begin(from netip.AddrPort) *datagrams {
	if _, isOwn := g.proxy.ends.Load(end{network: "udp", local: plain(from)}); isOwn {
		return nil
	}
	f := &datagrams{gate: g, client: from}
	f.idle.Store(true)
	f.from = placeOfIP(from.Addr())
	f.cut = f.end
	f.quiet.Touch()
	f.passed = &f.quiet
	if !f.connect() {
		return nil
	}
	victim, ok := g.proxy.flows.admit(&f.caller)
	if victim != nil {
		victim.cut()
	}
	if ok && g.keep(f) {
		g.proxy.work.Go(f.answer)
		return f
	}
	f.end()
	return nil
}

// keep puts a flow where its next datagram finds it, unless it was ended to make room, or the gate is closed.
func (g *gate) keep(f *datagrams) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || f.over {
		return false
	}
	g.flows[f.client] = f
	return true
}

// connect finds the flow's target.
func (f *datagrams) connect() bool {
	r := f.gate.route.Load()
	forward := r.listener.Rules[0].Actions[0].Forward
	i := routing.ChooseGroup(forward, rand.Uint64())
	if i < 0 {
		return false // no group has a weight
	}
	pool := r.pools[forward.Groups[i].ARN]
	f.target, f.server = f.gate.connect(pool, f.client.Addr(), func(t *target) (net.Conn, error) { return t.dialNetwork(f.gate.proxy.ctx, "udp") })
	if f.target == nil {
		return false
	}
	f.gate.proxy.ends.Store(endOfFlow(f.server), true)
	f.tell = Flow{
		Balancer: r.balancer.ARN, Listener: r.listener.ARN, Group: pool.group.ARN, Target: f.target.Target, Client: f.client, Start: time.Now(),
	}
	return true
}

// end is the proxy's own end of a connection or a flow towards a target. Of connections the other end belongs to it: the kernel gives one port to
// connections to several addresses, so that a client's may have that of one of ours. A socket for datagrams has its port alone.
type end struct {
	network       string
	local, remote netip.AddrPort
}

func endOfConn(local, remote net.Addr) end {
	return end{"tcp", plain(addressOf(local)), plain(addressOf(remote))}
}

func endOfFlow(c net.Conn) end {
	return end{network: "udp", local: plain(c.LocalAddr().(*net.UDPAddr).AddrPort())}
}

// plain is an address as it's compared: sockets for both kinds of addresses show IPv4 within IPv6.
func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// isStranded reports whether the flow's target doesn't answer health checks while others do.
func (f *datagrams) isStranded() bool {
	if f.target.currentHealth().State != routing.Unhealthy {
		return false
	}
	pool := f.gate.route.Load().pools[f.target.group]
	if pool == nil {
		return false
	}
	for _, t := range pool.targets {
		if t.currentHealth().State == routing.Healthy {
			return true
		}
	}
	return false
}

// pass sends a client's datagram to the target. If nobody listens there, the next one begins a flow anew.
func (f *datagrams) pass(b []byte) {
	f.quiet.Touch()
	if f.sent.Load() > 0 {
		f.idle.Store(false)
	}
	n, err := f.server.Write(b)
	f.received.Add(int64(n))
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, net.ErrClosed) {
		f.end()
	}
}

// answer sends the target's datagrams to the client, until there were none in either direction for too long.
func (f *datagrams) answer() {
	defer f.end()
	raw, err := f.server.(*targetConn).SyscallConn()
	if err != nil {
		f.gate.proxy.Log.Warn("a flow's answers can't be read", "target", f.target.ID, "error", err)
		return
	}
	for {
		idle := f.gate.idle()
		f.server.SetReadDeadline(f.quiet.Since().Add(idle)) //nolint:errcheck // the read tells
		err := receive(raw, f.reply)
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(f.quiet.Since()) < idle {
			continue // the client goes on
		}
		if err != nil {
			return
		}
	}
}

func (f *datagrams) reply(b []byte) {
	f.quiet.Touch()
	f.sent.Add(int64(len(b)))                     // before it's sent: what the client says to it may be here before the call returns
	f.gate.socket.WriteToUDPAddrPort(b, f.client) //nolint:errcheck // datagrams may be lost
}

// end forgets the flow.
func (f *datagrams) end() {
	f.gate.mu.Lock()
	over := f.over
	f.over = true
	if f.gate.flows[f.client] == f {
		delete(f.gate.flows, f.client)
	}
	f.gate.mu.Unlock()
	if over {
		return
	}
	f.gate.proxy.ends.Delete(endOfFlow(f.server))
	f.server.Close() //nolint:errcheck // it's gone either way
	f.gate.proxy.flows.forget(&f.caller)
	f.target.end()
	f.tell.Duration = time.Since(f.tell.Start)
	f.tell.Received = f.received.Load()
	f.tell.Sent = f.sent.Load()
	f.gate.proxy.Observer.Flow(&f.tell)
}

// close takes no more datagrams.
func (g *gate) close() { g.socket.Close() } //nolint:errcheck // it's gone either way

// drain ends all flows. They have no end of their own that could be waited for.
func (g *gate) drain() {
	g.close()
	g.mu.Lock()
	g.closed = true
	open := make([]*datagrams, 0, len(g.flows))
	for _, f := range g.flows {
		open = append(open, f)
	}
	g.mu.Unlock()
	for _, f := range open {
		f.end()
	}
}

// packets are lent for datagrams.
var packets = sync.Pool{New: func() any { return new([maxDatagram]byte) }}

// receive waits for a datagram, and holds no room for it meanwhile: most flows wait most of the time.
func receive(raw syscall.RawConn, then func([]byte)) error {
	var failure error
	err := raw.Read(func(fd uintptr) bool {
		room := packets.Get().(*[maxDatagram]byte)
		defer packets.Put(room)
		n, _, err := unix.Recvfrom(int(fd), room[:], unix.MSG_DONTWAIT)
		for errors.Is(err, unix.EINTR) {
			n, _, err = unix.Recvfrom(int(fd), room[:], unix.MSG_DONTWAIT)
		}
		if errors.Is(err, unix.EAGAIN) {
			return false
		}
		if failure = err; err == nil {
			then(room[:n])
		}
		return true
	})
	return errors.Join(err, failure)
}
