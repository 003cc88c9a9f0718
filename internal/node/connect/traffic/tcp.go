package traffic

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// acceptTCP passes connections on until the listener is closed.
func (d *door) acceptTCP(l net.Listener) error {
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // no descriptors are left, most likely
			d.proxy.opts.Log.Warn("accept", "error", err)
			select {
			case <-d.ctx.Done():
				return nil
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		d.open.Go(func() {
			d.counter.opened()
			defer d.counter.closed()
			d.counter.passed(d.pass(c))
		})
	}
}

// pass connects a client to a target, and returns how many bytes went between them.
func (d *door) pass(client net.Conn) int64 {
	defer client.Close()
	server := d.dial()
	if server == nil {
		return 0
	}
	defer server.Close()
	stop := func() { client.Close(); server.Close() }
	defer onDone(d.ctx.Done(), stop)()
	f := &flow{idle: d.Idle}
	f.touch()
	var back sync.WaitGroup
	back.Go(func() { f.carry(client, server) })
	f.carry(server, client)
	back.Wait()
	return f.size.Load()
}

// onDone calls stop once done is closed, unless what it returns was called before.
func onDone(done <-chan struct{}, stop func()) (cancel func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-done:
			stop()
		case <-over:
		}
	}()
	return func() { close(over) }
}

// dial connects to a target, or to another one if it isn't reached: nothing was sent yet. It returns nil if none is.
func (d *door) dial() net.Conn {
	var tried []*target
	last := errNoTarget
	for range maxTries {
		t := d.endpoint.pick(tried)
		if t == nil {
			break
		}
		c, err := d.proxy.opts.Dial(d.ctx, "tcp", t.address)
		d.note(t, err != nil)
		if err == nil {
			return c
		}
		last = err
		tried = append(tried, t)
	}
	d.fail(last.Error())
	return nil
}

// flow is what passes between two connections.
type flow struct {
	idle time.Duration
	last atomic.Int64 // when something has passed, in either direction
	size atomic.Int64
}

func (f *flow) touch() { f.last.Store(time.Now().UnixNano()) }

// buffers are lent to connections.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// carry copies one direction until its end, and ends that on the other side. If both directions were idle for too long, or one is broken,
// both connections are closed.
func (f *flow) carry(to, from net.Conn) {
	buffer := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buffer)
	for {
		if f.idle > 0 {
			from.SetReadDeadline(time.Unix(0, f.last.Load()).Add(f.idle)) //nolint:errcheck // the read tells
		}
		n, err := from.Read(buffer[:])
		if n > 0 {
			f.touch()
			f.size.Add(int64(n))
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, f.last.Load())) < f.idle {
			continue // the other direction is busy
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) && closeWrite(to) == nil {
			return
		}
		break
	}
	to.Close()
	from.Close()
}

func closeWrite(c net.Conn) error {
	if w, ok := c.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Close()
}
