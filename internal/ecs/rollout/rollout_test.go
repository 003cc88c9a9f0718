package rollout

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store/journaltest"
)

const (
	inProgress = types.DeploymentRolloutStateInProgress
	completed  = types.DeploymentRolloutStateCompleted
	failed     = types.DeploymentRolloutStateFailed
)

// inWorld runs a test in a world with fake time, two nodes and a task definition.
func inWorld(t *testing.T, test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.cluster(2)
		w.define("v1")
		test(t, w)
		w.end()
		time.Sleep(time.Hour) // the nodes' timers
	})
}

func TestNewServiceComesUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(3)
		expect(t, w.after(time.Second), 0, 3, 1, inProgress)
		expect(t, w.after(starting), 3, 0, 1, inProgress)
		s := w.after(settle)
		expect(t, s, 3, 0, 1, completed)
		want := []string{
			"(service s) has started 3 tasks: (task ID) (task ID) (task ID).",
			"(service s) (deployment ID) deployment completed.",
			"(service s) has reached a steady state.",
		}
		if got := events(s); !reflect.DeepEqual(got, want) {
			t.Errorf("events %q", got)
		}
		task := w.tasks()[0]
		nodes := map[string]bool{}
		for _, task := range w.tasks() {
			nodes[*task.ContainerInstanceArn] = true
		}
		if len(nodes) != 2 {
			t.Errorf("the tasks are on %v of two nodes", nodes)
		}
		if *task.StartedBy != *s.Deployments[0].Id || *task.Group != "service:s" {
			t.Errorf("a task is started by %s in group %s", *task.StartedBy, *task.Group)
		}
		revision := w.store.Revision()
		if w.after(time.Hour); w.store.Revision() != revision {
			t.Error("a steady service goes on changing")
		}
	})
}

func TestTasksThatEndAreReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(3)
		w.after(time.Minute)
		tasks := w.tasks()
		w.report(w.ctx, tasks[0], "STOPPED", aws.Int32(1))
		if _, err := w.ecs.StopTask(w.ctx, &awsecs.StopTaskInput{Task: tasks[1].TaskArn}); err != nil {
			t.Fatal(err)
		}
		expect(t, w.after(time.Second), 1, 2, 1, completed)
		s := w.after(time.Minute)
		expect(t, s, 3, 0, 1, completed)
		if s.Deployments[0].FailedTasks != 0 {
			t.Errorf("%d failed tasks; they had been healthy, or a user stopped them", s.Deployments[0].FailedTasks)
		}
	})
}

func TestNodesThatGo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(4)
		w.after(time.Minute)
		node := w.tasks()[0].ContainerInstanceArn
		on := func() (n int) {
			for _, task := range w.tasks() {
				if *task.ContainerInstanceArn == *node {
					n++
				}
			}
			return n
		}
		n := int32(on())
		w.node()
		if _, err := w.ecs.UpdateContainerInstancesState(w.ctx, &awsecs.UpdateContainerInstancesStateInput{
			ContainerInstances: []string{*node},
			Status:             types.ContainerInstanceStatusDraining,
		}); err != nil {
			t.Fatal(err)
		}
		expect(t, w.after(time.Second), 4, n, 1, completed)
		expect(t, w.after(time.Minute), 4, 0, 1, completed)
		if on() != 0 {
			t.Error("tasks are left on a draining node")
		}
		node = w.tasks()[0].ContainerInstanceArn
		if _, err := w.ecs.DeregisterContainerInstance(w.ctx, &awsecs.DeregisterContainerInstanceInput{
			ContainerInstance: node,
			Force:             aws.Bool(true),
		}); err != nil {
			t.Fatal(err)
		}
		s := w.after(time.Minute)
		expect(t, s, 4, 0, 1, completed)
		if s.Deployments[0].FailedTasks != 0 {
			t.Error("a lost node counts as failures")
		}
	})
}

func TestRollingUpdate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(4)
		w.after(time.Minute)
		w.define("v2")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		expect(t, w.after(time.Second), 4, 4, 2, inProgress)
		for range 60 {
			if s := w.after(time.Second); s.RunningCount < 4 || s.RunningCount+s.PendingCount > 8 {
				t.Errorf("%d running, %d pending of 4", s.RunningCount, s.PendingCount)
			}
		}
		s := w.service()
		expect(t, s, 4, 0, 1, completed)
		for _, task := range w.tasks() {
			if *task.Containers[0].Image != "v2" {
				t.Error("an old task is left")
			}
		}
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(0)})
		expect(t, w.after(time.Minute), 0, 0, 1, completed)
	})
}

