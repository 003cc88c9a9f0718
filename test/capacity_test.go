package test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// createProvider creates an empty group of an instance type, and a capacity provider of the same name with managed scaling for it.
func (p *Pintle) createProvider(name, instanceType, protection string) {
	p.t.Helper()
	p.AWS("ec2", "create-launch-template", "--launch-template-name", name, "--launch-template-data",
		`{"ImageId":"ami-00000000","InstanceType":"`+instanceType+`"}`)
	protects := map[string]string{"ENABLED": "--new-instances-protected-from-scale-in",
		"DISABLED": "--no-new-instances-protected-from-scale-in"}[protection]
	p.AWS("autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", name, "--launch-template", "LaunchTemplateName="+name,
		"--min-size", "0", "--max-size", "10", "--availability-zones", "us-east-1a", protects)
	p.AWS("ecs", "create-capacity-provider", "--name", name, "--auto-scaling-group-provider",
		"autoScalingGroupArn="+p.queryGroup(name, "AutoScalingGroupARN")+
			",managedScaling={status=ENABLED,instanceWarmupPeriod=0},managedTerminationProtection="+protection)
}

// queryGroup queries a field of a group.
func (p *Pintle) queryGroup(name, query string) string {
	p.t.Helper()
	return p.AWS("autoscaling", "describe-auto-scaling-groups", "--auto-scaling-group-names", name,
		"--query", "AutoScalingGroups[0]."+query, "--output", "text")
}

// createProvidedService creates a service with a capacity provider strategy and a desired count of 0. Each of its tasks takes one
// GPU.
func (p *Pintle) createProvidedService(strategy ...string) {
	p.t.Helper()
	p.AWS("ecs", "register-task-definition", "--family", "job", "--container-definitions",
		`[{"name":"main","image":"i","memory":64,"command":["sleep","600"],"stopTimeout":2,"resourceRequirements":[{"type":"GPU",`+
			`"value":"1"}]}]`)
	p.AWS(append([]string{"ecs", "create-service", "--service-name", "job", "--task-definition", "job", "--desired-count", "0",
		"--capacity-provider-strategy"}, strategy...)...)
}

func (p *Pintle) setDesiredCount(tasks int) {
	p.t.Helper()
	p.AWS("ecs", "update-service", "--service", "job", "--desired-count", fmt.Sprint(tasks))
}

// runningTasks returns the RUNNING tasks, and the container instance of each.
func (p *Pintle) runningTasks() map[string]string {
	p.t.Helper()
	tasks := strings.Fields(p.AWS("ecs", "list-tasks", "--query", "taskArns", "--output", "text"))
	out := map[string]string{}
	if len(tasks) == 0 {
		return out
	}
	for line := range strings.Lines(p.AWS(append([]string{"ecs", "describe-tasks",
		"--query", "tasks[?lastStatus=='RUNNING'].[taskArn,containerInstanceArn]", "--output", "text", "--tasks"}, tasks...)...)) {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[0]] = f[1]
		}
	}
	return out
}

// describe describes tasks with the SDK.
func (p *Pintle) describe(tasks ...string) []types.Task {
	p.t.Helper()
	out, err := p.sdk().DescribeTasks(p.t.Context(), &ecs.DescribeTasksInput{Tasks: tasks})
	if err != nil {
		p.t.Fatal(err)
	}
	return out.Tasks
}

func (p *Pintle) awaitRunning(n int) map[string]string {
	p.t.Helper()
	var out map[string]string
	Eventually(p.t, fmt.Sprint(n, " tasks RUNNING"), func() bool { out = p.runningTasks(); return len(out) == n })
	return out
}

// distinct returns the distinct values of a map.
func distinct(m map[string]string) []string {
	return slices.Compact(slices.Sorted(maps.Values(m)))
}

