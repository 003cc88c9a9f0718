// Package why says why a task finds no place: in sentences that a person understands, and as data. It compares what the task wants with
// what each instance has, and says what the task waits for, and the smallest change that would let it start. It is pure: package explain asks it,
// with what the rows say. It never decides anything.
package why

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/ecs/placement"
)

// Question is a task that has no place, and what there is.
type Question struct {
	Now       time.Time
	Wants     Wants
	Instances []Instance // of its cluster, without those that are INACTIVE
	Which     string     // which of them these are, if not all: "without its task"
	// Clusters are where the instances are, if not in its own cluster alone.
	Clusters []string
	Provider *Provider // the capacity provider that the task belongs to; nil without one
	// Own are the tasks of the service that wants another one. They don't end for its sake.
	Own []string
	// Ahead is how many waiting tasks have their turn before it.
	Ahead int
	// Waits means that the task waits for its capacity provider, and isn't just tried again when something changes.
	Waits bool
}

// Wants is what a task needs of an instance.
type Wants struct {
	CPU         int64    `json:",omitzero"` // in CPU units
	MemoryMiB   int64    `json:",omitzero"`
	GPUs        int      `json:",omitzero"`
	Ports       []string `json:",omitempty"`
	Constraints []string `json:",omitempty"`
	Provider    string   `json:",omitempty"`
}

// Instance is a container instance, and what keeps it from taking the task.
type Instance struct {
	ID    string
	Arn   string
	Type  string           `json:",omitempty"`
	Lacks []placement.Lack `json:",omitempty"`
	// GPUTasks are the tasks that hold GPUs of it.
	GPUTasks []string `json:",omitempty"`
}

// Provider is a capacity provider, and what its Auto Scaling group is about to do.
type Provider struct {
	Name  string
	Group string `json:",omitempty"` // empty if its group isn't there
	Grows bool   // it has managed scaling
	// Desired and Max are the group's capacities; Starting counts its machines that are on their way, since when the first one is, and how long
	// the last ones took, zero if that isn't known.
	Desired, Max, Starting int
	StartingSince          time.Time     `json:",omitzero"`
	UsualStart             time.Duration `json:",omitzero"`
	IsSuspended            bool          `json:",omitzero"` // its group launches nothing
	// Failure is why its last launch failed, if it did, and NextTry when another one is tried.
	Failure string    `json:",omitempty"`
	NextTry time.Time `json:",omitzero"`
	// Refusal is why none of its instances could ever take the task.
	Refusal string `json:",omitempty"`
}

// Answer says why.
type Answer struct {
	Why string
	// Wants is what is to be placed; nil if nothing is.
	Wants *Wants `json:",omitempty"`
	// Closest are the instances that come closest, the nearest first, at most five.
	Closest []Instance `json:",omitempty"`
	// WaitsFor is what will help without anyone's doing, or empty.
	WaitsFor string `json:",omitempty"`
	// Change is the smallest change that would let it start, or empty.
	Change   string    `json:",omitempty"`
	Provider *Provider `json:",omitempty"`
}

const maxClosest = 5

// Placement says why a task has no place.
func Placement(q Question) Answer {
	a := Answer{Wants: &q.Wants, Provider: q.Provider}
	near := slices.Clone(q.Instances)
	sort.SliceStable(near, func(i, j int) bool { return distance(near[i].Lacks) < distance(near[j].Lacks) })
	a.Closest = near[:min(len(near), maxClosest)]
	switch p := q.Provider; {
	case len(near) > 0 && len(near[0].Lacks) == 0:
		a.Why = "Instance " + near[0].ID + " can take it."
		a.WaitsFor = "the next look at what waits, which is due within a second"
		return a
	case p != nil && p.Refusal != "":
		a.Why = "No instance that the capacity provider " + p.Name + " could launch would ever take it: " + p.Refusal
	default:
		a.Why = tally(q) + split(q)
	}
	a.WaitsFor = q.waitsFor()
	a.Change = q.change(near)
	return a
}

// grave orders lacks: what nobody mends soon comes first.
var grave = []string{
	placement.NoAttribute, placement.NotMember, placement.NotActive, placement.NoAgent, placement.FaultyGPU, placement.NotDistinct,
	placement.NoGPU, placement.NoCPU, placement.NoMemory, placement.NoPorts, placement.KeptRoom,
}

