package network

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// portsDir has a link for each port that Pintle's agents have published on this machine, named after the
// port, that leads to who has it. Several agents may share a machine, and rules hold no socket that
// would keep a port from being given out twice.
const portsDir = "/run/pintle/ports"

func (p Port) link() string {
	return filepath.Join(portsDir, fmt.Sprintf("%s-%d", p.Protocol, p.HostPort))
}

// reserve takes ports for a container, or none of them. Its own it may take again.
func reserve(id string, ports []Port) error {
	if err := os.MkdirAll(portsDir, 0o700); err != nil {
		return err
	}
	for i, p := range ports {
		err := os.Symlink(id, p.link())
		if errors.Is(err, os.ErrExist) {
			err = takenBy(id, p)
		}
		if err != nil {
			return errors.Join(err, release(id, ports[:i]))
		}
	}
	return nil
}

func takenBy(id string, p Port) error {
	owner, err := os.Readlink(p.link())
	if err != nil || owner == id {
		return err
	}
	return fmt.Errorf("port %d/%s of this machine is taken by container %s", p.HostPort, p.Protocol, owner)
}

// release gives back the ports that a container has.
func release(id string, ports []Port) (err error) {
	for _, p := range ports {
		if owner, readErr := os.Readlink(p.link()); readErr == nil && owner == id {
			err = errors.Join(err, os.Remove(p.link()))
		}
	}
	return err
}
