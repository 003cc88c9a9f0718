package stacks

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/state"
)

// isBuilding reports whether a stack's operation makes and changes resources. Otherwise it deletes some.
func isBuilding(s *state.Stack) bool {
	switch s.StackStatus {
	case types.StackStatusCreateInProgress, types.StackStatusUpdateInProgress, types.StackStatusUpdateRollbackInProgress,
		types.StackStatusImportInProgress:
		return true
	}
	return false
}

// isBack reports whether an update is being rolled back.
func isBack(s *state.Stack) bool { return s.StackStatus == types.StackStatusUpdateRollbackInProgress }

// goal returns the source that a stack is being brought to.
func goal(s *state.Stack) *state.StackSource {
	if isBack(s) {
		return s.Source
	}
	return s.Target
}

// isGone reports whether a resource isn't there any more, or isn't the stack's.
func isGone(r *state.StackResource) bool {
	return r.Status == types.ResourceStatusDeleteComplete || r.Status == types.ResourceStatusDeleteSkipped
}

// isComplete reports whether a resource can be referred to.
func isComplete(r *state.StackResource) bool {
	return r.PhysicalID != "" && r.Next == nil && !isUnderWay(r)
}

// isUnderWay reports whether a resource is being made or changed.
func isUnderWay(r *state.StackResource) bool {
	return r.Status == types.ResourceStatusCreateInProgress || r.Status == types.ResourceStatusUpdateInProgress ||
		r.Status == types.ResourceStatusImportInProgress
}

// isSkipped reports whether a rollback is to leave a resource as it is.
func isSkipped(s *state.Stack, r *state.StackResource) bool {
	return isBack(s) && slices.Contains(s.Skip, r.Name)
}

func isCreation(r *state.StackResource) bool { return strings.HasPrefix(string(r.Status), "CREATE_") }

func completeStatus(r *state.StackResource) types.ResourceStatus {
	if isCreation(r) {
		return types.ResourceStatusCreateComplete
	}
	return types.ResourceStatusUpdateComplete
}

func failedStatus(r *state.StackResource) types.ResourceStatus {
	switch {
	case isCreation(r) && r.Status != types.ResourceStatusCreateComplete:
		return types.ResourceStatusCreateFailed
	case strings.HasPrefix(string(r.Status), "DELETE_"):
		return types.ResourceStatusDeleteFailed
	case isImport(r):
		return types.ResourceStatusImportFailed
	}
	return types.ResourceStatusUpdateFailed
}

// outlasts reports whether building goes on after a resource has failed, with those that don't need it. So it does if what was made stays.
func outlasts(s *state.Stack) bool { return !isBack(s) && !isImporting(s) && s.KeepsFailures() }

// isUnmade reports whether a resource couldn't be made, so that nothing of it is to stay. A stack in a stack stays as it was left, too.
func isUnmade(r *state.StackResource) bool {
	switch r.Status {
	case types.ResourceStatusCreateFailed:
		return r.Ref == "" && (r.PhysicalID == "" || r.Type != resources.NestedStack)
	case types.ResourceStatusImportFailed:
		return isNotTakenOver(r)
	case types.ResourceStatusDeleteInProgress, types.ResourceStatusDeleteFailed:
		return true
	}
	return false
}

// failures lists the resources that failed in the part of the operation that runs.
func failures(v *state.View, s *state.Stack) (failed []*state.StackResource) {
	for r := range v.ResourcesOf(*s.StackId) {
		if r.Failed {
			failed = append(failed, r)
		}
	}
	return failed
}
