package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/runtime"
)

// screen is what a terminal has shown so far.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// shows waits until the screen has the text.
func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	for range 1000 {
		if strings.Contains(s.String(), text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the screen has %q, not %q", s.String(), text)
}

// run runs a shell command at a terminal. The result tells how it ended.
func run(t *testing.T, ctx context.Context, command string) (typed io.Writer, sizes chan<- runtime.Size, shown *screen, result <-chan error) {
	t.Helper()
	in, keys := io.Pipe()
	t.Cleanup(func() { keys.Close() })
	resize := make(chan runtime.Size)
	shown = &screen{}
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, exec.Command("sh", "-c", command), runtime.Exec{Stdin: in, Stdout: shown, Resize: resize}, false)
	}()
	return keys, resize, shown, done
}

// TestTerminal: a program has a terminal of the size that it's given, ctrl-C interrupts what runs in the foreground, and the exit code counts.
func TestTerminal(t *testing.T) {
	keys, sizes, shown, done := run(t, t.Context(), `trap : INT; tty >/dev/null && echo ready; read x; stty size; sleep 60; exit 7`)
	shown.shows(t, "ready")
	sizes <- runtime.Size{Cols: 99, Rows: 33}
	io.WriteString(keys, "\n") //nolint:errcheck // a test
	shown.shows(t, "33 99")
	io.WriteString(keys, "\x03") //nolint:errcheck // a test
	if err := <-done; exitCode(err) != 7 {
		t.Errorf("it ended with %v", err)
	}
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return 0
}

// TestAllOutput: nothing of what a program writes before it ends is lost.
func TestAllOutput(t *testing.T) {
	_, _, shown, done := run(t, t.Context(), `stty -opost; head -c 3000000 /dev/zero`)
	if err := <-done; err != nil || len(shown.String()) != 3000000 {
		t.Errorf("%d bytes, %v", len(shown.String()), err)
	}
}

// TestLeftBehind: what a program leaves running doesn't keep its session open.
func TestLeftBehind(t *testing.T) {
	_, _, shown, done := run(t, t.Context(), `trap '' HUP; sleep 60 & echo $!; exit 0`)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for what was left behind")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(shown.String()))
	if err != nil {
		t.Fatalf("the program wrote %q", shown)
	}
	syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it ends by itself, too
}

// TestHangUp: a program whose session is given up gets SIGHUP, and is killed if it takes no notice.
func TestHangUp(t *testing.T) {
	for _, command := range []string{`echo ready; trap 'exit 3' HUP; while :; do sleep 0.1; done`, `trap '' HUP; echo ready; sleep 60`} {
		ctx, stop := context.WithCancel(t.Context())
		_, _, shown, done := run(t, ctx, command)
		shown.shows(t, "ready")
		stop()
		if err := <-done; err == nil {
			t.Errorf("%s: it ended by itself", command)
		}
	}
}
