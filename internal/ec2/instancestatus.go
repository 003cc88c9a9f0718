package ec2

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
)

// statusFields holds those filters of API_DescribeInstanceStatus that apply to what machines have here: no scheduled events.
var statusFields = fields[types.InstanceStatus]{
	"availability-zone":            func(i *types.InstanceStatus) []string { return optional(i.AvailabilityZone) },
	"instance-state-code":          func(i *types.InstanceStatus) []string { return []string{strconv.Itoa(int(*i.InstanceState.Code))} },
	"instance-state-name":          func(i *types.InstanceStatus) []string { return []string{string(i.InstanceState.Name)} },
	"instance-status.status":       func(i *types.InstanceStatus) []string { return []string{string(i.InstanceStatus.Status)} },
	"instance-status.reachability": func(i *types.InstanceStatus) []string { return reachability(i.InstanceStatus) },
	"system-status.status":         func(i *types.InstanceStatus) []string { return []string{string(i.SystemStatus.Status)} },
	"system-status.reachability":   func(i *types.InstanceStatus) []string { return reachability(i.SystemStatus) },
}

func reachability(s *types.InstanceStatusSummary) (out []string) {
	for _, d := range s.Details {
		out = append(out, string(d.Status))
	}
	return out
}

// DescribeInstanceStatus describes the instances that run, or all where the call says so. An instance that runs has passed its checks: its
// machine is there.
func (s *Service) DescribeInstanceStatus(
	_ context.Context, in *ec2.DescribeInstanceStatusInput,
) (*ec2.DescribeInstanceStatusOutput, error) {
	if err := checkInstanceIDs(in.InstanceIds); err != nil {
		return nil, err
	}
	if len(in.InstanceIds) > 0 && in.MaxResults != nil {
		return nil, refuse("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	match, err := matcher(in.Filters, statusFields, nil)
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	instances, err := pickByID(s.instances(s.store.View()), in.InstanceIds)
	if err != nil {
		return nil, err
	}
	all := []types.InstanceStatus{}
	for _, i := range instances {
		all = append(all, statusOf(&i))
	}
	all = slices.DeleteFunc(all, func(i types.InstanceStatus) bool {
		return !match(&i) || i.InstanceState.Name != types.InstanceStateNameRunning && !aws.ToBool(in.IncludeAllInstances)
	})
	all, next, err := account.Sorted(listing("DescribeInstanceStatus", maxInstances), all, in.MaxResults, in.NextToken,
		func(i types.InstanceStatus) string { return *i.InstanceId })
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeInstanceStatusOutput{InstanceStatuses: all, NextToken: next}, nil
}

// statusOf returns an instance's status. One that doesn't run has none.
func statusOf(i *types.Instance) types.InstanceStatus {
	status := func() *types.InstanceStatusSummary {
		if i.State.Name != types.InstanceStateNameRunning {
			return &types.InstanceStatusSummary{Status: types.SummaryStatusNotApplicable}
		}
		return &types.InstanceStatusSummary{
			Status:  types.SummaryStatusOk,
			Details: []types.InstanceStatusDetails{{Name: types.StatusNameReachability, Status: types.StatusTypePassed}},
		}
	}
	return types.InstanceStatus{
		InstanceId:       i.InstanceId,
		AvailabilityZone: i.Placement.AvailabilityZone,
		InstanceState:    i.State,
		InstanceStatus:   status(),
		SystemStatus:     status(),
	}
}
