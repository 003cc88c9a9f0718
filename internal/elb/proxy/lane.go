package proxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// lane sends requests over connections of its own. http.Transport has two goroutines for each connection, which hand every request and answer
// over. Here the goroutine that waits for the answer reads it itself, and has written the request, unless that has a body: both directions may be
// under way at once then.
type lane struct {
	dial func(context.Context) (net.Conn, error)

	mu   sync.Mutex
	idle []*laneConn // the one that was used last is the last
}

const (
	maxIdle           = 256
	maxIdleTime       = 55 * time.Second
	maxResponseHeader = 64 << 10
	maxInformational  = 5 // answers such as 103 before the answer
)

// takes reports whether a request to a group's target goes by a lane.
func takes(g *routing.Group, r *http.Request) bool {
	return g.Protocol != routing.HTTPS && g.ProtocolVersion != routing.HTTP2 && g.ProtocolVersion != routing.GRPC &&
		len(r.Header["Upgrade"]) == 0 && len(r.Header["Expect"]) == 0
}

// onlyReads reports whether a request may be sent again though the target may have seen it, as net/http does.
func onlyReads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// call is a request that a lane carries. It can be cut while it's under way.
type call struct {
	*http.Request
	hint func(code int, h http.Header) // hears of answers that come before the answer
	sent chan error                    // hears that the body was sent; nil without one

	mu   sync.Mutex
	gone error  // why it was cut
	undo func() // ends what is under way
}

// cut ends a call, which then fails for the reason that is given.
func (c *call) cut(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone != nil {
		return
	}
	c.gone = why
	if c.undo != nil {
		c.undo()
	}
}

// begin notes what ends the call from now on.
func (c *call) begin(undo func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undo = undo
	return c.gone
}

// end makes the call one that can't be cut anymore, unless it was.
func (c *call) end() error { return c.begin(nil) }

// cause returns why the call was cut, or else the error that it's given.
func (c *call) cause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.gone, err)
}

// laneConn is a connection to a target.
type laneConn struct {
	net.Conn
	raw   syscall.RawConn // nil if it's no socket
	in    *bufio.Reader
	out   *bufio.Writer
	left  int64 // how much of a header may still come
	since time.Time
}

// Read implements io.Reader, for the buffered one.
func (c *laneConn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the answer's header has more than %d bytes", maxResponseHeader)
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	return n, err
}

// close closes the connection. It's gone either way.
func (c *laneConn) close() { c.Close() } //nolint:errcheck // as above

// send sends a request, and returns its answer. A connection that the target has closed meanwhile is no reason to fail.
func (l *lane) send(r *call) (*http.Response, error) {
	for {
		c := l.take()
		wasUsed := c != nil
		if !wasUsed {
			var err error
			if c, err = l.connect(r); err != nil {
				return nil, r.cause(err)
			}
		}
		resp, answered, err := l.exchange(c, r)
		if err == nil {
			return resp, nil
		}
		c.close()
		if gone := r.end(); gone != nil {
			return nil, gone
		}
		if !wasUsed || answered || r.Body != nil || !onlyReads(r.Method) {
			return nil, err
		}
	}
}

// connect opens a connection.
func (l *lane) connect(r *call) (*laneConn, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if err := r.begin(cancel); err != nil {
		return nil, err
	}
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &laneConn{Conn: conn}
	if socket, ok := conn.(syscall.Conn); ok {
		c.raw, _ = socket.SyscallConn() //nolint:errcheck // then it is no socket
	}
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(conn)
	return c, nil
}

// exchange sends a request and reads the answer's header. It reports whether any of an answer has come.
func (l *lane) exchange(c *laneConn, r *call) (resp *http.Response, answered bool, err error) {
	if err := r.begin(c.close); err != nil {
		return nil, false, err
	}
	c.left = maxResponseHeader
	if r.Body != nil {
		r.sent = make(chan error, 1)
		go func() { r.sent <- r.write(c) }()
	} else if err := r.write(c); err != nil {
		return nil, false, err
	}
	if _, err := c.in.Peek(1); err != nil {
		return nil, false, err
	}
	if resp, err = readAnswer(c.in, r); err != nil {
		return nil, true, err
	}
	c.left = 1 << 62
	if resp.Body == http.NoBody || resp.ContentLength == 0 {
		l.end(c, r, resp)
		return resp, true, nil
	}
	resp.Body = &laneBody{ReadCloser: resp.Body, lane: l, conn: c, call: r, resp: resp}
	return resp, true, nil
}

