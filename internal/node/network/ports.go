package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// portsDir has a link for each port that Pintle's agents have published on this machine, named after the
// port, that leads to the network namespace that has it. Several agents may share a machine, and rules
// hold no socket that would keep a port from being given out twice.
const portsDir = "/run/pintle/ports"

func (p Port) link() string {
	return filepath.Join(portsDir, fmt.Sprintf("%s-%d", p.Protocol, p.HostPort))
}

// Free reports whether nobody on the machine has a port: no network namespace, and no program.
func (p Port) Free() bool {
	owner, err := os.Readlink(p.link())
	return (err != nil || !mounted(owner)) && unused(p) == nil
}

// reserve takes ports for a network namespace, or none of them. Its own it may take again.
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
	if err := unused(p); err != nil {
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
	case mounted(owner):
		return fmt.Errorf("port %d/%s of this machine is taken by container %s", p.HostPort, p.Protocol, ID(owner))
	}
	if err := os.Remove(p.link()); err != nil { // whoever had it is gone
		return err
	}
	return os.Symlink(netns, p.link())
}

// unused refuses a port that a program of the machine has: a rule would silently take it over.
func unused(p Port) error {
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

// release gives back the ports that a network namespace has.
func release(netns string, ports []Port) (err error) {
	for _, p := range ports {
		if owner, readErr := os.Readlink(p.link()); readErr == nil && owner == netns {
			err = errors.Join(err, os.Remove(p.link()))
		}
	}
	return err
}
