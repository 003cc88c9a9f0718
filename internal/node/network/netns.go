package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/kernel"
)

// makeNetNS makes a network namespace and mounts it at path, so that it outlives this process.
func makeNetNS(path string) error {
	return kernel.OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return keepNetNS(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path)
	})
}

// keepNetNS mounts a network namespace at path.
func keepNetNS(from, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	return unix.Mount(from, path, "", unix.MS_BIND, "")
}

// isMounted reports whether a network namespace is mounted at path. After a reboot only the file is left.
func isMounted(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && s.Type == unix.NSFS_MAGIC
}

// within calls do with the loopback interface of a network namespace.
func within(path string, do func(ns netns.NsHandle, h *netlink.Handle, lo netlink.Link) error) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	own, err := netns.Get()
	if err != nil {
		return err
	}
	defer own.Close()
	if ns.Equal(own) { // the path's process may have ended, and its PID may be another's now
		return errors.New(path + " is the machine's own network")
	}
	h, err := netlink.NewHandleAt(ns, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return do(ns, h, lo)
}

// Subnets returns the networks that a namespace is connected to.
func Subnets(netnsPath string) (out []netip.Prefix, err error) {
	err = within(netnsPath, func(_ netns.NsHandle, h *netlink.Handle, lo netlink.Link) error {
		all, err := h.AddrList(nil, netlink.FAMILY_ALL)
		for _, a := range all {
			p, parseErr := netip.ParsePrefix(a.IPNet.String())
			if parseErr == nil && a.LinkIndex != lo.Attrs().Index {
				out = append(out, p.Masked())
			}
		}
		return err
	})
	return out, err
}

func loopbackUp(path string) error {
	return within(path, func(_ netns.NsHandle, h *netlink.Handle, lo netlink.Link) error { return h.LinkSetUp(lo) })
}
