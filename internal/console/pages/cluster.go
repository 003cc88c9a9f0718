package pages

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/state"
)

// nodesOfAPage is how many nodes a page shows: of those with eight GPUs, four thousand cells.
const nodesOfAPage = 512

// clusterView shows all nodes of a cluster and each of their GPUs.
func (p *Pages) clusterView() view {
	return view{
		path:  "/console/{$}",
		nav:   "Cluster",
		title: func(v *visit) string { return "Cluster " + v.cluster() },
		head:  clusterHead,
		body:  p.clusterBody,
		reads: readsTasks,
		every: time.Second, // nodes tell of their GPUs each second
	}
}

// cluster is the cluster that a page is about.
func (v *visit) cluster() string {
	name := cmp.Or(v.path("cluster"), v.query("cluster"))
	if name != "" {
		return name
	}
	all := v.clusters()
	if len(all) == 0 || slices.Contains(all, "default") {
		return "default"
	}
	return all[0]
}

// clusters are all clusters' names, for those who may know them.
func (v *visit) clusters() (names []string) {
	if _, err := ask[ecs.ListClustersOutput](v, &ecs.ListClustersInput{}); err != nil {
		return nil
	}
	for c := range v.view().Clusters.All() {
		if aws.ToString(c.Status) == "ACTIVE" {
			names = append(names, aws.ToString(c.ClusterName))
		}
	}
	slices.Sort(names)
	return names
}

// choose leads to the same page of other clusters, if there are any.
func (v *visit) choose() markup.Node {
	names := v.clusters()
	if len(names) < 2 {
		return nil
	}
	pairs := []string{}
	for _, n := range names {
		pairs = append(pairs, n, with(v.r.URL.Path, "cluster", n, "by", v.query("by")))
	}
	return choice("Cluster", v.cluster(), pairs...)
}

// colourings are what cells' colours can tell.
var colourings = []string{"load", "memory", "temperature", "owner"}

func clusterHead(v *visit) (markup.Node, error) {
	pairs := []string{}
	for _, by := range colourings {
		pairs = append(pairs, by, with("/console/", "cluster", v.query("cluster"), "by", by))
	}
	return markup.E("div", markup.Class("tools"), v.choose(), choice("Colour by", v.colouring(), pairs...), scale(v.colouring())), nil
}

func (v *visit) colouring() string {
	if by := v.query("by"); slices.Contains(colourings, by) {
		return by
	}
	return "load"
}

// scale tells what the colours mean.
func scale(by string) markup.Node {
	var cells []markup.Node
	for n := range 10 {
		cells = append(cells, markup.E("i", markup.Class("l"+strconv.Itoa(n))))
	}
	from, up := "0 %", "100 %"
	switch by {
	case "temperature":
		from, up = "30 °C", "90 °C"
	case "owner":
		return nil // the page lists them
	}
	return markup.E("span", markup.Class("scale"), from+" ", markup.E("span", markup.A("aria-hidden", "true"), cells), " "+up)
}

// mayList refuses those who may not list a cluster's nodes and tasks.
func mayList(v *visit, cluster string) error { return v.pages.opts.MayList(v.ctx, cluster) }

func (p *Pages) clusterBody(v *visit) ([]live.Fragment, error) {
	cluster := v.cluster()
	if err := mayList(v, cluster); err != nil {
		return nil, err
	}
	rows := v.view()
	tasks := tasksOf(rows, cluster)
	nodes := nodesOf(rows, cluster, tasks)
	pages := max(1, (len(nodes)+nodesOfAPage-1)/nodesOfAPage)
	page := v.page(pages)
	shown := nodes[min(len(nodes), (page-1)*nodesOfAPage):min(len(nodes), page*nodesOfAPage)]
	grid := live.Fragment{ID: "nodes", HTML: markup.Start("div", markup.ID("nodes"), markup.Class("nodes")), End: "</div>"}
	held := tasks.held()
	colours := coloursOf(held)
	for _, n := range shown {
		n = p.inspect(rows, n)
		grid.Children = append(grid.Children, live.Fragment{ID: n.id(), HTML: markup.String(n.cell(v.colouring(), colours))})
	}
	owners := blank("owners")
	if v.colouring() == "owner" {
		owners = ownerList(held, colours)
	}
	parts := []live.Fragment{
		section("totals", "Totals", totals(tasks, nodes)),
		owners,
		trouble(nodes),
		{ID: "map", HTML: `<section id=map><h2>Nodes and GPUs</h2>`, Children: []live.Fragment{grid, {ID: "pages", HTML: markup.String(
			markup.E("div", markup.ID("pages"), pager(page, pages, func(n int) string {
				return with("/console/", "cluster", v.query("cluster"), "by", v.query("by"), "page", strconv.Itoa(n))
			})))}}, End: `</section>`},
	}
	return parts, nil
}

