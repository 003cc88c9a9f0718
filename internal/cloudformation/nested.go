package cloudformation

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// parentOf returns the stack of which another one is a resource if a call is made for its operation, or nil.
func parentOf(ctx context.Context, v *state.View, stack *state.Stack) *state.Stack {
	c := call.From(ctx)
	if c.Via != "cloudformation" || c.Stack != aws.ToString(stack.ParentId) {
		return nil
	}
	return v.Stacks.Get(c.Stack)
}

// withParent does for a nested stack's update by its parent what is no update: it takes one back if the parent is being rolled back. One
// that the parent's operation has begun already isn't begun again, for the call may be a second one, after a kill.
func (s *Service) withParent(ctx context.Context, stack, parent *state.Stack) (isOver bool, err error) {
	if parent == nil || parent.Operation == "" { // an operation that an earlier version began
		return false, nil
	}
	if parent.StackStatus != types.StackStatusUpdateRollbackInProgress {
		if stack.FormerOf == parent.Operation {
			return true, errNoUpdates
		}
		return false, nil
	}
	if !parent.HasAttempted(stack.FormerOf) {
		return true, errNoUpdates
	}
	switch stack.StackStatus {
	case types.StackStatusUpdateComplete, types.StackStatusUpdateFailed, types.StackStatusUpdateRollbackFailed:
		return true, s.update(ctx, stack, func(tx *state.Tx, stack *state.Stack) {
			stack.Source, stack.Target, stack.Skip = stack.Former, nil, nil
			s.begin(ctx, tx, stack, types.StackStatusUpdateRollbackInProgress)
		})
	}
	return true, errNoUpdates // it has rolled itself back
}

// keepFormer keeps what a nested stack is made from until its parent can't be rolled back any more.
func keepFormer(stack, parent *state.Stack) {
	if parent == nil {
		return
	}
	if !parent.HasAttempted(stack.FormerOf) {
		stack.Former = stack.Source
	}
	stack.FormerOf = parent.Operation
}