// distance is how far an instance is from taking a task; 0 if it can.
func distance(lacks []placement.Lack) (far float64) {
	for _, l := range lacks {
		switch l.Reason {
		case placement.NoGPU, placement.NoCPU, placement.NoMemory:
			far += 1 + float64(l.Needs-l.Free)/float64(max(l.Needs, 1))
			if l.Needs > l.Total { // then what is free of it matters less
				far += 16 + 16*float64(l.Needs-l.Total)/float64(max(l.Needs, 1))
			}
		case placement.NoPorts, placement.KeptRoom:
			far++
		case placement.NoAgent, placement.NotDistinct:
			far += 3
		case placement.NotActive, placement.FaultyGPU:
			far += 4
		default:
			far += 64
		}
	}
	return far
}

// gravest returns the lack that says most about an instance.
func gravest(lacks []placement.Lack) placement.Lack {
	return slices.MinFunc(lacks, func(a, b placement.Lack) int { return cmp.Compare(rank(a), rank(b)) })
}

func rank(l placement.Lack) int {
	if l.Needs > l.Total { // it would be too small if it were empty
		return 2
	}
	return slices.Index(grave, l.Reason)
}

// class is what instances have in common that lack the same.
type class struct {
	lacks []placement.Lack // the gravest of each
	rank  int
}

// tally says what the instances lack, those alike together.
func tally(q Question) string {
	none, only, all := "The cluster has no instances", "The cluster's only instance ", fmt.Sprintf("the cluster's %d instances ", len(q.Instances))
	if q.Clusters != nil {
		where := " of the clusters " + strings.Join(q.Clusters, " and ") + " "
		none = "The clusters " + strings.Join(q.Clusters, " and ") + " have no instances"
		only, all = "The only instance"+where, fmt.Sprintf("the %d instances", len(q.Instances))+where
	}
	if len(q.Instances) == 0 {
		return none + " that take tasks."
	}
	classes := map[string]*class{}
	for _, i := range q.Instances {
		l := gravest(i.Lacks)
		key := l.Reason
		if l.Needs > l.Total {
			key += " in all"
		}
		switch l.Reason {
		case placement.NoAttribute, placement.NotMember, placement.NoPorts:
			key += " " + strings.Join(l.Names, " ")
		}
		c := classes[key]
		if c == nil {
			c = &class{rank: rank(l)}
			classes[key] = c
		}
		c.lacks = append(c.lacks, l)
	}
	var keys []string
	for key := range classes {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { // those that come closest first
		a, b := classes[keys[i]], classes[keys[j]]
		return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(keys[i], keys[j])) < 0
	})
	which := strings.TrimPrefix(q.Which+" ", " ")
	if len(q.Instances) == 1 {
		return only + which + phrase(gravest(q.Instances[0].Lacks), false) + "."
	}
	var said []string
	for _, key := range keys {
		said = append(said, classes[key].say())
	}
	return fmt.Sprintf("None of %s%scan take it: %s.", all, which, strings.Join(said, "; "))
}

// say tells what the instances of a class have in common, by the one that has most of it.
func (c *class) say() string {
	most := c.lacks[0]
	for _, other := range c.lacks {
		if l, m := room(other), room(most); l > m {
			most = other
		}
	}
	return fmt.Sprintf("%d %s", len(c.lacks), phrase(most, len(c.lacks) > 1))
}

// room is how much of what it lacks an instance has, in all if that's too little already.
func room(l placement.Lack) int64 {
	if l.Needs > l.Total {
		return l.Total
	}
	return l.Free
}

// phrase says what one instance lacks, or many.
func phrase(l placement.Lack, many bool) string {
	verb := func(one, more string) string {
		if many {
			return more
		}
		return one
	}
	has, is, names := verb("has", "have"), verb("is", "are"), strings.Join(l.Names, ", ")
	if l.Needs > l.Total && l.Needs > 0 {
		return fmt.Sprintf("%s too little in all: %s, and it needs %d", has, amount(l.Total, l), l.Needs)
	}
	switch l.Reason {
	case placement.NotActive:
		return is + " draining"
	case placement.NoAgent:
		return has + " no connected agent"
	case placement.NoAttribute:
		if provider, ok := strings.CutPrefix(l.Names[0], providerAttribute); ok {
			return is + " not of the capacity provider " + provider
		}
		return verb("lacks ", "lack ") + names
	case placement.NotMember:
		return verb("doesn't", "don't") + " meet the constraint " + names
	case placement.FaultyGPU:
		return fmt.Sprintf("%s faulty GPUs: %d of %d work, and it needs %d", has, l.Free, l.Total, l.Needs)
	case placement.NotDistinct:
		return verb("runs", "run") + " a task of its group already (distinctInstance)"
	case placement.NoPorts:
		return has + " port " + names + " taken"
	case placement.KeptRoom:
		return has + " room that is kept for task " + strings.Join(l.Holders, ", ") + ", whose turn is before"
	}
	return fmt.Sprintf("%s too little free: %s, and it needs %d", has, amount(max(l.Free, 0), l), l.Needs)
}

