package node

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
)

// connectACS keeps up the connection over which tasks come.
func (a *Agent) connectACS(ctx context.Context) error {
	var connected atomic.Bool // at least once: from then on the control plane needn't resend all credentials
	return a.reconnect(ctx, "ACS", func(ctx context.Context) error {
		e, err := a.endpoints(ctx)
		if err != nil {
			return err
		}
		s, err := a.dial(ctx, aws.ToString(e.Endpoint), url.Values{
			"agentHash":            {"pintle"},
			"agentVersion":         {a.config.Version},
			"clusterArn":           {a.config.Cluster},
			"containerInstanceArn": {a.Instance()},
			"dockerVersion":        {a.config.Runtime.Name()},
			"protocolVersion":      {"2"},
			"seqNum":               {"1"},
			"sendCredentials":      {strconv.FormatBool(!connected.Load())},
		})
		if isRefusedAs(err, "InvalidInstanceException") { // the control plane doesn't know us any more
			return errors.Join(err, a.register(ctx))
		}
		if err != nil {
			return err
		}
		defer s.close()
		connected.Store(true)
		return (&acsSession{socket: s}).run(ctx)
	})
}

// acsSession is one ACS connection. One goroutine reads it; others may send.
type acsSession struct {
	*socket
	// highest is the greatest sequence number seen; manifests up to it are stale. It's kept for one connection only, so that a
	// control plane that restarts its numbers is still believed.
	highest int64
}

func (s *acsSession) run(ctx context.Context) error {
	a := s.agent
	a.acs.Store(s)
	defer a.acs.CompareAndSwap(s, nil)
	a.names.Connected()
	if err := s.sendInventory(ctx); err != nil {
		return err
	}
	for arn, n := range a.engine.Networks() {
		a.sendNetwork(arn, n)
	}
	for arn, all := range a.engine.Bridged() {
		a.sendBridged(arn, all)
	}
	for {
		m, err := s.read(ctx)
		if err != nil {
			return err
		}
		if err := s.handle(ctx, m); err != nil {
			return err
		}
	}
}

// sendInventory tells the control plane what the node has, and the health of its GPUs.
func (s *acsSession) sendInventory(ctx context.Context) error {
	a := s.agent
	a.sending.Lock()
	defer a.sending.Unlock()
	return s.send(ctx, &acs.PintleNodeInventory{
		Version:      a.config.Version,
		Runtime:      a.config.Runtime.Name(),
		InstanceType: a.config.InstanceType,
		GPUs:         a.faults.addTo(a.config.GPUs.Devices()),
	})
}

// updateInventory sends the inventory again. Without an open connection, the next one starts with it.
func (a *Agent) updateInventory() {
	s := a.acs.Load()
	if s == nil {
		return
	}
	if err := s.sendInventory(context.Background()); err != nil {
		a.log.Warn("cannot report the GPUs' health", "error", err)
	}
}

// sendNetwork tells the control plane a task's address. Without an open connection, the next one starts with it.
func (a *Agent) sendNetwork(arn string, n engine.Network) {
	s := a.acs.Load()
	if s == nil {
		return
	}
	if err := s.send(context.Background(), &acs.PintleTaskNetwork{TaskArn: arn, PrivateIPv4: n.IP, MacAddress: n.MAC}); err != nil {
		a.log.Warn("cannot report a task's address", "task", arn, "error", err)
	}
}

// sendBridged tells the control plane the addresses of a task's containers in mode bridge, as sendNetwork does.
func (a *Agent) sendBridged(arn string, all []string) {
	s := a.acs.Load()
	if s == nil {
		return
	}
	if err := s.send(context.Background(), &acs.PintleTaskNetwork{TaskArn: arn, Bridge: all}); err != nil {
		a.log.Warn("cannot report the addresses of a task's containers", "task", arn, "error", err)
	}
}

func (s *acsSession) handle(ctx context.Context, m acs.Message) error {
	switch m := m.(type) {
	case *acs.HeartbeatMessage:
		select {
		case s.agent.beats <- struct{}{}:
		default:
		}
		return s.send(ctx, &acs.HeartbeatAckRequest{MessageID: m.MessageID})
	case *acs.PayloadMessage:
		return s.takePayload(ctx, m)
	case *acs.TaskManifestMessage:
		return s.compareManifest(ctx, m)
	case *acs.TaskStopVerificationAck:
		return s.stopTasks(m.StopTasks)
	case *acs.IAMRoleCredentialsMessage:
		return s.takeCredentials(ctx, m)
	case *acs.PintleTaskRules:
		if err := s.agent.engine.SetRules(ctx, m.TaskArn, m.Rules); err != nil {
			s.agent.log.Error("cannot apply the rules of a task's security groups", "task", m.TaskArn, "error", err)
		}
	case *acs.PintlePrefetch:
		if s.agent.config.Prefetch {
			s.agent.engine.Prefetch(m.Images)
		}
	case *acs.PintleDeleteVolumes:
		return s.deleteVolumes(ctx, m.VolumeIDs)
	case *acs.PintleNames:
		if err := s.agent.names.Learn(m); err != nil {
			s.agent.log.Error("cannot write down the names of Cloud Map", "error", err)
		}
	case *acs.PintleExecute:
		s.agent.beginSession(ctx, m)
	case *acs.PintleInstance:
		s.agent.machine.told.Store(m)
	case *acs.PintleGPUFault:
		s.agent.applyFault(m)
	}
	return nil
}

