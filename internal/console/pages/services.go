package pages

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/ecs/explain"
	"github.com/pintle/pintle/internal/state"
)

// servicesOfAPage is how many services a page lists, and servicesOfACall how many one call describes.
const servicesOfAPage, servicesOfACall = 50, 10

// servicesView lists a cluster's services.
func (p *Pages) servicesView() view {
	return view{
		path:  "/console/services",
		nav:   "Services",
		title: func(v *visit) string { return "Services of " + v.cluster() },
		head: func(v *visit) (markup.Node, error) {
			return markup.E("div", markup.Class("tools"), v.choose(), v.search("Service or definition")), nil
		},
		body:  servicesBody,
		reads: readsTasks,
	}
}

func servicesBody(v *visit) ([]live.Fragment, error) {
	cluster := v.cluster()
	if _, err := ask[ecs.ListServicesOutput](v, &ecs.ListServicesInput{Cluster: &cluster, MaxResults: aws.Int32(1)}); err != nil {
		return nil, err
	}
	var found []string
	for s := range v.view().Services.All() {
		if state.NameOf(*s.ClusterArn) == cluster && aws.ToString(s.Status) != "INACTIVE" && v.matches(*s.ServiceName, aws.ToString(s.TaskDefinition)) {
			found = append(found, *s.ServiceArn)
		}
	}
	slices.Sort(found)
	pages := max(1, (len(found)+servicesOfAPage-1)/servicesOfAPage)
	page := v.page(pages)
	var rows []markup.Node
	for part := range slices.Chunk(found[(page-1)*servicesOfAPage:min(len(found), page*servicesOfAPage)], servicesOfACall) {
		out, err := ask[ecs.DescribeServicesOutput](v, &ecs.DescribeServicesInput{Cluster: &cluster, Services: part})
		if err != nil {
			return nil, err
		}
		for _, s := range out.Services {
			rows = append(rows, serviceRow(cluster, s))
		}
	}
	return []live.Fragment{
		section("services", "Services", table("Services", columns("Service", "Status", "#Desired", "#Running", "#Pending", "Deployment", "Definition"), rows...)),
		{ID: "pages", HTML: markup.String(markup.E("div", markup.ID("pages"), pager(page, pages, func(n int) string {
			return with("/console/services", "cluster", v.query("cluster"), "q", v.query("q"), "page", strconv.Itoa(n))
		})))},
	}, nil
}

func serviceRow(cluster string, s types.Service) markup.Node {
	deployment := ""
	if len(s.Deployments) > 0 {
		deployment = string(s.Deployments[0].RolloutState)
	}
	running := any(s.RunningCount)
	if s.RunningCount < s.DesiredCount {
		running = tooFew(s.RunningCount)
	}
	return row(link(to("services", cluster, *s.ServiceName), *s.ServiceName), status(aws.ToString(s.Status)), s.DesiredCount, running, s.PendingCount,
		status(deployment), state.NameOf(aws.ToString(s.TaskDefinition)))
}

// serviceView shows one service.
func (p *Pages) serviceView() view {
	return view{
		path:  "/console/services/{cluster}/{service}",
		title: func(v *visit) string { return "Service " + v.path("service") },
		head:  chooseStretch,
		body:  p.serviceBody,
		reads: func(v *state.View) { readsTasks(v); watchAll(v.ServiceDeployments, v.Targets) },
		does: map[string]action{
			"scale-service": scaleService, "deploy-service": deployService, "roll-back": rollBack,
		},
	}
}

func (p *Pages) serviceBody(v *visit) ([]live.Fragment, error) {
	cluster, name := v.path("cluster"), v.path("service")
	out, err := ask[ecs.DescribeServicesOutput](v, &ecs.DescribeServicesInput{Cluster: &cluster, Services: []string{name}})
	if err != nil {
		return nil, err
	}
	if len(out.Services) == 0 {
		return nil, errNotFound("The cluster " + cluster + " has no service " + name + ".")
	}
	s := out.Services[0]
	deployments, err := ask[ecs.ListServiceDeploymentsOutput](v, &ecs.ListServiceDeploymentsInput{Cluster: &cluster, Service: &name})
	if err != nil {
		deployments = &ecs.ListServiceDeploymentsOutput{} // not for this visitor, or not of this kind of controller
	}
	parts := []live.Fragment{
		section("facts", "Service", serviceFacts(s), serviceActions(v, s, deployments.ServiceDeployments)),
		p.behind(v, s),
		section("deployments", "Deployments", deploymentTable(s), historyTable(deployments.ServiceDeployments)),
	}
	tasks, err := tasksOfService(v, s)
	if err != nil {
		return nil, err
	}
	return append(parts, taskList("tasks", "Tasks", cluster, tasks), section("events", "Events", eventTable(s.Events)),
		v.gpuPlots("ClusterName", cluster, "ServiceName", name)), nil
}

func serviceFacts(s types.Service) markup.Node {
	return facts(
		fact{"Status", status(aws.ToString(s.Status))},
		fact{"Desired", int(s.DesiredCount)},
		fact{"Running", int(s.RunningCount)},
		fact{"Pending", int(s.PendingCount)},
		fact{"Definition", state.NameOf(aws.ToString(s.TaskDefinition))},
		fact{"Scheduling", string(s.SchedulingStrategy)},
		fact{"Created", moment(s.CreatedAt)},
		fact{"Scaling", link(to("scaling", "services", state.NameOf(*s.ClusterArn), *s.ServiceName), "over time")},
	)
}

