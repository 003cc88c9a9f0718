package plane

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/pintle/pintle/internal/node/network"
)

// guard keeps web pages out of a control plane on loopback that takes any credentials. Otherwise a page whose domain resolves
// to 127.0.0.1 could run tasks here. Its requests carry that domain as their host. Any other page could do so by submitting a
// form or loading an image, which browsers allow without asking. Those requests say where they come from. The advertised URL's
// host is answered to as well: a tunnel or a proxy leads from there to here.
func guard(advertised string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isCrossSite(r.Header) {
			http.Error(w, "pintle on loopback does not answer to web pages from elsewhere", http.StatusForbidden)
			return
		}
		if isBrowser(r.Header) && !isLoopback(r.Host) {
			http.Error(w, "pintle on loopback answers browsers only at localhost and loopback addresses, not at "+r.Host, http.StatusForbidden)
			return
		}
		if !isLocalHost(r.Host) && (advertised == "" || hostOf(r.Host) != advertised) {
			http.Error(w, "pintle on loopback answers only to localhost and loopback addresses, not to "+r.Host, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isCrossSite reports whether a browser sent the request for a page that isn't this machine's own.
func isCrossSite(h http.Header) bool {
	if origin := h.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || !isLoopback(u.Host)
	}
	return h.Get("Sec-Fetch-Site") == "cross-site" // browsers send no Origin when they GET an image or follow a link
}

// isBrowser reports whether a browser sent the request: it always says which language its user reads, and no AWS client does. Only DNS
// tells that a name of AWS's or LocalStack's isn't a web site here, and whoever runs the network that somebody works in answers DNS.
func isBrowser(h http.Header) bool { return h["Accept-Language"] != nil }

// localStack ends the names by which tflocal and similar tools call port 4566. Their owner resolves all of them to 127.0.0.1.
const localStack = ".localhost.localstack.cloud"

// isLocalHost reports whether a Host header names this machine: a loopback address, localhost, the address at which an agent
// serves its containers, or one of AWS's own hosts, by which clients call that are led here.
func isLocalHost(hostPort string) bool {
	host := hostOf(hostPort)
	return isLoopback(hostPort) || host == network.LinkLocal || strings.HasSuffix(host, ".amazonaws.com") ||
		strings.HasSuffix("."+host, localStack)
}

// isLoopback reports whether every resolver resolves the host to this machine.
func isLoopback(hostPort string) bool {
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
