package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store/journaltest"
)

const group = "arn:aws:elasticloadbalancing:us-east-1:000000000000:targetgroup/models/1"

// withPort makes a container listen.
func withPort(c *types.ContainerDefinition) {
	c.PortMappings = []types.PortMapping{{ContainerPort: aws.Int32(80)}}
}

// behind puts a service behind the load balancer.
func behind(in *awsecs.CreateServiceInput) {
	in.LoadBalancers = []types.LoadBalancer{{TargetGroupArn: aws.String(group), ContainerName: aws.String("main"), ContainerPort: aws.Int32(80)}}
}

// balance makes a target group that a listener forwards to, and gives the nodes addresses.
func (w *world) balance() {
	w.t.Helper()
	w.update(func(tx *state.Tx) {
		tx.TargetGroups.Put(&state.TargetGroup{TargetGroup: elb.TargetGroup{TargetGroupArn: aws.String(group), Protocol: "HTTP", TargetType: "instance"}})
		tx.Listeners.Put(&state.Listener{Listener: elb.Listener{
			ListenerArn: aws.String("l"), LoadBalancerArn: aws.String("b"),
			DefaultActions: []elb.Action{{Type: "forward", TargetGroupArn: aws.String(group)}},
		}})
		for _, c := range slices.Collect(tx.ContainerInstances.All()) {
			row := *c
			row.Ec2InstanceId = new("i-" + state.NameOf(*c.ContainerInstanceArn))
			tx.ContainerInstances.Put(&row)
		}
	})
}

// checked gives all targets that aren't draining a state.
func (w *world) checked(s elb.TargetHealthStateEnum, description string) {
	w.t.Helper()
	w.update(func(tx *state.Tx) {
		for _, t := range slices.Collect(tx.Targets.All()) {
			if t.Draining == nil {
				tx.Targets.Put(t.Checked(elb.TargetHealth{State: s, Description: &description}, time.Now()))
			}
		}
	})
}

// drained ends the draining of all targets that drain, and returns how many there were.
func (w *world) drained() (n int) {
	w.t.Helper()
	w.update(func(tx *state.Tx) {
		for _, t := range slices.Collect(tx.Targets.All()) {
			if t.Draining != nil {
				tx.DeleteTarget(t)
				n++
			}
		}
	})
	return n
}

func (w *world) hasEvent(part string) bool {
	return slices.ContainsFunc(events(w.service()), func(e string) bool { return strings.Contains(e, part) })
}

// TestHostNetworkBehindLoadBalancer: a task in its host's network listens on the container's port itself, and no binding tells of it.
func TestHostNetworkBehindLoadBalancer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.update(func(tx *state.Tx) {
			for td := range tx.TaskDefinitions.All() {
				row := *td
				row.NetworkMode = types.NetworkModeHost
				tx.TaskDefinitions.Put(&row)
			}
		})
		w.create(1, behind)
		w.after(10 * time.Second)
		n := 0
		for target := range w.store.View().Targets.All() {
			if n++; target.Port != 80 || !strings.HasPrefix(target.ID, "i-") {
				t.Errorf("%+v", target)
			}
		}
		if n != 1 {
			t.Errorf("%d targets", n)
		}
	})
}

// TestBehindLoadBalancer: a deployment waits until the load balancer finds its tasks healthy, and those that it replaces run until nothing is
// under way to them.
func TestBehindLoadBalancer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.create(2, behind)
		expect(t, w.after(time.Hour), 2, 0, 1, inProgress) // they are healthy only if the load balancer says so
		if n := w.store.View().Targets.Len(); n != 2 || !w.hasEvent(" targets in (target-group ID)") {
			t.Fatal(n, events(w.service()))
		}
		w.checked(elb.TargetHealthStateEnumHealthy, "")
		expect(t, w.after(time.Second), 2, 0, 1, completed)
		before := w.tasks()
		w.define("v2", withPort)
		w.change(&awsecs.UpdateServiceInput{TaskDefinition: aws.String("f")})
		expect(t, w.after(time.Hour), 4, 0, 2, inProgress)
		w.checked(elb.TargetHealthStateEnumHealthy, "")
		w.after(time.Minute)
		for _, old := range before {
			row := w.store.View().Tasks.Get(*old.TaskArn)
			if *row.DesiredStatus != "STOPPED" || *row.LastStatus != "RUNNING" || !row.Deregistering {
				t.Errorf("%s is %s, %s", *row.TaskArn, *row.DesiredStatus, *row.LastStatus)
			}
		}
		described, err := w.ecs.DescribeTasks(w.ctx, &awsecs.DescribeTasksInput{Tasks: []string{*before[0].TaskArn}})
		if err != nil || *described.Tasks[0].LastStatus != "DEACTIVATING" || !w.hasEvent("has begun draining connections on 2 tasks.") {
			t.Error(err, events(w.service()))
		}
		if n := w.drained(); n != 2 {
			t.Errorf("%d drained", n)
		}
		expect(t, w.after(time.Minute), 2, 0, 1, completed)
		if row := w.store.View().Tasks.Get(*before[0].TaskArn); *row.LastStatus != "STOPPED" {
			t.Error(*row.LastStatus)
		}
	})
}

