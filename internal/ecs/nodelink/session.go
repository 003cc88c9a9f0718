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

// session is one node's ACS connection and what the node was told over it. None of that outlives the connection, so a
// node that comes back is told again whatever it hasn't confirmed in the store.
type session struct {
	*socket
	link    *Link
	ownKey  bool   // the node joined with a token, and has a key of its own
	cluster string // its ARN
	version *types.VersionInfo
	log     *slog.Logger

	mu   sync.Mutex
	sent map[string]*sentTask // by task ARN

	// Only the sending loop uses these.
	seq      int64
	messages int
	granted  map[grant]time.Time  // when to renew each
	settled  map[*state.Task]bool // rows with nothing left to send
	renewAt  time.Time            // when to renew the first; zero until the session has granted all
	machine  []byte               // what the node was told of its machine, encoded, without credentials
	renewsAt time.Time            // when the credentials of the machine's role are due again
	rules    map[string][]byte    // what each task's security groups let pass, encoded, as the node was told
	rulesAt  time.Time            // when they were last looked at
	late     bool                 // changed rules wait until rulesPause is over
	// rulesPause is how long they wait, at least.
	rulesPause time.Duration
	names      toldNames
	prefetch   toldImages
	doomed     map[string]bool // volumes that the node was told to delete
	// drained is when the first of the tasks that drain may be told to stop; zero if none drains.
	drained time.Time
}

// serveACS runs a node's session for as long as its web socket is open.
func (l *Link) serveACS(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	row, who := l.admit(w, r, q.Get("clusterArn"), q.Get("containerInstanceArn"))
	if row == nil {
		return
	}
	l.serve(w, r, address{kindACS, *row.ContainerInstanceArn}, func(ctx context.Context, s *socket) error {
		return (&session{
			socket:  s,
			link:    l,
			ownKey:  who.Node,
			cluster: row.ClusterArn,
			version: versionInfo(q),
			log:     l.opts.Log.With("container_instance", s.instance),
			sent:    map[string]*sentTask{},
			settled: map[*state.Task]bool{},
			granted: map[grant]time.Time{},
			rules:   map[string][]byte{},
			doomed:  map[string]bool{},
		}).run(ctx)
	})
}

// run marks the node connected, sends and receives until the connection ends, and marks it disconnected.
func (s *session) run(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.log.Info("node connected", "agent_version", aws.ToString(s.version.AgentVersion))
	defer s.disconnect(context.WithoutCancel(ctx))
	return s.socket.run(ctx, s.sendUpdates, s.receive)
}

func (s *session) connect(ctx context.Context) error {
	return s.change(ctx, func(row *state.ContainerInstance) *state.ContainerInstance { return row.Connected(s.version) })
}

// disconnect marks the node disconnected, unless it has connected again. A newer session that begins meanwhile has its
// transaction after this one.
func (s *session) disconnect(ctx context.Context) {
	err := s.change(ctx, func(row *state.ContainerInstance) *state.ContainerInstance {
		if !s.link.isCurrent(s.socket) {
			return nil
		}
		return row.Disconnected(s.link.now())
	})
	if err != nil && !errors.Is(err, state.ErrClosed) && !errors.Is(err, errDeregistered) {
		s.log.Error("cannot mark the node disconnected", "error", err)
	}
}

// change stores the row that the function change returns, unless it's nil.
func (s *session) change(ctx context.Context, change func(*state.ContainerInstance) *state.ContainerInstance) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ContainerInstances.Get(s.instance)
		if !isRegistered(old) {
			return errDeregistered
		}
		if row := change(old); row != nil {
			tx.ContainerInstances.Put(row)
		}
		return nil
	})
}

// sendUpdates sends the manifest, and then keeps sending whatever the store wants that the node hasn't been told, with
// a heartbeat now and then.
func (s *session) sendUpdates(ctx context.Context) error {
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
		if !isRegistered(v.ContainerInstances.Get(s.instance)) {
			return errDeregistered
		}
		if err := s.sendInstance(ctx, v); err != nil {
			return err
		}
		if err := s.sendNames(ctx, v); err != nil { // before the tasks that may ask for them
			return err
		}
		if err := s.sendTasks(ctx, v); err != nil {
			return err
		}
		if err := s.sendVolumes(ctx, v); err != nil {
			return err
		}
		if err := s.sendPrefetch(ctx, v); err != nil {
			return err
		}
		if err := s.renewCredentials(ctx, v); err != nil {
			return err
		}
		if err := s.sendRules(ctx, v); err != nil {
			return err
		}
		if err := s.wait(ctx, v, beat.C); err != nil {
			return err
		}
	}
}

// wait returns when the store has changed or a heartbeat was due, or when rules or names are late. The heartbeat is also when
// unacknowledged messages are looked at again. Rules or names that have changed, and stops, may have to wait a little.
func (s *session) wait(ctx context.Context, v *state.View, beat <-chan time.Time) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var due, drained <-chan time.Time
	switch {
	case s.names.late:
		due = time.After(namesPause)
	case s.late:
		due = time.After(s.rulesPause)
	case s.prefetch.late:
		due = time.After(prefetchPause)
	}
	if !s.drained.IsZero() {
		drained = time.After(s.drained.Sub(s.link.opts.Now()))
	}
	select {
	case <-v.ChangedCh(watching):
		return ctx.Err()
	case <-due:
		return nil
	case <-drained:
		return nil
	case <-beat:
		return s.sendHeartbeat(ctx)
	}
}

func (s *session) sendHeartbeat(ctx context.Context) error {
	beat := s.link.heartbeat()
	beat.MessageID = s.messageID()
	return s.send(ctx, beat)
}

// nextSeq numbers payloads and manifests. A node drops a manifest that isn't newer than the last one it saw, so the
// number must grow over reconnects and restarts. The clock makes it grow even if the store was lost or an older one
// restored. The store's revision, which each session starts by raising, makes it grow even if the clock was put back.
// The unit is a microsecond, since a session sends less than one message in each.
func (s *session) nextSeq() int64 {
	s.seq = max(s.seq+1, s.link.store.Revision()<<20, s.link.opts.Now().UnixMicro())
	return s.seq
}

// messageID returns a new id for each message: the session's current sequence number and a count.
func (s *session) messageID() string {
	s.messages++
	return strconv.FormatInt(s.seq, 36) + "-" + strconv.Itoa(s.messages)
}

// receive handles one frame from the node.
func (s *session) receive(ctx context.Context, b []byte) error {
	m, err := acs.Decode(b)
	if err != nil {
		s.log.Warn("ignored a message", "error", err)
		return nil
	}
	switch m := m.(type) {
	case *acs.AckRequest:
		s.markAcked(m.MessageID)
	case *acs.NackRequest:
		s.log.Warn("the node refused a message", "message_id", m.MessageID, "reason", m.Reason)
	case *acs.TaskStopVerificationMessage:
		return s.send(ctx, s.verifyStops(m))
	case *acs.PintleNodeInventory:
		return s.recordInventory(ctx, m)
	case *acs.PintleVolumesDeleted:
		return s.forgetVolumes(ctx, m)
	case *acs.PintleTaskNetwork:
		return s.recordTaskNetwork(ctx, m)
	}
	return nil
}

func versionInfo(q url.Values) *types.VersionInfo {
	return &types.VersionInfo{
		AgentVersion:  nonEmpty(q.Get("agentVersion")),
		AgentHash:     nonEmpty(q.Get("agentHash")),
		DockerVersion: nonEmpty(q.Get("dockerVersion")),
	}
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
