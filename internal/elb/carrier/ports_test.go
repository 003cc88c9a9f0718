package carrier

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/elb/proxy"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
)

// freePort returns a port from below those that the kernel gives to whoever asks for any.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 21000 + rand.IntN(500)
		if isFree(port) {
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// isFree reports whether nobody has a port, for connections or for datagrams.
func isFree(port int) bool {
	address := fmt.Sprint("127.0.0.1:", port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer l.Close()
	c, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// newCarrier returns a carrier of listeners without a control plane.
func newCarrier(t *testing.T) *Carrier {
	counter := NewCounter()
	p := proxy.New(proxy.Config{Observer: counter, DrainTime: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run(ctx) //nolint:errcheck // it ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return New(p, counter, Options{ID: "one", Dir: t.TempDir(), Host: "127.0.0.1", First: 21500, Last: 21550, Log: slog.New(slog.DiscardHandler)})
}

// listening is a configuration of listeners that answer by themselves.
func listening(version string, ports map[string]int) report.Configuration {
	b := routing.Balancer{ARN: "b", Type: "application"}
	for arn, port := range ports {
		fixed := routing.Action{Type: routing.FixedResponse, Fixed: &routing.Fixed{StatusCode: 200}}
		b.Listeners = append(b.Listeners, routing.Listener{
			ARN: arn, Protocol: routing.HTTP, Port: port, Rules: []routing.Rule{{ARN: arn + "-default", Actions: []routing.Action{fixed}}},
		})
	}
	return report.Configuration{Version: version, Balancers: routing.Balancers{Balancers: []routing.Balancer{b}}}
}

// TestPortsForDatagrams: a port that is taken for the one protocol is free for the other, and for both only if nobody has it.
func TestPortsForDatagrams(t *testing.T) {
	for _, c := range []struct {
		taken, protocol string
		free            bool
	}{{"tcp", "UDP", true}, {"udp", "UDP", false}, {"udp", "TCP", true}, {"udp", "TCP_UDP", false}, {"tcp", "TCP_UDP", false}} {
		f := newCarrier(t)
		port := freePort(t)
		address := fmt.Sprint("127.0.0.1:", port)
		var other io.Closer
		var err error
		if c.taken == "udp" {
			other, err = net.ListenPacket("udp", address)
		} else {
			other, err = net.Listen("tcp", address)
		}
		if err != nil {
			t.Fatal(err)
		}
		to := routing.Forward{Groups: []routing.WeightedGroup{{ARN: "g", Weight: 1}}}
		all := routing.Balancers{Groups: []routing.Group{{ARN: "g", Protocol: c.protocol}}, Balancers: []routing.Balancer{{
			ARN: "b", Type: "network", Listeners: []routing.Listener{{
				ARN: "l", Protocol: c.protocol, Port: port, Rules: []routing.Rule{{ARN: "d", Actions: []routing.Action{{Type: routing.ForwardAction, Forward: &to}}}},
			}},
		}}}
		if err := f.apply(report.Configuration{Version: "1", Balancers: all}); err != nil {
			t.Fatal(err)
		}
		got := f.ports["l"]
		if c.free != (got == port) || got == 0 {
			t.Errorf("%s with %s taken: port %d, asked for %d", c.protocol, c.taken, got, port)
		}
		other.Close()
		if err := f.apply(report.Configuration{Version: "2", Balancers: all}); err != nil || f.ports["l"] != got {
			t.Errorf("%s is at port %d and moves to %d: %v", c.protocol, got, f.ports["l"], err)
		}
	}
}

// TestPortOfAListenerMadeAnew: a listener that takes another's place within one configuration has its port.
func TestPortOfAListenerMadeAnew(t *testing.T) {
	f := newCarrier(t)
	port := freePort(t)
	for version, arn := range []string{"first", "anew"} {
		if err := f.apply(listening(fmt.Sprint(version), map[string]int{arn: port})); err != nil {
			t.Fatal(err)
		}
		if f.ports[arn] != port || len(f.ports) != 1 {
			t.Errorf("%s: %v, and not %d", arn, f.ports, port)
		}
	}
	if err := f.apply(listening("both", map[string]int{"anew": port, "another": port})); err != nil {
		t.Fatal(err)
	}
	if f.ports["anew"] != port || f.ports["another"] < 21500 {
		t.Errorf("two that ask for one port: %v", f.ports)
	}
}
