package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/datachannel"
	"github.com/pintle/pintle/internal/datachannel/client"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/terminal"
)

// here runs commands on this machine.
type here struct {
	lingers *atomic.Int64 // how long a command takes to end that was given up
}

// Exec implements Runtime.
func (h here) Exec(ctx context.Context, _ string, e runtime.Exec) (int, error) {
	err := terminal.Run(ctx, exec.Command(e.Command[0], e.Command[1:]...), e, false)
	if ctx.Err() != nil {
		time.Sleep(time.Duration(h.lingers.Load()))
		return 0, ctx.Err()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// plane is a control plane with one session, which loses every lossy-th message and can break connections.
type plane struct {
	*httptest.Server
	mu     sync.Mutex
	node   *websocket.Conn
	client *websocket.Conn
	lossy  int
	passed int
}

func newPlane(t *testing.T, lossy int) *plane {
	p := &plane{lossy: lossy}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		conn.SetReadLimit(datachannel.MaxMessage)
		if r.URL.Path == "/node" {
			p.serve(r.Context(), conn, &p.node, &p.client)
			return
		}
		if _, _, err := conn.Read(r.Context()); err == nil { // the token
			p.serve(r.Context(), conn, &p.client, &p.node)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// serve passes what one end says to the other.
func (p *plane) serve(ctx context.Context, conn *websocket.Conn, own, other **websocket.Conn) {
	p.mu.Lock()
	*own = conn
	p.tellLocked()
	p.mu.Unlock()
	for {
		kind, b, err := conn.Read(ctx)
		p.mu.Lock()
		if err != nil {
			if *own == conn {
				*own = nil
			}
			p.tellLocked()
			p.mu.Unlock()
			return
		}
		p.passed++
		if to := *other; to != nil && (p.lossy == 0 || p.passed%p.lossy != 0 || isLast(b)) {
			to.Write(ctx, kind, b) //nolint:errcheck // it is lost
		}
		p.mu.Unlock()
	}
}

// isLast reports whether a message is the last of its session, which is sent once.
func isLast(b []byte) bool {
	m, err := datachannel.Decode(b)
	return err == nil && m.Kind == datachannel.Closed
}

// tellLocked tells the node whether there is a client.
func (p *plane) tellLocked() {
	if p.node == nil {
		return
	}
	what := acs.ClientDetached
	if p.client != nil {
		what = acs.ClientAttached
	}
	p.writeLocked(what)
}

// tell tells the node what became of the client.
func (p *plane) tell(what acs.SessionClient) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writeLocked(what)
}

func (p *plane) writeLocked(what acs.SessionClient) {
	b, _ := json.Marshal(acs.SessionEvent{Client: what})
	p.node.Write(context.Background(), websocket.MessageText, b) //nolint:errcheck // a test
}

// count returns how many messages were passed.
func (p *plane) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// breaks breaks both ends' connections.
func (p *plane) breaks() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []*websocket.Conn{p.node, p.client} {
		if c != nil {
			c.CloseNow() //nolint:errcheck // a test
		}
	}
}

// screenOf is what a client shows.
type screenOf struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *screenOf) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *screenOf) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *screenOf) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(s.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the screen shows %q, not %q", s.String(), text)
		}
	}
}

// talk is a session under test, with its client.
type talk struct {
	*plane
	keys    *io.PipeWriter
	sizes   chan datachannel.Size
	screen  *screenOf
	over    chan struct{}
	end     datachannel.End
	err     error
	stop    func() // the node
	kept    chan string
	gone    atomic.Bool // the container
	lingers atomic.Int64
}

// begin begins a session with a shell command.
func begin(t *testing.T, lossy int, command string) *talk {
	p := newPlane(t, lossy)
	k := &talk{plane: p, sizes: make(chan datachannel.Size), screen: &screenOf{}, over: make(chan struct{}), kept: make(chan string, 1)}
	if command == "" {
		k.gone.Store(true)
	}
	ctx, stop := context.WithCancel(t.Context())
	k.stop = stop
	var node sync.WaitGroup
	m := &acs.PintleExecute{
		SessionID: "s", TaskArn: "t", ContainerName: "c", Command: []string{"sh", "-c", command}, Log: &acs.SessionLog{Group: "g"},
	}
	node.Go(func() { Run(ctx, k.options(), m) })
	t.Cleanup(node.Wait)
	t.Cleanup(stop)
	in, keys := io.Pipe()
	k.keys = keys
	t.Cleanup(func() { keys.Close() })
	go func() {
		defer close(k.over)
		k.end, k.err = client.Run(t.Context(), client.Session{
			URL: p.URL + "/client", Token: "x", In: in, Out: k.screen, Sizes: k.sizes, Size: datachannel.Size{Cols: 99, Rows: 33},
			Resume: func(context.Context) (string, error) { return "y", nil },
		})
	}()
	return k
}