func TestCircuitBreaker(t *testing.T) {
	breaker := &types.DeploymentConfiguration{DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true}}
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2)
		first := *w.after(time.Minute).Deployments[0].Id
		w.define("broken")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), DeploymentConfiguration: breaker})
		s := w.after(2 * time.Minute)
		expect(t, s, 2, 0, 1, completed)
		if *s.Deployments[0].Id != first || !strings.HasSuffix(*s.TaskDefinition, "f:1") {
			t.Errorf("it is at deployment %s of %s", *s.Deployments[0].Id, *s.TaskDefinition)
		}
		want := []string{
			"(service s) has started 2 tasks: (task ID) (task ID).",
			"(service s) has started 2 tasks: (task ID) (task ID).",
			"(service s) (deployment ID) deployment failed: tasks failed to start.",
			"(service s) rolling back to deployment ID.",
			"(service s) (deployment ID) deployment completed.",
			"(service s) has reached a steady state.",
		}
		got := slices.DeleteFunc(events(s)[3:], func(e string) bool { // whether a task has failed yet is a matter of luck
			return strings.Contains(e, "has stopped 1 pending tasks")
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("events %q", got)
		}
		list, err := w.ecs.ListServiceDeployments(w.ctx, &awsecs.ListServiceDeploymentsInput{Service: aws.String("s")})
		if err != nil || list.ServiceDeployments[0].Status != types.ServiceDeploymentStatusRollbackSuccessful {
			t.Errorf("%+v, %v", list, err)
		}
	})
	inWorld(t, func(t *testing.T, w *world) { // with nothing to roll back to, it stalls
		w.define("broken")
		w.create(2, func(in *awsecs.CreateServiceInput) { in.DeploymentConfiguration = breaker })
		expect(t, w.after(time.Hour), 0, 0, 1, failed)
	})
}

func TestStopServiceDeployment(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2)
		w.after(time.Minute)
		w.define("v2")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		roll := w.after(10 * time.Second).CurrentServiceDeployment
		stop := &awsecs.StopServiceDeploymentInput{ServiceDeploymentArn: roll}
		if _, err := w.ecs.StopServiceDeployment(w.ctx, stop); err != nil {
			t.Fatal(err)
		}
		s := w.after(time.Minute)
		expect(t, s, 2, 0, 1, completed)
		if !strings.HasSuffix(*s.TaskDefinition, "f:1") {
			t.Errorf("it is at %s", *s.TaskDefinition)
		}
		if _, err := w.ecs.StopServiceDeployment(w.ctx, stop); err == nil {
			t.Error("a deployment is stopped twice")
		}
		out, err := w.ecs.DescribeServiceDeployments(w.ctx, &awsecs.DescribeServiceDeploymentsInput{ServiceDeploymentArns: []string{*roll}})
		if err != nil || out.ServiceDeployments[0].Status != types.ServiceDeploymentStatusRollbackSuccessful {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

func TestBackOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.define("broken")
		w.create(2)
		s := w.after(10 * time.Minute)
		tries := 0
		for range w.store.View().Tasks.All() {
			tries++
		}
		if tries < 10 || tries > 24 {
			t.Errorf("%d tasks in ten minutes", tries)
		}
		if n := strings.Count(strings.Join(events(s), "\n"), "is unable to consistently start tasks successfully."); n != 1 {
			t.Errorf("the event about it came %d times", n)
		}
		last := w.store.View().Tasks.Get(w.store.View().Services.Get(*s.ServiceArn).Deployments[0].LastFailed)
		for task := range w.store.View().Tasks.By(state.TasksByLastStatus, "STOPPED") {
			if last == nil || task.StoppedAt.After(*last.StoppedAt) {
				t.Errorf("the last task that failed is %+v; %s failed later", last, *task.TaskArn)
			}
		}
		w.define("good")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
	})
}

func TestRoom(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.define("gpu", oneGPU)
		w.create(3)
		s := w.after(10 * time.Minute)
		expect(t, s, 2, 0, 1, inProgress)
		const event = "(service s) was unable to place a task because no container instance met all of its requirements. " +
			"The closest matching (container-instance ID) has insufficient GPU resource available."
		if n := strings.Count(strings.Join(events(s), "\n"), event); n != 1 {
			t.Errorf("it says so %d times: %q", n, events(s))
		}
		w.node()
		expect(t, w.after(time.Second), 2, 1, 1, inProgress)
		expect(t, w.after(time.Minute), 3, 0, 1, completed)
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(4)})
		w.after(time.Minute)
		w.report(w.ctx, w.tasks()[0], "STOPPED", aws.Int32(0)) // its GPU is needed
		expect(t, w.after(time.Minute), 3, 0, 1, completed)
	})
}

