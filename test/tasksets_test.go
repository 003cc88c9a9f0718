package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// taskSetOf is a task set as the AWS CLI prints it.
type taskSetOf struct {
	ID                   string
	Status               string
	StabilityStatus      string
	TaskDefinition       string
	ComputedDesiredCount int
	RunningCount         int
	PendingCount         int
}

// taskSets returns the service's task sets by their task definition's family and revision.
func (p *Pintle) taskSets(service string) map[string]taskSetOf {
	p.t.Helper()
	var out struct{ TaskSets []taskSetOf }
	text := p.AWS("ecs", "describe-task-sets", "--cluster", "default", "--service", service)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		p.t.Fatal(err, text)
	}
	sets := map[string]taskSetOf{}
	for _, set := range out.TaskSets {
		sets[set.TaskDefinition[strings.LastIndex(set.TaskDefinition, "/")+1:]] = set
	}
	return sets
}

// taskSet calls an operation on one of the service's task sets and returns the task set's id.
func (p *Pintle) taskSet(operation, service string, args ...string) string {
	p.t.Helper()
	args = append([]string{"ecs", operation, "--cluster", "default", "--service", service, "--query", "taskSet.id", "--output", "text"},
		args...)
	return strings.TrimSpace(p.AWS(args...))
}

// killSoon kills the control plane within half a second, at random, and restarts it.
func (p *Pintle) killSoon() {
	p.t.Helper()
	time.Sleep(time.Duration(rand.IntN(500)) * time.Millisecond)
	p.Kill()
	p.Start()
}

// TestExternalBlueGreen deploys a service from outside with the AWS CLI: it adds a new task set beside the old one, shifts load
// by scale, switches the primary and deletes the old one. The control plane is killed after each step.
func TestExternalBlueGreen(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge=2", "--settle", "1s")
	mark := newMark()
	p.register("shop", "exec sleep "+mark)
	p.register("shop", "exec sleep "+mark)
	p.AWS("ecs", "create-service", "--service-name", "shop", "--desired-count", "4", "--deployment-controller", "type=EXTERNAL")
	await := func(what string, want map[string]int, primary string) {
		t.Helper()
		var last map[string]taskSetOf
		Eventually(t, what, func() bool {
			last = p.taskSets("shop")
			for name, set := range last {
				if n, ok := want[name]; !ok || set.RunningCount != n || set.ComputedDesiredCount != n ||
					set.StabilityStatus != "STEADY_STATE" || (set.Status == "PRIMARY") != (name == primary) {
					return false
				}
			}
			return len(last) == len(want)
		})
		running := 0
		for _, n := range want {
			running += n
		}
		// A RUNNING task may not have reached its sleep yet, and a stopping one may not have ended.
		Eventually(t, fmt.Sprintf("%s: %d processes", what, running), func() bool { return len(processes(mark)) == running })
	}

	blue := p.taskSet("create-task-set", "shop", "--task-definition", "shop:1", "--scale", "value=100,unit=PERCENT")
	p.taskSet("update-service-primary-task-set", "shop", "--primary-task-set", blue)
	p.killSoon()
	await("blue's start", map[string]int{"shop:1": 4}, "shop:1")
	old := p.list("list-tasks", "--started-by", blue, "--query", "taskArns[]")

	green := p.taskSet("create-task-set", "shop", "--task-definition", "shop:2", "--scale", "value=30,unit=PERCENT")
	p.killSoon()
	await("green's start", map[string]int{"shop:1": 4, "shop:2": 2}, "shop:1")
	now := p.list("list-tasks", "--started-by", blue, "--query", "taskArns[]")
	if !slices.Equal(slices.Sorted(slices.Values(old)), slices.Sorted(slices.Values(now))) {
		t.Errorf("the tasks that ran were %v, now %v", old, now)
	}

	p.taskSet("update-task-set", "shop", "--task-set", green, "--scale", "value=100,unit=PERCENT")
	p.taskSet("update-task-set", "shop", "--task-set", blue, "--scale", "value=50,unit=PERCENT")
	p.killSoon()
	await("the shift", map[string]int{"shop:1": 2, "shop:2": 4}, "shop:1")

	p.taskSet("update-service-primary-task-set", "shop", "--primary-task-set", green)
	p.killSoon()
	await("the switch", map[string]int{"shop:1": 2, "shop:2": 4}, "shop:2")
	if s := p.service("shop"); !strings.HasSuffix(s.TaskDefinition, "shop:2") {
		t.Errorf("the service shows %s", s.TaskDefinition)
	}
	if out, err := p.TryAWS("ecs", "delete-task-set", "--cluster", "default", "--service", "shop", "--task-set", blue); err == nil ||
		!strings.Contains(out, "InvalidParameterException") {
		t.Errorf("a task set of 50 percent is deleted without force: %s", out)
	}
	p.taskSet("delete-task-set", "shop", "--task-set", blue, "--force")
	p.killSoon()
	await("blue's end", map[string]int{"shop:2": 4}, "shop:2")

	p.AWS("ecs", "delete-service", "--service", "shop", "--force")
	p.awaitInactive("shop")
	Eventually(t, "the tasks' end", func() bool { return len(processes(mark)) == 0 })
}

// TestCapacityProviders runs tasks on the nodes of a capacity provider, and none on another's.
func TestCapacityProviders(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge=2", "--settle", "1s", "--attribute", "pintle.capacity-provider=mine")
	p.register("job", "exec sleep 600")
	for _, name := range []string{"mine", "other"} {
		p.AWS("ecs", "create-capacity-provider", "--name", name, "--auto-scaling-group-provider", "autoScalingGroupArn="+name)
	}
	p.AWS("ecs", "put-cluster-capacity-providers", "--cluster", "default", "--capacity-providers", "mine", "other",
		"--default-capacity-provider-strategy", "capacityProvider=mine,weight=1")
	p.Kill()
	p.Start()
	names := p.list("describe-container-instances", "--container-instances", p.list("list-container-instances",
		"--query", "containerInstanceArns[0]")[0], "--query", "containerInstances[].capacityProviderName")
	if !slices.Equal(names, []string{"mine"}) {
		t.Errorf("the node belongs to %v", names)
	}
	owners := p.list("run-task", "--task-definition", "job", "--count", "2", "--query", "tasks[].[capacityProviderName,launchType]")
	if !slices.Equal(owners, []string{"mine", "EC2", "mine", "EC2"}) {
		t.Errorf("the tasks belong to %v", owners)
	}
	reasons := p.list("run-task", "--task-definition", "job", "--capacity-provider-strategy", "capacityProvider=other,weight=1",
		"--query", "failures[].reason")
	if !slices.Equal(reasons, []string{"ATTRIBUTE", "ATTRIBUTE"}) {
		t.Errorf("a task of a provider without nodes: %v", reasons)
	}
}
