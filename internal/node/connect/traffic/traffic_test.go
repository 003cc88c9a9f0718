package traffic

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// open serves a listener of a new proxy, and returns its address.
func open(t *testing.T, what Listener) (*Proxy, string) {
	t.Helper()
	return openFor(t, what, 0)
}

// openFor is open with so much room.
func openFor(t *testing.T, what Listener, most int) (*Proxy, string) {
	t.Helper()
	p := New(Options{Log: slog.New(slog.DiscardHandler), Most: most})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	what.Endpoint = "e"
	ended := make(chan error, 1)
	serve := p.Open(l, what)
	go func() { ended <- serve() }()
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return p, l.Addr().String()
}

// serve runs a server of both versions of HTTP, and returns it as a target.
func serve(t *testing.T, h http.HandlerFunc) Target {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return Target{Address: s.Listener.Addr().String()}
}

// named answers with a name, and the request's body.
func named(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, name, string(b))
	}
}

// nobody is a target where nobody listens.
func nobody(t *testing.T) Target {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return Target{Address: l.Addr().String()}
}

// ask makes a request, and returns the status and body of the answer.
func ask(t *testing.T, method, address, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/path?q=a%20b", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func set(p *Proxy, targets ...Target) { p.Set(map[string][]Target{"e": targets}) }

// TestTurns: targets take turns; one that isn't there is passed over, whatever the request.
func TestTurns(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	if code, _ := ask(t, "GET", at, ""); code != http.StatusServiceUnavailable {
		t.Errorf("without a target: %d", code)
	}
	set(p, serve(t, named("a")), nobody(t), serve(t, named("b")))
	seen := map[string]int{}
	for range 6 {
		for _, method := range []string{"GET", "POST", "PATCH"} {
			code, body := ask(t, method, at, "+")
			if code != http.StatusOK {
				t.Fatalf("%s: %d", method, code)
			}
			seen[body]++
		}
	}
	if len(seen) != 2 || seen["a+"] == 0 || seen["b+"] == 0 {
		t.Error(seen)
	}
	c := p.Counts()[0]
	if c.Requests != 19 || c.Classes[2] != 18 || c.ResponseTime.Count != 18 || c.Bytes < 18*2 || c.Targets != 3 || c.Connections == 0 {
		t.Errorf("%+v", c)
	}
	if again := p.Counts()[0]; again.Requests != 0 || again.Active != c.Active {
		t.Errorf("again: %+v", again)
	}
}

// TestAsItWasSent: a request passes as the client sent it.
func TestAsItWasSent(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	set(p, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "mine")
		fmt.Fprint(w, r.Host, " ", r.URL.RequestURI(), " ", r.Header["X-Forwarded-For"], r.Header.Get("X"))
	}))
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+at+"/a%2Fb?x=1;y=2", nil)
	r.Host = "www:80"
	r.Header["X-Forwarded-For"] = []string{"192.0.2.1"}
	r.Header.Set("X", "y")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if string(b) != "www:80 /a%2Fb?x=1;y=2 [192.0.2.1]y" || resp.Header.Get("Server") != "mine" {
		t.Errorf("%s, %v", b, resp.Header)
	}
}

// TestLeftOut: a target that fails again and again gets no requests for a while.
func TestLeftOut(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	var asked atomic.Int64
	bad := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})
	set(p, serve(t, named("a")), bad)
	for range 40 {
		ask(t, "GET", at, "")
	}
	if got := asked.Load(); got != maxFailures {
		t.Errorf("the bad one was asked %d times", got)
	}
	set(p, bad) // what is known of it stays
	if ask(t, "GET", at, ""); asked.Load() != maxFailures+1 {
		t.Error("the only target isn't asked")
	}
}

// TestWhatIsSaid: the proxy says whom it leaves out and takes back, and what fails, but not each time.
func TestWhatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		p := New(Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
		d := &door{Listener: Listener{Name: "www:80"}, proxy: p}
		x := &target{address: "192.0.2.1:80"}
		for range maxFailures + 1 {
			d.note(x, true)
			d.fail("refused")
		}
		time.Sleep(ejection)
		d.note(x, false)
		d.note(x, false)
		d.fail("refused")
		for text, want := range map[string]int{
			`msg="a task is left out for a while, because it fails" task=192.0.2.1:80 name=www:80`: 1,
			`msg="a task that was left out is taken back" task=192.0.2.1:80 name=www:80`:           1,
			`msg="no answer" name=www:80 reason=refused failures=1`:                                1,
			`msg="no answer" name=www:80 reason=refused failures=6`:                                1,
			"\n": 4,
		} {
			if got := strings.Count(said.String(), text); got != want {
				t.Errorf("%d times %s in\n%s", got, text, &said)
			}
		}
	})
}

