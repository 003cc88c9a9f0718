package cloudformation

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// TestSignalRefused: only what is being made or changed takes signals.
func TestSignalRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", waiting)
	good := types.ResourceSignalStatusSuccess
	check(t, "a handle", w.signalResource("Handle", "a", good), "Resource Handle is in CREATE_COMPLETE state and cannot be signaled")
	check(t, "nothing", w.signalResource("Nothing", "a", good), "Resource Nothing does not exist for stack s")
	for _, id := range []string{"a", "b"} {
		check(t, id, w.signalResource("Wait", id, good), "")
	}
	w.settle()
	id := w.onlyStack()
	check(t, "a stack", w.signalResource("Wait", "c", good), "Stack "+id+" is in CREATE_COMPLETE state and cannot be signaled")
	for r := range w.store.View().ResourcesOf(id) {
		if r.Name == "Wait" && len(r.Signals) != 2 {
			t.Errorf("the condition has signals %v", r.Signals)
		}
	}
	w.remove("s")
	check(t, "no stack", w.signalResource("Wait", "a", good), "Stack [s] does not exist")
}
