package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// UpWithFleet starts pintle up without nodes of its own. Its machines are agents that come and go.
func UpWithFleet(t testing.TB, args ...string) *Pintle {
	t.Helper()
	address := freeAddress(t)
	p := &Pintle{t: t, Endpoint: "http://" + address, data: t.TempDir(), key: "test", secret: "test"}
	p.args = append([]string{"up", "--listen", address, "--data", p.data, "--fleet", "local", "--metrics=", "--runtime", "process",
		"--reaction", "fast"}, args...)
	p.Start()
	t.Cleanup(p.Interrupt)
	return p
}

// nothingLeft reports whether all machines are gone, including their processes and directories.
func (p *Pintle) nothingLeft() bool {
	left, err := os.ReadDir(filepath.Join(p.data, "fleet"))
	return p.machines() == 0 && err == nil && len(left) == 0
}

// machines counts the processes of the fleet's agents and their containers' shims.
func (p *Pintle) machines() int { return len(p.processes("")) }

// processes returns the fleet's agents and shims whose command lines contain a text.
func (p *Pintle) processes(containing string) (pids []int) {
	p.t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), filepath.Join(p.data, "fleet")) || !strings.Contains(string(b), containing) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// createGPUGroup creates a launch template of g4dn.xlarge whose user data names a cluster, and a group of 0 to 3 instances of it.
func (p *Pintle) createGPUGroup(name, cluster string) {
	p.t.Helper()
	script := filepath.Join(p.t.TempDir(), "user-data")
	text := "#!/bin/bash\necho ECS_CLUSTER=" + cluster + " >> /etc/ecs/ecs.config;echo ECS_BACKEND_HOST= >> /etc/ecs/ecs.config;\n"
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	encoded := strings.ReplaceAll(string(must(p.Command("base64", "-w0", script).Output())), "\n", "")
	p.AWS("ec2", "create-launch-template", "--launch-template-name", name, "--launch-template-data",
		`{"ImageId":"resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id","InstanceType":"g4dn.xlarge",`+
			`"UserData":"`+encoded+`"}`)
	p.AWS("autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", name, "--launch-template", "LaunchTemplateName="+name,
		"--min-size", "0", "--max-size", "3", "--availability-zones", "us-east-1a", "--default-instance-warmup", "0")
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestQueueDrivenFleet is the examples' queue-driven GPU scaling, with a metric instead of the queue. An alarm's steps scale a
// group from zero to two machines, a DAEMON service runs a task on each, and everything ends when the work is done. The control
// plane is killed during the scale-out and the scale-in. No machine is started twice, and none is left.
func TestQueueDrivenFleet(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t, "--settle", "1s")
	p.AWS("ecs", "create-cluster", "--cluster-name", "gpu-example-cluster")
	p.AWS("ecs", "register-task-definition", "--family", "worker", "--container-definitions",
		`[{"name":"main","image":"i","memory":64,"command":["sleep","600"],"resourceRequirements":[{"type":"GPU","value":"1"}]}]`)
	p.AWS("ecs", "create-service", "--cluster", "gpu-example-cluster", "--service-name", "worker", "--task-definition", "worker",
		"--scheduling-strategy", "DAEMON", "--launch-type", "EC2")
	p.createGPUGroup("gpu-example", "gpu-example-cluster")
	out := p.AWS("autoscaling", "put-scaling-policy", "--auto-scaling-group-name", "gpu-example", "--policy-name", "grow",
		"--policy-type", "StepScaling", "--adjustment-type", "ExactCapacity",
		"--step-adjustments", "MetricIntervalLowerBound=0,MetricIntervalUpperBound=99,ScalingAdjustment=1",
		"MetricIntervalLowerBound=99,ScalingAdjustment=2", "--query", "PolicyARN", "--output", "text")
	in := p.AWS("autoscaling", "put-scaling-policy", "--auto-scaling-group-name", "gpu-example", "--policy-name", "shrink",
		"--policy-type", "StepScaling", "--adjustment-type", "ExactCapacity",
		"--step-adjustments", "MetricIntervalUpperBound=0,ScalingAdjustment=0", "--query", "PolicyARN", "--output", "text")
	alarm := func(name, comparison, threshold, policy string) {
		p.AWS("cloudwatch", "put-metric-alarm", "--alarm-name", name, "--namespace", "Queue", "--metric-name", "Visible",
			"--statistic", "Maximum", "--period", "10", "--evaluation-periods", "1",
			"--comparison-operator", comparison, "--threshold", threshold, "--alarm-actions", policy)
	}
	alarm("some", "GreaterThanOrEqualToThreshold", "1", out)
	alarm("none", "LessThanOrEqualToThreshold", "0", in)
	visible := "0"
	running := func() string {
		p.AWS("cloudwatch", "put-metric-data", "--namespace", "Queue",
			"--metric-data", "MetricName=Visible,StorageResolution=1,Value="+visible)
		return p.AWS("ecs", "describe-services", "--cluster", "gpu-example-cluster", "--services", "worker",
			"--query", "services[0].[desiredCount,runningCount]", "--output", "text")
	}
	desired := func() string {
		return p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[0].DesiredCapacity", "--output", "text")
	}

	visible = "150"
	Eventually(t, "the scale-out", func() bool { running(); return desired() == "2" })
	p.Kill()
	p.Start()
	Eventually(t, "a task on each of two machines", func() bool { return running() == "2\t2" })
	got := p.AWS("ec2", "describe-instances", "--filters", "Name=instance-state-name,Values=running",
		"--query", "length(Reservations[].Instances[])")
	if got != "2" {
		t.Errorf("%s instances run", got)
	}
	Eventually(t, "two instances in service", func() bool { // a task may be RUNNING before its instance is in service
		return p.AWS("autoscaling", "describe-auto-scaling-instances", "--query", "AutoScalingInstances[].LifecycleState",
			"--output", "text") == "InService\tInService"
	})
	got = p.AWS("autoscaling", "describe-scaling-activities",
		"--query", "Activities[?starts_with(Description, `Launching`)].[StatusCode,Cause]", "--output", "text")
	if strings.Count(got, "Successful") != 2 ||
		!strings.Contains(got, "a monitor alarm some in state ALARM triggered policy grow changing the desired capacity from 0 to 2") {
		t.Errorf("the activities are %s", got)
	}

	visible = "0"
	Eventually(t, "the scale-in", func() bool { running(); return desired() == "0" })
	p.Kill()
	p.Start()
	Eventually(t, "the end of all machines", func() bool { return running() == "0\t0" && p.nothingLeft() })
	Eventually(t, "the end of the instances", func() bool {
		return p.AWS("autoscaling", "describe-auto-scaling-instances", "--query", "length(AutoScalingInstances)") == "0"
	})
}

