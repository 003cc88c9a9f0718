// Package disk tells a disk that can't be written from other failures, and knows how much room it has. Stores mark their errors with
// ErrUnwritable, plane asks a Space before each change, and wire answers both with a 503. It keeps no data itself.
package disk

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrUnwritable marks an error of a store that can't write now, and goes on by itself once it can. What was refused may be tried again.
var ErrUnwritable = errors.New("the disk cannot be written")

// Unwritable marks an error with ErrUnwritable.
func Unwritable(err error) error {
	if err == nil || errors.Is(err, ErrUnwritable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnwritable, err)
}

// IsUnwritable reports whether an error was marked, or is the system's for a disk that can't be written.
func IsUnwritable(err error) bool {
	for _, e := range []error{ErrUnwritable, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EFBIG} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
