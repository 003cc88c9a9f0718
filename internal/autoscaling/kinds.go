package autoscaling

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/autoscaling/group"
	"github.com/pintle/pintle/internal/scaling"
)

// What there is of kinds, and how much of it there may be: nothing that a call changes.

// maxGroups is the quota of groups: the user guide's page on quotas.
const maxGroups = 500

// DescribeAccountLimits says how many groups there are and may be.
func (s *Service) DescribeAccountLimits(context.Context, *api.DescribeAccountLimitsInput) (*api.DescribeAccountLimitsOutput, error) {
	return &api.DescribeAccountLimitsOutput{
		MaxNumberOfAutoScalingGroups: aws.Int32(maxGroups), NumberOfAutoScalingGroups: new(int32(len(slices.Collect(s.store.View().AutoScalingGroups.All())))),
		MaxNumberOfLaunchConfigurations: aws.Int32(0), NumberOfLaunchConfigurations: aws.Int32(0),
	}, nil
}

// DescribeAdjustmentTypes lists what simple and step policies may do.
func (s *Service) DescribeAdjustmentTypes(context.Context, *api.DescribeAdjustmentTypesInput) (*api.DescribeAdjustmentTypesOutput, error) {
	out := &api.DescribeAdjustmentTypesOutput{}
	for _, t := range []string{scaling.ChangeInCapacity, scaling.ExactCapacity, scaling.PercentChangeInCapacity} {
		out.AdjustmentTypes = append(out.AdjustmentTypes, types.AdjustmentType{AdjustmentType: &t})
	}
	return out, nil
}

// DescribeLifecycleHookTypes lists the transitions that hooks may be of.
func (s *Service) DescribeLifecycleHookTypes(context.Context, *api.DescribeLifecycleHookTypesInput) (*api.DescribeLifecycleHookTypesOutput, error) {
	return &api.DescribeLifecycleHookTypesOutput{LifecycleHookTypes: []string{launching, terminating}}, nil
}

// DescribeScalingProcessTypes lists what can be suspended.
func (s *Service) DescribeScalingProcessTypes(context.Context, *api.DescribeScalingProcessTypesInput) (*api.DescribeScalingProcessTypesOutput, error) {
	out := &api.DescribeScalingProcessTypesOutput{}
	for _, p := range processes {
		out.Processes = append(out.Processes, types.ProcessType{ProcessName: &p})
	}
	return out, nil
}

// DescribeTerminationPolicyTypes lists the termination policies.
func (s *Service) DescribeTerminationPolicyTypes(context.Context, *api.DescribeTerminationPolicyTypesInput) (*api.DescribeTerminationPolicyTypesOutput, error) {
	return &api.DescribeTerminationPolicyTypesOutput{TerminationPolicyTypes: group.Policies}, nil
}
