package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Networks makes network namespaces for awsvpc tasks, each with its own address. Making one that exists returns it; deleting one that
// doesn't exist is no error.
type Networks interface {
	Create(ctx context.Context, taskID string) (netns, ip, mac string, err error)
	Delete(ctx context.Context, taskID string) error
}

var errNoNetworks = errors.New("this node cannot give tasks a network of their own (awsvpc)")

// runsProcesses reports whether containers are plain processes, which share the node's network in every mode.
func (e *Engine) runsProcesses() bool { return e.opts.Runtime.Name() == "process" }

func (t *task) hasOwnNetwork() bool {
	return t.rec.Task.NetworkMode == "awsvpc" && !t.engine.runsProcesses()
}

// connect makes and serves the task's own network, if its mode asks for one. Without it the task can't run.
func (t *task) connect(ctx context.Context) error {
	t.mu.Lock()
	none, running := !t.hasOwnNetwork() || t.rec.Halting(), t.rec.running()
	t.mu.Unlock()
	if t.rec.Task.NetworkMode == "awsvpc" && t.engine.runsProcesses() && t.engine.opts.Address != "" {
		t.connected(Network{IP: t.processAddress()})
	}
	if none {
		return nil
	}
	n, err := t.makeNetwork(ctx) // an old one too: a reboot may have removed it
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = t.guardNew(n.NetNS, "")
	}
	if err == nil {
		err = t.attend("", n.NetNS)
	}
	switch {
	case err == nil:
	case running:
		t.engine.opts.Log.Error("a running task's network cannot be served", "task", t.arn(), "error", err)
	default:
		t.update(func(r *Record) { r.Failure = "ResourceInitializationError: " + err.Error() })
	}
	return nil
}

// processAddress returns the address of a task of plain processes: the machine's. Where that is loopback, tasks have addresses of their own, since all of
// 127.0.0.0/8 leads to the machine: those that listen on their address alone can have the same port.
func (t *task) processAddress() string {
	if ip, err := netip.ParseAddr(t.engine.opts.Address); err != nil || !ip.Is4() || !ip.IsLoopback() {
		return t.engine.opts.Address
	}
	h := fnv.New32a()
	h.Write([]byte(t.id()))
	n := h.Sum32()
	return netip.AddrFrom4([4]byte{127, 64 | byte(n>>16)&63, byte(n >> 8), byte(n)}).String()
}

func (t *task) makeNetwork(ctx context.Context) (*Network, error) {
	if t.engine.opts.Networks == nil {
		return nil, errNoNetworks
	}
	n := new(Network)
	err := whenUp(ctx, func() (err error) {
		n.NetNS, n.IP, n.MAC, err = t.engine.opts.Networks.Create(ctx, t.id())
		return err
	})
	if err != nil {
		return nil, err
	}
	t.connected(*n)
	return n, nil
}

// connected notes the task's network, and tells of it.
func (t *task) connected(n Network) {
	if old := t.rec.Network; old == nil || *old != n { // no lock needed: only this goroutine changes it
		t.update(func(r *Record) { r.Network = &n })
	}
	if t.engine.opts.Connected != nil {
		t.engine.opts.Connected(t.arn(), n)
	}
}

// disconnect deletes the task's own network.
func (t *task) disconnect(ctx context.Context) error {
	if !t.hasOwnNetwork() || t.engine.opts.Networks == nil {
		return nil
	}
	for {
		err := t.engine.opts.Networks.Delete(ctx, t.id())
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		t.engine.opts.Log.Error("cannot delete a task's network; trying again", "task", t.arn(), "error", err)
		if !pause(ctx, maxRetry) {
			return ctx.Err()
		}
	}
}

// network returns the network that a container sees, and its ports on the node.
func (t *task) network(c *acs.Container) (runtime.Network, []Port, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := runtime.Network{Mode: t.rec.Task.NetworkMode}
	switch {
	case t.engine.runsProcesses():
		n.Mode = "host"
	case t.hasOwnNetwork():
		n.Mode, n.NetNS, n.IP = "netns", t.rec.Network.NetNS, t.rec.Network.IP
	}
	if n.Mode == "bridge" && containerConfig(c).NetworkDisabled {
		n.Mode = "none"
		return n, nil, nil
	}
	if n.Mode != "bridge" {
		return n, samePorts(c), nil
	}
	for _, l := range c.Links {
		n.Links = append(n.Links, t.link(l))
	}
	ports, err := t.hostPorts(c)
	for _, p := range ports {
		n.Ports = append(n.Ports, runtime.Port{ContainerPort: uint16(p.Container), HostPort: uint16(p.Host), Protocol: p.Protocol})
	}
	return n, ports, err
}

// link names a linked container in the runtime's form, id:alias. The caller holds mu.
func (t *task) link(l string) string {
	name, alias, ok := cutLink(l)
	if !ok {
		alias = name
	}
	return t.containerID(name) + ":" + alias
}

// samePorts returns the ports of a container that listens on its network directly.
func samePorts(c *acs.Container) []Port {
	var out []Port
	for _, p := range c.PortMappings {
		for _, port := range portsOf(p) {
			port.Host = port.Container
			out = append(out, port)
		}
	}
	return out
}

// hostPorts returns the node's ports for a container: the ones it asks for, or else dynamic ones, which it keeps. The caller holds mu.
func (t *task) hostPorts(c *acs.Container) ([]Port, error) {
	given := t.rec.Containers[c.Name].Ports
	var out []Port
	for _, p := range c.PortMappings {
		ports := portsOf(p)
		if len(ports) == 0 {
			continue // the control plane has checked it
		}
		first := cmp.Or(p.HostPort, hostPortOf(given, ports[0]))
		if first == 0 {
			var err error
			if first, err = t.engine.ledger.pick(t.arn(), protocol(p) == "udp", len(ports)); err != nil {
				return nil, fmt.Errorf("a host port for container port %s: %w", cmp.Or(p.ContainerPortRange, strconv.FormatInt(p.ContainerPort, 10)), err)
			}
		}
		for i, port := range ports {
			port.Host = first + int64(i)
			out = append(out, port)
		}
	}
	return out, nil
}

func hostPortOf(given []Port, p Port) int64 {
	i := slices.IndexFunc(given, func(g Port) bool { return g.Container == p.Container && g.Protocol == p.Protocol })
	if i < 0 {
		return 0
	}
	return given[i].Host
}

// portsOf returns the container's ports of a mapping: one, or those of a range (first-last).
func portsOf(p acs.PortMapping) (out []Port) {
	first, last, ok := strings.Cut(p.ContainerPortRange, "-")
	if !ok {
		return []Port{{Container: p.ContainerPort, Protocol: protocol(p)}}
	}
	from, err := strconv.ParseUint(first, 10, 16)
	to, toErr := strconv.ParseUint(last, 10, 16)
	if err != nil || toErr != nil {
		return nil
	}
	for n := from; n <= to; n++ {
		out = append(out, Port{Container: int64(n), Protocol: protocol(p), Range: p.ContainerPortRange})
	}
	return out
}

func protocol(p acs.PortMapping) string {
	if p.Protocol == "" {
		return "tcp"
	}
	return p.Protocol
}
