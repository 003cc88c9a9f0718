package nodelink

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// telling is the last that the node was told of one task.
type telling struct {
	desired string
	message string
	at      time.Time
	acked   bool
}

// maxTasks bounds the tasks of one payload, and so its size.
const maxTasks = 20

// sendTasks tells the node of tasks to start or stop that it has not been told of, or has not
// acknowledged for a while.
func (s *session) sendTasks(ctx context.Context, v *state.View) error {
	for tasks := range slices.Chunk(s.untold(v), maxTasks) {
		if err := s.sendPayload(ctx, v, tasks); err != nil {
			return err
		}
	}
	return nil
}

// untold is every task that the node has to be told of now. It looks at all of the node's tasks
// whenever one of them changes, but only once at a row that leaves nothing to tell: a row never changes.
func (s *session) untold(v *state.View) []*state.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []*state.Task
	rows := 0
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		rows++
		if s.settled[t] {
			continue
		}
		desired, last := toTell(t), s.told[*t.TaskArn]
		switch {
		case desired == "":
			delete(s.told, *t.TaskArn)
			s.settled[t] = true
		case last == nil || last.desired != desired || !last.acked && s.link.opts.Now().Sub(last.at) >= s.link.opts.Resend:
			due = append(due, t)
		case last.acked:
			s.settled[t] = true
		}
	}
	if len(s.settled) > 2*rows { // most are of rows that were replaced
		clear(s.settled)
	}
	return due
}

// toTell is the desired status that the node must know of a task, or "". A task that the node has
// reported RUNNING is never sent as new: if its containers are gone, the node says so, and they must
// not run twice.
func toTell(t *state.Task) string {
	if !t.Holds() {
		return ""
	}
	if *t.DesiredStatus == "STOPPED" {
		return "STOPPED"
	}
	switch *t.LastStatus {
	case "PROVISIONING", "PENDING", "ACTIVATING":
		return "RUNNING"
	}
	return ""
}

func (s *session) sendPayload(ctx context.Context, v *state.View, tasks []*state.Task) error {
	seq := s.nextSeq()
	m := &acs.PayloadMessage{
		MessageID: s.messageID(), ClusterArn: s.cluster, ContainerInstanceArn: s.instance,
		GeneratedAt: s.link.opts.Now().UnixMilli(), SeqNum: seq, Timeline: seq,
	}
	for _, t := range tasks {
		p, err := s.payload(v, t)
		if err != nil {
			s.log.Error("cannot tell the node of a task", "task", *t.TaskArn, "error", err)
			continue
		}
		m.Tasks = append(m.Tasks, p)
	}
	if len(m.Tasks) == 0 {
		return nil
	}
	s.remember(m) // before it is sent: the acknowledgement may be quick
	return s.send(ctx, m)
}

func (s *session) payload(v *state.View, t *state.Task) (acs.Task, error) {
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil {
		return acs.Task{}, fmt.Errorf("its task definition %s is gone", *t.TaskDefinitionArn)
	}
	p := Payload(t, td)
	if p.DesiredStatus == "RUNNING" {
		p.RoleCredentials = s.grant(t, td, acs.TaskRole)
		p.ExecutionRoleCredentials = s.grant(t, td, acs.ExecutionRole)
	}
	return p, nil
}

func (s *session) remember(m *acs.PayloadMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range m.Tasks {
		s.told[t.Arn] = &telling{desired: t.DesiredStatus, message: m.MessageID, at: s.link.opts.Now()}
	}
}

// acknowledged notes that the node has taken every task of a payload.
func (s *session) acknowledged(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.told {
		if t.message == message {
			t.acked = true
		}
	}
}

// sendManifest lists what should run on the node, so that it asks about anything else that runs.
func (s *session) sendManifest(ctx context.Context, v *state.View) error {
	seq := s.nextSeq()
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
