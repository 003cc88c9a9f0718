package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/node/runtime/terminal"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/top"
)

type topCmd struct {
	clientFlags
	Every time.Duration
}

func (c *topCmd) define(f flags) {
	c.clientFlags.define(f)
	f.DurationVar(&c.Every, "every", time.Second, "How often everything is read.")
}

func (c *topCmd) verb() *cobra.Command {
	cmd := newVerb("top [flags]", "Watch a cluster's nodes, GPUs, tasks and services in the terminal, and act on them.", noArguments, c.Run)
	cmd.Long = "The keys are shown below the table, and all of them with ?. Colors are off where NO_COLOR is set."
	c.define(flags{cmd.Flags()})
	return checked(cmd, c.Validate)
}

// Validate checks how often everything is read.
func (c *topCmd) Validate() error {
	if c.Every < 100*time.Millisecond {
		return fmt.Errorf("--every %s: it must be 100ms or more", c.Every)
	}
	return nil
}

// Run shows the cluster until the user leaves.
func (c *topCmd) Run(ctx context.Context) error {
	if _, isTerminal := terminal.SizeOf(os.Stdout); !isTerminal {
		return errors.New("pintle top needs a terminal: pintle ps and pintle gpus print the same once")
	}
	w, err := c.watcher(ctx)
	if err != nil {
		return err
	}
	return top.Run(ctx, w.read, top.Options{Every: c.Every, Colors: os.Getenv("NO_COLOR") == ""})
}

// watcher reads a cluster for pintle top.
type watcher struct {
	clientFlags
	clients
}

func (c *topCmd) watcher(ctx context.Context) (*watcher, error) {
	cl, err := c.clients(ctx)
	if err != nil {
		return nil, err
	}
	// A cluster that isn't there is an error at once, and not in the first line of an empty screen.
	if err := (&gpuListCmd{c.endpointFlags, c.Cluster}).clusterExists(ctx); err != nil {
		return nil, err
	}
	return &watcher{c.clientFlags, cl}, nil
}

// read is a top.Source.
func (w *watcher) read(ctx context.Context) (top.Reading, error) {
	instances, err := listInstances(ctx, w.ecs, w.Cluster)
	if err != nil {
		return top.Reading{}, err
	}
	tasks, err := listTasks(ctx, w.ecs, w.Cluster, types.DesiredStatusRunning)
	if err != nil {
		return top.Reading{}, err
	}
	stopped, err := listTasks(ctx, w.ecs, w.Cluster, types.DesiredStatusStopped)
	if err != nil {
		return top.Reading{}, err
	}
	services, err := listServices(ctx, w.ecs, w.Cluster)
	if err != nil {
		return top.Reading{}, err
	}
	gpus, err := w.gpus(ctx)
	if err != nil {
		return top.Reading{}, err
	}
	r := top.Reading{
		Title: fmt.Sprintf("%s  %s, %s, %s, %s  %s", plain(w.Cluster, ""), counted(len(instances), "node"), gpusInWords(gpus),
			counted(len(tasks), "task"), counted(len(services), "service"), time.Now().Format(time.TimeOnly)),
		Tables: []top.Table{w.nodeTable(instances, gpus), w.gpuTable(gpus), w.taskTable(append(tasks, stopped...)), w.serviceTable(services)},
	}
	if why := w.readOnly(ctx); why != "" {
		r.Notice = "the control plane takes no changes: " + plain(why, "")
	}
	return r, nil
}

// gpus returns the cluster's GPUs. Amazon ECS doesn't tell of them.
func (w *watcher) gpus(ctx context.Context) ([]console.GPU, error) {
	if w.Endpoint == "" {
		return nil, nil
	}
	return (&gpuListCmd{w.endpointFlags, w.Cluster}).fetch(ctx)
}

func gpusInWords(gpus []console.GPU) string {
	free := 0
	for _, g := range gpus {
		if g.Task == "" && g.Fault == nil && g.Connected {
			free++
		}
	}
	return fmt.Sprintf("%s (%d free)", counted(len(gpus), "GPU"), free)
}

// cell makes a cell of text that isn't trusted.
func cell(v any) top.Cell { return top.Cell{Text: plain(fmt.Sprint(v), "")} }

func toned(v any, tone top.Tone) top.Cell {
	c := cell(v)
	c.Tone = tone
	return c
}