// TestUnhealthy: the control plane says who is unhealthy.
func TestUnhealthy(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	a, b := serve(t, named("a")), serve(t, named("b"))
	b.Unhealthy = true
	set(p, a, b)
	for range 4 {
		if _, body := ask(t, "GET", at, ""); body != "a" {
			t.Fatal(body)
		}
	}
}

// TestTooSlow: a request that takes longer than it may is answered with 504, or as gRPC says it.
func TestTooSlow(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http", Request: 20 * time.Millisecond})
	set(p, serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	if code, _ := ask(t, "GET", at, ""); code != http.StatusGatewayTimeout {
		t.Error(code)
	}
	r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+at, nil)
	r.Header.Set("Content-Type", "application/grpc+proto")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Grpc-Status") != "4" {
		t.Errorf("%d, %v", resp.StatusCode, resp.Header)
	}
}

// TestNobodyReads: a client that takes nothing of an answer, long or short, keeps its place among the requests for as long as one may take, and
// then gives it up.
func TestNobodyReads(t *testing.T) {
	const http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x06\x04\x00\x00\x00\x00\x00" + "\x00\x04\x00\x00\x00\x00" + // SETTINGS: a window of 0
		"\x00\x00\x06\x01\x05\x00\x00\x00\x01" + "\x82\x84\x86\x41\x01a" // HEADERS: GET http://a/
	for request, body := range map[string]int{"GET / HTTP/1.1\r\nHost: a\r\n\r\n": 64 << 20, http2: 4} {
		p, at := openFor(t, Listener{Protocol: "http", Request: 200 * time.Millisecond, Idle: time.Hour}, 1)
		set(p, serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, body)) })) //nolint:errcheck // a test
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, request) //nolint:errcheck // what is awaited tells
		awaitTaken := func(want int64) {
			t.Helper()
			for end := time.Now().Add(time.Minute); p.requests.taken.Load() != want; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%.20q: %d requests are there, not %d", request, p.requests.taken.Load(), want)
				}
			}
		}
		awaitTaken(1)
		awaitTaken(0)
	}
}

// TestStrangeMethods: what HTTP/2 carries as a method and HTTP/1.1 doesn't is the client's mistake, and no failure of a target's.
func TestStrangeMethods(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	set(p, serve(t, named("a")))
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // the reads tell
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+
		"\x00\x00\x0f\x01\x05\x00\x00\x00\x01"+"\x42\x08GET /b c\x84\x86\x41\x01a") //nolint:errcheck // SETTINGS and HEADERS, as above
	for in := bufio.NewReader(c); ; {
		var head [9]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[:])>>8)
		if _, err := io.ReadFull(in, payload); err != nil {
			t.Fatal(err)
		}
		if head[3] != 1 { // HEADERS
			continue
		}
		if payload[0] != 0x8c { // 400, in the table of RFC 7541
			t.Errorf("%q", payload)
		}
		return
	}
}

// TestBrokenBodies: a body that is malformed is its client's mistake, and no failure of a target's.
func TestBrokenBodies(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	set(p, serve(t, named("a")))
	for range maxFailures {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n") //nolint:errcheck // the answer tells
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusBadRequest {
			t.Fatal(resp, err)
		}
	}
	if of := (*p.endpoints["e"].targets.Load())[0]; of.record.failures != 0 || of.isEjected(time.Now()) {
		t.Errorf("%+v", of.record)
	}
}

// TestDeparture: a request under way at a target that leaves comes to its end, and the next goes elsewhere.
func TestDeparture(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	arrived, leave := make(chan bool), make(chan bool)
	set(p, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		arrived <- true
		<-leave
		fmt.Fprint(w, "old")
	}))
	answer := make(chan string)
	go func() {
		resp, err := http.Get("http://" + at)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		answer <- string(b)
	}()
	<-arrived
	set(p, serve(t, named("new")))
	if _, body := ask(t, "GET", at, ""); body != "new" {
		t.Error(body)
	}
	close(leave)
	if got := <-answer; got != "old" {
		t.Error(got)
	}
}

// TestHTTP2: streams of HTTP/2 pass in both directions at once, with their trailers, as gRPC needs it.
func TestHTTP2(t *testing.T) {
	p, at := open(t, Listener{Protocol: "grpc"})
	set(p, serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Grpc-Status")
		b := make([]byte, 1)
		for {
			if _, err := io.ReadFull(r.Body, b); err != nil {
				break
			}
			w.Write(b)               //nolint:errcheck // the client tells
			w.(http.Flusher).Flush() //nolint:errcheck // it is one
		}
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set("X-Proto", r.Proto)
	}))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	from, to := io.Pipe()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+at, from)
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	go to.Write([]byte("a")) //nolint:errcheck // the answer tells
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 1)
	for _, letter := range []string{"a", "b"} {
		if letter == "b" {
			go to.Write([]byte("b")) //nolint:errcheck // as above
		}
		if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != letter {
			t.Fatalf("%q, %v", b, err)
		}
	}
	to.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 || resp.Proto != "HTTP/2.0" || resp.Trailer.Get("Grpc-Status") != "0" {
		t.Errorf("%q, %v, %s, %v", rest, err, resp.Proto, resp.Trailer)
	}
	if c := p.Counts()[0]; c.GRPC != 1 || c.Requests != 1 {
		t.Errorf("%+v", c)
	}
}

