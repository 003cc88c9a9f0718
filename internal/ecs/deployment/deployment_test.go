package deployment

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

var now = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// many returns n tasks of a deployment, spread over two instances in a zone each.
func many(deployment string, n int, status Status) []Task {
	var out []Task
	for i := range n {
		out = append(out, Task{
			ID:         fmt.Sprintf("%s%d-%d", deployment, status, i),
			Deployment: deployment,
			Status:     status,
			Instance:   fmt.Sprintf("i%d", i%2),
			Zone:       fmt.Sprintf("z%d", i%2),
		})
	}
	return out
}

// replica is a REPLICA service with its desired count and the percentages that bound a deployment.
func replica(desired, minimum, maximum int) Service {
	return Service{Desired: desired, MinimumHealthyPercent: minimum, MaximumPercent: maximum}
}

func join(lists ...[]Task) (out []Task) {
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func with(tasks []Task, change func(*Task)) []Task {
	for i := range tasks {
		change(&tasks[i])
	}
	return tasks
}

func stops(p Plan) (ids []string) {
	for _, t := range p.Stop {
		ids = append(ids, t.ID)
	}
	return ids
}

var (
	one = []Deployment{{ID: "a", State: Completed}}
	two = []Deployment{{ID: "b", State: InProgress}, {ID: "a", State: Completed}}
)

func TestReplicas(t *testing.T) {
	failing := func(failed int, rest ...Deployment) []Deployment {
		return append([]Deployment{{ID: "b", State: InProgress, Failed: failed, NotBefore: now.Add(time.Second)}}, rest...)
	}
	baking := func(since time.Duration) []Deployment {
		return []Deployment{{ID: "b", State: InProgress, BakesFrom: now.Add(-since)}, one[0]}
	}
	protected := func(t *Task) { t.ProtectedUntil = now.Add(time.Minute) }
	draining := func(t *Task) { t.Draining = true }
	drainingProtected := func(t *Task) {
		draining(t)
		protected(t)
	}
	renamed := func(t *Task) { t.ID = "n" }
	for _, c := range []struct {
		name        string
		service     Service
		deployments []Deployment
		tasks       []Task
		want        Plan
		stop        []string
	}{
		{name: "a new service starts all its tasks", service: replica(3, 100, 200), deployments: two[:1], want: Plan{Start: 3}},
		{
			name:        "a lost task is replaced",
			service:     replica(3, 100, 200),
			deployments: one,
			tasks:       many("a", 2, Healthy),
			want:        Plan{Start: 1},
		},
		{
			name:        "at 100 percent a stopping task holds its place until it is STOPPED",
			service:     replica(1, 0, 100),
			deployments: one,
			tasks:       many("a", 1, Stopping),
		},
		{
			name:        "steady with all tasks healthy",
			service:     replica(2, 100, 200),
			deployments: one,
			tasks:       many("a", 2, Healthy),
			want:        Plan{Steady: true},
		},
		{
			name:        "all tasks healthy completes the roll-out",
			service:     replica(2, 100, 200),
			deployments: two,
			tasks:       many("b", 2, Healthy),
			want:        Plan{Rollout: Completed, Steady: true},
		},
		{name: "running tasks do not complete the roll-out", service: replica(2, 100, 200), deployments: two, tasks: many("b", 2, Running)},
		{
			name:        "an old protected task delays the end of the roll-out",
			service:     replica(1, 100, 200),
			deployments: two,
			tasks:       join(many("b", 1, Healthy), with(many("a", 1, Healthy), protected)),
			want:        Plan{Held: 1, Wake: now.Add(time.Minute)},
		},

		{
			name:        "of four, 200 percent starts four more",
			service:     replica(4, 100, 200),
			deployments: two,
			tasks:       many("a", 4, Healthy),
			want:        Plan{Start: 4},
		},
		{
			name:        "of four, 150 percent starts two more",
			service:     replica(4, 100, 150),
			deployments: two,
			tasks:       many("a", 4, Healthy),
			want:        Plan{Start: 2},
		},
		{
			name:        "of four, 50 to 100 percent stops two first",
			service:     replica(4, 50, 100),
			deployments: two,
			tasks:       many("a", 4, Healthy),
			stop:        []string{"a2-0", "a2-1"},
		},
		{
			name:        "of four, 50 to 100 percent stops no more while two stop",
			service:     replica(4, 50, 100),
			deployments: two,
			tasks:       join(many("a", 2, Healthy), many("a", 2, Stopping)),
		},
		{
			name:        "each healthy new task replaces an old one",
			service:     replica(4, 100, 200),
			deployments: two,
			tasks:       join(many("a", 4, Healthy), many("b", 1, Healthy), many("b", 3, Pending)[1:], many("b", 1, Running)),
			stop:        []string{"a2-0"},
		},
		{
			name:        "without room for new tasks, old ones stop down to the minimum",
			service:     replica(4, 50, 200),
			deployments: []Deployment{{ID: "b", State: InProgress, Unplaced: true}, one[0]},
			tasks:       many("a", 4, Healthy),
			want:        Plan{Start: 4},
			stop:        []string{"a2-0", "a2-1"},
		},
		{
			name:        "the oldest deployment's tasks stop first",
			service:     replica(2, 100, 300),
			deployments: []Deployment{{ID: "c", State: InProgress}, two[0], one[0]},
			tasks:       join(many("c", 1, Healthy), many("c", 1, Running), many("b", 1, Healthy), many("a", 1, Healthy)),
			stop:        []string{"a2-0"},
		},
		{
			name:        "pending old tasks stop at once",
			service:     replica(2, 100, 200),
			deployments: two,
			tasks:       many("a", 2, Pending),
			want:        Plan{Start: 2},
			stop:        []string{"a0-0", "a0-1"},
		},
		{
			name:        "running old tasks stay",
			service:     replica(2, 100, 200),
			deployments: two,
			tasks:       many("a", 2, Running),
			want:        Plan{Start: 2},
		},

		{
			name:        "scale-in stops tasks that are not healthy first",
			service:     replica(2, 100, 200),
			deployments: one,
			tasks:       join(many("a", 2, Healthy), many("a", 1, Pending)),
			stop:        []string{"a0-0"},
		},
		{
			name:        "scale-in keeps zones balanced",
			service:     replica(2, 100, 200),
			deployments: one,
			tasks:       many("a", 5, Healthy),
			stop:        []string{"a2-0", "a2-1", "a2-2"},
		},
		{
			name:        "scale-in to 0",
			service:     replica(0, 100, 200),
			deployments: one,
			tasks:       many("a", 2, Healthy),
			stop:        []string{"a2-0", "a2-1"},
		},
		{
			name:        "scale-in spares protected tasks",
			service:     replica(1, 100, 200),
			deployments: one,
			tasks:       join(with(many("a", 2, Healthy), protected), many("a", 1, Running)),
			want:        Plan{Held: 2, Wake: now.Add(time.Minute)},
			stop:        []string{"a1-0"},
		},

		{
			name:        "an unhealthy task is replaced before it stops",
			service:     replica(2, 100, 200),
			deployments: one,
			tasks:       join(many("a", 1, Healthy), many("a", 1, Unhealthy)),
			want:        Plan{Start: 1},
		},
		{
			name:        "an unhealthy task stops once it is replaced",
			service:     replica(1, 100, 200),
			deployments: one,
			tasks:       join(many("a", 1, Healthy), many("a", 1, Unhealthy)),
			stop:        []string{"a3-0"},
		},
		{
			name:        "without room for a replacement, unhealthy tasks stop one at a time",
			service:     replica(2, 50, 100),
			deployments: one,
			tasks:       many("a", 2, Unhealthy),
			stop:        []string{"a3-0"},
		},

		{
			name:        "a pending task on a draining instance stops at once",
			service:     replica(1, 100, 200),
			deployments: one,
			tasks:       with(many("a", 1, Pending), draining),
			want:        Plan{Start: 1},
			stop:        []string{"a0-0"},
		},
		{
			name:        "a healthy task on a draining instance is replaced before it stops",
			service:     replica(1, 100, 200),
			deployments: one,
			tasks:       with(many("a", 1, Healthy), draining),
			want:        Plan{Start: 1},
		},
		{
			name:        "a healthy task on a draining instance stops once it is replaced",
			service:     replica(1, 100, 200),
			deployments: one,
			tasks:       join(with(many("a", 1, Healthy), draining), with(many("a", 1, Healthy), renamed)),
			stop:        []string{"a2-0"},
		},

		{
			name:        "a protected task on a draining instance stays until its protection ends",
			service:     replica(1, 100, 200),
			deployments: one,
			tasks:       join(with(many("a", 1, Healthy), drainingProtected), with(many("a", 1, Healthy), renamed)),
			want:        Plan{Held: 1, Wake: now.Add(time.Minute)},
		},
		{
			name:        "without room for replacements, tasks on draining instances stop down to the minimum",
			service:     replica(4, 50, 100),
			deployments: one,
			tasks:       with(many("a", 4, Healthy), draining),
			stop:        []string{"a2-0", "a2-1"},
		},

		{
			name:        "after failures no task starts for a while",
			service:     replica(2, 0, 100),
			deployments: failing(2, one...),
			tasks:       many("a", 2, Healthy),
			want:        Plan{Wake: now.Add(time.Second)},
		},
		{
			name:        "three failures trip the breaker",
			service:     Service{Desired: 2, Breaker: Breaker{Enabled: true, Threshold: 3}},
			deployments: failing(3, one...),
			want:        Plan{Rollout: Failed, Failure: TasksFailed},
		},
		{
			name:        "the breaker rolls back if it is set to",
			service:     Service{Desired: 2, Breaker: Breaker{Enabled: true, Rollback: true, Threshold: 3}},
			deployments: failing(3, Deployment{ID: "x", State: Failed}, one[0]),
			want:        Plan{Rollout: Failed, Failure: TasksFailed, RollBackTo: "a"},
		},
		{
			name:        "a user can roll back at any time",
			service:     Service{Desired: 2},
			deployments: []Deployment{{ID: "b", State: InProgress, Stopped: true}, one[0]},
			want:        Plan{Rollout: Failed, Failure: StoppedByUser, RollBackTo: "a"},
		},
		{
			name:        "the breaker ignores a completed deployment",
			service:     Service{Desired: 2, MaximumPercent: 200, Breaker: Breaker{Enabled: true, Threshold: 3}},
			deployments: []Deployment{{ID: "a", State: Completed, Failed: 9}},
			tasks:       many("a", 1, Healthy),
			want:        Plan{Start: 1},
		},
		{
			name:        "an alarm fails a deployment",
			service:     Service{Desired: 2, Alarms: Alarms{Triggered: true}},
			deployments: two,
			want:        Plan{Rollout: Failed, Failure: AlarmDetected},
		},
		{
			name: "an alarm counts before the breaker",
			service: Service{
				Desired: 2,
				Alarms:  Alarms{Triggered: true},
				Breaker: Breaker{Enabled: true, Rollback: true, Threshold: 3},
			},
			deployments: failing(3, one...),
			want:        Plan{Rollout: Failed, Failure: AlarmDetected},
		},
		{
			name:        "an alarm rolls back if it is set to",
			service:     Service{Desired: 2, Alarms: Alarms{Triggered: true, Rollback: true}},
			deployments: two,
			want:        Plan{Rollout: Failed, Failure: AlarmDetected, RollBackTo: "a"},
		},
		{
			name:        "an alarm does not fail a completed deployment",
			service:     Service{Desired: 2, Alarms: Alarms{Triggered: true, Rollback: true}},
			deployments: one,
			tasks:       many("a", 2, Healthy),
			want:        Plan{Steady: true},
		},
		{
			name:        "the bake time begins with all tasks healthy",
			service:     Service{Desired: 2, Bake: time.Minute},
			deployments: two,
			tasks:       many("b", 2, Healthy),
			want:        Plan{Bakes: true, Wake: now.Add(time.Minute)},
		},
		{
			name:        "the roll-out is not complete before the bake time is over",
			service:     Service{Desired: 2, Bake: time.Minute},
			deployments: baking(59 * time.Second),
			tasks:       many("b", 2, Healthy),
			want:        Plan{Wake: now.Add(time.Second)},
		},
		{
			name:        "the roll-out is complete after the bake time",
			service:     Service{Desired: 2, Bake: time.Minute},
			deployments: baking(time.Minute),
			tasks:       many("b", 2, Healthy),
			want:        Plan{Rollout: Completed, Steady: true},
		},
		{
			name:        "an alarm during the bake time fails the deployment",
			service:     Service{Desired: 2, Bake: time.Minute, Alarms: Alarms{Triggered: true, Rollback: true}},
			deployments: baking(time.Second),
			tasks:       many("b", 2, Healthy),
			want:        Plan{Rollout: Failed, Failure: AlarmDetected, RollBackTo: "a"},
		},
		{
			name:        "a failed deployment starts nothing and keeps the others' tasks",
			service:     replica(2, 100, 200),
			deployments: []Deployment{{ID: "b", State: Failed}, one[0]},
			tasks:       many("a", 2, Healthy),
		},
		{
			name:        "a service with a failed deployment can be scaled in",
			service:     replica(1, 100, 200),
			deployments: []Deployment{{ID: "b", State: Failed}, one[0]},
			tasks:       many("a", 2, Healthy),
			stop:        []string{"a2-0"},
		},
		{
			name:        "a deleted service stops all its tasks",
			service:     Service{Deleted: true},
			deployments: one,
			tasks:       join(with(many("a", 1, Healthy), protected), many("a", 1, Stopping)),
			stop:        []string{"a2-0"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.service, c.deployments, c.tasks, now)
			if ids := stops(got); !reflect.DeepEqual(ids, c.stop) {
				t.Errorf("stops %v, want %v", ids, c.stop)
			}
			if got.Stop = nil; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRebalance(t *testing.T) {
	in := func(zone string, n int, status Status) []Task {
		return with(many("a", n, status), func(t *Task) {
			t.ID = zone + t.ID
			t.Zone = zone
		})
	}
	protected := func(t *Task) { t.ProtectedUntil = now.Add(time.Minute) }
	service := func(desired int) Service {
		s := replica(desired, 100, 200)
		s.Zones = []string{"x", "y", "z"}
		s.Rebalancing = true
		return s
	}
	tight := service(2)
	tight.MaximumPercent = 125
	for _, c := range []struct {
		name        string
		service     Service
		deployments []Deployment
		tasks       []Task
		want        Plan
		stop        []string
	}{
		{
			name:    "steady with even zones",
			service: service(5),
			tasks:   join(in("x", 2, Healthy), in("y", 2, Healthy), in("z", 1, Healthy)),
			want:    Plan{Steady: true},
		},
		{
			name:    "the emptiest zone gets a task first",
			service: service(6),
			tasks:   join(in("x", 4, Healthy), in("y", 2, Healthy)),
			want:    Plan{Steady: true, Rebalancing: true, StartIn: []string{"z", "y"}},
		},
		{
			name:    "tasks leave a zone that is not wanted any more",
			service: service(3),
			tasks:   join(in("w", 2, Healthy), in("x", 1, Healthy)),
			want:    Plan{Steady: true, Rebalancing: true, StartIn: []string{"y", "z"}},
		},
		{
			name:    "nothing stops before the new task is healthy",
			service: service(2),
			tasks:   join(in("x", 2, Healthy), in("y", 1, Running)),
			want:    Plan{Rebalancing: true},
		},
		{
			name:    "the fullest zone loses a task once the new one is healthy",
			service: service(2),
			tasks:   join(in("x", 2, Healthy), in("y", 1, Healthy)),
			want:    Plan{Rebalancing: true},
			stop:    []string{"xa2-0"},
		},
		{
			name:    "scale-in comes first",
			service: service(1),
			tasks:   join(in("x", 2, Healthy), in("y", 1, Pending)),
			want:    Plan{Rebalancing: true},
			stop:    []string{"ya0-0", "xa2-0"},
		},
		{
			name:    "protected tasks are not moved",
			service: service(2),
			tasks:   with(in("x", 2, Healthy), protected),
			want:    Plan{Steady: true, Rebalancing: true, Held: 2, Wake: now.Add(time.Minute)},
		},
		{
			name:    "unprotected tasks are moved",
			service: service(5),
			tasks:   join(with(in("x", 3, Healthy), protected), in("y", 2, Healthy)),
			want:    Plan{Steady: true, Rebalancing: true, StartIn: []string{"z"}},
		},
		{name: "no task moves without room for one more", service: tight, tasks: in("x", 2, Healthy), want: Plan{Steady: true}},
		{
			name:        "no task moves during a deployment",
			service:     service(2),
			deployments: two,
			tasks:       with(in("x", 2, Healthy), func(t *Task) { t.Deployment = "b" }),
			want:        Plan{Rollout: Completed, Steady: true},
		},
		{
			name:        "no task moves while starts wait after failures",
			service:     service(2),
			deployments: []Deployment{{ID: "a", State: Completed, Failed: 1, NotBefore: now.Add(time.Second)}},
			tasks:       in("x", 2, Healthy),
			want:        Plan{Steady: true, Rebalancing: true, Wake: now.Add(time.Second)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.deployments == nil {
				c.deployments = one
			}
			got := Decide(c.service, c.deployments, c.tasks, now)
			if ids := stops(got); !reflect.DeepEqual(ids, c.stop) {
				t.Errorf("stops %v, want %v", ids, c.stop)
			}
			if got.Stop = nil; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestDaemon(t *testing.T) {
	on := func(instance string, tasks []Task) []Task {
		return with(tasks, func(t *Task) {
			t.Instance = instance
			t.ID = t.ID + instance
		})
	}
	service := Service{Daemon: true, Instances: []string{"i0", "i1"}, MaximumPercent: 100}
	half := service
	half.MinimumHealthyPercent = 50
	for _, c := range []struct {
		name        string
		service     Service
		deployments []Deployment
		tasks       []Task
		want        Plan
		stop        []string
	}{
		{name: "one task on each instance", service: service, deployments: two[:1], want: Plan{StartOn: []string{"i0", "i1"}}},
		{
			name:        "a new instance gets a task",
			service:     service,
			deployments: one,
			tasks:       many("a", 1, Healthy),
			want:        Plan{StartOn: []string{"i1"}},
		},
		{
			name:        "an instance that is not wanted any more loses its task",
			service:     service,
			deployments: one,
			tasks:       join(many("a", 2, Healthy), on("i2", many("a", 1, Healthy))),
			stop:        []string{"a2-0i2"},
		},
		{
			name:        "old tasks stop before new ones start",
			service:     service,
			deployments: two,
			tasks:       many("a", 2, Healthy),
			stop:        []string{"a2-0", "a2-1"},
		},
		{name: "old tasks stop down to the minimum", service: half, deployments: two, tasks: many("a", 2, Healthy), stop: []string{"a2-0"}},
		{
			name:        "an instance gets its new task only once the old one is STOPPED",
			service:     half,
			deployments: two,
			tasks:       join(many("a", 2, Healthy)[1:], many("a", 1, Stopping)),
			want:        Plan{},
		},
		{
			name:        "a second task on an instance stops",
			service:     service,
			deployments: one,
			tasks:       join(many("a", 2, Healthy), on("i1", many("a", 1, Pending))),
			stop:        []string{"a0-0i1"},
		},
		{name: "unhealthy tasks stop", service: service, deployments: one, tasks: many("a", 2, Unhealthy), stop: []string{"a3-0", "a3-1"}},
		{
			name:        "steady with a healthy task on each instance",
			service:     service,
			deployments: one,
			tasks:       many("a", 2, Healthy),
			want:        Plan{Steady: true},
		},
		{
			name:        "steady without instances",
			service:     Service{Daemon: true},
			deployments: two[:1],
			want:        Plan{Rollout: Completed, Steady: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Decide(c.service, c.deployments, c.tasks, now)
			if ids := stops(got); !reflect.DeepEqual(ids, c.stop) {
				t.Errorf("stops %v, want %v", ids, c.stop)
			}
			if got.Stop = nil; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestThresholdAndDelay(t *testing.T) {
	for desired, want := range map[int]int{0: 3, 1: 3, 6: 3, 7: 4, 25: 13, 400: 200, 1000: 200} { // with the developer guide's examples
		if got := Threshold(nil, desired); got != want {
			t.Errorf("of %d tasks %d may fail, want %d", desired, got, want)
		}
	}
	for c, want := range map[types.ThresholdConfiguration]int{
		{Type: types.ThresholdTypeCount, Value: 1}:               1,
		{Type: types.ThresholdTypeBoundedPercent, Value: 10}:     3,
		{Type: types.ThresholdTypeUnboundedPercent, Value: 10}:   1,
		{Type: types.ThresholdTypeUnboundedPercent, Value: 5000}: 500,
	} {
		if got := Threshold(&c, 10); got != want {
			t.Errorf("%s %d of 10 tasks: %d may fail, want %d", c.Type, c.Value, got, want)
		}
	}
	for failed, want := range map[int]time.Duration{
		0:   0,
		1:   time.Second,
		4:   time.Second,
		5:   2 * time.Second,
		12:  4 * time.Second,
		400: 27 * time.Minute,
	} {
		if got := Delay(failed, 4); got != want {
			t.Errorf("after %d failures of 4 tasks %s, want %s", failed, got, want)
		}
	}
}
