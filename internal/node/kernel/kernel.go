// Package kernel wraps the calls of the kernel that images and networks both need with care.
package kernel

import (
	"errors"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

// OnThread calls do on an operating system thread of its own, whose namespaces and working directory it
// may change.
func OnThread(do func() error) error {
	done := make(chan error)
	go func() {
		goruntime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		done <- do()
	}()
	return <-done
}

// Unmount takes a mount away, also while it is in use. One that is not there is no error.
func Unmount(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
