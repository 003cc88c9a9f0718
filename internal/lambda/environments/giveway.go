package environments

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// giveWay ends the environments that have GPUs and nothing to do, in clusters in which something waits for a GPU that could then have theirs: being warm
// is no reason to keep others from working, and what no machine here will ever have room for is no reason to end them. The caller holds mu.
func (m *Manager) giveWay(v *state.View) {
	wanted := map[string][]want{} // by cluster
	var over []*environment
	for arn, e := range m.tasks {
		t := v.Tasks.Get(arn)
		if e.phase != idle || t == nil || !e.hasGPU() {
			continue
		}
		cluster := aws.ToString(t.ClusterArn)
		if _, known := wanted[cluster]; !known {
			wanted[cluster] = wants(v, cluster)
		}
		if slices.ContainsFunc(wanted[cluster], func(w want) bool { return m.wouldHelp(v, t, w) }) {
			over = append(over, e)
		}
	}
	for _, e := range over {
		m.end(e)
	}
}

func (e *environment) hasGPU() bool { return e.tags[TagGPU] != "" && e.tags[TagGPU] != "0" }

// want is what waits for GPUs.
type want struct {
	definition  *state.TaskDefinition // nil if it's gone
	constraints []ecstypes.PlacementConstraint
	gpus        int
}

// wants returns what waits for GPUs in a cluster: tasks, and what services' deployments have found no room for. Equal ones are there once.
func wants(v *state.View, cluster string) (all []want) {
	seen := map[string]bool{}
	add := func(definition *string, constraints []ecstypes.PlacementConstraint, gpus int) {
		w := want{v.TaskDefinitions.Get(aws.ToString(definition)), constraints, gpus}
		if w.gpus = cmp.Or(gpus, gpusOf(w.definition)); w.gpus == 0 {
			return
		}
		key := aws.ToString(definition) + " " + strconv.Itoa(w.gpus) + string(encode(constraints))
		if !seen[key] {
			seen[key] = true
			all = append(all, w)
		}
	}
	for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if aws.ToString(t.ClusterArn) == cluster && t.Waiting != nil && t.Waiting.GPUs > 0 {
			add(t.TaskDefinitionArn, t.Waiting.Constraints, t.Waiting.GPUs)
		}
	}
	for s := range v.Services.By(state.ServicesByCluster, cluster) {
		for _, d := range s.Deployments {
			if d.Unplaced {
				add(d.TaskDefinition, s.PlacementConstraints, 0)
			}
		}
		for _, set := range s.TaskSets {
			if set.Unplaced {
				add(set.TaskDefinition, s.PlacementConstraints, 0)
			}
		}
	}
	return all
}

// gpusOf returns how many GPUs a definition's tasks have, begun ones included.
func gpusOf(td *state.TaskDefinition) (n int) {
	if td == nil {
		return 0
	}
	for _, c := range td.ContainerDefinitions {
		for _, r := range c.ResourceRequirements {
			if r.Type != ecstypes.ResourceTypeGpu {
				continue
			}
			share, err := strconv.ParseFloat(aws.ToString(r.Value), 64)
			if err != nil {
				share = 1
			}
			n += int(math.Ceil(share))
		}
	}
	return n
}

// wouldHelp reports whether what waits could be on the instance of an environment's task, if the environments there that have nothing to do were gone. It
// looks at GPUs, attributes and constraints, and doesn't know what else it may lack. The caller holds mu.
func (m *Manager) wouldHelp(v *state.View, t *state.Task, w want) bool {
	row := v.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn))
	if row == nil {
		return true
	}
	if w.definition != nil && m.opts.Suits != nil && !m.opts.Suits(v, row, w.definition, w.constraints) {
		return false
	}
	held := map[string]int{} // thousandths of devices
	for other := range v.Tasks.By(state.TasksByInstance, *row.ContainerInstanceArn) {
		if e := m.tasks[*other.TaskArn]; !other.Holds() || e != nil && e.phase == idle {
			continue
		}
		for _, g := range other.GPUs {
			held[g.ID] += g.Milli
		}
	}
	room := 0
	for _, g := range row.GPUs {
		if g.Fault == nil && held[g.ID] < 1000 {
			room++
		}
	}
	return room >= w.gpus
}
