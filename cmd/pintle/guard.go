package main

import (
	"net"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/agent/network"
)

// guard keeps web pages out of a control plane that takes any credentials because it is on loopback
// alone. A page on a name that its owner lets point to 127.0.0.1 could else run tasks here: such
// requests give that name as their host.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !localHost(r.Host) {
			http.Error(w, "pintle on loopback answers only to localhost and loopback addresses, not to "+r.Host, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// localHost says whether a Host header names this machine: by a loopback address, as localhost, by the
// address that an agent has for its containers, or as AWS's own hosts, which no page can be served from.
func localHost(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback() || host == network.LinkLocal
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".amazonaws.com")
}
