// Package sessions joins the two ends of execute-command's sessions: the client's web socket and the node's. It passes messages on and reads
// none of them. What a session needs to go on after a lost connection the two ends have, so a control plane that restarts finds the sessions
// again once their nodes connect.
package sessions

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// Nodes are those of the control plane. Package nodelink has them.
type Nodes interface {
	// Execute asks a node to connect for a session.
	Execute(ctx context.Context, instanceArn string, m *acs.PintleExecute) error
	// Admit returns the container instance that a node connects as; nil if it answered with a refusal.
	Admit(http.ResponseWriter, *http.Request) *state.ContainerInstance
}

// Options are what sessions need of the control plane.
type Options struct {
	Nodes Nodes
	// Admitted is told of the request of each client's web socket that has shown its session's token; nil tells nobody.
	Admitted func(context.Context)
	Log      *slog.Logger
}

const (
	// arrival is how long a node may take to connect for a new session, for which it starts a process.
	arrival = 30 * time.Second
	// absence is how long a node may be away in the middle of one. The node gives up no sooner if its client is away.
	absence = 90 * time.Second
	// most is how many sessions there may be at once, and mostOfNode those that a node may say it has. Agents take no more.
	most       = 2048
	mostOfNode = 128
)

// The errors of sessions.
var (
	// ErrAway means that a node isn't connected, or doesn't take the session.
	ErrAway = errors.New("the node doesn't connect for the session")
	// ErrTooMany means that there are too many sessions.
	ErrTooMany = errors.New("too many sessions")
	// ErrOver means that there is no such session.
	ErrOver = errors.New("the session is over")
)

// Sessions are all sessions of a control plane.
type Sessions struct {
	store *state.Store
	opts  Options

	mu     sync.Mutex
	all    map[string]*session
	closed bool
}

// session is a session. The mutex of Sessions guards it.
type session struct {
	id        string
	token     string // what a client shows; "" lets none in before it has asked to resume
	instance  string // the ARN of the node's
	began     time.Time
	node      *end
	client    *end
	arrived   chan struct{} // closed when the node has connected for the first time
	isThere   bool          // arrived is closed
	isOver    bool          // its node need not come back
	departure *time.Timer   // forgets the session if the node stays away
	telling   sync.Mutex    // held to tell the node of the client
}

// New returns the sessions of the store's tasks, of which there are none yet.
func New(store *state.Store, o Options) *Sessions {
	if o.Admitted == nil {
		o.Admitted = func(context.Context) {}
	}
	return &Sessions{store: store, opts: o, all: map[string]*session{}}
}

// Begin begins a session in a task: it asks the task's node to connect, and waits for that. It returns the session's id, and the token that
// lets the client in.
func (s *Sessions) Begin(ctx context.Context, t *state.Task, m *acs.PintleExecute) (id, token string, err error) {
	m.SessionID = "ecs-execute-command-" + randomName()
	m.TaskArn = *t.TaskArn
	one := &session{
		id: m.SessionID, token: randomName() + randomName(), instance: aws.ToString(t.ContainerInstanceArn), began: time.Now(),
		arrived: make(chan struct{}),
	}
	if err := s.add(one); err != nil {
		return "", "", err
	}
	if err := s.opts.Nodes.Execute(ctx, one.instance, m); err != nil {
		s.forget(one)
		return "", "", ErrAway
	}
	select {
	case <-one.arrived:
		return one.id, one.token, nil
	case <-time.After(arrival):
		err = ErrAway
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.forget(one)
	return "", "", err
}

// randomName returns 26 letters and digits that nobody can guess.
func randomName() string { return strings.ToLower(rand.Text()) }

func (s *Sessions) add(one *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.all) >= most {
		return ErrTooMany
	}
	s.all[one.id] = one
	return nil
}

// Resume returns a new token for a session whose client has lost its connection. The old one is void.
func (s *Sessions) Resume(id string) (token string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[id]
	if one == nil || one.isOver {
		return "", ErrOver
	}
	one.token = randomName() + randomName()
	return one.token, nil
}

// Terminate ends a session. One that is over is no error.
func (s *Sessions) Terminate(id string) {
	s.mu.Lock()
	one := s.all[id]
	if one != nil {
		one.isOver = true
	}
	s.mu.Unlock()
	if one != nil {
		s.tell(one)
	}
}

// forget ends a session's connections.
func (s *Sessions) forget(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(one)
}

// forgetAway forgets a session whose node isn't there, and isn't awaited for a new one.
func (s *Sessions) forgetAway(one *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isNew := one.token != "" && !one.isThere; one.node == nil && !isNew {
		s.forgetLocked(one)
	}
}

func (s *Sessions) forgetLocked(one *session) {
	if s.all[one.id] == one {
		delete(s.all, one.id)
	}
	one.isOver = true
	if one.departure != nil {
		one.departure.Stop()
	}
	for _, e := range []*end{one.node, one.client} {
		if e != nil {
			e.hangUp()
		}
	}
}

// Close ends all connections. The sessions go on in their nodes, for a control plane that starts soon.
func (s *Sessions) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, one := range s.all {
		s.forgetLocked(one)
	}
}

// ServeHTTP serves the web sockets of nodes at /exec/ws and those of clients at ClientPath.
func (s *Sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/exec/ws" {
		s.serveNode(w, r)
		return
	}
	s.serveClient(w, r)
}
