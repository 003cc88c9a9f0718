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
		return s.HasAttempted(row.Operation)
	}
	if s.Target != nil && s.Target.IncludesNested && s.Target.Nested[row.Name].ID == "" {
		return false // nothing changes in it, says the change set
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

// tokenFor returns the token of a resource that is to be made: of a nested stack that a change set has put into review, its own.
func tokenFor(s *state.Stack, name string) string {
	if !isBack(s) && s.Target != nil && s.Target.Nested[name].Token != "" {
		return s.Target.Nested[name].Token
	}
	return state.NewID()
}

// Drop deletes a change set with those of the stacks in its stack, and the stacks that were to be made by them.
func (l *Loop) Drop(tx *state.Tx, c *state.ChangeSet) {
	tx.ChangeSets.Delete(c.ID)
	l.dropNested(tx, c)
}

// dropNested deletes the change sets that belong to one and weren't executed, and the stacks that were to be made by them.
func (l *Loop) dropNested(tx *state.Tx, root *state.ChangeSet) {
	if !root.IncludesNested {
		return
	}
	for c := range tx.ChangeSets.All() {
		if c.Root != root.ID || c.Executed() {
			continue
		}
		tx.ChangeSets.Delete(c.ID)
		if s := tx.Stacks.Get(c.Stack); s != nil && s.InReview() && s.ParentId != nil {
			next := *s
			l.Move(tx, &next, types.StackStatusDeleteComplete, "")
			tx.Stacks.Put(&next)
		}
	}
}
