package metering

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// TestUsage: an instance counts from its launch until it's gone, and once, though it's a node, too. A node that isn't an instance counts as well.
func TestUsage(t *testing.T) {
	store := world(t, "disabled")
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for id, name := range map[string]ec2types.InstanceStateName{
			"i-1": ec2types.InstanceStateNamePending, "i-2": ec2types.InstanceStateNameRunning, "i-3": ec2types.InstanceStateNameShuttingDown,
			"i-4": ec2types.InstanceStateNameTerminated, "i-5": ec2types.InstanceStateNameStopped,
		} {
			row := state.NewInstance(&ec2types.ResponseLaunchTemplateData{InstanceType: "p3.8xlarge"}, "us-east-1a", time.Unix(1, 0)).In(name)
			row.InstanceId = &id
			tx.Instances.Put(row)
		}
		for id, kind := range map[string]string{"i-2": "p3.8xlarge", "own": "g4dn.xlarge"} {
			tx.ContainerInstances.Put(&state.ContainerInstance{
				ContainerInstance: types.ContainerInstance{
					ContainerInstanceArn: aws.String("arn:aws:ecs:r:1:container-instance/prod/" + id), Ec2InstanceId: &id, Status: aws.String("ACTIVE"),
					Attributes: []types.Attribute{{Name: aws.String(state.InstanceTypeAttribute), Value: &kind}},
				},
				ClusterArn: clusterArn, GPUs: []state.GPU{{ID: id}},
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	u := usageOf(store.View())
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 12*time.Second, func(*Meter) {})
		for key, want := range map[string]string{
			" Instances InstanceType=p3.8xlarge":        "3 Count x 1",
			" InstanceSeconds InstanceType=p3.8xlarge":  "30 Seconds x 1",
			" InstanceSeconds InstanceType=g4dn.xlarge": "10 Seconds x 1",
		} {
			if got[namespaceUsage+key] != want {
				t.Errorf("%s: got %q, want %q", strings.TrimSpace(key), got[namespaceUsage+key], want)
			}
		}
		if got[namespaceUsage+" GPUSeconds"] == "" || got[namespaceUsage+" GPUSecondsHeld"] == "" {
			t.Errorf("got %v", got)
		}
	})
	if u.gpus != 3*4+1 || u.held <= 0 || u.held > float64(u.gpus) {
		t.Errorf("%d GPUs, of which tasks hold %v", u.gpus, u.held)
	}
}
