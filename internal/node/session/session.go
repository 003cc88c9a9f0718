// Package session runs the commands of aws ecs execute-command in a node's containers, at terminals whose other end is the client's. A
// session is one command, and a process of its own, which the agent starts, and which goes on when that ends. It speaks Session Manager's
// protocol with the client, over a web socket that it opens to the control plane, which passes messages on. Client and control plane may go
// away and come back for a while.
package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/datachannel"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Runtime runs commands in containers.
type Runtime interface {
	Exec(ctx context.Context, id string, e runtime.Exec) (exitCode int, err error)
}

// Options are what a session needs of its node.
type Options struct {
	Runtime   Runtime
	Container string // the runtime's id
	// Running says why the container doesn't run; nil if it does, or if that can't be told now.
	Running func(context.Context) error
	// Dial opens a session's web socket to the control plane. Its error is ErrOver if the control plane doesn't want the session any more.
	Dial func(context.Context, *acs.PintleExecute) (*websocket.Conn, error)
	// Transcript keeps what a session's terminal showed, once it's over; nil keeps nothing.
	Transcript func(context.Context, *acs.PintleExecute, []byte) error
	Log        *slog.Logger
}

const (
	// idleTimeout is how long nothing may be typed or shown. ECS has the same.
	idleTimeout = 20 * time.Minute
	// absence is how long client or control plane may be away, and stopping how long a client may take to hear of the end of an agent.
	absence  = time.Minute
	stopping = 2 * time.Second
	// sizePatience is how long a client may take to tell its terminal's size before the command starts without.
	sizePatience = time.Second
	// lookEvery is the time between looks whether the container still runs.
	lookEvery = time.Second

	tick       = 50 * time.Millisecond
	writeLimit = 30 * time.Second
	// maxTranscript is the most bytes of a transcript.
	maxTranscript = 16 << 20
)

// session is one session. The goroutine of run owns all of it.
type session struct {
	opts   Options
	m      *acs.PintleExecute
	log    *slog.Logger
	stream *datachannel.Stream
	tasks  sync.WaitGroup // its other goroutines
	gone   chan error     // gets one when the container doesn't run any more

	conn     *websocket.Conn // nil while there is none
	attached bool            // the client is there
	away     time.Time       // since when the client isn't there
	heard    time.Time       // when something last came from the client

	state   state
	began   time.Time
	shook   time.Time    // when the handshake was complete
	size    runtime.Size // of the client's terminal
	command *command     // nil before it has started, and once it has ended
	active  time.Time    // when something was last typed or shown

	transcript []byte
	ending     *ending       // why the session ends; nil while it goes on
	endedAt    time.Time     // when that was known, or the command had ended
	patience   time.Duration // how long the client may then take to take the rest
	told       bool          // the client was told of the end
}

// state is how far a session is with its client.
type state int

const (
	waiting state = iota // for the client
	shaking              // hands
	ready                // for the size of the client's terminal
	started
)

// ending is what the client is told of the session's end.
type ending struct {
	code *int   // the command's; nil if it didn't end by itself
	why  string // if it didn't
}

func newSession(o Options, m *acs.PintleExecute) *session {
	now := time.Now()
	return &session{
		opts: o, m: m, log: o.Log.With("session", m.SessionID), stream: datachannel.NewStream(datachannel.Output, datachannel.Input),
		gone: make(chan error, 1), began: now, away: now, heard: now, active: now, patience: absence,
	}
}

// Run carries a session out. It ends soon after ctx.
func Run(ctx context.Context, o Options, m *acs.PintleExecute) { newSession(o, m).run(ctx) }

