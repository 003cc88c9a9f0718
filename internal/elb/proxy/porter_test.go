package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// plainHeads are of requests that porters answer, as odd as they may be. The others leave to net/http's server.
var plainHeads = []string{
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"HEAD /a%20b?c=%zz HTTP/1.1\r\nhost: [::1]:80\r\n\r\n",
	"DELETE //a HTTP/1.1\r\nHost: a.example\r\nContent-Typo: 0\r\nConnection: Keep-Alive\r\n\r\n",
	"OPTIONS /\"<>?? HTTP/1.1\r\nX: \xff \r\nHOST:\ta\r\nX:\r\nCookie: a=b; c\r\nTe: trailers\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nconnection: Close\r\n\r\n",
}

var oddHeads = []string{
	"POST / HTTP/1.1\r\nHost: a\r\n\r\n",
	"get / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
	"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /% HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: \r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n X: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: \rb\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nX: b\x00\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-encoding: chunked\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: X-A\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHTTP2-Settings: X\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n",
	"PRI * HTTP/2.0\r\n\r\n",
	"\r\n\r\n",
}

func TestIsPlain(t *testing.T) {
	for _, head := range plainHeads {
		if !isPlain([]byte(head)) {
			t.Errorf("odd: %q", head)
		}
	}
	for _, head := range oddHeads {
		if isPlain([]byte(head)) {
			t.Errorf("plain: %q", head)
		}
	}
}

// FuzzIsPlain: what is plain has no second reading. net/http's server takes it, whole, as a request without a body for what stands there.
func FuzzIsPlain(f *testing.F) {
	for _, head := range append(plainHeads, oddHeads...) {
		f.Add([]byte(head))
	}
	requests := make(chan *http.Request, 2)
	s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { requests <- r })}
	callers := newInbox(nil)
	go s.Serve(callers) //nolint:errcheck // it ends with the test
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, head []byte) {
		if !isPlain(head) {
			return
		}
		ours, theirs := net.Pipe()
		callers.conns <- theirs
		defer ours.Close()
		go ours.Write(append(head, head...)) //nolint:errcheck // the answers tell
		in := bufio.NewReader(ours)
		for range 2 {
			resp, err := http.ReadResponse(in, &http.Request{Method: string(head[:bytes.IndexByte(head, ' ')])})
			if err != nil {
				t.Fatal(err)
			}
			seen := <-requests
			if resp.StatusCode != http.StatusOK || resp.Close != seen.Close {
				t.Fatal(resp.Status, resp.Close)
			}
			line := fmt.Sprintf("%s %s %s\r\n", seen.Method, seen.RequestURI, seen.Proto)
			switch {
			case seen.Body != http.NoBody || seen.ContentLength != 0 || seen.Host == "" || !strings.HasPrefix(seen.RequestURI, "/"):
				t.Errorf("%+v", seen)
			case !bytes.HasPrefix(head, []byte(line)) || !takes(&routing.Group{}, seen):
				t.Errorf("%q, and no lane or another: %v", line, seen.Header)
			}
			if seen.Close {
				return
			}
		}
	})
}

// TestPorterHandsOn: a connection's requests are answered in their order, whoever does, however they come.
func TestPorterHandsOn(t *testing.T) {
	c := behind(t, func(c net.Conn, r *http.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // the answer tells
		text := r.Method + r.URL.Path + string(body)
		fmt.Fprintf(c, ok+"Content-Length: %d\r\n\r\n%s", len(text), text) //nolint:errcheck // a test
	})
	get := "GET /a HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 2000) + "\r\n\r\n"
	long := "GET /long HTTP/1.1\r\nHost: a\r\nX-A: " + strings.Repeat("a", 9000) + "\r\n\r\n"
	post := "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
	all := get + get + get + long + post + get
	in := bufio.NewReader(c)
	for at := 0; at < len(all); at += 1500 {
		if _, err := io.WriteString(c, all[at:min(at+1500, len(all))]); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"GET/a", "GET/a", "GET/a", "GET/long", "POST/bhi", "GET/a"} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(want, err)
		}
		if text, err := io.ReadAll(resp.Body); string(text) != want || err != nil {
			t.Errorf("%q, %v, and not %q", text, err, want)
		}
	}
}

