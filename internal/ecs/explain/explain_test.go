package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const cluster, serverless = "arn:aws:ecs:us-east-1:000000000000:cluster/c", "arn:aws:ecs:us-east-1:000000000000:cluster/default"

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// world is a control plane's rows.
type world struct {
	*state.Tx
	definition *state.TaskDefinition
	service    *state.Service
}

// node adds an instance with 4,096 CPU units and MiB, and so many GPUs.
func (w *world) node(name string, gpus int, changes ...func(*state.ContainerInstance)) {
	row := &state.ContainerInstance{ClusterArn: cluster, Capacity: state.Resources{CPU: 4096, MemoryMiB: 4096}}
	row.ContainerInstance = types.ContainerInstance{
		ContainerInstanceArn: &name,
		Ec2InstanceId:        &name,
		Status:               aws.String("ACTIVE"),
		AgentConnected:       true,
		RegisteredAt:         &now,
	}
	for g := range gpus {
		row.GPUs = append(row.GPUs, state.GPU{ID: fmt.Sprintf("%s-gpu-%d", name, g), Model: "V100"})
	}
	for _, change := range changes {
		change(row)
	}
	w.ContainerInstances.Put(row)
}

// holder adds a running task that holds GPUs and other things of an instance.
func (w *world) holder(name, instance string, gpus int, changes ...func(*state.Task)) {
	t := w.task(name, func(t *state.Task) {
		t.ContainerInstanceArn = &instance
		t.LastStatus = aws.String("RUNNING")
	})
	for g := range gpus {
		t.GPUs = append(t.GPUs, state.HeldGPU{Container: "main", ID: fmt.Sprintf("%s-gpu-%d", instance, g), Milli: 1000})
	}
	for _, change := range changes {
		change(t)
	}
	w.Tasks.Put(t)
}

// task adds a task.
func (w *world) task(name string, changes ...func(*state.Task)) *state.Task {
	t := &state.Task{Task: types.Task{
		TaskArn:           &name,
		ClusterArn:        aws.String(cluster),
		TaskDefinitionArn: aws.String("f"),
		Overrides:         &types.TaskOverride{},
		Group:             aws.String("family:f"),
		CreatedAt:         new(now.Add(-time.Second)),
		LastStatus:        aws.String("PENDING"),
		DesiredStatus:     aws.String("RUNNING"),
		Containers:        []types.Container{{Name: aws.String("main"), Image: aws.String("busybox")}},
	}}
	for _, change := range changes {
		change(t)
	}
	w.Tasks.Put(t)
	return t
}

// waits adds a task that waits for the capacity provider p.
func (w *world) waits(name string, changes ...func(*state.Task)) {
	w.task(name, append(changes, func(t *state.Task) {
		t.LastStatus = aws.String("PROVISIONING")
		t.CapacityProviderName = aws.String("p")
		t.Waiting = &state.Waiting{MemoryMiB: 64, GPUs: 4}
	})...)
}

// provider adds the capacity provider p, whose group may have so many instances.
func (w *world) provider(desired, most int32, change func(*state.AutoScalingGroup)) {
	statetest.PutProvider(w.Tx, "p", "p3.8xlarge")
	g := w.AutoScalingGroups.Get("p").Clone()
	g.DesiredCapacity, g.MaxSize = &desired, &most
	if change != nil {
		change(g)
	}
	w.AutoScalingGroups.Put(g)
}

// machine adds a machine of the group p that was launched a while ago.
func (w *world) machine(name string, ago time.Duration) {
	w.Instances.Put(&state.Instance{
		Instance: ec2.Instance{InstanceId: &name, LaunchTime: new(now.Add(-ago)), State: &ec2.InstanceState{Name: ec2.InstanceStateNamePending}},
		Member:   &state.Member{Group: "p", LifecycleState: autoscaling.LifecycleStatePending},
	})
}

// group is the ARN of the target group web.
const group = "arn:aws:elasticloadbalancing:us-east-1:000000000000:targetgroup/web/1"

// targetGroup adds the target group web, which asks for /health.
func (w *world) targetGroup() {
	w.TargetGroups.Put(&state.TargetGroup{TargetGroup: elb.TargetGroup{
		TargetGroupArn: aws.String(group), TargetGroupName: aws.String("web"), HealthCheckPath: aws.String("/health"),
		HealthCheckProtocol: elb.ProtocolEnumHttp, HealthCheckPort: aws.String("traffic-port"), Matcher: &elb.Matcher{HttpCode: aws.String("200")},
	}})
}