// TestFleetSurvivesKills changes a group's capacity while the control plane is killed repeatedly. At the end there are as many
// machines as desired, each started once.
func TestFleetSurvivesKills(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t)
	p.createGPUGroup("many", "default")
	for i := range 6 {
		p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "many", "--desired-capacity", fmt.Sprint((i+1)%4))
		time.Sleep(time.Duration(i*70) * time.Millisecond)
		p.Kill()
		p.Start()
	}
	p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "many", "--desired-capacity", "2")
	Eventually(t, "two machines, connected", func() bool {
		return p.machines() == 2 && p.AWS("ecs", "describe-clusters", "--query", "clusters[0].registeredContainerInstancesCount") == "2"
	})
	p.AWS("autoscaling", "delete-auto-scaling-group", "--auto-scaling-group-name", "many", "--force-delete")
	Eventually(t, "the group's end", func() bool {
		return p.machines() == 0 && p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "length(AutoScalingGroups)") == "0"
	})
}

// TestTerminatedInstance terminates an instance whose task ignores SIGTERM and has a longer stop timeout than a machine gets to
// shut down. The instance's agent is killed meanwhile. Nothing of the machine or its task is left.
func TestTerminatedInstance(t *testing.T) {
	t.Parallel()
	for runtime, image := range map[string]string{"process": "i", "oci": "rootfs:" + rootfs(t)} {
		t.Run(runtime, func(t *testing.T) {
			t.Parallel()
			p := UpWithFleet(t, "--runtime", runtime)
			p.createGPUGroup("one", "default")
			p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "one", "--desired-capacity", "1")
			p.AWS("ecs", "register-task-definition", "--family", "stubborn", "--container-definitions",
				`[{"name":"main","image":"`+image+`","memory":64,"stopTimeout":600,"command":["sh","-c","trap '' TERM; : `+p.data+
					`/fleet; while :; do sleep 1; done"]}]`)
			Eventually(t, "a node", func() bool { return len(p.list("list-container-instances", "--query", "containerInstanceArns[]")) == 1 })
			var task string
			Eventually(t, "a place for the task", func() bool {
				task = p.AWS("ecs", "run-task", "--task-definition", "stubborn", "--query", "tasks[0].taskArn", "--output", "text")
				return task != "None"
			})
			p.Await(task, "RUNNING")
			Eventually(t, "the task's process", func() bool { return len(p.processes("trap")) > 0 })
			id := p.AWS("ec2", "describe-instances", "--query", "Reservations[].Instances[].InstanceId", "--output", "text")
			p.AWS("ec2", "terminate-instances", "--instance-ids", id)
			time.Sleep(2 * time.Second)
			for _, pid := range p.processes("agent\x00--ephemeral") {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
			}
			p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "one", "--desired-capacity", "0")
			Eventually(t, "the end of the machine and its task", p.nothingLeft)
		})
	}
}

