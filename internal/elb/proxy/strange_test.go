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

	"github.com/pintle/pintle/internal/elb/routing"
)

// TestStrangeAnswers: whatever a target answers, a client hears one answer to each of its requests, in their order, and the same from a porter as
// from net/http's server.
func TestStrangeAnswers(t *testing.T) {
	answers := []string{
		"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nLink: x\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi",
		"HTTP/1.1 000 Nothing\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi",
		"HTTP/1.1 042 Little\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 999 Much\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		"HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 304 Not Modified\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\n",
		ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
		ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
		ok + "Content-Length: +2\r\n\r\nhi",
		ok + "Content-Length: -2\r\n\r\nhi",
		ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		ok + "Transfer-Encoding: chunked, chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\n\r\n2;a=b\nhi\r\n0\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\nTrailer: Content-Length, X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 3\r\nContent-Length: 9\r\n\r\n",
		ok + "Transfer-Encoding: chunked\r\nTrailer: Transfer-Encoding\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		ok + "Content-Length: 2\r\nConnection: close\r\nDate: never\r\nX: a\x01b\r\n\r\nhi",
		ok + "Content-Length: 2\r\nX:\r\n folded\r\n\r\nhi",
		ok + "\r\nhi<close>",
		ok + "Transfer-Encoding: chunked\r\n\r\n9\r\nhi<close>",
		ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n<close>",
		ok + "X: " + strings.Repeat("a", 70<<10) + "\r\n\r\n",
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
		"\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi",
		"nothing of HTTP\r\n\r\n",
		"<close>",
	}
	port := answering(t, answers)
	for i, answer := range answers {
		for _, method := range []string{"GET", "HEAD"} {
			var heard [2]string
			for by, own := range []string{"", "Connection: Te\r\nTe: trailers\r\n"} {
				heard[by] = hear(t, port, method, i, own)
			}
			if heard[0] != heard[1] {
				t.Errorf("%s %.99q\nporter:   %s\nnet/http: %s", method, answer, heard[0], heard[1])
			}
			if strings.Contains(heard[0], "broken") || strings.Contains(heard[0], "[5]") {
				t.Errorf("%s %.99q: %s", method, answer, heard[0])
			}
		}
	}
	if heard := hear(t, port, "GET", 2, "Connection: Upgrade\r\nUpgrade: websocket\r\n"); !strings.HasPrefix(heard, "502") { // no lane takes it
		t.Error(heard)
	}
}

// answering returns the port of a proxy whose target answers /1 by the second of these answers, and /next by a word.
func answering(t *testing.T, answers []string) int {
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
			text := ok + "Content-Length: 4\r\n\r\nnext"
			var i int
			if n, _ := fmt.Sscanf(r.URL.Path, "/%d", &i); n == 1 {
				text = answers[i]
			}
			text, isLast := strings.CutSuffix(text, "<close>")
			io.WriteString(c, text) //nolint:errcheck // a test
			if isLast {
				return
			}
		}
	})
	p, _ := start(t, Config{})
	port := freePort(t)
	set(t, p, one(port, routing.HTTP, routing.Group{Protocol: routing.HTTP, Targets: []routing.Target{targetOf("a", l.Addr().String())}}))
	settle(t, p, 1)
	return port
}

// hear tells what a client hears to two requests.
func hear(t *testing.T, port int, method string, i int, own string) string {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "%s /%d HTTP/1.1\r\nHost: a\r\n%s\r\n", method, i, own) //nolint:errcheck // the answers tell
	in := bufio.NewReader(c)
	var all strings.Builder
	for {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			fmt.Fprint(&all, "broken ", errors.Is(err, io.ErrUnexpectedEOF))
			return all.String()
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Header.Get("Date") != "never" {
			resp.Header.Del("Date")
		}
		fmt.Fprintf(&all, "%s %v %d %v %q %v %v; ", resp.Status, resp.Header, resp.ContentLength, resp.TransferEncoding, body, resp.Trailer, err)
		if err != nil || resp.Close {
			return all.String()
		}
		if resp.StatusCode >= 200 {
			break
		}
	}
	fmt.Fprintf(c, "GET /next HTTP/1.1\r\nHost: a\r\n\r\n") //nolint:errcheck // the answer tells
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return all.String() + "no next"
	}
	body, err := io.ReadAll(resp.Body)
	if string(body) != "next" {
		t.Errorf("to the next request: %q", body)
	}
	return fmt.Sprint(all.String(), string(body), err)
}
