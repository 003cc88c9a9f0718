package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// portsDir has a symbolic link for each port that Pintle's agents have published on this machine. The link is named after the port and
// points to the network namespace that has it. We need the links because several agents may share a machine, and nftables rules hold no
// socket that would keep a port from being published twice.
const portsDir = "/run/pintle/ports"

func (p Port) link() string {
	return filepath.Join(portsDir, fmt.Sprintf("%s-%d", p.Protocol, p.HostPort))
}

// Free reports whether neither a network namespace nor a program on the machine uses the port.
func (p Port) Free() bool {
	owner, err := os.Readlink(p.link())
	return (err != nil || !isMounted(owner)) && checkUnused(p) == nil
}

// reserve reserves all the ports for a network namespace, or none. Reserving a port again for the same namespace is no error.
func reserve(netns string, ports []Port) error {
	if err := os.MkdirAll(portsDir, 0o700); err != nil {
		return err
	}
	for i, p := range ports {
		if err := reservePort(netns, p); err != nil {
			return errors.Join(err, release(netns, ports[:i]))
		}
	}
	return nil
}

func reservePort(netns string, p Port) error {
	if err := checkUnused(p); err != nil {
		return err
	}
	err := os.Symlink(netns, p.link())
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	owner, err := os.Readlink(p.link())
	switch {
	case err != nil:
		return err
	case owner == netns:
		return nil
	case isMounted(owner):
		return fmt.Errorf("port %d/%s of this machine is taken by container %s", p.HostPort, p.Protocol, ID(owner))
	}
	if err := os.Remove(p.link()); err != nil { // the owner is gone
		return err
	}
	return os.Symlink(netns, p.link())
}

// checkUnused returns an error if a program on the machine listens on the port, since a rule would silently take it over.
func checkUnused(p Port) error {
	address := fmt.Sprintf(":%d", p.HostPort)
	if p.Protocol == "udp" {
		l, err := net.ListenPacket("udp", address)
		if err != nil {
			return err
		}
		return l.Close()
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// release releases those of the ports that the network namespace has reserved.
func release(netns string, ports []Port) (err error) {
	for _, p := range ports {
		if owner, readErr := os.Readlink(p.link()); readErr == nil && owner == netns {
			err = errors.Join(err, os.Remove(p.link()))
		}
	}
	return err
}
