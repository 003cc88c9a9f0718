package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/pintle/pintle/internal/elb/routing"
)

// scripted is a target that answers the nth request on its mth connection as told. An answer of "" closes the connection.
func scripted(t *testing.T, answer func(connection, request int) string) (*lane, *atomic.Int32) {
	t.Helper()
	return scriptedBy(t, func(c net.Conn, n int) {
		in := bufio.NewReader(c)
		for i := 1; ; i++ {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			text := answer(n, i)
			if text == "" {
				return
			}
			text, isLast := strings.CutSuffix(text, "<close>")
			io.WriteString(c, text) //nolint:errcheck // the lane sees it
			if isLast {
				return
			}
		}
	})
}

// scriptedBy is a target whose nth connection is served as told.
func scriptedBy(t *testing.T, serve func(c net.Conn, n int)) (*lane, *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	opened := new(atomic.Int32)
	go serveAll(l, func(c net.Conn) { serve(c, int(opened.Add(1))) })
	return &lane{dial: func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}}, opened
}

// ask sends a request by a lane, and returns the body of its answer.
func ask(ctx context.Context, l *lane, method string) (string, error) {
	return hinted(ctx, l, method, func(int, http.Header) {})
}

func hinted(ctx context.Context, l *lane, method string, hint func(int, http.Header)) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://target/", nil)
	if err != nil {
		return "", err
	}
	resp, err := l.send(newCall(ctx, r, hint))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// newCall is a call that is cut when ctx ends.
func newCall(ctx context.Context, r *http.Request, hint func(int, http.Header)) *call {
	c := &call{Request: r, hint: hint}
	context.AfterFunc(ctx, func() { c.cut(context.Canceled) })
	return c
}

const ok = "HTTP/1.1 200 OK\r\n"

// TestLane: how a target's answers end says whether its connection is used again. Each request gets its own answer, and no other.
func TestLane(t *testing.T) {
	always := func(text string) func(int, int) string { return func(int, int) string { return text } }
	for _, c := range []struct {
		name   string
		method string
		answer func(connection, request int) string
		want   string
		opened int32 // connections for three requests
	}{
		{"a length", "GET", always(ok + "Content-Length: 2\r\n\r\nhi"), "hi", 1},
		{"chunks", "GET", always(ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nTrailer: x\r\n\r\n"), "hi", 1},
		{"nothing", "GET", always("HTTP/1.1 204 No Content\r\n\r\n"), "", 1},
		{"a head", "HEAD", always(ok + "Content-Length: 2\r\n\r\n"), "", 1},
		{"until the end", "GET", always(ok + "\r\nhi<close>"), "hi", 3},
		{"the target closes", "GET", always(ok + "Connection: close\r\nContent-Length: 2\r\n\r\nhi"), "hi", 3},
		{"the target closes without a word", "GET", always(ok + "Content-Length: 2\r\n\r\nhi<close>"), "hi", 3},
		{"a second answer that nobody asked for", "GET", always(ok + "Content-Length: 2\r\n\r\nhi" + ok + "Content-Length: 4\r\n\r\nevil"), "hi", 3},
		{"it closes as the next request comes", "GET", func(_, request int) string {
			if request > 1 {
				return ""
			}
			return ok + "Content-Length: 2\r\n\r\nhi"
		}, "hi", 3},
		{"answers before the answer", "GET", always("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi"), "hi", 1},
	} {
		l, opened := scripted(t, c.answer)
		for range 3 {
			if got, err := ask(t.Context(), l, c.method); got != c.want || err != nil {
				t.Errorf("%s: %q, %v", c.name, got, err)
			}
		}
		if n := opened.Load(); n != c.opened {
			t.Errorf("%s: there were %d connections, not %d", c.name, n, c.opened)
		}
	}
}

// TestLaneRefuses: what isn't an answer is an error, and nothing is asked again that a target may have begun with on a new connection.
func TestLaneRefuses(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":                "",
		"no HTTP":                "hello\r\n\r\n",
		"a large header":         ok + "X: " + strings.Repeat("a", maxResponseHeader) + "\r\n\r\n",
		"too many before":        strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 7) + ok + "Content-Length: 0\r\n\r\n",
		"another protocol":       "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"two lengths":            ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"less than it announced": ok + "Content-Length: 9\r\n\r\nab<close>",
	} {
		l, opened := scripted(t, func(int, int) string { return answer })
		if got, err := ask(t.Context(), l, "GET"); err == nil {
			t.Errorf("%s: %q", name, got)
		}
		if n := opened.Load(); n != 1 {
			t.Errorf("%s: there were %d connections", name, n)
		}
		if len(l.idle) != 0 {
			t.Errorf("%s: the connection is kept", name)
		}
	}
}

// TestLaneTellsHints: answers before the answer are passed on.
func TestLaneTellsHints(t *testing.T) {
	l, _ := scripted(t, func(int, int) string {
		return "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n"
	})
	told := 0
	hint := func(code int, h http.Header) {
		if told++; code != 103 || h.Get("Link") != "x" {
			t.Errorf("told of %d %v", code, h)
		}
	}
	if _, err := hinted(t.Context(), l, "GET", hint); err != nil || told != 1 {
		t.Errorf("told %d times: %v", told, err)
	}
}

