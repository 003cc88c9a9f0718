package metering

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// TestServiceConnect: traffic is counted for who is reached and for who reaches it, and for nothing that a task doesn't reach.
func TestServiceConnect(t *testing.T) {
	const task = "arn:aws:ecs:r:1:task/prod/one"
	store := world(t, "disabled")
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for _, id := range []string{"srv-1", "srv-2"} {
			tx.DiscoveryServices.Put(&state.DiscoveryService{ID: id, Name: "http-" + id, Endpoint: &state.Endpoint{Owner: "arn:aws:ecs:r:1:service/prod/api"}})
		}
		api := &state.Service{}
		api.ServiceArn = aws.String("arn:aws:ecs:r:1:service/prod/api")
		api.ClusterArn = aws.String("arn:aws:ecs:r:1:cluster/prod")
		api.Status = aws.String(state.ServiceActive)
		tx.Services.Put(api)
		row := *tx.Tasks.Get(task)
		row.Connect = &state.TaskConnect{Reaches: []string{"srv-1"}}
		tx.Tasks.Put(&row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	usage := func(endpoint string) acs.ConnectUsage {
		return acs.ConnectUsage{
			Endpoint: endpoint, Connections: 2, Active: 1, Bytes: 500, Requests: 10, Classes: [6]int64{2: 9, 5: 1}, Targets: 4,
			ResponseTime: acs.StatsSet{Min: 1, Max: 9, Sum: 30, SampleCount: 10},
		}
	}
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			m.Observe(instanceArn, &acs.PublishMetricsRequest{TaskMetrics: []acs.TaskMetric{
				{TaskArn: task, ServiceConnect: []acs.ConnectUsage{usage("srv-1"), usage("srv-2"), usage("srv-3")}},
				{TaskArn: "arn:aws:ecs:r:1:task/prod/two", ServiceConnect: []acs.ConnectUsage{usage("srv-1")}},
			}})
		})
		for _, by := range []string{" DiscoveryName=http-srv-1", " ClusterName=prod DiscoveryName=http-srv-1 ServiceName=api"} {
			for name, want := range map[string]string{
				"RequestCount": "10 Count x 1", "NewConnectionCount": "2 Count x 1", "ActiveConnectionCount": "1 Count x 1",
				"ProcessedBytes": "500 Bytes x 1",
			} {
				if got["AWS/ECS "+name+by] != want {
					t.Errorf("%s%s is %q", name, by, got["AWS/ECS "+name+by])
				}
			}
		}
		for _, by := range []string{" TargetDiscoveryName=http-srv-1", " ClusterName=prod ServiceName=web TargetDiscoveryName=http-srv-1"} {
			for name, want := range map[string]string{
				"HTTPCode_Target_2XX_Count": "9 Count x 1", "HTTPCode_Target_5XX_Count": "1 Count x 1", "RequestCountPerTarget": "2.5 Count x 1",
				"TargetResponseTime": "3 Milliseconds x 10", "TargetProcessedBytes": "500 Bytes x 1",
			} {
				if got["AWS/ECS "+name+by] != want {
					t.Errorf("%s%s is %q", name, by, got["AWS/ECS "+name+by])
				}
			}
		}
		if _, ok := got["AWS/ECS RequestCount DiscoveryName=http-srv-2"]; ok || len(got) > 18+2 {
			t.Errorf("%d metrics: %v", len(got), got)
		}
	})
}
