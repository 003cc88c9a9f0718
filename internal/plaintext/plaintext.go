// Package plaintext keeps clients of image registries from speaking plain HTTP to other machines. The library that they use would turn to it,
// with the credentials, wherever a registry at a private address has no TLS that it trusts. Nodes use it, and the control plane's registry.
package plaintext

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
)

// Guard is a transport that speaks plain HTTP on loopback alone, as a Docker Engine does.
type Guard struct {
	http.RoundTripper
	Allowed bool // it may speak plain HTTP to any machine, as to a control plane without TLS
}

// RoundTrip implements http.RoundTripper.
func (g Guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme == "http" && !g.Allowed && !isLoopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("the registry %s has no TLS, without which only those on loopback are spoken to", r.URL.Host)
	}
	return g.RoundTripper.RoundTrip(r)
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
