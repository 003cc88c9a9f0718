package nodelink

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ec2/dns"
	"github.com/pintle/pintle/internal/state"
)

// Messages of Pintle's own agent, beyond ECS's API.

// recordInventory stores what a node reports about its devices. It stops the tasks that hold a faulty device in the
// same transaction. Their stop code is TerminationNotice, ECS's code for what an instance takes down with it: services
// don't count it as a failure of their own.
func (s *session) recordInventory(ctx context.Context, m *acs.PintleNodeInventory) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ContainerInstances.Get(s.instance)
		if !isRegistered(old) {
			return errDeregistered
		}
		row := *old
		if !updateGPUs(&row, m.GPUs) {
			return nil
		}
		tx.ContainerInstances.Put(&row)
		stopOnFaulty(tx, &row, s.link.now())
		return nil
	})
}

// stopOnFaulty stops the tasks that hold a device with a fault.
func stopOnFaulty(tx *state.Tx, row *state.ContainerInstance, now time.Time) {
	reasons := map[string]string{}
	for _, g := range row.GPUs {
		if g.Fault != nil {
			reasons[g.ID] = g.Fault.Reason
		}
	}
	var stopped []*state.Task
	reason := map[*state.Task]string{}
	for t := range tx.Tasks.By(state.TasksByInstance, *row.ContainerInstanceArn) {
		i := slices.IndexFunc(t.GPUs, func(g state.HeldGPU) bool { return reasons[g.ID] != "" })
		if i >= 0 && shouldRun(t) && !t.Deregistering {
			id := t.GPUs[i].ID
			stopped = append(stopped, t)
			reason[t] = "GPU " + id + " is unhealthy: " + reasons[id] + "."
		}
	}
	for _, t := range stopped {
		tx.StopTask(t, types.TaskStopCodeTerminationNotice, reason[t], now)
	}
}

// updateGPUs updates the registered devices from a node's report, and reports whether anything changed.
func updateGPUs(row *state.ContainerInstance, devices []acs.GPUDevice) bool {
	old := row.GPUs
	row.GPUs = slices.Clone(old)
	for i, g := range row.GPUs {
		for _, d := range devices {
			if d.ID == g.ID {
				row.GPUs[i] = state.GPU{
					ID:        d.ID,
					Model:     d.Model,
					Simulated: d.Simulated,
					NUMA:      d.NUMA,
					Links:     d.Links,
					Fault:     fault(d.Fault),
				}
			}
		}
	}
	return !reflect.DeepEqual(old, row.GPUs)
}

func fault(f *acs.GPUFault) *state.GPUFault {
	if f == nil {
		return nil
	}
	return &state.GPUFault{Reason: f.Reason, Since: f.Since}
}

// recordTaskNetwork shows a task's address as its elastic network interface, or notes those of its containers.
func (s *session) recordTaskNetwork(ctx context.Context, m *acs.PintleTaskNetwork) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Tasks.Get(m.TaskArn)
		if old == nil || !old.Holds() || *old.ContainerInstanceArn != s.instance {
			return nil
		}
		t := *old
		if m.PrivateIPv4 == "" {
			if t.BridgeAddresses = m.Bridge; !slices.Equal(m.Bridge, old.BridgeAddresses) {
				tx.Tasks.Put(&t)
			}
			return nil
		}
		t.Attachments = slices.Clone(t.Attachments)
		t.Containers = slices.Clone(t.Containers)
		for i, a := range t.Attachments {
			if !state.IsInterface(a) {
				continue
			}
			t.Attachments[i].Status = aws.String("ATTACHED")
			t.Attachments[i].Details = withAddress(a, m, s.link.opts.Account.Region)
			for c := range t.Containers {
				t.Containers[c].NetworkInterfaces = []types.NetworkInterface{{AttachmentId: a.Id, PrivateIpv4Address: &m.PrivateIPv4}}
			}
		}
		tx.Tasks.Put(&t)
		return nil
	})
}

// withAddress returns the details of a task's interface with its address, and with its id in EC2, which follows from the attachment's.
func withAddress(a types.Attachment, m *acs.PintleTaskNetwork, region string) []types.KeyValuePair {
	id := strings.ReplaceAll(*a.Id, "-", "")
	out := slices.DeleteFunc(slices.Clone(a.Details), func(d types.KeyValuePair) bool { return aws.ToString(d.Name) != "subnetId" })
	add := func(name, value string) { out = append(out, types.KeyValuePair{Name: &name, Value: &value}) }
	add("networkInterfaceId", "eni-"+id[:min(len(id), 17)])
	if m.MacAddress != "" { // a task of plain processes has the machine's address and no interface of its own
		add("macAddress", m.MacAddress)
	}
	add("privateDnsName", dns.Name(m.PrivateIPv4, region))
	add("privateIPv4Address", m.PrivateIPv4)
	return out
}

// ErrAway is returned when the node is not connected, so it can't be told anything.
var ErrAway = errors.New("the node is not connected")

// Fault asks a node to make up an error of a simulated GPU. XID 0 clears the fault of any GPU. The result shows in the
// node's inventory.
func (l *Link) Fault(ctx context.Context, instanceArn, gpu string, xid uint64) error {
	return l.tell(ctx, instanceArn, &acs.PintleGPUFault{GPU: gpu, XID: xid})
}

// Execute asks a node to begin a session of execute-command. The node connects for it, or doesn't if it can't.
func (l *Link) Execute(ctx context.Context, instanceArn string, m *acs.PintleExecute) error {
	return l.tell(ctx, instanceArn, m)
}

// tell sends a message to a node that is connected.
func (l *Link) tell(ctx context.Context, instanceArn string, m acs.Message) error {
	l.mu.Lock()
	s := l.sockets[address{kindACS, instanceArn}]
	l.mu.Unlock()
	if s == nil {
		return ErrAway
	}
	return s.send(ctx, m)
}
