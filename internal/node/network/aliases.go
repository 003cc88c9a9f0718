package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/kernel"
)

// ListenAliases opens a socket in a network namespace for each alias, an address of the loopback device with a port, and one for each port
// at all addresses, in this order. An alias's socket has another port, to which the alias's is redirected: so a container may listen on that
// one itself. Earlier redirections end.
func ListenAliases(netnsPath string, aliases []netip.AddrPort, ports []uint16) (sockets []*os.File, err error) {
	err = within(netnsPath, func(ns netns.NsHandle, h *netlink.Handle, lo netlink.Link) error {
		if err := h.LinkSetUp(lo); err != nil {
			return err
		}
		var redirections []redirection
		err := kernel.OnThread(func() error {
			if err := netns.Set(ns); err != nil {
				return err
			}
			for _, a := range aliases {
				l, err := listen(a.Addr().String(), 0)
				if err != nil {
					return err
				}
				to := uint16(l.Addr().(*net.TCPAddr).Port)
				redirections = append(redirections, redirection{a.Addr(), a.Port(), to, []byte{unix.IPPROTO_TCP}})
				if sockets, err = appendFile(sockets, l); err != nil {
					return err
				}
			}
			for _, port := range ports {
				l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("", strconv.Itoa(int(port))))
				if err != nil {
					return err
				}
				if sockets, err = appendFile(sockets, l); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return redirect(int(ns), "pintle-connect", redirections...)
	})
	if err != nil {
		for _, f := range sockets {
			f.Close()
		}
		return nil, err
	}
	return sockets, nil
}

// appendFile appends a listener's socket, which outlives the listener.
func appendFile(sockets []*os.File, l net.Listener) ([]*os.File, error) {
	f, err := l.(*net.TCPListener).File()
	return append(sockets, f), errors.Join(err, l.Close())
}

// StartIn starts a process in a network namespace.
func StartIn(netnsPath string, cmd *exec.Cmd) error {
	return within(netnsPath, func(ns netns.NsHandle, _ *netlink.Handle, _ netlink.Link) error {
		return kernel.OnThread(func() error {
			if err := netns.Set(ns); err != nil {
				return err
			}
			return cmd.Start()
		})
	})
}
