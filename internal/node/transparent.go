package node

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/node/nameserver"
	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/transparent"
)

// How a node stands in for AWS, for images whose SDKs know of no other endpoint. docs/transparent.md tells what they see.

// Transparent has tasks find the control plane at the names of AWS's hosts.
type Transparent struct {
	// Others says that the names of services that Pintle hasn't lead to AWS.
	Others bool
}

// authorities is where containers see the files of the authority.
const authorities = "/etc/pintle/aws"

// startTransparent opens what stands in for AWS. Tasks that share the machine's network have a proxy.
func (a *Agent) startTransparent(at *attendant) error {
	dir := filepath.Join(a.config.DataDir, "aws")
	if a.config.Transparent == nil {
		_, err := os.Stat(dir)
		a.stoodIn = err == nil
		return nil
	}
	if a.config.Runtime.Name() != "process" && os.Geteuid() != 0 {
		return errors.New("--transparent: only root can answer names inside containers' networks")
	}
	o := transparent.Options{Dir: dir, Endpoint: a.config.Endpoint, TLS: a.config.Authority.TLS}
	if path := a.config.Authority.Path; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("the control plane's certificate authority: %w", err)
		}
		o.Trusted = string(text)
	}
	s, err := transparent.Open(o)
	if err != nil {
		return fmt.Errorf("--transparent: %w", err)
	}
	a.standIn, at.standIn = s, s
	l, err := a.listenProxy()
	if err != nil {
		return err
	}
	a.proxy = l.Addr()
	p := &transparent.Proxy{StandIn: s, Passes: a.passes, Log: a.log}
	at.group.Go(func() error { return p.Serve(at.ctx, l) })
	return nil
}

// passes reports whether a task's connections to a name go on: to those that aren't AWS's it could go by itself.
func (a *Agent) passes(name string) bool { return !awsname.IsAWS(name) || a.config.Transparent.Others }

// listenProxy opens the port that running tasks know, or any other.
func (a *Agent) listenProxy() (net.Listener, error) {
	id := *a.identity.Load()
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(id.ProxyPort))
	if err != nil && id.ProxyPort != 0 {
		a.log.Warn("the proxy for AWS's hosts moves: running tasks will not find it", "error", err)
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen for what tasks send to AWS's hosts: %w", err)
	}
	id.ProxyPort = l.Addr().(*net.TCPAddr).Port
	return l, a.storeIdentity(id)
}

// awsNames says how AWS's names are answered to tasks, or nil if they aren't.
func (a *Agent) awsNames() *nameserver.AWS {
	if a.config.Transparent == nil {
		return nil
	}
	return &nameserver.AWS{Address: netip.MustParseAddr(network.LinkLocal), Others: a.config.Transparent.Others}
}

// awsMounts are what every container sees of the authority.
func (a *Agent) awsMounts() []runtime.Mount {
	if a.standIn == nil || a.config.Runtime.Name() == "process" {
		return nil
	}
	return []runtime.Mount{{Source: a.standIn.Public(), Destination: authorities, ReadOnly: true}}
}

// addTransparent adds the variables by which a task's clients trust the authority, and find the proxy if the task shares the machine's network.
func (a *Agent) addTransparent(env map[string]string, onMachine bool) {
	if a.standIn == nil {
		return
	}
	public := authorities
	if a.config.Runtime.Name() == "process" {
		public = a.standIn.Public()
	}
	maps.Copy(env, transparent.Environment(public))
	if !onMachine {
		return
	}
	env["HTTPS_PROXY"] = "http://" + a.proxy.String()
	env["NO_PROXY"] = "localhost,127.0.0.1,169.254.169.254,fd00:ec2::254,169.254.170.2"
	if u, err := url.Parse(a.config.Endpoint); err == nil && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" {
		env["NO_PROXY"] += "," + u.Hostname()
	}
}
