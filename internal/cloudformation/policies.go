package cloudformation

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/stackpolicy"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/state"
)

// maxPolicy is how many bytes a stack policy may have.
const maxPolicy = 16384

// SetStackPolicy protects a stack's resources from its updates.
func (s *Service) SetStackPolicy(ctx context.Context, in *cloudformation.SetStackPolicyInput) (*cloudformation.SetStackPolicyOutput, error) {
	stack, err := live(s.store.View(), *in.StackName)
	if err != nil {
		return nil, err
	}
	policy, err := s.policy(ctx, in.StackPolicyBody, in.StackPolicyURL)
	if err != nil {
		return nil, err
	}
	if policy == "" {
		return nil, invalid("Either StackPolicyBody or StackPolicyURL must be specified.")
	}
	return &cloudformation.SetStackPolicyOutput{}, s.update(ctx, stack, func(_ *state.Tx, stack *state.Stack) { stack.Policy = policy })
}

// GetStackPolicy returns a stack's policy. One that has none has none in the answer.
func (s *Service) GetStackPolicy(_ context.Context, in *cloudformation.GetStackPolicyInput) (*cloudformation.GetStackPolicyOutput, error) {
	stack, err := live(s.store.View(), *in.StackName)
	if err != nil {
		return nil, err
	}
	return &cloudformation.GetStackPolicyOutput{StackPolicyBody: optional(stack.Policy)}, nil
}

// updatesPolicies returns the stack policies that an update gives: the one that it's held to itself, and the one that comes after it.
func (s *Service) updatesPolicies(ctx context.Context, in *cloudformation.UpdateStackInput) (during, next string, err error) {
	if during, err = s.policy(ctx, in.StackPolicyDuringUpdateBody, in.StackPolicyDuringUpdateURL); err != nil {
		return "", "", err
	}
	next, err = s.policy(ctx, in.StackPolicyBody, in.StackPolicyURL)
	return during, next, err
}

// policy returns the stack policy that a call gives, which is as it should be; "" if it gives none.
func (s *Service) policy(ctx context.Context, body, location *string) (string, error) {
	text := aws.ToString(body)
	switch {
	case body != nil && location != nil:
		return "", invalid("You cannot specify both StackPolicyURL and StackPolicyBody")
	case location != nil:
		object, err := s.object(ctx, *location)
		if err != nil {
			return "", err
		}
		text = string(object)
	case body == nil:
		return "", nil
	}
	if len(text) > maxPolicy {
		return "", invalid("Error validating stack policy: it must have at most %d bytes", maxPolicy)
	}
	if _, err := stackpolicy.Parse(text); err != nil {
		return "", invalid("Error validating stack policy: %v", err)
	}
	return text, nil
}

// rollback returns what watches over a stack's operations, given what it has and what a call says. Triggers that the call doesn't speak of stay.
func rollback(has, say *types.RollbackConfiguration) (*types.RollbackConfiguration, error) {
	if say == nil {
		return has, nil
	}
	next := *say
	if next.RollbackTriggers == nil && has != nil {
		next.RollbackTriggers = has.RollbackTriggers
	}
	return &next, stacks.CheckTriggers(&next)
}
