package stacks

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/state"
)

// update changes a stack that is still there, and other rows of its.
func (l *Loop) update(ctx context.Context, stack string, change func(*state.Tx, *state.Stack)) error {
	return l.note(ctx, stack, func(tx *state.Tx, s *state.Stack) {
		next := *s
		change(tx, &next)
		tx.Stacks.Put(&next)
	})
}

// note changes the other rows of a stack that is still there: its own, which has its template, would be much to write each time.
func (l *Loop) note(ctx context.Context, stack string, change func(*state.Tx, *state.Stack)) error {
	return l.rows.Update(ctx, func(tx *state.Tx) error {
		if s := tx.Stacks.Get(stack); s != nil {
			change(tx, s)
		}
		return nil
	})
}

// put puts a resource's row, and an event that tells of its status.
func put(tx *state.Tx, s *state.Stack, row *state.StackResource, reason, shown string) {
	tx.StackResources.Put(row)
	event(tx, s, row, reason, shown)
}

// event adds an event about a resource. It shares nothing with the row, which its step changes on.
func event(tx *state.Tx, s *state.Stack, row *state.StackResource, reason, shown string) {
	e := types.StackEvent{
		LogicalResourceId:    aws.String(row.Name),
		PhysicalResourceId:   aws.String(row.PhysicalID),
		ResourceType:         aws.String(row.Type),
		ResourceStatus:       row.Status,
		ResourceStatusReason: optional(reason),
		ResourceProperties:   optional(shown),
		Timestamp:            aws.Time(row.At),
		EventId:              aws.String(row.Name + "-" + string(row.Status) + "-" + account.UUID(row.Key(), string(row.Status), row.At.String(), reason)),
	}
	Event(tx, s, e)
}

// Event adds an event to a stack's.
func Event(tx *state.Tx, s *state.Stack, e types.StackEvent) {
	number := int64(1)
	for last := range tx.EventsOf(*s.StackId) {
		number = last.Number + 1
		if e.Timestamp.Before(*last.Timestamp) { // steps beside each other take their times before they commit
			e.Timestamp = last.Timestamp
		}
		break
	}
	e.StackId, e.StackName = s.StackId, s.StackName
	e.ClientRequestToken = optional(s.Token)
	tx.StackEvents.Put(&state.StackEvent{StackEvent: e, Number: number})
	notify(tx, s, &e)
	tx.EmitStackEvent(&e)
}

// Move puts a stack into another status, and adds the event that tells so.
func (l *Loop) Move(tx *state.Tx, s *state.Stack, status types.StackStatus, reason string) {
	now := l.opts.Account.Now()
	s.StackStatus, s.StackStatusReason = status, optional(reason)
	if status == types.StackStatusDeleteComplete {
		s.DeletionTime = &now
	}
	l.endExecution(tx, s)
	Event(tx, s, types.StackEvent{
		LogicalResourceId:    s.StackName,
		PhysicalResourceId:   s.StackId,
		ResourceType:         aws.String("AWS::CloudFormation::Stack"),
		ResourceStatus:       types.ResourceStatus(status),
		ResourceStatusReason: optional(reason),
		Timestamp:            &now,
		EventId:              aws.String(account.UUID(*s.StackId, string(status), now.String())),
	})
}

// endExecution notes on the change set that is being executed how that has ended, if it has.
func (l *Loop) endExecution(tx *state.Tx, s *state.Stack) {
	if s.ChangeSetId == nil {
		return
	}
	c := tx.ChangeSets.Get(*s.ChangeSetId)
	if c == nil || c.ExecutionStatus != types.ExecutionStatusExecuteInProgress {
		return
	}
	ended := c.ExecutionEnded(s.StackStatus)
	tx.ChangeSets.Put(ended)
	if ended.ExecutionStatus != types.ExecutionStatusExecuteInProgress {
		l.dropNested(tx, ended)
	}
}

// fail notes that a resource couldn't be made or changed. The reason shows what the template does where a service repeats a secret.
func (c *construction) fail(ctx context.Context, row *state.StackResource, err error) error {
	failed, err := c.failFor(ctx, row, err, c.conceal(ctx, reasonOf(err)))
	if failed != nil {
		c.row = failed
	}
	return err
}

// fail notes that a resource couldn't be deleted.
func (l *Loop) fail(ctx context.Context, row *state.StackResource, err error) error {
	_, err = l.failFor(ctx, row, err, reasonOf(err))
	return err
}

// failFor notes a failure and its reason, and returns the row that says so. An error that isn't the call's is returned, to be tried again.
func (l *Loop) failFor(ctx context.Context, row *state.StackResource, err error, reason string) (*state.StackResource, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if isServers(err) {
		return nil, err
	}
	failed := *row
	failed.Status, failed.Failed, failed.At = failedStatus(row), true, l.opts.Account.Now()
	failed.Reason = reason
	if failed.PhysicalID == "" {
		failed.Next = nil // it was refused, so there is nothing
	}
	return &failed, l.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) { put(tx, s, &failed, failed.Reason, "") })
}

// isServers reports whether an error is the fault of the service that was called, so that the call may be tried again.
func isServers(err error) bool {
	var refused smithy.APIError
	return errors.As(err, &refused) && refused.ErrorFault() == smithy.FaultServer
}

// reasonOf words the reason of a failure.
func reasonOf(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return "Resource handler returned message: \"" + refused.ErrorMessage() + "\" (HandlerErrorCode: " + resources.HandlerCode(refused) + ")"
	}
	return err.Error()
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
