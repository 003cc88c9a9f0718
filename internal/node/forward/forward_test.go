package forward

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// output is a runtime with one container, which writes lines.
type output struct {
	runtime.Runtime
	lines []runtime.Line
}

func (o *output) Logs(_ context.Context, _, _ string, _ bool, emit func(runtime.Line) error) error {
	for _, l := range o.lines {
		if err := emit(l); err != nil {
			return err
		}
	}
	return nil
}

func source(t *testing.T, lines ...runtime.Line) *engine.LogSource {
	return &engine.LogSource{
		TaskArn: "arn/task", Container: "web", ID: "task-web", Output: &output{lines: lines},
		Socket: filepath.Join(t.TempDir(), strings.Repeat("long", 30), "fluent.sock"),
	}
}

// listen makes the router's socket, at a path that may be too long for its address.
func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	t.Chdir(filepath.Dir(path))
	l, err := net.Listen("unix", filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestShip: a router that starts later gets all lines, in the protocol's bytes, and what it has got is noted.
func TestShip(t *testing.T) {
	at := time.Unix(1, 2)
	long := strings.Repeat("x", 300)
	c := source(t, runtime.Line{At: at, Text: "one", Cursor: "1"}, runtime.Line{At: at, Text: long, Stderr: true, Cursor: "2"})
	shipped := make(chan error, 1)
	saved := make(chan string, 2)
	go func() {
		shipped <- New(slog.New(slog.DiscardHandler)).Ship(t.Context(), c, "", func(cursor string) { saved <- cursor })
	}()
	l := listen(t, c.Socket)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close() // which Ship waits for
	if err := <-shipped; err != nil {
		t.Fatal(err)
	}
	when := "\xd7\x00\x00\x00\x00\x01\x00\x00\x00\x02"
	record := "\x84\xaccontainer_id\xa8task-web\xaecontainer_name\xa9/task-web\xa6source"
	one := "\x92" + when + record + "\xa6stdout\xa3log\xa3one"
	two := "\x92" + when + record + "\xa6stderr\xa3log\xda\x01\x2c" + long
	const tag = "\x92\xb1web-firelens-task"
	together, apart := tag+"\x92"+one+two, tag+"\x91"+one+tag+"\x91"+two
	if s := string(got); s != together && s != apart {
		t.Errorf("got %q", s)
	}
	close(saved)
	last := ""
	for s := range saved {
		last = s
	}
	if last != "2" {
		t.Errorf("noted up to %q", last)
	}
}

// TestShipEnds: without a router Ship ends with its context, and notes nothing.
func TestShipEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := New(slog.New(slog.DiscardHandler)).Ship(ctx, source(t, runtime.Line{Text: "lost", Cursor: "1"}), "", func(string) {
		t.Error("noted what nobody took")
	})
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestDialFollowsNoLinks: a router must not lead the agent to another socket of the machine.
func TestDialFollowsNoLinks(t *testing.T) {
	c := source(t)
	l := listen(t, c.Socket)
	link := filepath.Join(filepath.Dir(c.Socket), "link")
	if err := os.Symlink(c.Socket, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, filepath.Dir(c.Socket)} {
		if conn, err := dial(t.Context(), path); err == nil {
			conn.Close()
			t.Errorf("connected to %s", path)
		}
	}
	conn, err := dial(t.Context(), c.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := l.Accept(); err != nil {
		t.Error(err)
	}
}

func TestMessagePack(t *testing.T) {
	if got := appendArray(nil, 256); !bytes.Equal(got, []byte{0xdc, 1, 0}) {
		t.Errorf("an array of 256: %x", got)
	}
	for n, want := range map[int]string{0: "a0", 31: "bf", 32: "d920", 255: "d9ff", 256: "da0100", 65535: "daffff", 65536: "db00010000"} {
		got := appendString(nil, strings.Repeat("x", n))
		if head := got[:len(got)-n]; want != fmt.Sprintf("%x", head) {
			t.Errorf("a string of %d begins with %x", n, head)
		}
	}
}