// TestLaneEnds: a request whose client is gone ends, before the answer and in it, and its connection with it.
func TestLaneEnds(t *testing.T) {
	l, _ := scripted(t, func(int, int) string { return "HTTP/1.1 103 Early Hints\r\n\r\n" })
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := hinted(ctx, l, "GET", func(int, http.Header) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("before the answer: %v", err)
	}
	l, _ = scripted(t, func(int, int) string { return ok + "Content-Length: 5\r\n\r\nhi" })
	ctx, cancel = context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", "http://target/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := l.send(newCall(ctx, r, nil))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("within the answer: %v", err)
	}
	resp.Body.Close()
	if len(l.idle) != 0 {
		t.Error("the connection is kept")
	}
}

// TestTakes: requests that want another protocol, or to be told to go on, go by the transport.
func TestTakes(t *testing.T) {
	plain := &routing.Group{Protocol: routing.HTTP}
	request := func(method, body string, headers ...string) *http.Request {
		r := httptest.NewRequest(method, "/", strings.NewReader(body))
		if body == "" {
			r = httptest.NewRequest(method, "/", nil)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return r
	}
	for name, c := range map[string]struct {
		g    *routing.Group
		r    *http.Request
		want bool
	}{
		"GET":        {plain, request("GET", ""), true},
		"HEAD":       {plain, request("HEAD", ""), true},
		"a body":     {plain, request("GET", "x"), true},
		"POST":       {plain, request("POST", ""), true},
		"DELETE":     {plain, request("DELETE", ""), true},
		"an upgrade": {plain, request("GET", "", "Upgrade", "websocket"), false},
		"Expect":     {plain, request("GET", "", "Expect", "100-continue"), false},
		"TLS":        {&routing.Group{Protocol: routing.HTTPS}, request("GET", ""), false},
		"HTTP/2":     {&routing.Group{Protocol: routing.HTTP, ProtocolVersion: routing.HTTP2}, request("GET", ""), false},
		"gRPC":       {&routing.Group{Protocol: routing.HTTP, ProtocolVersion: routing.GRPC}, request("GET", ""), false},
	} {
		if got := takes(c.g, c.r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// post sends a request with a body by a lane, and returns its answer's body.
func post(l *lane, from io.Reader, length int64) (string, error) {
	r := httptest.NewRequest("POST", "/", nil)
	b := &body{ReadCloser: io.NopCloser(from)}
	r.Body, r.ContentLength = b, length
	resp, err := l.send(&call{Request: r})
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return string(got), err
}

// echoing answers each request with its body, and closes a connection after so many.
func echoing(t *testing.T, most int) (*lane, *atomic.Int32) {
	t.Helper()
	return scriptedBy(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		for range most {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n%s", ok, len(text), text)
		}
		http.ReadRequest(in) //nolint:errcheck // it's never answered
	})
}

// TestLaneBodies: bodies arrive whole, of a known length and not, and their connection is used again.
func TestLaneBodies(t *testing.T) {
	l, opened := echoing(t, 100)
	large := strings.Repeat("x", 1<<20)
	for _, text := range []string{"hi", large, "again"} {
		for _, length := range []int64{int64(len(text)), -1} {
			if got, err := post(l, strings.NewReader(text), length); got != text || err != nil {
				t.Errorf("%d bytes, announced %d: %d came back, %v", len(text), length, len(got), err)
			}
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("there were %d connections", n)
	}
}

// TestLaneAsksOnce: what may change something is never sent twice, though the target closed the connection without a word.
func TestLaneAsksOnce(t *testing.T) {
	l, opened := echoing(t, 1)
	if got, err := post(l, strings.NewReader("one"), 3); got != "one" || err != nil {
		t.Fatal(got, err)
	}
	if got, err := post(l, strings.NewReader("two"), 3); err == nil {
		t.Errorf("the second has an answer: %q", got)
	}
	if n := opened.Load(); n != 1 || len(l.idle) != 0 {
		t.Errorf("%d connections, %d kept", n, len(l.idle))
	}
}

// TestLaneAnswersEarly: an answer that comes before its request's body has ended is passed on, and the connection isn't used again.
func TestLaneAnswersEarly(t *testing.T) {
	l, _ := scripted(t, func(int, int) string { return "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig" })
	endless, w := io.Pipe()
	defer w.Close()
	for _, length := range []int64{-1, 10} {
		if got, err := post(l, endless, length); got != "big" || err != nil {
			t.Errorf("announced %d: %q, %v", length, got, err)
		}
		if len(l.idle) != 0 {
			t.Errorf("announced %d: the connection is kept", length)
		}
	}
}

// TestLaneBodyFails: when a client's body breaks off, the target isn't left waiting for the rest, nor asked again.
func TestLaneBodyFails(t *testing.T) {
	ended := make(chan error, 1)
	l, opened := scriptedBy(t, func(c net.Conn, _ int) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			_, err = io.ReadAll(r.Body)
		}
		ended <- err
	})
	for _, length := range []int64{-1, 10} {
		broken := errors.New("broken")
		if _, err := post(l, io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), length); !errors.Is(err, broken) {
			t.Errorf("announced %d: %v", length, err)
		}
		if err := <-ended; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("announced %d: the target reads %v", length, err)
		}
	}
	if n := opened.Load(); n != 2 || len(l.idle) != 0 {
		t.Errorf("%d connections, %d kept", n, len(l.idle))
	}
}