// held counts the GPUs that each owner's tasks hold, or have a share of.
func (on tasks) held() map[string]int {
	held := map[string]int{}
	for _, all := range on.holding {
		for _, t := range all {
			held[ownerOf(t)] += len(t.GPUs)
		}
	}
	return held
}

// ownerColours is how many colours there are for owners, and ownersListed how many owners are named.
const ownerColours, ownersListed = 12, 24

// coloursOf gives each owner a colour by its name, so that it keeps it, and another one where two would share it while there are enough.
func coloursOf(held map[string]int) map[string]int {
	colours := map[string]int{}
	var taken [ownerColours]bool
	for n, owner := range slices.Sorted(maps.Keys(held)) {
		h := fnv.New32a()
		h.Write([]byte(owner))
		c := int(h.Sum32() % ownerColours)
		for n < ownerColours && taken[c] {
			c = (c + 1) % ownerColours
		}
		taken[c] = true
		colours[owner] = c
	}
	return colours
}

// ownerList says which colour is whose, those with most GPUs first.
func ownerList(held, colours map[string]int) live.Fragment {
	names := slices.Collect(maps.Keys(held))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b)) })
	var items []markup.Node
	for _, name := range names[:min(len(names), ownersListed)] {
		items = append(items, markup.E("li", markup.E("i", markup.Class("o"+strconv.Itoa(colours[name]))), " "+name+": ", markup.E("b", held[name])))
	}
	if more := len(names) - ownersListed; more > 0 {
		items = append(items, markup.E("li", fmt.Sprintf("and %d more", more)))
	}
	if len(items) == 0 {
		return blank("owners")
	}
	return section("owners", "GPUs by service or family", markup.E("ul", markup.Class("owners"), items))
}

// page is the number of the page of a list that has so many.
func (v *visit) page(pages int) int {
	n, _ := strconv.Atoi(v.query("page"))
	return min(max(n, 1), pages)
}

// node is a container instance and, once it was looked at closely, what it told of its GPUs.
type node struct {
	row  *state.ContainerInstance
	name string
	free int // GPUs that a task could have
	gpus []gpu
}

// gpu is a GPU, what its load is and who holds it.
type gpu struct {
	state.GPU
	load      acs.GPULoad
	task      string // "" if it's free
	container string
	owner     string // the service, or the task definition's family
}

// tasks are a cluster's tasks: how many have each status, and those that hold GPUs, by the ARNs of their container instances.
type tasks struct {
	count   map[string]int
	holding map[string][]*state.Task
}

func tasksOf(v *state.View, cluster string) tasks {
	all := tasks{map[string]int{}, map[string][]*state.Task{}}
	for t := range v.Tasks.All() {
		if state.NameOf(*t.ClusterArn) != cluster {
			continue
		}
		all.count[*t.LastStatus]++
		if len(t.GPUs) > 0 && t.Holds() {
			all.holding[*t.ContainerInstanceArn] = append(all.holding[*t.ContainerInstanceArn], t)
		}
	}
	return all
}

// nodesOf returns a cluster's nodes in the order of their names.
func nodesOf(v *state.View, cluster string, on tasks) (all []node) {
	for row := range v.ContainerInstances.All() {
		if aws.ToString(row.Status) != "INACTIVE" && state.NameOf(row.ClusterArn) == cluster {
			all = append(all, nodeOf(row, on.holding[*row.ContainerInstanceArn]))
		}
	}
	slices.SortFunc(all, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(*a.row.ContainerInstanceArn, *b.row.ContainerInstanceArn))
	})
	return all
}

