package state_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	scaling "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

func TestSweepForgetsWhatIsOver(t *testing.T) {
	store := statetest.Open(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	task := func(id, status, definition string, ago time.Duration) *state.Task {
		return &state.Task{Task: types.Task{
			TaskArn:           aws.String(id),
			ClusterArn:        aws.String("c"),
			LastStatus:        &status,
			DesiredStatus:     &status,
			TaskDefinitionArn: &definition,
			StoppedAt:         aws.Time(now.Add(-ago)),
		}}
	}
	definition := func(arn string, status types.TaskDefinitionStatus) *state.TaskDefinition {
		return &state.TaskDefinition{TaskDefinition: types.TaskDefinition{TaskDefinitionArn: &arn, Family: aws.String("f"), Status: status}}
	}
	statetest.Update(t, store, func(tx *state.Tx) {
		tx.Tasks.Put(task("old", "STOPPED", "unused", 61*time.Minute))
		tx.Tasks.Put(task("recent", "STOPPED", "used", 59*time.Minute))
		tx.Tasks.Put(task("running", "RUNNING", "kept", 100*time.Hour))
		for name, ago := range map[string]time.Duration{"deregistered": 59 * time.Minute, "long gone": 61 * time.Minute} {
			row := &state.ContainerInstance{ContainerInstance: types.ContainerInstance{
				ContainerInstanceArn: &name,
				Status:               aws.String("ACTIVE"),
			}}
			tx.ContainerInstances.Put(row.Deregistered(now.Add(-ago)))
		}
		tx.ContainerInstances.Put(&state.ContainerInstance{ContainerInstance: types.ContainerInstance{
			ContainerInstanceArn: aws.String("active"),
			Status:               aws.String("ACTIVE"),
		}})
		for id, ago := range map[string]time.Duration{"1": 6*7*24*time.Hour + time.Second, "2": 6*7*24*time.Hour - time.Second} {
			tx.ScalingActivities.Put(&state.ScalingActivity{ScalingActivity: scaling.ScalingActivity{
				ActivityId: &id,
				StartTime:  aws.Time(now.Add(-ago)),
			}})
			tx.GroupActivities.Put(&state.GroupActivity{Activity: autoscaling.Activity{
				ActivityId: &id,
				StartTime:  aws.Time(now.Add(-ago)),
			}})
		}
		tx.IdempotencyTokens.Put(&state.IdempotencyToken{Token: "old", Expires: now.Add(-time.Second)})
		tx.IdempotencyTokens.Put(&state.IdempotencyToken{Token: "good", Expires: now.Add(time.Second)})
		for name, ended := range map[string]*time.Time{"gone": aws.Time(now.Add(-61 * time.Minute)),
			"ended": aws.Time(now.Add(-time.Minute)), "active": nil} {
			row := &state.Service{Service: types.Service{ServiceArn: aws.String(name), ClusterArn: aws.String("c")}, EndedAt: ended}
			row.Deployments = []state.Deployment{{
				Deployment:           types.Deployment{Id: &name, TaskDefinition: aws.String("of " + name)},
				ServiceDeploymentArn: name,
				ServiceRevisionArn:   name,
			}}
			row.TaskSets = []state.TaskSet{{TaskSet: types.TaskSet{TaskDefinition: aws.String("of a set of " + name)}}}
			tx.Services.Put(row)
			tx.ServiceRevisions.Put(&state.ServiceRevision{ServiceRevision: types.ServiceRevision{ServiceRevisionArn: &name}})
			tx.ServiceDeployments.Put(&state.ServiceDeployment{ServiceDeployment: types.ServiceDeployment{
				ServiceDeploymentArn:  &name,
				ServiceArn:            &name,
				TargetServiceRevision: &types.ServiceRevisionSummary{Arn: &name},
				FinishedAt:            aws.Time(now.Add(-91 * 24 * time.Hour)),
			}})
		}
		tx.ServiceDeployments.Put(&state.ServiceDeployment{ServiceDeployment: types.ServiceDeployment{
			ServiceDeploymentArn:  aws.String("replaced"),
			ServiceArn:            aws.String("active"),
			TargetServiceRevision: &types.ServiceRevisionSummary{Arn: aws.String("replaced")},
			FinishedAt:            aws.Time(now.Add(-91 * 24 * time.Hour)),
		}})
		tx.TaskDefinitions.Put(definition("of active", types.TaskDefinitionStatusDeleteInProgress))
		tx.TaskDefinitions.Put(definition("of a set of active", types.TaskDefinitionStatusDeleteInProgress))
		tx.TaskDefinitions.Put(definition("unused", types.TaskDefinitionStatusDeleteInProgress))
		tx.TaskDefinitions.Put(definition("used", types.TaskDefinitionStatusDeleteInProgress))
		tx.TaskDefinitions.Put(definition("kept", types.TaskDefinitionStatusInactive))
	})
	if err := store.Sweep(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	v := store.View()
	for what, there := range map[string]bool{
		"old activity of a service": v.ScalingActivities.Get("1") != nil, "old activity of a group": v.GroupActivities.Get("1") != nil,
		"instance long gone": v.ContainerInstances.Get("long gone") != nil,
		"task old":           v.Tasks.Get("old") != nil, "token old": v.IdempotencyTokens.Get("old") != nil,
		"definition unused": v.TaskDefinitions.Get("unused") != nil,
		"service gone":      v.Services.Get("gone") != nil, "deployment replaced": v.ServiceDeployments.Get("replaced") != nil,
		"its deployment": v.ServiceDeployments.Get("gone") != nil, "its revision": v.ServiceRevisions.Get("gone") != nil,
	} {
		if there {
			t.Errorf("%s is still there", what)
		}
	}
	for what, there := range map[string]bool{
		"activity of a service": v.ScalingActivities.Get("2") != nil, "activity of a group": v.GroupActivities.Get("2") != nil,
		"instance deregistered": v.ContainerInstances.Get("deregistered") != nil,
		"instance active":       v.ContainerInstances.Get("active") != nil,
		"task recent":           v.Tasks.Get("recent") != nil, "task running": v.Tasks.Get("running") != nil,
		"token good":    v.IdempotencyTokens.Get("good") != nil,
		"service ended": v.Services.Get("ended") != nil, "deployment of active": v.ServiceDeployments.Get("active") != nil,
		"definition of active":     v.TaskDefinitions.Get("of active") != nil,
		"definition of a task set": v.TaskDefinitions.Get("of a set of active") != nil,
		"definition used":          v.TaskDefinitions.Get("used") != nil, "definition kept": v.TaskDefinitions.Get("kept") != nil,
	} {
		if !there {
			t.Errorf("%s is gone", what)
		}
	}
}
