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

// sentTask is what the node was last told about one task.
type sentTask struct {
	desired string
	message string
	at      time.Time
	acked   bool
}

// maxTasks bounds the tasks of one payload, and so its size.
const maxTasks = 20

// sendTasks sends the tasks to start or stop that the node hasn't been told of, or hasn't acknowledged for a while.
func (s *session) sendTasks(ctx context.Context, v *state.View) error {
	for tasks := range slices.Chunk(s.unsentTasks(v), maxTasks) {
		if err := s.sendPayload(ctx, v, tasks); err != nil {
			return err
		}
	}
	return nil
}

// unsentTasks returns every task to send now. It runs whenever one of the node's tasks changes, but skips rows that it
// found to have nothing left to send: a row never changes.
func (s *session) unsentTasks(v *state.View) []*state.Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []*state.Task
	rows := 0
	now := s.link.opts.Now()
	s.drained = time.Time{}
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		rows++
		if s.settled[t] {
			continue
		}
		desired, last := statusToSend(t), s.sent[*t.TaskArn]
		switch {
		case desired == "":
			delete(s.sent, *t.TaskArn)
			s.settled[t] = true
		case desired == "STOPPED" && drainsUntil(t).After(now):
			if until := drainsUntil(t); s.drained.IsZero() || until.Before(s.drained) {
				s.drained = until
			}
		case last == nil || last.desired != desired || !last.acked && now.Sub(last.at) >= s.link.opts.Resend:
			due = append(due, t)
		case last.acked:
			s.settled[t] = true
		}
	}
	if len(s.settled) > 2*rows { // most rows in there were replaced
		clear(s.settled)
	}
	return due
}

// statusToSend returns the desired status to send for a task, or "" for none. A task that the node has reported RUNNING
// is never sent as new: if its containers are gone the node says so, and they must not run twice.
func statusToSend(t *state.Task) string {
	if !t.Holds() {
		return ""
	}
	if t.Deregistering {
		return "" // it drains first
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
		MessageID:            s.messageID(),
		ClusterArn:           s.cluster,
		ContainerInstanceArn: s.instance,
		GeneratedAt:          s.link.opts.Now().UnixMilli(),
		SeqNum:               seq,
		Timeline:             seq,
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
	s.recordSent(m) // before it's sent: the acknowledgement may be quick
	return s.send(ctx, m)
}

func (s *session) payload(v *state.View, t *state.Task) (acs.Task, error) {
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil {
		return acs.Task{}, fmt.Errorf("its task definition %s is gone", *t.TaskDefinitionArn)
	}
	p := Payload(t, td)
	pinImages(&p, v.RevisionOf(t))
	addAccessPoints(&p, v)
	for i := range p.Containers {
		c := &p.Containers[i]
		c.Image, c.RegistryAuthentication = s.link.opts.mirror(c.Image, c.RegistryAuthentication)
	}
	if p.DesiredStatus == "RUNNING" {
		p.ServiceConnect = serviceConnect(v, t, td)
		p.RoleCredentials = s.grant(t, td, acs.TaskRole)
		p.ExecutionRoleCredentials = s.grant(t, td, acs.ExecutionRole)
		p.NetworkRules = s.newResolver(v).of(t)
		s.noteRules(p.Arn, p.NetworkRules)
		if len(t.SecurityGroups) > 0 && p.NetworkRules == nil {
			s.log.Warn("nobody has created a task's security groups: anything may reach it", "task", p.Arn, "groups", t.SecurityGroups)
		}
	}
	return p, nil
}

func (s *session) recordSent(m *acs.PayloadMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range m.Tasks {
		s.sent[t.Arn] = &sentTask{desired: t.DesiredStatus, message: m.MessageID, at: s.link.opts.Now()}
	}
}

// markAcked notes that the node has taken every task of a payload.
func (s *session) markAcked(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for arn, t := range s.sent {
		if t.message != message {
			continue
		}
		if !t.acked && t.desired == "RUNNING" {
			s.link.opts.Accepted(arn, t.at, s.link.opts.Now())
		}
		t.acked = true
	}
}

// sendManifest lists what should run on the node. The node asks about anything else that runs, and ends what it has once reported and
// doesn't know any more.
func (s *session) sendManifest(ctx context.Context, v *state.View) error {
	seq := s.nextSeq()
	m := &acs.TaskManifestMessage{
		MessageID:            s.messageID(),
		ClusterArn:           s.cluster,
		ContainerInstanceArn: s.instance,
		GeneratedAt:          s.link.opts.Now().UnixMilli(),
		Timeline:             seq,
		Tasks:                []acs.TaskIdentifier{},
	}
	for t := range v.Tasks.By(state.TasksByInstance, s.instance) {
		if !shouldRun(t) {
			continue
		}
		id := acs.TaskIdentifier{TaskArn: *t.TaskArn, DesiredStatus: "RUNNING", TaskClusterArn: *t.ClusterArn}
		if *t.LastStatus == "RUNNING" {
			id.LastStatus = "RUNNING"
		}
		m.Tasks = append(m.Tasks, id)
	}
	return s.send(ctx, m)
}

// shouldRun reports whether a task should run on its node, now or soon. One that drains still should.
func shouldRun(t *state.Task) bool {
	return t.Holds() && (*t.DesiredStatus == "RUNNING" || t.Deregistering)
}

// verifyStops picks the candidates that should not run on the node.
func (s *session) verifyStops(m *acs.TaskStopVerificationMessage) *acs.TaskStopVerificationAck {
	v := s.link.store.View()
	ack := &acs.TaskStopVerificationAck{
		MessageID:   m.MessageID,
		GeneratedAt: s.link.opts.Now().UnixMilli(),
		StopTasks:   []acs.TaskIdentifier{},
	}
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
