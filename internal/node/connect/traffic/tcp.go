package traffic

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/pintle/pintle/internal/twoway"
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
	defer context.AfterFunc(d.ctx, func() { client.Close(); server.Close() })()
	sent, received := twoway.Carry(client, server, d.Idle)
	return sent + received
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
