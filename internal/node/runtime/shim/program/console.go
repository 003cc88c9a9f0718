package program

import (
	"errors"
	"os"
	"strconv"
	"syscall"
)

// console is the socket over which runc hands over a container's terminal.
type console struct{ fd int }

// openConsole listens at a path below a directory. Paths of sockets are limited in length, so the directory goes by its descriptor.
func openConsole(dir, name string) (*console, error) {
	at, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(at)          //nolint:errcheck // nothing was written
	syscall.Unlink(dir + "/" + name) //nolint:errcheck // an earlier attempt may have left it
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(at) + "/" + name})
	if err == nil {
		err = syscall.Listen(fd, 1)
	}
	if err != nil {
		syscall.Close(fd) //nolint:errcheck // it was not used
		return nil, os.NewSyscallError("listen for the terminal", err)
	}
	return &console{fd}, nil
}

// receive returns the terminal that runc has sent.
func (c *console) receive() (terminal int, err error) {
	conn, _, err := syscall.Accept4(c.fd, syscall.SOCK_CLOEXEC)
	if err != nil {
		return 0, os.NewSyscallError("accept the terminal", err)
	}
	defer syscall.Close(conn) //nolint:errcheck // nothing was written
	text, rights := make([]byte, 4096), make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := syscall.Recvmsg(conn, text, rights, syscall.MSG_CMSG_CLOEXEC)
	if err != nil {
		return 0, os.NewSyscallError("receive the terminal", err)
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return 0, errors.New("runc sent no terminal")
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return 0, errors.New("runc sent no terminal")
	}
	return fds[0], nil
}

func (c *console) close() { syscall.Close(c.fd) } //nolint:errcheck // a socket that only listened
