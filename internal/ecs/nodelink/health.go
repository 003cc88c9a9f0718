package nodelink

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// health writes containers' health into their tasks' rows, in one transaction, where it has changed.
func (t *reporter) health(ctx context.Context, reports []acs.TaskHealth) error {
	v := t.link.store.View()
	if !slices.ContainsFunc(reports, func(r acs.TaskHealth) bool { return t.news(v, r) != nil }) {
		return nil // as nearly always: nodes report what they have reported before
	}
	return t.link.store.Update(ctx, func(tx *state.Tx) error {
		for _, r := range reports {
			if row := t.news(tx.View, r); row != nil {
				tx.Tasks.Put(row)
			}
		}
		return nil
	})
}

// news is the changed row of one of the node's tasks, or nil where the report says nothing new.
func (t *reporter) news(v *state.View, r acs.TaskHealth) *state.Task {
	old := v.Tasks.Get(r.TaskArn)
	if old == nil || !old.Holds() || *old.ContainerInstanceArn != t.instance {
		return nil
	}
	row := *old
	row.Containers = slices.Clone(old.Containers)
	if !applyHealth(row.Containers, r.Containers) {
		return nil
	}
	row.HealthStatus = taskHealth(row.Containers, v.TaskDefinitions.Get(*row.TaskDefinitionArn))
	return &row
}

// applyHealth says whether the reports change any container.
func applyHealth(containers []types.Container, reports []acs.ContainerHealth) bool {
	changed := false
	for i := range containers {
		c := &containers[i]
		for _, r := range reports {
			status := types.HealthStatus(r.HealthStatus)
			if r.ContainerName == aws.ToString(c.Name) && status != c.HealthStatus && slices.Contains(status.Values(), status) {
				c.HealthStatus, changed = status, true
			}
		}
	}
	return changed
}

// taskHealth sums up the essential containers that have a check: one UNHEALTHY makes the task so,
// all HEALTHY make it so, else it is UNKNOWN. API_Task, healthStatus.
func taskHealth(containers []types.Container, td *state.TaskDefinition) types.HealthStatus {
	if td == nil {
		return types.HealthStatusUnknown
	}
	var checked []types.HealthStatus
	for _, c := range containers {
		if slices.ContainsFunc(td.ContainerDefinitions, func(d types.ContainerDefinition) bool {
			return aws.ToString(d.Name) == aws.ToString(c.Name) && d.HealthCheck != nil && essential(d)
		}) {
			checked = append(checked, c.HealthStatus)
		}
	}
	unsure := func(h types.HealthStatus) bool { return h != types.HealthStatusHealthy }
	switch {
	case slices.Contains(checked, types.HealthStatusUnhealthy):
		return types.HealthStatusUnhealthy
	case len(checked) == 0 || slices.ContainsFunc(checked, unsure):
		return types.HealthStatusUnknown
	}
	return types.HealthStatusHealthy
}

// instanceStatus writes what the agent thinks of its machine, where that has changed.
func (t *reporter) instanceStatus(ctx context.Context, statuses []acs.InstanceStatus) error {
	health := instanceHealth(statuses)
	if row := t.link.store.View().ContainerInstances.Get(t.instance); !active(row) || sameHealth(row.HealthStatus, health) {
		return nil
	}
	return t.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ContainerInstances.Get(t.instance)
		if !active(old) {
			return nil
		}
		row := *old
		row.HealthStatus = health
		tx.ContainerInstances.Put(&row)
		return nil
	})
}

// checkTypes is ECS's name for each of the agent's.
var checkTypes = map[string]types.InstanceHealthCheckType{
	"ContainerRuntime":   types.InstanceHealthCheckTypeContainerRuntime,
	"AcceleratedCompute": types.InstanceHealthCheckTypeAcceleratedCompute,
	"Daemon":             types.InstanceHealthCheckTypeDaemon,
}

// instanceHealth is the statuses as ECS shows them, and the worst of them.
func instanceHealth(statuses []acs.InstanceStatus) *types.ContainerInstanceHealthStatus {
	out := &types.ContainerInstanceHealthStatus{OverallStatus: types.InstanceHealthCheckStateInsufficientData}
	worst := -1
	for _, s := range statuses {
		rank := slices.Index(worse, types.InstanceHealthCheckState(s.Status))
		check, ok := checkTypes[s.Type]
		if !ok || rank < 0 {
			continue
		}
		out.Details = append(out.Details, types.InstanceHealthCheckResult{
			Type: check, Status: worse[rank], LastUpdated: seconds(s.LastUpdated), LastStatusChange: seconds(s.LastStatusChange),
		})
		if rank > worst {
			worst, out.OverallStatus = rank, worse[rank]
		}
	}
	return out
}

// worse is the states of an instance's check, from good to bad.
var worse = []types.InstanceHealthCheckState{
	types.InstanceHealthCheckStateOk, types.InstanceHealthCheckStateInitializing,
	types.InstanceHealthCheckStateInsufficientData, types.InstanceHealthCheckStateImpaired,
}

// sameHealth compares all but the times at which it was looked.
func sameHealth(a, b *types.ContainerInstanceHealthStatus) bool {
	return a != nil && a.OverallStatus == b.OverallStatus &&
		slices.EqualFunc(a.Details, b.Details, func(x, y types.InstanceHealthCheckResult) bool {
			return x.Type == y.Type && x.Status == y.Status
		})
}

func seconds(s float64) *time.Time {
	at := time.UnixMilli(int64(s * 1000)).UTC()
	return &at
}
