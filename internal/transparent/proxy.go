package transparent

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/twoway"
)

// Proxy is an HTTPS_PROXY that leads to the control plane what is for AWS.
type Proxy struct {
	*StandIn
	// Passes reports whether connections go on to a name that isn't a service's that Pintle has.
	Passes func(name string) bool
	Log    *slog.Logger
}

const (
	// maxOpen is how many connections a proxy has at a time. More wait.
	maxOpen = 1000
	// patience is how long a client, or the other end, may take until a connection is there.
	patience = 10 * time.Second
	// maxHead is how long the head of a request may be.
	maxHead = 16 << 10
)

// Serve serves clients until ctx ends.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var open sync.WaitGroup
	defer open.Wait()
	slots := make(chan struct{}, maxOpen)
	for {
		slots <- struct{}{}
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return ctx.Err()
		case err != nil: // such as that no file descriptor is free
			<-slots
			time.Sleep(50 * time.Millisecond)
			continue
		}
		open.Go(func() {
			defer func() { <-slots }()
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			p.serve(ctx, c)
		})
	}
}

// refusal is why there is no connection.
type refusal struct {
	status int
	text   string
}

// serve meets one client.
func (p *Proxy) serve(ctx context.Context, c net.Conn) {
	c.SetDeadline(time.Now().Add(patience)) //nolint:errcheck // reading fails, too, then
	buffered := bufio.NewReader(&io.LimitedReader{R: c, N: maxHead})
	r, err := http.ReadRequest(buffered)
	if err != nil {
		return
	}
	if buffered.Buffered() > 0 { // who speaks before there is an answer
		return
	}
	from, to, refused := p.connect(ctx, c, r)
	if refused != nil {
		fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n",
			refused.status, http.StatusText(refused.status), len(refused.text)+1, refused.text)
		p.Log.Info("refused a connection", "to", r.Host, "because", refused.text)
		return
	}
	if to == nil {
		return
	}
	defer to.Close()
	stop := context.AfterFunc(ctx, func() { to.Close() })
	defer stop()
	c.SetDeadline(time.Time{}) //nolint:errcheck // see above
	twoway.Carry(from, to, 0)
}

// connect makes both ends of a connection that a client asks for: its own, and the one to where it leads. Both are nil if the client gave up.
func (p *Proxy) connect(ctx context.Context, c net.Conn, r *http.Request) (from, to net.Conn, refused *refusal) {
	if r.Method != http.MethodConnect {
		return nil, nil, &refusal{http.StatusMethodNotAllowed, "this is a proxy for HTTPS: set HTTPS_PROXY, and not HTTP_PROXY"}
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		return nil, nil, &refusal{http.StatusBadRequest, "CONNECT needs a host and a port"}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := awsname.Fold(host)
	switch {
	case awsname.Served(name) && port == "443":
		to, err = p.dial(ctx)
	case p.Passes(name):
		to, err = (&net.Dialer{Control: refuseLinkLocal}).DialContext(ctx, "tcp", r.Host)
	default:
		return nil, nil, &refusal{http.StatusForbidden, "Pintle has no service at " + r.Host + ", and nobody said that such names lead on"}
	}
	if err != nil {
		return nil, nil, &refusal{http.StatusBadGateway, err.Error()}
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		to.Close() //nolint:errcheck // nothing was sent
		return nil, nil, nil
	}
	if !awsname.Served(name) || port != "443" {
		return c, to, nil
	}
	inner := tls.Server(c, p.config(name))
	if err := inner.HandshakeContext(ctx); err != nil {
		p.Log.Warn("a client doesn't take the certificate of a name of AWS's: does it know the authority?", "name", name, "error", err)
		to.Close() //nolint:errcheck // nothing was sent
		return nil, nil, nil
	}
	return inner, to, nil
}

// refuseLinkLocal keeps clients from what only this process may ask: a machine's metadata may be closed to its other users.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil && (awsname.IsMachineLocal(at.Addr()) || at.Addr().IsUnspecified()) {
		err = fmt.Errorf("%s is an address that the proxy doesn't connect to", at.Addr())
	}
	return err
}