// nodeOf returns a node on which these tasks hold GPUs.
func nodeOf(row *state.ContainerInstance, holding []*state.Task) node {
	n := node{row: row, name: cmp.Or(aws.ToString(row.Ec2InstanceId), state.NameOf(*row.ContainerInstanceArn))}
	if !row.AgentConnected || aws.ToString(row.Status) != "ACTIVE" {
		return n
	}
	for _, g := range row.GPUs {
		held := slices.ContainsFunc(holding, func(t *state.Task) bool {
			return slices.ContainsFunc(t.GPUs, func(h state.HeldGPU) bool { return h.ID == g.ID })
		})
		if !held && g.Fault == nil {
			n.free++
		}
	}
	return n
}

// inspect returns a node with its GPUs as they are now.
func (p *Pages) inspect(v *state.View, n node) node {
	holders := v.GPUHolders(*n.row.ContainerInstanceArn)
	told, _ := p.opts.Link.Telemetry(*n.row.ContainerInstanceArn)
	loads := told.Loads()
	for _, g := range n.row.GPUs {
		one := gpu{GPU: g, load: loads[g.ID]}
		if holder, held := holders[g.ID]; held {
			one.task, one.container, one.owner = state.NameOf(*holder.Task.TaskArn), holder.Container, ownerOf(holder.Task)
		}
		n.gpus = append(n.gpus, one)
	}
	return n
}

// ownerOf is what a task is one of: its service, or its definition's family.
func ownerOf(t *state.Task) string {
	if name, isService := strings.CutPrefix(aws.ToString(t.Group), "service:"); isService {
		return name
	}
	family, _, _ := strings.Cut(state.NameOf(aws.ToString(t.TaskDefinitionArn)), ":")
	return family
}

func (n node) id() string { return "n-" + state.NameOf(*n.row.ContainerInstanceArn) }

// isSimulated reports whether the node's GPUs are.
func (n node) isSimulated() bool { return len(n.row.GPUs) > 0 && n.row.GPUs[0].Simulated }

// faults counts the GPUs that are broken.
func (n node) faults() (count int) {
	for _, g := range n.row.GPUs {
		if g.Fault != nil {
			count++
		}
	}
	return count
}

// marks are the classes of what is special about a node, and the words for it.
func (n node) marks() (classes, words []string) {
	for _, m := range []struct {
		has         bool
		class, word string
	}{
		{!n.row.AgentConnected, "away", "away"},
		{aws.ToString(n.row.Status) == "DRAINING", "draining", "draining"},
		{n.faults() > 0, "broken", strconv.Itoa(n.faults()) + " broken"},
		{n.isSimulated(), "simulated", "simulated"},
	} {
		if m.has {
			classes = append(classes, m.class)
			words = append(words, m.word)
		}
	}
	return classes, words
}

// cell is the node as a link with a cell for each GPU. What there is to know of them the script asks for when the pointer or the keyboard is on it:
// all nodes' would be most of the page, and change all the time.
func (n node) cell(by string, owners map[string]int) markup.Node {
	classes, words := n.marks()
	label := fmt.Sprintf("%s, %s, %d of %d GPUs free", n.name, cmp.Or(n.row.Type(), "no instance type"), n.free, len(n.row.GPUs))
	if len(words) > 0 {
		label += ", " + strings.Join(words, ", ")
	}
	var cells []markup.Node
	for _, g := range n.gpus {
		cells = append(cells, markup.E("i", markup.Class(g.colour(by, owners))))
	}
	if len(n.gpus) == 0 {
		cells = append(cells, markup.E("i", markup.Class("cpu")))
	}
	short := n.name
	if len(short) > 10 {
		short = "…" + short[len(short)-8:]
	}
	return markup.E("a", markup.ID(n.id()), markup.Class(strings.Join(append([]string{"node"}, classes...), " ")), markup.A("aria-label", label),
		markup.A("href", to("nodes", state.NameOf(n.row.ClusterArn), state.NameOf(*n.row.ContainerInstanceArn))),
		markup.E("b", short), markup.E("span", cells))
}

