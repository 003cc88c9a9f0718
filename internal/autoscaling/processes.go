package autoscaling

import (
	"context"
	"slices"
	"strings"

	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/state"
)

// processes can be suspended. They're from the user guide's page "Suspend and resume processes".
var processes = []string{
	"AZRebalance", "AddToLoadBalancer", "AlarmNotification", "HealthCheck", "InstanceRefresh",
	"Launch", "ReplaceUnhealthy", "ScheduledActions", "Terminate",
}

func checkProcesses(names []string) error {
	for _, p := range names {
		if !slices.Contains(processes, p) {
			return invalid("%q is not a recognized process: they are %s", p, strings.Join(processes, ", "))
		}
	}
	return nil
}

// SuspendProcesses suspends some of a group's processes, or all if the call names none.
func (s *Service) SuspendProcesses(ctx context.Context, in *api.SuspendProcessesInput) (*api.SuspendProcessesOutput, error) {
	if err := checkProcesses(in.ScalingProcesses); err != nil {
		return nil, err
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		names := in.ScalingProcesses
		if len(names) == 0 {
			names = processes
		}
		for _, p := range names {
			if !g.IsSuspended(p) {
				g.SuspendedProcesses = append(g.SuspendedProcesses, types.SuspendedProcess{
					ProcessName:      &p,
					SuspensionReason: new("User suspended at " + state.Stamp(s.now())),
				})
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SuspendProcessesOutput{}, nil
}

// ResumeProcesses undoes SuspendProcesses.
func (s *Service) ResumeProcesses(ctx context.Context, in *api.ResumeProcessesInput) (*api.ResumeProcessesOutput, error) {
	if err := checkProcesses(in.ScalingProcesses); err != nil {
		return nil, err
	}
	err := s.change(ctx, in.AutoScalingGroupName, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		g.SuspendedProcesses = slices.DeleteFunc(g.SuspendedProcesses, func(p types.SuspendedProcess) bool {
			return len(in.ScalingProcesses) == 0 || slices.Contains(in.ScalingProcesses, *p.ProcessName)
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.ResumeProcessesOutput{}, nil
}