func TestDaemonFollowsNodes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		rack := types.Attribute{Name: aws.String("rack"), Value: aws.String("7")}
		w.create(0, daemon, func(in *awsecs.CreateServiceInput) {
			in.PlacementConstraints = []types.PlacementConstraint{{
				Type:       types.PlacementConstraintTypeMemberOf,
				Expression: aws.String("attribute:rack == 7"),
			}}
		})
		expect(t, w.after(time.Minute), 0, 0, 1, completed)
		first, second := w.node(rack), w.node(rack)
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		if s := w.service(); s.DesiredCount != 2 {
			t.Errorf("%d desired", s.DesiredCount)
		}
		other, err := w.ecs.CreateService(w.ctx, &awsecs.CreateServiceInput{
			ServiceName:        aws.String("other"),
			TaskDefinition:     aws.String("f"),
			SchedulingStrategy: types.SchedulingStrategyDaemon,
		})
		if err != nil || other.Service.DesiredCount != 4 {
			t.Errorf("who waits for a new DAEMON service on 4 nodes sees that it wants %d, %v", other.Service.DesiredCount, err)
		}
		if _, err := w.ecs.DeleteService(w.ctx, &awsecs.DeleteServiceInput{Service: aws.String("other")}); err != nil {
			t.Fatal(err)
		}
		w.define("v2")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		expect(t, w.after(2*time.Minute), 2, 0, 1, completed)
		if _, err := w.ecs.UpdateContainerInstancesState(w.ctx, &awsecs.UpdateContainerInstancesStateInput{
			ContainerInstances: []string{first},
			Status:             types.ContainerInstanceStatusDraining,
		}); err != nil {
			t.Fatal(err)
		}
		expect(t, w.after(time.Minute), 1, 0, 1, completed)
		if tasks := w.tasks(); *tasks[0].ContainerInstanceArn != second {
			t.Error("the task on the draining node was kept")
		}
	})
}

func TestHealthChecks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.define("v2", func(c *types.ContainerDefinition) {
			c.HealthCheck = &types.HealthCheck{Command: []string{"CMD", "true"}}
		})
		w.create(1, func(in *awsecs.CreateServiceInput) { in.HealthCheckGracePeriodSeconds = aws.Int32(60) })
		health := func(status types.HealthStatus) {
			w.update(func(tx *state.Tx) {
				row := *tx.Tasks.Get(*w.tasks()[0].TaskArn)
				row.HealthStatus = status
				tx.Tasks.Put(&row)
			})
		}
		expect(t, w.after(10*time.Minute), 1, 0, 1, inProgress)
		health(types.HealthStatusHealthy)
		expect(t, w.after(time.Second), 1, 0, 1, completed)
		health(types.HealthStatusUnhealthy)
		expect(t, w.after(time.Second), 1, 1, 1, completed) // its replacement comes first
		w.after(10 * time.Second)
		old := w.tasks()[0]
		w.update(func(tx *state.Tx) {
			row := *tx.Tasks.Get(*w.tasks()[1].TaskArn)
			row.HealthStatus = types.HealthStatusHealthy
			tx.Tasks.Put(&row)
		})
		s := w.after(time.Minute)
		expect(t, s, 1, 0, 1, completed)
		if row := w.store.View().Tasks.Get(*old.TaskArn); aws.ToString(row.StoppedReason) != FailedContainerChecks {
			t.Errorf("the unhealthy task was stopped for %q", aws.ToString(row.StoppedReason))
		}
		health(types.HealthStatusUnhealthy)
		if w.after(time.Second); len(w.tasks()) != 2 {
			t.Error("its grace is over, but it is not replaced")
		}
	})
}

func TestDelete(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2)
		w.after(time.Minute)
		if _, err := w.ecs.DeleteService(w.ctx, &awsecs.DeleteServiceInput{Service: aws.String("s"), Force: aws.Bool(true)}); err != nil {
			t.Fatal(err)
		}
		if s := w.after(time.Minute); *s.Status != "INACTIVE" || len(w.tasks()) != 0 {
			t.Errorf("it is %s with %d tasks", *s.Status, len(w.tasks()))
		}
		w.create(1)
		expect(t, w.after(time.Minute), 1, 0, 1, completed)
	})
}

func TestRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(3)
		w.after(time.Minute)
		w.loop.Rest()
		for _, task := range w.tasks() {
			w.report(w.ctx, task, "STOPPED", aws.Int32(0))
		}
		expect(t, w.after(time.Hour), 0, 0, 1, completed)
	})
}

