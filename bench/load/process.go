package load

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running server.
type Process struct {
	Cmd     *exec.Cmd
	Startup time.Duration // until the first answer
	dir     string
}

// Start starts a server and waits until it answers. Stop removes dir, which the server may use.
func Start(cmd *exec.Cmd, dir string, answers func() error) (*Process, error) {
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for answers() != nil {
		if time.Since(began) > 30*time.Second {
			return nil, errors.New("it does not answer")
		}
		time.Sleep(2 * time.Millisecond)
	}
	return &Process{cmd, time.Since(began), dir}, nil
}

// Stop ends the server and removes its directory.
func (p *Process) Stop() {
	p.Cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	p.Cmd.Wait()                          //nolint:errcheck // it was told to
	os.RemoveAll(p.dir)
}

// RSS returns the server's resident memory in MB.
func (p *Process) RSS() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseFloat(strings.Fields(string(b))[1], 64)
	return pages * float64(os.Getpagesize()) / 1e6
}

// CPU returns the processor time that the server has used.
func (p *Process) CPU() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ") // after the program's name
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * (time.Second / 100)
}

// FreeAddress returns an unused loopback address.
func FreeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:4599"
	}
	defer l.Close()
	return l.Addr().String()
}
