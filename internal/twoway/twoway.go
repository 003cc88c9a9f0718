// Package twoway carries what passes between two connections, as a proxy does that doesn't look into it.
package twoway

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Quiet knows when something last passed, in either direction.
type Quiet struct{ last atomic.Int64 }

// Touch notes that something passes now.
func (q *Quiet) Touch() { q.last.Store(time.Now().UnixNano()) }

// Since returns when something last passed.
func (q *Quiet) Since() time.Time { return time.Unix(0, q.last.Load()) }

// Carry carries both directions until both have ended, and returns how many bytes came from each connection. The end of a direction is passed
// on. Both connections are closed if both directions were idle for too long, or one is broken. An idle of 0 is no limit.
func Carry(a, b net.Conn, idle time.Duration) (fromA, fromB int64) {
	var quiet Quiet
	quiet.Touch()
	var back sync.WaitGroup
	back.Go(func() { fromB = quiet.carry(a, b, idle) })
	fromA = quiet.carry(b, a, idle)
	back.Wait()
	return fromA, fromB
}

// buffers are lent to directions.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (q *Quiet) carry(to, from net.Conn, idle time.Duration) (total int64) {
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	for {
		if idle > 0 {
			from.SetReadDeadline(q.Since().Add(idle)) //nolint:errcheck // the read tells
		}
		n, err := from.Read(buffer[:])
		if n > 0 {
			q.Touch()
			if idle > 0 {
				to.SetWriteDeadline(time.Now().Add(idle)) //nolint:errcheck // the write tells
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
			total += int64(n)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(q.Since()) < idle {
			continue // the other direction is busy
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) && CloseWrite(to) == nil {
			return total
		}
		break
	}
	to.Close()   //nolint:errcheck // it's gone either way
	from.Close() //nolint:errcheck // as above
	return total
}

// CloseWrite ends one direction of a connection, or both where it can't be told which.
func CloseWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
