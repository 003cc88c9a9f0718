package nodelink

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
)

const (
	// telemetrySilence is how long a node may be silent on TCS. Nothing there answers heartbeats, and an agent whose metrics are off
	// says little.
	telemetrySilence = 3 * time.Minute
	// writeDeadline is how long a node may refuse to take data.
	writeDeadline = 30 * time.Second
)

// silence is how long a node may be silent on ACS, where it answers every heartbeat: it may miss three.
func (l *Link) silence() time.Duration { return l.opts.Heartbeat * 10 / 3 }

// address names a web socket. A node has one of each kind.
type address struct {
	kind     kind
	instance string // its ARN
}

// processOf returns what tells one agent process from another. Amazon's agent doesn't say.
func processOf(r *http.Request) string { return r.URL.Query().Get("pintleProcess") }

type kind string

const (
	kindACS kind = "ACS"
	kindTCS kind = "TCS"
)

// socket is a node's open web socket.
type socket struct {
	address
	conn     *websocket.Conn
	process  string        // the agent's, or ""
	silence  time.Duration // how long the node may be silent
	frame    bytes.Buffer  // the last one that was read
	patience *time.Timer   // ends the socket when the node is silent for too long
	stop     context.CancelCauseFunc
}

// maxKept is how large a frame's memory may be to be used for the next one. Thousands of nodes tell of their GPUs each second.
const maxKept = 16 << 10

// ending is why this side ends a socket, with the close frame that says so. Amazon's agent reconnects at once after
// codes 1000 and 1001, and waits a while after others.
type ending struct {
	code   websocket.StatusCode
	reason string
}

func (e *ending) Error() string { return e.reason }

var (
	errStopping     = &ending{websocket.StatusGoingAway, "the control plane stops"}
	errDeregistered = &ending{websocket.StatusNormalClosure, "the container instance was deregistered"}
	// Two agents of Amazon's that claim to be one node would push each other out forever, so we slow them down.
	errReplaced = &ending{websocket.StatusPolicyViolation, "the node has connected anew"}
	errInUse    = &ending{websocket.StatusPolicyViolation, "another agent is connected as this container instance"}
	errUnsigned = &ending{websocket.StatusPolicyViolation, "a frame's signature is wrong"}
	errSilent   = &ending{websocket.StatusTryAgainLater, "the node has been silent for too long"}
	errFailed   = &ending{websocket.StatusTryAgainLater, "try again"}
)

// serve opens a node's web socket and runs a session on it until either side ends it.
func (l *Link) serve(w http.ResponseWriter, r *http.Request, a address, session func(context.Context, *socket) error) {
	conn, err := websocket.Accept(w, r, nil) // Accept refuses a browser's page by its Origin; nodes send none
	if err != nil {
		return // Accept has answered
	}
	conn.SetReadLimit(acs.MaxFrame)
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	s := &socket{address: a, conn: conn, process: processOf(r), silence: l.silence(), stop: stop}
	if a.kind == kindTCS {
		s.silence = telemetrySilence
	}
	if err := l.begin(s); err != nil {
		s.close(err)
		return
	}
	defer l.end(s)
	s.patience = time.AfterFunc(s.silence, s.giveUp)
	defer s.patience.Stop()
	err = session(ctx, s)
	s.close(err)
	l.opts.Log.Info("node disconnected", "container_instance", a.instance, "socket", a.kind, "reason", err)
}

// begin makes s the node's socket, and ends the one before it, unless that is another agent's, which came at the same moment.
func (l *Link) begin(s *socket) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errStopping
	}
	if l.isTakenLocked(s.instance, s.process) {
		return errInUse
	}
	if old := l.sockets[s.address]; old != nil {
		old.stop(errReplaced)
	}
	l.sockets[s.address] = s
	l.running.Add(1)
	return nil
}

// end forgets the socket. Ending a TCS socket also drops its telemetry.
func (l *Link) end(s *socket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.running.Done()
	if l.sockets[s.address] != s {
		return
	}
	delete(l.sockets, s.address)
	if s.kind == kindTCS {
		delete(l.telemetry, s.instance)
	}
}

// isCurrent reports whether no newer socket has replaced s.
func (l *Link) isCurrent(s *socket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sockets[s.address] == s
}

// run sends and receives until either fails or ctx ends, and returns why.
func (s *socket) run(ctx context.Context, send func(context.Context) error, receive func(context.Context, []byte) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return send(ctx) })
	g.Go(func() error {
		for {
			b, err := s.read()
			if err != nil {
				return err
			}
			if err := receive(ctx, b); err != nil {
				return err
			}
		}
	})
	g.Go(func() error {
		<-ctx.Done()
		s.close(context.Cause(ctx)) // read waits for this, not for ctx, so that the node gets a close frame
		return nil
	})
	g.Wait() //nolint:errcheck // it is ctx's cause, unless ctx ended first
	return context.Cause(ctx)
}

// close closes the web socket with the close frame for the cause.
func (s *socket) close(cause error) {
	e, ok := errors.AsType[*ending](cause)
	if !ok {
		e = errFailed
	}
	s.conn.Close(e.code, e.reason) //nolint:errcheck // the node may have gone first
}

// giveUp ends the socket of a node that is silent. Such a node answers no close frame, and may take none.
func (s *socket) giveUp() { s.conn.CloseNow() } //nolint:errcheck // it ends anyway

// read reads a frame, which is good until the next one is read. A node that has been silent for too long isn't waited for.
func (s *socket) read() ([]byte, error) {
	s.patience.Reset(s.silence)
	defer s.patience.Stop()
	_, r, err := s.conn.Reader(context.Background()) // close ends it
	if err != nil && !s.patience.Stop() {
		return nil, errSilent
	}
	if err != nil {
		return nil, err
	}
	if s.frame.Reset(); s.frame.Cap() > maxKept {
		s.frame = bytes.Buffer{}
	}
	_, err = s.frame.ReadFrom(r)
	return s.frame.Bytes(), err
}

func (s *socket) send(ctx context.Context, m acs.Message) error {
	b, err := acs.Encode(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeDeadline)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, b)
}
