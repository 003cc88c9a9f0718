package pages

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/ecs/explain"
	"github.com/pintle/pintle/internal/state"
)

// taskView shows one task.
func (p *Pages) taskView() view {
	return view{
		path:  "/console/tasks/{cluster}/{task}",
		title: func(v *visit) string { return "Task " + v.path("task") },
		head:  chooseStretch,
		body:  p.taskBody,
		reads: func(v *state.View) { readsTasks(v); watchAll(v.Targets) },
		every: 2 * time.Second, // its GPUs' load
		does:  map[string]action{"stop-task": stopTask},
	}
}

func (p *Pages) taskBody(v *visit) ([]live.Fragment, error) {
	cluster := v.path("cluster")
	found, err := describeTasks(v, cluster, []string{v.path("task")})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errNotFound("The cluster " + cluster + " has no task " + v.path("task") + ". Stopped tasks are forgotten after an hour.")
	}
	t := found[0]
	definition, err := ask[ecs.DescribeTaskDefinitionOutput](v, &ecs.DescribeTaskDefinitionInput{TaskDefinition: t.TaskDefinitionArn})
	if err != nil {
		definition = &ecs.DescribeTaskDefinitionOutput{TaskDefinition: &types.TaskDefinition{}} // deleted, or not to be seen
	}
	return []live.Fragment{
		section("facts", "Task", taskFacts(t), taskActions(v, t)),
		p.waiting(v, *t.TaskArn),
		section("timeline", "Timeline", timeline(t)),
		section("containers", "Containers", containerTable(t, definition.TaskDefinition)),
		section("gpus", "GPUs", p.gpusOfTask(t)),
		v.gpuPlots("ClusterName", cluster, "TaskId", state.NameOf(*t.TaskArn)),
		section("tags", "Tags", tagTable(t.Tags)),
	}, nil
}

func taskFacts(t types.Task) markup.Node {
	cluster := state.NameOf(*t.ClusterArn)
	var node, service any
	if t.ContainerInstanceArn != nil {
		node = link(toNode(cluster, state.NameOf(*t.ContainerInstanceArn)), state.NameOf(*t.ContainerInstanceArn))
	}
	if name, ok := strings.CutPrefix(aws.ToString(t.Group), "service:"); ok {
		service = link(to("services", cluster, name), name)
	}
	return facts(
		fact{"Status", status(aws.ToString(t.LastStatus))},
		fact{"Desired", aws.ToString(t.DesiredStatus)},
		fact{"Service", service},
		fact{"Definition", state.NameOf(aws.ToString(t.TaskDefinitionArn))},
		fact{"Node", node},
		fact{"Capacity provider", aws.ToString(t.CapacityProviderName)},
		fact{"Started by", aws.ToString(t.StartedBy)},
		fact{"Health", status(string(t.HealthStatus))},
		fact{"CPU", aws.ToString(t.Cpu)},
		fact{"Memory", aws.ToString(t.Memory)},
		fact{"Stop code", string(t.StopCode)},
		fact{"Stopped because", aws.ToString(t.StoppedReason)},
	)
}

func taskActions(v *visit, t types.Task) markup.Node {
	if aws.ToString(t.DesiredStatus) == "STOPPED" {
		return nil
	}
	values := hidden{"cluster": v.path("cluster"), "task": v.path("task")}
	return markup.E("div", markup.Class("bars"),
		openShell(v, t, values),
		v.confirm("stop-task", "Stop the task", "Its containers get SIGTERM, and SIGKILL if they don't end. A service starts another one.", values,
			field("Reason", "reason", "text", "", markup.A("maxlength", "255"))),
	)
}

func stopTask(v *visit) (string, error) {
	in := &ecs.StopTaskInput{Cluster: aws.String(v.form("cluster")), Task: aws.String(v.form("task"))}
	if reason := v.form("reason"); reason != "" {
		in.Reason = &reason
	}
	_, err := ask[ecs.StopTaskOutput](v, in)
	return to("tasks", v.form("cluster"), v.form("task")), err
}

// waiting says why a task isn't running yet, and what is wrong with one that runs or has ended, if that's known, to those who may also see the
// cluster's other tasks and nodes.
func (p *Pages) waiting(v *visit, arn string) live.Fragment {
	t := v.view().Tasks.Get(arn)
	if t == nil || mayList(v, state.NameOf(*t.ClusterArn)) != nil {
		return blank("why")
	}
	a := explain.Task(v.view(), t, explain.Options{Now: p.opts.Now(), Serverless: p.opts.Serverless})
	if a.Status != "PROVISIONING" && a.Status != "PENDING" && a.Change == "" {
		return blank("why")
	}
	return whySection(a)
}

