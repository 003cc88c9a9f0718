package gpu

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/acs"
)

// Claim makes devices this process's own, until it ends: two agents that see the same ones would each give them out. What is
// claimed is an abstract socket's name, which needs no file, and is free again however the process ends. Agents in
// network namespaces of their own do not see each other's.
func Claim(devices []acs.GPUDevice) error {
	for _, d := range devices {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@pintle-gpu/" + d.ID})
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("GPU %s is another agent's on this machine already", d.ID)
		}
		if err != nil {
			return errors.Join(err, unix.Close(fd))
		}
	}
	return nil
}
