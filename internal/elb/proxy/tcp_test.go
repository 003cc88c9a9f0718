package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/elb/routing"
)

// readHeader reads a header of the PROXY protocol as a target does.
func readHeader(r io.Reader) (command byte, from, to netip.AddrPort, err error) {
	head := make([]byte, 16)
	if _, err = io.ReadFull(r, head); err != nil {
		return
	}
	if !bytes.HasPrefix(head, []byte{0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A}) {
		return 0, from, to, fmt.Errorf("no signature: %x", head)
	}
	rest := make([]byte, binary.BigEndian.Uint16(head[14:]))
	if _, err = io.ReadFull(r, rest); err != nil {
		return
	}
	size := map[byte]int{0x00: 0, 0x11: 4, 0x21: 16}[head[13]]
	if len(rest) != 0 && len(rest) != 2*size+4 || head[13] != 0 && size == 0 {
		return 0, from, to, fmt.Errorf("family %x with %d bytes", head[13], len(rest))
	}
	if size > 0 {
		a, _ := netip.AddrFromSlice(rest[:size])
		b, _ := netip.AddrFromSlice(rest[size : 2*size])
		from = netip.AddrPortFrom(a, binary.BigEndian.Uint16(rest[2*size:]))
		to = netip.AddrPortFrom(b, binary.BigEndian.Uint16(rest[2*size+2:]))
	}
	return head[12], from, to, nil
}

func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1}, []byte{127, 0, 0, 1}, uint16(1), uint16(2))
	f.Add([]byte(net.ParseIP("fd00::1")), []byte{10, 0, 0, 1}, uint16(65535), uint16(0))
	f.Fuzz(func(t *testing.T, from, to []byte, fromPort, toPort uint16) {
		a, ok := netip.AddrFromSlice(from)
		b, okToo := netip.AddrFromSlice(to)
		if !ok || !okToo {
			return
		}
		command, source, destination, err := readHeader(bytes.NewReader(proxyHeader(netip.AddrPortFrom(a, fromPort), netip.AddrPortFrom(b, toPort))))
		if err != nil || command != 0x21 || source.Addr().Unmap() != a.Unmap() || destination.Addr().Unmap() != b.Unmap() ||
			source.Port() != fromPort || destination.Port() != toPort {
			t.Errorf("%v:%d to %v:%d are %x %v %v %v", a, fromPort, b, toPort, command, source, destination, err)
		}
	})
}

// TestProxyProtocol: the target learns who its client is, and that health checks are no client's.
func TestProxyProtocol(t *testing.T) {
	for _, check := range []string{routing.TCP, routing.HTTP} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		commands := make(chan byte, 100)
		go serveHeaders(l, commands)
		p, _ := start(t, Config{})
		port := freePort(t)
		set(t, p, one(port, routing.TCP, routing.Group{
			Protocol: routing.TCP, Targets: []routing.Target{targetOf("a", l.Addr().String())},
			Attributes: routing.GroupAttributes{ProxyProtocol: true}, HealthCheck: routing.HealthCheck{Protocol: check},
		}))
		if command := <-commands; command != 0x20 {
			t.Errorf("the check by %s has command %x", check, command)
		}
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.9")}}).Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "hello") //nolint:errcheck // a test
		want := fmt.Sprintf("%s 127.0.0.1:%d hello <nil>", c.LocalAddr(), port)
		if got, _ := io.ReadAll(c); string(got) != want {
			t.Errorf("%q, and not %q", got, want)
		}
		c.Close()
	}
}

// serveHeaders answers five bytes with what the header before them says.
func serveHeaders(l net.Listener, commands chan<- byte) {
	serveAll(l, func(c net.Conn) {
		command, from, to, err := readHeader(c)
		commands <- command
		text, _ := io.ReadAll(io.LimitReader(c, 5))
		fmt.Fprint(c, from, " ", to, " ", string(text), " ", err)
	})
}

