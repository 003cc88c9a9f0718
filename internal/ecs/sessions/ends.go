package sessions

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/datachannel"
	"github.com/pintle/pintle/internal/ecs/nodelink"
)

// ClientPath is where clients connect, as on AWS: the session's id follows.
const ClientPath = "/v1/data-channel/"

const (
	// opening is how long a client may take to show its token, and maxOpening how many bytes.
	opening    = 10 * time.Second
	maxOpening = 8 << 10
	// writeLimit is how long an end may refuse to take a message.
	writeLimit = 30 * time.Second
)

// end is one end's web socket.
type end struct {
	conn *websocket.Conn
	ctx  context.Context
	stop context.CancelFunc
}

func newEnd(ctx context.Context, conn *websocket.Conn) *end {
	e := &end{conn: conn}
	e.ctx, e.stop = context.WithCancel(ctx)
	return e
}

// hangUp ends the web socket. Its reader hears of it.
func (e *end) hangUp() { e.stop() }

// pass passes a message on to the end. One that can't be passed is lost; the protocol's ends send it again.
func (e *end) pass(kind websocket.MessageType, b []byte) {
	ctx, cancel := context.WithTimeout(e.ctx, writeLimit)
	defer cancel()
	if e.conn.Write(ctx, kind, b) != nil {
		e.hangUp()
	}
}

// tell tells the session's node what has become of the client. The last to be told is how it is.
func (s *Sessions) tell(one *session) {
	one.telling.Lock()
	defer one.telling.Unlock()
	s.mu.Lock()
	node := one.node
	e := acs.SessionEvent{Client: acs.ClientDetached}
	switch {
	case one.isOver:
		e.Client = acs.ClientTerminated
	case one.client != nil:
		e.Client = acs.ClientAttached
	}
	s.mu.Unlock()
	if node == nil {
		return
	}
	b, _ := json.Marshal(e) // strings can't fail
	node.pass(websocket.MessageText, b)
}

// serveNode serves a node that connects for a session.
func (s *Sessions) serveNode(w http.ResponseWriter, r *http.Request) {
	row := s.opts.Nodes.Admit(w, r)
	if row == nil {
		return
	}
	one := s.sessionOf(r, *row.ContainerInstanceArn)
	if one == nil {
		nodelink.Refuse(w, "SessionOverException", "There is no such session.")
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		s.forgetAway(one) // Accept has answered
		return
	}
	conn.SetReadLimit(datachannel.MaxMessage)
	e := newEnd(r.Context(), conn)
	if !s.arrive(one, e) {
		conn.CloseNow() //nolint:errcheck // nobody uses it
		return
	}
	s.tell(one)
	err = s.fromNode(one, e)
	s.depart(one, e, websocket.CloseStatus(err) == websocket.StatusNormalClosure)
	conn.CloseNow() //nolint:errcheck // the other end has gone, or will notice
}

// sessionOf returns the session that a node connects for; nil if there is none, or it isn't of that node. One that isn't known may be from
// before a restart: it goes on if its task does, and its client must ask to resume.
func (s *Sessions) sessionOf(r *http.Request, instance string) *session {
	q := r.URL.Query()
	id := q.Get("session")
	t := s.store.View().Tasks.Get(q.Get("taskArn"))
	if t == nil || aws.ToString(t.ContainerInstanceArn) != instance || !t.EnableExecuteCommand || *t.LastStatus == "STOPPED" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[id]
	if one == nil && strings.HasPrefix(id, "ecs-execute-command-") && len(s.all) < most && s.ofLocked(instance) < mostOfNode && !s.closed {
		one = &session{id: id, instance: instance, began: time.Now(), arrived: make(chan struct{})}
		s.all[id] = one
	}
	if one == nil || one.instance != instance || one.isOver {
		return nil
	}
	return one
}

// ofLocked returns how many sessions a node has.
func (s *Sessions) ofLocked(instance string) (n int) {
	for _, one := range s.all {
		if one.instance == instance {
			n++
		}
	}
	return n
}

// arrive notes that a session's node is there.
func (s *Sessions) arrive(one *session, e *end) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.isOver {
		return false
	}
	if one.departure != nil {
		one.departure.Stop()
		one.departure = nil
	}
	if one.node != nil {
		one.node.hangUp()
	}
	one.node = e
	if !one.isThere {
		one.isThere = true
		close(one.arrived)
	}
	return true
}

// depart notes that a session's node has gone. If it said goodbye, the session is over.
func (s *Sessions) depart(one *session, e *end, goodbye bool) {
	e.hangUp()
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.node != e {
		return
	}
	one.node = nil
	if goodbye || one.isOver {
		s.opts.Log.Warn("an execute-command session is over", "session", one.id, "took", time.Since(one.began).Round(time.Millisecond))
		s.forgetLocked(one)
		return
	}
	one.departure = time.AfterFunc(absence, func() { s.forgetAway(one) })
}

// fromNode passes on what the node says, to whoever is the client then.
func (s *Sessions) fromNode(one *session, e *end) error {
	for {
		kind, b, err := e.conn.Read(e.ctx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		client := one.client
		s.mu.Unlock()
		if client != nil {
			client.pass(kind, b)
		}
	}
}

// serveClient serves a client that connects to a session. Anybody may try: the first message must show the token.
func (s *Sessions) serveClient(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has answered
	}
	defer conn.CloseNow() //nolint:errcheck // after it the other end has gone, or will notice
	one := s.opened(r, conn)
	if one == nil {
		conn.Close(websocket.StatusPolicyViolation, "the session or its token isn't known") //nolint:errcheck // as above
		return
	}
	s.opts.Known(r.Context())
	conn.SetReadLimit(datachannel.MaxMessage)
	e := newEnd(r.Context(), conn)
	defer e.hangUp()
	if !s.attach(one, e) {
		return
	}
	s.tell(one)
	s.fromClient(one, e)
	s.detach(one, e)
	s.tell(one)
}

// opened reads a client's first message, and returns the session whose token it shows, or nil.
func (s *Sessions) opened(r *http.Request, conn *websocket.Conn) *session {
	conn.SetReadLimit(maxOpening)
	ctx, cancel := context.WithTimeout(r.Context(), opening)
	defer cancel()
	_, b, err := conn.Read(ctx)
	var o datachannel.Opening
	if err != nil || json.Unmarshal(b, &o) != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[strings.TrimPrefix(r.URL.Path, ClientPath)]
	if one == nil || one.token == "" || subtle.ConstantTimeCompare([]byte(o.TokenValue), []byte(one.token)) == 0 {
		return nil
	}
	return one
}

// attach notes that a session's client is there, in the place of one before it.
func (s *Sessions) attach(one *session, e *end) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.isOver {
		return false
	}
	if one.client != nil {
		one.client.hangUp()
	}
	one.client = e
	return true
}

func (s *Sessions) detach(one *session, e *end) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.client == e {
		one.client = nil
	}
}

// fromClient passes on what the client says. What it says while the node is away is lost.
func (s *Sessions) fromClient(one *session, e *end) {
	for {
		kind, b, err := e.conn.Read(e.ctx)
		if err != nil {
			return
		}
		s.mu.Lock()
		node := one.node
		s.mu.Unlock()
		if node != nil && kind == websocket.MessageBinary { // text is the control plane's own
			node.pass(kind, b)
		}
	}
}

// URL returns where the client of a session connects, if it reached the control plane at an endpoint. It has the form of AWS's.
func URL(endpoint, id string) string {
	return "ws" + strings.TrimPrefix(endpoint, "http") + ClientPath + id + "?role=publish_subscribe"
}