// TestCapacityProviderBothWays takes a service from zero to ten GPU tasks, on instances launched for them, and back. Protected
// tasks and their instances keep running whatever the service's and the group's desired counts say. The control plane is killed
// during both the scale-out and the scale-in.
func TestCapacityProviderBothWays(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t, "--settle", "1s", "--scale-in", "5s")
	p.createProvider("pool", "p3.8xlarge", "ENABLED")
	p.AWS("ecs", "put-cluster-capacity-providers", "--cluster", "default", "--capacity-providers", "pool",
		"--default-capacity-provider-strategy", "[]")
	p.createProvidedService("capacityProvider=pool,weight=1")

	p.setDesiredCount(10)
	p.Kill()
	p.Start()
	tasks := p.awaitRunning(10)
	if got := p.queryGroup("pool", "[DesiredCapacity,length(Instances)]"); got != "3\t3" || len(distinct(tasks)) != 3 {
		t.Errorf("ten tasks of a GPU are on %d instances, and the group has %s, want three of four GPUs", len(distinct(tasks)), got)
	}
	if got := p.AWS("ecs", "list-tasks", "--desired-status", "STOPPED", "--query", "length(taskArns)"); got != "0" {
		t.Errorf("%s tasks were stopped on the way out", got)
	}

	protected := slices.Sorted(maps.Keys(tasks))[:2]
	p.AWS(append([]string{"ecs", "update-task-protection", "--cluster", "default", "--protection-enabled", "--tasks"}, protected...)...)
	kept := distinct(map[string]string{"a": tasks[protected[0]], "b": tasks[protected[1]]})
	p.setDesiredCount(1)
	Eventually(t, "the end of all but the protected tasks", func() bool { return len(p.runningTasks()) == 2 })
	p.Kill()
	p.Start()
	Eventually(t, "the end of the instances without a protected task", func() bool {
		return p.queryGroup("pool", "[DesiredCapacity,length(Instances)]") == fmt.Sprintf("%d\t%d", len(kept), len(kept))
	})
	p.setDesiredCount(0)
	p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "pool", "--desired-capacity", "0")
	for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
		if got := p.runningTasks(); !slices.Equal(slices.Sorted(maps.Keys(got)), protected) || !slices.Equal(distinct(got), kept) {
			t.Fatalf("the protected tasks are %v, and of all there run %v", protected, got)
		}
		if got := p.queryGroup("pool", "length(Instances[?LifecycleState=='InService'])"); got != fmt.Sprint(len(kept)) {
			t.Fatalf("%s instances are in service, want the %d with protected tasks", got, len(kept))
		}
	}

	p.AWS(append([]string{"ecs", "update-task-protection", "--cluster", "default", "--no-protection-enabled", "--tasks"}, protected...)...)
	Eventually(t, "the end of all", func() bool {
		return p.queryGroup("pool", "[DesiredCapacity,length(Instances)]") == "0\t0" && p.machines() == 0
	})
	if got := p.AWS("ecs", "describe-clusters", "--query", "clusters[0].registeredContainerInstancesCount"); got != "0" {
		t.Errorf("%s container instances are left", got)
	}
}

