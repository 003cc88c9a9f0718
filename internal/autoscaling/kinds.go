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

// This file lists kinds of things and limits. No call changes them.

// maxGroups is the quota of groups, from the user guide's page on quotas.
const maxGroups = 500

// DescribeAccountLimits returns how many groups there are and may be.
func (s *Service) DescribeAccountLimits(context.Context, *api.DescribeAccountLimitsInput) (*api.DescribeAccountLimitsOutput, error) {
	return &api.DescribeAccountLimitsOutput{
		MaxNumberOfAutoScalingGroups:    aws.Int32(maxGroups),
		NumberOfAutoScalingGroups:       new(int32(len(slices.Collect(s.store.View().AutoScalingGroups.All())))),
		MaxNumberOfLaunchConfigurations: aws.Int32(maxConfigurations),
		NumberOfLaunchConfigurations:    new(int32(len(slices.Collect(s.store.View().LaunchConfigurations.All())))),
	}, nil
}

// DescribeAdjustmentTypes lists the adjustment types of simple and step policies.
func (s *Service) DescribeAdjustmentTypes(context.Context, *api.DescribeAdjustmentTypesInput) (*api.DescribeAdjustmentTypesOutput, error) {
	out := &api.DescribeAdjustmentTypesOutput{}
	for _, t := range []string{scaling.ChangeInCapacity, scaling.ExactCapacity, scaling.PercentChangeInCapacity} {
		out.AdjustmentTypes = append(out.AdjustmentTypes, types.AdjustmentType{AdjustmentType: &t})
	}
	return out, nil
}

// DescribeLifecycleHookTypes lists the transitions that hooks can be for.
func (s *Service) DescribeLifecycleHookTypes(
	context.Context, *api.DescribeLifecycleHookTypesInput,
) (*api.DescribeLifecycleHookTypesOutput, error) {
	return &api.DescribeLifecycleHookTypesOutput{LifecycleHookTypes: []string{launching, terminating}}, nil
}

// DescribeScalingProcessTypes lists the processes that can be suspended.
func (s *Service) DescribeScalingProcessTypes(
	context.Context, *api.DescribeScalingProcessTypesInput,
) (*api.DescribeScalingProcessTypesOutput, error) {
	out := &api.DescribeScalingProcessTypesOutput{}
	for _, p := range processes {
		out.Processes = append(out.Processes, types.ProcessType{ProcessName: &p})
	}
	return out, nil
}

// DescribeTerminationPolicyTypes lists the termination policies.
func (s *Service) DescribeTerminationPolicyTypes(
	context.Context, *api.DescribeTerminationPolicyTypesInput,
) (*api.DescribeTerminationPolicyTypesOutput, error) {
	return &api.DescribeTerminationPolicyTypesOutput{TerminationPolicyTypes: group.Policies}, nil
}