// TestTLSListener: certificates by name, protocols by policy, and targets by TCP or by TLS that hear of the protocol.
func TestTLSListener(t *testing.T) {
	first, firstParsed := certificate(t, "one.example.com")
	second, secondParsed := certificate(t, "two.example.com")
	roots := x509.NewCertPool()
	roots.AddCert(firstParsed)
	roots.AddCert(secondParsed)
	own, err := tls.X509KeyPair([]byte(first.Certificate), []byte(first.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secured, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []net.Listener{plain, secured} {
		defer l.Close()
		go serveProtocol(l)
	}
	for _, c := range []struct {
		name, group, policy, minimum string
		ask                          []string
		want                         string // of the client's protocol, and the target's
	}{
		{"TCP behind", routing.TCP, "", "", nil, "- plain"},
		{"a policy of none", routing.TLS, "None", "", []string{"h2"}, "- -"},
		{"TLS behind", routing.TLS, "", "", nil, "- -"},
		{"HTTP/2 preferred", routing.TLS, routing.HTTP2Preferred, "", []string{"http/1.1", "h2"}, "h2 h2"},
		{"HTTP/2 optional", routing.TLS, routing.HTTP2Optional, "", []string{"h2", "http/1.1"}, "http/1.1 http/1.1"},
		{"HTTP/2 only", routing.TCP, routing.HTTP2Only, "", []string{"http/1.1"}, "- plain"},
		{"HTTP/2 only, and neither", routing.TCP, routing.HTTP2Only, "", []string{"spdy/3"}, "refused"},
		{"HTTP/1 only", routing.TCP, routing.HTTP1Only, "1.3", []string{"h2", "http/1.1"}, "http/1.1 plain"},
	} {
		p, saw := start(t, Config{})
		port := freePort(t)
		address := plain.Addr().String()
		if c.group == routing.TLS {
			address = secured.Addr().String()
		}
		b := one(port, routing.TLS, routing.Group{Protocol: c.group, Targets: []routing.Target{targetOf("a", address)}})
		l := &b.Balancers[0].Listeners[0]
		l.Certificates, l.ALPNPolicy, l.MinTLS = []routing.Certificate{first, second}, c.policy, c.minimum
		set(t, p, b)
		settle(t, p, 1)
		for _, server := range []string{"one.example.com", "two.example.com"} {
			got := roundTrip(port, &tls.Config{RootCAs: roots, ServerName: server, NextProtos: c.ask})
			if c.want == "refused" && strings.Contains(got, "no application protocol") {
				continue
			}
			if got != c.want {
				t.Errorf("%s, %s: %q, and not %q", c.name, server, got, c.want)
			}
		}
		old := roundTrip(port, &tls.Config{RootCAs: roots, ServerName: "one.example.com", MaxVersion: tls.VersionTLS12, NextProtos: c.ask})
		if refused := strings.Contains(old, "protocol version"); refused != (c.minimum == "1.3") {
			t.Errorf("%s by TLS 1.2: %s", c.name, old)
		}
		eventually(t, "the flows are told", func() bool {
			saw.mu.Lock()
			defer saw.mu.Unlock()
			return c.want == "refused" || len(saw.flows) >= 2 && saw.flows[0].Received == 2 && saw.flows[0].Group == "group"
		})
	}
}

// serveProtocol tells clients by which protocol they have come.
func serveProtocol(l net.Listener) {
	serveAll(l, func(c net.Conn) {
		text, _ := io.ReadAll(io.LimitReader(c, 2))
		protocol := "plain"
		if s, ok := c.(*tls.Conn); ok {
			protocol = protocolOf(s)
		}
		if string(text) == "hi" {
			io.WriteString(c, protocol) //nolint:errcheck // a test
		}
	})
}

func protocolOf(c *tls.Conn) string {
	if p := c.ConnectionState().NegotiatedProtocol; p != "" {
		return p
	}
	return "-"
}

// roundTrip returns the protocols of a connection, or what is wrong.
func roundTrip(port int, config *tls.Config) string {
	c, err := tls.Dial("tcp", fmt.Sprint("127.0.0.1:", port), config)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patient))
	io.WriteString(c, "hi") //nolint:errcheck // a test
	text, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err.Error()
	}
	return protocolOf(c) + " " + string(text)
}

