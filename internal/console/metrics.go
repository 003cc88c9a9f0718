package console

import (
	"crypto/subtle"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/exposition"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/tally"
)

// QueueDepth is how many messages a queue has.
type QueueDepth struct {
	Name                         string
	Visible, NotVisible, Delayed int
}

// serveMetrics answers Prometheus. Where signatures are checked, it must bring the token that the operator gave it.
func (c *Console) serveMetrics(w http.ResponseWriter, r *http.Request) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case c.opts.Verifier == nil:
	case c.opts.ScrapeToken == "":
		http.Error(w, "metrics are shown to nobody here: start the control plane with --scrape-token FILE, and give Prometheus that file as credentials_file", http.StatusForbidden)
		return
	case !ok || subtle.ConstantTimeCompare([]byte(token), []byte(c.opts.ScrapeToken)) != 1:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a token is needed: the one in the control plane's --scrape-token", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", exposition.ContentType)
	c.page().Write(w) //nolint:errcheck // it only fails if the caller is gone
}

// page is all figures at the moment.
func (c *Console) page() *exposition.Page {
	p := &exposition.Page{}
	p.Add(exposition.Metric{Name: "pintle_build_info", Help: "The version that runs."}, 1, exposition.Label{Name: "version", Value: c.opts.Version})
	p.Add(exposition.Metric{Name: "pintle_writable", Help: "1 if changes are taken; 0 if the disk is full or broken."}, one(c.opts.Writable() == nil))
	p.Add(exposition.Metric{Name: "pintle_failing", Help: "1 if something fails that /pintle/health warns of."}, one(c.opts.Failing() != nil))
	c.addRequests(p)
	v := c.store.View()
	addTasks(p, v)
	addServices(p, v)
	addGroups(p, v)
	addInstances(p, v)
	c.addGPUs(p)
	for _, q := range c.opts.Queues() {
		add := func(kind string, n int) {
			p.Add(queueMessages, float64(n), exposition.Label{Name: "queue", Value: q.Name}, exposition.Label{Name: "state", Value: kind})
		}
		add("visible", q.Visible)
		add("not_visible", q.NotVisible)
		add("delayed", q.Delayed)
	}
	c.addOwed(p, v)
	c.opts.Workings.addTo(p)
	sent, dropped := c.opts.Spans()
	p.Add(spans, float64(sent), exposition.Label{Name: "outcome", Value: "sent"})
	p.Add(spans, float64(dropped), exposition.Label{Name: "outcome", Value: "dropped"})
	p.AddProcess(c.began)
	return p
}

var (
	requests = exposition.Metric{
		Name: "pintle_request_seconds", Help: "How long requests took, by service, operation and the code of the error; a long poll's wait is part of it.", Bounds: tally.Bounds,
	}
	queueMessages = exposition.Metric{Name: "pintle_queue_messages", Help: "Messages in queues, by state."}
	tasks         = exposition.Metric{Name: "pintle_tasks", Help: "Tasks, by their last status; WAITING is PROVISIONING without an instance."}
	serviceTasks  = exposition.Metric{Name: "pintle_service_tasks", Help: "Tasks that services want, and those that are RUNNING or on their way there."}
	groupSizes    = exposition.Metric{Name: "pintle_group_instances", Help: "Instances that Auto Scaling groups want, may have at most, and have."}
	instances     = exposition.Metric{Name: "pintle_container_instances", Help: "Container instances, by status, and whether their agent is connected."}
	gpus          = exposition.Metric{Name: "pintle_gpus", Help: "GPUs: free, held by a task, faulty, or away with their node."}
)

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (c *Console) addRequests(p *exposition.Page) {
	if c.opts.Requests == nil {
		return
	}
	c.opts.Requests.Each(func(k tally.Kind, t tally.Times) {
		p.AddClasses(requests, t.Classes, t.Sum.Seconds(),
			exposition.Label{Name: "service", Value: k.Service}, exposition.Label{Name: "operation", Value: k.Operation}, exposition.Label{Name: "code", Value: k.Code})
	})
}

func addTasks(p *exposition.Page, v *state.View) {
	type kind struct{ cluster, status string }
	counts := map[kind]int{}
	for t := range v.Tasks.All() {
		status := aws.ToString(t.LastStatus)
		if t.Waiting != nil {
			status = "WAITING"
		}
		if status != "STOPPED" { // those are forgotten, so their number says nothing
			counts[kind{state.NameOf(*t.ClusterArn), status}]++
		}
	}
	for k, n := range counts {
		p.Add(tasks, float64(n), exposition.Label{Name: "cluster", Value: k.cluster}, exposition.Label{Name: "status", Value: k.status})
	}
}

