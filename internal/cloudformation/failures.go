package cloudformation

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/state"
)

// updatable refuses the update of a stack that can't be updated now. Where an operation has failed, and left the stack as it was then, an
// update goes on from there if it may fail in the same way.
func updatable(stack *state.Stack, disableRollback *bool, api string) error {
	if err := goesOnFrom(stack); err != nil || !stack.HasFailed() || aws.ToBool(disableRollback) {
		return err
	}
	return invalid("This stack is currently in a non-terminal [%s] state. To update the stack from this state, please use the disable-rollback "+
		"parameter with %s API. To rollback to the last known good state, use the rollback-stack API", stack.StackStatus, api)
}

// goesOnFrom refuses the update of a stack that can't be updated now in any way.
func goesOnFrom(stack *state.Stack) error {
	switch {
	case stack.StackStatus == types.StackStatusCreateFailed && stack.OnFailure == types.OnFailureDoNothing:
		return invalid("This stack cannot be updated from [%s] state because it contains [on-failure: %s]. Please use disable-rollback option "+
			"instead during stack creation.", stack.StackStatus, stack.OnFailure)
	case !isUpdatable(stack) && !stack.HasFailed():
		return notNow(stack, "updated")
	}
	return nil
}

// RollbackStack rolls a stack back whose last operation has failed and left it as it was then: to what it was made from before, or to nothing.
func (s *Service) RollbackStack(ctx context.Context, in *cloudformation.RollbackStackInput) (*cloudformation.RollbackStackOutput, error) {
	stack, err := live(s.store.View(), *in.StackName)
	if err != nil {
		return nil, err
	}
	if isAgain, err := repeats(stack, "RollbackStack", in.ClientRequestToken); isAgain || err != nil {
		return &cloudformation.RollbackStackOutput{StackId: stack.StackId}, err
	}
	if !stack.HasFailed() {
		return nil, notNow(stack, "rolled back")
	}
	if err := refuseConfig(in.DeploymentConfig); err != nil {
		return nil, err
	}
	if ctx, err = s.asRole(ctx, in.RoleARN, stack); err != nil {
		return nil, err
	}
	err = s.update(ctx, stack, func(tx *state.Tx, stack *state.Stack) {
		stack.RetainExceptOnCreate = aws.ToBool(in.RetainExceptOnCreate)
		stack.Tokened("RollbackStack", aws.ToString(in.ClientRequestToken))
		if in.RoleARN != nil {
			stack.RoleARN = in.RoleARN
		}
		outdate(tx, stack)
		s.begin(ctx, tx, stack, stacks.RollbackOf(stack))
	})
	if err != nil {
		return nil, err
	}
	return &cloudformation.RollbackStackOutput{StackId: stack.StackId, OperationId: new(state.NewUUID())}, nil
}
