package function

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"

	"golang.org/x/sys/unix"
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