// write writes the request. If that fails, whoever waits for an answer hears it from the connection: the target may have sent one, and closed it.
// But a target that is sent no more of a body waits for the rest.
func (r *call) write(c *laneConn) error {
	err := r.Write(c.out)
	if err == nil {
		err = c.out.Flush()
	}
	if b, ok := r.Body.(*body); ok && b.failed() != nil {
		r.cut(b.failed())
	}
	return err
}

// maxLag is how long the end of a request may take after the end of its answer, for its connection to be used again.
const maxLag = 50 * time.Millisecond

// isSent reports whether all of the request was sent.
func (r *call) isSent() bool {
	if r.sent == nil {
		return true
	}
	select {
	case err := <-r.sent:
		return err == nil
	case <-time.After(maxLag):
		return false
	}
}

// errNoCode is what becomes of an answer with a code such as 042, which no client could read.
var errNoCode = errors.New("the target's answer has a status code below 100")

// readAnswer reads an answer's header.
func readAnswer(in *bufio.Reader, r *call) (*http.Response, error) {
	for range maxInformational + 1 {
		resp, err := http.ReadResponse(in, r.Request)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the target switches to another protocol, which nobody has asked it to")
		case resp.StatusCode < 100:
			return nil, errNoCode
		case resp.StatusCode >= 200:
			return resp, nil
		}
		r.hint(resp.StatusCode, resp.Header)
	}
	return nil, errors.New("the target has sent too many answers before the answer")
}

// end keeps a connection whose answer has been read, if it can be used again.
func (l *lane) end(c *laneConn, r *call, resp *http.Response) {
	if resp.Close || !r.isSent() || r.end() != nil || c.in.Buffered() > 0 {
		c.close()
		return
	}
	c.since = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, c)
	l.pruneLocked(c.since)
}

// prune closes connections that were idle for too long.
func (l *lane) prune(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pruneLocked(now)
}

func (l *lane) pruneLocked(now time.Time) {
	for len(l.idle) > maxIdle || len(l.idle) > 0 && now.Sub(l.idle[0].since) > maxIdleTime {
		l.idle[0].close()
		l.idle = l.idle[1:]
	}
}

// take returns a connection that is idle and open, or nil.
func (l *lane) take() *laneConn {
	for {
		l.mu.Lock()
		n := len(l.idle)
		if n == 0 {
			l.mu.Unlock()
			return nil
		}
		c := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		if time.Since(c.since) <= maxIdleTime && c.isQuiet() {
			return c
		}
		c.close()
	}
}

// isQuiet reports whether the target has neither closed the connection nor sent anything that nobody asked for.
func (c *laneConn) isQuiet() bool {
	if c.raw == nil {
		return true
	}
	quiet := false
	err := c.raw.Read(func(fd uintptr) bool {
		_, err := peek(fd)
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return quiet && err == nil
}

// laneBody is an answer's body. Once it was read its connection is free.
type laneBody struct {
	io.ReadCloser
	lane  *lane
	conn  *laneConn
	call  *call
	resp  *http.Response
	ended bool
}

// Read implements io.Reader.
func (b *laneBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == io.EOF && !b.ended:
		b.ended = true
		b.lane.end(b.conn, b.call, b.resp)
	case err != nil && err != io.EOF:
		err = b.call.cause(err)
	}
	return n, err
}

// Close implements io.Closer. What wasn't read isn't read any more.
func (b *laneBody) Close() error {
	if !b.ended {
		b.ended = true
		b.call.end() //nolint:errcheck // its connection is gone either way
		b.conn.close()
	}
	return nil
}
