package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/elb/routing"
)

// lane sends requests that only read, which most do, over connections of its own. http.Transport has two goroutines for
// each connection, which hand every request and answer over; here the goroutine that waits for the answer writes and reads itself, with a third
// less processor. All others go through the transport: bodies need both directions at once.
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
		onlyReads(r.Method) && (r.Body == nil || r.Body == http.NoBody) && r.ContentLength == 0 && len(r.TransferEncoding) == 0 &&
		len(r.Header["Upgrade"]) == 0 && len(r.Header["Expect"]) == 0
}

// onlyReads reports whether a request may be sent again though the target may have seen it, as net/http does.
func onlyReads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// laneConn is a connection to a target.
type laneConn struct {
	net.Conn
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

// RoundTrip implements http.RoundTripper. A connection that the target has closed meanwhile is no reason to fail.
func (l *lane) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		c := l.take()
		wasUsed := c != nil
		if !wasUsed {
			conn, err := l.dial(r.Context())
			if err != nil {
				return nil, err
			}
			c = &laneConn{Conn: conn}
			c.in, c.out = bufio.NewReader(c), bufio.NewWriter(conn)
		}
		resp, answered, err := l.exchange(c, r)
		if err == nil {
			return resp, nil
		}
		c.Close() //nolint:errcheck // it's gone either way
		if r.Context().Err() != nil {
			return nil, r.Context().Err()
		}
		if !wasUsed || answered {
			return nil, err
		}
	}
}

// exchange sends a request and reads the answer's header. It reports whether any of an answer has come.
func (l *lane) exchange(c *laneConn, r *http.Request) (resp *http.Response, answered bool, err error) {
	stop := context.AfterFunc(r.Context(), func() { c.Close() }) //nolint:errcheck // whoever reads or writes hears of it
	defer func() {
		if err != nil {
			stop()
		}
	}()
	c.left = maxResponseHeader
	if err := r.Write(c.out); err != nil {
		return nil, false, err
	}
	if err := c.out.Flush(); err != nil {
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
		l.end(c, resp, stop)
		return resp, true, nil
	}
	resp.Body = &laneBody{ReadCloser: resp.Body, lane: l, conn: c, resp: resp, stop: stop}
	return resp, true, nil
}

// readAnswer reads an answer's header. Those that come before the answer itself are passed on.
func readAnswer(in *bufio.Reader, r *http.Request) (*http.Response, error) {
	for range maxInformational + 1 {
		resp, err := http.ReadResponse(in, r)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the target switches to another protocol, which nobody has asked it to")
		case resp.StatusCode >= 200:
			return resp, nil
		}
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
	return nil, errors.New("the target has sent too many answers before the answer")
}

// end keeps a connection whose answer has been read, if it can be used again.
func (l *lane) end(c *laneConn, resp *http.Response, stop func() bool) {
	if !stop() || resp.Close || c.in.Buffered() > 0 {
		c.Close() //nolint:errcheck // it's gone either way
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
		l.idle[0].Close() //nolint:errcheck // it's gone either way
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
		c.Close() //nolint:errcheck // it's gone either way
	}
}

// isQuiet reports whether the target has neither closed the connection nor sent anything that nobody asked for.
func (c *laneConn) isQuiet() bool {
	var below net.Conn = c.Conn
	if known, ok := below.(*targetConn); ok {
		below = known.Conn
	}
	system, ok := below.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := system.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return quiet && err == nil
}

// laneBody is an answer's body. Once it was read its connection is free.
type laneBody struct {
	io.ReadCloser
	lane *lane
	conn *laneConn
	resp *http.Response
	stop func() bool
	once sync.Once
}

// Read implements io.Reader.
func (b *laneBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.once.Do(func() { b.lane.end(b.conn, b.resp, b.stop) })
	} else if cause := b.resp.Request.Context().Err(); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// Close implements io.Closer. What wasn't read isn't read any more.
func (b *laneBody) Close() error {
	b.once.Do(func() {
		b.stop()
		b.conn.Close() //nolint:errcheck // it's gone either way
	})
	return nil
}