// TestPorterCloses: who asks for that gets an answer and then the end, whatever was sent behind the request.
func TestPorterCloses(t *testing.T) {
	c := behind(t, func(c net.Conn, r *http.Request) {
		fmt.Fprintf(c, ok+"Content-Length: %d\r\n\r\n%v", len("false"), r.Close) //nolint:errcheck // a test
	})
	request := "GET / HTTP/1.1\r\nHost: a\r\n"
	io.WriteString(c, request+"\r\n"+request+"Connection: close\r\n\r\n"+request+"\r\n") //nolint:errcheck // the answers tell
	in := bufio.NewReader(c)
	for _, last := range []bool{false, true} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); string(text) != "false" || err != nil || resp.Close != last {
			t.Errorf("%q, %v, the last: %t", text, err, resp.Close)
		}
	}
	if n, err := in.Read(make([]byte, 1)); err == nil {
		t.Error("more follows: ", n)
	}
}

// TestPorterClosesGently: who asks for the end and has sent more, which nobody reads, gets all of the answer. The kernel drops what it has yet to send
// of a connection that's closed with something unread.
func TestPorterClosesGently(t *testing.T) {
	const length = 1 << 20
	c := behind(t, func(c net.Conn, _ *http.Request) {
		fmt.Fprintf(c, ok+"Content-Length: %d\r\n\r\n%s", length, strings.Repeat("a", length)) //nolint:errcheck // a test
	})
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"+strings.Repeat("b", 9000)) //nolint:errcheck // the answer tells
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the proxy is done by then, and most of the answer in the kernel
	if n, err := io.Copy(io.Discard, resp.Body); n != length || err != nil {
		t.Error(n, err)
	}
}

// TestPorterLeaves: a door that closes ends connections between requests, answers what has begun, and waits a little for who has yet to ask.
func TestPorterLeaves(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{DrainTime: 2 * time.Minute})
	asked, answer := make(chan bool), make(chan bool)
	target := slow(t, asked, answer)
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{target}})
	set(t, p, b)
	settle(t, p, 1)
	const request = "GET /%s HTTP/1.1\r\nHost: a\r\n\r\n"
	var conns [3]net.Conn
	for i := range conns {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // the reads tell
		conns[i] = c
	}
	idle, busy, fresh := conns[0], conns[1], conns[2]
	read := func(c net.Conn) *http.Response {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		return resp
	}
	fmt.Fprintf(idle, request, "quick") //nolint:errcheck // the answer tells
	if read(idle).Close {
		t.Error("the first answer is the last")
	}
	eventually(t, "all are let in", func() bool { return p.clients.count() == 3 })
	fmt.Fprintf(busy, request, "slow") //nolint:errcheck // the answer tells
	<-asked
	b = one(freePort(t), routing.HTTP, b.Groups[0]) // the target stays in use
	set(t, p, b)
	if n, err := idle.Read(make([]byte, 1)); err != io.EOF {
		t.Error(n, err)
	}
	fmt.Fprintf(fresh, request, "quick") //nolint:errcheck // the answer tells
	close(answer)
	for _, c := range []net.Conn{fresh, busy} {
		if !read(c).Close {
			t.Error("another request may follow")
		}
	}
}

