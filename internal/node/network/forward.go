package network

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Forward forwards a listener's connections to an address, over TLS if secure isn't nil, until ctx ends or the listener is closed.
func Forward(ctx context.Context, l net.Listener, to string, secure *tls.Config) {
	var open sync.WaitGroup
	defer open.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	slots := make(chan bool, maxOpen)
	for {
		slots <- true
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example, no file descriptor is free
			<-slots
			time.Sleep(50 * time.Millisecond)
			continue
		}
		open.Go(func() {
			forward(ctx, c, to, secure)
			<-slots
		})
	}
}

func forward(ctx context.Context, from net.Conn, to string, secure *tls.Config) {
	defer from.Close()
	target, err := dial(ctx, to, secure)
	if err != nil {
		return // the caller sees the connection closed
	}
	defer target.Close()
	defer context.AfterFunc(ctx, func() { from.Close(); target.Close() })()
	var copying sync.WaitGroup
	copying.Go(func() { copyHalf(target, from) })
	copying.Go(func() { copyHalf(from, target) })
	copying.Wait()
}

func dial(ctx context.Context, to string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if secure == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", to)
	}
	return (&tls.Dialer{Config: secure}).DialContext(ctx, "tcp", to)
}

// copyHalf copies one direction until it ends, then closes that direction.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if err != nil {
		from.Close()
		to.Close()
		return
	}
	to.(interface{ CloseWrite() error }).CloseWrite() //nolint:errcheck // it may be closed
}
