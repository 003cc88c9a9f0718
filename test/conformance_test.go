package test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
)

// conformance is a task definition, and what DescribeTasks says of a task of it that has ended.
type conformance struct {
	name string
	// containers are container definitions in JSON, which get an image, memory and a log driver unless they have some. "script" is
	// short for a shell command, "logOptions" for more options of the log driver, and the image CONFIGURED for configured.
	containers string
	task       string // more of the task definition
	run        string // more of RunTask's input
	stopAfter  string // the task is stopped after a container says this, or once DescribeTasks has it
	// want is the record, see describe. It may have *, for what differs from machine to machine; a container that is left out may
	// end in any way, but in the same on all runtimes.
	want string
	// words says that the reasons have words of the runtimes' own, and need only be as wanted.
	words bool
	// amazon is the record of Amazon's agent where it isn't as on Docker, for the reason beside it; or asWanted.
	amazon string
	// processes says that plain processes do the same.
	processes bool
}

// asWanted says that Amazon's agent tells what is wanted, and the rest in words of its own.
const asWanted = "as wanted"

// TestConformance runs a table of task definitions on Docker and on runc, and some as plain processes: all of them tell the same of
// each, and what Amazon's agent tells. That one runs them too where PINTLE_AMAZON_AGENT is the path of its program.
func TestConformance(t *testing.T) {
	w := newConformanceWorld(t)
	for _, c := range conformances {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			on := []string{"docker", "oci"}
			if c.processes {
				on = append(on, "process")
			}
			if w.amazon != "" {
				on = append(on, "amazon")
			}
			records := make([]string, len(on))
			var running sync.WaitGroup
			for i, runtime := range on {
				running.Go(func() { records[i] = w.record(t, c, runtime) })
			}
			running.Wait()
			if wrong := c.fails(on, records); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// matches compares a record with what it should be, line by line.
func matches(want, got string) bool {
	lines := strings.Split(strings.TrimSpace(want), "\n")
	all := strings.Split(got, "\n")
	return len(lines) == len(all) && !slices.ContainsFunc(lines, func(pattern string) bool {
		return !slices.ContainsFunc(all, func(line string) bool { return wild(strings.TrimSpace(pattern), line) })
	})
}

// wild reports whether a text has the parts between a pattern's asterisks, in order.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:] {
		at := strings.Index(text, part)
		if !ok || at < 0 {
			return false
		}
		if text = text[at+len(part):]; part == "" {
			text = ""
		}
	}
	return ok && text == ""
}

// fails says what is wrong with the records of a definition, by runtime, or "".
func (c conformance) fails(on, records []string) string {
	for i, got := range records {
		own := on[i] == "amazon" && c.amazon != ""
		want := c.want
		if own && c.amazon != asWanted {
			want = c.amazon
		}
		if !matches(want, got) {
			return fmt.Sprintf("on %s it's\n%s\nbut should be\n%s", on[i], got, strings.TrimSpace(want))
		}
		if !c.words && !own && got != records[0] {
			return fmt.Sprintf("on %s it's\n%s\nbut on %s\n%s", on[0], records[0], on[i], got)
		}
	}
	return ""
}

// configured is an image that says how its containers are to run. ECS takes no notice of its health check.
var configured = v1.Config{
	User: "worker:more", WorkingDir: "/tmp/work", StopSignal: "SIGINT", Volumes: map[string]struct{}{"/data": {}},
	Env:         []string{"PATH=/bin", "FROM=image", "BOTH=image"},
	Entrypoint:  []string{"/bin/sh", "-c"},
	Cmd:         []string{"trap 'echo interrupted; exit 9' INT; id; pwd; echo $FROM $BOTH $HOME; cat /data/seed; echo up; sleep 600 & wait"},
	Healthcheck: &v1.HealthConfig{Test: []string{"CMD-SHELL", "exit 1"}, Interval: time.Second, Retries: 1},
}

// conformanceWorld is one control plane with a node of each runtime.
type conformanceWorld struct {
	image   string
	layout  string // the image configured
	routers string // a directory with the program router, a stand-in for Fluent Bit
	amazon  string // the control plane's address for Amazon's agent, where there is one
	ecs     *ecs.Client
	logs    *cloudwatchlogs.Client
}

