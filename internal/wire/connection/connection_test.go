package connection

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// addressed is one end of a pipe, from an address.
type addressed struct {
	net.Conn
	from   net.Addr
	closed bool
}

func (a *addressed) RemoteAddr() net.Addr { return a.from }

func (a *addressed) Close() error {
	a.closed = true
	return a.Conn.Close()
}

// arrivals is a listener of pipes.
type arrivals chan net.Conn

func (a arrivals) Accept() (net.Conn, error) {
	if c, ok := <-a; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (a arrivals) Close() error   { return nil }
func (a arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// come lets a connection from an address arrive, and returns both ends.
func come(t testing.TB, l *Listener, from string) (client, server net.Conn) {
	t.Helper()
	client, other := net.Pipe()
	l.Listener.(arrivals) <- &addressed{Conn: other, from: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

func newListener(strangers, known int) *Listener {
	return Limit(make(arrivals, 1), Limits{Strangers: strangers, Known: known})
}

func isOpen(nc net.Conn) bool { return !nc.(*conn).Conn.(*addressed).closed }

// TestTheCrowdMakesRoom: the address with the most connections loses the one that has done nothing for the longest time.
func TestTheCrowdMakesRoom(t *testing.T) {
	l := newListener(4, 4)
	_, quiet := come(t, l, "192.0.2.2:1")
	_, first := come(t, l, "192.0.2.1:1")
	_, second := come(t, l, "192.0.2.1:2")
	_, third := come(t, l, "192.0.2.1:3")
	l.State(first, http.StateActive)
	l.State(first, http.StateIdle) // it got an answer, so the second is now the one that waits for longest
	_, fourth := come(t, l, "192.0.2.1:4")
	for name, c := range map[string]struct {
		conn net.Conn
		want bool
	}{"quiet": {quiet, true}, "first": {first, true}, "second": {second, false}, "third": {third, true}, "fourth": {fourth, true}} {
		if isOpen(c.conn) != c.want {
			t.Errorf("%s is open: %v", name, !c.want)
		}
	}
}

// TestRequestsUnderWayStay: whoever waits for an answer stays as long as others from there have no request, but doesn't keep out those that have just
// come.
func TestRequestsUnderWayStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newListener(3, 4)
		_, asks := come(t, l, "192.0.2.1:1")
		l.State(asks, http.StateActive)
		_, idles := come(t, l, "192.0.2.1:2")
		_, other := come(t, l, "192.0.2.1:3")
		time.Sleep(hello)
		_, last := come(t, l, "192.0.2.1:4")
		if !isOpen(asks) || isOpen(idles) || !isOpen(other) {
			t.Errorf("open are %v, %v, %v, want the one with a request and the newer one", isOpen(asks), isOpen(idles), isOpen(other))
		}
		l.State(other, http.StateActive)
		l.State(asks, http.StateIdle)
		l.State(asks, http.StateActive) // its second request is younger than the other's
		_, newest := come(t, l, "192.0.2.1:5")
		if isOpen(other) || !isOpen(asks) || !isOpen(last) || !isOpen(newest) {
			t.Errorf("open are %v, %v, %v, %v, want all but the oldest request's", isOpen(other), isOpen(asks), isOpen(last), isOpen(newest))
		}
	})
}

// TestKnownCallersStay: however many strangers come, callers whose requests were accepted keep their connections.
func TestKnownCallersStay(t *testing.T) {
	l := newListener(4, 2)
	know := func(c net.Conn) { Know(l.Context(t.Context(), c)) }
	_, idle := come(t, l, "192.0.2.1:1")
	know(idle)
	l.State(idle, http.StateIdle)
	_, active := come(t, l, "192.0.2.1:2")
	know(active)
	for port := range 100 {
		come(t, l, fmt.Sprintf("192.0.2.1:%d", 10+port))
	}
	if !isOpen(idle) || !isOpen(active) || l.strangers.size != 4 {
		t.Errorf("idle %v, active %v, %d strangers", isOpen(idle), isOpen(active), l.strangers.size)
	}
	_, third := come(t, l, "192.0.2.1:3")
	know(third)
	if isOpen(idle) || !isOpen(active) || !isOpen(third) || l.known != 2 {
		t.Errorf("of two known callers, an idle one makes room for a third: %v %v %v", isOpen(idle), isOpen(active), isOpen(third))
	}
	_, fourth := come(t, l, "192.0.2.1:4")
	know(fourth)
	if !isOpen(active) || !isOpen(third) || !isOpen(fourth) || l.known != 2 {
		t.Error("without an idle one, another caller stays a stranger")
	}
}

// TestWebSocketsDontCount: nodes' connections are in nobody's way, and nobody's in theirs. Those of strangers count as others do.
func TestWebSocketsDontCount(t *testing.T) {
	l := newListener(2, 1)
	var nodes []net.Conn
	for port := range 10 {
		_, node := come(t, l, fmt.Sprintf("192.0.2.1:%d", 1+port))
		Release(l.Context(t.Context(), node))
		l.State(node, http.StateHijacked)
		nodes = append(nodes, node)
	}
	_, stranger := come(t, l, "192.0.2.1:50")
	l.State(stranger, http.StateHijacked)
	for port := range 10 {
		come(t, l, fmt.Sprintf("192.0.2.1:%d", 100+port))
	}
	for _, node := range nodes {
		if node.(*conn).Conn.(*addressed).closed {
			t.Error("a node's connection was closed")
		}
	}
	if l.strangers.size != 2 || l.known != 0 || isOpen(stranger) {
		t.Errorf("%d strangers, %d known; a stranger's web socket is open: %v", l.strangers.size, l.known, isOpen(stranger))
	}
}

func TestFrom(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:80":          "192.0.2.1/32",
		"[::ffff:192.0.2.1]:80": "192.0.2.1/32",
		"[2001:db8::1:2]:80":    "2001:db8::/64",
		"[fe80::1%eth0]:80":     "fe80::/64",
		"pipe":                  "invalid Prefix",
	} {
		if got := From(remote).String(); got != want {
			t.Errorf("%s is from %s, want %s", remote, got, want)
		}
	}
}

