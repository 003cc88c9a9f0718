package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// behind returns a connection to a balancer whose target serves connections as told. Health checks are answered.
func behind(t *testing.T, serve func(net.Conn, *http.Request)) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serveAll(l, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if strings.HasPrefix(r.UserAgent(), "ELB-HealthChecker") {
				io.WriteString(c, ok+"Content-Length: 0\r\n\r\n") //nolint:errcheck // a test
				continue
			}
			serve(c, r)
		}
	})
	p, _ := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", l.Addr().String())}}))
	settle(t, p, 1)
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // the next read tells
	return c
}

// TestAnswersPass: what targets answer reaches clients whole, with what stands before and behind it, and nothing that stands after it.
func TestAnswersPass(t *testing.T) {
	const private = "Connection: X-Own, keep-alive\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\n"
	answers := map[string]string{
		"/length":   ok + private + "X-Kept: 1\r\nContent-Length: 2\r\n\r\nhi",
		"/chunks":   ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		"/trailer":  ok + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 3\r\n\r\n",
		"/unasked":  ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 3\r\n\r\n",
		"/hints":    "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi",
		"/two":      ok + "Content-Length: 2\r\n\r\nhi" + ok + "Content-Length: 4\r\n\r\nevil",
		"/long":     ok + "Content-Length: 2\r\n\r\nhievil",
		"/nothing":  "HTTP/1.1 204 No Content\r\n\r\n",
		"/unchange": "HTTP/1.1 304 Not Modified\r\nEtag: \"a\"\r\n\r\n",
	}
	c := behind(t, func(c net.Conn, r *http.Request) { io.WriteString(c, answers[r.URL.Path]) }) //nolint:errcheck // a test
	in := bufio.NewReader(c)
	for _, own := range []string{"", "Te: trailers\r\nConnection: Te\r\n"} { // the porter answers, then net/http's server
		for _, path := range []string{"/length", "/chunks", "/trailer", "/unasked", "/hints", "/two", "/long", "/nothing", "/unchange"} {
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, own)
			resp, err := http.ReadResponse(in, nil)
			if err == nil && resp.StatusCode == http.StatusEarlyHints && resp.Header.Get("Link") == "x" && path == "/hints" {
				resp, err = http.ReadResponse(in, nil)
			}
			if err != nil {
				t.Fatal(path, err)
			}
			body, err := io.ReadAll(resp.Body)
			want := map[string]string{"/nothing": "", "/unchange": ""}
			text, isEmpty := want[path]
			if !isEmpty {
				text = "hi"
			}
			if string(body) != text || err != nil {
				t.Errorf("%s: %s, %q, %v", path, resp.Status, body, err)
			}
			if resp.Header.Get("X-Own") != "" || resp.Header.Get("Keep-Alive") != "" || path == "/length" && resp.Header.Get("X-Kept") != "1" ||
				resp.Header["Content-Type"] != nil || resp.Header["Date"] == nil {
				t.Errorf("%s: %v", path, resp.Header)
			}
			if sum := resp.Trailer.Get("X-Sum"); (sum == "3") != (path == "/trailer" || path == "/unasked") {
				t.Errorf("%s: behind it stands %v", path, resp.Trailer)
			}
		}
	}
}

// TestAnswersStream: each bit of an answer without a length, or of events, is passed on before the next is there.
func TestAnswersStream(t *testing.T) {
	for name, head := range map[string]string{
		"chunks": "Transfer-Encoding: chunked\r\n\r\n",
		"events": "Content-Type: text/event-stream; charset=utf-8\r\nContent-Length: 6\r\n\r\n",
	} {
		more := make(chan bool)
		c := behind(t, func(c net.Conn, _ *http.Request) {
			io.WriteString(c, ok+head) //nolint:errcheck // a test
			for range 3 {
				<-more
				if name == "chunks" {
					io.WriteString(c, "2\r\nhi\r\n") //nolint:errcheck // a test
					continue
				}
				io.WriteString(c, "hi") //nolint:errcheck // a test
			}
			if name == "chunks" {
				io.WriteString(c, "0\r\n\r\n") //nolint:errcheck // a test
			}
		})
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") //nolint:errcheck // the answer tells
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		for range 3 {
			more <- true
			var bit [2]byte
			if _, err := io.ReadFull(resp.Body, bit[:]); err != nil || string(bit[:]) != "hi" {
				t.Fatalf("%s: %q, %v", name, bit, err)
			}
		}
	}
}

// TestAnswersBreakOff: an answer that its target cuts looks cut to the client, too.
func TestAnswersBreakOff(t *testing.T) {
	for name, head := range map[string]string{"a length": "Content-Length: 9\r\n\r\nhi", "chunks": "Transfer-Encoding: chunked\r\n\r\n9\r\nhi"} {
		c := behind(t, func(c net.Conn, _ *http.Request) {
			io.WriteString(c, ok+head) //nolint:errcheck // a test
			c.Close()
		})
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") //nolint:errcheck // the answer tells
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestClientGoes: a target hears that the client which it works for is gone, before its answer and in it.
func TestClientGoes(t *testing.T) {
	for name, head := range map[string]string{"before": "", "within": ok + "Content-Length: 9\r\n\r\nhi"} {
		asked, told := make(chan bool, 1), make(chan error, 1)
		c := behind(t, func(c net.Conn, _ *http.Request) {
			io.WriteString(c, head) //nolint:errcheck // a test
			asked <- true
			_, err := c.Read(make([]byte, 1))
			told <- err
		})
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") //nolint:errcheck // the target tells
		<-asked
		c.Close()
		if err := <-told; err == nil {
			t.Error(name, ": there is more to read")
		}
	}
}
