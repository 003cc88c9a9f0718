// Package kernel wraps the calls of the kernel that several parts of a node need with care.
package kernel

import (
	"errors"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// OnThread calls do on its own operating system thread, so that do may change the thread's namespaces and working directory.
func OnThread(do func() error) error {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		done <- do()
	}()
	return <-done
}

// Unmount removes a mount, even while it's in use. A missing mount is no error.
func Unmount(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// IsMountPoint reports whether something is mounted at a path.
func IsMountPoint(path string) (bool, error) {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, 0, &s)
	return s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, err
}

// Claim reserves a name for this process until it ends, or until release. held says that somebody has the name. The name is that of
// an abstract socket, which needs no file and is freed however the process ends. Processes in different network namespaces don't see each
// other's claims.
func Claim(name string) (release func() error, held bool, err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, false, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		return nil, errors.Is(err, unix.EADDRINUSE), errors.Join(err, unix.Close(fd))
	}
	return func() error { return unix.Close(fd) }, false, nil
}
