package events

import (
	"encoding/json"
	"errors"
	"slices"
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

	instanceARN = "arn:aws:ecs:us-east-1:000000000000:container-instance/c/1"
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

// TestTaskEventsWithoutHealth: what AWS doesn't tell of a task is neither in its events nor a reason for one.
func TestTaskEventsWithoutHealth(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail-type": ["ECS Task State Change"]}`)})
	task := &state.Task{Task: ecstypes.Task{
		TaskArn: aws.String(taskARN), ClusterArn: aws.String(clusterARN), LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
		HealthStatus: "HEALTHY", Containers: []ecstypes.Container{{Name: aws.String("main"), LastStatus: aws.String("RUNNING"), HealthStatus: "HEALTHY"}},
	}}
	heard := w.change(t, func(tx *state.Tx) { tx.Tasks.Put(task) })
	if len(heard) != 1 || strings.Contains(heard[0], "healthStatus") {
		t.Errorf("%s", heard)
	}
	heard = w.change(t, func(tx *state.Tx) {
		row := *task
		row.HealthStatus = "UNHEALTHY"
		row.Containers = []ecstypes.Container{{Name: aws.String("main"), LastStatus: aws.String("RUNNING"), HealthStatus: "UNHEALTHY"}}
		tx.Tasks.Put(&row)
	})
	if len(heard) != 0 {
		t.Errorf("the health alone has changed: %s", heard)
	}
	if row := w.store.View().Tasks.Get(taskARN); row.Containers[0].HealthStatus != "UNHEALTHY" || row.HealthStatus != "UNHEALTHY" {
		t.Error("the event has changed the row")
	}
}

// TestTaskEventsOfInterfaces: a task's network interface is an eni in its events, and an ElasticNetworkInterface in DescribeTasks, as on AWS.
func TestTaskEventsOfInterfaces(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail": {"attachments": {"type": ["eni"]}}}`)})
	task := &state.Task{Task: ecstypes.Task{
		TaskArn: aws.String(taskARN), ClusterArn: aws.String(clusterARN), LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
		Attachments: []ecstypes.Attachment{{Type: aws.String("AmazonElasticBlockStorage")}, {Type: aws.String("ElasticNetworkInterface")}},
	}}
	heard := w.change(t, func(tx *state.Tx) { tx.Tasks.Put(task) })
	if len(heard) != 1 || !strings.Contains(heard[0], `"attachments":[{"type":"AmazonElasticBlockStorage"},{"type":"eni"}]`) {
		t.Errorf("%s", heard)
	}
	if row := w.store.View().Tasks.Get(taskARN); !state.IsInterface(row.Attachments[1]) {
		t.Error("the event has changed the row")
	}
}

// TestTaskVersions: that a service has noted its task's end is no change of the task, so that the last event's version is DescribeTasks'.
func TestTaskVersions(t *testing.T) {
	w := newWorld(t)
	task := &state.Task{Task: ecstypes.Task{TaskArn: aws.String(taskARN), ClusterArn: aws.String(clusterARN), LastStatus: aws.String("PENDING")}}
	w.change(t, func(tx *state.Tx) { tx.Tasks.Put(task) })
	w.change(t, func(tx *state.Tx) { tx.Tasks.Put(task.Stopped("UserInitiated", "enough", w.now())) })
	w.change(t, func(tx *state.Tx) {
		row := *tx.Tasks.Get(taskARN)
		row.Noted = true
		tx.Tasks.Put(&row)
	})
	if got := w.store.View().Tasks.Get(taskARN).Version; got != 1 {
		t.Errorf("version %d, want that of the last event, 1", got)
	}
}

// TestServiceEvents: a deployment's states and a service's actions, in their order. The calls of users are no actions.
func TestServiceEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"source": ["aws.ecs"]}`)})
	row := &state.Service{Service: ecstypes.Service{ServiceArn: aws.String(serviceARN), ClusterArn: aws.String(clusterARN)}}
	row.Deployments = []state.Deployment{{Deployment: ecstypes.Deployment{Id: aws.String("ecs-svc/1"), RolloutState: "IN_PROGRESS", RolloutStateReason: aws.String("in progress.")}}}
	heard := w.change(t, func(tx *state.Tx) { tx.Services.Put(row) })
	heard = append(heard, w.change(t, func(tx *state.Tx) {
		next := row.Clone()
		next.DesiredCount = 2
		next.CapacityProviderStrategy = []ecstypes.CapacityProviderStrategyItem{{CapacityProvider: aws.String("gpus"), Weight: 1}}
		e := next.Event(state.PlacementFails, "(service app) was unable to place a task because no container instance met all of its requirements.", w.now())
		e.Reason, e.Instances, e.Providers = "RESOURCE:GPU", []string{instanceARN}, []string{"gpus"}
		next.Event(state.TasksStopped, "(service app) has stopped 1 running tasks: (task 0123).", w.now()).Tasks = []string{taskARN}
		next.Event(state.StartImpaired, "(service app) is unable to consistently start tasks successfully.", w.now())
		next.Event(state.TaskSetSteady, "(service app, taskSet ecs-svc/7) has reached a steady state.", w.now()).TaskSets = []string{"arn:aws:ecs:x"}
		next.Event(state.Untold, "(service app) has started 1 tasks: (task 0123).", w.now())
		next.Event(state.Steady, "(service app) has reached a steady state.", w.now())
		next.Deployments[0].RolloutState = "FAILED"
		tx.Services.Put(next)
	})...)
	of := func(eventType, name, rest string) string {
		return `ECS Service Action {` + rest + `"clusterArn":"` + clusterARN + `","createdAt":"2026-01-01T12:00:00.000Z","eventName":"` + name +
			`","eventType":"` + eventType + `"`
	}
	const provider = `"capacityProviderArns":["arn:aws:ecs:us-east-1:000000000000:capacity-provider/gpus"],`
	deployment := func(eventType, name string) string {
		return `ECS Deployment State Change {"deploymentId":"ecs-svc/1","eventName":"` + name + `","eventType":"` + eventType +
			`","reason":"in progress.","updatedAt":"2026-01-01T12:00:00.000Z"}`
	}
	failure := strings.Replace(of("ERROR", "SERVICE_TASK_PLACEMENT_FAILURE", provider), `"createdAt"`, `"containerInstanceArns":["`+instanceARN+`"],"createdAt"`, 1)
	check(t, heard,
		deployment("INFO", "SERVICE_DEPLOYMENT_IN_PROGRESS"),
		failure+`,"reason":"RESOURCE:GPU"}`,
		of("INFO", "TASKS_STOPPED", "")+`,"taskArns":["`+taskARN+`"]}`,
		of("WARN", "SERVICE_TASK_START_IMPAIRED", "")+`}`,
		of("INFO", "TASKSET_STEADY_STATE", "")+`,"taskSetArns":["arn:aws:ecs:x"]}`,
		of("INFO", "SERVICE_STEADY_STATE", "")+`}`,
		of("INFO", "CAPACITY_PROVIDER_STEADY_STATE", provider)+`}`,
		deployment("ERROR", "SERVICE_DEPLOYMENT_FAILED"),
	)
}

