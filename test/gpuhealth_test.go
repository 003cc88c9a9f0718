package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pintle runs a pintle command and returns what it prints.
func (p *Pintle) pintle(args ...string) (string, error) {
	p.t.Helper()
	out, err := p.Command(bin(p.t, "pintle"), args...).CombinedOutput()
	return string(out), err
}

// describedTask is a task as describe-tasks prints it.
type describedTask struct {
	TaskArn       string
	LastStatus    string
	StopCode      string
	StoppedReason string
	Containers    []struct{ GpuIds []string }
}

func (p *Pintle) task(arn string) describedTask {
	p.t.Helper()
	var out struct{ Tasks []describedTask }
	text := p.AWS("ecs", "describe-tasks", "--tasks", arn)
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.Tasks) != 1 {
		p.t.Fatal(err, text)
	}
	return out.Tasks[0]
}

// describedInstance is a container instance as describe-container-instances prints it.
type describedInstance struct {
	ContainerInstanceArn string
	RemainingResources   []struct {
		Name           string
		StringSetValue []string
	}
	HealthStatus struct {
		OverallStatus string
		Details       []struct{ Type, Status, StatusReason string }
	}
}

func (p *Pintle) onlyInstance() describedInstance {
	p.t.Helper()
	var out struct{ ContainerInstances []describedInstance }
	arns := p.list("list-container-instances", "--query", "containerInstanceArns[]")
	text := p.AWS("ecs", "describe-container-instances", "--include", "CONTAINER_INSTANCE_HEALTH", "--container-instances", arns[0])
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out.ContainerInstances) != 1 {
		p.t.Fatal(err, text)
	}
	return out.ContainerInstances[0]
}

// freeGPUs returns the ids of the GPUs that a task could get.
func (d describedInstance) freeGPUs() []string {
	for _, r := range d.RemainingResources {
		if r.Name == "GPU" {
			return r.StringSetValue
		}
	}
	return nil
}

// reason returns why the node's GPUs are impaired, or "".
func (d describedInstance) reason() string {
	for _, c := range d.HealthStatus.Details {
		if c.Type == "ACCELERATED_COMPUTE" && c.Status == "IMPAIRED" && d.HealthStatus.OverallStatus == "IMPAIRED" {
			return c.StatusReason
		}
	}
	return ""
}

