// Package kernel wraps the calls of the kernel that images and networks both need with care.
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