// checks gives the definition a health check.
func (w *world) checks() {
	w.definition.ContainerDefinitions[0].HealthCheck = &types.HealthCheck{Command: []string{"CMD-SHELL", "curl -f localhost"}, StartPeriod: aws.Int32(10)}
}

// fargate makes the service one of Fargate's that needs more than a node has. Its tasks may run in the cluster default, too.
func (w *world) fargate() {
	w.service.Deployments[0].LaunchType = types.LaunchTypeFargate
	w.definition.Cpu, w.definition.Memory = aws.String("8192"), aws.String("1024")
	w.definition.ContainerDefinitions[0].ResourceRequirements = nil
	w.Clusters.Put(&state.Cluster{Cluster: types.Cluster{ClusterArn: aws.String(serverless), ClusterName: aws.String("default")}})
}

func gpus(n string) []types.ResourceRequirement {
	return []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: &n}}
}

func ofProvider(i *state.ContainerInstance) { i.CapacityProviderName = aws.String("p") }

// situations are what keeps a service's next task, or the task "waits", from starting.
var situations = []struct {
	name  string
	set   func(*world)
	of    string // "waits", or "" for the service
	says  []string
	waits string
	todo  string
}{
	{"no instances", func(*world) {}, "", []string{"no instances that take tasks"}, "", "Add an instance"},
	{"no GPUs anywhere", func(w *world) { w.node("i", 0) }, "", []string{"The cluster's only instance has too little in all: 0 GPUs, and it needs 4"}, "", "Add an instance that has 4 GPUs"},
	{"too few GPUs on any", func(w *world) { w.node("i", 2); w.node("j", 1) }, "",
		[]string{"None of the cluster's 2 instances", "2 have too little in all: 2 GPUs, and it needs 4"}, "", "Ask for at most 2 GPUs"},
	{"too few GPUs on any, and those of the smallest free", func(w *world) {
		w.node("i", 1)
		w.node("j", 2)
		w.holder("a", "j", 2)
	}, "", []string{"2 have too little in all: 2 GPUs, and it needs 4"}, "", "Ask for at most 2 GPUs"},
	{"one GPU", func(w *world) { w.node("i", 1) }, "", []string{"too little in all: 1 GPU, and it needs 4"}, "", "Ask for at most 1 GPU,"},
	{"no GPU of that model", func(w *world) {
		w.definition.ContainerDefinitions[0].ResourceRequirements = gpus("1")
		w.definition.PlacementConstraints = []types.TaskDefinitionPlacementConstraint{{Expression: aws.String("attribute:ecs.instance-type =~ p4d.*")}}
		w.node("i", 4)
		w.node("j", 8)
	}, "", []string{"2 don't meet the constraint attribute:ecs.instance-type =~ p4d.*"}, "", "add an instance that meets it: attribute:ecs.instance-type =~ p4d.*"},
	{"GPUs free, but split", func(w *world) {
		w.node("i", 4)
		w.node("j", 4)
		w.holder("a", "i", 2)
		w.holder("b", "j", 1)
	}, "", []string{"2 have too little free: 3 GPUs, and it needs 4", "5 GPUs are free in all, but on 2 instances"}, "a task to end", "Free 1 more of the GPUs of instance j, which task b holds"},
	{"ports", func(w *world) {
		w.definition.ContainerDefinitions[0].PortMappings = []types.PortMapping{{ContainerPort: aws.Int32(80), HostPort: aws.Int32(80)}}
		w.node("i", 4)
		w.holder("a", "i", 0, func(t *state.Task) { t.Reserved.PortsTCP = []uint16{80} })
	}, "", []string{"has port 80/tcp taken"}, "a task to end", "dynamic host port (0), or stop task a on instance i"},
	{"memory", func(w *world) {
		w.node("i", 4)
		w.holder("a", "i", 0, func(t *state.Task) { t.Reserved.MemoryMiB = 4040 })
	}, "", []string{"too little free: 56 MiB of memory, and it needs 64"}, "a task to end", "Free 8 more MiB of memory on instance i"},
	{"CPU", func(w *world) {
		w.definition.Cpu = aws.String("8192")
		w.node("i", 4)
	}, "", []string{"too little in all: 4096 CPU units, and it needs 8192"}, "", "Ask for at most 4096 CPU units"},
	{"a constraint", func(w *world) {
		w.definition.PlacementConstraints = []types.TaskDefinitionPlacementConstraint{{Expression: aws.String("attribute:gpu == a100")}}
		w.node("i", 4)
	}, "", []string{"doesn't meet the constraint attribute:gpu == a100"}, "", "Change the placement constraint"},
	{"a zone", func(w *world) {
		w.service.PlacementConstraints = []types.PlacementConstraint{
			{Type: types.PlacementConstraintTypeMemberOf, Expression: aws.String("attribute:ecs.availability-zone == us-east-1b")}}
		w.node("i", 4, func(i *state.ContainerInstance) {
			i.Attributes = []types.Attribute{{Name: aws.String("ecs.availability-zone"), Value: aws.String("us-east-1a")}}
		})
	}, "", []string{"doesn't meet the constraint attribute:ecs.availability-zone == us-east-1b"}, "", "add an instance that meets it"},
	{"an attribute", func(w *world) {
		w.definition.RequiresAttributes = []types.Attribute{{Name: aws.String("ecs.capability.efs")}}
		w.node("i", 4)
	}, "", []string{"lacks ecs.capability.efs"}, "", "Start the agent with --file-systems"},
	{"a capability", func(w *world) {
		w.definition.RequiresAttributes = []types.Attribute{{Name: aws.String("ecs.capability.fault-injection")}}
		w.node("i", 4)
	}, "", []string{"lacks ecs.capability.fault-injection"}, "", "Add an instance whose agent can do it, or don't ask for it: ecs.capability.fault-injection"},
	{"an attribute of one's own", func(w *world) {
		w.definition.RequiresAttributes = []types.Attribute{{Name: aws.String("rack"), Value: aws.String("7")}}
		w.node("i", 4)
	}, "", []string{"lacks rack=7"}, "", "Give instance i what it lacks"},
	{"another architecture", func(w *world) {
		w.definition.RequiresAttributes = []types.Attribute{{Name: aws.String("ecs.cpu-architecture"), Value: aws.String("arm64")}}
		w.node("i", 4)
	}, "", []string{"lacks ecs.cpu-architecture=arm64"}, "", "Add an instance with it, or change the task definition's runtimePlatform"},
	{"no CPU is free at all", func(w *world) {
		w.definition.Cpu = aws.String("1024")
		w.node("i", 4)
		w.holder("a", "i", 0, func(t *state.Task) { t.Reserved.CPU = 4096 })
	}, "", []string{"too little free: 0 CPU units"}, "a task to end", "Free 1024 more CPU units on instance i."},
	{"ports that its own tasks have", func(w *world) {
		w.definition.ContainerDefinitions[0].PortMappings = []types.PortMapping{{ContainerPort: aws.Int32(80), HostPort: aws.Int32(80)}}
		w.node("i", 8)
		w.holder("own", "i", 4, func(t *state.Task) { t.ServiceArn, t.Reserved.PortsTCP = "s", []uint16{80} })
	}, "", []string{"has port 80/tcp taken"}, "", "Use a dynamic host port (0), or add an instance: the service's own task own has the port"},
	{"distinct instances", func(w *world) {
		w.service.PlacementConstraints = []types.PlacementConstraint{{Type: types.PlacementConstraintTypeDistinctInstance}}
		w.node("i", 4)
		w.holder("a", "i", 0, func(t *state.Task) { t.Group, t.ServiceArn = aws.String("service:s"), "s" })
	}, "", []string{"runs a task of its group already"}, "", "drop the constraint distinctInstance"},
	{"draining", func(w *world) { w.node("i", 4, func(i *state.ContainerInstance) { i.Status = aws.String("DRAINING") }) },
		"", []string{"is draining"}, "", "Set instance i to ACTIVE"},
	{"the agent is away", func(w *world) { w.node("i", 4, func(i *state.ContainerInstance) { i.AgentConnected = false }) },
		"", []string{"has no connected agent"}, "", "Start the agent of instance i"},
	{"a broken GPU", func(w *world) {
		w.node("i", 4, func(i *state.ContainerInstance) { i.GPUs[2].Fault = &state.GPUFault{} })
	},
		"", []string{"has faulty GPUs: 3 of 4 work, and it needs 4"}, "", "Repair a GPU of instance i"},
	{"several things, and the nearest first", func(w *world) {
		w.node("i", 4, func(i *state.ContainerInstance) { i.Status = aws.String("DRAINING") })
		w.node("j", 2)
		w.node("k", 4)
		w.holder("a", "k", 4)
	}, "", []string{"None of the cluster's 3", "1 has too little free: 0 GPUs", "1 is draining", "1 has too little in all: 2 GPUs"}, "a task to end", "Free 4 more of the GPUs of instance k"},
	{"the provider is at its maximum", func(w *world) {
		w.provider(1, 1, nil)
		w.node("i", 4, ofProvider)
		w.holder("a", "i", 4)
		w.waits("waits")
	}, "waits", []string{"too little free: 0 GPUs"}, "a task to end", "Raise the maximum of the group p, which is at it, from 1 to 2"},
	{"a machine on its way", func(w *world) {
		w.provider(2, 4, nil)
		w.machine("old", 40*time.Second)
		w.node("old", 4, ofProvider, func(i *state.ContainerInstance) { i.RegisteredAt = new(now.Add(-10 * time.Second)) })
		w.holder("a", "old", 4)
		w.machine("new", 12*time.Second)
		w.waits("waits")
	}, "waits", []string{"0 GPUs, and it needs 4"}, "1 machine of the group p, on the way for 12s; the last ones took 30s, so it's due in 18s", ""},
	{"launches fail", func(w *world) {
		w.provider(1, 4, func(g *state.AutoScalingGroup) { g.Failures, g.NotBefore = 3, new(now.Add(8*time.Second)) })
		w.GroupActivities.Put(&state.GroupActivity{Activity: autoscaling.Activity{
			ActivityId: aws.String("1"), AutoScalingGroupName: aws.String("p"), StatusCode: autoscaling.ScalingActivityStatusCodeFailed,
			StatusMessage: aws.String("no machine is left.")}})
		w.waits("waits")
	}, "waits", []string{"no instances"}, "the next try to launch a machine, in 8s: the last one failed (no machine is left)", ""},
	{"launching is suspended", func(w *world) {
		w.provider(0, 4, func(g *state.AutoScalingGroup) {
			g.SuspendedProcesses = []autoscaling.SuspendedProcess{{ProcessName: aws.String("Launch")}}
		})
		w.waits("waits")
	}, "waits", []string{"no instances"}, "", "Resume the process Launch of the group p"},
	{"others come first", func(w *world) {
		w.provider(1, 4, nil)
		w.node("i", 4, ofProvider)
		w.holder("a", "i", 4)
		w.waits("first", func(t *state.Task) { t.CreatedAt = new(now.Add(-time.Minute)) })
		w.waits("waits")
	}, "waits", nil, "its turn: 1 task waits before it for the capacity provider p", ""},
	{"room is kept for another", func(w *world) {
		w.provider(2, 2, nil)
		w.node("i", 4, ofProvider)
		w.holder("a", "i", 2)
		w.task("gone", func(t *state.Task) {
			t.LastStatus, t.DesiredStatus, t.ContainerInstanceArn, t.StoppedAt = aws.String("STOPPED"), aws.String("STOPPED"), aws.String("i"), new(now.Add(-time.Minute))
		})
		w.waits("first", func(t *state.Task) { t.CreatedAt = new(now.Add(-5 * time.Minute)) })
		w.waits("waits", func(t *state.Task) {
			t.TaskDefinitionArn = aws.String("one")
		})
	}, "waits", []string{"room that is kept for task first"}, "its turn: 1 task waits before it", "Raise the maximum of the group p"},
	{"none of its instances would ever do", func(w *world) {
		w.provider(0, 4, nil)
		w.waits("waits", func(t *state.Task) { t.Waiting = nil })
		t := *w.Tasks.Get("waits")
		t.Waiting = &state.Waiting{MemoryMiB: 64, GPUs: 16}
		w.Tasks.Put(&t)
	}, "waits", []string{"would ever take it: RESOURCE:GPU. The task needs 16 GPUs"}, "", "Change what the task asks for"},
	{"tasks fail", func(w *world) {
		w.service.Deployments[0].Unplaced = false
		w.service.Deployments[0].FailedTasks, w.service.Deployments[0].NotBefore = 3, new(now.Add(20*time.Second))
		w.failed("dead", func(t *state.Task) {
			t.Containers[0].ExitCode, t.Containers[0].Reason = aws.Int32(137), aws.String("OutOfMemoryError: Container killed due to memory usage")
		})
	}, "", []string{"0 of 1 tasks run, and 3 failed in a row", "task dead", "exit code 137"}, "the next try, in 20s", "Give container main more memory"},
	{"tasks fail, and nobody knows a remedy", func(w *world) {
		w.service.Deployments[0].Unplaced = false
		w.service.Deployments[0].FailedTasks, w.service.Deployments[0].NotBefore = 1, new(now.Add(20*time.Second))
		w.failed("dead", func(t *state.Task) {
			t.Containers[0].ExitCode = aws.Int32(3)
		})
	}, "", []string{"1 failed", "(container main: exit code 3)"}, "the next try, in 20s", "See what the task said: pintle logs dead"},
	{"tasks run, and die before they are healthy", func(w *world) {
		w.service.Deployments[0].Unplaced = false
		w.service.Deployments[0].FailedTasks = 2
		w.failed("dead", func(t *state.Task) { t.StoppedReason = aws.String("Task failed container health checks") })
		w.holder("young", "i", 0, func(t *state.Task) { t.ServiceArn, t.StartedBy = "s", aws.String("d") })
	}, "", []string{"1 of 1 tasks run, and they don't count as healthy yet; 2 failed in a row", "failed container health checks"}, "their health checks", "pintle logs dead"},
	{"a container's health checks failed", func(w *world) {
		w.checks()
		w.failed("waits", func(t *state.Task) { t.StoppedReason = aws.String("Task failed container health checks") })
	}, "waits", []string{"failed container health checks.", "The health check of container main is CMD-SHELL curl -f localhost, every 30 s."}, "",
		"See that this command ends with 0 in container main within 5 s, and is in its image; if the container is slow to begin, raise its healthCheck.startPeriod, which is 10 s"},
	{"a container's health checks fail", func(w *world) {
		w.checks()
		w.node("i", 4)
		w.holder("waits", "i", 0, func(t *state.Task) { t.HealthStatus = types.HealthStatusUnhealthy })
	}, "waits", []string{"containers' health checks fail. The health check of container main is CMD-SHELL curl -f localhost"}, "", "healthCheck.startPeriod, which is 10 s"},
	{"a target's health checks failed", func(w *world) {
		w.targetGroup()
		w.service.HealthCheckGracePeriodSeconds = aws.Int32(5)
		w.service.Events = []state.ServiceEvent{{ServiceEvent: types.ServiceEvent{
			Message: aws.String("(service s) (port 80) is unhealthy in (target-group " + group + ") due to (reason Health checks failed with these codes: [404]).")}}}
		w.failed("waits", func(t *state.Task) {
			t.StoppedReason = aws.String("Task failed ELB health checks in (target-group " + group + ")")
		})
	}, "waits", []string{"The target group web asks for /health by HTTP at port of its traffic, which is to answer 200: Health checks failed with these codes: [404]."}, "",
		"aws elbv2 modify-target-group; if the task is slow to begin, raise the service's healthCheckGracePeriodSeconds, which is 5."},
	{"a target's health checks fail", func(w *world) {
		w.targetGroup()
		w.node("i", 4)
		w.holder("waits", "i", 0, func(t *state.Task) { t.ServiceArn = "s" })
		w.Targets.Put(&state.Target{Group: group, ID: "10.0.0.1", Port: 80, Task: "waits", Health: &elb.TargetHealth{
			State: elb.TargetHealthStateEnumUnhealthy, Description: aws.String("Request timed out.")}})
	}, "waits", []string{"at 1 of its 1 targets. The target group web asks for /health by HTTP at port of its traffic, which is to answer 200: Request timed out."}, "",
		"healthCheckGracePeriodSeconds, which is 0."},
	{"Fargate, and its own cluster has no instances", func(w *world) {
		w.fargate()
		w.node("i", 0, func(i *state.ContainerInstance) { i.ClusterArn = serverless })
	}, "", []string{"The only instance of the clusters c and default has too little in all: 4096 CPU units, and it needs 8192"}, "", "Ask for at most 4096 CPU units"},
	{"Fargate, and no cluster has instances", func(w *world) { w.fargate() }, "", []string{"The clusters c and default have no instances that take tasks."}, "", "Add an instance"},
	{"its deployment has failed", func(w *world) {
		w.service.Deployments[0].Unplaced = false
		w.service.Deployments[0].RolloutState, w.service.Deployments[0].RolloutStateReason = types.DeploymentRolloutStateFailed, aws.String("tasks failed to start.")
		w.service.Deployments[0].FailedTasks = 3
		w.failed("dead", func(t *state.Task) {
			t.Containers[0].Reason = aws.String("CannotPullContainerError: no such image")
		})
	}, "", []string{"its deployment has failed: tasks failed to start.", "task dead", "no such image"}, "", "See that the image busybox is there"},
	{"an image is pulled", func(w *world) {
		w.service.Deployments[0].Unplaced = false
		w.node("i", 4)
		w.task("slow", func(t *state.Task) {
			t.ServiceArn, t.StartedBy, t.ContainerInstanceArn, t.PullStartedAt = "s", aws.String("d"), aws.String("i"), new(now.Add(-9*time.Second))
		})
	}, "", []string{"0 of 1 tasks run", "task slow (PENDING)", "pulling its images for 9s"}, "its images", ""},
	{"a daemon's room", func(w *world) {
		w.service.SchedulingStrategy = types.SchedulingStrategyDaemon
		w.node("i", 4)
		w.holder("own", "i", 4, func(t *state.Task) { t.ServiceArn = "s" })
		w.node("j", 4)
		w.holder("a", "j", 1)
	}, "", []string{"only instance without its task has too little free: 3 GPUs"}, "a task to end", "which task a holds"},
	{"nothing is wanted", func(w *world) {
		w.service.DesiredCount = 0
		w.service.Deployments[0].Unplaced = false
		w.service.Deployments[0].RolloutState = types.DeploymentRolloutStateCompleted
	}, "", []string{"It wants no tasks"}, "", "Raise the desired count"},
}

