package network

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/kernel"
)

// LinkLocal is where containers find their task metadata and credentials, as on AWS: at its port 80.
// The address exists inside their own network namespaces only, where the agent listens itself, on the
// two ports that ECS keeps for its agent; so nothing of it can be reached from elsewhere, every agent
// of a machine serves its own containers, and a container can still listen on port 80.
const LinkLocal = "169.254.170.2"

// The ports that the agent listens on inside a network namespace.
const (
	MetadataPort = 51679
	APIPort      = 51678 // leads to a control plane that listens on the machine's loopback
)

// Listen opens the two ports in a network namespace, and leads port 80 to the first.
func Listen(netnsPath string) (metadata, api net.Listener, err error) {
	address := netip.MustParseAddr(LinkLocal)
	err = within(netnsPath, func(ns netns.NsHandle, h *netlink.Handle, lo netlink.Link) error {
		if err := h.LinkSetUp(lo); err != nil {
			return err
		}
		if err := h.AddrReplace(lo, &netlink.Addr{IPNet: netlink.NewIPNet(address.AsSlice())}); err != nil {
			return err
		}
		if err := redirect(int(ns), address, 80, MetadataPort); err != nil {
			return err
		}
		return kernel.OnThread(func() error {
			if err := netns.Set(ns); err != nil {
				return err
			}
			if metadata, err = listen(MetadataPort); err != nil {
				return err
			}
			metadata = netutil.LimitListener(metadata, maxOpen)
			if api, err = listen(APIPort); err != nil {
				metadata.Close()
			}
			return err
		})
	})
	return metadata, api, err
}

// maxOpen is the most connections that one namespace's processes have open at each port: all containers
// share the agent's descriptors.
const maxOpen = 64

// listen opens a port for the namespace's own processes alone: bound to the loopback device, since Linux
// answers for an address of it on every other device too.
func listen(port int) (net.Listener, error) {
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		if controlErr := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "lo") }); controlErr != nil {
			return controlErr
		}
		return err
	}}
	return c.Listen(context.Background(), "tcp4", net.JoinHostPort(LinkLocal, strconv.Itoa(port)))
}
