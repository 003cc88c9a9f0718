package nodelink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// readDeadline is how long a node may be silent: it answers every heartbeat.
const readDeadline = 3 * time.Minute

// session is one node's ACS connection.
type session struct {
	link     *Link
	conn     *websocket.Conn
	cancel   context.CancelFunc
	instance string
	cluster  string
	acks     chan string // ids of acknowledged messages, for the telling loop
	log      *slog.Logger

	// sent is what the node was told of each task. The telling loop alone uses it.
	sent map[string]*sent
}

// sent is the last that the node was told of one task.
type sent struct {
	desired string
	message string
	at      time.Time
	acked   bool
}

// run marks the node connected, and tells and hears until the connection ends.
func (s *session) run(ctx context.Context, version, hash, docker string) error {
	if err := s.markConnected(ctx, version, hash, docker); err != nil {
		return err
	}
	s.log.Info("node connected", "agent_version", version)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.hear(ctx) })
	g.Go(func() error { return s.tell(ctx) })
	err := g.Wait()
	if errors.Is(err, context.Canceled) {
		return errReplaced
	}
	return err
}

func (s *session) markConnected(ctx context.Context, version, hash, docker string) error {
	return s.change(ctx, func(row *state.ContainerInstance) {
		row.AgentConnected, row.DisconnectedAt = true, nil
		row.VersionInfo = &types.VersionInfo{AgentVersion: given(version), AgentHash: given(hash), DockerVersion: given(docker)}
	})
}

func (s *session) markDisconnected() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the session's own is over
	defer cancel()
	err := s.change(ctx, func(row *state.ContainerInstance) { *row = *disconnected(row, s.link.opts.Now()) })
	if err != nil && !errors.Is(err, state.ErrClosed) {
		s.log.Error("cannot mark the node disconnected", "error", err)
	}
}

// change changes the node's row.
func (s *session) change(ctx context.Context, change func(*state.ContainerInstance)) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ContainerInstances.Get(s.instance)
		if old == nil {
			return fmt.Errorf("container instance %s is gone", s.instance)
		}
		row := *old
		change(&row)
		row.Version++
		tx.ContainerInstances.Put(&row)
		return nil
	})
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// tell sends the manifest, then whatever of the store's wishes the node has not been told, then a
// heartbeat now and then.
func (s *session) tell(ctx context.Context) error {
	if err := s.sendManifest(ctx, s.link.store.View()); err != nil {
		return err
	}
	beat := time.NewTicker(s.link.opts.Heartbeat)
	defer beat.Stop()
	if err := s.send(ctx, &acs.HeartbeatMessage{MessageID: s.messageID(), Healthy: true}); err != nil {
		return err
	}
	for {
		v := s.link.store.Watch()
		if err := s.sendPayload(ctx, v); err != nil {
			return err
		}
		if err := s.wait(ctx, v, beat.C); err != nil {
			return err
		}
	}
}

// wait returns when the store, an acknowledgement or the clock gives something to do.
func (s *session) wait(ctx context.Context, v *state.View, beat <-chan time.Time) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	changed := v.ChangedCh(watching)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			return ctx.Err()
		case id := <-s.acks:
			s.acknowledged(id)
		case <-beat:
			return s.send(ctx, &acs.HeartbeatMessage{MessageID: s.messageID(), Healthy: true})
		}
	}
}

func (s *session) acknowledged(message string) {
	for _, t := range s.sent {
		if t.message == message {
			t.acked = true
		}
	}
}

func (s *session) messageID() string {
	return strconv.FormatInt(s.link.nextSeq(), 36) + "-" + s.instance[max(0, len(s.instance)-8):]
}

func (s *session) send(ctx context.Context, m acs.Message) error {
	b, err := acs.Encode(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // a node that takes nothing is no node
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, b)
}

// sendManifest lists what should run on the node, so that it asks about anything else that runs.
func (s *session) sendManifest(ctx context.Context, v *state.View) error {
	seq := s.link.nextSeq()
	m := &acs.TaskManifestMessage{
		MessageID: s.messageID(), ClusterArn: s.cluster, ContainerInstanceArn: s.instance,
		GeneratedAt: s.link.opts.Now().UnixMilli(), Timeline: seq, Tasks: []acs.TaskIdentifier{},
	}
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		if shouldRun(t) {
			m.Tasks = append(m.Tasks, acs.TaskIdentifier{TaskArn: *t.TaskArn, DesiredStatus: "RUNNING", TaskClusterArn: s.cluster})
		}
	}
	return s.send(ctx, m)
}

// shouldRun says whether a task should run on its node, or is about to.
func shouldRun(t *state.Task) bool { return t.Holds() && *t.DesiredStatus == "RUNNING" }

// maxTasks bounds the tasks of one payload, and so its size.
const maxTasks = 20