// check compares what was heard.
func check(t *testing.T, heard []string, want ...string) {
	t.Helper()
	if len(heard) != len(want) {
		t.Fatalf("%d events, want %d:\n%s", len(heard), len(want), strings.Join(heard, "\n"))
	}
	for i := range want {
		if heard[i] != want[i] {
			t.Errorf("event %d is\n%s, want\n%s", i, heard[i], want[i])
		}
	}
}

// TestDesiredCountEvents: a DAEMON service's count, which nobody sets, is told; what a user has set isn't.
func TestDesiredCountEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail-type": ["ECS Service Action"]}`)})
	row := &state.Service{Service: ecstypes.Service{ServiceArn: aws.String(serviceARN), ClusterArn: aws.String(clusterARN), SchedulingStrategy: "REPLICA"}}
	heard := w.change(t, func(tx *state.Tx) {
		tx.Services.Put(row)
		next := row.Clone()
		next.DesiredCount = 2
		tx.Services.Put(next)
		next = next.Clone()
		next.SchedulingStrategy = "DAEMON"
		tx.Services.Put(next)
		next = next.Clone()
		next.DesiredCount = 3
		tx.Services.Put(next)
	})
	check(t, heard, `ECS Service Action {"clusterArn":"`+clusterARN+`","createdAt":"2026-01-01T12:00:00.000Z","desiredCount":3,`+
		`"eventName":"SERVICE_DESIRED_COUNT_UPDATED","eventType":"INFO"}`)
}

