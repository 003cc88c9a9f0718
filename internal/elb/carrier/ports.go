package carrier

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	"github.com/pintle/pintle/internal/elb/routing"
)

// assign gives each listener a port: the one that it has had before, or else the one that it asks for, or else one of the range. Listeners
// for which there is none are taken out, and problems say why.
func (f *Carrier) assign(all *routing.Balancers) (ports map[string]int, problems map[string]string) {
	ports, problems = map[string]int{}, map[string]string{}
	f.mu.Lock()
	before := f.ports
	running := f.version != ""
	f.mu.Unlock()
	taken := map[int]bool{}
	for i := range all.Balancers {
		for _, l := range all.Balancers[i].Listeners {
			if port := before[l.ARN]; port != 0 {
				taken[port] = true
			}
		}
	}
	for i := range all.Balancers {
		b := &all.Balancers[i]
		b.Listeners = slices.DeleteFunc(b.Listeners, func(l routing.Listener) bool {
			port, err := f.portFor(&l, before[l.ARN], running, taken)
			if err != nil {
				problems[l.ARN] = err.Error()
				return true
			}
			ports[l.ARN] = port
			taken[port] = true
			return false
		})
		for j := range b.Listeners {
			l := &b.Listeners[j]
			l.Served = 0
			if port := ports[l.ARN]; port != l.Port {
				l.Served = port
			}
		}
	}
	return ports, problems
}

// portFor returns a listener's port. One that runs has its port already.
func (f *Carrier) portFor(l *routing.Listener, before int, running bool, taken map[int]bool) (int, error) {
	inRange := f.opts.First <= before && before <= f.opts.Last
	if before != 0 && (before == l.Port || inRange && l.Port != 0) && (running && f.proxy.Serves(l, before) || f.isFree(l, before)) {
		return before, nil
	}
	if !taken[l.Port] && f.isFree(l, l.Port) {
		return l.Port, nil
	}
	for port := f.opts.First; port <= f.opts.Last; port++ {
		if !taken[port] && f.isFree(l, port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("port %d isn't free, and none from %d to %d is", l.Port, f.opts.First, f.opts.Last)
}

// isFree reports whether a port can be listened at, or is already: then by a listener that goes, since those that stay have taken theirs.
func (f *Carrier) isFree(l *routing.Listener, port int) bool {
	address := net.JoinHostPort(f.opts.Host, strconv.Itoa(port))
	for _, network := range routing.Networks(l.Protocol) {
		if f.proxy.IsOpen(network, port) {
			continue
		}
		var c io.Closer
		var err error
		if network == "udp" {
			c, err = net.ListenPacket(network, address)
		} else {
			c, err = net.Listen(network, address)
		}
		if err != nil {
			return false
		}
		c.Close() //nolint:errcheck // it was only to see
	}
	return true
}
