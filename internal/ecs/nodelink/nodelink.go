// Package nodelink is the control plane's end of the node protocol: the ACS web socket, over which a
// node gets its tasks, and the TCS one, over which it reports. For each connected node a session
// compares what the store wants of that node with what it was told, and tells it the difference; it
// remembers nothing that a reconnect would not find again. A node has one socket of each kind, so
// there are never more than registered nodes account for. It places nothing and runs nothing.
package nodelink

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// Options are what a Link needs besides the store.
type Options struct {
	Now func() time.Time // time.Now where it is nil
	// Verify checks a SigV4 signature for the service ecs; nil takes any. The method, path, query and
	// host are the web socket's; a frame has headers and a body of its own.
	Verify func(ctx context.Context, method, path, rawQuery, host string, h http.Header, body []byte) error
	// Credentials makes credentials of a role for a task, nil where it has none to give; roleType is
	// acs.TaskRole or acs.ExecutionRole. Their id has to stay the same for a task and role type, because
	// containers learn it once, and must not be guessed, because it opens the credentials.
	Credentials func(taskArn, roleArn, roleType string) *acs.IAMRoleCredentials
	// Observe hears the metrics and the GPU telemetry of every node as they come; it must not block.
	Observe func(instanceArn string, m acs.Message)
	// Heartbeat is how often a node hears from us, at most and by default 20 s: an agent hangs up after 60.
	Heartbeat time.Duration
	// Resend is how long a node may take to acknowledge; 30 s where it is 0.
	Resend time.Duration
	Log    *slog.Logger
}

const (
	defaultHeartbeat = 20 * time.Second
	defaultResend    = 30 * time.Second
)

// Link serves both web sockets of all nodes. It is an http.Handler for /acs/ws and /tcs/ws.
type Link struct {
	store *state.Store
	opts  Options
	mux   *http.ServeMux

	mu        sync.Mutex
	sockets   map[address]*socket
	telemetry map[string]Telemetry // by container instance ARN
	closed    bool
	running   sync.WaitGroup
}

// New returns a Link over the store.
func New(store *state.Store, opts Options) *Link {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Heartbeat <= 0 || opts.Heartbeat > defaultHeartbeat {
		opts.Heartbeat = defaultHeartbeat
	}
	if opts.Resend <= 0 {
		opts.Resend = defaultResend
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	l := &Link{store: store, opts: opts, mux: http.NewServeMux(), sockets: map[address]*socket{}, telemetry: map[string]Telemetry{}}
	l.mux.HandleFunc("GET /acs/ws", l.serveACS)
	l.mux.HandleFunc("GET /tcs/ws", l.serveTCS)
	return l
}

// ServeHTTP is http.Handler's.
func (l *Link) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.mux.ServeHTTP(w, r) }

// Reset marks every node disconnected from now on: a control plane that has just started knows no
// connection, and the time that it was away itself is not the nodes' fault.
func (l *Link) Reset(ctx context.Context) error {
	return l.store.Update(ctx, func(tx *state.Tx) error {
		for _, row := range slices.Collect(tx.ContainerInstances.All()) {
			if active(row) && (row.AgentConnected || row.DisconnectedAt != nil) {
				tx.ContainerInstances.Put(row.Disconnected(l.now()))
			}
		}
		return nil
	})
}

// Close ends every socket and waits for them.
func (l *Link) Close() {
	l.mu.Lock()
	l.closed = true
	for _, s := range l.sockets {
		s.stop(errStopping)
	}
	l.mu.Unlock()
	l.running.Wait()
}

// now is the time as rows keep it.
func (l *Link) now() time.Time { return l.opts.Now().UTC().Truncate(time.Millisecond) }