// TestHookEvents: a deployment's lifecycle hooks, from where they are come to until they're over.
func TestHookEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail-type": ["ECS Hook State Change"]}`)})
	const record = "arn:aws:ecs:us-east-1:000000000000:service-deployment/c/app/x"
	row := &state.Service{Service: ecstypes.Service{ServiceArn: aws.String(serviceARN), ClusterArn: aws.String(clusterARN)}}
	row.Deployments = []state.Deployment{{
		Deployment: ecstypes.Deployment{Id: aws.String("ecs-svc/1"), RolloutState: "IN_PROGRESS"}, ServiceDeploymentArn: record,
		Shift: &state.Shift{Stage: "POST_TEST_TRAFFIC_SHIFT"},
	}}
	hook := func(id, status, stage string) state.Hook {
		return state.Hook{Stage: ecstypes.ServiceDeploymentLifecycleStage(stage), DeploymentLifecycleHookDetail: ecstypes.DeploymentLifecycleHookDetail{
			HookId: aws.String("hook-" + id), TargetType: "PAUSE", Status: ecstypes.DeploymentLifecycleHookStatus(status),
			ExpiresAt: aws.Time(w.now().Add(time.Hour)),
		}}
	}
	hooks := func(stage string, status ...string) func(*state.Tx) {
		return func(tx *state.Tx) {
			row = row.Clone()
			row.Deployments[0].Shift = &state.Shift{Stage: ecstypes.ServiceDeploymentLifecycleStage(stage)}
			for i, s := range status {
				row.Deployments[0].Shift.Hooks = append(row.Deployments[0].Shift.Hooks, hook(string(rune('a'+i)), s, "POST_TEST_TRAFFIC_SHIFT"))
			}
			tx.Services.Put(row)
		}
	}
	heard := w.change(t, hooks("POST_TEST_TRAFFIC_SHIFT"))
	heard = append(heard, w.change(t, hooks("POST_TEST_TRAFFIC_SHIFT", "AWAITING_ACTION", "IN_PROGRESS"))...)
	heard = append(heard, w.change(t, hooks("POST_TEST_TRAFFIC_SHIFT", "AWAITING_ACTION", "IN_PROGRESS"))...)
	heard = append(heard, w.change(t, hooks("PRODUCTION_TRAFFIC_SHIFT", "SUCCEEDED", "TIMED_OUT"))...)
	rolled := row.Clone() // back to the deployment before, which goes on with the failed one's hooks, and has that of the way back
	rolled.Deployments = []state.Deployment{{
		Deployment: ecstypes.Deployment{Id: aws.String("ecs-svc/0"), RolloutState: "IN_PROGRESS"}, ServiceDeploymentArn: record,
		Shift: &state.Shift{Stage: "CLEAN_UP", Hooks: []state.Hook{
			hook("a", "SUCCEEDED", "POST_TEST_TRAFFIC_SHIFT"), hook("b", "TIMED_OUT", "POST_TEST_TRAFFIC_SHIFT"), hook("c", "IN_PROGRESS", "PRODUCTION_TRAFFIC_SHIFT"),
		}},
	}}
	heard = append(heard, w.change(t, func(tx *state.Tx) { tx.Services.Put(rolled) })...)
	rolled = rolled.Clone()
	ends := *rolled.Deployments[0].Shift
	ends.Hooks = slices.Clone(ends.Hooks)
	ends.Hooks[2].Status = "SUCCEEDED"
	rolled.Deployments[0].Shift = &ends
	heard = append(heard, w.change(t, func(tx *state.Tx) { tx.Services.Put(rolled) })...)
	event := func(eventType, name, id, stage string) string {
		return `ECS Hook State Change {"clusterArn":"` + clusterARN + `","eventName":"` + name + `","eventType":"` + eventType +
			`","expiresAt":"2026-01-01T13:00:00.000Z","hookId":"` + id + `","hookType":"PAUSE","lifecycleStage":"` + stage + `",` +
			`"serviceArn":"` + serviceARN + `","serviceDeploymentArn":"` + record + `","updatedAt":"2026-01-01T12:00:00.000Z"}`
	}
	check(t, heard,
		event("INFO", "HOOK_AWAITING_ACTION", "hook-a", "POST_TEST_TRAFFIC_SHIFT"), event("INFO", "HOOK_IN_PROGRESS", "hook-b", "POST_TEST_TRAFFIC_SHIFT"),
		event("INFO", "HOOK_SUCCEEDED", "hook-a", "POST_TEST_TRAFFIC_SHIFT"), event("ERROR", "HOOK_TIMED_OUT", "hook-b", "POST_TEST_TRAFFIC_SHIFT"),
		event("INFO", "HOOK_IN_PROGRESS", "hook-c", "PRODUCTION_TRAFFIC_SHIFT"), event("INFO", "HOOK_SUCCEEDED", "hook-c", "PRODUCTION_TRAFFIC_SHIFT"))
}

