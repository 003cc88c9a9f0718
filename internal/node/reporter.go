package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/node/engine"
)

// reporter reports through SubmitTaskStateChange.
type reporter struct{ ecs ECS }

// Report implements engine.Reporter. An error is permanent only if the control plane will never accept the report. A node whose
// credentials have expired, say, keeps trying until it has new ones.
func (r *reporter) Report(ctx context.Context, e engine.Report) error {
	in := &ecs.SubmitTaskStateChangeInput{
		Cluster:            &e.Cluster,
		Task:               &e.TaskArn,
		Status:             &e.Status,
		Reason:             stringOrNil(e.Reason),
		PullStartedAt:      timeOrNil(e.PullStartedAt),
		PullStoppedAt:      timeOrNil(e.PullStoppedAt),
		ExecutionStoppedAt: timeOrNil(e.ExecutionStoppedAt),
	}
	for _, c := range e.Containers {
		in.Containers = append(in.Containers, stateChange(c))
		in.ManagedAgents = append(in.ManagedAgents, agentChanges(c)...)
	}
	_, err := r.ecs.SubmitTaskStateChange(ctx, in)
	if err != nil && isRefused(err) {
		return &engine.Permanent{Err: err}
	}
	return err
}

func stateChange(c engine.ContainerReport) types.ContainerStateChange {
	out := types.ContainerStateChange{
		ContainerName: &c.Name,
		Status:        aws.String(cmp.Or(string(c.Status), "PENDING")),
		Reason:        stringOrNil(c.Reason),
		ImageDigest:   stringOrNil(c.Digest),
	}
	if c.Status != engine.Waiting {
		out.RuntimeId = &c.RuntimeID
	}
	if c.ExitCode != nil {
		out.ExitCode = aws.Int32(int32(*c.ExitCode))
	}
	out.NetworkBindings = bindings(c.Ports)
	return out
}

// bindings returns ports as ECS shows them: a range is one binding.
func bindings(ports []engine.Port) (out []types.NetworkBinding) {
	isSame := func(a, b engine.Port) bool { return a.Range != "" && a.Range == b.Range && a.Protocol == b.Protocol }
	for len(ports) > 0 {
		first, n := ports[0], 1
		for n < len(ports) && isSame(first, ports[n]) {
			n++
		}
		b := types.NetworkBinding{BindIP: aws.String("0.0.0.0"), Protocol: types.TransportProtocol(first.Protocol)}
		if first.Range == "" {
			b.ContainerPort = aws.Int32(int32(first.Container))
			b.HostPort = aws.Int32(int32(first.Host))
		} else {
			b.ContainerPortRange = &first.Range
			b.HostPortRange = aws.String(fmt.Sprintf("%d-%d", first.Host, ports[n-1].Host))
		}
		out = append(out, b)
		ports = ports[n:]
	}
	return out
}

// agentChanges returns the states of a container's managed agents, which are those of the container: what they do the node does itself.
func agentChanges(c engine.ContainerReport) (out []types.ManagedAgentStateChange) {
	if c.Status != engine.Running && c.Status != engine.Stopped {
		return nil
	}
	for _, name := range c.Agents {
		out = append(out, types.ManagedAgentStateChange{
			ContainerName:    &c.Name,
			ManagedAgentName: types.ManagedAgentName(name),
			Status:           aws.String(string(c.Status)),
		})
	}
	return out
}

func stringOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
