package proxy

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/twoway"
)

// echo answers datagrams at a port of both UDP and TCP, with its name before what it got and who sent it. Health checks find it by TCP.
func echo(t *testing.T, name string) (target routing.Target, end func()) {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil {
			l.Close()
			continue
		}
		go answerAll(c, name)
		go acceptAll(l, name)
		end = func() { l.Close(); c.Close() }
		t.Cleanup(end)
		return targetOf(name, l.Addr().String()), end
	}
	t.Fatal("no port is free for both")
	return target, nil
}

func answerAll(c net.PacketConn, name string) {
	room := make([]byte, maxDatagram)
	for {
		n, from, err := c.ReadFrom(room)
		if err != nil {
			return
		}
		text := string(room[:n])
		if n < 100 {
			text = fmt.Sprint(name, " ", from, " ", text)
		}
		c.WriteTo([]byte(text), from) //nolint:errcheck // a test
	}
}

func acceptAll(l net.Listener, name string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		io.WriteString(c, name) //nolint:errcheck // a test
		c.Close()
	}
}

// dialUDP returns a client's socket, from an address.
func dialUDP(t *testing.T, from string, port int) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}).Dial("udp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a datagram and returns the answer; "" if there is none.
func say(c net.Conn, text string, patience time.Duration) string {
	io.WriteString(c, text) //nolint:errcheck // then there is no answer
	c.SetReadDeadline(time.Now().Add(patience))
	room := make([]byte, maxDatagram)
	n, _ := c.Read(room)
	return string(room[:n])
}

const patient = 20 * time.Second

func udp(port int, protocol string, targets ...routing.Target) routing.Balancers {
	b := one(port, protocol, routing.Group{
		Protocol: protocol, Targets: targets, HealthCheck: routing.HealthCheck{IntervalSeconds: 1, UnhealthyThreshold: 1},
	})
	return b
}

// TestDatagrams: a client stays with its target and is the same to it, two clients meet two targets, the largest and the empty datagram pass, and
// the flow is told when it ends.
func TestDatagrams(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	a, _ := echo(t, "a")
	b, _ := echo(t, "b")
	set(t, p, udp(port, routing.UDP, a, b))
	settle(t, p, 2)
	first, second := dialUDP(t, "127.0.0.2", port), dialUDP(t, "127.0.0.3", port)
	was := say(first, "x", patient)
	if again := say(first, "x", patient); again != was || was == "" {
		t.Errorf("%q, then %q", was, again)
	}
	if other := say(second, "x", patient); other == "" || other[0] == was[0] {
		t.Errorf("%q and %q", was, other)
	}
	large := strings.Repeat("y", maxDatagram)
	if got := say(first, large, patient); got != large {
		t.Errorf("%d bytes of %d", len(got), maxDatagram)
	}
	empty := dialUDP(t, "127.0.0.4", port)
	empty.Write(nil) //nolint:errcheck // a test
	if got := say(empty, "x", patient); !strings.Contains(got, " ") {
		t.Errorf("after an empty datagram: %q", got)
	}
	set(t, p, routing.Balancers{})
	eventually(t, "three flows are told", func() bool {
		saw.mu.Lock()
		defer saw.mu.Unlock()
		for _, f := range saw.flows {
			if f.Client.Addr() == netip.MustParseAddr("127.0.0.2") && (f.Received != maxDatagram+2 || f.Group != "group" || f.Listener != "listener") {
				t.Errorf("%+v", f)
			}
		}
		return len(saw.flows) == 3
	})
}

// TestDatagramsEnd: a flow ends when nothing passed for too long.
func TestDatagramsEnd(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	a, _ := echo(t, "a")
	c := udp(port, routing.UDP, a)
	c.Balancers[0].Listeners[0].IdleTimeoutSeconds = 1
	set(t, p, c)
	settle(t, p, 1)
	was := say(dialUDP(t, "127.0.0.2", port), "x", patient)
	eventually(t, "it ends", func() bool {
		saw.mu.Lock()
		defer saw.mu.Unlock()
		return len(saw.flows) == 1 && saw.flows[0].Duration >= time.Second
	})
	if was == "" || p.flows.count() != 0 {
		t.Error(was, p.flows.count())
	}
}

// TestDatagramsMove: a flow leaves a target that is gone, and one that is deregistered when its time is over.
func TestDatagramsMove(t *testing.T) {
	p, _ := start(t, Config{})
	port := freePort(t)
	a, endA := echo(t, "a")
	b, _ := echo(t, "b")
	c, _ := echo(t, "c")
	set(t, p, udp(port, routing.UDP, a))
	settle(t, p, 1)
	client := dialUDP(t, "127.0.0.2", port)
	if got := say(client, "x", patient); !strings.HasPrefix(got, "a ") {
		t.Fatal(got)
	}
	set(t, p, udp(port, routing.UDP, a, b))
	settle(t, p, 2)
	endA()
	eventually(t, "b answers", func() bool { return strings.HasPrefix(say(client, "x", 100*time.Millisecond), "b ") })
	next := udp(port, routing.UDP, a, b, c)
	next.Groups[0].Targets[1].Draining = true
	set(t, p, next)
	settle(t, p, 1)
	if got := say(client, "x", patient); !strings.HasPrefix(got, "b ") {
		t.Error("a flow has left its target before it had to: ", got)
	}
	p.mu.Lock()
	p.pools["group"].targets[1].cut() // as when the delay is over
	p.mu.Unlock()
	eventually(t, "c answers", func() bool { return strings.HasPrefix(say(client, "x", 100*time.Millisecond), "c ") })
}

// TestCrowdsOfDatagrams: who begins flow after flow loses them to others, and takes no connections from anybody.
func TestCrowdsOfDatagrams(t *testing.T) {
	p, _ := start(t, Config{Connections: 3})
	port := freePort(t)
	a, _ := echo(t, "a")
	set(t, p, udp(port, routing.TCPUDP, a))
	settle(t, p, 1)
	var crowd []net.Conn
	for range 3 {
		c := dialUDP(t, "127.0.0.2", port)
		if say(c, "x", patient) == "" {
			t.Fatal("there was room")
		}
		crowd = append(crowd, c)
	}
	if got := say(dialUDP(t, "127.0.0.2", port), "x", 50*time.Millisecond); got != "" {
		t.Error("the crowd gets one more: ", got)
	}
	other := dialUDP(t, "127.0.0.3", port)
	if got := say(other, "x", patient); got == "" {
		t.Error("another address gets nothing")
	}
	was := say(crowd[2], "x", patient)
	if again := say(crowd[2], "x", patient); again != was || was == "" {
		t.Errorf("the crowd's youngest: %q, then %q", was, again)
	}
	if n := p.flows.count(); n != 3 {
		t.Error(n, " flows")
	}
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, _ := io.ReadAll(c); string(text) != "a" {
		t.Errorf("by TCP: %q", text)
	}
}

// TestDatagramsOfStrangers: datagrams may come in anybody's name. Flows that nobody has gone on with keep no newcomer out, who keeps out nobody that has.
func TestDatagramsOfStrangers(t *testing.T) {
	p, _ := start(t, Config{Connections: 3})
	port := freePort(t)
	a, _ := echo(t, "a")
	set(t, p, udp(port, routing.UDP, a))
	settle(t, p, 1)
	busy := dialUDP(t, "127.0.0.2", port)
	was := say(busy, "x", patient)
	if again := say(busy, "x", patient); again != was || was == "" {
		t.Errorf("%q, then %q", was, again)
	}
	for _, from := range []string{"127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"} {
		if say(dialUDP(t, from, port), "x", patient) == "" {
			t.Error("no room for ", from)
		}
	}
	if again := say(busy, "x", patient); again != was {
		t.Errorf("the busy one: %q, then %q", was, again)
	}
}

// TestDatagramsGoRoundOnce: a listener that is its own target.
func TestDatagramsGoRoundOnce(t *testing.T) {
	p, _ := start(t, Config{})
	port := freePort(t)
	set(t, p, udp(port, routing.TCPUDP, targetOf("itself", fmt.Sprint("127.0.0.1:", port))))
	settle(t, p, 1)
	c := dialUDP(t, "127.0.0.2", port)
	eventually(t, "a flow begins", func() bool { say(c, "x", 10*time.Millisecond); return p.flows.count() > 0 })
	say(c, "x", 200*time.Millisecond)
	if n := p.flows.count(); n != 1 {
		t.Error(n, " flows")
	}
}

// TestListenersForBoth: what becomes a listener for TCP too, or no longer is one, keeps the flows of the protocol that stays.
func TestListenersForBoth(t *testing.T) {
	p, _ := start(t, Config{})
	port := freePort(t)
	a, _ := echo(t, "a")
	open := func() string { return fmt.Sprint(p.IsOpen("tcp", port), p.IsOpen("udp", port)) }
	b := udp(port, routing.TCPUDP, a)
	b.Balancers[0].Listeners[0].Protocol = routing.UDP
	set(t, p, b)
	settle(t, p, 1)
	client := dialUDP(t, "127.0.0.2", port)
	was := say(client, "x", patient)
	both := udp(port, routing.TCPUDP, a)
	set(t, p, both)
	if !p.Serves(&both.Balancers[0].Listeners[0], port) || open() != "true true" {
		t.Error(open())
	}
	set(t, p, b)
	if got := say(client, "x", patient); got != was || open() != "false true" {
		t.Errorf("%q, before %q; %s", got, was, open())
	}
}

// TestQuietFlowsMakeRoom: when all flows are of different addresses and have gone on after an answer, the one that was quiet for the longest time makes
// room for a new address, and none does that is in use.
func TestQuietFlowsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flow := func(n byte) *caller {
			c := &caller{from: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 32), passed: new(twoway.Quiet)}
			c.passed.Touch()
			return c
		}
		a := newClients(2)
		first := flow(1)
		a.admit(first)
		time.Sleep(time.Second)
		second := flow(2)
		a.admit(second)
		time.Sleep(quietEnough - time.Second)
		if _, ok := a.admit(flow(3)); ok {
			t.Error("a flow in use makes room")
		}
		time.Sleep(time.Millisecond)
		if victim, ok := a.admit(flow(3)); !ok || victim != first {
			t.Errorf("%v makes room, and not the quietest flow", victim)
		}
		time.Sleep(time.Minute)
		second.passed.Touch()
		if victim, ok := a.admit(flow(4)); !ok || victim == second {
			t.Errorf("%v makes room, though it's in use", victim)
		}
	})
}
