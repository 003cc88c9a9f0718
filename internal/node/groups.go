package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/network"
)

// What the rules of security groups become on this node. docs/security.md tells what they leave alone here, and why.

// restrict makes what a task's security groups let pass hold in a network namespace.
func (a *Agent) restrict(netns string, t *acs.Task, ports []engine.Port) error {
	if t.NetworkRules == nil {
		return network.Unrestrict(netns)
	}
	s := surroundings{machine: machineAddresses(), resolvers: resolvers(), plane: a.planeAt.get(a.config.Endpoint)}
	if t.NetworkMode == "bridge" {
		var err error
		if s.bridge, err = network.Subnets(netns); err != nil {
			return err
		}
	}
	f, err := firewall(t.NetworkRules, s, ports)
	if err != nil {
		return err
	}
	return network.Restrict(netns, f)
}

// surroundings are what a task may always reach or be reached from.
type surroundings struct {
	machine   []netip.Addr     // programs on it may reach its tasks
	resolvers []netip.Addr     // tasks may ask them for names
	plane     []netip.AddrPort // the control plane, which has AWS's place
	// bridge are the networks of a container in mode bridge. What is on them is the same machine's, where AWS's groups don't reach.
	// nil means that the task has an interface of its own.
	bridge []netip.Prefix
}

// firewall returns the firewall that rules become.
func firewall(rules *acs.NetworkRules, s surroundings, ports []engine.Port) (f network.Firewall, err error) {
	in := rules.In
	if s.bridge != nil {
		in = onPorts(in, ports)
	}
	if f.In, err = passages(in); err != nil {
		return f, err
	}
	if f.Out, err = passages(rules.Out); err != nil {
		return f, err
	}
	f.In = append(f.In, between(-1, -1, slices.Concat(single(s.machine), s.bridge))...)
	f.Out = append(f.Out, between(-1, -1, s.bridge)...)
	for _, protocol := range []int{protocolTCP, protocolUDP} {
		f.Out = append(f.Out, between(protocol, 53, single(s.resolvers))...)
	}
	for _, p := range s.plane {
		f.Out = append(f.Out, between(protocolTCP, int(p.Port()), single([]netip.Addr{p.Addr()}))...)
	}
	return f, nil
}

const (
	protocolTCP = 6
	protocolUDP = 17
)

// between lets one port of some addresses pass, or nothing if there are none.
func between(protocol, port int, peers []netip.Prefix) []network.Passage {
	if len(peers) == 0 {
		return nil
	}
	return []network.Passage{{Protocol: protocol, From: port, To: port, Peers: disjoint(peers)}}
}

// disjoint leaves out blocks that lie in others.
func disjoint(all []netip.Prefix) (out []netip.Prefix) {
	slices.SortFunc(all, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() }) // the widest first
	for _, p := range all {
		if !slices.ContainsFunc(out, p.Overlaps) {
			out = append(out, p.Masked())
		}
	}
	return out
}

func single(all []netip.Addr) (out []netip.Prefix) {
	for _, a := range all {
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}

// passages parses rules.
func passages(rules []acs.NetworkRule) (out []network.Passage, err error) {
	for _, r := range rules {
		p := network.Passage{Protocol: r.Protocol, From: r.From, To: r.To}
		for _, text := range r.Peers {
			block, err := netip.ParsePrefix(text)
			if err != nil {
				return nil, fmt.Errorf("a rule of a security group: %w", err)
			}
			p.Peers = append(p.Peers, block)
		}
		out = append(out, p)
	}
	return out, nil
}

// onPorts turns rules for an instance's ports into rules for those of one of its containers: what comes for a published port has the
// container's port when it gets there. Nothing comes for others.
func onPorts(rules []acs.NetworkRule, ports []engine.Port) (out []acs.NetworkRule) {
	for _, r := range rules {
		if r.Protocol != protocolTCP && r.Protocol != protocolUDP {
			out = append(out, r)
			continue
		}
		for _, p := range ports {
			isUDP := p.Protocol == "udp"
			if isUDP == (r.Protocol == protocolUDP) && int(p.Host) >= r.From && int(p.Host) <= r.To {
				r.From, r.To = int(p.Container), int(p.Container)
				out = append(out, r)
			}
		}
	}
	return out
}

// machineAddresses returns the machine's own addresses, but those of loopback and of single links.
func machineAddresses() (out []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			out = append(out, p.Addr())
		}
	}
	return out
}

// resolvers returns the machine's name servers, which containers have too. Systemd keeps those behind its own in another file.
func resolvers() (out []netip.Addr) {
	for _, path := range []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"} {
		b, _ := os.ReadFile(path) //nolint:errcheck // the second is there with systemd only
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != "nameserver" {
				continue
			}
			if a, err := netip.ParseAddr(f[1]); err == nil && !a.IsLoopback() && !slices.Contains(out, a.WithZone("")) {
				out = append(out, a.WithZone(""))
			}
		}
	}
	return out
}

// planeAt remembers where containers reach the control plane. Many tasks' rules may change at once, and a name server that's away must not
// hold up each of them.
type planeAt struct {
	mu    sync.Mutex
	at    time.Time
	found []netip.AddrPort
}

// get looks the addresses up at most once a minute.
func (p *planeAt) get(endpoint string) []netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < time.Minute {
		return p.found
	}
	if found := planeAddresses(endpoint); len(found) > 0 || p.found == nil {
		p.found = found
	}
	p.at = time.Now()
	return p.found
}

// planeAddresses returns where containers reach the control plane, if they do it themselves.
func planeAddresses(endpoint string) (out []netip.AddrPort) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil
	}
	text := u.Port()
	if text == "" {
		text = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname()) //nolint:errcheck // without it the rules say who is reached
	for _, a := range found {
		if !a.Unmap().IsLoopback() {
			out = append(out, netip.AddrPortFrom(a.Unmap(), uint16(port)))
		}
	}
	return out
}
