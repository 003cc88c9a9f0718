package stacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// isCleanup reports whether what an update, or its rollback, has left over is being deleted.
func isCleanup(s *state.Stack) bool {
	switch s.StackStatus {
	case types.StackStatusUpdateCompleteCleanupInProgress, types.StackStatusUpdateRollbackCompleteCleanupInProgress:
		return true
	}
	return false
}

// isLate reports whether a creation takes longer than it may.
func (l *Loop) isLate(s *state.Stack) bool {
	if s.StackStatus != types.StackStatusCreateInProgress || s.TimeoutInMinutes == nil || !s.Built.IsZero() {
		return false
	}
	return l.opts.Account.Now().Sub(s.Since) > time.Duration(*s.TimeoutInMinutes)*time.Minute
}

// built ends the part of an operation in which resources are made and changed.
func (l *Loop) built(ctx context.Context, s *state.Stack, src *source) error {
	outputs, err := outputsOf(src)
	if err == nil && !isBack(s) {
		err = refuseExports(l.rows.View(), s, outputs)
	}
	if err != nil {
		return l.abandon(ctx, s, err)
	}
	return l.update(ctx, *s.StackId, func(tx *state.Tx, s *state.Stack) {
		s.Outputs = outputs
		s.Imports = slices.Sorted(maps.Keys(src.imports))
		switch s.StackStatus {
		case types.StackStatusCreateInProgress:
			s.Source, s.Target = s.Target, nil
			l.Move(tx, s, types.StackStatusCreateComplete, "")
		case types.StackStatusImportInProgress:
			s.Source, s.Target = s.Target, nil
			l.Move(tx, s, types.StackStatusImportComplete, "")
		case types.StackStatusUpdateInProgress:
			s.Source, s.Target = s.Target, nil
			s.Policy, s.PolicyDuring, s.PolicyNext = cmp.Or(s.PolicyNext, s.Policy), "", ""
			l.Move(tx, s, types.StackStatusUpdateCompleteCleanupInProgress, "")
		case types.StackStatusUpdateRollbackInProgress:
			s.Target, s.Skip = nil, nil
			l.Move(tx, s, types.StackStatusUpdateRollbackCompleteCleanupInProgress, "")
		}
	})
}

// outputsOf evaluates a stack's outputs. What isn't known yet is empty.
func outputsOf(src *source) ([]types.Output, error) {
	exports, err := src.Exports()
	if err != nil {
		return nil, err
	}
	var out []types.Output
	for i := range src.Outputs {
		o := &src.Outputs[i]
		if !src.Has(o.Condition) {
			continue
		}
		value, err := textOf(src.Evaluation, o)
		if err != nil {
			return nil, err
		}
		made := types.Output{OutputKey: &o.Name, OutputValue: &value, Description: optional(o.Description)}
		if name, exported := exports[o.Name]; exported {
			made.ExportName = &name
		}
		out = append(out, made)
	}
	return out, nil
}

// textOf evaluates an output's value, which must be text. It's "" while it isn't known.
func textOf(e *template.Evaluation, o *template.Output) (string, error) {
	got, err := e.Output(o)
	if err != nil {
		return "", err
	}
	text, ok := template.Text(got)
	if _, unknown := got.(template.Unknown); !ok && !unknown {
		return "", template.Errorf("Template format error: Output %s is malformed. The Value field of every Outputs member must evaluate to a String.", o.Name)
	}
	return text, nil
}

// abandon ends building for a reason that is no resource's.
func (l *Loop) abandon(ctx context.Context, s *state.Stack, err error) error {
	var wrong *template.Error
	if !errors.As(err, &wrong) && ctx.Err() != nil {
		return ctx.Err()
	}
	return l.stop(ctx, s, err.Error()+". ")
}

// stop ends building before it's done.
func (l *Loop) stop(ctx context.Context, s *state.Stack, reason string) error {
	return l.update(ctx, *s.StackId, func(tx *state.Tx, s *state.Stack) { l.turn(tx, s, reason) })
}

// obstacle returns why building is to end before it's done, or "" if it goes on.
func (l *Loop) obstacle(ctx context.Context, v *state.View, s *state.Stack) (reason string, err error) {
	if failed := failures(v, s); len(failed) > 0 && !outlasts(s) {
		return haveFailed(failed), nil
	}
	if l.isLate(s) {
		return "Stack creation time exceeded the specified timeout. ", nil
	}
	return l.triggered(ctx, s)
}

