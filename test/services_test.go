package test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// described is a service as describe-services prints it.
type described struct {
	Status         string
	DesiredCount   int
	RunningCount   int
	PendingCount   int
	TaskDefinition string
	Deployments    []struct {
		ID                 string
		Status             string
		TaskDefinition     string
		RolloutState       string
		RolloutStateReason string
		FailedTasks        int
	}
	Events []struct{ Message string }
}

// hasEvent reports whether the service has an event that contains the text.
func (d described) hasEvent(text string) bool {
	return slices.ContainsFunc(d.Events, func(e struct{ Message string }) bool { return strings.Contains(e.Message, text) })
}

// isStable reports the condition that aws ecs wait services-stable waits for.
func (d described) isStable() bool {
	return len(d.Deployments) == 1 && d.RunningCount == d.DesiredCount
}

// isCompleted reports whether the service is stable and its deployment is COMPLETED.
func (d described) isCompleted() bool {
	return d.isStable() && d.Deployments[0].RolloutState == "COMPLETED"
}

func (p *Pintle) service(name string) described {
	p.t.Helper()
	var out struct{ Services []described }
	text := p.AWS("ecs", "describe-services", "--services", name)
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.Services) != 1 {
		p.t.Fatal(err, text)
	}
	return out.Services[0]
}

func (p *Pintle) awaitService(what, name string, ok func(described) bool) described {
	p.t.Helper()
	var last described
	if !waitFor(func() bool { last = p.service(name); return ok(last) }) {
		p.t.Fatalf("service %s: %s did not happen within %s: %+v", name, what, patience, last)
	}
	return last
}

// awaitInactive waits until deleted services are INACTIVE.
func (p *Pintle) awaitInactive(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.awaitService("its end", name, func(d described) bool { return d.Status == "INACTIVE" })
	}
}

// newMark returns a number of seconds that no other process on this machine sleeps.
func newMark() string { return fmt.Sprint(1_000_000_000 + rand.Int64N(1_000_000_000_000)) }

// register registers a revision of a family with one container that runs a shell command.
func (p *Pintle) register(family, command string) {
	p.t.Helper()
	text, _ := json.Marshal([]any{map[string]any{"name": "main", "image": "i", "cpu": 64, "memory": 64, "stopTimeout": 2,
		"command": []string{"/bin/sh", "-c", command}}})
	p.AWS("ecs", "register-task-definition", "--family", family, "--container-definitions", string(text))
}

func (p *Pintle) list(args ...string) []string {
	p.t.Helper()
	return strings.Fields(p.AWS(append([]string{"ecs"}, append(args, "--output", "text")...)...))
}

func (p *Pintle) tasksOf(service string) []string {
	p.t.Helper()
	return p.list("list-tasks", "--service-name", service, "--query", "taskArns[]")
}