func (s *session) run(ctx context.Context) {
	defer s.tasks.Wait()
	line := newLine(s.opts, s.m)
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s.tasks.Go(func() { line.keep(serving) })
	clock := time.NewTicker(tick)
	defer clock.Stop()
	stopped := ctx.Done()
	for !s.isOver() {
		events := line.events
		if s.command != nil && s.command.typed.waiting() >= maxTyped && !s.command.typed.isDeaf() && !s.stream.Full() {
			events = nil // until the program has read what was typed; one that waits until its output was acknowledged reads nothing before
		}
		select {
		case b := <-s.shown():
			s.show(b)
		case r := <-s.done():
			s.finish(r)
		case e := <-events:
			s.take(e)
		case <-clock.C:
			s.look(time.Now())
		case err := <-s.gone: // plain processes would outlive it
			s.end(ending{why: err.Error()})
		case <-stopped:
			stopped = nil
			s.patience = stopping
			s.end(ending{why: "The node's agent stops."})
		}
	}
	line.hangUp()
	if s.conn != nil {
		s.conn.Close(websocket.StatusNormalClosure, "") //nolint:errcheck // the other end may be gone
	}
	s.keepTranscript(serving)
}

// isOver reports whether nothing is left to do: the client was told of the end, or takes no notice.
func (s *session) isOver() bool {
	return s.ending != nil && s.command == nil &&
		(s.told || time.Since(later(s.heard, s.endedAt)) > s.patience || time.Since(s.endedAt) > idleTimeout)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shown returns where the command's output comes from; nil if none is to be taken now.
func (s *session) shown() <-chan []byte {
	if s.command == nil || s.stream.Full() && s.ending == nil {
		return nil // a full stream waits for the client
	}
	return s.command.shown
}

// done returns what tells of the command's end.
func (s *session) done() <-chan result {
	if s.command == nil {
		return nil
	}
	return s.command.done
}

// end notes why the session ends, and gives the command up.
func (s *session) end(e ending) {
	if s.ending == nil {
		s.ending = &e
		s.endedAt = time.Now()
	}
	if s.command != nil {
		s.command.cancel()
	}
}

// finish notes that the command has ended.
func (s *session) finish(r result) {
	s.command.typed.close()
	s.command = nil
	if s.ending != nil { // only now can the client be told, and a command may take long to be ended
		s.endedAt = time.Now()
	}
	if r.err != nil {
		s.end(ending{why: fmt.Sprintf("The command can't be run: %s", r.err)})
		return
	}
	s.end(ending{code: &r.code})
}

// show sends what the terminal shows. What it shows after the end is for nobody.
func (s *session) show(b []byte) {
	if s.ending != nil {
		return
	}
	s.active = time.Now()
	if s.m.Log != nil && len(s.transcript) < maxTranscript {
		s.transcript = append(s.transcript, b...)
	}
	s.send(datachannel.Bytes, b)
}

// send sends the next message to the client, which gets it once it's there.
func (s *session) send(content datachannel.Content, payload []byte) {
	frame := s.stream.Send(content, payload, time.Now())
	if s.attached {
		s.write(frame)
	}
}

// write writes a message to the web socket. What is lost with that is sent again over the next.
func (s *session) write(frame []byte) bool {
	if s.conn == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageBinary, frame); err != nil {
		s.conn.CloseNow() //nolint:errcheck // who reads it hears of it
		return false
	}
	return true
}

// look does what is due by time.
func (s *session) look(now time.Time) {
	switch {
	case s.state == ready && now.Sub(s.shook) > sizePatience:
		s.start()
	case !s.attached && now.Sub(s.away) > absence:
		s.end(ending{why: "The client was away for too long."})
	case now.Sub(s.active) > idleTimeout:
		s.end(ending{why: fmt.Sprintf("Nothing was typed or shown for %.0f minutes.", idleTimeout.Minutes())})
	}
	if !s.attached {
		return
	}
	for _, frame := range s.stream.Due(now) {
		s.write(frame)
	}
	if s.ending != nil && s.command == nil && s.stream.Empty() {
		s.told = s.write(datachannel.Close(s.m.SessionID, s.ending.code, s.ending.why, now))
	}
}

// take takes what came over the web socket, or that this is gone or new.
func (s *session) take(e event) {
	switch {
	case e.over:
		s.patience = 0
		s.end(ending{why: "The session was terminated."})
	case e.err != nil:
		s.conn = nil
		s.detach()
	case e.conn != nil:
		s.conn = e.conn
	case e.text:
		s.hear(e.b)
	default:
		s.receive(e.b)
	}
}

