package events

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
)

// change runs a transaction and returns the details of the events of which the rule's queue hears, by their types.
func (w *world) change(t *testing.T, fn func(tx *state.Tx)) (heard []string) {
	t.Helper()
	err := w.store.Update(t.Context(), func(tx *state.Tx) error {
		fn(tx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range w.bodies(t) {
		var e envelope
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatal(err)
		}
		heard = append(heard, e.DetailType+" "+string(e.Detail))
	}
	return heard
}

const (
	clusterARN = "arn:aws:ecs:us-east-1:000000000000:cluster/c"
	taskARN    = "arn:aws:ecs:us-east-1:000000000000:task/c/0123"
	serviceARN = "arn:aws:ecs:us-east-1:000000000000:service/c/app"
)

// TestECSEvents: what changes of a task is told with it, and what its client wouldn't see isn't.
func TestECSEvents(t *testing.T) {
	w := newWorld(t)
	task := &state.Task{Task: ecstypes.Task{
		TaskArn: aws.String(taskARN), ClusterArn: aws.String(clusterARN), LastStatus: aws.String("PENDING"), DesiredStatus: aws.String("RUNNING"),
		Containers: []ecstypes.Container{{Name: aws.String("main"), LastStatus: aws.String("PENDING"), GpuIds: []string{"GPU-1"}}},
		Tags:       []ecstypes.Tag{{Key: aws.String("secret"), Value: aws.String("x")}},
		CreatedAt:  aws.Time(time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)),
	}}
	if heard := w.change(t, func(tx *state.Tx) { tx.Tasks.Put(task) }); len(heard) > 0 {
		t.Errorf("without a rule: %s", heard)
	}
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"source": ["aws.ecs"]}`)})
	heard := w.change(t, func(tx *state.Tx) { tx.Tasks.Put(task.Running(w.now())) })
	want := `ECS Task State Change {"clusterArn":"` + clusterARN + `","connectivity":"CONNECTED","connectivityAt":"2026-01-01T12:00:00.000Z",` +
		`"containers":[{"gpuIds":["GPU-1"],"lastStatus":"PENDING","name":"main"}],"createdAt":"2026-01-01T11:00:00.000Z","desiredStatus":"RUNNING",` +
		`"enableExecuteCommand":false,"lastStatus":"RUNNING","startedAt":"2026-01-01T12:00:00.000Z","taskArn":"` + taskARN + `",` +
		`"updatedAt":"2026-01-01T12:00:00.000Z","version":1}`
	if len(heard) != 1 || heard[0] != want {
		t.Errorf("%s, want %s", heard, want)
	}
	noted := func(tx *state.Tx) {
		row := *tx.Tasks.Get(taskARN)
		row.Noted = true
		tx.Tasks.Put(&row)
	}
	if heard := w.change(t, noted); len(heard) > 0 {
		t.Errorf("nothing that a client sees has changed: %s", heard)
	}
	err := w.store.Update(t.Context(), func(tx *state.Tx) error {
		tx.Tasks.Put(tx.Tasks.Get(taskARN).Stopped("UserInitiated", "enough", w.now()))
		return errGone
	})
	if err != errGone || len(w.bodies(t)) > 0 {
		t.Errorf("what is undone is told: %v", err)
	}
}

var errGone = errors.New("undone")

// TestServiceEvents: a deployment's states and a service's actions, in their order.
func TestServiceEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"source": ["aws.ecs"]}`)})
	row := &state.Service{Service: ecstypes.Service{ServiceArn: aws.String(serviceARN), ClusterArn: aws.String(clusterARN)}}
	row.Deployments = []state.Deployment{{Deployment: ecstypes.Deployment{Id: aws.String("ecs-svc/1"), RolloutState: "IN_PROGRESS", RolloutStateReason: aws.String("in progress.")}}}
	heard := w.change(t, func(tx *state.Tx) { tx.Services.Put(row) })
	heard = append(heard, w.change(t, func(tx *state.Tx) {
		next := row.Clone()
		next.DesiredCount = 2
		next.Event(state.PlacementFails, "(service app) was unable to place a task because no container instance met all of its requirements.", w.now())
		next.Event(state.Steady, "(service app) has reached a steady state.", w.now())
		next.Deployments[0].RolloutState = "FAILED"
		tx.Services.Put(next)
	})...)
	want := []string{"SERVICE_DEPLOYMENT_IN_PROGRESS", "SERVICE_DESIRED_COUNT_UPDATED", "SERVICE_TASK_PLACEMENT_FAILURE", "SERVICE_STEADY_STATE", "SERVICE_DEPLOYMENT_FAILED"}
	if len(heard) != len(want) {
		t.Fatalf("%d events: %s", len(heard), heard)
	}
	for i, name := range want {
		if !strings.Contains(heard[i], `"eventName":"`+name+`"`) {
			t.Errorf("event %d is %s, want %s", i, heard[i], name)
		}
	}
}

