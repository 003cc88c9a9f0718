package nodelink

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// The names of load balancers, which nodes answer to their tasks: in a container, names below localhost are the container's own otherwise.

// balancerTTL is how long an address of a load balancer's holds, in seconds, as on AWS, and absenceTTL that there is none.
const (
	balancerTTL = 60
	absenceTTL  = 5
)

// balancers returns the names of the load balancers that other machines reach, by ARN, and their zone, or "" if there are none. An address of
// 0.0.0.0 is that of the control plane's machine, which its nodes know.
func balancers(v *state.View) (zone string, names map[string]acs.NamedService) {
	hosts := map[string][]string{}
	for p := range v.Balancers.All() {
		for listener, address := range p.Addresses {
			host, ok := reachable(address)
			l := v.Listeners.Get(listener)
			if p.Lost == nil && ok && l != nil && !slices.Contains(hosts[*l.LoadBalancerArn], host) {
				hosts[*l.LoadBalancerArn] = append(hosts[*l.LoadBalancerArn], host)
			}
		}
	}
	names = map[string]acs.NamedService{}
	for arn, at := range hosts {
		b := v.LoadBalancers.Get(arn)
		if b == nil {
			continue
		}
		slices.Sort(at)
		one := acs.NamedService{ID: arn, Name: *b.DNSName, Records: map[string]uint32{"A": balancerTTL, "AAAA": balancerTTL}}
		for _, host := range at {
			i := acs.NamedInstance{ID: host}
			if strings.Contains(host, ":") {
				i.IPv6 = host
			} else {
				i.IPv4 = host
			}
			one.Instances = append(one.Instances, i)
		}
		names[arn] = one
		_, zone, _ = strings.Cut(*b.DNSName, ".")
	}
	return zone, names
}

// reachable returns the address of a listener, unless that is one of its machine alone.
func reachable(address string) (host string, ok bool) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "", false
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip.IsUnspecified():
		return netip.IPv4Unspecified().String(), true
	case err != nil || ip.IsLoopback() || ip.IsLinkLocalUnicast():
		return "", false
	}
	return ip.Unmap().String(), true
}
