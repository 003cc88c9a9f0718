// Package sweep is the loop that forgets: stopped tasks after an hour, as ECS does, deregistered
// container instances and deleted services likewise, records of deployments after 90 days, client tokens
// after their day, task definitions whose deletion was asked for once no task or service uses them, alarms'
// history after 30 days, and log events past their retention.
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
	sweepAlarmHistory(tx, now)
	sweepInstances(tx, now)
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

// keepHistory is how long CloudWatch keeps an alarm's history: API_DescribeAlarmHistory.
const keepHistory = 30 * 24 * time.Hour

// sweepAlarmHistory removes the oldest items, of which keys are in the order of time.
func sweepAlarmHistory(tx *state.Tx, now time.Time) {
	var old []string
	for h := range tx.AlarmHistory.All() {
		if now.Sub(*h.Item.Timestamp) <= keepHistory {
			break
		}
		old = append(old, h.Key())
	}
	for _, key := range old {
		tx.AlarmHistory.Delete(key)
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