// TestPorterHandsOnWhileLeaving: a door that closes answers who has yet to ask, whatever it asks, and who is about to finish asking.
func TestPorterHandsOnWhileLeaving(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{DrainTime: 2 * time.Minute})
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	set(t, p, b)
	settle(t, p, 1)
	const request = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"
	var conns []net.Conn
	for _, begun := range []int{0, 9} {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // the reads tell
		io.WriteString(c, request[:begun])             //nolint:errcheck // as above
		conns = append(conns, c)
	}
	eventually(t, "both are let in", func() bool { return p.clients.count() == 2 })
	set(t, p, one(freePort(t), routing.HTTP, b.Groups[0])) // the target stays in use
	eventually(t, "the door closes", func() bool {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	for i, begun := range []int{0, 9} {
		io.WriteString(conns[i], request[begun:]) //nolint:errcheck // the answer tells
		resp, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
		if err != nil {
			t.Error(begun, err)
			continue
		}
		if text, err := io.ReadAll(resp.Body); string(text) != "hi" || err != nil || !resp.Close {
			t.Errorf("%s, %q, %v, and another request may follow: %v", resp.Status, text, err, !resp.Close)
		}
	}
}

// TestNobodyReads: who asks and never reads what is answered is cut after the idle time-out, whoever answers it.
func TestNobodyReads(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{})
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	b.Balancers[0].Attributes.IdleTimeoutSeconds = 1
	b.Balancers[0].Listeners[0].Rules[0].Actions[0] = routing.Action{
		Type: routing.FixedResponse, Fixed: &routing.Fixed{StatusCode: 200, MessageBody: strings.Repeat("a", 1000)},
	}
	set(t, p, b)
	for _, own := range []string{"", "Content-Length: 0\r\n"} { // the porter's, and net/http's
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // the write tells
		request := []byte(strings.Repeat("GET / HTTP/1.1\r\nHost: a\r\n"+own+"\r\n", 1000))
		for err == nil {
			_, err = c.Write(request)
		}
		if network, ok := errors.AsType[net.Error](err); ok && network.Timeout() {
			t.Errorf("%q: it was never cut", own)
		}
	}
}

// slow is a target that says that it was asked, and answers when it's told to, unless the path is /quick.
func slow(t *testing.T, asked, answer chan bool) routing.Target {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			asked <- true
			<-answer
		}
		w.WriteHeader(http.StatusOK)
	})}
	go s.Serve(l) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { s.Close() })
	return targetOf("slow", l.Addr().String())
}

// TestPorterWaits: who neither asks nor finishes asking is cut after the idle time-out.
func TestPorterWaits(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{})
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}})
	b.Balancers[0].Attributes.IdleTimeoutSeconds = 1
	set(t, p, b)
	settle(t, p, 1)
	for _, part := range []string{"", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(2 * time.Minute)) //nolint:errcheck // the read tells
		io.WriteString(c, part)                        //nolint:errcheck // the read tells
		all, err := io.ReadAll(c)
		if err != nil || strings.HasPrefix(string(all), "HTTP/1.1 200") != strings.HasSuffix(part, "\r\n\r\n") {
			t.Errorf("after %q: %q, %v", part, all, err)
		}
	}
}

// TestMereLF: a head whose lines end with LF alone is answered at once, whoever reads it.
func TestMereLF(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{})
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{named(t, "a")}}))
	settle(t, p, 1)
	for _, head := range []string{
		"GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\r\n\n", "GET / HTTP/1.1\nHost: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\n\r\n", "POST / HTTP/1.1\nHost: a\nContent-Length: 1\n\nx",
	} {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second)) //nolint:errcheck // the read tells: connections may be idle for 60
		io.WriteString(c, head)                         //nolint:errcheck // the read tells
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("after %q: %v, %v", head, resp, err)
		}
	}
}

// TestPorterIsCut: a door that has waited for long enough cuts what is under way, and the target hears of it.
func TestPorterIsCut(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{DrainTime: 100 * time.Millisecond})
	asked, told := make(chan bool), make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(asked)
			<-r.Context().Done()
			close(told)
		}
	}))
	t.Cleanup(s.Close)
	b := one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("slow", s.URL)}})
	set(t, p, b)
	settle(t, p, 1)
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n") //nolint:errcheck // the target tells
	<-asked
	set(t, p, one(freePort(t), routing.HTTP, b.Groups[0]))
	<-told
}

// TestReverseBreaksOff: what a target of another protocol cuts looks cut to a porter's client, too.
func TestReverseBreaksOff(t *testing.T) {
	port := freePort(t)
	p, _ := start(t, Config{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	g := routing.Group{Protocol: routing.HTTPS, HealthCheck: routing.HealthCheck{Protocol: routing.HTTPS}, Targets: []routing.Target{targetOf("a", s.URL)}}
	set(t, p, one(port, routing.HTTP, g))
	settle(t, p, 1)
	resp, err := client(t).Get(base(port) + "/broken")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != io.ErrUnexpectedEOF {
		t.Errorf("%q, %v", text, err)
	}
}