// TestServices drives a service through its life with the AWS CLI: creation, scaling, a rolling update, a broken update that
// rolls back, kills, and deletion.
func TestServices(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge=3", "--settle", "2s")
	mark := newMark()
	p.register("web", "exec sleep 600")
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", "2",
		"--tags", "key=team,value=ml")
	p.awaitService("the roll-out's end", "web", described.isCompleted)

	p.AWS("ecs", "update-service", "--service", "web", "--desired-count", "4")
	p.awaitService("the scale-out", "web", described.isStable)
	if n := len(p.tasksOf("web")); n != 4 {
		t.Errorf("scaled to 4, it has %d tasks", n)
	}

	t.Run("a rolling update", func(t *testing.T) {
		old := p.tasksOf("web")
		p.register("web", "exec sleep "+mark)
		p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web")
		s := p.awaitService("the update's end", "web", func(s described) bool {
			if s.RunningCount < 4 || s.RunningCount+s.PendingCount > 8 {
				t.Errorf("%d running and %d pending of 4", s.RunningCount, s.PendingCount)
			}
			return s.isCompleted()
		})
		if !strings.HasSuffix(s.TaskDefinition, "web:2") || !s.hasEvent("deployment completed") || !s.hasEvent("has stopped") {
			t.Errorf("%+v", s)
		}
		for _, task := range p.tasksOf("web") {
			if slices.Contains(old, task) {
				t.Errorf("the old task %s is left", task)
			}
		}
	})

	for what, command := range map[string]string{"does not start": "", "fails at once": "exit 3"} {
		t.Run("a command that "+what, func(t *testing.T) {
			before := p.tasksOf("web")
			if command != "" {
				p.register("web", command)
			} else {
				p.AWS("ecs", "register-task-definition", "--family", "web", "--container-definitions",
					`[{"name":"main","image":"i","memory":64,"command":["/no/such/program"]}]`)
			}
			p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web", "--deployment-configuration",
				"deploymentCircuitBreaker={enable=true,rollback=true}")
			s := p.awaitService("the roll-back", "web", func(s described) bool {
				return s.isCompleted() && strings.HasSuffix(s.TaskDefinition, "web:2")
			})
			if !s.hasEvent("deployment failed: tasks failed to start.") || !s.hasEvent("rolling back to deployment ecs-svc/") {
				t.Errorf("%+v", s.Events)
			}
			after := p.tasksOf("web")
			if slices.Sort(before); !slices.Equal(before, after) {
				t.Errorf("the tasks that ran were %v, now %v", before, after)
			}
			status := p.AWS("ecs", "list-service-deployments", "--service", "web", "--query", "serviceDeployments[0].status",
				"--output", "text")
			if status != "ROLLBACK_SUCCESSFUL" {
				t.Errorf("the deployment is %s", status)
			}
		})
	}

	t.Run("kills", func(t *testing.T) {
		for range 3 {
			before := p.tasksOf("web")
			Eventually(t, "four containers", func() bool { return len(processes(mark)) == 4 })
			syscall.Kill(processes(mark)[rand.IntN(4)], syscall.SIGKILL) //nolint:errcheck // it may have ended
			p.awaitService("the replacement", "web", func(s described) bool {
				after := p.tasksOf("web")
				return s.RunningCount == 4 && len(after) == 4 && !slices.Equal(before, after)
			})
		}
	})

	t.Run("the control plane's end in the middle of an update", func(t *testing.T) {
		p.register("web", "exec sleep 602")
		p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web", "--force-new-deployment")
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		p.Kill()
		p.Start()
		p.awaitService("the update's end", "web", func(s described) bool {
			return s.isCompleted() && !strings.HasSuffix(s.TaskDefinition, "web:2")
		})
	})

	if out, err := p.TryAWS("ecs", "delete-service", "--service", "web"); err == nil ||
		!strings.Contains(out, "InvalidParameterException") {
		t.Errorf("a service of 4 is deleted without force: %s", out)
	}
	p.AWS("ecs", "update-service", "--service", "web", "--desired-count", "0")
	p.awaitService("an empty service", "web", described.isStable)
	p.AWS("ecs", "delete-service", "--service", "web")
	p.awaitInactive("web")
}

