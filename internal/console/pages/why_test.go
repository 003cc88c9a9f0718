package pages

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestWhatIsNotWellSaysWhy: a service that has enough tasks, of which one fails its health checks, and that task; but not one at rest.
func TestWhatIsNotWellSaysWhy(t *testing.T) {
	store := statetest.Open(t)
	p := New(Options{MayList: everybody, Store: store, Now: time.Now})
	v := &visit{ctx: t.Context(), r: httptest.NewRequest("GET", "/console/", nil), pages: p}
	service := types.Service{ServiceArn: aws.String("s"), ServiceName: aws.String("s"), DesiredCount: 1, RunningCount: 1}
	put := func(health types.HealthStatus) {
		statetest.Update(t, store, func(tx *state.Tx) {
			tx.TaskDefinitions.Put(&state.TaskDefinition{TaskDefinition: types.TaskDefinition{
				TaskDefinitionArn: aws.String("f"), Family: aws.String("f"), Status: types.TaskDefinitionStatusActive,
				ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("main"), HealthCheck: &types.HealthCheck{Command: []string{"CMD", "probe"}}}},
			}})
			tx.Services.Put(&state.Service{
				Service: types.Service{ServiceArn: aws.String("s"), ServiceName: aws.String("s"), ClusterArn: aws.String("c"), Status: aws.String("ACTIVE"), DesiredCount: 1},
				Deployments: []state.Deployment{{Deployment: types.Deployment{
					Id: aws.String("d"), TaskDefinition: aws.String("f"), RolloutState: types.DeploymentRolloutStateCompleted}}},
			})
			tx.Tasks.Put(&state.Task{ServiceArn: "s", Task: types.Task{
				TaskArn: aws.String("t"), ClusterArn: aws.String("c"), TaskDefinitionArn: aws.String("f"), ContainerInstanceArn: aws.String("i"), StartedBy: aws.String("d"),
				CreatedAt: new(time.Now()), LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"), HealthStatus: health,
			}})
		})
	}
	for health, want := range map[types.HealthStatus]bool{types.HealthStatusUnhealthy: true, types.HealthStatusHealthy: false} {
		put(health)
		for of, said := range map[string]string{"the service": p.behind(v, service).HTML, "the task": p.waiting(v, "t").HTML} {
			if strings.Contains(said, "CMD probe") != want {
				t.Errorf("%s with a task that is %s says %q", of, health, said)
			}
		}
	}
}
