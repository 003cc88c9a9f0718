// Package nodelink is the control plane's end of the node protocol: the ACS web socket, over which a
// node gets its tasks, and the TCS one, over which it reports. For each connected node a session
// compares what the store wants of that node with what it was told, and tells it the difference; it
// remembers nothing that a reconnect would not find again. It places nothing and runs nothing.
package nodelink

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// Options are what a Link needs besides the store.
type Options struct {
	Now func() time.Time
	// Verify checks a SigV4 signature for the service ecs; nil takes any. The method, path, query and
	// host are the web socket's; a frame has headers and a body of its own.
	Verify func(ctx context.Context, method, path, rawQuery, host string, h http.Header, body []byte) error
	// Credentials makes a role's credentials for a task; nil gives tasks none.
	Credentials func(taskArn, roleArn string) *acs.IAMRoleCredentials
	// Heartbeat is how often a node hears from us; 20 s where it is 0. An agent hangs up after 60.
	Heartbeat time.Duration
	// Resend is how long a node may take to acknowledge; 30 s where it is 0.
	Resend time.Duration
	Log    *slog.Logger
}

// Link serves both web sockets of all nodes. It is an http.Handler for /acs/ws and /tcs/ws.
type Link struct {
	store *state.Store
	opts  Options
	mux   *http.ServeMux

	mu        sync.Mutex
	sessions  map[string]*session // by container instance ARN
	telemetry map[string]Telemetry
	lastSeq   int64
	closed    bool
	running   sync.WaitGroup
}

// Telemetry is the newest that a node said of its GPUs.
type Telemetry struct {
	At   time.Time
	GPUs []acs.GPULoad
}

// New returns a Link over the store.
func New(store *state.Store, opts Options) *Link {
	if opts.Heartbeat == 0 {
		opts.Heartbeat = 20 * time.Second
	}
	if opts.Resend == 0 {
		opts.Resend = 30 * time.Second
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	l := &Link{store: store, opts: opts, mux: http.NewServeMux(), sessions: map[string]*session{}, telemetry: map[string]Telemetry{}}
	l.mux.HandleFunc("/acs/ws", l.serveACS)
	l.mux.HandleFunc("/tcs/ws", l.serveTCS)
	return l
}

// ServeHTTP is http.Handler's.
func (l *Link) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.mux.ServeHTTP(w, r) }

// Reset marks every node disconnected: a control plane that has just started knows no connection.
func (l *Link) Reset(ctx context.Context) error {
	return l.store.Update(ctx, func(tx *state.Tx) error {
		for row := range tx.ContainerInstances.All() {
			if row.AgentConnected {
				tx.ContainerInstances.Put(disconnected(row, l.opts.Now()))
			}
		}
		return nil
	})
}

// Close ends every session and waits for them.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	for _, s := range l.sessions {
		s.cancel()
	}
	l.mu.Unlock()
	l.running.Wait()
}

// Telemetry returns the newest that the node said of its GPUs.
func (l *Link) Telemetry(instanceArn string) (Telemetry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.telemetry[instanceArn]
	return t, ok
}

// nextSeq numbers messages to nodes. It grows over restarts too, because the store's revision does,
// and it is far ahead of it: a node drops manifests with a number that it has seen.
func (l *Link) nextSeq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastSeq = max(l.lastSeq+1, l.store.Revision()<<16)
	return l.lastSeq
}

// begin makes s the node's session; the one before it ends.
func (l *Link) begin(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if old := l.sessions[s.instance]; old != nil {
		old.cancel()
	}
	l.sessions[s.instance] = s
	l.running.Add(1)
	return true
}

// end says whether s was still the node's session.
func (l *Link) end(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.running.Done()
	current := l.sessions[s.instance] == s
	if current {
		delete(l.sessions, s.instance)
		delete(l.telemetry, s.instance)
	}
	return current
}

// verify refuses an upgrade whose signature is wrong.
func (l *Link) verify(w http.ResponseWriter, r *http.Request) bool {
	if l.opts.Verify == nil {
		return true
	}
	err := l.opts.Verify(r.Context(), r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, r.Header, nil)
	if err == nil {
		return true
	}
	refuse(w, http.StatusForbidden, "AccessDeniedException", err.Error())
	return false
}

// refuse answers an upgrade as Amazon's agent can read it.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write([]byte(`{"type":"` + code + `","message":{"message":` + quoted(message) + `}}`)) //nolint:errcheck // the node is gone
}

// serveACS runs a node's session for as long as its web socket is open.
func (l *Link) serveACS(w http.ResponseWriter, r *http.Request) {
	if !l.verify(w, r) {
		return
	}
	q := r.URL.Query()
	instance := q.Get("containerInstanceArn")
	row := l.store.View().ContainerInstances.Get(instance)
	if row == nil || aws.ToString(row.Status) == "INACTIVE" {
		refuse(w, http.StatusBadRequest, "InactiveInstanceException", "The container instance "+instance+" is not registered.")
		return
	}
	conn, err := accept(w, r)
	if err != nil {
		return // accept has answered
	}
	defer conn.CloseNow()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &session{
		link: l, conn: conn, cancel: cancel, instance: instance, cluster: row.ClusterArn,
		acks: make(chan string, 64), sent: map[string]*sent{},
		log: l.opts.Log.With("container_instance", instance),
	}
	if !l.begin(s) {
		conn.Close(websocket.StatusGoingAway, "shutting down") //nolint:errcheck // going away either way
		return
	}
	err = s.run(ctx, q.Get("agentVersion"), q.Get("agentHash"), q.Get("dockerVersion"))
	if l.end(s) {
		s.markDisconnected()
	}
	s.log.Info("node disconnected", "reason", err)
	conn.Close(websocket.StatusNormalClosure, "reconnect") //nolint:errcheck // the node may be gone
}

func accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true}) // nodes send no Origin
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(acs.MaxFrame)
	return conn, nil
}

// disconnected is the row of a node whose connection is gone.
func disconnected(row *state.ContainerInstance, now time.Time) *state.ContainerInstance {
	c := *row
	c.AgentConnected = false
	c.DisconnectedAt = &now
	c.Version++
	return &c
}

// errReplaced ends a session whose node has connected anew, or whose control plane stops.
var errReplaced = errors.New("the node has connected anew, or the control plane stops")
