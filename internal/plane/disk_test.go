package plane

import (
	"testing"

	"github.com/pintle/pintle/internal/disk"
)

// TestRoomFor: the less room there is, the fewer operations go on. What stops tasks goes on longest.
func TestRoomFor(t *testing.T) {
	for operation, want := range map[string]uint64{
		"RunTask":                       disk.ForChanges,
		"StartTask":                     disk.ForChanges,
		"StopQuery":                     disk.ForEnds,
		"DeleteService":                 disk.ForEnds,
		"StopTask":                      disk.ForStops,
		"SubmitTaskStateChange":         disk.ForStops,
		"SubmitContainerStateChange":    disk.ForStops,
		"SubmitAttachmentStateChanges":  disk.ForStops,
		"ReceiveMessage":                disk.ForEnds,
		"UpdateContainerInstancesState": disk.ForEnds,
	} {
		if got := roomFor(operation); got != want {
			t.Errorf("%s needs %d, want %d", operation, got, want)
		}
	}
}
