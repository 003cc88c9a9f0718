package cloudformation

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// asRole returns a context in which a stack's calls are made with its service role: the one that a call names, or else the one that it has
// already, as on AWS. Without one they're made as the caller. A task stays the task that it is, with all that limits tasks.
func (s *Service) asRole(ctx context.Context, named *string, stack *state.Stack) (context.Context, error) {
	if named == nil {
		named = stack.RoleARN
	}
	if s.opts.Assume == nil || aws.ToString(named) == "" {
		return ctx, nil
	}
	who, err := s.opts.Assume(*named)
	if err != nil {
		return nil, invalid("Role %s is invalid or cannot be assumed", *named)
	}
	c := call.From(ctx)
	who.Task = c.Task
	c.Identity = who
	return call.With(ctx, c), nil
}
