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

// Lock takes the lock at a path, and writes this process's number there. The lock is let go when the file is closed, or
// the process ends, however it does; processes that it starts do not have it.
func Lock(path string) (*os.File, error) {
	f, err := Reserve(path)
	if err != nil {
		return nil, err
	}
	return f, Sign(f)
}

// Reserve takes the lock at a path without a number: for a process that gets the file when it is started, and calls Inherit,
// so that there is no moment at which it runs without the lock, or for one that is not ready yet.
func Reserve(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for range 20 { // whoever asks for the holder has the lock for a moment
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

// Inherit is the lock that whoever started this process has reserved for it, as the file descriptor that it got.
func Inherit(fd int) *os.File {
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "lock")
}

// Sign writes this process's number into a lock that it has. It closes one that cannot be written.
func Sign(f *os.File) error {
	if _, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return errors.Join(err, f.Close())
	}
	return nil
}

// Holder is the process that holds the lock at a path; 0 where none does, or none has come to write its number yet.
func Holder(path string) (pid int, locked bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, false
	}
	defer f.Close() //nolint:errcheck // nothing was written
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return 0, false // closing it lets it go
	}
	b, _ := io.ReadAll(f) //nolint:errcheck // then there is no number
	pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	return pid, true
}
