package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/engine"
)

// TestWhoIsLetIn: a connection's owner is known, whichever kind of socket it has, and another user's processes get no answer.
func TestWhoIsLetIn(t *testing.T) {
	for name, c := range map[string]struct {
		user int
		want string
	}{"one's own": {os.Geteuid(), "hello"}, "another's": {os.Geteuid() + 1, ""}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		g := newGuarded(l, slog.New(slog.DiscardHandler))
		g.user = c.user
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })} //nolint:errcheck,gosec // a test's
		go s.Serve(g)                                                                                                             //nolint:errcheck // it's closed
		for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]"} {
			_, port, _ := net.SplitHostPort(l.Addr().String()) //nolint:errcheck // it's one
			answer, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + host + ":" + port)
			got := ""
			if err == nil {
				text, _ := io.ReadAll(answer.Body) //nolint:errcheck // then it's not what's wanted
				answer.Body.Close()                //nolint:errcheck // it was read
				got = string(text)
			}
			if got != c.want {
				t.Errorf("%s by %s: %q, %v", name, host, got, err)
			}
		}
		s.Close() //nolint:errcheck // the test is over
	}
}

// TestWhoHasGone: a process that sends a request and closes its connection before anybody has looked isn't taken for root's.
func TestWhoHasGone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(theirs, "POST /2018-06-01/runtime/init/error HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if uid, err := ownerOf(ours); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a connection that its client has closed is of user %d, %v", uid, err)
	}
}

// TestNoPages: a web page in a browser of the same user neither ends an environment nor takes its invocations.
func TestNoPages(t *testing.T) {
	asked := 0
	f, err := New(Options{Dir: t.TempDir(), Plain: true, Call: func(context.Context, string, string, http.Header, []byte) (*http.Response, error) {
		asked++
		return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.Use(noTasks{})
	at, err := f.address("arn:aws:ecs:r:1:task/c/t")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release("t")
	for name, c := range map[string]struct {
		host, header, value string
		want                int
	}{
		"the runtime":                  {at, "", "", http.StatusAccepted},
		"a page":                       {at, "Origin", "http://evil.example", http.StatusForbidden},
		"a page on loopback":           {at, "Origin", "http://127.0.0.1:8080", http.StatusForbidden},
		"a file":                       {at, "Origin", "null", http.StatusForbidden},
		"a link":                       {at, "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
		"a page whose name leads here": {"evil.example", "", "", http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+Path+"init/error", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		r.Header.Set("Content-Type", "text/plain")
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		before := asked
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want || (asked > before) != (c.want == http.StatusAccepted) {
			t.Errorf("%s: %s, and the control plane was asked %d times", name, answer.Status, asked-before)
		}
	}
}

// TestManyConnections: an environment has so many connections and no more; others are served as these end.
func TestManyConnections(t *testing.T) {
	var busy, most atomic.Int32
	asked := make(chan bool, 2*maxOpen)
	f, err := New(Options{Dir: t.TempDir(), Plain: true, Call: func(ctx context.Context, _, _ string, _ http.Header, _ []byte) (*http.Response, error) {
		most.Store(max(most.Load(), busy.Add(1)))
		defer busy.Add(-1)
		asked <- true
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	f.Use(noTasks{})
	at, err := f.address("arn:aws:ecs:r:1:task/c/t")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release("t")
	conns := make([]net.Conn, 2*maxOpen)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", at); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
		fmt.Fprintf(conns[i], "GET %sinvocation/next HTTP/1.1\r\nHost: %s\r\n\r\n", Path, at) //nolint:errcheck // it's asked, or not
	}
	for i := range conns {
		<-asked
		if i >= maxOpen-1 {
			conns[i-maxOpen+1].Close() // the listener takes them in their order
		}
	}
	if n := most.Load(); n > maxOpen {
		t.Errorf("%d connections were served at once", n)
	}
}

type noTasks struct{}

func (noTasks) Task(string) (*engine.Record, bool) { return nil, false }
