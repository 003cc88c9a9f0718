package rollout

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/store/journaltest"
)

func external(in *awsecs.CreateServiceInput) {
	in.TaskDefinition = nil
	in.DeploymentController = &types.DeploymentController{Type: types.DeploymentControllerTypeExternal}
}

func percent(value float64) *types.Scale {
	return &types.Scale{Value: value, Unit: types.ScaleUnitPercent}
}

// set creates a task set with a task definition, and returns its id.
func (w *world) set(definition string, scale float64) string {
	w.t.Helper()
	out, err := w.ecs.CreateTaskSet(w.ctx, &awsecs.CreateTaskSetInput{
		Cluster:        aws.String("default"),
		Service:        aws.String("s"),
		TaskDefinition: &definition,
		Scale:          percent(scale),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return *out.TaskSet.Id
}

func (w *world) scale(set string, scale float64) {
	w.t.Helper()
	_, err := w.ecs.UpdateTaskSet(w.ctx, &awsecs.UpdateTaskSetInput{
		Cluster: aws.String("default"),
		Service: aws.String("s"),
		TaskSet: &set,
		Scale:   percent(scale),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) makePrimary(set string) {
	w.t.Helper()
	_, err := w.ecs.UpdateServicePrimaryTaskSet(w.ctx, &awsecs.UpdateServicePrimaryTaskSetInput{
		Cluster:        aws.String("default"),
		Service:        aws.String("s"),
		PrimaryTaskSet: &set,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deleteSet(set string, force bool) error {
	_, err := w.ecs.DeleteTaskSet(w.ctx, &awsecs.DeleteTaskSetInput{
		Cluster: aws.String("default"),
		Service: aws.String("s"),
		TaskSet: &set,
		Force:   &force,
	})
	return err
}

// expectSet checks a task set of the service as DescribeServices shows it.
func expectSet(t *testing.T, s types.Service, id, status string, desired, running, pending int32, stability types.StabilityStatus) {
	t.Helper()
	i := slices.IndexFunc(s.TaskSets, func(set types.TaskSet) bool { return *set.Id == id })
	if i < 0 {
		t.Errorf("the task set %s is gone", id)
		return
	}
	set := s.TaskSets[i]
	if *set.Status != status || set.ComputedDesiredCount != desired || set.RunningCount != running ||
		set.PendingCount != pending || set.StabilityStatus != stability {
		t.Errorf("%s: %s, %d desired, %d running, %d pending, %s; want %s, %d, %d, %d, %s\n%s", id, *set.Status,
			set.ComputedDesiredCount, set.RunningCount,
			set.PendingCount, set.StabilityStatus, status, desired, running, pending, stability, strings.Join(events(s), "\n"))
	}
}

const (
	settled     = types.StabilityStatusSteadyState
	stabilizing = types.StabilityStatusStabilizing
)

func TestExternalBlueGreen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(5, external)
		if s := w.after(time.Second); len(s.Deployments)+len(s.TaskSets)+len(w.tasks()) != 0 || s.TaskDefinition != nil ||
			s.LaunchType != "" {
			t.Errorf("a new service has %+v", s)
		}
		blue := w.set("f:1", 100)
		expectSet(t, w.after(time.Second), blue, "ACTIVE", 5, 0, 5, stabilizing)
		w.makePrimary(blue)
		s := w.after(time.Minute)
		expectSet(t, s, blue, "PRIMARY", 5, 5, 0, settled)
		if !strings.HasSuffix(*s.TaskDefinition, "f:1") || s.LaunchType != types.LaunchTypeEc2 || s.RunningCount != 5 {
			t.Errorf("the service shows %s on %s, %d running", *s.TaskDefinition, s.LaunchType, s.RunningCount)
		}
		task := w.tasks()[0]
		if *task.StartedBy != blue || !strings.HasPrefix(blue, "ecs-svc/") || *task.Group != "service:s" {
			t.Errorf("a task is started by %s in group %s", *task.StartedBy, *task.Group)
		}

		w.define("v2")
		green := w.set("f", 30)
		s = w.after(time.Minute)
		expectSet(t, s, blue, "PRIMARY", 5, 5, 0, settled)
		expectSet(t, s, green, "ACTIVE", 2, 2, 0, settled)
		w.scale(green, 100)
		w.scale(blue, 50)
		s = w.after(time.Minute)
		expectSet(t, s, blue, "PRIMARY", 3, 3, 0, settled)
		expectSet(t, s, green, "ACTIVE", 5, 5, 0, settled)
		w.makePrimary(green)
		s = w.after(time.Second)
		expectSet(t, s, blue, "ACTIVE", 3, 3, 0, settled)
		expectSet(t, s, green, "PRIMARY", 5, 5, 0, settled)
		if !strings.HasSuffix(*s.TaskDefinition, "f:2") {
			t.Errorf("the service shows %s", *s.TaskDefinition)
		}

		if err := w.deleteSet(blue, false); err == nil {
			t.Error("a task set of 50 percent is deleted without force")
		}
		w.scale(blue, 0)
		expectSet(t, w.after(time.Minute), blue, "ACTIVE", 0, 0, 0, settled)
		if err := w.deleteSet(blue, false); err != nil {
			t.Error(err)
		}
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(3)})
		s = w.after(time.Minute)
		expectSet(t, s, green, "PRIMARY", 3, 3, 0, settled)
		if len(s.TaskSets) != 1 {
			t.Errorf("%d task sets are left", len(s.TaskSets))
		}
		want := "(service s, taskSet " + green + ") has started 2 tasks: (task"
		if !slices.ContainsFunc(s.Events, func(e types.ServiceEvent) bool { return strings.HasPrefix(*e.Message, want) }) {
			t.Errorf("no event says that the task set has started tasks: %q", events(s))
		}
		steady := func(e types.ServiceEvent) bool {
			return *e.Message == "(service s, taskSet "+green+") has reached a steady state."
		}
		if i := slices.IndexFunc(s.Events, steady); i < 0 || slices.ContainsFunc(s.Events[:i], func(e types.ServiceEvent) bool {
			return strings.HasPrefix(*e.Message, "(service s, taskSet "+green)
		}) {
			t.Errorf("the task set's last event isn't that it is steady: %q", events(s))
		}
		if last := *s.Events[0].Message; last != "(service s) has reached a steady state." {
			t.Errorf("the last event is %q", last)
		}
	})
}

func TestTaskSetIsDrained(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2, external)
		set := w.set("f", 100)
		w.makePrimary(set)
		w.after(time.Minute)
		if err := w.deleteSet(set, false); err == nil {
			t.Error("the PRIMARY task set is deleted without force")
		}
		if err := w.deleteSet(set, true); err != nil {
			t.Fatal(err)
		}
		s := w.after(time.Second)
		expectSet(t, s, set, "DRAINING", 0, 0, 0, stabilizing)
		if s.TaskDefinition != nil || len(w.tasks()) != 0 {
			t.Errorf("%v is left, and %d tasks", s.TaskDefinition, len(w.tasks()))
		}
		if err := w.deleteSet(set, false); err != nil {
			t.Error("deleted again:", err)
		}
		if s := w.after(stopping); len(s.TaskSets) != 0 {
			t.Errorf("%+v is left", s.TaskSets)
		}
		var notFound *types.TaskSetNotFoundException
		if err := w.deleteSet(set, false); !errors.As(err, &notFound) {
			t.Errorf("deleted at last: %v", err)
		}
	})
}

func TestTaskSetsAreKeptUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2, external)
		good := w.set("f:1", 100)
		w.define("broken")
		bad := w.set("f:2", 50)
		w.after(time.Minute)
		s := w.service()
		expectSet(t, s, good, "ACTIVE", 2, 2, 0, settled)
		row := w.store.View().Services.Get(*s.ServiceArn)
		if set := row.TaskSet(bad); set.FailedTasks < 3 || set.FailedTasks > 7 || !set.NotBefore.After(time.Now()) {
			t.Errorf("after a minute %d tasks have failed, the next comes at %v", set.FailedTasks, set.NotBefore)
		}
		if row.TaskSet(good).FailedTasks != 0 {
			t.Error("the other task set counts failures")
		}
		if err := w.deleteSet(bad, true); err != nil {
			t.Fatal(err)
		}
		w.report(w.ctx, w.tasks()[0], "STOPPED", aws.Int32(1))
		s = w.after(time.Minute)
		expectSet(t, s, good, "ACTIVE", 2, 2, 0, settled)
		if len(s.TaskSets) != 1 {
			t.Errorf("%+v", s.TaskSets)
		}

		node := *w.tasks()[0].ContainerInstanceArn
		_, err := w.ecs.UpdateContainerInstancesState(w.ctx, &awsecs.UpdateContainerInstancesStateInput{
			ContainerInstances: []string{node},
			Status:             types.ContainerInstanceStatusDraining,
		})
		if err != nil {
			t.Fatal(err)
		}
		expectSet(t, w.after(time.Second), good, "ACTIVE", 2, 2, 1, stabilizing)
		expectSet(t, w.after(2*time.Minute), good, "ACTIVE", 2, 2, 0, settled)
	})
}

func TestExternalServiceIsDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2, external)
		w.set("f", 100)
		w.after(time.Minute)
		if _, err := w.ecs.DeleteService(w.ctx, &awsecs.DeleteServiceInput{Service: aws.String("s")}); err == nil {
			t.Error("a service of 2 is deleted without force")
		}
		if _, err := w.ecs.DeleteService(w.ctx, &awsecs.DeleteServiceInput{Service: aws.String("s"), Force: aws.Bool(true)}); err != nil {
			t.Fatal(err)
		}
		_, err := w.ecs.CreateTaskSet(w.ctx, &awsecs.CreateTaskSetInput{
			Cluster:        aws.String("default"),
			Service:        aws.String("s"),
			TaskDefinition: aws.String("f"),
		})
		var notActive *types.ServiceNotActiveException
		if !errors.As(err, &notActive) {
			t.Errorf("a task set of a deleted service: %v", err)
		}
		if s := w.after(time.Minute); *s.Status != "INACTIVE" || len(s.TaskSets)+len(w.tasks()) != 0 {
			t.Errorf("%s, %d task sets, %d tasks", *s.Status, len(s.TaskSets), len(w.tasks()))
		}
	})
}

// TestTaskSetsSurviveKills ends the control plane after each of its writes during a blue/green deployment, and lets
// another one continue.
func TestTaskSetsSurviveKills(t *testing.T) {
	var history []journaltest.Rows
	var green string
	inWorld(t, func(t *testing.T, w *world) {
		w.create(3, external)
		blue := w.set("f", 100)
		w.makePrimary(blue)
		w.after(time.Minute)
		w.journal.OnWrite(func(rows journaltest.Rows) { history = append(history, rows) })
		green = w.set("f", 100)
		w.makePrimary(green)
		w.scale(blue, 0)
		w.after(time.Minute)
		if err := w.deleteSet(blue, false); err != nil {
			t.Fatal(err)
		}
		w.after(time.Minute)
	})
	if len(history) < 6 { // updates that come together share a write
		t.Fatalf("the deployment took %d writes", len(history))
	}
	for i, rows := range history {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, rows)
			s := w.after(2 * time.Minute)
			expectSet(t, s, green, *s.TaskSets[len(s.TaskSets)-1].Status, 3, 3, 0, settled)
			for _, set := range s.TaskSets {
				if set.StabilityStatus != settled || set.Scale.Value == 0 && set.RunningCount > 0 {
					t.Errorf("killed after write %d: %+v", i, set)
				}
			}
			w.end()
			time.Sleep(time.Hour)
		})
	}
}