// amount is so much of a resource.
func amount(n int64, l placement.Lack) string {
	if n == 1 {
		return "1 " + strings.TrimSuffix(unit(l), "s")
	}
	return fmt.Sprintf("%d %s", n, unit(l))
}

// providerAttribute begins the attribute that a capacity provider's instances have while tasks are placed.
const providerAttribute = "capacity provider "

// unit is what a resource is counted in.
func unit(l placement.Lack) string {
	switch l.Reason {
	case placement.NoCPU:
		return "CPU units"
	case placement.NoMemory:
		return "MiB of memory"
	}
	if l.Total >= placement.WholeGPU {
		return "thousandths of a GPU"
	}
	return "GPUs"
}

// split says whether there would be enough GPUs, if they weren't on several instances.
func split(q Question) string {
	free, on := int64(0), 0
	for _, i := range q.Instances {
		if len(i.Lacks) != 1 || i.Lacks[0].Reason != placement.NoGPU || i.Lacks[0].Needs > i.Lacks[0].Total || i.Lacks[0].Total >= placement.WholeGPU {
			continue
		}
		if i.Lacks[0].Free > 0 {
			on++
			free += i.Lacks[0].Free
		}
	}
	if free < int64(q.Wants.GPUs) || on < 2 {
		return ""
	}
	return fmt.Sprintf(" %d GPUs are free in all, but on %d instances, and a task's GPUs are all on one.", free, on)
}

// waitsFor says what will help without anyone's doing.
func (q *Question) waitsFor() string {
	p := q.Provider
	switch {
	case p == nil && q.onlyBusy():
		return "a task to end"
	case p == nil || p.Refusal != "":
		return ""
	case p.Starting > 0:
		return q.starting()
	case p.Failure != "" && p.NextTry.After(q.Now):
		return fmt.Sprintf("the next try to launch a machine, in %s: the last one failed (%s)", rounded(p.NextTry.Sub(q.Now)), strings.TrimSuffix(p.Failure, "."))
	case q.Waits && q.Ahead > 0:
		return fmt.Sprintf("its turn: %s before it for the capacity provider %s", plural(q.Ahead, "task waits", "tasks wait"), p.Name)
	case p.Grows && p.Group != "" && p.Desired < p.Max && !p.IsSuspended:
		return "a machine that managed scaling asks the group " + p.Group + " for, within seconds"
	case q.onlyBusy():
		return "a task to end"
	}
	return ""
}

// starting says how long the machines that are on their way will take.
func (q *Question) starting() string {
	p := q.Provider
	begun := q.Now.Sub(p.StartingSince)
	text := fmt.Sprintf("%s of the group %s, on the way for %s", plural(p.Starting, "machine", "machines"), p.Group, rounded(begun))
	switch left := p.UsualStart - begun; {
	case p.UsualStart == 0:
	case left > 0:
		text += fmt.Sprintf("; the last ones took %s, so it's due in %s", rounded(p.UsualStart), rounded(left))
	default:
		text += fmt.Sprintf("; the last ones took %s, so it's late", rounded(p.UsualStart))
	}
	return text
}

// onlyBusy reports whether an instance would take the task if others ended.
func (q *Question) onlyBusy() bool {
	return slices.ContainsFunc(q.Instances, func(i Instance) bool {
		return !slices.ContainsFunc(i.Lacks, func(l placement.Lack) bool { return !isBusy(l) || q.ownHold(l) })
	})
}

// ownHold reports whether what is lacking is held by the service's own tasks alone.
func (q *Question) ownHold(l placement.Lack) bool {
	return len(l.Holders) > 0 && !slices.ContainsFunc(l.Holders, func(t string) bool { return !slices.Contains(q.Own, t) })
}

// isBusy reports whether a lack ends once other tasks do.
func isBusy(l placement.Lack) bool {
	switch l.Reason {
	case placement.NoGPU, placement.NoCPU, placement.NoMemory:
		return l.Needs <= l.Total
	case placement.NoPorts, placement.KeptRoom, placement.NotDistinct:
		return true
	}
	return false
}

