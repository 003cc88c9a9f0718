package node

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
)

const (
	// defaultSilence is how long the control plane may be silent if it doesn't say how often its heartbeats come.
	defaultSilence = 90 * time.Second
	// writeDeadline is how long a write may block.
	writeDeadline = 30 * time.Second
	// dialDeadline is how long a web socket may take to open once the machines are connected, and connectDeadline how long that may
	// take. While a network is away the kernel asks ever more rarely, so only short attempts find it soon after it's back.
	dialDeadline    = 30 * time.Second
	connectDeadline = 2 * time.Second
	// discoverDeadline is how long the control plane may take to say where its web sockets are.
	discoverDeadline = 4 * time.Second
	// inactive is how long a deregistered node waits before it tries again, as Amazon's agent does.
	inactive = time.Hour
	// minRefused and maxRefused are how long a node waits that somebody has to mend.
	minRefused = 10 * time.Second
	maxRefused = 5 * time.Minute

	minWait = 250 * time.Millisecond
	maxWait = 2 * time.Second
)

// reconnect calls connect again and again: at once if the control plane announced that it hangs up, and ever slower while it fails, as
// Amazon's agent does.
func (a *Agent) reconnect(ctx context.Context, what string, connect func(context.Context) error) error {
	wait, refused := minWait, minRefused
	for {
		began := time.Now()
		err := connect(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > time.Minute {
			wait, refused = minWait, minRefused
		}
		pause := wait + rand.N(wait/4)
		wait = min(wait*3/2, maxWait)
		switch code := websocket.CloseStatus(err); {
		case isRefusedAs(err, "InactiveInstanceException"):
			pause = inactive
		case remedy(err) != "":
			a.log.Error("the control plane refuses this node", "reason", err, "remedy", remedy(err), "again_in", refused)
			pause, refused = refused, min(2*refused, maxRefused)
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

// remedy says what somebody has to do before the control plane takes this node; "" if time may help.
func remedy(err error) string {
	switch {
	case isRefusedAs(err, "InstanceInUseException"):
		return "end the other agent, or start this one with a data directory of its own"
	case isRefusedAs(err, "AccessDeniedException"), isOfKey(err):
		return "this node's key is wrong or was revoked: start the agent with the control plane's key, or with --join, a new token from " +
			"pintle token and an empty data directory"
	}
	return ""
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
	silence time.Duration // how long the control plane may be silent
}

// newWebClient returns the HTTP client that opens web sockets.
func newWebClient(secure *tls.Config) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: connectDeadline}).DialContext
	transport.TLSClientConfig = secure
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true) // web sockets need it
	return &http.Client{Transport: transport}
}

// dialer opens web sockets to the control plane, signed if the node has credentials.
type dialer struct {
	ecs         discoverer
	cluster     string
	region      string
	instance    func() string           // the ARN of the node's
	credentials aws.CredentialsProvider // nil leaves web sockets unsigned
	web         *http.Client
	// discovered is where the control plane's web sockets were last, or nil.
	discovered atomic.Pointer[ecs.DiscoverPollEndpointOutput]
	// skew is how far the control plane's clock is ahead of this machine's, as far as it matters.
	skew atomic.Int64
	log  *slog.Logger
}

// discoverer says where the control plane's web sockets are. It's ECS.
type discoverer interface {
	DiscoverPollEndpoint(context.Context, *ecs.DiscoverPollEndpointInput, ...func(*ecs.Options)) (*ecs.DiscoverPollEndpointOutput, error)
}

// dial opens a web socket of the agent's.
func (a *Agent) dial(ctx context.Context, base string, query url.Values) (*socket, error) {
	query.Set("pintleProcess", a.process)
	conn, address, err := a.connectTo(ctx, base, query)
	if err != nil {
		return nil, err
	}
	return &socket{agent: a, conn: conn, address: address, silence: defaultSilence}, nil
}

// connectTo opens a web socket, and returns its address too.
func (d *dialer) connectTo(ctx context.Context, base string, query url.Values) (conn *websocket.Conn, address string, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialDeadline)
	defer cancel()
	address = strings.TrimSuffix(base, "/") + "/ws?" + query.Encode()
	used := time.Duration(d.skew.Load())
	conn, response, err := d.open(ctx, address)
	if err != nil && d.learnSkew(response, used) {
		conn, response, err = d.open(ctx, address)
	}
	if err != nil {
		return nil, "", readRefusal(response, err)
	}
	conn.SetReadLimit(acs.MaxFrame)
	return conn, address, nil
}

func (d *dialer) open(ctx context.Context, address string) (*websocket.Conn, *http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := d.sign(ctx, r, nil); err != nil {
		return nil, nil, err
	}
	return websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: d.web, HTTPHeader: r.Header})
}

// maxSkew is how wrong a clock may be for signatures. AWS's limit is five minutes.
const maxSkew = 4 * time.Minute

// learnSkew learns from a refusal that this machine's clock is wrong by something else than what was used, and so whether another try is worth
// it. The SDK's clients do the same.
func (d *dialer) learnSkew(response *http.Response, used time.Duration) bool {
	if response == nil {
		return false
	}
	theirs, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return false
	}
	skew := time.Until(theirs)
	if (skew - used).Abs() < maxSkew {
		return false
	}
	d.skew.Store(int64(skew))
	d.log.Warn("this machine's clock isn't the control plane's; what it signs has the other's time", "off_by", -skew.Round(time.Second))
	return true
}

// endpoints asks the control plane where its web sockets are. If that doesn't answer in time, they're where they were, as with Amazon's
// agent.
func (d *dialer) endpoints(ctx context.Context) (*ecs.DiscoverPollEndpointOutput, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverDeadline)
	defer cancel()
	instance := d.instance()
	out, err := d.ecs.DiscoverPollEndpoint(ctx, &ecs.DiscoverPollEndpointInput{
		Cluster:           &d.cluster,
		ContainerInstance: &instance,
	})
	if err == nil {
		d.discovered.Store(out)
		return out, nil
	}
	if known := d.discovered.Load(); known != nil && ctx.Err() != nil {
		return known, nil
	}
	return nil, err
}

func (d *dialer) sign(ctx context.Context, r *http.Request, body []byte) error {
	if d.credentials == nil {
		return nil
	}
	c, err := d.credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("the node's credentials: %w", err)
	}
	sum := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, c, r, hex.EncodeToString(sum[:]), "ecs", d.region, time.Now().Add(time.Duration(d.skew.Load())))
}

// read returns the next message. It skips messages that this version doesn't know. It fails once the control plane has missed two
// heartbeats, a little before that gives up on the node.
func (s *socket) read(ctx context.Context) (acs.Message, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, s.silence)
		_, b, err := s.conn.Read(limited)
		cancel()
		if err != nil {
			return nil, err
		}
		m, err := acs.Decode(b)
		if beat, ok := m.(*acs.HeartbeatMessage); ok && beat.IntervalMS > 0 {
			s.silence = time.Duration(beat.IntervalMS) * time.Millisecond * 5 / 2
		}
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
