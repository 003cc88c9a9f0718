package session

import (
	"context"
	"errors"
	"time"

	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
)

// ErrOver is the error of a dial if the control plane doesn't want the session any more.
var ErrOver = errors.New("the session is over")

// redialPause is the time between attempts to reach the control plane.
const redialPause = 500 * time.Millisecond

// line keeps a session connected to the control plane, and reads what comes.
type line struct {
	opts   Options
	m      *acs.PintleExecute
	events chan event
	hung   chan struct{} // closed by hangUp
}

// event is one of: a new web socket, a message, an error after which it is gone, or that the control plane doesn't want the session.
type event struct {
	conn *websocket.Conn
	text bool
	b    []byte
	err  error
	over bool
}

func newLine(o Options, m *acs.PintleExecute) *line {
	return &line{opts: o, m: m, events: make(chan event), hung: make(chan struct{})}
}

// hangUp ends keep, once it has nothing to read.
func (l *line) hangUp() { close(l.hung) }

// tell reports whether the session has taken the event.
func (l *line) tell(e event) bool {
	select {
	case l.events <- e:
		return true
	case <-l.hung:
		return false
	}
}

// keep connects again and again until ctx ends or the session hangs up.
func (l *line) keep(ctx context.Context) {
	for {
		conn, err := l.opts.Dial(ctx, l.m)
		switch {
		case errors.Is(err, ErrOver):
			l.tell(event{over: true})
			return
		case err == nil && !l.read(ctx, conn):
			return
		}
		select {
		case <-l.hung:
			return
		case <-ctx.Done():
			return
		case <-time.After(redialPause):
		}
	}
}

// read reads a web socket until it's gone. It returns false if the session doesn't listen any more.
func (l *line) read(ctx context.Context, conn *websocket.Conn) bool {
	if !l.tell(event{conn: conn}) {
		conn.CloseNow() //nolint:errcheck // nobody has used it
		return false
	}
	for {
		kind, b, err := conn.Read(ctx)
		if err != nil {
			return l.tell(event{err: err})
		}
		if !l.tell(event{text: kind == websocket.MessageText, b: b}) {
			return false
		}
	}
}
