package plane

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// lines is a log that a test reads while others write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newBalancerScript returns the balancer of a control plane that isn't there, whose process is a shell's script.
func newBalancerScript(t *testing.T, script string) (*localBalancer, *lines) {
	dir, said := t.TempDir(), &lines{}
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	p := &Plane{options: Options{Data: dir, Advertise: "http://127.0.0.1:1"}, log: slog.New(slog.NewTextHandler(said, nil))}
	p.balancer = newLocalBalancer(p)
	p.balancer.program = program
	return p.balancer, said
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within two minutes: ", what)
		}
	}
}

// runsOn is a process that signs its lock, as a balancer does.
const runsOn = "printf $$ >&3\nexec sleep 300"

func (b *localBalancer) pid() int {
	pid, _ := file.Holder(b.lock())
	return pid
}

// TestBalancerOfOtherSettingsIsReplaced: a process that was started with other keys, flags or another authority ends, and another begins.
func TestBalancerOfOtherSettingsIsReplaced(t *testing.T) {
	b, said := newBalancerScript(t, runsOn)
	defer b.stop(t.Context()) //nolint:errcheck // it's asked for below
	authority := filepath.Join(t.TempDir(), "ca.pem")
	trust := func(text string) func() {
		return func() {
			b.plane.options.Balancer.Authority = authority
			if err := os.WriteFile(authority, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	another := func(than int) func() bool {
		return func() bool {
			b.step()
			pid := b.pid() // read once: the one before may end at any moment
			return pid != 0 && pid != than
		}
	}
	eventually(t, "a process", another(0))
	for what, change := range map[string]func(){
		"keys":      func() { b.plane.options.SecretAccessKey = "another" },
		"ports":     func() { b.plane.options.Balancer.Arguments = []string{"--ports", "31000-31001"} },
		"endpoint":  func() { b.plane.options.Advertise = "http://127.0.0.1:2" },
		"authority": func() { trust("one")() },
	} {
		before := b.pid()
		b.step()
		if b.pid() != before {
			t.Errorf("%s: it's replaced before they change", what)
		}
		change()
		eventually(t, "a process of other "+what, another(before))
	}
	before := b.pid()
	trust("another")()
	eventually(t, "a process with the same file's new certificate", another(before))
	if b.failures != 0 || said.String() != "" {
		t.Errorf("%d failures: %s", b.failures, said)
	}
}

// TestBalancerThatEndsAtOnce is started again later each time, and the log has its last words.
func TestBalancerThatEndsAtOnce(t *testing.T) {
	b, said := newBalancerScript(t, "echo no such flag >&2; exit 3")
	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		var pause time.Duration
		eventually(t, "a failure", func() bool { pause = b.step(); return pause > time.Second })
		if pause != want {
			t.Errorf("after %v, not %v", pause, want)
		}
	}
	if n := strings.Count(said.String(), "no such flag"); n != 3 || !strings.Contains(said.String(), "exit status 3") {
		t.Errorf("%d times: %s", n, said)
	}
}

// TestStoppedBalancerStaysStopped, whatever the loop still does.
func TestStoppedBalancerStaysStopped(t *testing.T) {
	b, said := newBalancerScript(t, runsOn)
	eventually(t, "a process", func() bool { b.step(); return b.pid() != 0 })
	if pid := b.plane.BalancerProcess(); pid != b.pid() {
		t.Errorf("process %d, not %d", pid, b.pid())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := b.plane.StopBalancer(ctx); err != nil {
		t.Fatal(err)
	}
	b.step()
	if _, runs := file.Holder(b.lock()); runs || said.String() != "" {
		t.Errorf("it runs: %v; %s", runs, said)
	}
}