// haveFailed is the reason of an operation that ends because resources failed.
func haveFailed(failed []*state.StackResource) (reason string) {
	names := map[string][]string{}
	for _, r := range failed {
		verb, _, _ := strings.Cut(strings.ToLower(string(r.Status)), "_")
		names[verb] = append(names[verb], r.Name)
	}
	for _, verb := range slices.Sorted(maps.Keys(names)) {
		reason += fmt.Sprintf("The following resource(s) failed to %s: [%s]. ", verb, strings.Join(names[verb], ", "))
	}
	return reason
}

// turn gives a building stack the status that follows a failure. What was still under way counts as cancelled.
func (l *Loop) turn(tx *state.Tx, s *state.Stack, reason string) {
	for r := range tx.ResourcesOf(*s.StackId) {
		if isUnderWay(r) && !r.Superseded {
			cancelled := *r
			cancelled.Status, cancelled.At = failedStatus(r), l.opts.Account.Now()
			cancelled.Reason = "Resource creation cancelled"
			if !isCreation(r) {
				cancelled.Reason = "Resource update cancelled"
			}
			put(tx, s, &cancelled, cancelled.Reason, "")
		}
	}
	rollback := reason + "Rollback requested by user."
	switch {
	case isBack(s):
		l.Move(tx, s, types.StackStatusUpdateRollbackFailed, reason)
		return
	case isImporting(s):
		l.Move(tx, s, types.StackStatusImportRollbackInProgress, strings.TrimSuffix(reason, " "))
	case s.StackStatus == types.StackStatusUpdateInProgress && aws.ToBool(s.DisableRollback):
		l.Move(tx, s, types.StackStatusUpdateFailed, reason)
		return
	case s.StackStatus == types.StackStatusUpdateInProgress:
		l.Move(tx, s, RollbackOf(s), strings.TrimSuffix(reason, " "))
	case s.KeepsFailures():
		l.Move(tx, s, types.StackStatusCreateFailed, reason)
		return
	case s.OnFailure == types.OnFailureDelete:
		l.Move(tx, s, types.StackStatusDeleteInProgress, rollback)
	default:
		l.Move(tx, s, types.StackStatusRollbackInProgress, rollback)
	}
	Forgive(tx, s)
}

// RollbackOf returns the status in which a stack is rolled back: to what it was made from before. If it never was, all that it has is deleted.
func RollbackOf(s *state.Stack) types.StackStatus {
	if s.Source == nil {
		return types.StackStatusRollbackInProgress
	}
	return types.StackStatusUpdateRollbackInProgress
}

// Forgive begins a part of an operation: what failed in an earlier one doesn't count.
func Forgive(tx *state.Tx, s *state.Stack) {
	for r := range tx.ResourcesOf(*s.StackId) {
		if r.Failed {
			row := *r
			row.Failed = false
			tx.StackResources.Put(&row)
		}
	}
}

// cleared ends the part of an operation in which resources are deleted. Those that are left couldn't be.
func (l *Loop) cleared(ctx context.Context, s *state.Stack, left []*state.StackResource) error {
	reason := ""
	if len(left) > 0 {
		var names []string
		for _, r := range left {
			if r.Failed {
				names = append(names, r.Name)
			}
		}
		reason = fmt.Sprintf("The following resource(s) failed to delete: [%s]. ", strings.Join(slices.Compact(names), ", "))
	}
	return l.update(ctx, *s.StackId, func(tx *state.Tx, s *state.Stack) {
		switch s.StackStatus {
		case types.StackStatusUpdateCompleteCleanupInProgress:
			forget(tx, left)
			dropFormer(tx, s)
			l.Move(tx, s, types.StackStatusUpdateComplete, "")
		case types.StackStatusUpdateRollbackCompleteCleanupInProgress:
			forget(tx, left)
			dropFormer(tx, s)
			l.Move(tx, s, types.StackStatusUpdateRollbackComplete, "")
		case types.StackStatusRollbackInProgress:
			l.Move(tx, s, ending(reason, types.StackStatusRollbackComplete, types.StackStatusRollbackFailed), reason)
		case types.StackStatusDeleteInProgress:
			if s.ForceDelete {
				forget(tx, left)
				reason = ""
			}
			l.Move(tx, s, ending(reason, types.StackStatusDeleteComplete, types.StackStatusDeleteFailed), reason)
		}
	})
}

func ending(reason string, good, bad types.StackStatus) types.StackStatus {
	if reason == "" {
		return good
	}
	return bad
}

// forget strikes resources out that an update left over and that couldn't be deleted, as CloudFormation does: its events tell of them.
func forget(tx *state.Tx, left []*state.StackResource) {
	for _, r := range left {
		tx.StackResources.Delete(r.Key())
	}
}
