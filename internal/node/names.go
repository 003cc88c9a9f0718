package node

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"

	"golang.org/x/net/netutil"

	"github.com/pintle/pintle/internal/node/nameserver"
	"github.com/pintle/pintle/internal/node/network"
)

// The names of Cloud Map and of load balancers on this node. docs/discovery.md tells who gets which answer.

// maxAsking is how many connections may be open at the address for anybody.
const maxAsking = 256

// startNames reads the names that the node knew last, and answers them at the address for anybody, if there is one.
func (a *Agent) startNames(at *attendant) (err error) {
	a.names, err = nameserver.Load(filepath.Join(a.config.DataDir, "names.json"))
	if err != nil {
		a.log.Error("cannot read the names of Cloud Map; the control plane tells them again", "error", err)
	}
	at.names = nameserver.NewServer(a.names, nameserver.Options{
		ResolvConf: "/etc/resolv.conf", Machine: machineAddress, Plane: a.planeAddress, AWS: a.awsNames(),
	})
	at.inUse = func() bool { return a.stoodIn || a.answersNames() }
	if a.config.DNS == "" {
		return nil
	}
	l, err := net.Listen("tcp", a.config.DNS)
	if err != nil {
		return fmt.Errorf("the address for names: %w", err)
	}
	udp, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		l.Close()
		return fmt.Errorf("the address for names: %w", err)
	}
	at.group.Go(func() error { at.names.ServeUDP(at.ctx, udp, nameserver.Strangers); return nil })
	at.group.Go(func() error {
		at.names.ServeTCP(at.ctx, netutil.LimitListener(l, maxAsking), nameserver.Strangers)
		return nil
	})
	return nil
}

// machineAddress returns one of the machine's own addresses, which its tasks reach through their bridge.
func machineAddress() netip.Addr {
	for _, a := range machineAddresses() {
		if a.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// planeAddress returns an address at which tasks reach the control plane's machine.
func (a *Agent) planeAddress() netip.Addr {
	for _, at := range a.planeAt.get(a.config.Endpoint) {
		if at.Addr().Is4() {
			return at.Addr()
		}
	}
	return machineAddress() // the control plane is on this one
}

// nameServer returns where containers with a network of their own ask for names, or "" if they ask the machine's name servers. Those that
// began before there was a namespace go on asking these.
func (a *Agent) nameServer() string {
	if !a.answersNames() {
		return ""
	}
	return network.LinkLocal
}

// answersNames reports whether containers ask for names here.
func (a *Agent) answersNames() bool { return a.standIn != nil || a.names.InUse() }