// TestSurvivesKills restarts from what the journal held after each write of a rolling update that is rolled back, as if
// the control plane had been killed there, and lets it continue.
func TestSurvivesKills(t *testing.T) {
	var history []journaltest.Rows
	inWorld(t, func(t *testing.T, w *world) {
		w.create(3)
		w.after(time.Minute)
		w.journal.OnWrite(func(rows journaltest.Rows) { history = append(history, rows) })
		w.define("broken")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f"), DesiredCount: aws.Int32(4),
			DeploymentConfiguration: &types.DeploymentConfiguration{
				DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true}}})
		w.after(time.Minute)
		w.define("v3")
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f:3")})
		w.after(10 * time.Minute)
	})
	if len(history) < 10 {
		t.Fatalf("only %d writes", len(history))
	}
	for i, rows := range history {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, rows)
			s := w.after(10 * time.Minute)
			if len(s.Deployments) != 1 || s.Deployments[0].RolloutState != completed || s.RunningCount != s.DesiredCount ||
				s.PendingCount != 0 {
				t.Errorf("killed after write %d: %d of %d running, %+v", i, s.RunningCount, s.DesiredCount, s.Deployments)
			}
			w.end()
			time.Sleep(time.Hour)
		})
	}
}

func TestProtectedTasksAreWaitedFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2)
		w.after(time.Minute)
		var tasks []string
		for _, task := range w.tasks() {
			tasks = append(tasks, *task.TaskArn)
		}
		if _, err := w.ecs.UpdateTaskProtection(w.ctx, &awsecs.UpdateTaskProtectionInput{
			Cluster:           aws.String("default"),
			Tasks:             tasks,
			ProtectionEnabled: true,
			ExpiresInMinutes:  aws.Int32(10),
		}); err != nil {
			t.Fatal(err)
		}
		node := *w.tasks()[0].ContainerInstanceArn
		if _, err := w.ecs.UpdateContainerInstancesState(w.ctx, &awsecs.UpdateContainerInstancesStateInput{
			ContainerInstances: []string{node},
			Status:             types.ContainerInstanceStatusDraining,
		}); err != nil {
			t.Fatal(err)
		}
		s := w.after(9 * time.Minute)
		expect(t, s, 3, 0, 1, completed) // the draining node's task and its replacement
		const event = "(service s) was unable to reach steady state because " +
			"(taskSet ID) was unable to scale in due to (reason 1 tasks under protection)"
		if n := strings.Count(strings.Join(events(s), "\n"), event); n != 1 {
			t.Errorf("it says so %d times: %q", n, events(s))
		}
		expect(t, w.after(2*time.Minute), 2, 0, 1, completed)
		for _, task := range w.tasks() {
			if *task.ContainerInstanceArn == node {
				t.Error("a task is left on the draining node")
			}
		}
	})
}

// TestClockSetBack: tasks that are started while the clock says that their service isn't made yet are the service's all the same.
func TestClockSetBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.create(2)
		w.after(time.Minute)
		w.update(func(tx *state.Tx) {
			for s := range tx.Services.All() {
				row := *s
				row.CreatedAt = aws.Time(s.CreatedAt.Add(5 * time.Hour)) // as if all other clocks were set back
				tx.Services.Put(&row)
			}
		})
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(3)})
		expect(t, w.after(time.Minute), 3, 0, 1, completed)
		if n := len(w.tasks()); n != 3 {
			t.Errorf("%d tasks run", n)
		}
	})
}

// TestTellsHowLateItSteps: a round is as late as the service that has waited for longest, and one without services isn't counted.
func TestTellsHowLateItSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []time.Duration
		l := New(scheduler.New(1), Options{Now: time.Now, Late: func(d time.Duration) { told = append(told, d) }})
		row := func(name string) *state.Service {
			return &state.Service{Service: types.Service{ServiceArn: &name, ClusterArn: aws.String("c"), Status: aws.String("ACTIVE")}}
		}
		l.Change(nil, row("a"))
		time.Sleep(3 * time.Second)
		l.Change(nil, row("b"))
		time.Sleep(time.Second)
		if due := l.take(); len(due) != 2 {
			t.Errorf("due are %v", due)
		}
		l.take()
		l.Change(row("a"), row("a"))
		time.Sleep(time.Second)
		l.take()
		if !slices.Equal(told, []time.Duration{4 * time.Second, time.Second}) {
			t.Errorf("it was late by %v", told)
		}
	})
}