func (w *watcher) nodeTable(instances []types.ContainerInstance, gpus []console.GPU) top.Table {
	t := top.Table{Name: "nodes", Titles: []string{"NODE", "TYPE", "STATUS", "TASKS", "CPU FREE", "MIB FREE", "GPUS"}}
	byNode := map[string][]console.GPU{}
	for _, g := range gpus {
		byNode[g.Node] = append(byNode[g.Node], g)
	}
	for _, n := range instances {
		id, status, tone := lastPart(n.ContainerInstanceArn), aws.ToString(n.Status), top.Good
		switch {
		case !n.AgentConnected:
			status, tone = "away", top.Bad
		case status != "ACTIVE":
			tone = top.Waiting
		}
		t.Rows = append(t.Rows, top.Row{ID: id, Cells: []top.Cell{
			cell(fmt.Sprintf("%.8s", id)), cell(instanceType(n)), toned(status, tone), cell(n.RunningTasksCount + n.PendingTasksCount),
			cell(unreserved(n, "CPU")), cell(unreserved(n, "MEMORY")), cell(gpuBar(byNode[id])),
		}})
	}
	return t
}

// gpuBar shows a node's GPUs, a character each: a free one, one that is given to a task by its load, a broken one.
func gpuBar(gpus []console.GPU) string {
	var b strings.Builder
	for _, g := range gpus {
		switch {
		case g.Fault != nil:
			b.WriteRune('x')
		case g.Task == "":
			b.WriteRune('·')
		case g.UtilizationPct == nil:
			b.WriteRune('?')
		default:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[max(0, min(7, int(*g.UtilizationPct*8/100)))])
		}
	}
	return b.String()
}

func instanceType(n types.ContainerInstance) string {
	for _, a := range n.Attributes {
		if aws.ToString(a.Name) == state.InstanceTypeAttribute {
			return aws.ToString(a.Value)
		}
	}
	return "-"
}

func unreserved(n types.ContainerInstance, resource string) int32 {
	for _, r := range n.RemainingResources {
		if aws.ToString(r.Name) == resource {
			return r.IntegerValue
		}
	}
	return 0
}

func (w *watcher) gpuTable(gpus []console.GPU) top.Table {
	t := top.Table{Name: "GPUs", Titles: []string{"GPU", "NODE", "TASK", "LOAD", "MIB USED", "TEMP", "HEALTH", "MODEL"}}
	for _, g := range gpus {
		health, task, model := toned("ok", top.Good), cell("-"), g.Model
		switch {
		case g.Fault != nil:
			health = toned(g.Fault.Reason, top.Bad)
		case !g.Connected:
			health = toned("node away", top.Bad)
		}
		if g.Task != "" {
			task = cell(fmt.Sprintf("%.8s/%s", g.Task, g.Container))
		}
		if g.Simulated {
			model = "simulated " + model // at the beginning: 80 columns have no room for its end
		}
		load, memory, temperature := readings(g)
		t.Rows = append(t.Rows, top.Row{ID: g.ID, Cells: []top.Cell{
			cell(fmt.Sprintf("%.8s", strings.TrimPrefix(g.ID, "GPU-"))), cell(fmt.Sprintf("%.8s", g.Node)), task, cell(load), cell(strings.TrimSuffix(memory, " MiB")), cell(temperature), health, cell(model),
		}})
	}
	return t
}

func (w *watcher) taskTable(tasks []types.Task) top.Table {
	t := top.Table{Name: "tasks", Titles: []string{"TASK", "DEFINITION", "STATUS", "GPUS", "NODE", "AGE", "REASON"}, Actions: []top.Action{
		{Key: "w", Name: "why", Text: w.why},
		{Key: "l", Name: "logs", Text: w.tail, IsLog: true},
		{Key: "e", Name: "shell", Program: w.program("exec")},
		{Key: "s", Name: "stop", Asks: "stop the task", Do: w.stop},
	}}
	for _, task := range tasks {
		id, tone := lastPart(task.TaskArn), top.Waiting
		switch aws.ToString(task.LastStatus) {
		case "RUNNING":
			tone = top.Good
		case "STOPPED":
			tone = top.Faint
		}
		if task.StopCode == types.TaskStopCodeTaskFailedToStart {
			tone = top.Bad
		}
		t.Rows = append(t.Rows, top.Row{ID: id, Cells: []top.Cell{
			cell(fmt.Sprintf("%.8s", id)), cell(lastPart(task.TaskDefinitionArn)), toned(status(task), tone), cell(gpuCount(task)),
			cell(fmt.Sprintf("%.8s", lastPart(task.ContainerInstanceArn))), cell(age(task.CreatedAt)), cell(reason(task)),
		}})
	}
	return t
}

