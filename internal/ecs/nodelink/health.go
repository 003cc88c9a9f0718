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

// recordHealth writes changed container health into the tasks' rows, in one transaction.
func (t *reporter) recordHealth(ctx context.Context, reports []acs.TaskHealth) error {
	v := t.link.store.View()
	if !slices.ContainsFunc(reports, func(r acs.TaskHealth) bool { return t.withHealth(v, r) != nil }) {
		return nil // the usual case: nodes mostly repeat what they reported before
	}
	return t.link.store.Update(ctx, func(tx *state.Tx) error {
		for _, r := range reports {
			if row := t.withHealth(tx.View, r); row != nil {
				tx.Tasks.Put(row)
			}
		}
		return nil
	})
}

// withHealth returns the changed row of one of the node's tasks, or nil if the report changes nothing.
func (t *reporter) withHealth(v *state.View, r acs.TaskHealth) *state.Task {
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

// applyHealth reports whether the reports change any container.
func applyHealth(containers []types.Container, reports []acs.ContainerHealth) bool {
	changed := false
	for i := range containers {
		c := &containers[i]
		for _, r := range reports {
			status := types.HealthStatus(r.HealthStatus)
			if r.ContainerName == aws.ToString(c.Name) && status != c.HealthStatus && slices.Contains(status.Values(), status) {
				c.HealthStatus = status
				changed = true
			}
		}
	}
	return changed
}

// taskHealth sums up the essential containers that have a health check. One that is UNHEALTHY makes the task UNHEALTHY.
// All of them HEALTHY make it HEALTHY. Otherwise it's UNKNOWN. See API_Task, healthStatus.
func taskHealth(containers []types.Container, td *state.TaskDefinition) types.HealthStatus {
	if td == nil {
		return types.HealthStatusUnknown
	}
	var checked []types.HealthStatus
	for _, c := range containers {
		if slices.ContainsFunc(td.ContainerDefinitions, func(d types.ContainerDefinition) bool {
			return aws.ToString(d.Name) == aws.ToString(c.Name) && d.HealthCheck != nil && isEssential(d)
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

// recordInstanceStatus writes the agent's view of its machine, if it has changed.
func (t *reporter) recordInstanceStatus(ctx context.Context, statuses []acs.InstanceStatus) error {
	health := instanceHealth(statuses)
	if row := t.link.store.View().ContainerInstances.Get(t.instance); !isRegistered(row) || sameHealth(row.HealthStatus, health) {
		return nil
	}
	return t.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ContainerInstances.Get(t.instance)
		if !isRegistered(old) {
			return nil
		}
		row := *old
		row.HealthStatus = health
		tx.ContainerInstances.Put(&row)
		return nil
	})
}

// checkTypes maps the agent's names to ECS's.
var checkTypes = map[string]types.InstanceHealthCheckType{
	"ContainerRuntime":   types.InstanceHealthCheckTypeContainerRuntime,
	"AcceleratedCompute": types.InstanceHealthCheckTypeAcceleratedCompute,
	"Daemon":             types.InstanceHealthCheckTypeDaemon,
}

// instanceHealth converts the statuses to ECS's form. The overall status is the worst of them.
func instanceHealth(statuses []acs.InstanceStatus) *types.ContainerInstanceHealthStatus {
	out := &types.ContainerInstanceHealthStatus{OverallStatus: types.InstanceHealthCheckStateInsufficientData}
	worst := -1
	for _, s := range statuses {
		rank := slices.Index(bySeverity, types.InstanceHealthCheckState(s.Status))
		check, ok := checkTypes[s.Type]
		if !ok || rank < 0 {
			continue
		}
		out.Details = append(out.Details, types.InstanceHealthCheckResult{
			Type:             check,
			Status:           bySeverity[rank],
			LastUpdated:      seconds(s.LastUpdated),
			LastStatusChange: seconds(s.LastStatusChange),
		})
		if rank > worst {
			worst = rank
			out.OverallStatus = bySeverity[rank]
		}
	}
	return out
}

// bySeverity lists the states of an instance's check, from good to bad.
var bySeverity = []types.InstanceHealthCheckState{
	types.InstanceHealthCheckStateOk, types.InstanceHealthCheckStateInitializing,
	types.InstanceHealthCheckStateInsufficientData, types.InstanceHealthCheckStateImpaired,
}

// sameHealth compares everything but the times of the checks.
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
