package ec2

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// DescribeInstanceAttribute describes one attribute of an instance. What instances here don't have is as AWS shows it when it's off.
func (s *Service) DescribeInstanceAttribute(
	_ context.Context, in *ec2.DescribeInstanceAttributeInput,
) (*ec2.DescribeInstanceAttributeOutput, error) {
	id := aws.ToString(in.InstanceId)
	switch {
	case id == "":
		return nil, refuse("MissingParameter", "The request must contain the parameter InstanceId")
	case in.Attribute == "":
		return nil, refuse("MissingParameter", "The request must contain the parameter Attribute")
	case !slices.Contains(in.Attribute.Values(), in.Attribute):
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter attribute is invalid. Unknown attribute.", in.Attribute)
	}
	if err := checkInstanceIDs([]string{id}); err != nil {
		return nil, err
	}
	v := s.store.View()
	found, err := pickByID(s.instances(v), []string{id})
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	userData := ""
	if row := v.Instances.Get(id); row != nil {
		userData = row.UserData
	}
	return attribute(in.Attribute, &found[0], userData), nil
}

// attribute returns one attribute of an instance.
func attribute(name types.InstanceAttributeName, i *types.Instance, userData string) *ec2.DescribeInstanceAttributeOutput {
	out := &ec2.DescribeInstanceAttributeOutput{InstanceId: i.InstanceId}
	text := func(s string) *types.AttributeValue { return &types.AttributeValue{Value: &s} }
	off := &types.AttributeBooleanValue{Value: aws.Bool(false)}
	switch name {
	case types.InstanceAttributeNameInstanceType:
		out.InstanceType = text(string(i.InstanceType))
	case types.InstanceAttributeNameUserData:
		out.UserData = &types.AttributeValue{}
		if userData != "" {
			out.UserData = text(userData)
		}
	case types.InstanceAttributeNameDisableApiTermination:
		out.DisableApiTermination = off
	case types.InstanceAttributeNameDisableApiStop:
		out.DisableApiStop = off
	case types.InstanceAttributeNameEbsOptimized:
		out.EbsOptimized = off
	case types.InstanceAttributeNameEnaSupport:
		out.EnaSupport = off
	case types.InstanceAttributeNameSourceDestCheck:
		out.SourceDestCheck = off
	case types.InstanceAttributeNameInstanceInitiatedShutdownBehavior:
		out.InstanceInitiatedShutdownBehavior = text("terminate")
	case types.InstanceAttributeNameGroupSet:
		out.Groups = i.SecurityGroups
	case types.InstanceAttributeNameBlockDeviceMapping:
		out.BlockDeviceMappings = i.BlockDeviceMappings
	case types.InstanceAttributeNameProductCodes:
		out.ProductCodes = []types.ProductCode{}
	case types.InstanceAttributeNameRootDeviceName:
		out.RootDeviceName = &types.AttributeValue{Value: i.RootDeviceName}
	case types.InstanceAttributeNameKernel:
		out.KernelId = &types.AttributeValue{}
	case types.InstanceAttributeNameRamdisk:
		out.RamdiskId = &types.AttributeValue{}
	case types.InstanceAttributeNameSriovNetSupport:
		out.SriovNetSupport = &types.AttributeValue{}
	case types.InstanceAttributeNameEnclaveOptions:
		out.EnclaveOptions = &types.EnclaveOptions{Enabled: aws.Bool(false)}
	}
	return out
}
