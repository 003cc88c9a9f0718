package terminal

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/runtime"
)

// SizeOf returns the size of a terminal of this process, and whether the file is one.
func SizeOf(f *os.File) (size runtime.Size, isTerminal bool) {
	w, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return size, false
	}
	return runtime.Size{Cols: w.Col, Rows: w.Row}, true
}

// Raw has a terminal of this process pass on all that is typed, until restore is called.
func Raw(f *os.File) (restore func(), err error) {
	old, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	return func() { unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, old) }, makeRaw(f) //nolint:errcheck // the terminal may be gone
}
