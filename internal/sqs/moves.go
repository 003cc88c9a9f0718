package sqs

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/sqs/queues"
)

// maxMoved is the most messages that a move may take in a second: API_StartMessageMoveTask.
const maxMoved = 500

// StartMessageMoveTask starts to move a dead-letter queue's messages.
func (s *Service) StartMessageMoveTask(_ context.Context, in *sqs.StartMessageMoveTaskInput) (*sqs.StartMessageMoveTaskOutput, error) {
	source, err := s.moveQueue("SourceArn", in.SourceArn)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(s.store.Queues(), func(q queues.Queue) bool { return q.DeadLetter == source.Name }) {
		return nil, invalid("Source queue must be configured as a Dead Letter Queue.")
	}
	m := queues.Move{ID: uuid.NewString(), From: source.Name}
	if in.DestinationArn != nil {
		to, err := s.moveQueue("DestinationArn", in.DestinationArn)
		if err != nil {
			return nil, err
		}
		if to.Name == source.Name || to.FIFO != source.FIFO {
			return nil, invalidValue(*in.DestinationArn, "DestinationArn", "It must be another queue of the same type.")
		}
		m.To = to.Name
	}
	if n := in.MaxNumberOfMessagesPerSecond; n != nil {
		if *n < 1 || *n > maxMoved {
			return nil, invalidValue(*n, "MaxNumberOfMessagesPerSecond", "Must be between 1 and %d, if provided.", maxMoved)
		}
		m.PerSecond = int(*n)
	}
	err = s.store.StartMove(m)
	if errors.Is(err, queues.ErrMoving) {
		return nil, invalid("There is already a task running. Only one active task is allowed for a source queue arn at a given time.")
	}
	if errors.Is(err, queues.ErrNoQueue) { // deleted a moment ago
		return nil, noResource("SourceArn")
	}
	if err != nil {
		return nil, err
	}
	return &sqs.StartMessageMoveTaskOutput{TaskHandle: s.taskHandle(&m)}, nil
}

// moveQueue returns the queue that a parameter names by its ARN.
func (s *Service) moveQueue(parameter string, arn *string) (queues.Queue, error) {
	if aws.ToString(arn) == "" {
		return queues.Queue{}, missing(parameter)
	}
	name, ok := s.nameInArn(*arn)
	if !ok {
		return queues.Queue{}, noResource(parameter)
	}
	q, err := s.store.Queue(name)
	if errors.Is(err, queues.ErrNoQueue) {
		return q, noResource(parameter)
	}
	return q, err
}

func noResource(parameter string) error {
	return refuse("ResourceNotFoundException", "The resource that you specified for the %s parameter doesn't exist.", parameter)
}

// handle is the content of a task handle.
type handle struct {
	Task   string `json:"taskId"`
	Source string `json:"sourceArn"`
}

func (s *Service) taskHandle(m *queues.Move) *string {
	b, _ := json.Marshal(handle{m.ID, s.queueArn(m.From)}) // strings always marshal
	return aws.String(base64.StdEncoding.EncodeToString(b))
}

// CancelMessageMoveTask cancels a move.
func (s *Service) CancelMessageMoveTask(_ context.Context, in *sqs.CancelMessageMoveTaskInput) (*sqs.CancelMessageMoveTaskOutput, error) {
	if aws.ToString(in.TaskHandle) == "" {
		return nil, missing("TaskHandle")
	}
	var h handle
	b, err := base64.StdEncoding.DecodeString(*in.TaskHandle)
	if err != nil || json.Unmarshal(b, &h) != nil || h.Task == "" {
		return nil, invalid("Value for parameter TaskHandle is invalid.")
	}
	if _, err := s.moveQueue("SourceArn", &h.Source); err != nil {
		return nil, err
	}
	moved, err := s.store.CancelMove(h.Task)
	if errors.Is(err, queues.ErrNoMove) {
		return nil, refuse("ResourceNotFoundException", "Task does not exist.")
	}
	if err != nil {
		return nil, err
	}
	return &sqs.CancelMessageMoveTaskOutput{ApproximateNumberOfMessagesMoved: moved}, nil
}

// ListMessageMoveTasks lists a queue's latest moves, the newest first.
func (s *Service) ListMessageMoveTasks(_ context.Context, in *sqs.ListMessageMoveTasksInput) (*sqs.ListMessageMoveTasksOutput, error) {
	source, err := s.moveQueue("SourceArn", in.SourceArn)
	if err != nil {
		return nil, err
	}
	limit := 1
	if in.MaxResults != nil {
		if limit = int(*in.MaxResults); limit < 1 || limit > 10 {
			return nil, invalidValue(limit, "MaxResults", "Must be between 1 and 10, if provided.")
		}
	}
	moves := s.store.Moves(source.Name)
	out := &sqs.ListMessageMoveTasksOutput{}
	for _, m := range moves[:min(limit, len(moves))] {
		out.Results = append(out.Results, s.describeMove(&m))
	}
	return out, nil
}

func (s *Service) describeMove(m *queues.Move) types.ListMessageMoveTasksResultEntry {
	out := types.ListMessageMoveTasksResultEntry{
		Status:                            aws.String(string(m.Status)),
		SourceArn:                         aws.String(s.queueArn(m.From)),
		StartedTimestamp:                  m.StartedAt,
		ApproximateNumberOfMessagesMoved:  m.Moved,
		ApproximateNumberOfMessagesToMove: aws.Int64(m.ToMove),
	}
	if m.To != "" {
		out.DestinationArn = aws.String(s.queueArn(m.To))
	}
	if m.PerSecond > 0 {
		out.MaxNumberOfMessagesPerSecond = aws.Int32(int32(m.PerSecond))
	}
	if m.Failure != "" {
		out.FailureReason = aws.String(m.Failure)
	}
	if m.Status == queues.MoveRunning { // API_ListMessageMoveTasks: only a running task has a handle
		out.TaskHandle = s.taskHandle(m)
	}
	return out
}
