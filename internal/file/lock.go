package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("another process holds it")

// Lock takes the lock at a path and writes this process's number into it. Closing the file releases the lock, and so does any end
// of the process. Child processes don't inherit it.
func Lock(path string) (*os.File, error) {
	f, err := Reserve(path)
	if err != nil {
		return nil, err
	}
	if err := Sign(f); err != nil && !errors.Is(err, syscall.ENOSPC) { // on a full disk nobody learns the number
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Reserve takes the lock at a path without writing a number. Use it to hand the lock to a child, which calls Inherit and so never runs
// without it, or while this process isn't ready yet.
func Reserve(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for range 20 { // Holder takes the lock for a moment
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, ErrLocked), f.Close())
	}
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Inherit returns the lock that the parent process reserved for this one and passed on as a file descriptor.
func Inherit(fd int) *os.File {
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "lock")
}

// Sign writes this process's number into a lock that it holds.
func Sign(f *os.File) error {
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

// Holder returns the process that holds the lock at a path. pid is 0 if nobody holds it, or if the holder hasn't written its number yet.
func Holder(path string) (pid int, locked bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0, false // closing the file releases the lock
	}
	b, _ := io.ReadAll(f) //nolint:errcheck // then there is no number
	pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	return pid, true
}
