package nodelink

import (
	"context"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// What Pintle's own agent tells of itself, beyond ECS's API.

// learn adds what a node tells of its registered devices, and says whether it is news.
func learn(row *state.ContainerInstance, devices []acs.GPUDevice) bool {
	old := row.GPUs
	row.GPUs = slices.Clone(old)
	for i, g := range row.GPUs {
		for _, d := range devices {
			if d.ID == g.ID {
				row.GPUs[i] = state.GPU{ID: d.ID, Model: d.Model, Simulated: d.Simulated, NUMA: d.NUMA, Links: d.Links}
			}
		}
	}
	return !reflect.DeepEqual(old, row.GPUs)
}

// taskNetwork shows a task's address as its elastic network interface.
func (s *session) taskNetwork(ctx context.Context, m *acs.PintleTaskNetwork) error {
	return s.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Tasks.Get(m.TaskArn)
		if old == nil || !old.Holds() || *old.ContainerInstanceArn != s.instance {
			return nil
		}
		t := *old
		t.Attachments, t.Containers = slices.Clone(t.Attachments), slices.Clone(t.Containers)
		for i, a := range t.Attachments {
			t.Attachments[i].Status = aws.String("ATTACHED")
			t.Attachments[i].Details = withAddress(a.Details, m)
			for c := range t.Containers {
				t.Containers[c].NetworkInterfaces = []types.NetworkInterface{{AttachmentId: a.Id, PrivateIpv4Address: &m.PrivateIPv4}}
			}
		}
		t.Version++
		tx.Tasks.Put(&t)
		return nil
	})
}

// withAddress puts a task's address into the details of its interface.
func withAddress(details []types.KeyValuePair, m *acs.PintleTaskNetwork) []types.KeyValuePair {
	out := slices.DeleteFunc(slices.Clone(details), func(d types.KeyValuePair) bool {
		return aws.ToString(d.Name) == "privateIPv4Address" || aws.ToString(d.Name) == "macAddress"
	})
	return append(out,
		types.KeyValuePair{Name: aws.String("macAddress"), Value: &m.MacAddress},
		types.KeyValuePair{Name: aws.String("privateIPv4Address"), Value: &m.PrivateIPv4})
}
