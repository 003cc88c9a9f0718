package environments

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// FreeGPUs ends a cluster's environments that have GPUs and nothing to do at the moment: somebody has been refused a task with GPUs, and will perhaps ask
// again.
func (m *Manager) FreeGPUs(cluster string) {
	m.wish.Lock()
	m.wanting[cluster] = true
	m.wish.Unlock()
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// takeWanting returns the clusters in which GPUs were asked for in vain since the last time.
func (m *Manager) takeWanting() map[string]bool {
	m.wish.Lock()
	defer m.wish.Unlock()
	wanting := m.wanting
	m.wanting = map[string]bool{}
	return wanting
}

// giveWay ends the environments that have GPUs and nothing to do, in clusters in which something waits for a GPU: being warm is no reason to keep others
// from working. The caller holds mu.
func (m *Manager) giveWay(v *state.View) {
	lacks := m.takeWanting() // what clusters are known to lack a GPU, or not to
	for arn, e := range m.tasks {
		t := v.Tasks.Get(arn)
		if e.phase != idle || t == nil || !e.hasGPU() {
			continue
		}
		cluster := aws.ToString(t.ClusterArn)
		if _, known := lacks[cluster]; !known {
			lacks[cluster] = lacksGPU(v, cluster)
		}
		if lacks[cluster] {
			m.end(e)
		}
	}
}

func (e *environment) hasGPU() bool { return e.tags[TagGPU] != "" && e.tags[TagGPU] != "0" }

// lacksGPU reports whether a task of a cluster waits for GPUs, or a deployment of one of its services has found no room for a task with some.
func lacksGPU(v *state.View, cluster string) bool {
	for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if aws.ToString(t.ClusterArn) == cluster && t.Waiting != nil && t.Waiting.GPUs > 0 {
			return true
		}
	}
	for s := range v.Services.By(state.ServicesByCluster, cluster) {
		for _, d := range s.Deployments {
			if d.Unplaced && wantsGPU(v, aws.ToString(d.TaskDefinition)) {
				return true
			}
		}
		for _, set := range s.TaskSets {
			if set.Unplaced && wantsGPU(v, aws.ToString(set.TaskDefinition)) {
				return true
			}
		}
	}
	return false
}

func wantsGPU(v *state.View, definition string) bool {
	td := v.TaskDefinitions.Get(definition)
	if td == nil {
		return false
	}
	for _, c := range td.ContainerDefinitions {
		for _, r := range c.ResourceRequirements {
			if r.Type == ecstypes.ResourceTypeGpu {
				return true
			}
		}
	}
	return false
}