// TestHostileToTLS: who speaks no TLS, or nothing at all, gets nothing and is no flow to any target.
func TestHostileToTLS(t *testing.T) {
	p, saw := start(t, Config{})
	port := freePort(t)
	a, _ := echo(t, "a")
	b := one(port, routing.TLS, routing.Group{Protocol: routing.TCP, Targets: []routing.Target{a}})
	key, _ := certificate(t, "one.example.com")
	b.Balancers[0].Listeners[0].Certificates = []routing.Certificate{key}
	set(t, p, b)
	settle(t, p, 1)
	for name, text := range map[string]string{
		"HTTP": "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "nothing": "", "a hello that is too large": "\x16\x03\x01\xff\xff" + strings.Repeat("x", 70000),
		"a hello cut off": "\x16\x03\x01\x00\x40\x01\x00",
	} {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, text)       //nolint:errcheck // it may be closed by then
		c.(*net.TCPConn).CloseWrite() //nolint:errcheck // as above
		c.SetDeadline(time.Now().Add(patient))
		if got, _ := io.ReadAll(c); strings.HasPrefix(string(got), "a") {
			t.Errorf("%s: the target answers", name)
		}
		c.Close()
	}
	eventually(t, "none is left", func() bool { return p.clients.count() == 0 })
	if len(saw.flows) != 0 {
		t.Errorf("%+v", saw.flows)
	}
}

// TestConnectionsGoRoundOnce: a listener that is its own target, by TCP or TLS, ends a client's connection, which takes no room of others.
func TestConnectionsGoRoundOnce(t *testing.T) {
	for _, protocol := range []string{routing.TCP, routing.TLS} {
		p, _ := start(t, Config{Connections: 200})
		port := freePort(t)
		at := fmt.Sprint("127.0.0.1:", port)
		b := one(port, protocol, routing.Group{Protocol: protocol, Targets: []routing.Target{targetOf("itself", at)}})
		if protocol == routing.TLS {
			key, _ := certificate(t, "itself")
			b.Balancers[0].Listeners[0].Certificates = []routing.Certificate{key}
		}
		set(t, p, b)
		settle(t, p, 1)
		for range 5 {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			if protocol == routing.TLS {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			}
			fmt.Fprint(c, "x")
			c.SetReadDeadline(time.Now().Add(patient))
			if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || p.clients.count() > 50 {
				t.Errorf("%s goes round: %v, %d connections", protocol, err, p.clients.count())
			}
			c.Close()
		}
		eventually(t, "all are forgotten", func() bool {
			left := 0
			p.ends.Range(func(any, any) bool { left++; return true })
			return left == 0
		})
	}
}

// TestClientWithOwnPort: a client whose port is that of a connection to its target, which the kernel allows, is served all the same.
func TestClientWithOwnPort(t *testing.T) {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: freePort(t)}
	shared := net.Dialer{LocalAddr: from, Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) //nolint:errcheck // the dial tells
		})
	}}
	var served atomic.Bool // the target's first checks come from any port
	p, _ := start(t, Config{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if served.Load() {
			return shared.DialContext(ctx, network, address)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	port := freePort(t)
	set(t, p, one(port, routing.TCP, routing.Group{Protocol: routing.TCP, Targets: []routing.Target{named(t, "a")}}))
	settle(t, p, 1)
	served.Store(true)
	c, err := shared.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patient))
	fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n") //nolint:errcheck // the answer tells
	if answer, err := io.ReadAll(c); !strings.HasSuffix(string(answer), "a") {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestConnectionTermination: what is open to a target that was deregistered ends with the delay only if its group says so.
func TestConnectionTermination(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go echoAll(l)
	a := targetOf("a", l.Addr().String())
	for _, terminates := range []bool{false, true} {
		p, _ := start(t, Config{})
		port, delay := freePort(t), 1
		group := func(targets ...routing.Target) routing.Balancers {
			return one(port, routing.TCP, routing.Group{Protocol: routing.TCP, Targets: targets, Attributes: routing.GroupAttributes{
				DeregistrationDelaySeconds: &delay, ConnectionTermination: terminates,
			}})
		}
		set(t, p, group(a))
		settle(t, p, 1)
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		said := make([]byte, 1)
		says := func() error {
			if _, err := c.Write([]byte("x")); err != nil {
				return err
			}
			_, err := io.ReadFull(c, said)
			return err
		}
		if err := says(); err != nil {
			t.Fatal(err)
		}
		set(t, p, group())
		eventually(t, "the delay is over", func() bool { return len(p.Health()) == 0 })
		if err := says(); (err != nil) != terminates {
			t.Errorf("terminates %v: %v", terminates, err)
		}
	}
}

// serveAll serves each connection of a listener by itself, until that is closed.
func serveAll(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			serve(c)
		}()
	}
}

// echoAll answers what comes on connections with the same.
func echoAll(l net.Listener) {
	serveAll(l, func(c net.Conn) {
		io.Copy(c, c) //nolint:errcheck // a test
	})
}