// deleteVolumes deletes volumes that were kept. A node that makes none has none.
func (s *acsSession) deleteVolumes(ctx context.Context, ids []string) error {
	deleted := &acs.PintleVolumesDeleted{}
	for _, id := range ids {
		if v := s.agent.config.BlockVolumes; v != nil {
			if err := v.Delete(id); err != nil {
				s.agent.log.Error("cannot delete a volume", "volume", id, "error", err)
				continue
			}
		}
		deleted.VolumeIDs = append(deleted.VolumeIDs, id)
	}
	return s.send(ctx, deleted)
}

// takePayload takes the tasks, and acknowledges them once all are on disk. An invalid task is reported as stopped and keeps the whole
// message from being acknowledged, as with Amazon's agent.
func (s *acsSession) takePayload(ctx context.Context, m *acs.PayloadMessage) error {
	if m.MessageID == "" || m.ClusterArn == "" || m.ContainerInstanceArn != s.agent.Instance() {
		s.agent.log.Warn("ignored a payload that is not for this node", "message_id", m.MessageID)
		return nil
	}
	s.highest = max(s.highest, m.SeqNum)
	taken := true
	for _, t := range m.Tasks {
		if err := s.agent.engine.Take(t); err != nil {
			taken = false
			s.refuse(ctx, m.ClusterArn, t.Arn, err)
			continue
		}
		s.agent.engine.Remind(t.Arn) // it may have ended long ago
	}
	if !taken {
		return nil // the control plane resends what it still wants
	}
	if err := s.send(ctx, s.newAck(m.MessageID)); err != nil {
		return err
	}
	for _, t := range m.Tasks {
		for _, c := range []*acs.IAMRoleCredentials{t.RoleCredentials, t.ExecutionRoleCredentials} {
			if err := s.ackCredentials(ctx, m.MessageID, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuse reports a task that can never run as stopped. A task that merely couldn't be written isn't reported: it comes again.
func (s *acsSession) refuse(ctx context.Context, cluster, arn string, err error) {
	s.agent.log.Error("cannot take a task", "task", arn, "error", err)
	if _, invalid := errors.AsType[*engine.Invalid](err); !invalid {
		return
	}
	r := engine.Report{TaskArn: arn, Cluster: cluster, Status: "STOPPED", Reason: "UnrecognizedTaskError: " + err.Error()}
	if err := (&reporter{s.agent.config.ECS}).Report(ctx, r); err != nil {
		s.agent.log.Error("cannot report a task's state", "task", arn, "error", err)
	}
}

func (s *acsSession) newAck(message string) *acs.AckRequest {
	return &acs.AckRequest{Cluster: s.agent.config.Cluster, ContainerInstance: s.agent.Instance(), MessageID: message}
}

// compareManifest asks about tasks that run here but aren't in the manifest, and reports the end of tasks that are in it but have ended or
// were lost.
func (s *acsSession) compareManifest(ctx context.Context, m *acs.TaskManifestMessage) error {
	if m.Timeline <= s.highest {
		return nil
	}
	s.highest = m.Timeline
	wanted := map[string]bool{}
	for _, t := range m.Tasks {
		wanted[t.TaskArn] = t.DesiredStatus == "RUNNING"
		s.agent.engine.Remind(t.TaskArn)
		if t.LastStatus == "RUNNING" {
			s.agent.engine.EndLost(t.TaskArn)
		}
	}
	var candidates []acs.TaskIdentifier
	for _, arn := range s.agent.engine.Running() {
		if !wanted[arn] {
			candidates = append(candidates, acs.TaskIdentifier{TaskArn: arn, DesiredStatus: "STOPPED", TaskClusterArn: m.ClusterArn})
		}
	}
	if err := s.send(ctx, s.newAck(m.MessageID)); err != nil || len(candidates) == 0 {
		return err
	}
	return s.send(ctx, &acs.TaskStopVerificationMessage{MessageID: m.MessageID, StopCandidates: candidates})
}

func (s *acsSession) stopTasks(tasks []acs.TaskIdentifier) error {
	for _, t := range tasks {
		if err := s.agent.engine.Stop(t.TaskArn); err != nil {
			return err
		}
	}
	return nil
}

// takeCredentials takes a task's new credentials, and acknowledges them once they're on disk.
func (s *acsSession) takeCredentials(ctx context.Context, m *acs.IAMRoleCredentialsMessage) error {
	if m.RoleCredentials == nil {
		return nil
	}
	if err := s.agent.engine.Refresh(m.TaskArn, m.RoleType, m.RoleCredentials); err != nil {
		s.agent.log.Error("cannot take credentials", "task", m.TaskArn, "error", err)
		return nil
	}
	if m.RoleType != "TaskExecution" {
		s.agent.sessions.Renew(m.TaskArn, m.RoleCredentials)
	}
	return s.ackCredentials(ctx, m.MessageID, m.RoleCredentials)
}

func (s *acsSession) ackCredentials(ctx context.Context, message string, c *acs.IAMRoleCredentials) error {
	if c == nil {
		return nil
	}
	return s.send(ctx, &acs.IAMRoleCredentialsAckRequest{MessageID: message, CredentialsID: c.CredentialsID, Expiration: c.Expiration})
}