// failed has a task of the service's deployment fail, of which the service has taken note, and another one end after it that somebody stopped.
func (w *world) failed(name string, changes ...func(*state.Task)) {
	ended := func(at time.Time) func(*state.Task) {
		return func(t *state.Task) {
			t.ServiceArn, t.StartedBy = "s", aws.String("d")
			t.Noted = true
			t.LastStatus, t.DesiredStatus, t.StoppedAt = aws.String("STOPPED"), aws.String("STOPPED"), &at
			t.StoppedReason = aws.String("Essential container in task exited")
		}
	}
	w.service.Deployments[0].LastFailed = *w.task(name, append([]func(*state.Task){ended(now.Add(-time.Second))}, changes...)...).TaskArn
	w.task("stopped", ended(now), func(t *state.Task) { t.StoppedReason = aws.String("by hand") })
}

// TestSituations sets up what keeps tasks from starting, and asks.
func TestSituations(t *testing.T) {
	for _, c := range situations {
		t.Run(c.name, func(t *testing.T) {
			store := statetest.Open(t)
			statetest.Update(t, store, func(tx *state.Tx) {
				w := &world{Tx: tx, definition: definition("f", "4"), service: service()}
				c.set(w)
				tx.TaskDefinitions.Put(w.definition)
				tx.TaskDefinitions.Put(definition("one", "1"))
				tx.Services.Put(w.service)
			})
			v := store.View()
			options := Options{Now: now, Serverless: serverless}
			a := Service(v, v.Services.Get("s"), options)
			if c.of != "" {
				a = Task(v, v.Tasks.Get(c.of), options)
			}
			for _, text := range c.says {
				if !strings.Contains(a.Why, text) {
					t.Errorf("it says %q, without %q", a.Why, text)
				}
			}
			if !strings.Contains(a.WaitsFor, c.waits) || (c.waits == "") != (a.WaitsFor == "") {
				t.Errorf("it waits for %q, not for %q", a.WaitsFor, c.waits)
			}
			if !strings.Contains(a.Change, c.todo) || (c.todo == "") != (a.Change == "") {
				t.Errorf("what is to be done is %q, not %q", a.Change, c.todo)
			}
		})
	}
}

func definition(name, devices string) *state.TaskDefinition {
	return &state.TaskDefinition{TaskDefinition: types.TaskDefinition{
		TaskDefinitionArn: &name,
		Family:            &name,
		Status:            types.TaskDefinitionStatusActive,
		NetworkMode:       types.NetworkModeHost,
		ContainerDefinitions: []types.ContainerDefinition{{
			Name: aws.String("main"), Memory: aws.Int32(64), ResourceRequirements: gpus(devices),
		}},
	}}
}

// service is one whose next task has found no place.
func service() *state.Service {
	return &state.Service{
		Service: types.Service{
			ServiceArn: aws.String("s"), ServiceName: aws.String("s"), ClusterArn: aws.String(cluster), Status: aws.String("ACTIVE"), DesiredCount: 1,
			CreatedAt: &now,
		},
		Deployments: []state.Deployment{{
			Deployment: types.Deployment{Id: aws.String("d"), TaskDefinition: aws.String("f"), RolloutState: types.DeploymentRolloutStateInProgress},
			Unplaced:   true,
		}},
	}
}