// TestABrokenGPU breaks the GPU of a service's task. The task is replaced on another GPU, everything says why, even after a
// kill, and nobody gets the GPU until it's healthy again.
func TestABrokenGPU(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.8xlarge=1", "--settle", "1s")
	container := func(gpus int) string {
		return fmt.Sprintf(
			`[{"name":"main","image":"i","memory":64,"stopTimeout":2,"command":["/bin/sh","-c","exec sleep 600"],`+
				`"resourceRequirements":[{"type":"GPU","value":"%d"}]}]`, gpus)
	}
	p.AWS("ecs", "register-task-definition", "--family", "one", "--container-definitions", container(1))
	p.AWS("ecs", "register-task-definition", "--family", "four", "--container-definitions", container(4))
	p.AWS("ecs", "register-task-definition", "--family", "two", "--container-definitions", container(2))
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "one", "--desired-count", "2")
	p.awaitService("two tasks", "web", described.isCompleted)
	before := p.tasksOf("web")
	victim := p.task(before[0])
	gpu := victim.Containers[0].GpuIds[0]
	if n := p.onlyInstance(); n.reason() != "" || slices.Contains(n.freeGPUs(), gpu) || len(n.freeGPUs()) != 2 {
		t.Fatalf("before: %+v", n)
	}

	// A program's own error affects nobody.
	if out, err := p.pintle("gpus", "fault", gpu, "--xid", "31"); err != nil {
		t.Fatal(err, out)
	}
	time.Sleep(1500 * time.Millisecond)
	if got := p.task(victim.TaskArn); got.LastStatus != "RUNNING" {
		t.Fatalf("an error that is no fault stops the task: %+v", got)
	}

	if out, err := p.pintle("gpus", "fault", gpu, "--xid", "79"); err != nil {
		t.Fatal(err, out)
	}
	p.Await(victim.TaskArn, "STOPPED")
	const why = "Xid 79, it has fallen off the bus"
	if got := p.task(victim.TaskArn); got.StopCode != "TerminationNotice" || got.StoppedReason != "GPU "+gpu+" is unhealthy: "+why+"." {
		t.Errorf("the task ended with %s: %s", got.StopCode, got.StoppedReason)
	}
	p.awaitService("a replacement", "web", func(d described) bool {
		after := p.tasksOf("web")
		return d.RunningCount == 2 && len(after) == 2 && !slices.Contains(after, victim.TaskArn)
	})
	if s := p.service("web"); s.Deployments[0].FailedTasks != 0 {
		t.Errorf("the service is blamed for it: %+v", s.Deployments)
	}
	for _, arn := range p.tasksOf("web") {
		if ids := p.task(arn).Containers[0].GpuIds; slices.Contains(ids, gpu) {
			t.Errorf("task %s has the broken GPU", arn)
		}
	}

	checkBroken := func(when string) {
		t.Helper()
		n := p.onlyInstance()
		if n.reason() != "GPU "+gpu+": "+why || slices.Contains(n.freeGPUs(), gpu) {
			t.Errorf("%s the instance says %+v", when, n)
		}
		out, err := p.pintle("gpus")
		line := regexp.MustCompile(regexp.QuoteMeta(gpu) + `.*` + regexp.QuoteMeta(why) + `, since 20`)
		if err != nil || !line.MatchString(out) || !strings.Contains(out, ", 1 broken") {
			t.Errorf("%s pintle gpus says %v\n%s", when, err, out)
		}
		got := p.AWS("ecs", "run-task", "--task-definition", "four", "--query", "failures[].reason", "--output", "text")
		if got != "RESOURCE:GPU" {
			t.Errorf("%s a task of all GPUs gets %q", when, got)
		}
		got = p.AWS("ecs", "start-task", "--task-definition", "two", "--container-instances", n.ContainerInstanceArn,
			"--query", "failures[].reason", "--output", "text")
		if got != "RESOURCE:GPU" {
			t.Errorf("%s a task of two GPUs, of which one is broken, gets %q", when, got)
		}
	}
	checkBroken("now")
	p.Kill()
	p.Start()
	checkBroken("after a kill")
	time.Sleep(1500 * time.Millisecond) // by now the node has checked its GPUs again
	checkBroken("a while after a kill")

	p.AWS("ecs", "update-service", "--service", "web", "--desired-count", "0")
	p.awaitService("an empty service", "web", func(d described) bool { return d.RunningCount == 0 && len(p.tasksOf("web")) == 0 })
	if out, err := p.pintle("gpus", "clear", gpu); err != nil {
		t.Fatal(err, out)
	}
	Eventually(t, "the GPU's recovery", func() bool { return len(p.onlyInstance().freeGPUs()) == 4 })
	if n := p.onlyInstance(); n.reason() != "" {
		t.Errorf("it is well again, and says %+v", n)
	}
	all := p.AWS("ecs", "run-task", "--task-definition", "four", "--query", "tasks[0].taskArn", "--output", "text")
	p.Await(all, "RUNNING")

	// A task without a service just ends.
	if out, err := p.pintle("gpus", "fault", gpu); err != nil {
		t.Fatal(err, out)
	}
	p.Await(all, "STOPPED")
	if got := p.task(all); got.StopCode != "TerminationNotice" || !strings.Contains(got.StoppedReason, gpu) {
		t.Errorf("it ended with %+v", got)
	}

	for _, c := range [][]string{
		{"fault", "GPU-none"},
		{"clear", "GPU-none"},
		{"fault", gpu, "--xid", "0"},
		{"fault", gpu, "--xid", "-1"},
	} {
		if out, err := p.pintle(append([]string{"gpus"}, c...)...); err == nil {
			t.Errorf("%v is taken: %s", c, out)
		}
	}
	for _, c := range []struct {
		kind, body string
		want       int
	}{
		// a content type that web pages may send across origins
		{"text/plain", `{"GPU":"` + gpu + `","XID":79}`, http.StatusUnsupportedMediaType},
		{"application/json", "{", http.StatusBadRequest},
		{"application/json", `{"GPU":7}`, http.StatusBadRequest},
		{"application/json", strings.Repeat(" ", 5000) + "{}", http.StatusRequestEntityTooLarge},
	} {
		resp, err := http.Post(p.Endpoint+"/pintle/gpus/fault", c.kind, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %.20s: %d, want %d", c.kind, c.body, resp.StatusCode, c.want)
		}
	}
}
