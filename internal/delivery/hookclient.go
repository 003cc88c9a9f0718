package delivery

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/awsname"
)

// ErrForbidden is wrapped by errors of destinations that the operator hasn't allowed. Trying again doesn't help.
var ErrForbidden = errors.New("the destination is not allowed")

// HookClient returns a client for web hooks that a stranger's URL can't turn against this machine. It follows no redirect, uses no proxy,
// and connects neither to loopback and link-local addresses nor to the machine's own, except those in allowed.
func HookClient(timeout time.Duration, allowed []netip.Prefix) *http.Client {
	dialer := &net.Dialer{
		Timeout: timeout,
		// Control sees the address that is connected to, so a name can't resolve to something else after the check.
		Control: func(_, address string, _ syscall.RawConn) error { return checkHookAddress(address, allowed) },
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.MaxResponseHeaderBytes = 64 << 10 // many are told at the same time, each by a stranger's server
	transport.DialContext = dialer.DialContext
	return &http.Client{
		Timeout:       timeout,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func checkHookAddress(address string, allowed []netip.Prefix) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := to.Addr().Unmap().WithZone("")
	for _, prefix := range allowed {
		if prefix.Contains(ip) {
			return nil
		}
	}
	own, err := isOwn(ip)
	if err != nil {
		return err
	}
	if own || ip.IsLoopback() || awsname.IsMachineLocal(ip) || ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("%w: %s belongs to this machine or its link; allow it with --webhook-to %s", ErrForbidden, ip, ip)
	}
	return nil
}

// isOwn reports whether an address is one of this machine's.
func isOwn(ip netip.Addr) (bool, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Unmap() == ip {
			return true, nil
		}
	}
	return false, nil
}
