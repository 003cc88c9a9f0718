// Package connect has each task of Service Connect its proxy: a process of its own in the task's network namespace, or in that of each of its
// containers in network mode bridge, which outlives the agent, so that traffic goes on while that is replaced. The agent opens its sockets,
// tells it where the endpoints' tasks are, asks what has passed, starts it again if it was killed, and ends it with the containers. What the
// process does with traffic is package traffic's.
package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/connect/traffic"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/nameserver"
)

// Options are what the proxies of a node need.
type Options struct {
	Dir      string             // a directory for each proxy is made in it
	Program  []string           // the command line of a proxy
	Names    *nameserver.Names  // where the endpoints' tasks are
	Machine  func() netip.Addr  // an address by which tasks reach the machine, if it is known by its loopback alone
	Start    func(*Start) error // starts a proxy; nil starts a process
	Patience time.Duration      // how long a proxy may take to answer; 30 s if 0
	Log      *slog.Logger
	// Shippers send what proxies say, by log driver; what others get stays on the node.
	Shippers map[string]engine.Shipper
}

// Proxies are the proxies of a node.
type Proxies struct {
	opts Options

	mu   sync.Mutex
	open map[string]*proxy // by the names of their directories
}

// New returns a node's proxies. Those that an earlier agent has started go on.
func New(o Options) *Proxies { return &Proxies{opts: o, open: map[string]*proxy{}} }

// The time-outs that hold where a service names none: API_TimeoutConfiguration, and "Service Connect parameters".
const (
	defaultIdle    = 5 * time.Minute
	defaultIdleTCP = time.Hour
	defaultRequest = 15 * time.Second
)

// firstAddress is the one before those at which the names of a task's endpoints are, as on AWS.
var firstAddress = netip.MustParseAddr("127.255.0.0")

// addresses returns the address of each name.
func addresses(c *acs.ServiceConnect) map[string]netip.Addr {
	out := map[string]netip.Addr{}
	next := firstAddress
	for _, a := range c.Aliases {
		if _, has := out[a.Name]; !has {
			next = next.Next()
			out[a.Name] = next
		}
	}
	return out
}

// Hosts returns what a task's containers find in /etc/hosts: name:address.
func Hosts(t *acs.Task) (hosts []string) {
	if t.ServiceConnect == nil {
		return nil
	}
	for name, address := range addresses(t.ServiceConnect) {
		hosts = append(hosts, name+":"+address.String())
	}
	slices.Sort(hosts)
	return hosts
}

// plan is what a task's proxy has to do.
type plan struct {
	aliases   []netip.AddrPort
	ports     []uint16
	listeners []traffic.Listener // of the aliases, and then of the ports
	of        []acs.ConnectAlias // the aliases
	endpoints []string           // whose tasks have to be known
	fixed     map[string][]traffic.Target
}

func planOf(c *acs.ServiceConnect) *plan {
	p := &plan{fixed: map[string][]traffic.Target{}}
	at := addresses(c)
	for _, a := range c.Aliases {
		address := netip.AddrPortFrom(at[a.Name], a.Port)
		if slices.Contains(p.aliases, address) {
			continue // the control plane sees to it that there is no other
		}
		p.aliases = append(p.aliases, address)
		p.of = append(p.of, a)
		p.listeners = append(p.listeners, listenerOf(&a))
		if !slices.Contains(p.endpoints, a.Endpoint) {
			p.endpoints = append(p.endpoints, a.Endpoint)
		}
	}
	for _, i := range c.Ingress {
		id := "ingress " + strconv.Itoa(int(i.Port))
		p.ports = append(p.ports, i.Port)
		p.listeners = append(p.listeners, traffic.Listener{Name: id, Endpoint: id})
		p.fixed[id] = []traffic.Target{{Address: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), i.ContainerPort).String()}}
	}
	return p
}

func listenerOf(a *acs.ConnectAlias) traffic.Listener {
	l := traffic.Listener{
		Name:     fmt.Sprint(a.Name, ":", a.Port),
		Protocol: a.Protocol,
		Endpoint: a.Endpoint,
		Idle:     defaultIdle,
		Request:  defaultRequest,
	}
	if a.Protocol == "" {
		l.Idle, l.Request = defaultIdleTCP, 0
	}
	if a.IdleSeconds != nil {
		l.Idle = time.Duration(*a.IdleSeconds) * time.Second
	}
	if a.RequestSeconds != nil {
		l.Request = time.Duration(*a.RequestSeconds) * time.Second
	}
	return l
}