// TestManagedScaling runs tasks on a capacity provider whose group has no instances. They wait in PROVISIONING until there are
// enough machines for their GPUs. Once the tasks end, the machines are terminated.
func TestManagedScaling(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t, "--scale-in", "5s")
	p.createGPUGroup("pool", "default")
	p.AWS("autoscaling", "update-auto-scaling-group", "--auto-scaling-group-name", "pool", "--new-instances-protected-from-scale-in")
	p.AWS("ecs", "create-capacity-provider", "--name", "gpus", "--auto-scaling-group-provider",
		"autoScalingGroupArn="+p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[0].AutoScalingGroupARN",
			"--output", "text")+
			",managedScaling={status=ENABLED,targetCapacity=100,instanceWarmupPeriod=0},managedTerminationProtection=ENABLED")
	p.AWS("ecs", "put-cluster-capacity-providers", "--cluster", "default", "--capacity-providers", "gpus",
		"--default-capacity-provider-strategy", "capacityProvider=gpus,weight=1")
	p.AWS("ecs", "register-task-definition", "--family", "job", "--container-definitions",
		`[{"name":"main","image":"i","memory":64,"command":["sleep","600"],"stopTimeout":2,"resourceRequirements":[{"type":"GPU",`+
			`"value":"1"}]}]`)
	got := p.AWS("ecs", "run-task", "--task-definition", "job", "--count", "2",
		"--query", "[length(failures),tasks[].lastStatus,tasks[].capacityProviderName]", "--output", "json")
	if strings.Join(strings.Fields(got), "") != `[0,["PROVISIONING","PROVISIONING"],["gpus","gpus"]]` {
		t.Fatalf("run-task answered %s", got)
	}
	p.Kill()
	p.Start()
	tasks := strings.Fields(p.AWS("ecs", "list-tasks", "--query", "taskArns", "--output", "text"))
	for _, task := range tasks {
		p.Await(task, "RUNNING")
	}
	group := func(query string) string {
		return p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", query, "--output", "text")
	}
	if got := group("[AutoScalingGroups[0].DesiredCapacity,length(AutoScalingGroups[0].Instances)]"); got != "2\t2" || p.machines() < 2 {
		t.Errorf("the group has %s", got)
	}
	for _, task := range tasks {
		p.AWS("ecs", "stop-task", "--task", task)
	}
	Eventually(t, "the end of all machines", func() bool {
		return group("[AutoScalingGroups[0].DesiredCapacity,length(AutoScalingGroups[0].Instances)]") == "0\t0" && p.machines() == 0
	})
}

// TestGroupZones: a group spreads its machines over its zones, and they register in them. The zone with more machines loses one
// first.
func TestGroupZones(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t)
	p.createGPUGroup("zones", "default")
	p.AWS("autoscaling", "update-auto-scaling-group", "--auto-scaling-group-name", "zones", "--availability-zones", "us-east-1a",
		"us-east-1b", "--desired-capacity", "3")
	zones := func() string {
		arns := strings.Fields(p.AWS("ecs", "list-container-instances", "--query", "containerInstanceArns", "--output", "text"))
		if len(arns) == 0 || arns[0] == "None" {
			return ""
		}
		got := strings.Fields(p.AWS(append([]string{"ecs", "describe-container-instances",
			"--query", "containerInstances[].attributes[?name==`ecs.availability-zone`].value", "--output", "text",
			"--container-instances"}, arns...)...))
		slices.Sort(got)
		return strings.Join(got, " ")
	}
	Eventually(t, "three machines in two zones", func() bool { return zones() == "us-east-1a us-east-1a us-east-1b" })
	p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "zones", "--desired-capacity", "2")
	Eventually(t, "one machine in each zone", func() bool { return zones() == "us-east-1a us-east-1b" })
}

// TestLaunchSaysWhy: agents that can't start leave no instance that only seems to run, and the group's activities say why.
func TestLaunchSaysWhy(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t, "--fleet-agent=--gpu-exporter=http://127.0.0.1:1/metrics")
	p.createGPUGroup("broken", "default")
	p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "broken", "--desired-capacity", "1")
	Eventually(t, "the reason", func() bool {
		return strings.Contains(p.AWS("autoscaling", "describe-scaling-activities",
			"--query", "Activities[?StatusCode==`Failed`].StatusMessage", "--output", "text"),
			"--gpu-exporter is for this machine's own GPUs")
	})
	p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "broken", "--desired-capacity", "0")
	Eventually(t, "the end", p.nothingLeft)
}