// TestInstanceResourceEvents: a task that takes something of a container instance, or gives it back, changes what remains of that.
func TestInstanceResourceEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail-type": ["ECS Container Instance State Change"]}`)})
	task := &state.Task{Task: ecstypes.Task{TaskArn: aws.String(taskARN), ClusterArn: aws.String(clusterARN), LastStatus: aws.String("PROVISIONING")}}
	heard := w.change(t, func(tx *state.Tx) {
		row := &state.ContainerInstance{ClusterArn: clusterARN, Capacity: state.Resources{CPU: 1024, MemoryMiB: 1024}}
		row.ContainerInstanceArn, row.Status = aws.String(instanceARN), aws.String("ACTIVE")
		tx.ContainerInstances.Put(row)
		tx.Tasks.Put(task) // waits for room
	})
	placed := *task
	placed.ContainerInstanceArn = aws.String(instanceARN)
	placed.Reserved = state.Resources{CPU: 256, MemoryMiB: 64}
	heard = append(heard, w.change(t, func(tx *state.Tx) { tx.Tasks.Put(&placed) })...)
	heard = append(heard, w.change(t, func(tx *state.Tx) { tx.Tasks.Put(placed.Running(w.now())) })...)
	heard = append(heard, w.change(t, func(tx *state.Tx) { tx.Tasks.Put(placed.Stopped("UserInitiated", "enough", w.now())) })...)
	if len(heard) != 3 {
		t.Fatalf("%s", heard)
	}
	for i, version := range []string{`"version":0`, `"version":1`, `"version":2`} {
		if !strings.Contains(heard[i], version) {
			t.Errorf("%s, want %s", heard[i], version)
		}
	}
	if got := w.store.View().ContainerInstances.Get(instanceARN).Version; got != 2 {
		t.Errorf("version %d, want that of the last event", got)
	}
}

// TestInstanceHealthEvents: what an agent finds of its machine's health, and faults of GPUs.
func TestInstanceHealthEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail-type": ["ECS Container Instance Health Change"]}`)})
	row := &state.ContainerInstance{ClusterArn: clusterARN, GPUs: []state.GPU{{ID: "GPU-1"}}}
	row.ContainerInstanceArn, row.Status, row.Ec2InstanceId = aws.String(instanceARN), aws.String("ACTIVE"), aws.String("i-1")
	at := w.now()
	runtime := func(now time.Time) *ecstypes.ContainerInstanceHealthStatus {
		return &ecstypes.ContainerInstanceHealthStatus{OverallStatus: "OK", Details: []ecstypes.InstanceHealthCheckResult{
			{Type: "CONTAINER_RUNTIME", Status: "OK", LastStatusChange: &at, LastUpdated: &now},
		}}
	}
	put := func(change func(*state.ContainerInstance)) []string {
		row = row.Clone()
		change(row)
		return w.change(t, func(tx *state.Tx) { tx.ContainerInstances.Put(row) })
	}
	heard := put(func(*state.ContainerInstance) {})
	heard = append(heard, put(func(c *state.ContainerInstance) { c.HealthStatus = runtime(at) })...)
	heard = append(heard, put(func(c *state.ContainerInstance) { c.HealthStatus = runtime(at.Add(time.Minute)) })...)
	heard = append(heard, put(func(c *state.ContainerInstance) {
		c.GPUs = []state.GPU{{ID: "GPU-1", Fault: &state.GPUFault{Reason: "XID_79", Since: at}}}
		c.CapacityProviderName = aws.String("gpus")
	})...)
	event := func(provider, overall, checks string) string {
		return `ECS Container Instance Health Change {"capacityProviderName":` + provider + `,"clusterArn":"` + clusterARN + `","containerInstanceArn":"` +
			instanceARN + `","ec2InstanceId":"i-1","healthChecks":[` + checks + `],"overallStatus":"` + overall + `"}`
	}
	one := func(kind, status, updated, reason string) string {
		return `{"lastStatusChange":"2026-01-01T12:00:00Z","lastUpdated":"2026-01-01T12:0` + updated + `:00Z","status":"` + status + `","statusReason":` +
			reason + `,"type":"` + kind + `"}`
	}
	check(t, heard,
		event("null", "OK", one("CONTAINER_RUNTIME", "OK", "0", "null")),
		event(`"gpus"`, "IMPAIRED", one("CONTAINER_RUNTIME", "OK", "1", "null")+","+one("ACCELERATED_COMPUTE", "IMPAIRED", "0", `"GPU GPU-1: XID_79"`)))
}

// TestInstanceEvents: a container instance that registers, and one whose agent is gone.
func TestInstanceEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("ecs"), EventPattern: aws.String(`{"detail-type": ["ECS Container Instance State Change"]}`)})
	arn := instanceARN
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
