package autoscaling

import (
	"github.com/aws/aws-sdk-go-v2/aws"

	decide "github.com/pintle/pintle/internal/decide/group"
	"github.com/pintle/pintle/internal/state"
)

// waiting are the needs of the tasks that wait for a capacity provider's instances.
func waiting(v *state.View, p *state.CapacityProvider) (out []decide.Size) {
	if p == nil {
		return nil
	}
	for t := range v.Tasks.By(state.TasksByLastStatus, "PROVISIONING") {
		if t.Waiting != nil && aws.ToString(t.CapacityProviderName) == *p.Name {
			out = append(out, decide.Size{CPU: t.Waiting.CPU, MemoryMiB: t.Waiting.MemoryMiB, GPUs: t.Waiting.GPUs})
		}
	}
	return out
}
