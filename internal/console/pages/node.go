package pages

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/state"
)

// nodeView shows one node: its GPUs and its tasks.
func (p *Pages) nodeView() view {
	return view{
		path:  "/console/nodes/{cluster}/{node}",
		title: func(v *visit) string { return "Node " + v.path("node") },
		body:  p.nodeBody,
		reads: readsTasks,
		every: time.Second,
		does:  map[string]action{"drain": setNodeState("DRAINING"), "activate": setNodeState("ACTIVE")},
		gets:  map[string]func(http.ResponseWriter, *visit){"/console/nodes/{cluster}/{node}/gpus": p.serveTip},
	}
}

// findNode returns the node that a page is about, and what ECS tells of it.
func (p *Pages) findNode(v *visit) (n node, told types.ContainerInstance, err error) {
	cluster, id := v.path("cluster"), v.path("node")
	out, err := ask[ecs.DescribeContainerInstancesOutput](v, &ecs.DescribeContainerInstancesInput{Cluster: &cluster, ContainerInstances: []string{id}})
	if err != nil {
		return n, told, err
	}
	if len(out.ContainerInstances) == 0 {
		return n, told, errNotFound("The cluster " + cluster + " has no container instance " + id + ".")
	}
	if err := mayList(v, cluster); err != nil {
		return n, told, err
	}
	told = out.ContainerInstances[0]
	row := v.view().ContainerInstances.Get(*told.ContainerInstanceArn)
	if row == nil {
		return n, told, errNotFound("The container instance has just gone.")
	}
	on := slices.Collect(v.view().Tasks.By(state.TasksByInstance, *row.ContainerInstanceArn))
	return p.inspect(v.view(), nodeOf(row, slices.DeleteFunc(on, func(t *state.Task) bool { return !t.Holds() }))), told, nil
}

func (p *Pages) nodeBody(v *visit) ([]live.Fragment, error) {
	n, told, err := p.findNode(v)
	if err != nil {
		return nil, err
	}
	cluster := v.path("cluster")
	_, words := n.marks()
	return []live.Fragment{
		section("facts", "Node", facts(
			fact{"Status", status(aws.ToString(told.Status))},
			fact{"Special", strings.Join(words, ", ")},
			fact{"EC2 instance", aws.ToString(told.Ec2InstanceId)},
			fact{"Type", n.row.Type()},
			fact{"CPU free", remaining(told, "CPU")},
			fact{"Memory free", remaining(told, "MEMORY")},
			fact{"Agent", aws.ToString(told.VersionInfo.AgentVersion)},
			fact{"Registered", moment(told.RegisteredAt)},
		), nodeActions(v, told)),
		section("gpus", "GPUs", gpuTable(cluster, n)),
		section("tasks", "Tasks", tasksOnNode(v, cluster, n.row)),
	}, nil
}

func nodeActions(v *visit, n types.ContainerInstance) markup.Node {
	values := hidden{"cluster": v.path("cluster"), "node": v.path("node")}
	if aws.ToString(n.Status) == "DRAINING" {
		return v.confirm("activate", "Activate", "Tasks may be placed on this node again.", values)
	}
	return v.confirm("drain", "Drain", "No more tasks are placed on this node, and services replace theirs.", values)
}

func setNodeState(to types.ContainerInstanceStatus) action {
	return func(v *visit) (string, error) {
		out, err := ask[ecs.UpdateContainerInstancesStateOutput](v, &ecs.UpdateContainerInstancesStateInput{
			Cluster: aws.String(v.form("cluster")), ContainerInstances: []string{v.form("node")}, Status: to,
		})
		if err == nil && len(out.Failures) > 0 {
			err = errNotFound(aws.ToString(out.Failures[0].Reason))
		}
		return toNode(v.form("cluster"), v.form("node")), err
	}
}

func toNode(cluster, node string) string { return to("nodes", cluster, node) }

// remaining says how much of a resource nobody has reserved.
func remaining(n types.ContainerInstance, name string) string {
	for i, r := range n.RemainingResources {
		if aws.ToString(r.Name) != name || i >= len(n.RegisteredResources) {
			continue
		}
		for _, whole := range n.RegisteredResources {
			if aws.ToString(whole.Name) == name {
				return strconv.Itoa(int(r.IntegerValue)) + " of " + strconv.Itoa(int(whole.IntegerValue))
			}
		}
	}
	return ""
}

func gpuTable(cluster string, n node) markup.Node {
	var rows []markup.Node
	for _, g := range n.gpus {
		health := badge("good", "healthy")
		if g.Fault != nil {
			health = badge("bad", g.Fault.Reason)
		}
		task := markup.Node(markup.Text("free"))
		if g.task != "" {
			task = markup.Group{link(to("tasks", cluster, g.task), g.task), markup.Text(" of " + g.owner + ", container " + g.container)}
		}
		model := g.Model
		if g.Simulated {
			model += " (simulated)"
		}
		rows = append(rows, row(g.ID, model, health, percent(g.load), memoryOf(g.load), degrees(g.load), watts(g.load), task))
	}
	return table("GPUs of the node", columns("GPU", "Model", "Health", "#Load", "#Memory", "#Temperature", "#Power", "Task"), rows...)
}

func tasksOnNode(v *visit, cluster string, n *state.ContainerInstance) markup.Node {
	var rows []markup.Node
	for t := range v.view().Tasks.By(state.TasksByInstance, *n.ContainerInstanceArn) {
		if t.Holds() {
			id := state.NameOf(*t.TaskArn)
			rows = append(rows, row(link(to("tasks", cluster, id), id), status(*t.LastStatus), ownerOf(t), len(t.GPUs), moment(t.StartedAt)))
		}
	}
	return table("Tasks on the node", columns("Task", "Status", "Service or family", "#GPUs", "Started"), rows...)
}

// What a node has told of a GPU, in words.

func percent(l acs.GPULoad) numeric {
	if l.UtilizationPct == nil {
		return "–"
	}
	return numeric(strconv.Itoa(int(*l.UtilizationPct)) + " %")
}

func memoryOf(l acs.GPULoad) numeric {
	return numeric(gib(l.MemoryUsedMiB) + " of " + gib(l.MemoryMiB))
}
func degrees(l acs.GPULoad) numeric { return numeric(strconv.Itoa(int(l.TemperatureC)) + " °C") }
func watts(l acs.GPULoad) numeric   { return numeric(strconv.Itoa(int(l.PowerW)) + " W") }
