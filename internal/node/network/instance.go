package network

import (
	"errors"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/kernel"
)

// InstanceMetadata is where containers find the instance metadata service, on port 80, as on EC2. Like LinkLocal it's inside their network
// namespaces, where it hides the machine's own service of that kind.
const InstanceMetadata = "169.254.169.254"

// ListenInstance opens InstanceMetadata in a network namespace where Redirect has redirected it. It takes MetadataPort there, which the agent
// has at LinkLocal too.
func ListenInstance(netnsPath string) (l net.Listener, err error) {
	address := netip.MustParseAddr(InstanceMetadata)
	err = within(netnsPath, func(ns netns.NsHandle, h *netlink.Handle, lo netlink.Link) error {
		err := kernel.OnThread(func() error {
			if err := netns.Set(ns); err != nil {
				return err
			}
			l, err = listen(InstanceMetadata, MetadataPort)
			return err
		})
		if err != nil {
			return err
		}
		if err := h.AddrReplace(lo, &netlink.Addr{IPNet: netlink.NewIPNet(address.AsSlice())}); err != nil {
			return errors.Join(err, l.Close())
		}
		l = netutil.LimitListener(l, maxOpen)
		return nil
	})
	return l, err
}

// BlockInstance makes InstanceMetadata unreachable from a network namespace, the machine's own service included.
func BlockInstance(netnsPath string) error {
	address := netip.MustParseAddr(InstanceMetadata)
	return within(netnsPath, func(_ netns.NsHandle, h *netlink.Handle, _ netlink.Link) error {
		return h.RouteReplace(&netlink.Route{Dst: netlink.NewIPNet(address.AsSlice()), Type: unix.RTN_BLACKHOLE})
	})
}