// whySection says why something isn't where it should be.
func whySection(a explain.Answer) live.Fragment {
	if a.Why == "" {
		return blank("why")
	}
	parts := []any{markup.Class("why"), markup.E("p", a.Why)}
	if a.WaitsFor != "" {
		parts = append(parts, markup.E("p", markup.E("b", "It waits for: "), a.WaitsFor))
	}
	if a.Change != "" {
		parts = append(parts, markup.E("p", markup.E("b", "What would help: "), a.Change))
	}
	var closest []markup.Node
	for _, i := range a.Closest {
		closest = append(closest, row(i.ID, i.Type, i.Lacking()))
	}
	if len(closest) > 0 {
		parts = append(parts, table("The nodes that come closest", columns("Node", "Type", "What it lacks"), closest...))
	}
	return section("why", "Why", markup.E("div", parts...))
}

// timeline lists what has happened to a task, and how long each step took.
func timeline(t types.Task) markup.Node {
	type step struct {
		what string
		at   *time.Time
	}
	steps := []step{
		{"created", t.CreatedAt},
		{"connected to its node", t.ConnectivityAt},
		{"image is being pulled", t.PullStartedAt},
		{"image is there", t.PullStoppedAt},
		{"running", t.StartedAt},
		{"stopping", t.StoppingAt},
		{"containers have ended", t.ExecutionStoppedAt},
		{"stopped", t.StoppedAt},
	}
	steps = slices.DeleteFunc(steps, func(s step) bool { return s.at == nil })
	sort.SliceStable(steps, func(i, j int) bool { return steps[i].at.Before(*steps[j].at) }) // an image may be there before the connection
	var rows []markup.Node
	for i, step := range steps {
		took := numeric("")
		if i > 0 {
			took = numeric("+" + step.at.Sub(*steps[i-1].at).Round(time.Millisecond).String())
		}
		rows = append(rows, row(step.what, moment(step.at), step.at.UTC().Format("15:04:05.000Z"), took))
	}
	return table("What has happened", columns("Step", "When", "Time", "#After"), rows...)
}

func containerTable(t types.Task, d *types.TaskDefinition) markup.Node {
	var rows []markup.Node
	for _, c := range t.Containers {
		name := aws.ToString(c.Name)
		exit := numeric("–")
		if c.ExitCode != nil {
			exit = numeric(strconv.Itoa(int(*c.ExitCode)))
		}
		rows = append(rows, row(name, aws.ToString(c.Image), status(aws.ToString(c.LastStatus)), status(string(c.HealthStatus)), exit, aws.ToString(c.Reason),
			strings.Join(c.GpuIds, " "), logLink(t, d, name)))
	}
	return table("Containers of the task", columns("Name", "Image", "Status", "Health", "#Exit code", "Reason", "GPUs", "Logs"), rows...)
}

// logLink leads to a container's log lines, if the driver awslogs sends them here.
func logLink(t types.Task, d *types.TaskDefinition, name string) markup.Node {
	for _, c := range d.ContainerDefinitions {
		l := c.LogConfiguration
		if aws.ToString(c.Name) != name || l == nil || l.LogDriver != types.LogDriverAwslogs {
			continue
		}
		id := state.NameOf(*t.TaskArn)
		stream := acs.LogStream(l.Options, id+"-"+name, name, id)
		return link(with("/console/log", "group", l.Options["awslogs-group"], "stream", stream), "logs")
	}
	return markup.Text("–")
}

func (p *Pages) gpusOfTask(t types.Task) markup.Node {
	var loads map[string]acs.GPULoad
	if t.ContainerInstanceArn != nil {
		told, _ := p.opts.Link.Telemetry(*t.ContainerInstanceArn)
		loads = told.Loads()
	}
	var rows []markup.Node
	for _, c := range t.Containers {
		for _, id := range c.GpuIds {
			l := loads[id]
			kind := ""
			if l.Simulated {
				kind = "simulated"
			}
			rows = append(rows, row(id, aws.ToString(c.Name), percent(l), memoryOf(l), degrees(l), watts(l), kind))
		}
	}
	return table("GPUs of the task, as they are now", columns("GPU", "Container", "#Load", "#Memory", "#Temperature", "#Power", ""), rows...)
}

func tagTable(tags []types.Tag) markup.Node {
	var rows []markup.Node
	for _, t := range tags {
		rows = append(rows, row(aws.ToString(t.Key), aws.ToString(t.Value)))
	}
	return table("Tags", columns("Key", "Value"), rows...)
}
