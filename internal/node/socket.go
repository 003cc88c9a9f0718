package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
)

const (
	// silence is how long the control plane may be silent. It sends a heartbeat at least every 30 s.
	silence = 90 * time.Second
	// writeDeadline is how long a write may block.
	writeDeadline = 30 * time.Second
	// dialDeadline is how long a connection may take to open.
	dialDeadline = 30 * time.Second
	// inactive is how long a deregistered node waits before it tries again, as Amazon's agent does.
	inactive = time.Hour

	minWait = 250 * time.Millisecond
	maxWait = time.Minute
)

// reconnect calls connect again and again: at once if the control plane announced that it hangs up, and ever slower while it fails, as
// Amazon's agent does.
func (a *Agent) reconnect(ctx context.Context, what string, connect func(context.Context) error) error {
	wait := minWait
	for {
		began := time.Now()
		err := connect(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > time.Minute {
			wait = minWait
		}
		pause := wait + rand.N(wait/4)
		wait = min(wait*3/2, maxWait)
		switch code := websocket.CloseStatus(err); {
		case isRefusedAs(err, "InactiveInstanceException"):
			pause = inactive
		case code == websocket.StatusNormalClosure || code == websocket.StatusGoingAway:
			if time.Since(began) > time.Second { // else it could loop without a pause
				pause = 0
			}
		}
		a.log.Info("connection ended; connecting again", "to", what, "in", pause, "reason", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// refusal is the control plane's answer when it refuses a web socket.
type refusal struct{ code, message string }

// Error implements error.
func (r *refusal) Error() string { return r.code + ": " + r.message }

func isRefusedAs(err error, code string) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == code
}

// readRefusal reads {"type":CODE,"message":{"message":TEXT}} or {CODE:TEXT}.
func readRefusal(r *http.Response, err error) error {
	if r == nil || r.StatusCode == http.StatusSwitchingProtocols {
		return err
	}
	b, _ := io.ReadAll(io.LimitReader(r.Body, 4<<10)) //nolint:errcheck // we show whatever came
	var long struct {
		Type    string
		Message struct{ Message string }
	}
	if json.Unmarshal(b, &long) == nil && long.Type != "" {
		return &refusal{long.Type, long.Message.Message}
	}
	var short map[string]string
	if json.Unmarshal(b, &short) == nil {
		for code, message := range short {
			return &refusal{code, message}
		}
	}
	return fmt.Errorf("%w: %s", err, bytes.TrimSpace(b))
}

// socket is an open web socket and its address, which signatures of frames cover.
type socket struct {
	agent   *Agent
	conn    *websocket.Conn
	address string
}

// dial opens a web socket to the control plane, signed if the node has credentials.
func (a *Agent) dial(ctx context.Context, base string, query url.Values) (*socket, error) {
	ctx, cancel := context.WithTimeout(ctx, dialDeadline)
	defer cancel()
	address := strings.TrimSuffix(base, "/") + "/ws?" + query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if err := a.sign(ctx, r, nil); err != nil {
		return nil, err
	}
	conn, response, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPHeader: r.Header, HTTPClient: a.http})
	if err != nil {
		return nil, readRefusal(response, err)
	}
	conn.SetReadLimit(acs.MaxFrame)
	return &socket{a, conn, address}, nil
}

// endpoints asks the control plane where its web sockets are.
func (a *Agent) endpoints(ctx context.Context) (*ecs.DiscoverPollEndpointOutput, error) {
	instance := a.Instance()
	return a.config.ECS.DiscoverPollEndpoint(ctx, &ecs.DiscoverPollEndpointInput{Cluster: &a.config.Cluster, ContainerInstance: &instance})
}

func (a *Agent) sign(ctx context.Context, r *http.Request, body []byte) error {
	if a.config.Credentials == nil {
		return nil
	}
	c, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("the node's credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, c, r, hex.EncodeToString(sum[:]), "ecs", a.config.Region, time.Now())
}

// read returns the next message. It skips messages that this version doesn't know.
func (s *socket) read(ctx context.Context) (acs.Message, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, silence)
		_, b, err := s.conn.Read(limited)
		cancel()
		if err != nil {
			return nil, err
		}
		m, err := acs.Decode(b)
		if err == nil {
			return m, nil
		}
		s.agent.log.Warn("ignored a message", "error", err)
	}
}

func (s *socket) write(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeDeadline)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, frame)
}

func (s *socket) send(ctx context.Context, m acs.Message) error {
	b, err := acs.Encode(m)
	if err != nil {
		return err
	}
	return s.write(ctx, b)
}

// sendSigned sends a frame with its own signature, as TCS requires.
func (s *socket) sendSigned(ctx context.Context, m acs.Message) error {
	b, err := acs.Encode(m)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address, nil)
	if err != nil {
		return err
	}
	if err := s.agent.sign(ctx, r, b); err != nil {
		return err
	}
	r.Header.Set("Host", r.Host)
	return s.write(ctx, acs.EncodeSigned(r.Header, b))
}

// close sends a close frame, so that the other end needn't wait for a time-out.
func (s *socket) close() {
	s.conn.Close(websocket.StatusNormalClosure, "") //nolint:errcheck // the other end may be gone
}
