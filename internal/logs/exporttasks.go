package logs

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/exports"
	"github.com/pintle/pintle/internal/state"
)

// maxPrefix leaves room in an object's key of 1024 bytes for the task, the longest name of a stream, and the object's number.
const maxPrefix = 400

// CreateExportTask has a group's events copied to a bucket. It writes a test object first, and refuses the task if it can't. The loop in
// package exports does the rest.
func (s *Service) CreateExportTask(
	ctx context.Context, in *cloudwatchlogs.CreateExportTaskInput,
) (*cloudwatchlogs.CreateExportTaskOutput, error) {
	if _, err := s.store.Group(*in.LogGroupName); err != nil {
		return nil, failure(err)
	}
	switch {
	case *in.From >= *in.To:
		return nil, invalidParameter("The value of from must be before that of to.")
	case len(aws.ToString(in.DestinationPrefix)) > maxPrefix || strings.HasPrefix(aws.ToString(in.DestinationPrefix), "/"):
		return nil, invalidParameter("destinationPrefix must have at most %d bytes, and no slash at its start.", maxPrefix)
	case s.opts.State.View().ActiveExport() != nil:
		return nil, limitExceeded()
	}
	test := path.Join(aws.ToString(in.DestinationPrefix), "aws-logs-write-test") // without the default prefix, as on AWS
	if err := exports.Put(ctx, s.opts.Buckets, *in.Destination, test, []byte("Permission Check Successful")); err != nil {
		return nil, badBucket(err)
	}
	row := &state.ExportTask{StreamPrefix: aws.ToString(in.LogStreamNamePrefix), ExportTask: types.ExportTask{
		TaskId:            aws.String(uuid.NewString()),
		TaskName:          in.TaskName,
		LogGroupName:      in.LogGroupName,
		From:              in.From,
		To:                in.To,
		Destination:       in.Destination,
		DestinationPrefix: aws.String(exports.Prefix(in.DestinationPrefix)),
		Status:            &types.ExportTaskStatus{Code: types.ExportTaskStatusCodePending, Message: aws.String("Pending")},
		ExecutionInfo:     &types.ExportTaskExecutionInfo{CreationTime: aws.Int64(s.now())},
	}}
	err := s.opts.State.Update(ctx, func(tx *state.Tx) error {
		if tx.ActiveExport() != nil {
			return limitExceeded()
		}
		tx.ExportTasks.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.CreateExportTaskOutput{TaskId: row.TaskId}, nil
}

// badBucket says that the test object couldn't be written.
func badBucket(err error) error {
	if refused, ok := errors.AsType[smithy.APIError](err); ok && refused.ErrorCode() == "NoSuchBucket" {
		return invalidParameter("The given bucket does not exist. Please make sure the bucket is valid.")
	}
	return invalidParameter("PutObject call on the given bucket failed. Please check if CloudWatch Logs has been granted "+
		"permission to perform this operation: %v", err)
}

// DescribeExportTasks lists export tasks, of the last 30 days.
func (s *Service) DescribeExportTasks(
	_ context.Context, in *cloudwatchlogs.DescribeExportTasksInput,
) (*cloudwatchlogs.DescribeExportTasksOutput, error) {
	var found []types.ExportTask
	for t := range s.opts.State.View().ExportTasks.All() {
		if (in.TaskId == nil || *t.TaskId == *in.TaskId) && (in.StatusCode == "" || t.Status.Code == in.StatusCode) {
			found = append(found, t.ExportTask)
		}
	}
	page, next, err := account.Sorted(listing("DescribeExportTasks", maxListed), found, in.Limit, in.NextToken,
		func(t types.ExportTask) string { return *t.TaskId })
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DescribeExportTasksOutput{ExportTasks: orEmpty(page), NextToken: next}, nil
}

// CancelExportTask cancels a task that waits, and tells one that runs to stop.
func (s *Service) CancelExportTask(
	ctx context.Context, in *cloudwatchlogs.CancelExportTaskInput,
) (*cloudwatchlogs.CancelExportTaskOutput, error) {
	err := s.opts.State.Update(ctx, func(tx *state.Tx) error {
		t := tx.ExportTasks.Get(*in.TaskId)
		switch {
		case t == nil:
			return &types.ResourceNotFoundException{Message: aws.String("The specified export task does not exist.")}
		case t.Status.Code == types.ExportTaskStatusCodePending:
			tx.ExportTasks.Put(t.With(types.ExportTaskStatusCodeCancelled, "Cancelled", s.opts.Now()))
		case t.Status.Code == types.ExportTaskStatusCodeRunning:
			tx.ExportTasks.Put(t.With(types.ExportTaskStatusCodePendingCancel, "Cancelling", s.opts.Now()))
		default:
			return &types.InvalidOperationException{Message: aws.String("The specified export task has already finished")}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.CancelExportTaskOutput{}, nil
}
