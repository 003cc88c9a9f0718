package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// launchConfiguration has the properties of AWS::AutoScaling::LaunchConfiguration. Its physical ID is the name. Nothing of it can change.
type launchConfiguration struct {
	LaunchConfigurationName      *string
	ImageId                      *string `cfn:"required"`
	InstanceType                 *string `cfn:"required"`
	AssociatePublicIpAddress     *bool
	BlockDeviceMappings          []types.BlockDeviceMapping
	ClassicLinkVPCId             *string
	ClassicLinkVPCSecurityGroups []string
	EbsOptimized                 *bool
	IamInstanceProfile           *string
	InstanceId                   *string `cfn:"write"`
	InstanceMonitoring           *bool
	KernelId                     *string
	KeyName                      *string
	MetadataOptions              *types.InstanceMetadataOptions
	PlacementTenancy             *string
	RamDiskId                    *string
	SecurityGroups               []string
	SpotPrice                    *string
	UserData                     *string
}

var _ = add(&kind[*launchConfiguration]{
	name:       "AWS::AutoScaling::LaunchConfiguration",
	live:       liveLaunchConfiguration,
	list:       listLaunchConfigurations,
	identifier: []string{"LaunchConfigurationName"},
	id:         func(s Step, c *launchConfiguration) string { return s.named(c.LaunchConfigurationName, 255) },
	create:     createLaunchConfiguration,
	delete: func(ctx context.Context, s Step, name string, c *launchConfiguration) error {
		if _, err := readLaunchConfiguration(ctx, s, name, c); err != nil {
			return err
		}
		in := &autoscaling.DeleteLaunchConfigurationInput{LaunchConfigurationName: &name}
		return did[autoscaling.DeleteLaunchConfigurationOutput](ctx, s, in)
	},
	read: readLaunchConfiguration,
})

func createLaunchConfiguration(ctx context.Context, s Step, c *launchConfiguration) (string, error) {
	in := &autoscaling.CreateLaunchConfigurationInput{
		LaunchConfigurationName:      new(s.named(c.LaunchConfigurationName, 255)),
		AssociatePublicIpAddress:     c.AssociatePublicIpAddress,
		BlockDeviceMappings:          c.BlockDeviceMappings,
		ClassicLinkVPCId:             c.ClassicLinkVPCId,
		ClassicLinkVPCSecurityGroups: c.ClassicLinkVPCSecurityGroups,
		EbsOptimized:                 c.EbsOptimized,
		IamInstanceProfile:           c.IamInstanceProfile,
		ImageId:                      c.ImageId,
		InstanceId:                   c.InstanceId,
		InstanceType:                 c.InstanceType,
		KernelId:                     c.KernelId,
		KeyName:                      c.KeyName,
		MetadataOptions:              c.MetadataOptions,
		PlacementTenancy:             c.PlacementTenancy,
		RamdiskId:                    c.RamDiskId,
		SecurityGroups:               c.SecurityGroups,
		SpotPrice:                    c.SpotPrice,
		UserData:                     c.UserData,
	}
	if c.InstanceMonitoring != nil {
		in.InstanceMonitoring = &types.InstanceMonitoring{Enabled: c.InstanceMonitoring}
	}
	err := did[autoscaling.CreateLaunchConfigurationOutput](ctx, s, in)
	return *in.LaunchConfigurationName, err
}

func readLaunchConfiguration(ctx context.Context, s Step, name string, _ *launchConfiguration) (Made, error) {
	in := &autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: []string{name}}
	out, err := call.Do[autoscaling.DescribeLaunchConfigurationsOutput](ctx, s.Services, in)
	if err == nil && len(out.LaunchConfigurations) == 0 {
		err = errMissing
	}
	return Made{}, err
}

func liveLaunchConfiguration(ctx context.Context, s Step, name string, _ *launchConfiguration) (*launchConfiguration, error) {
	in := &autoscaling.DescribeLaunchConfigurationsInput{LaunchConfigurationNames: []string{name}}
	out, err := call.Do[autoscaling.DescribeLaunchConfigurationsOutput](ctx, s.Services, in)
	if err == nil && len(out.LaunchConfigurations) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	c := out.LaunchConfigurations[0]
	live := &launchConfiguration{
		LaunchConfigurationName:      c.LaunchConfigurationName,
		AssociatePublicIpAddress:     c.AssociatePublicIpAddress,
		BlockDeviceMappings:          c.BlockDeviceMappings,
		ClassicLinkVPCId:             c.ClassicLinkVPCId,
		ClassicLinkVPCSecurityGroups: c.ClassicLinkVPCSecurityGroups,
		EbsOptimized:                 c.EbsOptimized,
		IamInstanceProfile:           c.IamInstanceProfile,
		ImageId:                      c.ImageId,
		InstanceType:                 c.InstanceType,
		KernelId:                     c.KernelId,
		KeyName:                      c.KeyName,
		MetadataOptions:              c.MetadataOptions,
		PlacementTenancy:             c.PlacementTenancy,
		RamDiskId:                    c.RamdiskId,
		SecurityGroups:               c.SecurityGroups,
		SpotPrice:                    c.SpotPrice,
		UserData:                     c.UserData,
	}
	if c.InstanceMonitoring != nil {
		live.InstanceMonitoring = c.InstanceMonitoring.Enabled
	}
	return live, nil
}

func listLaunchConfigurations(ctx context.Context, s Step, _ *launchConfiguration) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[autoscaling.DescribeLaunchConfigurationsOutput](ctx, s.Services, &autoscaling.DescribeLaunchConfigurationsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.LaunchConfigurations {
			ids = append(ids, *x.LaunchConfigurationName)
		}
		return ids, out.NextToken, nil
	})
}
