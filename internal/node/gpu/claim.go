package gpu

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/acs"
)

// Claim reserves devices for this process until it ends, because two agents that see the same devices would both hand them out. It binds
// the name of an abstract socket for each, which needs no file and is freed however the process ends. Agents in different network
// namespaces don't see each other's claims.
func Claim(devices []acs.GPUDevice) error {
	for _, d := range devices {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@pintle-gpu/" + d.ID})
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("GPU %s already belongs to another agent on this machine", d.ID)
		}
		if err != nil {
			return errors.Join(err, unix.Close(fd))
		}
	}
	return nil
}