func (k *talk) options() Options {
	return Options{
		Runtime:   here{&k.lingers},
		Container: "c",
		Log:       slog.New(slog.DiscardHandler),
		Running: func(context.Context) error {
			if k.gone.Load() {
				return errors.New("there is no such container")
			}
			return nil
		},
		Dial: func(ctx context.Context, _ *acs.PintleExecute) (*websocket.Conn, error) {
			conn, _, err := websocket.Dial(ctx, k.URL+"/node", nil) //nolint:bodyclose // the library does
			return conn, err
		},
		Transcript: func(_ context.Context, _ *acs.PintleExecute, b []byte) error {
			k.kept <- string(b)
			return nil
		},
	}
}

// ends waits for the end of the session.
func (k *talk) ends(t *testing.T) datachannel.End {
	t.Helper()
	select {
	case <-k.over:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the session never ends; the screen shows %d bytes", len(k.screen.String()))
	}
	if k.err != nil {
		t.Fatal(k.err)
	}
	return k.end
}

func (k *talk) types(keys string) { io.WriteString(k.keys, keys) } //nolint:errcheck // a test

// TestSession: a command has the client's terminal with its size, sees what is typed, also ctrl-C, and its exit code is told. What it showed
// is kept.
func TestSession(t *testing.T) {
	k := begin(t, 0, `trap 'echo caught; exit 5' INT; stty size; read a; stty size; echo "<$a>"; while :; do sleep 0.1; done`)
	k.screen.await(t, "33 99\r\n")
	k.sizes <- datachannel.Size{Cols: 40, Rows: 20}
	time.Sleep(300 * time.Millisecond) // both are on their way; the size must be there first
	k.types("hello\r")
	k.screen.await(t, "20 40\r\n<hello>\r\n")
	k.types("\x03")
	end := k.ends(t)
	if end.ExitCode == nil || *end.ExitCode != 5 || end.Output != "" {
		t.Errorf("it ended with %+v", end)
	}
	if got := <-k.kept; got != k.screen.String() || !strings.Contains(got, "caught") {
		t.Errorf("the transcript is %q", got)
	}
}

// TestAllArrives: what a command shows arrives whole, though connections lose messages and break.
func TestAllArrives(t *testing.T) {
	for name, lossy := range map[string]int{"whole": 0, "lossy": 7} {
		t.Run(name, func(t *testing.T) {
			k := begin(t, lossy, `stty -opost; i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done; exit 3`)
			k.screen.await(t, "line 500\n")
			k.breaks()
			k.screen.await(t, "line 3000\n")
			k.breaks()
			if end := k.ends(t); end.ExitCode == nil || *end.ExitCode != 3 {
				t.Errorf("it ended with %+v", end)
			}
			var want strings.Builder
			for i := range 20000 {
				want.WriteString("line ")
				want.WriteString(decimal(i))
				want.WriteByte('\n')
			}
			if got := k.screen.String(); got != want.String() {
				t.Errorf("%d bytes arrived, %d were shown", len(got), want.Len())
			}
		})
	}
}

func decimal(i int) string {
	b, _ := json.Marshal(i)
	return string(b)
}

// TestEndOfAgent: when the agent stops, the client is told why, and the command gets SIGHUP.
func TestEndOfAgent(t *testing.T) {
	k := begin(t, 0, `echo up; sleep 600`)
	k.screen.await(t, "up")
	k.stop()
	if end := k.ends(t); end.ExitCode != nil || !strings.Contains(end.Output, "agent stops") {
		t.Errorf("it ended with %+v", end)
	}
	if kept := <-k.kept; !strings.Contains(kept, "up") {
		t.Errorf("the transcript is %q", kept)
	}
}

