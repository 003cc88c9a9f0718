package stacks

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// clear deletes resources that the stack is not to have any more, those first that no other of them needs.
func (l *Loop) clear(ctx context.Context, s *state.Stack) (moved bool, err error) {
	v := l.rows.View()
	rows, err := l.leftovers(ctx, v, s)
	if err != nil {
		return false, err
	}
	var jobs []job
	for _, r := range rows {
		if !r.Failed && !isNeeded(r, rows) {
			jobs = append(jobs, func(ctx context.Context) (bool, error) { return l.remove(ctx, s, r) })
		}
	}
	if len(jobs) == 0 {
		return true, l.cleared(ctx, s, rows)
	}
	return together(ctx, jobs)
}

// isNeeded reports whether a resource must stay until others are gone.
func isNeeded(r *state.StackResource, rows []*state.StackResource) bool {
	return slices.ContainsFunc(rows, func(other *state.StackResource) bool {
		return other != r && slices.Contains(other.Needs, r.Name)
	})
}

// leftovers lists the resources that are to go.
func (l *Loop) leftovers(ctx context.Context, v *state.View, s *state.Stack) (rows []*state.StackResource, err error) {
	var kept *source
	if isCleanup(s) {
		if kept, err = l.parsed(ctx, v, s, s.Source); err != nil {
			return nil, err
		}
	}
	for r := range v.ResourcesOf(*s.StackId) {
		stays := kept != nil && !r.Superseded && kept.has(r.Name)
		if !isGone(r) && !stays {
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// has reports whether the template has a resource whose condition holds.
func (src *source) has(name string) bool {
	r := src.Resource(name)
	return r != nil && src.Has(r.Condition)
}

// remove deletes a resource, unless its policy is to keep it.
func (l *Loop) remove(ctx context.Context, s *state.Stack, r *state.StackResource) (moved bool, err error) {
	row := *r
	if isNotTakenOver(r) {
		row.PhysicalID = "" // it's somebody else's
	}
	if row.PhysicalID == "" && row.Next == nil {
		return true, l.struck(ctx, &row, types.ResourceStatusDeleteComplete) // it was never made
	}
	if l.isKept(s, r) {
		return true, l.struck(ctx, &row, types.ResourceStatusDeleteSkipped)
	}
	if r.Status != types.ResourceStatusDeleteInProgress {
		row.Status, row.At, row.Reason = types.ResourceStatusDeleteInProgress, l.opts.Account.Now(), ""
		if err := l.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) { put(tx, s, &row, "", "") }); err != nil {
			return false, err
		}
	}
	err = l.delete(ctx, s, &row)
	switch {
	case errors.Is(err, resources.ErrPending):
		return r.Status != row.Status, nil
	case err != nil:
		return true, l.fail(ctx, &row, err)
	}
	return true, l.struck(ctx, &row, types.ResourceStatusDeleteComplete)
}

// isKept reports whether a resource is only forgotten, not deleted.
func (l *Loop) isKept(s *state.Stack, r *state.StackResource) bool {
	policy := r.DeletionPolicy
	switch {
	case slices.Contains(s.Retain, r.Name):
		return true
	case r.PhysicalID == "" || isBuilding(s):
		return false
	case r.Superseded && s.StackStatus == types.StackStatusUpdateCompleteCleanupInProgress:
		policy = r.UpdateReplacePolicy
	case r.Superseded:
		return false
	case isMadeInVain(s, r) && (policy == "RetainExceptOnCreate" || s.RetainExceptOnCreate):
		return false
	}
	return policy == "Retain" || policy == "RetainExceptOnCreate"
}

// isMadeInVain reports whether a resource was made by what is rolled back. Rows of earlier versions tell only by their status, which is
// another one once a second attempt has changed the resource.
func isMadeInVain(s *state.Stack, r *state.StackResource) bool {
	switch s.StackStatus {
	case types.StackStatusRollbackInProgress, types.StackStatusUpdateRollbackCompleteCleanupInProgress:
		return isCreation(r) || s.HasAttempted(r.MadeBy)
	}
	return false
}

// delete makes the call that deletes a resource. One that may have been made is found first.
func (l *Loop) delete(ctx context.Context, s *state.Stack, row *state.StackResource) error {
	kind := resources.Lookup(row.Type)
	if kind == nil {
		return template.Errorf("Pintle has no resource type %s any more", row.Type)
	}
	step := l.stepOf(s, row)
	step.Since = row.At
	if id, asked := l.failedID(row); row.PhysicalID == "" && asked && resources.IsCustom(row.Type) {
		row.PhysicalID = id
		row.Properties = row.Next
	}
	if row.PhysicalID == "" && resources.IsCustom(row.Type) {
		return nil // its function was never asked
	}
	if row.PhysicalID == "" {
		next, err := l.unseal(row.Stack, row.Name, row.Next)
		if err != nil {
			return err
		}
		c := &construction{building: &building{Loop: l, stack: s}, kind: kind, row: row, since: row.At}
		if row.PhysicalID, err = c.make(ctx, next); err != nil {
			return nil //nolint:nilerr // it can't be made, so there's nothing to delete
		}
		row.Properties = row.Next
	}
	properties, err := l.unseal(row.Stack, row.Name, row.Properties)
	if err != nil {
		return err
	}
	return kind.Delete(ctx, step, row.PhysicalID, properties)
}

// struck notes that a resource isn't the stack's any more. Those of a stack that stays are forgotten.
func (l *Loop) struck(ctx context.Context, row *state.StackResource, status types.ResourceStatus) error {
	row.Status, row.At = status, l.opts.Account.Now()
	row.Properties, row.Next, row.Attributes, row.Secrets, row.Signals, row.Heard = nil, nil, nil, nil, nil, nil
	return l.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) {
		if tx.CustomRequests.Get(row.Key()) != nil {
			tx.CustomRequests.Delete(row.Key())
		}
		if row.PhysicalID != "" {
			event(tx, s, row, "", "")
		}
		if isCleanup(s) || isBuilding(s) || row.PhysicalID == "" {
			tx.StackResources.Delete(row.Key())
			return
		}
		tx.StackResources.Put(row)
	})
}