// TestUpgrade: what follows an upgrade passes in both directions, however long it takes.
func TestUpgrade(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http", Request: 2 * time.Second})
	set(p, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		rw.Flush()
		io.Copy(c, rw) //nolint:errcheck // it ends with the client
	}))
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	over := time.After(2100 * time.Millisecond) // longer than a request may take
	<-over
	fmt.Fprint(c, "hello\n")
	if line, err := in.ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestTCP: connections pass as they are, with a half that is closed before the other, and to a target that is there.
func TestTCP(t *testing.T) {
	p, at := open(t, Listener{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b, _ := io.ReadAll(c)
				c.Write(append([]byte("got "), b...)) //nolint:errcheck // the client tells
			}()
		}
	}()
	set(p, nobody(t), Target{Address: l.Addr().String()})
	for range 3 {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "this")
		c.(*net.TCPConn).CloseWrite() //nolint:errcheck // the answer tells
		b, err := io.ReadAll(c)
		if string(b) != "got this" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		c.Close()
	}
}

// TestIdle: a connection over which nothing passes is closed.
func TestIdle(t *testing.T) {
	p, at := open(t, Listener{Idle: 20 * time.Millisecond})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	set(p, Target{Address: l.Addr().String()})
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); len(b) > 0 || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, %v", b, err)
	}
}

// TestHostile: what could be read in two ways isn't passed on.
func TestHostile(t *testing.T) {
	p, at := open(t, Listener{Protocol: "http"})
	set(p, serve(t, named("reached")))
	for name, text := range map[string]string{
		"two lengths":         "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"length and chunks":   "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked, x\r\n\r\n0\r\n\r\n",
		"a space in the path": "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
		"no host":             "GET / HTTP/1.1\r\n\r\n",
		"connect":             "CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n",
	} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, text)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode < 400 {
			t.Errorf("%s: %v, %v", name, resp, err)
		}
		c.Close()
	}
}

// TestRoom: connections and requests are bounded, those of HTTP/2 too, and others come in once some have ended.
func TestRoom(t *testing.T) {
	const most = 5
	for _, protocol := range []string{"http", ""} {
		p, at := openFor(t, Listener{Protocol: protocol, Idle: time.Hour}, most)
		set(p, serve(t, named("a")))
		var open []net.Conn
		for range most + 1 {
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			open = append(open, c)
		}
		if _, err := io.ReadAll(open[most]); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: one too many ends with %v", protocol, err)
		}
		for _, c := range open {
			c.Close()
		}
		for end := time.Now().Add(time.Minute); p.connections.taken.Load() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%q: %d connections are left", protocol, p.connections.taken.Load())
			}
		}
		if code, body := ask(t, "GET", at, ""); code != http.StatusOK || body != "a" {
			t.Errorf("%q: then %d %s", protocol, code, body)
		}
	}
}

func TestRoomOfRequests(t *testing.T) {
	const most = 5
	p, at := openFor(t, Listener{Protocol: "http2"}, most)
	arrived, leave := make(chan bool), make(chan bool)
	set(p, serve(t, func(http.ResponseWriter, *http.Request) { arrived <- true; <-leave }))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	get := func() int {
		resp, err := client.Get("http://" + at)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	codes := make(chan int, most)
	for range most {
		go func() { codes <- get() }()
		<-arrived
	}
	if code := get(); code != http.StatusServiceUnavailable {
		t.Error("one too many: ", code)
	}
	close(leave)
	for range most {
		if code := <-codes; code != http.StatusOK {
			t.Error(code)
		}
	}
	go func() { <-arrived }()
	if code := get(); code != http.StatusOK {
		t.Error("then ", code)
	}
}

// TestLeftOutOnce: a target that is left out isn't anew, and the log isn't told again, because what was under way there fails as well.
func TestLeftOutOnce(t *testing.T) {
	now := time.Now()
	var r record
	ejections := 0
	for i := range 100 {
		before := r
		if r = r.after(true, now.Add(time.Duration(i)*time.Millisecond)); r.until.After(before.until) {
			ejections++
		}
	}
	if ejections != 1 || r.failures != 0 {
		t.Errorf("%d ejections, %+v", ejections, r)
	}
	for range maxFailures {
		r = r.after(true, now.Add(2*ejection))
	}
	if want := now.Add(3 * ejection); !r.until.Equal(want) {
		t.Errorf("later: until %v, not %v", r.until, want)
	}
}