func newConformanceWorld(t *testing.T) *conformanceWorld {
	engine := dockerd(t)
	p := UpSigned(t, "c5.24xlarge", "--runtime", "process")
	for _, runtime := range []string{"docker", "oci"} {
		agent := exec.Command(bin(t, "pintle"), "agent", "--endpoint", p.Endpoint, "--data", t.TempDir(), "--runtime", runtime,
			"--docker-host", engine, "--instance-type", "c5.24xlarge", "--metrics=", "--ephemeral")
		agent.Env = p.Env()
		agent.Stderr = testLog{t}
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			agent.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
			agent.Wait()                         //nolint:errcheck // it was asked to end
		})
	}
	routers := t.TempDir()
	build := exec.Command("go", "build", "-o", routers+"/router", "./testdata/router")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	nodes := 3
	amazon := ""
	if program := os.Getenv("PINTLE_AMAZON_AGENT"); program != "" {
		amazon = startAmazonsAgent(t, program, p)
		nodes++
	} else {
		t.Log("NOT RUN with Amazon's agent: PINTLE_AMAZON_AGENT names none")
	}
	root, layout := rootfs(t), t.TempDir()
	if err := runtimetest.MakeLayout(layout, root, configured); err != nil {
		t.Fatal(err)
	}
	w := &conformanceWorld{"rootfs:" + root, "oci-layout:" + layout, routers, amazon, p.sdk(), cloudwatchlogs.New(cloudwatchlogs.Options{
		Region: "us-east-1", BaseEndpoint: &p.Endpoint, Credentials: credentials.NewStaticCredentialsProvider(p.key, p.secret, ""),
	})}
	if _, err := w.logs.CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("conformance")}); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "all nodes", func() bool {
		out, err := w.ecs.ListContainerInstances(t.Context(), &ecs.ListContainerInstancesInput{Filter: aws.String("agentConnected==true")})
		return err == nil && len(out.ContainerInstanceArns) == nodes
	})
	return w
}

// testLog shows in a test's log what a program writes.
type testLog struct{ testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// record runs a task on a runtime to its end, and describes it.
func (w *conformanceWorld) record(t *testing.T, c conformance, runtime string) string {
	ctx := t.Context()
	task, failure := w.start(t, c, runtime)
	if failure != "" {
		return failure
	}
	described := func() *types.Task {
		out, err := w.ecs.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: []string{task}})
		if err != nil || len(out.Tasks) == 0 {
			t.Errorf("describe %s: %v", task, err)
			return &types.Task{LastStatus: aws.String("STOPPED")}
		}
		return &out.Tasks[0]
	}
	seen := ""
	if c.stopAfter != "" {
		seen = w.awaitText(t, c, described)
		if _, err := w.ecs.StopTask(ctx, &ecs.StopTaskInput{Task: &task, Reason: aws.String("seen")}); err != nil {
			t.Error(err)
		}
	}
	var last *types.Task
	if !poll(func() bool { last = described(); return *last.LastStatus == "STOPPED" }) {
		t.Errorf("on %s the task doesn't end", runtime)
	}
	return seen + w.describe(t, c, last)
}

// poll is waitFor at a calmer pace, since many wait at once.
func poll(ok func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if ok() {
			return true
		}
	}
	return false
}

// awaitText waits until the task has said a text, or its containers have it as their health, and returns all of their health.
func (w *conformanceWorld) awaitText(t *testing.T, c conformance, described func() *types.Task) (health string) {
	if !poll(func() bool {
		task := described()
		health = ""
		said := ""
		for _, container := range task.Containers {
			said += w.output(t, task, *container.Name)
			if container.HealthStatus != types.HealthStatusUnknown {
				health += *container.Name + " is " + string(container.HealthStatus) + "\n"
			}
		}
		return *task.LastStatus == "STOPPED" || strings.Contains(health+said, c.stopAfter)
	}) {
		t.Errorf("it never says %s", c.stopAfter)
	}
	return health
}

// start registers a definition, and runs it on a runtime. failure is why it can't be placed.
func (w *conformanceWorld) start(t *testing.T, c conformance, runtime string) (task, failure string) {
	t.Helper()
	var in ecs.RegisterTaskDefinitionInput
	unmarshal(t, w.definition(t, c, runtime), &in)
	registered, err := w.ecs.RegisterTaskDefinition(t.Context(), &in)
	if err != nil {
		t.Error(err)
		return "", "not registered"
	}
	run := ecs.RunTaskInput{TaskDefinition: registered.TaskDefinition.TaskDefinitionArn}
	if c.run != "" {
		unmarshal(t, []byte(c.run), &run)
	}
	run.PlacementConstraints = []types.PlacementConstraint{{
		Type: types.PlacementConstraintTypeMemberOf, Expression: aws.String("attribute:pintle.runtime == " + runtime),
	}}
	out, err := w.ecs.RunTask(t.Context(), &run)
	if err != nil {
		t.Error(err)
		return "", "not run"
	}
	if len(out.Failures) > 0 {
		return "", *out.Failures[0].Reason
	}
	return *out.Tasks[0].TaskArn, ""
}

func unmarshal(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Errorf("%s: %v", text, err)
	}
}

