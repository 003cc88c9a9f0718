package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/connect"
	"github.com/pintle/pintle/internal/node/nameserver"
	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/tmds"
	"github.com/pintle/pintle/internal/transparent"
)

// attendant serves containers inside their own networks: the metadata endpoint, and the control plane if that listens on the machine's
// loopback, or has a certificate of an authority that containers don't know.
type attendant struct {
	ctx      context.Context // of Run
	group    *errgroup.Group // of Run
	metadata *tmds.Server
	machine  *machine
	names    *nameserver.Server
	inUse    func() bool // whether containers ask for names here
	connect  *connect.Proxies
	plane    string
	tls      *tls.Config          // how to connect to plane; nil is without TLS
	standIn  *transparent.StandIn // for AWS; nil if its hosts are left to it
}

// attend serves a network namespace until stop is called or the agent ends. As on AWS, only a task with a role, or on an instance with one,
// may call the control plane: without this check anyone could, since it takes callers from loopback for the machine's owner.
func (at *attendant) attend(netns string, task *acs.Task, container string) (stop func(), err error) {
	ctx, cancel := context.WithCancel(at.ctx)
	var serving sync.WaitGroup
	serve := func(do func()) {
		serving.Add(1)
		at.group.Go(func() error {
			defer serving.Done()
			do()
			return nil
		})
	}
	if err := network.Redirect(netns, at.machine.serves(task)); err != nil {
		cancel()
		return nil, err
	}
	endProxy, leaveProxy, err := at.connect.Attend(netns, task, container)
	if err != nil {
		cancel()
		return nil, err
	}
	stop = func() {
		cancel()
		serving.Wait() // the next attend may need the ports
		if at.ctx.Err() != nil {
			leaveProxy() // the containers go on without this agent
			return
		}
		endProxy()
	}
	may := at.caller(task)
	if err = at.serveNames(ctx, netns, serve); err == nil {
		err = at.serveAWS(ctx, netns, may, serve)
	}
	if err != nil {
		stop()
		return nil, err
	}
	metadata, api, err := network.Listen(netns)
	if err != nil {
		stop()
		return nil, err
	}
	own := at.metadata.For(task.Arn)
	serve(func() { own.Serve(ctx, metadata) }) //nolint:errcheck // it ends with ctx
	instance, err := at.machine.listen(netns, task)
	if err != nil {
		err = errors.Join(err, api.Close())
		stop()
		return nil, err
	}
	if instance != nil {
		serve(func() { at.machine.service.Serve(ctx, instance, hopsOf(task)) })
	}
	if at.plane == "" || may == nil {
		api.Close()
		return stop, nil
	}
	serve(func() { network.Forward(ctx, gated{api, may}, at.plane, at.tls) })
	return stop, nil
}

// caller returns whether a task may call the control plane at the moment, or nil if it never may.
func (at *attendant) caller(task *acs.Task) func() bool {
	switch {
	case task.RoleCredentials != nil:
		return func() bool { return true }
	case at.machine.serves(task):
		return at.machine.hasRole
	}
	return nil
}

// serveAWS takes the place of AWS's hosts in a network namespace. A control plane that containers reach themselves, too, checks who calls.
func (at *attendant) serveAWS(ctx context.Context, netns string, may func() bool, serve func(func())) error {
	if at.standIn == nil || at.plane != "" && may == nil {
		return nil
	}
	l, err := network.ListenAWS(netns)
	if err != nil {
		return err
	}
	if at.plane != "" {
		l = gated{l, may}
	}
	serve(func() { network.Forward(ctx, at.standIn.Listener(l), at.standIn.Plane(), at.standIn.PlaneTLS()) })
	return nil
}

// serveNames answers names in a network namespace.
func (at *attendant) serveNames(ctx context.Context, netns string, serve func(func())) error {
	if !at.inUse() {
		return nil
	}
	udp, tcp, err := network.ListenNames(netns)
	if err != nil {
		return err
	}
	serve(func() { at.names.ServeUDP(ctx, udp, nameserver.Tasks) })
	serve(func() { at.names.ServeTCP(ctx, tcp, nameserver.Tasks) })
	return nil
}

// forwarded returns the address to which the agent forwards its containers' calls, or "" if they make them themselves.
func forwarded(c Config) string {
	u, err := url.Parse(c.Endpoint)
	if c.Authority.TLS == nil || err != nil || u.Scheme != "https" {
		return loopback(c.Endpoint)
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
}

// tls returns how the agent connects to where it forwards calls, or nil for a connection without TLS.
func (a *Agent) tls() *tls.Config {
	if strings.HasPrefix(a.config.Endpoint, "https:") {
		return a.config.Authority.TLS
	}
	return nil
}

// loopback returns the address in a URL if it is on loopback, else "".
func loopback(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" {
		return ""
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