// TestDeletedTargetGroup: tasks whose target group is gone run, but the service doesn't become steady, and says why, once.
func TestDeletedTargetGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.create(1, behind)
		expect(t, w.after(time.Minute), 1, 0, 1, inProgress)
		w.checked(elb.TargetHealthStateEnumHealthy, "")
		expect(t, w.after(time.Second), 1, 0, 1, completed)
		w.update(func(tx *state.Tx) {
			for _, target := range slices.Collect(tx.Targets.All()) {
				tx.DeleteTarget(target)
			}
			tx.TargetGroups.Delete(group)
		})
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(2)})
		w.after(time.Hour)
		w.change(&awsecs.UpdateServiceInput{DesiredCount: aws.Int32(3)})
		w.after(time.Hour)
		var last []string
		for _, e := range events(w.service()) {
			if strings.Contains(e, "failed to register targets") || strings.Contains(e, reachedSteady) {
				last = append(last, e)
			}
		}
		want := "(service s) failed to register targets in (target-group ID) with (error One or more target groups not found)"
		if len(last) != 2 || !slices.Contains(last, want) {
			t.Errorf("%q", last)
		}
		w.change(&awsecs.UpdateServiceInput{LoadBalancers: []types.LoadBalancer{}})
		expect(t, w.after(time.Hour), 3, 0, 1, completed)
	})
}

// TestLostTargetGroup: a target group is gone and its targets aren't, as a repair of a damaged store may leave them. The service says so once, and
// doesn't call itself steady in the same breath, over and over.
func TestLostTargetGroup(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.create(1, behind)
		w.after(time.Minute)
		w.checked(elb.TargetHealthStateEnumHealthy, "")
		expect(t, w.after(time.Second), 1, 0, 1, completed)
		w.update(func(tx *state.Tx) { tx.TargetGroups.Delete(group) })
		commits := 0
		w.journal.OnWrite(func(journaltest.Rows) {
			if commits++; commits > 20 {
				panic("it goes on writing")
			}
		})
		w.change(&awsecs.UpdateServiceInput{EnableECSManagedTags: aws.Bool(true)})
		w.after(time.Hour)
	})
}

// TestUnhealthyTargetsAreReplaced: once the grace period is over. They count as failures, so the circuit breaker trips.
func TestUnhealthyTargetsAreReplaced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.create(1, behind, func(in *awsecs.CreateServiceInput) { in.HealthCheckGracePeriodSeconds = aws.Int32(60) })
		w.after(10 * time.Second)
		first := w.tasks()[0]
		w.checked(elb.TargetHealthStateEnumUnhealthy, "Health checks failed with these codes: [500]")
		w.after(45 * time.Second)
		if len(w.tasks()) != 1 || *w.tasks()[0].TaskArn != *first.TaskArn {
			t.Fatal("it was replaced within its grace period")
		}
		w.after(20 * time.Second)
		w.update(func(tx *state.Tx) { // the other one is well
			for _, target := range slices.Collect(tx.Targets.All()) {
				if target.Task != *first.TaskArn {
					tx.Targets.Put(target.Checked(elb.TargetHealth{State: elb.TargetHealthStateEnumHealthy}, time.Now()))
				}
			}
		})
		w.after(time.Second)
		w.drained()
		w.after(10 * time.Second)
		row := w.store.View().Tasks.Get(*first.TaskArn)
		if got := aws.ToString(row.StoppedReason); got != "Task failed ELB health checks in (target-group "+group+")" {
			t.Error(got, *row.LastStatus, events(w.service()))
		}
		if !w.hasEvent("is unhealthy in (target-group ID) due to (reason Health checks failed with these codes: [500])") {
			t.Error(events(w.service()))
		}
		if d := w.service().Deployments[0]; d.FailedTasks != 1 {
			t.Errorf("%d failures", d.FailedTasks)
		}
	})
}

