package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// TestMain also plays the agents of these tests. Each takes its time to start, and runs a task that outlives it unless
// it is told to end.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if err := agent(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// taskFile is where an agent of these tests records its task's process.
const taskFile = "tasks/pid"

func agent(args []string) error {
	terminated, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	flags := map[string]string{}
	for i := 0; i+1 < len(args); i++ {
		flags[args[i]] = args[i+1]
	}
	dir := flags["--data"]
	time.Sleep(100 * time.Millisecond)
	fd, err := strconv.Atoi(flags["--lock-fd"])
	if err != nil {
		return err
	}
	lock := file.Inherit(fd)
	if err := file.Sign(lock); err != nil {
		return err
	}
	defer runtime.KeepAlive(lock) // until the process has ended, which takes the race detector a second
	pid, err := task(filepath.Join(dir, taskFile))
	if err != nil {
		return err
	}
	<-terminated.Done()
	time.Sleep(100 * time.Millisecond)
	syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
	for command := []byte{0}; len(command) > 0; time.Sleep(10 * time.Millisecond) {
		command, _ = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // empty if it has ended
	}
	return os.WriteFile(filepath.Join(dir, OffFile), nil, 0o600)
}

func task(note string) (pid int, err error) {
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		return 0, err
	}
	if b, err := os.ReadFile(note); err == nil {
		_, err = fmt.Sscan(string(b), &pid)
		return pid, err
	}
	cmd := exec.Command("sh", "-c", "while :; do sleep 1; done", note)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, file.Replace(note, fmt.Append(nil, cmd.Process.Pid), false)
}

// processes returns the processes with a text in their command lines.
func processes(t *testing.T, text string) (pids []string) {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), text) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func newLocal(t *testing.T) (*Local, Machine) {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, pid := range processes(t, dir) {
			var n int
			fmt.Sscan(pid, &n)               //nolint:errcheck // it is a directory of /proc
			syscall.Kill(n, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
	})
	return NewLocal(LocalOptions{
			Program: os.Args[0],
			Dir:     dir,
			Most:    9,
			Log:     slog.New(slog.DiscardHandler),
		}), Machine{
			InstanceID:   "i-1",
			InstanceType: "c5.large",
		}
}

// TestTerminateWhileStarting ends an instance at every moment of its agent's restart. Nothing must be left of it.
func TestTerminateWhileStarting(t *testing.T) {
	for at := time.Duration(0); at <= 160*time.Millisecond; at += 20 * time.Millisecond {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			l, m := newLocal(t)
			if err := os.MkdirAll(l.dir(m.InstanceID), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := file.WriteJSON(filepath.Join(l.dir(m.InstanceID), machineFile), m, false); err != nil {
				t.Fatal(err)
			}
			if _, err := l.List(t.Context()); err != nil { // which starts the agent
				t.Fatal(err)
			}
			time.Sleep(at)
			if err := l.Terminate(t.Context(), m.InstanceID); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // for an agent that is still starting
			if left := processes(t, l.opts.Dir); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := os.Stat(l.dir(m.InstanceID)); err == nil {
				t.Error("its directory is left")
			}
		})
	}
}

// TestTerminateKilled ends an instance whose agent is killed, before and during that. Its task must not be left
// running.
func TestTerminateKilled(t *testing.T) {
	for at := -50 * time.Millisecond; at <= 150*time.Millisecond; at += 50 * time.Millisecond {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			l, m := newLocal(t)
			if err := l.Launch(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			note := filepath.Join(l.dir(m.InstanceID), taskFile)
			noted := func() bool { // an agent that is killed before it has recorded its task doesn't count
				b, _ := os.ReadFile(note)
				return slices.Contains(processes(t, note), strings.TrimSpace(string(b)))
			}
			if !until(t.Context(), time.Minute, noted) {
				t.Fatal("the task was not started")
			}
			kill := func() {
				if pid, _ := file.Holder(l.lock(m.InstanceID)); pid != 0 {
					syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
				}
			}
			killed := make(chan struct{})
			time.AfterFunc(at+50*time.Millisecond, func() { kill(); close(killed) })
			time.Sleep(50 * time.Millisecond)
			if err := l.Terminate(t.Context(), m.InstanceID); err != nil {
				t.Fatal(err)
			}
			<-killed
			if left := processes(t, l.opts.Dir); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestStopped checks that a stopped fleet starts no more agents, which nobody would stop. Their instances stay pending.
func TestStopped(t *testing.T) {
	l, m := newLocal(t)
	if err := l.Launch(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := l.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	m.InstanceID = "i-2"
	if err := l.Launch(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("launched: %v", err)
	}
	if ids, err := l.List(t.Context()); err != nil || strings.Join(ids, " ") != "i-1" {
		t.Errorf("the instances are %v, %v", ids, err)
	}
	if left := processes(t, l.opts.Dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// script writes a shell script and returns its path.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLaunchSaysWhy checks that a launch fails if the agent ends at once, and that the last line of its log is the
// reason.
func TestLaunchSaysWhy(t *testing.T) {
	l := NewLocal(LocalOptions{Program: script(t, "echo starting >&2; echo 'pintle: no runtime' >&2; exit 1\n"), Dir: t.TempDir(), Most: 1})
	if err := l.Launch(t.Context(), Machine{InstanceID: "i-1"}); err == nil || !strings.HasSuffix(err.Error(), "pintle: no runtime") {
		t.Errorf("got %v", err)
	}
	if err := l.Terminate(t.Context(), "i-1"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(l.opts.Dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
