package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/pintle/pintle/internal/elb/routing"
)

// slowListener accepts what the test hands it, also after it was closed.
type slowListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *slowListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (*slowListener) Close() error   { return nil }
func (*slowListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestLastOneIn: a connection that was accepted as its listener closed gets its answer.
func TestLastOneIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowListener{conns: make(chan net.Conn)}
		p, _ := start(t, Config{Listen: func(string, string) (net.Listener, error) { return l, nil }})
		b := one(80, routing.HTTP, routing.Group{Protocol: routing.HTTP})
		b.Balancers[0].Listeners[0].Rules[0].Actions[0] = routing.Action{Type: routing.FixedResponse, Fixed: &routing.Fixed{StatusCode: 201}}
		set(t, p, b)
		set(t, p, routing.Balancers{})
		synctest.Wait()
		theirs, ours := net.Pipe()
		l.conns <- ours
		close(l.conns)
		go io.WriteString(theirs, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi") //nolint:errcheck // the answer tells
		answer, err := http.ReadResponse(bufio.NewReader(theirs), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 201 {
			t.Errorf("status %d", answer.StatusCode)
		}
		theirs.Close()
	})
}