func (w *watcher) serviceTable(services []types.Service) top.Table {
	t := top.Table{Name: "services", Titles: []string{"SERVICE", "WANTED", "RUNNING", "PENDING", "DEFINITION", "DEPLOYMENT", "LAST EVENT"},
		Actions: []top.Action{{Key: "w", Name: "why", Text: w.why}, {Key: "v", Name: "events", Text: w.events}}}
	for _, s := range services {
		tone := top.Good
		if s.RunningCount != s.DesiredCount {
			tone = top.Waiting
		}
		state, event := "-", "-"
		if len(s.Deployments) > 0 {
			state = cmp.Or(string(s.Deployments[0].RolloutState), "-")
		}
		if len(s.Events) > 0 {
			event = aws.ToString(s.Events[0].Message)
		}
		deployment := cell(state)
		if state == string(types.DeploymentRolloutStateFailed) {
			deployment.Tone = top.Bad
		}
		t.Rows = append(t.Rows, top.Row{ID: aws.ToString(s.ServiceName), Cells: []top.Cell{
			cell(aws.ToString(s.ServiceName)), cell(s.DesiredCount), toned(s.RunningCount, tone), cell(s.PendingCount), cell(lastPart(s.TaskDefinition)),
			deployment, cell(event),
		}})
	}
	return t
}

// why is pintle why.
func (w *watcher) why(ctx context.Context, name string) (string, error) {
	b, err := w.ask(ctx, name)
	if err != nil {
		return "", err
	}
	var a console.WhyAnswer
	if err := json.Unmarshal(b, &a); err != nil {
		return "", err
	}
	return plain(inWords(a), "\n"), nil
}

// events are a service's, the newest first.
func (w *watcher) events(ctx context.Context, name string) (string, error) {
	d, err := w.ecs.DescribeServices(ctx, &awsecs.DescribeServicesInput{Cluster: &w.Cluster, Services: []string{name}})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, s := range d.Services {
		for _, e := range s.Events {
			fmt.Fprintf(&b, "%s  %s\n", e.CreatedAt.Local().Format(time.DateTime), plain(aws.ToString(e.Message), ""))
		}
	}
	return cmp.Or(b.String(), "no events"), nil
}

// tailLines is how much of a log is shown.
const tailLines = 1000

// tail is the end of a task's logs.
func (w *watcher) tail(ctx context.Context, task string) (string, error) {
	t, err := w.describe(ctx, w.Cluster, task)
	if err != nil {
		return "", err
	}
	group, stream, err := w.logStream(ctx, t, "")
	if err != nil {
		return "", err
	}
	in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: &group, LogStreamName: &stream, Limit: aws.Int32(tailLines)}
	var b strings.Builder
	n, err := w.copy(ctx, in, plainWriter{&b})
	if err == nil && n == 0 {
		io.WriteString(&b, "nothing yet") //nolint:errcheck // a string takes all
	}
	return b.String(), err
}

func (w *watcher) stop(ctx context.Context, task string) error {
	_, err := w.ecs.StopTask(ctx, &awsecs.StopTaskInput{Cluster: &w.Cluster, Task: &task, Reason: aws.String("stopped from pintle top")})
	return err
}

// program returns what runs a verb of pintle's own with a task.
func (w *watcher) program(verb string) func(task string) *exec.Cmd {
	return func(task string) *exec.Cmd {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		return exec.Command(self, verb, "--endpoint", w.Endpoint, "--cluster", w.Cluster, task)
	}
}

// listInstances describes every container instance of the cluster, in the order of their ids.
func listInstances(ctx context.Context, c *awsecs.Client, cluster string) ([]types.ContainerInstance, error) {
	var out []types.ContainerInstance
	pages := awsecs.NewListContainerInstancesPaginator(c, &awsecs.ListContainerInstancesInput{Cluster: &cluster})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if len(p.ContainerInstanceArns) == 0 {
			continue
		}
		d, err := c.DescribeContainerInstances(ctx, &awsecs.DescribeContainerInstancesInput{Cluster: &cluster, ContainerInstances: p.ContainerInstanceArns})
		if err != nil {
			return nil, err
		}
		out = append(out, d.ContainerInstances...)
	}
	slices.SortFunc(out, func(a, b types.ContainerInstance) int {
		return strings.Compare(*a.ContainerInstanceArn, *b.ContainerInstanceArn)
	})
	return out, nil
}

// listServices describes every service of the cluster, in the order of their names.
func listServices(ctx context.Context, c *awsecs.Client, cluster string) ([]types.Service, error) {
	var out []types.Service
	pages := awsecs.NewListServicesPaginator(c, &awsecs.ListServicesInput{Cluster: &cluster})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if len(p.ServiceArns) == 0 {
			continue
		}
		d, err := c.DescribeServices(ctx, &awsecs.DescribeServicesInput{Cluster: &cluster, Services: p.ServiceArns})
		if err != nil {
			return nil, err
		}
		out = append(out, d.Services...)
	}
	slices.SortFunc(out, func(a, b types.Service) int { return strings.Compare(*a.ServiceName, *b.ServiceName) })
	return out, nil
}
