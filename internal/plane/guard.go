package plane

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/pintle/pintle/internal/node/network"
)

// guard keeps web pages out of a control plane that takes any credentials because it is on loopback
// alone. A page on a name that its owner lets point to 127.0.0.1 could else run tasks here: such
// requests give that name as their host. So could any page that has a form sent here, or an image fetched, for
// which browsers ask nobody: they say where such a request comes from.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fromAfar(r.Header) {
			http.Error(w, "pintle on loopback does not answer to web pages from elsewhere", http.StatusForbidden)
			return
		}
		if !localHost(r.Host) {
			http.Error(w, "pintle on loopback answers only to localhost and loopback addresses, not to "+r.Host, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromAfar reports whether a browser sends a request for a page that is not this machine's own.
func fromAfar(h http.Header) bool {
	if origin := h.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || !loopback(u.Host)
	}
	return h.Get("Sec-Fetch-Site") == "cross-site" // browsers send no Origin with what they GET for an image or a link
}

// localStack ends the names by which tflocal and its like call port 4566. Their owner resolves all of them to
// 127.0.0.1.
const localStack = ".localhost.localstack.cloud"

// localHost reports whether a Host header names this machine: by a loopback address, as localhost, by the
// address that an agent has for its containers, or as AWS's own hosts, which no page can be served from.
func localHost(hostPort string) bool {
	host := hostOf(hostPort)
	return loopback(hostPort) || host == network.LinkLocal || strings.HasSuffix(host, ".amazonaws.com") || strings.HasSuffix("."+host, localStack)
}

// loopback reports whether a host is this machine by any resolver.
func loopback(hostPort string) bool {
	host := hostOf(hostPort)
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// hostOf returns a host without its port.
func hostOf(hostPort string) string {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}
