// Package nodelink is the control plane's end of the node protocol. A node gets its tasks over the ACS web socket and
// reports over the TCS one. For each connected node a session compares what the store wants of the node with what the
// node was told, and sends the difference. A session remembers nothing that a reconnect couldn't find again. A node has
// one socket of each kind, so registered nodes bound their number. The package places nothing and runs nothing.
package nodelink

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Options configures a Link.
type Options struct {
	Now func() time.Time // nil means time.Now
	// Verify checks a SigV4 signature for the service ecs and returns who signed; nil accepts any. Method, path, query
	// and host are the web socket's. A frame has its own headers and body.
	Verify func(ctx context.Context, method, path, rawQuery, host string, h http.Header, body []byte) (call.Identity, error)
	// Credentials makes credentials of a role for a task. It returns nil if it has none to give. roleType is
	// acs.TaskRole or acs.ExecutionRole. Their id must stay the same for a task and role type, because containers learn
	// it once. It must be hard to guess, because it grants access to the credentials.
	Credentials func(t *state.Task, roleArn, roleType string) *acs.IAMRoleCredentials
	// Admitted is told of the request of each web socket whose node has shown who it is; nil tells nobody.
	Admitted func(context.Context)
	// Observe receives the metrics and GPU telemetry of every node as they arrive. It must not block.
	Observe func(instanceArn string, m acs.Message)
	// Accepted is told of each task that a node has taken on, and when it was sent and acknowledged; nil tells nobody.
	Accepted func(taskArn string, sent, acknowledged time.Time)
	// Instance makes credentials of an EC2 instance's role for it; nil makes none.
	Instance func(instanceID, roleArn, roleID string) *acs.IAMRoleCredentials
	// Account is whose nodes these are.
	Account account.Account
	// Mirrors are hosts of registries that the account's own stands in for, each with the prefix of its repositories here.
	Mirrors map[string]string
	// Heartbeat is the time between our heartbeats. A node that misses three counts as disconnected. Default and maximum are 8 s, so
	// that a dead machine gets no task after 30 s.
	Heartbeat time.Duration
	// Resend is how long a node may take to acknowledge. 0 means 30 s.
	Resend time.Duration
	Log    *slog.Logger
}

const (
	defaultHeartbeat = 8 * time.Second
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
	if opts.Accepted == nil {
		opts.Accepted = func(string, time.Time, time.Time) {}
	}
	if opts.Admitted == nil {
		opts.Admitted = func(context.Context) {}
	}
	l := &Link{store: store, opts: opts, mux: http.NewServeMux(), sockets: map[address]*socket{}, telemetry: map[string]Telemetry{}}
	l.mux.HandleFunc("GET /acs/ws", l.serveACS)
	l.mux.HandleFunc("GET /tcs/ws", l.serveTCS)
	return l
}

// heartbeat returns a heartbeat, which says when the next one comes.
func (l *Link) heartbeat() *acs.HeartbeatMessage {
	return &acs.HeartbeatMessage{Healthy: true, IntervalMS: l.opts.Heartbeat.Milliseconds()}
}

func (l *Link) ServeHTTP(w http.ResponseWriter, r *http.Request) { l.mux.ServeHTTP(w, r) }

// Reset marks every node disconnected as of now. A control plane that has just started has no connections, and nodes
// aren't to blame for the time it was away itself.
func (l *Link) Reset(ctx context.Context) error {
	return l.disconnect(ctx, func(row *state.ContainerInstance) bool { return row.AgentConnected || row.DisconnectedAt != nil })
}

func (l *Link) disconnect(ctx context.Context, which func(*state.ContainerInstance) bool) error {
	return l.mark(ctx, which, func(row *state.ContainerInstance) *state.ContainerInstance { return row.Disconnected(l.now()) })
}

// mark changes those of the registered nodes' rows that are meant.
func (l *Link) mark(ctx context.Context, which func(*state.ContainerInstance) bool, as func(*state.ContainerInstance) *state.ContainerInstance) error {
	return l.store.Update(ctx, func(tx *state.Tx) error {
		for _, row := range slices.Collect(tx.ContainerInstances.All()) {
			if isRegistered(row) && which(row) {
				tx.ContainerInstances.Put(as(row))
			}
		}
		return nil
	})
}

const (
	// lookEvery is the time between two looks for nodes that seem connected and aren't, or have gone.
	lookEvery = 5 * time.Second
	// awayAfter is how long a node may be disconnected before its tasks' names lead to others: longer than an agent takes to start anew, or all of
	// them to find a new control plane.
	awayAfter = 10 * time.Second
)

// Run marks nodes disconnected whose session ended while nothing could be written, and away those that have been disconnected for a while. It
// runs until ctx ends.
func (l *Link) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for row := range l.store.View().ContainerInstances.All() {
			if !isRegistered(row) || !l.isForgotten(row) && !l.isGone(row) {
				continue
			}
			if err := l.disconnect(ctx, l.isForgotten); err != nil {
				return err
			}
			if err := l.markAway(ctx); err != nil {
				return err
			}
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// markAway marks the nodes that are gone.
func (l *Link) markAway(ctx context.Context) error {
	return l.mark(ctx, l.isGone, func(row *state.ContainerInstance) *state.ContainerInstance {
		away := row.Clone()
		away.Away = true
		return away
	})
}

// isGone reports whether a node has been disconnected for a while, and isn't marked so.
func (l *Link) isGone(row *state.ContainerInstance) bool {
	return !row.AgentConnected && !row.Away && row.DisconnectedAt != nil && l.now().Sub(*row.DisconnectedAt) >= awayAfter
}

// isForgotten reports whether a node seems connected, and has no session.
func (l *Link) isForgotten(row *state.ContainerInstance) bool {
	return row.AgentConnected && !l.hasSession(*row.ContainerInstanceArn)
}

// hasSession reports whether a node has a session.
func (l *Link) hasSession(instanceArn string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sockets[address{kindACS, instanceArn}] != nil
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

// now returns the time as rows keep it.
func (l *Link) now() time.Time { return l.opts.Now().UTC().Truncate(time.Millisecond) }
