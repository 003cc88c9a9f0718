package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of CloudWatch Logs. Log groups and their filters are in the log store.

// LogResourcePolicy is a resource policy of the account.
type LogResourcePolicy struct{ types.ResourcePolicy }

// ExportTask copies a log group's events to a bucket.
type ExportTask struct {
	types.ExportTask
	StreamPrefix string `json:",omitzero"`
}

// Active reports whether the task isn't over. An account has one such task at most.
func (t *ExportTask) Active() bool {
	switch t.Status.Code {
	case types.ExportTaskStatusCodePending, types.ExportTaskStatusCodeRunning, types.ExportTaskStatusCodePendingCancel:
		return true
	}
	return false
}

// With returns a copy of the task with a status. A task that is over has the time at which it ended.
func (t *ExportTask) With(code types.ExportTaskStatusCode, message string, now time.Time) *ExportTask {
	next := *t
	next.Status = &types.ExportTaskStatus{Code: code, Message: &message}
	if !next.Active() {
		info := *t.ExecutionInfo
		info.CompletionTime = aws.Int64(now.UnixMilli())
		next.ExecutionInfo = &info
	}
	return &next
}

// keepExports is how long the tasks that are over are shown.
const keepExports = 30 * 24 * time.Hour

// ActiveExport returns the task that isn't over, or nil.
func (v *View) ActiveExport() *ExportTask {
	for t := range v.ExportTasks.All() {
		if t.Active() {
			return t
		}
	}
	return nil
}

var (
	logResourcePolicies = &store.Definition[*LogResourcePolicy]{
		Name: "log_resource_policies",
		Key:  func(p *LogResourcePolicy) string { return aws.ToString(p.PolicyName) },
	}

	exportTasks = &store.Definition[*ExportTask]{
		Name: "export_tasks",
		Key:  func(t *ExportTask) string { return aws.ToString(t.TaskId) },
		Lifetime: store.KeepFor(keepExports, func(t *ExportTask) *time.Time {
			if t.ExecutionInfo.CompletionTime == nil {
				return nil
			}
			return aws.Time(time.UnixMilli(*t.ExecutionInfo.CompletionTime))
		}),
	}
)
