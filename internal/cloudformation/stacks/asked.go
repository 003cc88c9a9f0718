package stacks

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
)

// Cancel rolls an update back that is under way. If it's over by now, nothing happens.
func (l *Loop) Cancel(ctx context.Context, id string) error {
	return l.update(ctx, id, func(tx *state.Tx, s *state.Stack) {
		if s.StackStatus == types.StackStatusUpdateInProgress {
			s.DisableRollback = nil
			l.turn(tx, s, "User Initiated")
		}
	})
}

// Signal notes a signal for a resource, and reports whether there is one of that name.
func (l *Loop) Signal(ctx context.Context, s *state.Stack, name, from string, status types.ResourceSignalStatus) (found bool, err error) {
	err = l.note(ctx, *s.StackId, func(tx *state.Tx, s *state.Stack) {
		found = false
		for r := range tx.ResourcesOf(*s.StackId) {
			if r.Name != name || r.Superseded || isGone(r) {
				continue
			}
			found = true
			signalled(tx, s, r, from, status, l.opts.Account.Now())
		}
	})
	return found, err
}
