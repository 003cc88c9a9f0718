package metering

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/state"
)

// namespaceUsage is the namespace of what machines cost. AWS has no such metrics.
const namespaceUsage = state.NamespaceUsage

// maxElapsed bounds how long machines are taken to have been as they are now.
const maxElapsed = time.Minute

// usage is what there is to pay for.
type usage struct {
	machines map[string]int // by instance type; "" of those that tell none
	gpus     int            // of all machines
	held     float64        // GPUs that tasks hold
}

// countUsage adds the machines, their time and their GPUs' time since the last call, and how much of it tasks held.
func (m *Meter) countUsage(v *state.View, elapsed time.Duration) {
	u := usageOf(v)
	seconds := min(elapsed, maxElapsed).Seconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range u.machines {
		if name == "" {
			continue
		}
		by := dimensions{metrics.Dimension{Name: "InstanceType", Value: name}}
		m.add(namespaceUsage, "Instances", "Count", float64(n), by)
		m.add(namespaceUsage, "InstanceSeconds", "Seconds", float64(n)*seconds, by)
	}
	if u.gpus > 0 {
		m.add(namespaceUsage, "GPUSeconds", "Seconds", float64(u.gpus)*seconds, dimensions{})
		m.add(namespaceUsage, "GPUSecondsHeld", "Seconds", u.held*seconds, dimensions{})
	}
}

// usageOf counts EC2 instances from their launch until they end, as EC2 bills them, and nodes that aren't instances of ours while they are registered.
func usageOf(v *state.View) usage {
	u := usage{machines: map[string]int{}}
	counted := map[string]bool{}
	for _, name := range []types.InstanceStateName{types.InstanceStateNamePending, types.InstanceStateNameRunning, types.InstanceStateNameShuttingDown} {
		for i := range v.Instances.By(state.InstancesByState, string(name)) {
			counted[aws.ToString(i.InstanceId)] = true
			u.machines[string(i.InstanceType)]++
			if t, err := instancetype.Lookup(string(i.InstanceType)); err == nil {
				u.gpus += t.GPUs
			}
		}
	}
	for n := range v.ContainerInstances.All() {
		if aws.ToString(n.Status) != "INACTIVE" && !counted[aws.ToString(n.Ec2InstanceId)] {
			u.machines[n.Type()]++
			u.gpus += len(n.GPUs)
		}
	}
	for t := range v.Tasks.All() {
		if !t.Holds() {
			continue
		}
		for _, g := range t.GPUs {
			u.held += float64(g.Milli) / 1000
		}
	}
	return u
}
