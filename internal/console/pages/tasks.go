package pages

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/state"
)

// tasksOfAPage is how many tasks a page lists: as many as one call describes.
const tasksOfAPage = 100

// tasksView lists a cluster's tasks.
func (p *Pages) tasksView() view {
	return view{
		path:  "/console/tasks",
		nav:   "Tasks",
		title: func(v *visit) string { return "Tasks of " + v.cluster() },
		head:  tasksHead,
		body:  tasksBody,
		reads: readsTasks,
	}
}

var taskStatuses = []string{"PROVISIONING", "PENDING", "ACTIVATING", "RUNNING", "DEACTIVATING", "STOPPING", "DEPROVISIONING", "STOPPED"}

func tasksHead(v *visit) (markup.Node, error) {
	options := []markup.Node{markup.E("option", markup.A("value", ""), "any")}
	for _, s := range taskStatuses {
		options = append(options, markup.E("option", markup.A("value", s), markup.If("selected", s == v.query("status")), s))
	}
	return markup.E("div", markup.Class("tools"), v.choose(), v.search("Task, service, family or who started it",
		markup.E("label", "Status ", markup.E("select", markup.A("name", "status"), options)))), nil
}

// search is a form that shows a list's page again with what is searched for.
func (v *visit) search(what string, more ...any) markup.Node {
	parts := []any{markup.A("method", "get"), markup.A("role", "search"), field(what, "q", "search", v.query("q"))}
	if c := v.query("cluster"); c != "" {
		parts = append(parts, markup.E("input", markup.A("type", "hidden"), markup.A("name", "cluster"), markup.A("value", c)))
	}
	return markup.E("form", append(append(parts, more...), markup.E("button", "Search"))...)
}

// matches reports whether one of the words has what is searched for.
func (v *visit) matches(words ...string) bool {
	q := strings.ToLower(v.query("q"))
	return q == "" || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), q) })
}

func tasksBody(v *visit) ([]live.Fragment, error) {
	cluster := v.cluster()
	if err := mayList(v, cluster); err != nil {
		return nil, err
	}
	found := v.findTasks(cluster)
	pages := max(1, (len(found)+tasksOfAPage-1)/tasksOfAPage)
	page := v.page(pages)
	shown, err := describeTasks(v, cluster, found[(page-1)*tasksOfAPage:min(len(found), page*tasksOfAPage)])
	if err != nil {
		return nil, err
	}
	return []live.Fragment{
		{ID: "count", HTML: markup.String(markup.E("p", markup.ID("count"), len(found), " tasks. Stopped ones are forgotten after an hour."))},
		taskList("tasks", "Tasks", cluster, shown),
		{ID: "pages", HTML: markup.String(markup.E("div", markup.ID("pages"), pager(page, pages, func(n int) string {
			return with("/console/tasks", "cluster", v.query("cluster"), "q", v.query("q"), "status", v.query("status"), "page", strconv.Itoa(n))
		})))},
	}, nil
}

// findTasks returns the ARNs of the tasks that are searched for, newest first.
func (v *visit) findTasks(cluster string) (arns []string) {
	var found []*state.Task
	for t := range v.view().Tasks.All() {
		if state.NameOf(*t.ClusterArn) == cluster && (v.query("status") == "" || *t.LastStatus == v.query("status")) &&
			v.matches(*t.TaskArn, ownerOf(t), state.NameOf(aws.ToString(t.TaskDefinitionArn)), aws.ToString(t.StartedBy), aws.ToString(t.Group)) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *state.Task) int {
		return cmp.Or(aws.ToTime(b.CreatedAt).Compare(aws.ToTime(a.CreatedAt)), cmp.Compare(*a.TaskArn, *b.TaskArn))
	})
	for _, t := range found {
		arns = append(arns, *t.TaskArn)
	}
	return arns
}

// describeTasks returns tasks by their ids or ARNs, in that order, without those that there aren't. DescribeTasks says who may see them; what it
// answers is the rows.
func describeTasks(v *visit, cluster string, names []string) (all []types.Task, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	if _, err := v.pages.opts.Services.Call(v.ctx, &ecs.DescribeTasksInput{Cluster: &cluster, Tasks: names}); err != nil {
		return nil, err
	}
	rows := v.view()
	of := rows.Clusters.Get(v.pages.clusterARN(cluster))
	for _, name := range names {
		arn := name
		if of != nil && !strings.HasPrefix(name, "arn:") {
			arn = strings.Replace(*of.ClusterArn, ":cluster/", ":task/", 1) + "/" + name
		}
		if t := rows.Tasks.Get(arn); t != nil {
			all = append(all, t.Task)
		}
	}
	return all, nil
}

func (p *Pages) clusterARN(name string) string {
	return "arn:aws:ecs:" + p.opts.Region + ":" + p.opts.Account + ":cluster/" + name
}

// taskList is a table of tasks, each row of which is sent again by itself.
func taskList(id, title, cluster string, tasks []types.Task) live.Fragment {
	rows := live.Fragment{ID: id + "-rows", HTML: markup.Start("tbody", markup.ID(id+"-rows")), End: "</tbody>"}
	for _, t := range tasks {
		name := state.NameOf(*t.TaskArn)
		rows.Children = append(rows.Children, live.Fragment{ID: "t-" + name, HTML: markup.String(rowOf(markup.ID("t-"+name),
			idLink(to("tasks", cluster, name), name), status(aws.ToString(t.LastStatus)), ownerOf(&state.Task{Task: t}),
			state.NameOf(aws.ToString(t.TaskDefinitionArn)), gpusOf(t), moment(t.CreatedAt), outcome(t)))})
	}
	head := tableHead(title, columns("Task", "Status", "Service or family", "Definition", "#GPUs", "Created", "Outcome"))
	return live.Fragment{
		ID: id,
		HTML: markup.Start("section", markup.ID(id)) + markup.String(markup.E("h2", title)) +
			markup.Start("div", markup.Class("scroll"), markup.A("tabindex", "0"), markup.A("role", "region"), markup.A("aria-label", title)) +
			"<table>" + markup.String(head),
		Children: []live.Fragment{rows},
		End:      "</table></div></section>",
	}
}

// gpusOf counts the GPUs that a task has.
func gpusOf(t types.Task) (n int) {
	for _, c := range t.Containers {
		n += len(c.GpuIds)
	}
	return n
}

// outcome says how a task ended.
func outcome(t types.Task) markup.Node {
	if aws.ToString(t.LastStatus) != "STOPPED" {
		return markup.Text(aws.ToString(t.StoppedReason))
	}
	codes := []string{}
	for _, c := range t.Containers {
		if c.ExitCode != nil {
			codes = append(codes, strconv.Itoa(int(*c.ExitCode)))
		}
	}
	text := aws.ToString(t.StoppedReason)
	if len(codes) > 0 {
		text = "exit " + strings.Join(codes, ", ") + ". " + text
	}
	return markup.Text(text)
}