// colour is the class of a GPU's cell.
func (g gpu) colour(by string, owners map[string]int) string {
	if g.Fault != nil {
		return "fault"
	}
	class := "free"
	if g.task != "" {
		class = "held"
	}
	switch {
	case by == "owner":
		if g.task == "" {
			return class
		}
		return class + " o" + strconv.Itoa(owners[g.owner])
	case by == "memory" && g.load.MemoryMiB > 0:
		return class + " l" + tenth(float64(g.load.MemoryUsedMiB)/float64(g.load.MemoryMiB))
	case by == "temperature" && g.load.TemperatureC > 0:
		return class + " l" + tenth((g.load.TemperatureC-30)/60)
	case by == "load" && g.load.UtilizationPct != nil:
		return class + " l" + tenth(*g.load.UtilizationPct/100)
	}
	return class
}

// tenth is a share in tenths, from 0 to 9.
func tenth(share float64) string { return strconv.Itoa(min(max(int(share*10), 0), 9)) }

// say says what there is to know of a GPU.
func (g gpu) say() string {
	words := []string{g.ID}
	if g.Fault != nil {
		words = append(words, "broken: "+g.Fault.Reason)
	}
	if g.load.UtilizationPct != nil {
		words = append(words, string(percent(g.load))+" load")
	}
	if g.load.MemoryMiB > 0 {
		words = append(words, string(memoryOf(g.load)))
	}
	if g.load.TemperatureC > 0 {
		words = append(words, string(degrees(g.load)))
	}
	if g.task == "" {
		words = append(words, "free")
	} else {
		words = append(words, "task "+g.task+" of "+g.owner)
	}
	return strings.Join(words, ", ")
}

// serveTip says what there is to know of a node's GPUs, a line each.
func (p *Pages) serveTip(w http.ResponseWriter, v *visit) {
	n, _, err := p.findNode(v)
	if err != nil {
		status, text := sayOf(err)
		p.refuse(w, status, text)
		return
	}
	lines := []string{}
	for _, g := range n.gpus {
		lines = append(lines, g.say())
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("no GPU, %d tasks running", n.row.RunningTasksCount))
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, strings.Join(lines, "\n")) //nolint:errcheck // nobody is left to tell
}

// totals counts what a cluster has.
func totals(on tasks, nodes []node) markup.Node {
	var gpus, free, faults, away, draining int
	for _, n := range nodes {
		gpus += len(n.row.GPUs)
		free += n.free
		faults += n.faults()
		if !n.row.AgentConnected {
			away++
		}
		if aws.ToString(n.row.Status) == "DRAINING" {
			draining++
		}
	}
	figures := []markup.Node{
		figure("nodes", len(nodes)), figure("GPUs", gpus), figure("free", free), figure("broken", faults), figure("nodes away", away), figure("draining", draining),
	}
	for _, status := range slices.Sorted(maps.Keys(on.count)) {
		figures = append(figures, figure("tasks "+status, on.count[status]))
	}
	return markup.E("ul", markup.Class("figures"), figures)
}

func figure(name string, n int) markup.Node {
	return markup.E("li", markup.E("b", n), " "+name)
}

// trouble lists the nodes that somebody should look at: 20 of them at most.
func trouble(nodes []node) live.Fragment {
	var items []markup.Node
	for _, n := range nodes {
		_, words := n.marks()
		if !n.row.AgentConnected || n.faults() > 0 || aws.ToString(n.row.Status) == "DRAINING" {
			items = append(items, markup.E("li", link(to("nodes", state.NameOf(n.row.ClusterArn), state.NameOf(*n.row.ContainerInstanceArn)), n.name), ": "+strings.Join(words, ", ")))
		}
	}
	if len(items) == 0 {
		return blank("trouble")
	}
	more := ""
	if len(items) > 20 {
		more = fmt.Sprintf("and %d more", len(items)-20)
		items = items[:20]
	}
	return section("trouble", "Look at these", markup.E("ul", items), more)
}