// TestTargetsOfLostTasksGo: a task that has ended is no target anymore, and one that a user stops drains first.
func TestTargetsOfLostTasksGo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.create(2, behind)
		w.after(10 * time.Second)
		w.checked(elb.TargetHealthStateEnumHealthy, "")
		w.after(time.Second)
		lost, stopped := w.tasks()[0], w.tasks()[1]
		w.report(w.ctx, lost, "STOPPED", aws.Int32(1))
		if _, err := w.ecs.StopTask(w.ctx, &awsecs.StopTaskInput{Task: stopped.TaskArn}); err != nil {
			t.Fatal(err)
		}
		w.after(time.Second)
		for target := range w.store.View().Targets.All() {
			if target.Task == *lost.TaskArn || target.Task == *stopped.TaskArn && target.Draining == nil {
				t.Errorf("%+v", target)
			}
		}
		w.after(time.Minute)
		if row := w.store.View().Tasks.Get(*stopped.TaskArn); *row.LastStatus != "RUNNING" {
			t.Error("it hasn't drained, and is", *row.LastStatus)
		}
		w.drained()
		w.after(time.Minute)
		if row := w.store.View().Tasks.Get(*stopped.TaskArn); *row.LastStatus != "STOPPED" {
			t.Error("it has drained, and is", *row.LastStatus)
		}
	})
}

// TestTaskSetBehindLoadBalancer: a task set's tasks are registered where it says, and it's steady once they're healthy there.
func TestTaskSetBehindLoadBalancer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.create(1, func(in *awsecs.CreateServiceInput) {
			in.TaskDefinition = nil
			in.DeploymentController = &types.DeploymentController{Type: types.DeploymentControllerTypeExternal}
		})
		in := &awsecs.CreateServiceInput{}
		behind(in)
		if _, err := w.ecs.CreateTaskSet(w.ctx, &awsecs.CreateTaskSetInput{
			Cluster: aws.String("default"), Service: aws.String("s"), TaskDefinition: aws.String("f"), LoadBalancers: in.LoadBalancers,
			Scale: &types.Scale{Unit: types.ScaleUnitPercent, Value: 100},
		}); err != nil {
			t.Fatal(err)
		}
		w.after(10 * time.Second)
		if n := w.store.View().Targets.Len(); n != 1 {
			t.Error(n)
		}
		for _, c := range []struct {
			health elb.TargetHealthStateEnum
			want   types.StabilityStatus
		}{
			{"", types.StabilityStatusStabilizing}, // not checked yet
			{elb.TargetHealthStateEnumHealthy, types.StabilityStatusSteadyState},
			{elb.TargetHealthStateEnumUnhealthy, types.StabilityStatusStabilizing},
		} {
			if c.health != "" {
				w.checked(c.health, "")
			}
			sets, err := w.ecs.DescribeTaskSets(w.ctx, &awsecs.DescribeTaskSetsInput{Cluster: aws.String("default"), Service: aws.String("s")})
			if err != nil || sets.TaskSets[0].RunningCount != 1 || sets.TaskSets[0].StabilityStatus != c.want {
				t.Errorf("with a target that is %q: %v, %+v", c.health, err, sets)
			}
		}
	})
}

