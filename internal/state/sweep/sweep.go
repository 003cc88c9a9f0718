// Package sweep is the loop that forgets: stopped tasks after an hour, as ECS does, deregistered
// container instances and deleted services likewise, records of deployments after 90 days, client tokens
// after their day, task definitions whose deletion was asked for once no task or service uses them, alarms'
// history after 30 days, scaling activities after six weeks, and log events past their retention.
package sweep

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// keep is how long ECS shows what has ended.
const keep = time.Hour

// keepDeployments is how long ECS lists a deployment: API_ListServiceDeployments.
const keepDeployments = 90 * 24 * time.Hour

// every is how often the loop looks.
const every = time.Minute

// Run sweeps until ctx ends. logs sweeps the log store at a time in milliseconds since 1970.
func Run(ctx context.Context, store *state.Store, now func() time.Time, logs func(int64) error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := store.Update(ctx, func(tx *state.Tx) error { Sweep(tx, now()); return nil }); err != nil {
			return err
		}
		if err := logs(now().UnixMilli()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Sweep forgets what has been over for long enough at the time.
func Sweep(tx *state.Tx, now time.Time) {
	var tasks []string
	for t := range tx.Tasks.By(state.TasksByLastStatus, "STOPPED") {
		if now.Sub(aws.ToTime(t.StoppedAt)) > keep {
			tasks = append(tasks, *t.TaskArn)
		}
	}
	for _, arn := range tasks {
		tx.Tasks.Delete(arn)
	}
	var tokens []string
	for t := range tx.IdempotencyTokens.All() {
		if now.After(t.Expires) {
			tokens = append(tokens, t.Token)
		}
	}
	for _, token := range tokens {
		tx.IdempotencyTokens.Delete(token)
	}
	sweepServices(tx, now)
	sweepTaskDefinitions(tx)
	sweepInstances(tx, now)
	sweepContainerInstances(tx, now)
	sweepOldest(tx.AlarmHistory, (*state.AlarmHistory).Key, func(h *state.AlarmHistory) *time.Time { return h.Item.Timestamp }, now.Add(-keepHistory))
	sweepOldest(tx.ScalingActivities, func(a *state.ScalingActivity) string { return *a.ActivityId }, func(a *state.ScalingActivity) *time.Time { return a.StartTime }, now.Add(-keepActivities))
	sweepOldest(tx.GroupRefreshes, (*state.GroupRefresh).ID, func(r *state.GroupRefresh) *time.Time { return r.StartTime }, now.Add(-keepActivities))
	sweepOldest(tx.GroupActivities, func(a *state.GroupActivity) string { return *a.ActivityId }, func(a *state.GroupActivity) *time.Time { return a.StartTime }, now.Add(-keepActivities))
}

const (
	// keepHistory is how long CloudWatch keeps an alarm's history: API_DescribeAlarmHistory.
	keepHistory = 30 * 24 * time.Hour
	// keepActivities is how long scaling activities are shown, of services and of Auto Scaling groups:
	// API_DescribeScalingActivities, and API_DescribeInstanceRefreshes.
	keepActivities = 6 * 7 * 24 * time.Hour
)

// sweepOldest removes the rows from before a time, of a table whose keys are in the order of time.
func sweepOldest[R any](t state.Table[R], key func(*R) string, at func(*R) *time.Time, before time.Time) {
	var old []string
	for r := range t.All() {
		if !aws.ToTime(at(r)).Before(before) {
			break
		}
		old = append(old, key(r))
	}
	for _, key := range old {
		t.Delete(key)
	}
}

// sweepContainerInstances forgets those that were deregistered.
func sweepContainerInstances(tx *state.Tx, now time.Time) {
	var old []string
	for c := range tx.ContainerInstances.All() {
		if c.DeregisteredAt != nil && now.Sub(*c.DeregisteredAt) > keep {
			old = append(old, *c.ContainerInstanceArn)
		}
	}
	for _, arn := range old {
		tx.ContainerInstances.Delete(arn)
	}
}

// sweepInstances forgets instances that were terminated an hour ago, which is how long EC2 shows them.
func sweepInstances(tx *state.Tx, now time.Time) {
	var old []string
	for i := range tx.Instances.By(state.InstancesByState, "terminated") {
		if now.Sub(aws.ToTime(i.TerminatedAt)) > keep {
			old = append(old, *i.InstanceId)
		}
	}
	for _, id := range old {
		tx.Instances.Delete(id)
	}
}

// sweepServices forgets services that were deleted, with the records of their deployments, and other records
// when they are old.
func sweepServices(tx *state.Tx, now time.Time) {
	gone, inUse := map[string]bool{}, map[string]bool{}
	for s := range tx.Services.All() {
		if s.EndedAt != nil && now.Sub(*s.EndedAt) > keep {
			gone[*s.ServiceArn] = true
			continue
		}
		for _, d := range s.Deployments {
			inUse[d.ServiceDeploymentArn], inUse[d.ServiceRevisionArn] = true, true
		}
	}
	var over []*state.ServiceDeployment
	for d := range tx.ServiceDeployments.All() {
		old := d.FinishedAt != nil && now.Sub(*d.FinishedAt) > keepDeployments
		if gone[*d.ServiceArn] || old && !inUse[*d.ServiceDeploymentArn] && !inUse[*d.TargetServiceRevision.Arn] {
			over = append(over, d)
		}
	}
	for arn := range gone {
		tx.Services.Delete(arn)
	}
	for _, d := range over {
		tx.ServiceDeployments.Delete(*d.ServiceDeploymentArn)
		tx.ServiceRevisions.Delete(*d.TargetServiceRevision.Arn)
	}
}

// sweepTaskDefinitions removes those whose deletion was asked for, and that no task names any more.
func sweepTaskDefinitions(tx *state.Tx) {
	doomed := map[string]bool{}
	for td := range tx.TaskDefinitions.All() {
		if td.Status == types.TaskDefinitionStatusDeleteInProgress {
			doomed[*td.TaskDefinitionArn] = true
		}
	}
	if len(doomed) == 0 {
		return
	}
	for t := range tx.Tasks.All() {
		delete(doomed, *t.TaskDefinitionArn)
	}
	for s := range tx.Services.All() {
		for _, d := range s.Deployments { // which may have to start a task of it again
			delete(doomed, aws.ToString(d.TaskDefinition))
		}
		for _, set := range s.TaskSets {
			delete(doomed, aws.ToString(set.TaskDefinition))
		}
	}
	for arn := range doomed {
		tx.TaskDefinitions.Delete(arn)
	}
}