// targets returns the targets of a plan's endpoints, and a channel that is closed once they may have changed.
func (p *Proxies) targets(of *plan) (map[string][]traffic.Target, <-chan struct{}) {
	known, changed := p.opts.Names.Instances(of.endpoints)
	out := map[string][]traffic.Target{}
	for id, instances := range known {
		out[id] = []traffic.Target{}
		for _, i := range instances {
			ip, err := netip.ParseAddr(i.IPv4)
			if err != nil || i.Port == 0 {
				continue
			}
			if ip.IsLoopback() {
				ip = p.opts.Machine()
			}
			out[id] = append(out[id], traffic.Target{Address: netip.AddrPortFrom(ip, i.Port).String(), Unhealthy: i.Unhealthy})
		}
	}
	for id, fixed := range of.fixed {
		out[id] = fixed
	}
	return out, changed
}

// Attend has a proxy in a network namespace of a task, which is a container's if that has a name. It goes on until end is called. After leave
// it goes on without this agent.
func (p *Proxies) Attend(netns string, t *acs.Task, container string) (end, leave func(), err error) {
	nothing := func() {}
	if t.ServiceConnect == nil || len(t.ServiceConnect.Aliases)+len(t.ServiceConnect.Ingress) == 0 {
		return nothing, nothing, nil
	}
	name := nameOf(t.Arn, container)
	x := &proxy{
		proxies:   p,
		netns:     netns,
		task:      t,
		container: container,
		dir:       filepath.Join(p.opts.Dir, name),
		plan:      planOf(t.ServiceConnect),
	}
	if err := x.begin(); err != nil {
		return nil, nil, fmt.Errorf("the proxy of Service Connect: %w", err)
	}
	p.mu.Lock()
	p.open[name] = x
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() { x.follow(ctx) })
	shipped, stopShipping := x.ship()
	forget := func() {
		cancel()
		following.Wait()
		p.mu.Lock()
		delete(p.open, name)
		p.mu.Unlock()
	}
	leave = func() {
		stopShipping()
		forget()
	}
	end = func() {
		forget()
		x.end(shipped)
		stopShipping()
	}
	return end, leave, nil
}

// nameOf returns the name of a proxy's directory.
func nameOf(arn, container string) string {
	name := arn[strings.LastIndexByte(arn, '/')+1:]
	if container != "" {
		name += "." + container
	}
	return name
}

// Sweep ends the proxies of tasks that aren't there anymore: an agent before this one was killed before it could.
func (p *Proxies) Sweep(isThere func(task string) bool) {
	entries, err := os.ReadDir(p.opts.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.opts.Log.Error("cannot look for old proxies of Service Connect", "error", err)
	}
	for _, e := range entries {
		task, _, _ := strings.Cut(e.Name(), ".")
		p.mu.Lock()
		x := p.open[e.Name()]
		p.mu.Unlock()
		if x == nil && !isThere(task) {
			(&proxy{proxies: p, dir: filepath.Join(p.opts.Dir, e.Name())}).end(func() {})
		}
	}
}

// usageTime is how long all proxies together may take to answer.
const usageTime = 2 * time.Second

// Usage returns what the proxies have passed on since the last call, by task.
func (p *Proxies) Usage(ctx context.Context) map[string][]acs.ConnectUsage {
	p.mu.Lock()
	open := slices.Collect(maps.Values(p.open))
	p.mu.Unlock()
	out := map[string][]acs.ConnectUsage{}
	ctx, cancel := context.WithTimeout(ctx, usageTime)
	defer cancel()
	for _, x := range open {
		counts, err := x.counts(ctx)
		if err != nil {
			continue // it's being started again
		}
		for i, a := range x.plan.of {
			if i < len(counts) && counts[i].Connections+counts[i].Active+counts[i].Requests > 0 {
				out[x.task.Arn] = append(out[x.task.Arn], usageOf(a.Endpoint, &counts[i]))
			}
		}
	}
	return out
}

func usageOf(endpoint string, c *traffic.Count) acs.ConnectUsage {
	const milli = 1000
	return acs.ConnectUsage{
		Endpoint:    endpoint,
		Connections: c.Connections,
		Active:      c.Active,
		Bytes:       c.Bytes,
		Requests:    c.Requests,
		GRPC:        c.GRPC,
		Classes:     c.Classes,
		ResponseTime: acs.StatsSet{
			Min:         milli * c.ResponseTime.Min,
			Max:         milli * c.ResponseTime.Max,
			Sum:         milli * c.ResponseTime.Sum,
			SampleCount: c.ResponseTime.Count,
		},
		Targets: c.Targets,
	}
}
