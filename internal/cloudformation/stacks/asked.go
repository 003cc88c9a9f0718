package stacks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Cancel rolls an update back that is under way. If it's over by now, nothing happens.
func (l *Loop) Cancel(ctx context.Context, id, token string) error {
	return l.update(ctx, id, func(tx *state.Tx, s *state.Stack) {
		if s.StackStatus == types.StackStatusUpdateInProgress {
			s.DisableRollback = nil
			if token != "" { // otherwise the events go on with the update's
				s.Tokened("CancelUpdateStack", token)
			}
			l.turn(tx, s, "User Initiated")
		}
	})
}

// Signal notes a signal for a resource. It's refused unless the resource is being made or changed.
func (l *Loop) Signal(ctx context.Context, stack, name, from string, status types.ResourceSignalStatus) error {
	return l.rows.Update(ctx, func(tx *state.Tx) error {
		s := tx.Stacks.Get(stack)
		row, err := signallable(tx.View, s, name)
		if err == nil {
			signalled(tx, s, row, from, status, l.opts.Account.Now())
		}
		return err
	})
}

// signallable returns the resource of a stack that a signal is for, or why there can be none for it.
func signallable(v *state.View, s *state.Stack, name string) (*state.StackResource, error) {
	if !isBuilding(s) {
		return nil, account.Refuse("ValidationError", "Stack %s is in %s state and cannot be signaled", *s.StackId, s.StackStatus)
	}
	row := standing(v, *s.StackId)[name]
	switch {
	case row == nil:
		return nil, account.Refuse("ValidationError", "Resource %s does not exist for stack %s", name, *s.StackName)
	case !isUnderWay(row):
		return nil, account.Refuse("ValidationError", "Resource %s is in %s state and cannot be signaled", name, row.Status)
	}
	return row, nil
}