// TestManagedDraining terminates instances of a group. ECS's lifecycle hook sets them to DRAINING, a service's task is replaced
// before it's stopped, a protected task keeps running, and an instance ends once it has no tasks.
func TestManagedDraining(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t, "--settle", "1s", "--scale-in", "5s")
	p.createProvider("pool", "g4dn.xlarge", "DISABLED")
	p.AWS("ecs", "put-cluster-capacity-providers", "--cluster", "default", "--capacity-providers", "pool",
		"--default-capacity-provider-strategy", "[]")
	p.createProvidedService("capacityProvider=pool,weight=1")
	p.setDesiredCount(2)
	tasks := p.awaitRunning(2)
	got := p.AWS("autoscaling", "describe-lifecycle-hooks", "--auto-scaling-group-name", "pool",
		"--query", "LifecycleHooks[].[LifecycleHookName,LifecycleTransition,HeartbeatTimeout,DefaultResult]", "--output", "text")
	if got != "ecs-managed-draining-termination-hook\tautoscaling:EC2_INSTANCE_TERMINATING\t3600\tCONTINUE" {
		t.Errorf("the group's hooks are %s", got)
	}
	if got := p.queryGroup("pool", "Tags[].[Key,PropagateAtLaunch]"); got != "AmazonECSManaged\tTrue" {
		t.Errorf("the group's tags are %s", got)
	}

	arns := slices.Sorted(maps.Keys(tasks))
	protected, other := arns[0], arns[1]
	p.AWS("ecs", "update-task-protection", "--cluster", "default", "--protection-enabled", "--tasks", protected)
	machine := func(task string) string {
		return p.AWS("ecs", "describe-container-instances", "--container-instances", tasks[task],
			"--query", "containerInstances[0].ec2InstanceId", "--output", "text")
	}
	lifecycle := func(id string) string {
		return p.AWS("autoscaling", "describe-auto-scaling-instances", "--instance-ids", id,
			"--query", "AutoScalingInstances[].LifecycleState", "--output", "text")
	}
	first, second := machine(protected), machine(other)
	for _, id := range []string{first, second} {
		p.AWS("autoscaling", "terminate-instance-in-auto-scaling-group", "--instance-id", id, "--no-should-decrement-desired-capacity")
	}
	Eventually(t, "DRAINING", func() bool { // the other one may have been DRAINING and gone already
		return strings.Contains(p.AWS("ecs", "list-container-instances", "--status", "DRAINING", "--query", "containerInstanceArns",
			"--output", "text"), tasks[protected])
	})
	Eventually(t, "the end of the unprotected one's machine", func() bool {
		if p.runningTasks()[protected] == "" {
			t.Fatal("the protected task was stopped")
		}
		return lifecycle(second) == ""
	})
	gone := p.describe(other)[0]
	if !slices.ContainsFunc(p.describe(slices.Collect(maps.Keys(p.runningTasks()))...), func(task types.Task) bool {
		return *task.TaskArn != protected && !task.StartedAt.After(*gone.StoppingAt)
	}) {
		t.Errorf("the task was told to stop at %s, when no other one was RUNNING in its place", gone.StoppingAt)
	}
	got = p.AWS("ecs", "describe-tasks", "--tasks", other, "--query", "tasks[0].[lastStatus,stopCode]", "--output", "text")
	if got != "STOPPED\tServiceSchedulerInitiated" {
		t.Errorf("the drained instance's task is %s", got)
	}
	if got := lifecycle(first); got != "Terminating:Wait" {
		t.Errorf("the instance with the protected task is %s", got)
	}
	p.AWS("ecs", "update-task-protection", "--cluster", "default", "--no-protection-enabled", "--tasks", protected)
	Eventually(t, "the end of the protected one's machine", func() bool { return lifecycle(first) == "" })
	if now := p.awaitRunning(2); now[protected] != "" || now[other] != "" {
		t.Errorf("the tasks are %v", now)
	}
	p.setDesiredCount(0)
	Eventually(t, "the end of all machines", func() bool { return p.queryGroup("pool", "length(Instances)") == "0" && p.machines() == 0 })
}

// TestCapacityProviderShares spreads a service over two empty groups by base and weight. The first group gets the base of two,
// then one task in four. Both groups go back to zero.
func TestCapacityProviderShares(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t, "--settle", "1s", "--scale-in", "5s")
	p.createProvider("base", "g4dn.xlarge", "DISABLED")
	p.createProvider("rest", "p3.8xlarge", "DISABLED")
	p.AWS("ecs", "put-cluster-capacity-providers", "--cluster", "default", "--capacity-providers", "base", "rest",
		"--default-capacity-provider-strategy", "[]")
	p.createProvidedService("capacityProvider=base,base=2,weight=1", "capacityProvider=rest,weight=3")
	p.setDesiredCount(10)
	p.awaitRunning(10)
	tasks := strings.Fields(p.AWS("ecs", "list-tasks", "--query", "taskArns", "--output", "text"))
	names := strings.Fields(p.AWS(append([]string{"ecs", "describe-tasks", "--query", "tasks[].capacityProviderName", "--output", "text",
		"--tasks"}, tasks...)...))
	if slices.Sort(names); strings.Join(names, " ") != "base base base base rest rest rest rest rest rest" {
		t.Errorf("the tasks belong to %v", names)
	}
	if base, rest := p.queryGroup("base", "length(Instances)"), p.queryGroup("rest", "length(Instances)"); base != "4" || rest != "2" {
		t.Errorf("the groups have %s and %s instances, want 4 of one GPU and 2 of four", base, rest)
	}
	p.setDesiredCount(0)
	Eventually(t, "the end of all machines", func() bool {
		return p.queryGroup("base", "length(Instances)") == "0" && p.queryGroup("rest", "length(Instances)") == "0" && p.machines() == 0
	})
}