// sendPayload tells the node of tasks to start or stop that it has not been told of, or has not
// acknowledged for a while. A task that the node has reported RUNNING is never sent as new: if its
// containers are gone, the node says so, and they must not run twice.
func (s *session) sendPayload(ctx context.Context, v *state.View) error {
	now := s.link.opts.Now()
	wanted := map[string]*sent{}
	var due []acs.Task
	var names []string
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		desired := toTell(t)
		if desired == "" {
			continue
		}
		old := s.sent[*t.TaskArn]
		if old != nil && old.desired == desired && (old.acked || now.Sub(old.at) < s.link.opts.Resend) {
			wanted[*t.TaskArn] = old
			continue
		}
		if len(due) == maxTasks {
			continue // the next round sends it: this one's sending changes what is due
		}
		payload, err := s.payload(v, t)
		if err != nil {
			s.log.Error("cannot tell the node of a task", "task", *t.TaskArn, "error", err)
			continue
		}
		due = append(due, payload)
		names = append(names, *t.TaskArn)
	}
	s.sent = wanted
	if len(due) == 0 {
		return nil
	}
	seq := s.link.nextSeq()
	m := &acs.PayloadMessage{
		MessageID: s.messageID(), ClusterArn: s.cluster, ContainerInstanceArn: s.instance,
		GeneratedAt: now.UnixMilli(), SeqNum: seq, Timeline: seq, Tasks: due,
	}
	if err := s.send(ctx, m); err != nil {
		return err
	}
	for i, name := range names {
		s.sent[name] = &sent{desired: due[i].DesiredStatus, message: m.MessageID, at: now}
	}
	if len(due) == maxTasks {
		return s.sendPayload(ctx, v)
	}
	return nil
}

// toTell is the desired status that the node must know of a task, or "".
func toTell(t *state.Task) string {
	switch {
	case !t.Holds():
		return ""
	case *t.DesiredStatus == "STOPPED":
		return "STOPPED"
	case *t.LastStatus != "RUNNING":
		return "RUNNING"
	}
	return ""
}

func (s *session) payload(v *state.View, t *state.Task) (acs.Task, error) {
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil {
		return acs.Task{}, fmt.Errorf("its task definition %s is gone", *t.TaskDefinitionArn)
	}
	p := Payload(t, td)
	if issue := s.link.opts.Credentials; issue != nil && p.DesiredStatus == "RUNNING" {
		role := aws.ToString(td.TaskRoleArn)
		if t.Overrides != nil && t.Overrides.TaskRoleArn != nil {
			role = *t.Overrides.TaskRoleArn
		}
		if role != "" {
			p.RoleCredentials = issue(*t.TaskArn, role)
		}
	}
	return p, nil
}

// hear reads what the node says.
func (s *session) hear(ctx context.Context) error {
	for {
		b, err := read(ctx, s.conn)
		if err != nil {
			return err
		}
		m, err := acs.Decode(b)
		if err != nil {
			s.log.Warn("ignored a message", "error", err)
			continue
		}
		if err := s.heard(ctx, m); err != nil {
			return err
		}
	}
}

func read(ctx context.Context, conn *websocket.Conn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	_, b, err := conn.Read(ctx)
	return b, err
}

func (s *session) heard(ctx context.Context, m acs.Message) error {
	switch m := m.(type) {
	case *acs.AckRequest:
		select {
		case s.acks <- m.MessageID:
		case <-ctx.Done():
		}
	case *acs.NackRequest:
		s.log.Warn("the node refused a message", "message_id", m.MessageID, "reason", m.Reason)
	case *acs.TaskStopVerificationMessage:
		return s.send(ctx, s.verifyStops(m))
	case *acs.PintleNodeInventory:
		return s.change(ctx, func(row *state.ContainerInstance) { row.GPUs = learn(row.GPUs, m.GPUs) })
	case *acs.PintleTaskNetwork:
		return s.taskNetwork(ctx, m)
	}
	return nil
}

// verifyStops names those of the node's candidates that should not run there.
func (s *session) verifyStops(m *acs.TaskStopVerificationMessage) *acs.TaskStopVerificationAck {
	v := s.link.store.View()
	ack := &acs.TaskStopVerificationAck{MessageID: m.MessageID, GeneratedAt: s.link.opts.Now().UnixMilli(), StopTasks: []acs.TaskIdentifier{}}
	for _, c := range m.StopCandidates {
		t := v.Tasks.Get(c.TaskArn)
		if t != nil && shouldRun(t) && aws.ToString(t.ContainerInstanceArn) == s.instance {
			continue
		}
		c.DesiredStatus = "STOPPED"
		ack.StopTasks = append(ack.StopTasks, c)
	}
	return ack
}

// learn adds what a node tells of its registered devices.
func learn(gpus []state.GPU, devices []acs.GPUDevice) []state.GPU {
	out := slices.Clone(gpus)
	for i := range out {
		for _, d := range devices {
			if d.ID == out[i].ID {
				out[i] = state.GPU{ID: d.ID, Model: d.Model, Simulated: d.Simulated, NUMA: d.NUMA, Links: d.Links}
			}
		}
	}
	return out
}

// taskNetwork shows a task's address as its elastic network interface.
func (s *session) taskNetwork(ctx context.Context, m *acs.PintleTaskNetwork) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Tasks.Get(m.TaskArn)
		if old == nil || aws.ToString(old.ContainerInstanceArn) != s.instance {
			return nil
		}
		t := *old
		t.Attachments, t.Containers = slices.Clone(t.Attachments), slices.Clone(t.Containers)
		for i, a := range t.Attachments {
			details := slices.DeleteFunc(slices.Clone(a.Details), func(d types.KeyValuePair) bool {
				return *d.Name == "privateIPv4Address" || *d.Name == "macAddress"
			})
			t.Attachments[i].Status = aws.String("ATTACHED")
			t.Attachments[i].Details = append(details,
				types.KeyValuePair{Name: aws.String("macAddress"), Value: &m.MacAddress},
				types.KeyValuePair{Name: aws.String("privateIPv4Address"), Value: &m.PrivateIPv4})
			for c := range t.Containers {
				t.Containers[c].NetworkInterfaces = []types.NetworkInterface{{AttachmentId: a.Id, PrivateIpv4Address: &m.PrivateIPv4}}
			}
		}
		t.Version++
		tx.Tasks.Put(&t)
		return nil
	})
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