// TestAddsUp: whatever connections do, the counts are those of the open ones.
func TestAddsUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newListener(5, 3)
		var all []net.Conn
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if len(all) == 0 || rapid.Bool().Draw(rt, "comes") {
				_, c := come(t, l, fmt.Sprintf("192.0.2.%d:1", rapid.IntRange(1, 3).Draw(rt, "from")))
				all = append(all, c)
				continue
			}
			c := rapid.SampledFrom(all).Draw(rt, "which")
			switch rapid.IntRange(0, 5).Draw(rt, "does") {
			case 0:
				Know(l.Context(t.Context(), c))
			case 1:
				l.State(c, http.StateIdle)
			case 2:
				l.State(c, http.StateActive)
			case 3:
				l.State(c, http.StateHijacked)
			case 4:
				c.Close() //nolint:errcheck // a pipe
			case 5:
				Release(l.Context(t.Context(), c))
			}
			strangers, known := 0, 0
			for _, c := range all {
				if c := c.(*conn); !c.gone && c.known {
					known++
				} else if !c.gone {
					strangers++
				}
			}
			if strangers != l.strangers.size || known != l.known || strangers > 5 || known > 3 || l.idle.size > known {
				rt.Fatalf("%d strangers of %d, %d known of %d, %d idle", l.strangers.size, strangers, l.known, known, l.idle.size)
			}
		}
	})
}

// TestServer: a server's requests find their connection, and one that goes on calling survives a crowd of strangers.
func TestServer(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Limit(inner, Limits{Strangers: 3, Known: 2})
	server := &http.Server{
		Handler:     http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { Know(r.Context()) }),
		ConnContext: l.Context,
		ConnState:   l.State,
	}
	go server.Serve(l)   //nolint:errcheck // it ends with the test
	defer server.Close() //nolint:errcheck // as above
	caller, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(caller)
	for range 3 {
		if _, err := io.WriteString(caller, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		for range 10 {
			stranger, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close() //nolint:errcheck // it was only there
		}
	}
}

func TestKnowWithoutListener(*testing.T) { Know(context.Background()) }