// TestInstanceEvents: a container instance that registers, and one whose agent is gone.
func TestInstanceEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail-type": ["ECS Container Instance State Change"]}`)})
	arn := "arn:aws:ecs:us-east-1:000000000000:container-instance/c/1"
	row := &state.ContainerInstance{ClusterArn: clusterARN}
	row.ContainerInstanceArn, row.Status, row.AgentConnected = &arn, aws.String("ACTIVE"), true
	heard := w.change(t, func(tx *state.Tx) { tx.ContainerInstances.Put(row) })
	heard = append(heard, w.change(t, func(tx *state.Tx) { tx.ContainerInstances.Put(row.Disconnected(w.now())) })...)
	if len(heard) != 2 || !strings.Contains(heard[0], `"agentConnected":true`) || !strings.Contains(heard[1], `"agentConnected":false,"clusterArn":"`+clusterARN) {
		t.Errorf("%s", heard)
	}
}

func TestAlarmEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("alarms"), EventPattern: aws.String(`{"source": ["aws.cloudwatch"], "detail": {"state": {"value": ["ALARM"]}}}`)})
	a := &state.Alarm{Metric: &cloudwatch.MetricAlarm{
		AlarmName: aws.String("hot"), AlarmArn: aws.String("arn:aws:cloudwatch:us-east-1:000000000000:alarm:hot"), StateValue: "OK", StateReason: aws.String("cold"),
		Namespace: aws.String("GPU"), MetricName: aws.String("Load"), Period: aws.Int32(60), Statistic: "Maximum",
	}}
	heard := w.change(t, func(tx *state.Tx) {
		a = tx.SetAlarmState(a, state.AlarmState{Value: "ALARM", Reason: "hot", Data: `{"x":1}`}, w.now())
		tx.SetAlarmState(a, state.AlarmState{Value: "OK", Reason: "cold"}, w.now())
	})
	if len(heard) != 1 || !strings.Contains(heard[0], `"alarmName":"hot"`) || !strings.Contains(heard[0], `"reasonData":"{\"x\":1}"`) ||
		!strings.Contains(heard[0], `"stat":"Maximum"`) {
		t.Errorf("%s", heard)
	}
}

// TestReceivedEvents: what another store owes to the default bus reaches the targets of its rules as it is, and waits while there is no room.
func TestReceivedEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("s3"), EventPattern: aws.String(`{"source": ["aws.s3"], "detail": {"object": {"key": [{"prefix": "in/"}]}}}`)})
	text := `{"id":"1","source":"aws.s3","detail":{"object":{"key":"in/a"}}}`
	tell := func(text string) error {
		return w.Tell(t.Context(), delivery.Debt{ID: "1", Destination: "arn:aws:events:us-east-1:000000000000:event-bus/default", Body: text})
	}
	if err := errors.Join(tell(text), tell(`{"id":"2","source":"aws.s3","detail":{"object":{"key":"out/a"}}}`)); err != nil {
		t.Fatal(err)
	}
	if got := w.bodies(t); len(got) != 1 || got[0] != text {
		t.Errorf("told %s", got)
	}
}
