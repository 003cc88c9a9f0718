package connect

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// taker is a log driver that keeps what it's given.
type taker struct {
	mu    sync.Mutex
	lines []string // with whose they are
}

func (*taker) Prepare(context.Context, *engine.LogSource) (string, error) { return "", nil }

func (k *taker) Ship(ctx context.Context, c *engine.LogSource, cursor string, saved func(string)) error {
	lines, read := c.Follow(ctx, cursor, 1)
	for l := range lines {
		k.mu.Lock()
		k.lines = append(k.lines, c.Container+" "+l.Text)
		k.mu.Unlock()
		saved(l.Cursor)
	}
	return <-read
}

// taken returns how many lines have a text in them.
func (k *taker) taken(text string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.lines {
		if strings.Contains(l, text) {
			n++
		}
	}
	return n
}

// TestLog: what a proxy says goes to its log driver, once, whichever agent there is, and also when the process was killed.
func TestLog(t *testing.T) {
	w := newWorld(t)
	w.task.ServiceConnect.Log = &acs.LogConfig{Type: "taker"}
	w.task.ServiceConnect.Container = "ecs-service-connect-1"
	driver := &taker{}
	proxies := func() *Proxies {
		p := w.proxies()
		p.opts.Shippers = map[string]engine.Shipper{"taker": driver}
		return p
	}
	const listening = `ecs-service-connect-1 time=`
	_, leave := w.attend(proxies())
	w.until("the listeners are told of", func() bool { return driver.taken(listening) == 2 })
	if driver.taken("msg=listening container=main name=www:80 protocol=http") != 1 {
		t.Errorf("%q", driver.lines)
	}
	leave()
	w.get(alias) // nobody is there
	end, _ := w.attend(proxies())
	w.until("what was said between the agents is told", func() bool { return driver.taken(`msg="no answer" container=main name=www:80`) == 1 })
	id := w.process()
	if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until("it's started again, and goes on", func() bool { return driver.taken("msg=listening") == 4 })
	w.get(alias)
	end()
	if driver.taken(`msg="no answer"`) != 2 || driver.taken("msg=listening") != 4 {
		t.Errorf("at the end: %q", driver.lines)
	}
	if left, _ := os.ReadDir(w.dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestLogIsBounded: the beginning of a long log is given back to the disk, and a reader goes on behind it.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := &boundedLog{file: f}
	line := strings.Repeat("x", 1<<10) + "\n"
	const lines = 4 * keptLog / (1 << 10)
	for range lines {
		if _, err := log.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	var s syscall.Stat_t
	if err := syscall.Stat(path, &s); err != nil || s.Blocks*512 > keptLog+2*trimEvery {
		t.Errorf("it takes %d bytes of %d, %v", s.Blocks*512, s.Size, err)
	}
	over := make(chan struct{})
	close(over)
	read := 0
	err = (&said{path: path, over: over}).Logs(t.Context(), "", "1025", true, func(l runtime.Line) error {
		read++
		if strings.Trim(l.Text, "x") != "" {
			t.Fatalf("%q", l.Text)
		}
		return nil
	})
	if err != nil || read < keptLog/len(line) || read > lines/2 {
		t.Errorf("%d of %d lines, %v", read, lines, err)
	}
}

// TestSaidAt: a line that is sent twice has the same time.
func TestSaidAt(t *testing.T) {
	want := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	if got := saidAt("time=2026-03-01T12:00:00.005Z level=INFO msg=x"); !got.Equal(want) {
		t.Error(got)
	}
	for _, other := range []string{"", "panic: x", "time="} {
		if got := saidAt(other); time.Since(got) > time.Minute {
			t.Errorf("%q: %s", other, got)
		}
	}
}

// TestCursors: reading goes on where it has ended, and waits for the rest of a line.
func TestCursors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	over := make(chan struct{})
	close(over)
	var got []string
	cursor := ""
	for _, text := range []string{"a\nb", "a\nbc\n", "a\nbc\n", "a\nbc\nd\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := (&said{path: path, over: over}).Logs(t.Context(), "", cursor, true, func(l runtime.Line) error {
			got, cursor = append(got, l.Text), l.Cursor
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []string{"a", "bc", "d"}) {
		t.Errorf("%q", got)
	}
	if err := (&said{path: path}).Logs(t.Context(), "", "x", true, nil); err == nil {
		t.Error("a bad cursor is accepted")
	}
}
