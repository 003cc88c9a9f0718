package network

import (
	"context"
	"errors"
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

// LinkLocal is where containers find their task metadata and credentials on port 80, as on AWS. The address exists only inside their
// network namespaces. The agent listens there on the two ports that ECS reserves for its agent. So nobody outside reaches it, every agent
// on a machine serves its own containers, and a container can still listen on port 80.
const LinkLocal = "169.254.170.2"

// The ports that the agent listens on inside a network namespace.
const (
	MetadataPort = 51679
	APIPort      = 51678 // forwards to a control plane on the machine's loopback
	NamesPort    = 51680 // answers names; ECS keeps this port, too, from tasks
	AWSPort      = 51681 // stands in for AWS's hosts
)

// Redirect redirects the ports of LinkLocal that containers know, and that of InstanceMetadata if it's served there, to those that the agent
// listens on, so that a container can still listen on all of them itself. It comes before whatever else the agent does in a network namespace,
// and does all at once: where the kernel has rules for addresses it remembers of each packet what they said of it, so one that was sent earlier
// than its own rule would never be redirected, however often it's sent again.
func Redirect(netnsPath string, instance bool) error {
	address := netip.MustParseAddr(LinkLocal)
	all := []redirection{
		{address, 80, MetadataPort, []byte{unix.IPPROTO_TCP}},
		{address, 53, NamesPort, []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP}},
		{address, 443, AWSPort, []byte{unix.IPPROTO_TCP}},
	}
	if instance {
		all = append(all, redirection{netip.MustParseAddr(InstanceMetadata), 80, MetadataPort, []byte{unix.IPPROTO_TCP}})
	}
	return within(netnsPath, func(ns netns.NsHandle, _ *netlink.Handle, _ netlink.Link) error {
		return redirectFirst(int(ns), "pintle", all...)
	})
}

// Listen opens both ports in a network namespace. The address comes last: its packets that were held back until then find everything there.
func Listen(netnsPath string) (metadata, api net.Listener, err error) {
	address := netip.MustParseAddr(LinkLocal)
	err = within(netnsPath, func(ns netns.NsHandle, h *netlink.Handle, lo netlink.Link) error {
		if err := h.LinkSetUp(lo); err != nil {
			return err
		}
		if metadata, api, err = listenIn(ns); err != nil {
			return err
		}
		if err := h.AddrReplace(lo, &netlink.Addr{IPNet: netlink.NewIPNet(address.AsSlice())}); err != nil {
			return errors.Join(err, metadata.Close(), api.Close())
		}
		return nil
	})
	return metadata, api, err
}

// listenIn opens both ports.
func listenIn(ns netns.NsHandle) (metadata, api net.Listener, err error) {
	err = kernel.OnThread(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		if metadata, err = listen(LinkLocal, MetadataPort); err != nil {
			return err
		}
		metadata = netutil.LimitListener(metadata, maxOpen)
		if api, err = listen(LinkLocal, APIPort); err != nil {
			metadata.Close()
		}
		return err
	})
	return metadata, api, err
}

// maxOpen is how many connections the processes of one namespace may have open at each port. All containers share the agent's file
// descriptors.
const maxOpen = 64

// listen opens a port that only the namespace's own processes reach. It binds to the loopback device, because Linux answers for a
// loopback address on every other device too. The address need not be there yet.
func listen(address string, port int) (net.Listener, error) {
	return onLoopback.Listen(context.Background(), "tcp4", net.JoinHostPort(address, strconv.Itoa(port)))
}

// onLoopback binds to the loopback device, and to addresses that aren't there yet.
var onLoopback = net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
	controlErr := raw.Control(func(fd uintptr) {
		err = errors.Join(unix.BindToDevice(int(fd), "lo"), unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1))
	})
	return errors.Join(controlErr, err)
}}

// ListenNames opens the port for names in a network namespace. It's to be called before Listen, which makes the address reachable.
func ListenNames(netnsPath string) (udp net.PacketConn, tcp net.Listener, err error) {
	err = within(netnsPath, func(ns netns.NsHandle, _ *netlink.Handle, _ netlink.Link) error {
		err := kernel.OnThread(func() (err error) {
			if err := netns.Set(ns); err != nil {
				return err
			}
			if udp, err = onLoopback.ListenPacket(context.Background(), "udp4", net.JoinHostPort(LinkLocal, strconv.Itoa(NamesPort))); err != nil {
				return err
			}
			if tcp, err = listen(LinkLocal, NamesPort); err != nil {
				udp.Close()
			}
			return err
		})
		if err != nil {
			return err
		}
		tcp = netutil.LimitListener(tcp, maxOpen)
		return nil
	})
	return udp, tcp, err
}

// ListenAWS opens the port for AWS's hosts in a network namespace. It's to be called before Listen, as ListenNames is.
func ListenAWS(netnsPath string) (l net.Listener, err error) {
	err = within(netnsPath, func(ns netns.NsHandle, _ *netlink.Handle, _ netlink.Link) error {
		return kernel.OnThread(func() (err error) {
			if err := netns.Set(ns); err != nil {
				return err
			}
			l, err = listen(LinkLocal, AWSPort)
			return err
		})
	})
	return l, err
}
