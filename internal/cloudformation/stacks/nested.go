package stacks

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/state"
)

// isDue reports whether a nested stack is still to be updated though nothing changes in its properties: its template may have changed where
// it lies, and a rollback takes that back.
func isDue(s *state.Stack, row *state.StackResource) bool {
	switch {
	case row.Type != resources.NestedStack:
		return false
	case isBack(s):
		return row.Operation != "" && row.Operation == s.Operation
	}
	return s.StackStatus == types.StackStatusUpdateInProgress && row.Operation != s.Operation
}

// operationFor returns what the row of a nested stack that is being made or updated says of when that was.
func operationFor(s *state.Stack, row *state.StackResource) string {
	if row.Type != resources.NestedStack {
		return ""
	}
	return s.Operation
}

// dropFormer forgets what the stacks in a stack were made from before, once its operation is over and can't be rolled back.
func dropFormer(tx *state.Tx, root *state.Stack) {
	if root.ParentId != nil {
		return
	}
	for s := range tx.Stacks.All() {
		if s.Former != nil && aws.ToString(s.RootId) == *root.StackId {
			next := *s
			next.Former, next.FormerOf = nil, ""
			tx.Stacks.Put(&next)
		}
	}
}
