package nodelink

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// session is one node's ACS connection: what the node was told over it. Nothing of that outlives the
// connection, so a node that comes back is told again whatever it has not confirmed in the store.
type session struct {
	*socket
	link    *Link
	cluster string // its ARN
	version *types.VersionInfo
	log     *slog.Logger

	mu   sync.Mutex
	told map[string]*telling // by task ARN

	// The telling loop alone uses these.
	seq      int64
	messages int
	granted  map[grant]time.Time  // when each is to be renewed
	settled  map[*state.Task]bool // rows that leave nothing to tell
	renewAt  time.Time            // when the first of them is; zero until the session has granted all
}

// serveACS runs a node's session for as long as its web socket is open.
func (l *Link) serveACS(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	row := l.admit(w, r, q.Get("clusterArn"), q.Get("containerInstanceArn"))
	if row == nil {
		return
	}
	l.serve(w, r, address{kindACS, *row.ContainerInstanceArn}, func(ctx context.Context, s *socket) error {
		return (&session{
			socket: s, link: l, cluster: row.ClusterArn, version: versionInfo(q),
			log:  l.opts.Log.With("container_instance", s.instance),
			told: map[string]*telling{}, settled: map[*state.Task]bool{}, granted: map[grant]time.Time{},
		}).run(ctx)
	})
}

// run marks the node connected, tells and hears until the connection ends, and marks it disconnected.
func (s *session) run(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.log.Info("node connected", "agent_version", aws.ToString(s.version.AgentVersion))
	defer s.disconnect(context.WithoutCancel(ctx))
	return s.socket.run(ctx, s.tell, s.hear)
}

func (s *session) connect(ctx context.Context) error {
	return s.change(ctx, func(row *state.ContainerInstance) *state.ContainerInstance { return row.Connected(s.version) })
}

// disconnect marks the node disconnected, unless it has connected anew: the transaction of a newer
// session that begins meanwhile comes after this one.
func (s *session) disconnect(ctx context.Context) {
	err := s.change(ctx, func(row *state.ContainerInstance) *state.ContainerInstance {
		if !s.link.current(s.socket) {
			return nil
		}
		return row.Disconnected(s.link.now())
	})
	if err != nil && !errors.Is(err, state.ErrClosed) && !errors.Is(err, errDeregistered) {
		s.log.Error("cannot mark the node disconnected", "error", err)
	}
}

// change puts what change makes of the node's row, if anything.
func (s *session) change(ctx context.Context, change func(*state.ContainerInstance) *state.ContainerInstance) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ContainerInstances.Get(s.instance)
		if !active(old) {
			return errDeregistered
		}
		if row := change(old); row != nil {
			tx.ContainerInstances.Put(row)
		}
		return nil
	})
}

// tell sends the manifest and then, again and again, whatever the store wants that the node has not
// been told, with a heartbeat now and then.
func (s *session) tell(ctx context.Context) error {
	if err := s.sendManifest(ctx, s.link.store.View()); err != nil {
		return err
	}
	beat := time.NewTicker(s.link.opts.Heartbeat)
	defer beat.Stop()
	if err := s.sendHeartbeat(ctx); err != nil {
		return err
	}
	for {
		v := s.link.store.Watch()
		if !active(v.ContainerInstances.Get(s.instance)) {
			return errDeregistered
		}
		if err := s.sendTasks(ctx, v); err != nil {
			return err
		}
		if err := s.renewCredentials(ctx, v); err != nil {
			return err
		}
		if err := s.wait(ctx, v, beat.C); err != nil {
			return err
		}
	}
}

// wait returns when the store has changed or a heartbeat was due, which is also when what was not
// acknowledged is looked at again.
func (s *session) wait(ctx context.Context, v *state.View, beat <-chan time.Time) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	select {
	case <-v.ChangedCh(watching):
		return ctx.Err()
	case <-beat:
		return s.sendHeartbeat(ctx)
	}
}

func (s *session) sendHeartbeat(ctx context.Context) error {
	return s.send(ctx, &acs.HeartbeatMessage{MessageID: s.messageID(), Healthy: true})
}

// nextSeq numbers payloads and manifests: a node drops a manifest that is not newer than what it has seen.
// It grows over reconnects and restarts because the time does, also where the store was lost or an older
// one restored; and where the clock was put back because the store's revision does, which each session
// begins by raising. Microseconds, since a session sends less than one message in each.
func (s *session) nextSeq() int64 {
	s.seq = max(s.seq+1, s.link.store.Revision()<<20, s.link.opts.Now().UnixMicro())
	return s.seq
}

// messageID is new for each message: its session's first number, and a count.
func (s *session) messageID() string {
	s.messages++
	return strconv.FormatInt(s.seq, 36) + "-" + strconv.Itoa(s.messages)
}

// hear takes one frame from the node.
func (s *session) hear(ctx context.Context, b []byte) error {
	m, err := acs.Decode(b)
	if err != nil {
		s.log.Warn("ignored a message", "error", err)
		return nil
	}
	switch m := m.(type) {
	case *acs.AckRequest:
		s.acknowledged(m.MessageID)
	case *acs.NackRequest:
		s.log.Warn("the node refused a message", "message_id", m.MessageID, "reason", m.Reason)
	case *acs.TaskStopVerificationMessage:
		return s.send(ctx, s.verifyStops(m))
	case *acs.PintleNodeInventory:
		return s.inventory(ctx, m)
	case *acs.PintleTaskNetwork:
		return s.taskNetwork(ctx, m)
	}
	return nil
}

func versionInfo(q url.Values) *types.VersionInfo {
	return &types.VersionInfo{
		AgentVersion: given(q.Get("agentVersion")), AgentHash: given(q.Get("agentHash")), DockerVersion: given(q.Get("dockerVersion")),
	}
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
