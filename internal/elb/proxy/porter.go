package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// porter serves a connection for as long as its client asks in the plainest way (see isPlain), which most do. net/http's server watches the
// connection by a goroutine of its own during each request, under a context of its own, which costs a third of all that a request costs. It gets
// the connection with the first request that isn't plain, and keeps it.
type porter struct {
	door *door
	conn *clientConn
	raw  syscall.RawConn
	from string // the client's address
	in   *bufio.Reader
	out  *bufio.Writer

	mu      sync.Mutex
	waiting bool // for a request
	served  bool // one or more
}

// newComerTime is how long a connection of a door that closes may take to send its first request, as with net/http.
const newComerTime = 5 * time.Second

// newPorter returns a porter for a connection; nil if it's no socket.
func newPorter(c *clientConn) *porter {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	return &porter{door: c.door, conn: c, raw: raw, from: c.RemoteAddr().String(), in: bufio.NewReader(c), out: bufio.NewWriter(c)}
}

// serve serves the connection, and closes it or hands it on.
func (p *porter) serve() {
	for p.wait() {
		head, err := p.head()
		if err != nil {
			break
		}
		if !isPlain(head) {
			p.handOn()
			return
		}
		if !p.answer() {
			break
		}
	}
	p.linger()
	p.conn.Close() //nolint:errcheck // it's gone either way
}

// lingering is how long a connection stays for what its client has sent too much, as with net/http.
const lingering = 500 * time.Millisecond

// linger reads away what came behind the last request, if anything did: of a connection that's closed with something unread, the kernel drops what it
// has yet to send.
func (p *porter) linger() {
	p.conn.SetReadDeadline(time.Now().Add(lingering)) //nolint:errcheck // the reads tell
	unread := false
	err := p.raw.Read(func(fd uintptr) bool {
		n, err := peek(fd)
		unread = n > 0 && err == nil
		return true
	})
	if err != nil || !unread || p.conn.CloseWrite() != nil {
		return
	}
	io.Copy(io.Discard, p.conn) //nolint:errcheck // it ends either way
}

// wait waits for the first byte of a request. It reports false if there will be none.
func (p *porter) wait() bool {
	p.conn.idle.Store(p.served)
	p.mu.Lock()
	patience := p.door.route.Load().idle()
	if p.door.leaving.Load() {
		if p.served {
			p.mu.Unlock()
			return false
		}
		patience = min(patience, newComerTime)
	}
	p.conn.SetReadDeadline(time.Now().Add(patience)) //nolint:errcheck // the read tells
	p.waiting = true
	p.mu.Unlock()
	_, err := p.in.Peek(1)
	p.mu.Lock()
	p.waiting = false
	p.mu.Unlock()
	p.conn.idle.Store(false)
	return err == nil
}

// leave ends the wait for a request, soon if the first has yet to come. The door says already that it closes.
func (p *porter) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.waiting && p.served:
		p.conn.SetReadDeadline(longAgo) //nolint:errcheck // the read tells
	case p.waiting:
		p.conn.SetReadDeadline(time.Now().Add(newComerTime)) //nolint:errcheck // as above
	}
}

// longAgo is a time that has passed.
var longAgo = time.Unix(1, 0)

// head returns a request's head, which stays in the buffer. What there is of it will do if there's no room for all, or if a line ends with a mere LF,
// which RFC 9112 (2.2) lets a recipient take: the head may have ended by then, and isn't plain.
func (p *porter) head() ([]byte, error) {
	for isFirst := true; ; isFirst = false {
		head, _ := p.in.Peek(p.in.Buffered()) //nolint:errcheck // it's there
		if end := bytes.Index(head, []byte("\r\n\r\n")); end >= 0 {
			return head[:end+4], nil
		}
		if len(head) == p.in.Size() || hasMereLF(head) {
			return head, nil
		}
		if isFirst {
			p.conn.SetReadDeadline(time.Now().Add(p.door.route.Load().idle())) //nolint:errcheck // the read tells
		}
		if _, err := p.in.Peek(len(head) + 1); err != nil {
			return nil, err
		}
	}
}

// hasMereLF reports whether there is an LF without a CR before it.
func hasMereLF(text []byte) bool {
	return bytes.Count(text, []byte("\n")) > bytes.Count(text, []byte("\r\n"))
}

// handOn gives the connection to net/http's server, with what was read of it.
func (p *porter) handOn() {
	p.conn.unread, _ = p.in.Peek(p.in.Buffered()) //nolint:errcheck // it's there
	p.conn.SetReadDeadline(time.Time{})           //nolint:errcheck // the server tells
	p.door.enter(p.conn)
	p.door.setPorter(p.conn, nil) // not before, or a door that closes wouldn't wait for it
}

// answer answers a request. It reports whether another may follow.
func (p *porter) answer() (mayFollow bool) {
	r, err := http.ReadRequest(p.in)
	if err != nil {
		return false // isPlain has seen that it can be read
	}
	r.RemoteAddr = p.from
	p.served = true
	w := &reply{porter: p, isHead: r.Method == http.MethodHead, last: r.Close, header: http.Header{}}
	defer func() {
		if problem := recover(); problem != nil {
			mayFollow = false
			p.out.Flush() //nolint:errcheck // what the client has of it is to look cut
			if problem != http.ErrAbortHandler {
				p.door.proxy.Log.Error("request", "panic", problem, "stack", string(debug.Stack()))
			}
		}
	}()
	p.door.ServeHTTP(w, r)
	return w.end()
}

// whenGone calls f when the client is gone. Once stop returns it won't anymore.
func (p *porter) whenGone(f func()) (stop func() bool) {
	p.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // then the client seems to stay
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		if p.isGone() {
			f()
		}
	}()
	return func() bool {
		p.conn.SetReadDeadline(longAgo) //nolint:errcheck // it only fails where the look has ended too
		<-looked
		return true
	}
}

// isGone waits until the client goes or sends more, and reports whether it's gone.
func (p *porter) isGone() (gone bool) {
	err := p.raw.Read(func(fd uintptr) bool {
		n, err := peek(fd)
		gone = err != nil || n == 0
		return !errors.Is(err, unix.EAGAIN)
	})
	if err != nil {
		return !errors.Is(err, os.ErrDeadlineExceeded) // the connection was cut
	}
	return gone
}

// peek says how much of a byte there is to be read from a socket, and takes it not: none is its end, and EAGAIN that nothing has come.
func peek(fd uintptr) (n int, err error) {
	var b [1]byte
	for {
		if n, _, err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
