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
	tls      *tls.Config // how to connect to plane; nil is without TLS
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
	if err := at.serveNames(ctx, netns, serve); err != nil {
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
	switch {
	case at.plane == "" || task.RoleCredentials == nil && instance == nil:
		api.Close()
	case task.RoleCredentials == nil:
		serve(func() { network.Forward(ctx, gated{api, at.machine.hasRole}, at.plane, at.tls) })
	default:
		serve(func() { network.Forward(ctx, api, at.plane, at.tls) })
	}
	return stop, nil
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