// definition completes a task definition. FREE in it is a port that no other runtime's task has, and ROUTERS
// the directory of the stand-in for log routers.
func (w *conformanceWorld) definition(t *testing.T, c conformance, runtime string) []byte {
	port := map[string]string{"docker": "9181", "oci": "9182", "process": "9183", "amazon": "9184"}[runtime]
	text := strings.NewReplacer("FREE", port, "CONFIGURED", w.layout).Replace(c.containers)
	var containers []map[string]any
	unmarshal(t, []byte(text), &containers)
	image := w.image
	logging := map[string]string{"awslogs-group": "conformance", "awslogs-region": "us-east-1", "awslogs-stream-prefix": runtime}
	if runtime == "amazon" {
		image = amazonsImage
		logging["awslogs-endpoint"] = w.amazon
	}
	for _, d := range containers {
		options := maps.Clone(logging)
		if more, ok := d["logOptions"].(map[string]any); ok {
			for key, value := range more {
				options[key] = value.(string)
			}
			delete(d, "logOptions")
		}
		if script, ok := d["script"]; ok {
			d["entryPoint"], d["command"] = []string{"/bin/sh", "-c"}, []any{script}
			delete(d, "script")
		}
		for key, value := range map[string]any{
			"image": image, "stopTimeout": 2, "logConfiguration": map[string]any{"logDriver": "awslogs", "options": options},
		} {
			if _, ok := d[key]; !ok {
				d[key] = value
			}
		}
		if d["memory"] == nil && !strings.Contains(c.task, `"memory"`) {
			d["memory"] = 32
		}
	}
	all := map[string]any{"family": "c-" + strings.ReplaceAll(c.name, " ", "-") + "-" + runtime, "containerDefinitions": containers}
	if c.task != "" {
		more := map[string]any{}
		unmarshal(t, []byte(strings.ReplaceAll(c.task, "ROUTERS", w.routers)), &more)
		maps.Copy(all, more)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Error(err)
	}
	return b
}

// describe puts what DescribeTasks tells of an ended task into lines: one for the task, and one for each container with what it wrote.
func (w *conformanceWorld) describe(t *testing.T, c conformance, task *types.Task) string {
	steps := ""
	for _, step := range []struct {
		name string
		at   *time.Time
	}{{"pulled", task.PullStoppedAt}, {"started", task.StartedAt}, {"ended", task.ExecutionStoppedAt}, {"stopped", task.StoppedAt}} {
		if step.at != nil {
			steps += " " + step.name
		}
	}
	if amazonsImage == aws.ToString(task.Containers[0].Image) {
		steps = " pulled" + steps // its image is there, so it pulls none
	}
	lines := []string{fmt.Sprintf("task%s: %s: %s", steps, task.StopCode, aws.ToString(task.StoppedReason))}
	for _, container := range task.Containers {
		lines = append(lines, w.describeContainer(t, task, container))
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n")
}

func (w *conformanceWorld) describeContainer(t *testing.T, task *types.Task, c types.Container) string {
	line := *c.Name + ":"
	if c.ExitCode != nil {
		line += fmt.Sprint(" ", *c.ExitCode)
	}
	for _, b := range c.NetworkBindings {
		if b.ContainerPortRange != nil {
			line += fmt.Sprintf(" %s:dynamic->%s/%s", aws.ToString(b.BindIP), *b.ContainerPortRange, b.Protocol)
			continue
		}
		host := "dynamic"
		switch p := *b.HostPort; {
		case p == *b.ContainerPort:
			host = "same"
		case p > 9180 && p < 9190:
			host = "fixed"
		}
		line += fmt.Sprintf(" %s:%s->%d/%s", aws.ToString(b.BindIP), host, *b.ContainerPort, b.Protocol)
	}
	for _, i := range c.NetworkInterfaces {
		if i.AttachmentId != nil && i.PrivateIpv4Address != nil {
			line += " interface"
		}
	}
	if c.Reason != nil {
		line += " " + strings.ReplaceAll(*c.Reason, "\n", " ")
	}
	if text := w.output(t, task, *c.Name); text != "" {
		line += " | " + text
	}
	return line
}

// output is what a container wrote, in one line.
func (w *conformanceWorld) output(t *testing.T, task *types.Task, container string) string {
	arn, err := w.ecs.DescribeTaskDefinition(t.Context(), &ecs.DescribeTaskDefinitionInput{TaskDefinition: task.TaskDefinitionArn})
	if err != nil {
		t.Error(err)
		return ""
	}
	family := *arn.TaskDefinition.Family
	stream := family[strings.LastIndexByte(family, '-')+1:] + "/" + container + "/" + path.Base(*task.TaskArn)
	out, err := w.logs.GetLogEvents(context.WithoutCancel(t.Context()), &cloudwatchlogs.GetLogEventsInput{
		LogGroupName: aws.String("conformance"), LogStreamName: &stream, StartFromHead: aws.Bool(true),
	})
	if err != nil {
		return "" // it has written nothing
	}
	var lines []string
	for _, e := range out.Events {
		lines = append(lines, strings.TrimRight(*e.Message, "\r"))
	}
	return strings.Join(lines, "; ")
}
