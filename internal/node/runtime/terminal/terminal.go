// Package terminal runs a program at a pseudo terminal of this machine, for runtimes that have no engine to make one.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/runtime"
)

const (
	// hangUp is how long a program may go on once its terminal is gone.
	hangUp = 2 * time.Second
	// leftover is how long to wait for more output of what a program that has ended left running at its terminal.
	leftover = 100 * time.Millisecond
	// maxRest is more than a terminal holds that nobody has read.
	maxRest = 1 << 20
)

// Run runs the program at a terminal of its own until it ends, with the streams and sizes of e. It gives the program up if ctx ends: the
// terminal hangs up, and a program that goes on is killed. With raw, the terminal passes all bytes on as they are: the program has another.
func Run(ctx context.Context, cmd *exec.Cmd, e runtime.Exec, raw bool) error {
	master, slave, err := open()
	if err != nil {
		return err
	}
	defer master.Close()
	if raw {
		err = makeRaw(slave)
	}
	if err == nil {
		err = setSize(master, e.Size)
	}
	if err == nil {
		err = start(cmd, slave)
	}
	slave.Close()
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	var serving sync.WaitGroup
	serving.Go(func() { resize(master, e.Resize, ended) })
	serving.Go(func() { hangUpWith(ctx, cmd, ended) })
	go io.Copy(master, e.Stdin) //nolint:errcheck // it ends with the caller's Stdin
	copied := make(chan error, 1)
	go func() { copied <- copyOutput(e.Stdout, master, ended) }()
	err = cmd.Wait()
	close(ended)
	serving.Wait()
	return errors.Join(err, drain(master, copied))
}

// open makes a pseudo terminal: what its user reads and writes, and what a program does. See pty(7).
func open() (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx") // it doesn't block, so it has deadlines
	var number uint32
	err = control(master, func(fd int) (err error) {
		if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
			number, err = unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		}
		return err
	})
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	return master, slave, nil
}

// control calls do with a file's descriptor. Unlike Fd, it leaves the file as it is.
func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(c.Control(func(fd uintptr) { err = do(int(fd)) }), err)
}

// start starts the program as the leader of a session whose terminal this is.
func start(cmd *exec.Cmd, slave *os.File) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	return cmd.Start()
}

// resize makes the terminal as large as its user's.
func resize(master *os.File, sizes <-chan runtime.Size, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case size := <-sizes:
			setSize(master, size) //nolint:errcheck // the program may have ended
		}
	}
}

func setSize(master *os.File, size runtime.Size) error {
	return control(master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: size.Cols, Row: size.Rows})
	})
}

// hangUpWith tells the program's session that its terminal is gone once ctx ends, and kills what goes on.
func hangUpWith(ctx context.Context, cmd *exec.Cmd, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP) //nolint:errcheck // it may have ended
	select {
	case <-ended:
	case <-time.After(hangUp):
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // as above
	}
}

// copyOutput copies what the terminal shows until nobody has it open any more, which Linux calls an input/output error. Once the program has
// ended, it copies what it wrote before: what it left running may keep the terminal open for ever, and write on.
func copyOutput(to io.Writer, master *os.File, ended <-chan struct{}) error {
	b := make([]byte, 32<<10)
	rest := maxRest
	late := false // the wait for more output was over once
	for rest > 0 {
		select {
		case <-ended:
			master.SetReadDeadline(time.Now().Add(leftover)) //nolint:errcheck // terminals have deadlines
		default:
		}
		n, err := master.Read(b)
		if _, err := to.Write(b[:n]); err != nil {
			return err
		}
		switch {
		case errors.Is(err, syscall.EIO), errors.Is(err, os.ErrDeadlineExceeded) && late:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded): // the first is drain's, which only wakes us
			late = true
		case err != nil:
			return err
		}
		if late {
			rest -= n
		}
	}
	return nil
}

// drain waits for the last output.
func drain(master *os.File, copied <-chan error) error {
	master.SetReadDeadline(time.Now()) //nolint:errcheck // terminals have deadlines
	return <-copied
}

// makeRaw switches off all that a terminal does with the bytes that pass.
func makeRaw(f *os.File) error {
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return err
	}
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	t.Cc[unix.VMIN] = 1
	t.Cc[unix.VTIME] = 0
	return unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
}