// hear takes what the control plane tells of the client.
func (s *session) hear(b []byte) {
	var e acs.SessionEvent
	if err := json.Unmarshal(b, &e); err != nil {
		s.log.Warn("ignored what the control plane said of a session", "error", err)
		return
	}
	switch e.Client {
	case acs.ClientAttached:
		s.attach(time.Now())
	case acs.ClientDetached:
		s.detach()
	case acs.ClientTerminated:
		s.patience = stopping // nobody can resume it
		s.end(ending{why: "The session was terminated."})
	}
}

// attach begins with a client, or goes on where it was.
func (s *session) attach(now time.Time) {
	s.attached = true
	s.heard = now
	if s.state == waiting {
		s.state = shaking
		s.send(datachannel.HandshakeRequest, datachannel.NewRequest())
		return
	}
	for _, frame := range s.stream.Unacknowledged(now) {
		s.write(frame)
	}
}

// detach notes that the client is away.
func (s *session) detach() {
	if s.attached {
		s.away = time.Now()
	}
	s.attached = false
}

// receive takes a message of the client's. What isn't one is dropped, as if it had been lost.
func (s *session) receive(b []byte) {
	m, err := datachannel.Decode(b)
	if err != nil {
		s.log.Warn("ignored a message of a session's client", "error", err)
		return
	}
	if m.Kind == datachannel.Input && s.command != nil && s.command.typed.waiting() >= mostTyped {
		return
	}
	s.heard = time.Now()
	ack, messages := s.stream.Take(m, s.heard)
	if ack != nil {
		s.write(ack)
	}
	for _, m := range messages {
		s.obey(m)
	}
}

// obey does what a message of the client says, whose turn it is.
func (s *session) obey(m datachannel.Message) {
	switch {
	case m.Content == datachannel.HandshakeResponse && s.state == shaking:
		s.shake(m.Payload)
	case m.Content == datachannel.TerminalSize:
		s.resize(m.Payload)
	case m.Content == datachannel.Bytes && s.command != nil:
		s.active = s.heard
		s.command.typed.put(m.Payload)
	}
}

// shake ends the handshake.
func (s *session) shake(response []byte) {
	if err := datachannel.CheckResponse(response); err != nil {
		s.end(ending{why: err.Error()})
		return
	}
	s.state = ready
	s.shook = s.heard
	s.send(datachannel.HandshakeComplete, datachannel.Complete(s.shook.Sub(s.began)))
}

// resize makes the terminal as large as the client's. The first size starts the command: it would see none else.
func (s *session) resize(payload []byte) {
	var size datachannel.Size
	if json.Unmarshal(payload, &size) != nil {
		return
	}
	s.size = runtime.Size{Cols: size.Cols, Rows: size.Rows}
	if s.state == ready {
		s.start()
	} else if s.command != nil {
		s.command.resize(s.size)
	}
}

// start starts the command.
func (s *session) start() {
	s.state = started
	if s.ending != nil {
		return
	}
	s.active = time.Now()
	s.command = newCommand(s.m.Command, s.size)
	if err := s.opts.Running(s.command.ctx); err != nil {
		s.command = nil
		s.end(ending{why: err.Error()})
		return
	}
	s.command.start(&s.tasks, s.opts.Runtime, s.opts.Container)
	ended := s.command.ctx
	s.tasks.Go(func() { s.watch(ended) })
}

// watch tells when the container doesn't run any more, unless the command ends before.
func (s *session) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
		if err := s.opts.Running(ctx); err != nil {
			s.gone <- err
			return
		}
	}
}

func (s *session) keepTranscript(ctx context.Context) {
	if s.m.Log == nil || s.opts.Transcript == nil || s.state != started {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	if err := s.opts.Transcript(ctx, s.m, s.transcript); err != nil {
		s.log.Error("cannot keep a session's transcript", "error", err)
	}
}