func addServices(p *exposition.Page, v *state.View) {
	for s := range v.Services.All() {
		if *s.Status == state.ServiceInactive {
			continue
		}
		running, pending := 0, 0
		for t := range v.Tasks.By(state.TasksByService, *s.ServiceArn) {
			switch *t.LastStatus {
			case "RUNNING":
				running++
			case "PROVISIONING", "PENDING", "ACTIVATING":
				pending++
			}
		}
		add := func(kind string, n int) {
			p.Add(serviceTasks, float64(n), exposition.Label{Name: "cluster", Value: state.NameOf(*s.ClusterArn)},
				exposition.Label{Name: "service", Value: *s.ServiceName}, exposition.Label{Name: "state", Value: kind})
		}
		add("desired", int(s.DesiredCount))
		add("running", running)
		add("pending", pending)
	}
}

func addGroups(p *exposition.Page, v *state.View) {
	for g := range v.AutoScalingGroups.All() {
		add := func(kind string, n int) {
			p.Add(groupSizes, float64(n), exposition.Label{Name: "group", Value: g.Name()}, exposition.Label{Name: "state", Value: kind})
		}
		add("desired", int(aws.ToInt32(g.DesiredCapacity)))
		add("max", int(aws.ToInt32(g.MaxSize)))
		add("there", len(v.ActiveMembers(g.Name())))
	}
}

func addInstances(p *exposition.Page, v *state.View) {
	type kind struct {
		cluster, status string
		connected       bool
	}
	counts := map[kind]int{}
	for i := range v.ContainerInstances.All() {
		if status := aws.ToString(i.Status); status != "INACTIVE" {
			counts[kind{state.NameOf(i.ClusterArn), status, i.AgentConnected}]++
		}
	}
	for k, n := range counts {
		p.Add(instances, float64(n), exposition.Label{Name: "cluster", Value: k.cluster}, exposition.Label{Name: "status", Value: k.status},
			exposition.Label{Name: "connected", Value: strconv.FormatBool(k.connected)})
	}
}

// Gauges of GPUs, under the names that dcgm-exporter has for them.
var gauges = []struct {
	exposition.Metric
	of func(*GPU) float64
}{
	{exposition.Metric{Name: "DCGM_FI_DEV_FB_USED", Help: "Memory in use, in MiB."}, func(g *GPU) float64 { return float64(g.MemoryUsedMiB) }},
	{exposition.Metric{Name: "DCGM_FI_DEV_FB_FREE", Help: "Memory that is free, in MiB."}, func(g *GPU) float64 { return float64(g.MemoryMiB - g.MemoryUsedMiB) }},
	{exposition.Metric{Name: "DCGM_FI_DEV_GPU_TEMP", Help: "Temperature, in degrees Celsius."}, func(g *GPU) float64 { return g.TemperatureC }},
	{exposition.Metric{Name: "DCGM_FI_DEV_POWER_USAGE", Help: "Power, in watts."}, func(g *GPU) float64 { return g.PowerW }},
}

var utilization = exposition.Metric{Name: "DCGM_FI_DEV_GPU_UTIL", Help: "Load, in percent."}

func (c *Console) addGPUs(p *exposition.Page) {
	type kind struct{ cluster, model, state string }
	counts := map[kind]int{}
	for _, g := range c.gpus(func(string) bool { return true }) {
		labels := []exposition.Label{
			{Name: "UUID", Value: g.ID}, {Name: "modelName", Value: g.Model}, {Name: "Hostname", Value: g.Node}, {Name: "cluster", Value: g.Cluster},
			{Name: "service", Value: g.Service}, {Name: "task", Value: g.Task}, {Name: "container", Value: g.Container}, {Name: "simulated", Value: strconv.FormatBool(g.Simulated)},
		}
		if g.UtilizationPct != nil {
			p.Add(utilization, *g.UtilizationPct, labels...)
		}
		if g.MemoryMiB > 0 { // its node has told something
			for _, m := range gauges {
				p.Add(m.Metric, m.of(&g), labels...)
			}
		}
		counts[kind{g.Cluster, g.Model, stateOf(&g)}]++
	}
	for k, n := range counts {
		p.Add(gpus, float64(n), exposition.Label{Name: "cluster", Value: k.cluster}, exposition.Label{Name: "model", Value: k.model}, exposition.Label{Name: "state", Value: k.state})
	}
}

func stateOf(g *GPU) string {
	switch {
	case g.Fault != nil:
		return "faulty"
	case !g.Connected:
		return "away"
	case g.Task != "":
		return "held"
	}
	return "free"
}
