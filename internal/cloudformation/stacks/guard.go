package stacks

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/stackpolicy"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// guard returns the stack policy that a stack's operation is held to; nil if it's held to none, as a rollback isn't.
func guard(s *state.Stack) (*stackpolicy.Policy, error) {
	text := cmp.Or(s.PolicyDuring, s.Policy)
	if s.StackStatus != types.StackStatusUpdateInProgress || text == "" {
		return nil, nil
	}
	return stackpolicy.Parse(text)
}

// allowed returns the job that changes a resource, or if the stack policy doesn't allow that, the one that notes so.
func (c *construction) allowed(do stackpolicy.Action, change job) job {
	if err := c.forbids(do, c.row); err != nil {
		return c.refused(err)
	}
	return change
}

// forbids returns why the stack policy doesn't allow something to be done to a resource, or nil if it does.
func (b *building) forbids(do stackpolicy.Action, row *state.StackResource) error {
	if b.policy == nil {
		return nil
	}
	if reason := b.policy.Check(do, row.Name, row.Type); reason != "" {
		return template.Errorf("%s", reason)
	}
	return nil
}

// keepProtected fails resources that the update would delete though the stack policy forbids it, before anything else is changed.
func (b *building) keepProtected(ctx context.Context) (failed bool, err error) {
	for name, row := range b.src.rows {
		if b.src.has(name) || row.Failed || isNeverMade(row) {
			continue
		}
		if reason := b.forbids(stackpolicy.Delete, row); reason != nil {
			if err := b.Loop.fail(ctx, row, reason); err != nil {
				return false, err
			}
			failed = true
		}
	}
	return failed, nil
}

// isNeverMade reports whether an attempt to make or to import a resource has left nothing that is the stack's.
func isNeverMade(r *state.StackResource) bool { return r.PhysicalID == "" || isNotTakenOver(r) }
