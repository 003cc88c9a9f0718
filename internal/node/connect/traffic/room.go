package traffic

import (
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/internal/twoway"
)

// room is for so many at once.
type room struct {
	most int64
	what string
	log  *slog.Logger

	taken atomic.Int64
	told  atomic.Int64 // when the log was told last that it's full
}

// enter takes a place, if there is one.
func (r *room) enter() bool {
	if r.taken.Add(1) <= r.most {
		return true
	}
	r.leave()
	last, now := r.told.Load(), time.Now()
	if now.Sub(time.Unix(0, last)) > time.Minute && r.told.CompareAndSwap(last, now.UnixNano()) {
		r.log.Warn("the task's containers have too many at once, and get no more", "what", r.what, "most", r.most)
	}
	return false
}

func (r *room) leave() { r.taken.Add(-1) }

// bounded is a listener that closes connections for which there is no room.
type bounded struct {
	net.Listener
	room *room
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.room.enter() {
			return &guest{Conn: c, leave: sync.OnceFunc(b.room.leave)}, nil
		}
		c.Close() //nolint:errcheck // it was never let in
	}
}

// guest is a connection that has a place.
type guest struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}

// CloseWrite ends one direction.
func (g *guest) CloseWrite() error { return twoway.CloseWrite(g.Conn) }
