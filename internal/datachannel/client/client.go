// Package client is the client's end of a session of aws ecs execute-command, as session-manager-plugin is: it connects a terminal here with
// the one of a command in a container.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/datachannel"
)

// Session is what to connect.
type Session struct {
	URL   string // of the session's web socket
	Token string
	// Resume returns a new token after the connection was lost, or an error if the session is over.
	Resume func(context.Context) (token string, err error)
	HTTP   *http.Client // nil means http.DefaultClient

	In    io.Reader // what is typed; it may still be being read when Run has returned
	Out   io.Writer // what is shown
	Sizes <-chan datachannel.Size
	Size  datachannel.Size // at the beginning
}

const (
	// ourVersion is the version of the protocol's clients that this one is like.
	ourVersion = "1.2.0.0"
	// piece is the most bytes of a message with input.
	piece = 1024

	tick       = 50 * time.Millisecond
	writeLimit = 30 * time.Second
	attempts   = 8 // to reach the session again, 6 s apart at most and half a minute in all
	firstPause = 100 * time.Millisecond
	maxPause   = 6 * time.Second
)

// run is a Session that runs.
type run struct {
	Session
	id     string // the client's, which stays the same when it connects again
	stream *datachannel.Stream
	conn   *websocket.Conn
	typed  chan []byte
	// isReady means that the handshake is complete: who types earlier types for nobody.
	isReady bool
}

// Run connects until the session is over, and returns how it ended. An error means that this isn't known.
func Run(ctx context.Context, s Session) (datachannel.End, error) {
	r := &run{Session: s, id: uuid.NewString(), stream: datachannel.NewStream(datachannel.Input, datachannel.Output), typed: make(chan []byte)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go r.read(ctx)
	for {
		if err := r.connect(ctx); err != nil {
			return datachannel.End{}, err
		}
		end, err := r.serve(ctx)
		r.conn.CloseNow() //nolint:errcheck // nothing is left to say
		if err == nil || ctx.Err() != nil {
			return end, err
		}
		if err := r.resume(ctx, err); err != nil {
			return datachannel.End{}, err
		}
	}
}

// read reads what is typed.
func (r *run) read(ctx context.Context) {
	for {
		b := make([]byte, piece)
		n, err := r.In.Read(b)
		if n > 0 {
			select {
			case r.typed <- b[:n]:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// connect opens the web socket, and shows the token.
func (r *run) connect(ctx context.Context) (err error) {
	r.conn, _, err = websocket.Dial(ctx, r.URL, &websocket.DialOptions{HTTPClient: r.HTTP})
	if err != nil {
		return fmt.Errorf("connect to the session: %w", err)
	}
	r.conn.SetReadLimit(datachannel.MaxMessage)
	opening, _ := json.Marshal(datachannel.Opening{ // strings can't fail
		MessageSchemaVersion: "1.0",
		RequestId:            uuid.NewString(),
		TokenValue:           r.Token,
		ClientId:             r.id,
		ClientVersion:        ourVersion,
	})
	return r.conn.Write(ctx, websocket.MessageText, opening)
}

// resume gets a new token after the connection was lost for a reason.
func (r *run) resume(ctx context.Context, lost error) error {
	pause := firstPause
	for range attempts {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
		token, err := r.Resume(ctx)
		if err == nil && token == "" {
			return errors.New("the session is over")
		}
		if err == nil {
			r.Token = token
			return nil
		}
		lost = err
	}
	return fmt.Errorf("the connection to the session was lost: %w", lost)
}

// serve passes messages until the session is over or the connection is lost.
func (r *run) serve(ctx context.Context) (end datachannel.End, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	messages, lost := make(chan []byte), make(chan error, 1)
	go receive(ctx, r.conn, messages, lost)
	clock := time.NewTicker(tick)
	defer clock.Stop()
	r.write(r.stream.Unacknowledged(time.Now())...)
	for {
		typed := r.typed
		if !r.isReady || r.stream.Full() {
			typed = nil
		}
		select {
		case b := <-messages:
			if over, err := r.take(b, &end); over || err != nil {
				return end, err
			}
		case b := <-typed:
			r.write(r.stream.Send(datachannel.Bytes, b, time.Now()))
		case size := <-r.Sizes:
			r.Size = size
			r.sendSize()
		case now := <-clock.C:
			r.write(r.stream.Due(now)...)
		case err := <-lost:
			return end, err
		}
	}
}

// receive reads the web socket until it is gone.
func receive(ctx context.Context, conn *websocket.Conn, messages chan<- []byte, lost chan<- error) {
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			lost <- err
			return
		}
		select {
		case messages <- b:
		case <-ctx.Done():
			return
		}
	}
}

// write sends messages. What is lost is sent again.
func (r *run) write(frames ...[]byte) {
	for _, f := range frames {
		ctx, cancel := context.WithTimeout(context.Background(), writeLimit)
		err := r.conn.Write(ctx, websocket.MessageBinary, f)
		cancel()
		if err != nil {
			return // its reader notices
		}
	}
}

// take takes a message, and reports whether it says that the session is over.
func (r *run) take(b []byte, end *datachannel.End) (over bool, err error) {
	m, err := datachannel.Decode(b)
	if err != nil {
		return false, nil //nolint:nilerr // as if it had been lost
	}
	if m.Kind == datachannel.Closed {
		return true, json.Unmarshal(m.Payload, end)
	}
	ack, messages := r.stream.Take(m, time.Now())
	if ack != nil {
		r.write(ack)
	}
	for _, m := range messages {
		if err := r.obey(m); err != nil {
			return true, err
		}
	}
	return false, nil
}

// obey does what a message says, whose turn it is.
func (r *run) obey(m datachannel.Message) error {
	switch m.Content {
	case datachannel.HandshakeRequest:
		response, err := datachannel.Respond(m.Payload, ourVersion)
		if err != nil {
			return err
		}
		r.write(r.stream.Send(datachannel.HandshakeResponse, response, time.Now()))
	case datachannel.HandshakeComplete:
		r.sendSize()
		r.isReady = true
	case datachannel.Bytes:
		_, err := r.Out.Write(m.Payload)
		return err
	}
	return nil
}

func (r *run) sendSize() {
	b, _ := json.Marshal(r.Size) // numbers can't fail
	r.write(r.stream.Send(datachannel.TerminalSize, b, time.Now()))
}