// change is the smallest change that would let the task start. A capacity provider's limits come first: who has one wants it to grow.
func (q *Question) change(near []Instance) string {
	p := q.Provider
	switch {
	case p == nil:
	case p.Group == "":
		return "Give the capacity provider " + p.Name + " an Auto Scaling group that exists."
	case p.Refusal != "":
		return "Change what the task asks for, or give the group " + p.Group + " instances that have it."
	case p.Starting > 0:
		return ""
	case p.IsSuspended:
		return "Resume the process Launch of the group " + p.Group + ": aws autoscaling resume-processes."
	case p.Grows && p.Desired >= p.Max:
		return fmt.Sprintf("Raise the maximum of the group %s, which is at it, from %d to %d.", p.Group, p.Max, p.Max+1)
	case p.Grows:
		return ""
	case p.Desired < p.Max:
		return fmt.Sprintf("Raise the desired capacity of the group %s from %d to %d: the capacity provider has no managed scaling.", p.Group, p.Desired, p.Desired+1)
	}
	if len(near) == 0 {
		return "Add an instance to the cluster: pintle agent, or a capacity provider with an Auto Scaling group."
	}
	var steps []string
	for _, l := range near[0].Lacks {
		steps = append(steps, q.step(near[0], l))
	}
	return strings.Join(steps, " ")
}

// step is what would end one lack of an instance.
func (q *Question) step(i Instance, l placement.Lack) string {
	switch {
	case l.Needs > l.Total && l.Total == 0:
		return fmt.Sprintf("Add an instance that has %s.", amount(l.Needs, l))
	case l.Needs > l.Total:
		return fmt.Sprintf("Ask for at most %s, or add an instance that has %d.", amount(l.Total, l), l.Needs)
	}
	switch l.Reason {
	case placement.NotActive:
		return "Set instance " + i.ID + " to ACTIVE: aws ecs update-container-instances-state."
	case placement.NoAgent:
		return "Start the agent of instance " + i.ID + "."
	case placement.NoAttribute:
		return attribute(i, l.Names)
	case placement.NotMember:
		return "Change the placement constraint, or add an instance that meets it: " + strings.Join(l.Names, ", ") + "."
	case placement.FaultyGPU:
		return "Repair a GPU of instance " + i.ID + ", and say so: pintle gpus clear."
	case placement.NotDistinct:
		return "Add an instance, or drop the constraint distinctInstance."
	case placement.NoPorts:
		if q.ownHold(l) {
			return "Use a dynamic host port (0), or add an instance: the service's own " + verbed(l.Holders, "has", "have") + " the port."
		}
		return "Use a dynamic host port (0), or stop " + tasks(l.Holders) + " on instance " + i.ID + "."
	case placement.KeptRoom:
		return "Stop task " + strings.Join(l.Holders, ", ") + ", which room is kept for, or wait for its turn to pass."
	case placement.NoGPU:
		return fmt.Sprintf("Free %d more of the %s of instance %s, which %s.", l.Needs-l.Free, unit(l), i.ID, verbed(i.GPUTasks, "holds", "hold"))
	}
	text := fmt.Sprintf("Free %d more %s on instance %s", l.Needs-l.Free, unit(l), i.ID)
	if l.Free > 0 {
		text += fmt.Sprintf(", or ask for at most %d", l.Free)
	}
	return text + "."
}

// attribute is what would end the lack of attributes. What a machine is nobody gives it, nor by a call what its agent can do.
func attribute(i Instance, names []string) string {
	all, has := strings.Join(names, ", ")+".", func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(names[0], p) })
	}
	switch {
	case has("ecs.cpu-architecture", "ecs.os-"):
		return "Add an instance with it, or change the task definition's runtimePlatform: " + all
	case has("ecs.capability.efs"):
		return "Start the agent with --file-systems, as root and with containers of Docker or runc, or don't ask for it: " + all
	case has("ecs.capability.", "com.amazonaws.ecs.capability."):
		return "Add an instance whose agent can do it, or don't ask for it: " + all
	}
	return "Give instance " + i.ID + " what it lacks, or don't ask for it: " + all
}

// verbed names tasks with what they do.
func verbed(all []string, one, many string) string {
	if len(all) == 1 {
		return tasks(all) + " " + one
	}
	return tasks(all) + " " + many
}

func tasks(all []string) string {
	switch len(all) {
	case 0:
		return "others"
	case 1:
		return "task " + all[0]
	}
	return "tasks " + strings.Join(all, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// rounded is a duration as people say it.
func rounded(d time.Duration) string { return max(d, 0).Round(time.Second).String() }

// Lacking says all that an instance lacks.
func (i Instance) Lacking() string {
	var said []string
	for _, l := range i.Lacks {
		said = append(said, phrase(l, false))
	}
	return cmp.Or(strings.Join(said, "; "), "lacks nothing")
}

// String says which instance it is, and all that it lacks.
func (i Instance) String() string {
	name := i.ID
	if i.Type != "" {
		name += " (" + i.Type + ")"
	}
	return name + " " + i.Lacking()
}