// serviceActions are what can be done to a service.
func serviceActions(v *visit, s types.Service, history []types.ServiceDeploymentBrief) markup.Node {
	values := hidden{"cluster": v.path("cluster"), "service": v.path("service")}
	actions := []markup.Node{}
	if s.SchedulingStrategy != types.SchedulingStrategyDaemon {
		actions = append(actions, v.confirm("scale-service", "Scale", "How many tasks the service is to have. Scaling policies may change it again.", values,
			field("Desired count", "count", "number", strconv.Itoa(int(s.DesiredCount)), markup.A("min", "0"), markup.If("required", true))))
	}
	actions = append(actions, v.confirm("deploy-service", "Deploy", "New tasks replace all of the service's, by its deployment configuration.", values,
		field("Definition", "definition", "text", state.NameOf(aws.ToString(s.TaskDefinition)), markup.If("required", true))))
	for _, d := range history {
		if d.Status == types.ServiceDeploymentStatusInProgress || d.Status == types.ServiceDeploymentStatusPending {
			rolling := hidden{"deployment": aws.ToString(d.ServiceDeploymentArn), "cluster": values["cluster"], "service": values["service"]}
			actions = append(actions, v.confirm("roll-back", "Roll back", "The deployment in progress is stopped, and the revision before it comes back.", rolling))
			break
		}
	}
	return markup.E("div", markup.Class("bars"), actions)
}

func toService(v *visit) string { return to("services", v.form("cluster"), v.form("service")) }

func scaleService(v *visit) (string, error) {
	count, err := strconv.ParseInt(v.form("count"), 10, 32)
	if err != nil {
		return "", errBadForm("The desired count isn't a number.")
	}
	_, err = ask[ecs.UpdateServiceOutput](v, &ecs.UpdateServiceInput{
		Cluster: aws.String(v.form("cluster")), Service: aws.String(v.form("service")), DesiredCount: aws.Int32(int32(count)),
	})
	return toService(v), err
}

func deployService(v *visit) (string, error) {
	_, err := ask[ecs.UpdateServiceOutput](v, &ecs.UpdateServiceInput{
		Cluster: aws.String(v.form("cluster")), Service: aws.String(v.form("service")), TaskDefinition: aws.String(v.form("definition")),
		ForceNewDeployment: true,
	})
	return toService(v), err
}

func rollBack(v *visit) (string, error) {
	_, err := ask[ecs.StopServiceDeploymentOutput](v, &ecs.StopServiceDeploymentInput{
		ServiceDeploymentArn: aws.String(v.form("deployment")), StopType: types.StopServiceDeploymentStopTypeRollback,
	})
	return toService(v), err
}

// behind says why a service has fewer tasks than it should, and what would help where it has enough that aren't well.
func (p *Pages) behind(v *visit, s types.Service) live.Fragment {
	row := v.view().Services.Get(*s.ServiceArn)
	if row == nil || s.DesiredCount == 0 {
		return blank("why")
	}
	a := explain.Service(v.view(), row, explain.Options{Now: p.opts.Now(), Serverless: p.opts.Serverless})
	if s.RunningCount >= s.DesiredCount && a.Change == "" {
		return blank("why")
	}
	return whySection(a)
}

func deploymentTable(s types.Service) markup.Node {
	var rows []markup.Node
	for _, d := range s.Deployments {
		rows = append(rows, row(aws.ToString(d.Id), status(aws.ToString(d.Status)), status(string(d.RolloutState)), aws.ToString(d.RolloutStateReason),
			state.NameOf(aws.ToString(d.TaskDefinition)), d.DesiredCount, d.RunningCount, d.FailedTasks, moment(d.CreatedAt)))
	}
	return table("Deployments", columns("Deployment", "Status", "Rollout", "Reason", "Definition", "#Desired", "#Running", "#Failed", "Created"), rows...)
}

// historyTable lists how deployments before ended.
func historyTable(history []types.ServiceDeploymentBrief) markup.Node {
	var rows []markup.Node
	for _, d := range history[:min(len(history), 10)] {
		rows = append(rows, row(state.NameOf(aws.ToString(d.ServiceDeploymentArn)), status(string(d.Status)), aws.ToString(d.StatusReason),
			state.NameOf(aws.ToString(d.TargetServiceRevisionArn)), moment(d.StartedAt), moment(d.FinishedAt)))
	}
	if len(rows) == 0 {
		return nil
	}
	return table("How deployments went", columns("Service deployment", "Status", "Reason", "Revision", "Started", "Ended"), rows...)
}

// tasksOfService returns the newest tasks of a service.
func tasksOfService(v *visit, s types.Service) ([]types.Task, error) {
	cluster := v.path("cluster")
	if err := mayList(v, cluster); err != nil {
		return nil, err
	}
	var found []*state.Task
	for t := range v.view().Tasks.All() {
		if aws.ToString(t.Group) == "service:"+*s.ServiceName && *t.ClusterArn == *s.ClusterArn {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *state.Task) int {
		return cmp.Or(aws.ToTime(b.CreatedAt).Compare(aws.ToTime(a.CreatedAt)), cmp.Compare(*a.TaskArn, *b.TaskArn))
	})
	var arns []string
	for _, t := range found[:min(len(found), tasksOfAPage)] {
		arns = append(arns, *t.TaskArn)
	}
	return describeTasks(v, cluster, arns)
}

func eventTable(events []types.ServiceEvent) markup.Node {
	var rows []markup.Node
	for _, e := range events[:min(len(events), 50)] {
		rows = append(rows, row(moment(e.CreatedAt), aws.ToString(e.Message)))
	}
	return table("What the service has done, the newest first", columns("When", "Message"), rows...)
}