// processes returns the processes that sleep for a number of seconds.
func processes(seconds string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		b, _ := os.ReadFile(path) // it may have ended
		if strings.HasSuffix(string(b), "sleep\x00"+seconds+"\x00") {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestDaemonServices runs one task on each node, while nodes drain, come and go.
func TestDaemonServices(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge=3", "--settle", "1s")
	p.register("agent", "exec sleep 600")
	p.AWS("ecs", "create-service", "--service-name", "agent", "--task-definition", "agent", "--scheduling-strategy", "DAEMON")
	onePerNode := func(n int) {
		t.Helper()
		p.awaitService(fmt.Sprintf("a task on each of %d nodes", n), "agent", func(s described) bool {
			return s.DesiredCount == n && s.isCompleted()
		})
		where := p.list(append([]string{"describe-tasks", "--query", "tasks[].containerInstanceArn", "--tasks"}, p.tasksOf("agent")...)...)
		if slices.Sort(where); len(where) != n || len(slices.Compact(where)) != n {
			t.Errorf("the tasks are on %v", where)
		}
	}
	onePerNode(3)
	node := p.list("list-container-instances", "--query", "containerInstanceArns[0]")[0]
	p.AWS("ecs", "update-container-instances-state", "--container-instances", node, "--status", "DRAINING")
	onePerNode(2)
	p.AWS("ecs", "update-container-instances-state", "--container-instances", node, "--status", "ACTIVE")
	onePerNode(3)
	agent := &daemon{
		t: t,
		args: []string{"agent", "--endpoint", p.Endpoint, "--data", t.TempDir(), "--name", "late",
			"--instance-type", "c5.xlarge", "--runtime", "process"},
	}
	agent.start()
	defer agent.kill()
	onePerNode(4)
	agent.kill()
	late := p.list("list-container-instances", "--filter", "attribute:pintle.node == late", "--query", "containerInstanceArns[0]")[0]
	p.AWS("ecs", "deregister-container-instance", "--container-instance", late, "--force")
	onePerNode(3)
	agent.start()
	onePerNode(4)
	p.register("agent", "exec sleep 601")
	p.AWS("ecs", "update-service", "--service", "agent", "--task-definition", "agent")
	onePerNode(4)
	s := p.service("agent")
	if !strings.HasSuffix(s.TaskDefinition, "agent:2") || strings.HasSuffix(s.Deployments[0].TaskDefinition, "agent:1") {
		t.Errorf("%+v", s)
	}
	p.AWS("ecs", "delete-service", "--service", "agent")
	p.awaitInactive("agent")
	Eventually(t, "the end of its tasks", func() bool {
		return p.AWS("ecs", "describe-clusters", "--query", "clusters[0].[runningTasksCount,pendingTasksCount]",
			"--output", "text") == "0\t0"
	})
}

// TestGPUService replaces tasks that hold all GPUs in a rolling update. There is no room beside them, so the old tasks have to
// stop first, as far as the minimum allows.
func TestGPUService(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=2", "--settle", "1s")
	definition := `[{"name":"main","image":"i","memory":64,"stopTimeout":2,"command":["sleep","600"],"resourceRequirements":[{` +
		`"type":"GPU","value":"1"}]}]`
	p.AWS("ecs", "register-task-definition", "--family", "gpu", "--container-definitions", definition)
	p.AWS("ecs", "create-service", "--service-name", "gpu", "--task-definition", "gpu", "--desired-count", "3",
		"--deployment-configuration", "minimumHealthyPercent=50,maximumPercent=200")
	s := p.awaitService("two of three tasks", "gpu", func(s described) bool {
		return s.RunningCount == 2 && s.hasEvent("was unable to place a task")
	})
	if !s.hasEvent("has insufficient GPU resource available.") {
		t.Errorf("%+v", s.Events)
	}
	p.AWS("ecs", "update-service", "--service", "gpu", "--desired-count", "2")
	p.awaitService("the roll-out's end", "gpu", described.isCompleted)
	p.AWS("ecs", "update-service", "--service", "gpu", "--force-new-deployment")
	p.awaitService("the update's end", "gpu", func(s described) bool {
		if s.RunningCount < 1 {
			t.Error("no task runs")
		}
		return s.isCompleted()
	})
}

// TestTaskProtection: a container protects its own task through the agent's endpoint, and its service scales in.
func TestTaskProtection(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge", "--settle", "1s")
	protect := `import json, os, time, urllib.request
body = json.dumps({"ProtectionEnabled": True, "ExpiresInMinutes": 5}).encode()
url = os.environ["ECS_AGENT_URI"] + "/task-protection/v1/state"
r = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": "application/json"})
print(urllib.request.urlopen(r).read().decode(), flush=True)
time.sleep(600)`
	text, _ := json.Marshal(map[string]any{
		"family": "busy", "taskRoleArn": "arn:aws:iam::000000000000:role/worker",
		"containerDefinitions": []any{map[string]any{"name": "main", "image": "i", "memory": 64, "stopTimeout": 2,
			"command": []string{python, "-c", protect}}},
	})
	p.AWS("ecs", "register-task-definition", "--cli-input-json", string(text))
	p.AWS("ecs", "create-service", "--service-name", "busy", "--task-definition", "busy", "--desired-count", "1")
	Eventually(t, "the task's protection", func() bool {
		return len(p.list("get-task-protection", "--cluster", "default", "--query", "protectedTasks[].taskArn")) == 1
	})
	task := p.tasksOf("busy")[0]
	p.AWS("ecs", "update-service", "--service", "busy", "--desired-count", "0")
	p.AWS("ecs", "update-service", "--service", "busy", "--force-new-deployment")
	if left := p.tasksOf("busy"); len(left) != 1 || left[0] != task {
		t.Fatalf("of the protected task %v is left", left)
	}
	p.AWS("ecs", "update-task-protection", "--cluster", "default", "--tasks", task, "--no-protection-enabled")
	p.awaitService("the scale-in", "busy", func(s described) bool { return s.RunningCount == 0 && s.isCompleted() })
}
