package metering

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// A group reports only enabled metrics.
func TestGroups(t *testing.T) {
	store := world(t, "disabled")
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for _, name := range []string{"fleet", "quiet"} {
			g := &state.AutoScalingGroup{
				AutoScalingGroup: types.AutoScalingGroup{
					AutoScalingGroupName: &name,
					MinSize:              aws.Int32(1),
					MaxSize:              aws.Int32(9),
					DesiredCapacity:      aws.Int32(5),
				},
			}
			for metric := range groupSizes(tx.View, g) {
				if name == "fleet" && metric != "GroupMaxSize" {
					g.EnabledMetrics = append(g.EnabledMetrics, types.EnabledMetric{Metric: &metric})
				}
			}
			tx.AutoScalingGroups.Put(g)
			for i, in := range []types.LifecycleState{
				types.LifecycleStateInService, types.LifecycleStateInService, types.LifecycleStatePending,
				types.LifecycleStatePendingWait, types.LifecycleStatePendingProceed,
				types.LifecycleStateStandby, types.LifecycleStateTerminatingWait,
			} {
				row := state.NewInstance(&ec2types.ResponseLaunchTemplateData{}, "us-east-1a", time.Unix(1, 0))
				row.InstanceId = aws.String(name + string(rune('a'+i)))
				row.Member = &state.Member{Group: name, LifecycleState: in}
				tx.Instances.Put(row)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 12*time.Second, func(*Meter) {})
		want := map[string]string{}
		for metric, value := range map[string]string{
			"MinSize":              "1",
			"DesiredCapacity":      "5",
			"InServiceInstances":   "2",
			"PendingInstances":     "3",
			"StandbyInstances":     "1",
			"TerminatingInstances": "1",
			"TotalInstances":       "7",
			"InServiceCapacity":    "2", "PendingCapacity": "3", "StandbyCapacity": "1", "TerminatingCapacity": "1", "TotalCapacity": "7",
		} {
			want["AWS/AutoScaling Group"+metric+" AutoScalingGroupName=fleet"] = value + " None x 1"
		}
		maps.DeleteFunc(got, func(key, _ string) bool { return key[:15] != "AWS/AutoScaling" })
		if !maps.Equal(got, want) {
			t.Errorf("got %v\nof %v", got, slices.Sorted(maps.Keys(want)))
		}
	})
}