// TestPortsForDatagrams: a target group for UDP has the ports that containers have for that, and one for both those that are for both.
func TestPortsForDatagrams(t *testing.T) {
	mapping := func(protocol types.TransportProtocol, host int32) types.PortMapping {
		return types.PortMapping{ContainerPort: aws.Int32(80), HostPort: &host, Protocol: protocol}
	}
	none := "did not have a container port 80 defined"
	for _, c := range []struct {
		protocol elb.ProtocolEnum
		ports    []types.PortMapping
		refusal  string
		udp      bool
	}{
		{"UDP", []types.PortMapping{mapping("tcp", 0)}, none, false},
		{"TCP", []types.PortMapping{mapping("udp", 0)}, none, false},
		{"TLS", []types.PortMapping{mapping("tcp", 0), mapping("udp", 0)}, "", false},
		{"UDP", []types.PortMapping{mapping("tcp", 0), mapping("udp", 0)}, "", true},
		{"TCP_UDP", []types.PortMapping{mapping("tcp", 53), mapping("udp", 53)}, "", false},
		{"TCP_UDP", []types.PortMapping{mapping("tcp", 0), mapping("udp", 0)}, "must have the same host port for tcp and udp", false},
		{"TCP_UDP", []types.PortMapping{mapping("tcp", 53), mapping("udp", 54)}, "must have the same host port for tcp and udp", false},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.balance()
			w.update(func(tx *state.Tx) {
				g := *tx.TargetGroups.Get(group)
				g.Protocol = c.protocol
				tx.TargetGroups.Put(&g)
			})
			w.define("v1", func(d *types.ContainerDefinition) { d.PortMappings = c.ports })
			in := &awsecs.CreateServiceInput{ServiceName: aws.String("s"), TaskDefinition: aws.String("f"), DesiredCount: aws.Int32(1)}
			behind(in)
			_, err := w.ecs.CreateService(w.ctx, in)
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("%s: %v", c.protocol, err)
				}
				return
			}
			if err != nil {
				t.Fatal(c.protocol, err)
			}
			w.after(time.Minute)
			for target := range w.store.View().Targets.All() {
				if target.Port > 30000 != c.udp {
					t.Errorf("%s: port %d", c.protocol, target.Port)
				}
			}
			if n := w.store.View().Targets.Len(); n != 1 {
				t.Errorf("%s: %d targets", c.protocol, n)
			}
		})
	}
}

func TestRefusedLoadBalancers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		for want, change := range map[string]func(*types.LoadBalancer){
			"The container other does not exist in the task definition.":      func(b *types.LoadBalancer) { b.ContainerName = aws.String("other") },
			"The container main did not have a container port 81 defined.":    func(b *types.LoadBalancer) { b.ContainerPort = aws.Int32(81) },
			"the target group arn:x does not exist":                           func(b *types.LoadBalancer) { b.TargetGroupArn = aws.String("arn:x") },
			"is of a Classic Load Balancer, which is not supported by Pintle": func(b *types.LoadBalancer) { b.LoadBalancerName = aws.String("x") },
			"targetGroupArn cannot be empty.":                                 func(b *types.LoadBalancer) { b.TargetGroupArn = nil },
			"advancedConfiguration.alternateTargetGroupArn must not be empty": func(b *types.LoadBalancer) {
				b.AdvancedConfiguration = &types.AdvancedConfiguration{}
			},
		} {
			in := &awsecs.CreateServiceInput{ServiceName: aws.String("x"), TaskDefinition: aws.String("f"), DesiredCount: aws.Int32(1)}
			behind(in)
			change(&in.LoadBalancers[0])
			if _, err := w.ecs.CreateService(w.ctx, in); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
		}
		w.update(func(tx *state.Tx) { tx.Listeners.Delete("l") })
		in := &awsecs.CreateServiceInput{ServiceName: aws.String("x"), TaskDefinition: aws.String("f"), DesiredCount: aws.Int32(1)}
		behind(in)
		want := "The target group with targetGroupArn " + group + " does not have an associated load balancer."
		if _, err := w.ecs.CreateService(w.ctx, in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	})
}

// TestTwoTasksAtOneAddress: what a task that runs is registered as isn't given to another, which waits until the first one is gone.
func TestTwoTasksAtOneAddress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.balance()
		w.define("v1", withPort)
		w.create(2, behind)
		w.after(time.Minute)
		var first, second *state.Target
		for target := range w.store.View().Targets.All() {
			first, second = second, target
		}
		w.update(func(tx *state.Tx) { // the second task tells what the first one has
			tx.DeleteTarget(second)
			stolen := *first
			stolen.Task = second.Task
			if tx.RegisterTarget(stolen) {
				t.Error("it was given away")
			}
		})
		if got := w.store.View().Targets.Get(first.Key()); got.Task != first.Task {
			t.Errorf("it is %s's", got.Task)
		}
		w.update(func(tx *state.Tx) {
			tx.StopTask(tx.Tasks.Get(first.Task), types.TaskStopCodeUserInitiated, "", time.Now())
			stolen := *first
			stolen.Task = second.Task
			if !tx.RegisterTarget(stolen) {
				t.Error("it wasn't given on")
			}
		})
	})
}