// TestFleetBadInput sends requests that must be refused, and checks that nothing changed.
func TestFleetBadInput(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t)
	p.createGPUGroup("good", "default")
	group := func(args ...string) []string {
		return append([]string{"autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", "bad", "--min-size", "0",
			"--max-size", "1", "--availability-zones", "us-east-1a"}, args...)
	}
	on := func(operation string, args ...string) []string {
		return append([]string{"autoscaling", operation, "--auto-scaling-group-name", "good"}, args...)
	}
	for _, c := range []struct {
		args       []string
		code, says string
	}{
		{group("--launch-template", "LaunchTemplateName=none"), "ValidationError", "launch template does not exist"},
		{group("--launch-template", "LaunchTemplateName=good,Version=9"), "ValidationError", "version 9"},
		{group(), "ValidationError", "launchTemplate"},
		{group("--launch-template", "LaunchTemplateName=good", "--desired-capacity", "2"), "ValidationError", "Desired capacity:2"},
		{group("--launch-template", "LaunchTemplateName=good", "--health-check-type", "VPC_LATTICE"), "ValidationError", "HealthCheckType"},
		{group("--launch-template", "LaunchTemplateName=good", "--termination-policies", "Random"), "ValidationError", "Random"},
		{group("--launch-configuration-name", "old"), "ValidationError", "Launch configuration name not found"},
		{on("set-desired-capacity", "--desired-capacity", "9"), "ValidationError", "above max value 3"},
		{on("update-auto-scaling-group", "--min-size", "4"), "ValidationError", "Max bound"},
		{on("put-lifecycle-hook", "--lifecycle-hook-name", "h", "--lifecycle-transition", "autoscaling:SLEEP"),
			"ValidationError", "LifecycleTransition"},
		{on("put-lifecycle-hook", "--lifecycle-hook-name", "h", "--lifecycle-transition", "autoscaling:EC2_INSTANCE_LAUNCHING",
			"--heartbeat-timeout", "1"), "ValidationError", "HeartbeatTimeout"},
		{on("put-scaling-policy", "--policy-name", "p", "--adjustment-type", "ChangeInCapacity"), "ValidationError", "scalingAdjustment"},
		{on("put-scaling-policy", "--policy-name", "p", "--policy-type", "PredictiveScaling"), "ValidationError", "PolicyType"},
		{on("put-scaling-policy", "--policy-name", "p", "--policy-type", "TargetTrackingScaling", "--target-tracking-configuration",
			`{"TargetValue":5,"PredefinedMetricSpecification":{"PredefinedMetricType":"ASGAverageNetworkIn"}}`),
			"ValidationError", "PredefinedMetricType"},
		{on("put-scheduled-update-group-action", "--scheduled-action-name", "a", "--recurrence", "x", "--desired-capacity", "1"),
			"ValidationError", "cron"},
		{on("put-scheduled-update-group-action", "--scheduled-action-name", "a", "--recurrence", "0 0 * * *"),
			"ValidationError", "DesiredCapacity"},
		{[]string{"autoscaling", "terminate-instance-in-auto-scaling-group", "--instance-id", "i-00000000",
			"--no-should-decrement-desired-capacity"}, "ValidationError", "i-00000000"},
		{[]string{"ec2", "run-instances", "--image-id", "mine", "--instance-type", "c5.large"}, "InvalidAMIID.Malformed", "mine"},
		{[]string{"ec2", "run-instances", "--image-id", "ami-00000000", "--count", "2000"}, "InvalidParameterValue", "MaxCount"},
		{[]string{"ec2", "terminate-instances", "--instance-ids", "i-00000000"}, "InvalidInstanceID.NotFound", "i-00000000"},
		{[]string{"ec2", "create-launch-template", "--launch-template-name", "bad", "--launch-template-data", `{"UserData":"%"}`},
			"InvalidUserData.Malformed", "BASE64"},
		{[]string{"ec2", "create-tags", "--resources", "i-00000000", "--tags", "Key=a,Value=b"}, "InvalidID", "i-00000000"},
	} {
		if out, err := p.TryAWS(c.args...); err == nil || !strings.Contains(out, "("+c.code+")") || !strings.Contains(out, c.says) {
			t.Errorf("%v: %v %s, want %s naming %q", c.args, err, out, c.code, c.says)
		}
	}
	for _, q := range [][]string{
		{"autoscaling", "describe-auto-scaling-groups",
			"--query", "AutoScalingGroups[].[AutoScalingGroupName,DesiredCapacity,MaxSize,length(Instances)]"},
		{"autoscaling", "describe-policies", "--query", "ScalingPolicies[].['good',`0`,`3`,`0`]"},
		{"ec2", "describe-launch-templates", "--query", "LaunchTemplates[].LaunchTemplateName"},
		{"ec2", "describe-instances", "--query", "Reservations[]"},
	} {
		if got := p.AWS(append(q, "--output", "text")...); got != "" && got != "good" && got != "good\t0\t3\t0" {
			t.Errorf("refused calls have changed something: %v is %s", q, got)
		}
	}
}
