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
	ended   chan struct{} // closed when it has ended
	how     error         // set before that
}

// Start starts a server and waits until it answers. Stop removes dir, which the server may use.
func Start(cmd *exec.Cmd, dir string, answers func() error) (*Process, error) {
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Cmd: cmd, dir: dir, ended: make(chan struct{})}
	go func() {
		p.how = cmd.Wait()
		close(p.ended)
	}()
	for {
		err := answers()
		if p.hasEnded() { // what answers is another server, which was faster to take the address
			return nil, fmt.Errorf("the server has ended: %w", errors.Join(p.how, err))
		}
		if err == nil {
			p.Startup = time.Since(began)
			return p, nil
		}
		if time.Since(began) > 30*time.Second {
			p.Stop()
			return nil, fmt.Errorf("it does not answer: %w", err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (p *Process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Explain adds to an error that the server has ended, if it has: its callers are told of nothing but refused connections then.
func (p *Process) Explain(err error) error {
	if err == nil || !p.hasEnded() {
		return err
	}
	return fmt.Errorf("%w; the server has ended: %v", err, p.Cmd.ProcessState)
}

// Stop ends the server and removes its directory.
func (p *Process) Stop() {
	p.Cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	<-p.ended
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