// TestEndOfAgentWithSlowCommand: the client hears of the agent's end also if the command takes long to be ended.
func TestEndOfAgentWithSlowCommand(t *testing.T) {
	k := begin(t, 0, `echo up; sleep 600`)
	k.screen.await(t, "up")
	k.lingers.Store(int64(stopping + stopping/4))
	k.stop()
	if end := k.ends(t); end.ExitCode != nil || !strings.Contains(end.Output, "agent stops") {
		t.Errorf("it ended with %+v", end)
	}
}

// TestTerminated: a session that was terminated, as by a client that was interrupted, doesn't wait for that client to come back.
func TestTerminated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(Options{Log: slog.New(slog.DiscardHandler)}, &acs.PintleExecute{})
		for _, what := range []acs.SessionClient{acs.ClientDetached, acs.ClientTerminated} {
			b, _ := json.Marshal(acs.SessionEvent{Client: what})
			s.hear(b)
		}
		time.Sleep(stopping + time.Millisecond)
		if !s.isOver() {
			t.Errorf("it isn't over after %v", stopping)
		}
	})
}

// TestContainerEnds: the session ends with its container, also where the command doesn't.
func TestContainerEnds(t *testing.T) {
	k := begin(t, 0, `echo up; sleep 600`)
	k.screen.await(t, "up")
	k.gone.Store(true)
	if end := k.ends(t); end.ExitCode != nil || !strings.Contains(end.Output, "no such container") {
		t.Errorf("it ended with %+v", end)
	}
}

// TestNoContainer: the client is told if its container isn't there.
func TestNoContainer(t *testing.T) {
	k := begin(t, 0, "")
	if end := k.ends(t); !strings.Contains(end.Output, "no such container") {
		t.Errorf("it ended with %+v", end)
	}
}

// TestHostileClients: one that begins no session, and one that goes on talking after the end and takes nothing, are given up.
func TestHostileClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(Options{Log: slog.New(slog.DiscardHandler)}, &acs.PintleExecute{})
		s.attach(time.Now())
		for began := time.Now(); !s.isOver(); time.Sleep(absence / 2) {
			if time.Since(began) > 2*idleTimeout+absence {
				t.Fatal("it never ends")
			}
			s.look(time.Now())
			s.receive(datachannel.Message{Kind: datachannel.Input, Created: time.Now(), Payload: []byte("x")}.Encode())
		}
		if s.ending == nil || !strings.Contains(s.ending.why, "Nothing was typed") {
			t.Errorf("it ended with %+v", s.ending)
		}
	})
}

// TestInputHeld: what is typed waits for a program that doesn't read it, and nothing is lost.
func TestInputHeld(t *testing.T) {
	k := begin(t, 0, `stty raw -echo; echo ready; sleep 1; head -c 300000 | wc -c`)
	k.screen.await(t, "ready")
	go k.types(strings.Repeat("x", 300000))
	k.screen.await(t, "300000")
	k.ends(t)
}

// TestInputIgnored: a client that has typed much into a program that reads none of it is heard all the same when it leaves.
func TestInputIgnored(t *testing.T) {
	k := begin(t, 0, `stty raw -echo; echo ready; sleep 600`)
	k.screen.await(t, "ready")
	go k.types(strings.Repeat("x", 150<<10))
	for deadline := time.Now().Add(time.Minute); k.count() < 130; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages were passed", k.count())
		}
	}
	k.tell(acs.ClientTerminated)
	if end := k.ends(t); !strings.Contains(end.Output, "terminated") {
		t.Errorf("it ended with %+v", end)
	}
}

// TestInputAnswered: a program that shows more than is typed, and waits until that was acknowledged, isn't waited for in its turn.
func TestInputAnswered(t *testing.T) {
	k := begin(t, 0, `stty raw -echo; echo ready; head -c 600000 | tee /dev/tty /dev/tty | cat; exit 3`)
	k.screen.await(t, "ready")
	go k.types(strings.Repeat("x", 600000))
	k.ends(t)
	if got := strings.Count(k.screen.String(), "x"); got != 3*600000 {
		t.Errorf("%d bytes were shown", got)
	}
}
