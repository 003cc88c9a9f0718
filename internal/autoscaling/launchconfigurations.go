package autoscaling

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/state"
)

const (
	maxConfigurations = 200      // the user guide's page on quotas
	maxUserData       = 16 << 10 // bytes, before they are encoded
)

// CreateLaunchConfiguration stores what groups' instances are started from. It can't be changed afterwards.
func (s *Service) CreateLaunchConfiguration(
	ctx context.Context, in *api.CreateLaunchConfigurationInput,
) (*api.CreateLaunchConfigurationOutput, error) {
	row, err := s.newConfiguration(in)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.LaunchConfigurations.Get(row.Name()) != nil {
			return &types.AlreadyExistsFault{Message: new("Launch Configuration by this name already exists - " +
				"A launch configuration already exists with the name " + row.Name())}
		}
		if len(slices.Collect(tx.LaunchConfigurations.All())) >= maxConfigurations {
			return &types.LimitExceededFault{Message: new("There is already the maximum number of launch configurations")}
		}
		if err := copyInstance(tx.View, in.InstanceId, row); err != nil {
			return err
		}
		if err := checkConfiguration(row); err != nil {
			return err
		}
		tx.LaunchConfigurations.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateLaunchConfigurationOutput{}, nil
}

// newConfiguration makes a launch configuration's row, with AWS's defaults.
func (s *Service) newConfiguration(in *api.CreateLaunchConfigurationInput) (*state.LaunchConfiguration, error) {
	name := aws.ToString(in.LaunchConfigurationName)
	switch {
	case !groupName.MatchString(name):
		return nil, invalid("LaunchConfigurationName %q must have 1 to 255 characters, none of them :, /, | or a control character", name)
	case in.SpotPrice != nil:
		return nil, invalid("SpotPrice: Pintle has no Spot instances")
	case in.ClassicLinkVPCId != nil || len(in.ClassicLinkVPCSecurityGroups) > 0:
		return nil, invalid("ClassicLinkVPCId: Pintle has no EC2-Classic, as AWS has no more")
	case in.PlacementTenancy != nil && *in.PlacementTenancy != "default":
		return nil, invalid("PlacementTenancy: Pintle's instances have the tenancy default, not %q", *in.PlacementTenancy)
	}
	return &state.LaunchConfiguration{LaunchConfiguration: types.LaunchConfiguration{
		LaunchConfigurationName:      &name,
		LaunchConfigurationARN:       s.arn("launchConfiguration:" + state.NewUUID() + ":launchConfigurationName/" + name),
		CreatedTime:                  new(s.now()),
		ImageId:                      in.ImageId,
		InstanceType:                 in.InstanceType,
		KeyName:                      in.KeyName,
		UserData:                     in.UserData,
		SecurityGroups:               in.SecurityGroups,
		IamInstanceProfile:           in.IamInstanceProfile,
		AssociatePublicIpAddress:     in.AssociatePublicIpAddress,
		PlacementTenancy:             in.PlacementTenancy,
		MetadataOptions:              in.MetadataOptions,
		BlockDeviceMappings:          in.BlockDeviceMappings,
		ClassicLinkVPCSecurityGroups: []string{},
		KernelId:                     cmp.Or(in.KernelId, aws.String("")),
		RamdiskId:                    cmp.Or(in.RamdiskId, aws.String("")),
		EbsOptimized:                 cmp.Or(in.EbsOptimized, aws.Bool(false)),
		InstanceMonitoring:           cmp.Or(in.InstanceMonitoring, &types.InstanceMonitoring{Enabled: aws.Bool(true)}),
	}}, nil
}

// copyInstance fills in what a launch configuration lacks from an instance, if the call names one.
func copyInstance(v *state.View, id *string, to *state.LaunchConfiguration) error {
	if id == nil {
		return nil
	}
	from := v.Instances.Get(*id)
	if from == nil || from.IsOver() {
		return invalid("The instance ID '%s' does not exist", *id)
	}
	to.ImageId = cmp.Or(to.ImageId, from.ImageId)
	to.InstanceType = cmp.Or(to.InstanceType, new(string(from.InstanceType)))
	to.KeyName = cmp.Or(to.KeyName, from.KeyName)
	to.UserData = cmp.Or(to.UserData, &from.UserData)
	return nil
}

// checkConfiguration refuses a launch configuration that can't launch instances, and fills in what describing it shows empty.
func checkConfiguration(c *state.LaunchConfiguration) error {
	if c.ImageId == nil || c.InstanceType == nil {
		return invalid("Valid requests must contain either the InstanceID parameter or both the ImageId and InstanceType parameters.")
	}
	if !strings.HasPrefix(*c.ImageId, "ami-") {
		return invalid("Invalid id: \"%s\" (expecting \"ami-...\")", *c.ImageId)
	}
	if _, err := instancetype.Lookup(*c.InstanceType); err != nil {
		return invalid("Invalid value '%s' for InstanceType.", *c.InstanceType)
	}
	data, err := base64.StdEncoding.DecodeString(aws.ToString(c.UserData))
	if err != nil {
		return invalid("UserData: Invalid BASE64 encoding of user data.")
	}
	if len(data) > maxUserData {
		return invalid("UserData: User data is limited to %d bytes", maxUserData)
	}
	c.KeyName = cmp.Or(c.KeyName, aws.String(""))
	c.UserData = cmp.Or(c.UserData, aws.String(""))
	return nil
}

// DescribeLaunchConfigurations lists launch configurations by name.
func (s *Service) DescribeLaunchConfigurations(
	_ context.Context, in *api.DescribeLaunchConfigurationsInput,
) (*api.DescribeLaunchConfigurationsOutput, error) {
	var rows []*state.LaunchConfiguration
	for c := range s.store.View().LaunchConfigurations.All() {
		if len(in.LaunchConfigurationNames) == 0 || slices.Contains(in.LaunchConfigurationNames, c.Name()) {
			rows = append(rows, c)
		}
	}
	rows, next, err := account.Sorted(listing("DescribeLaunchConfigurations", pageDefault, pageMost), rows, in.MaxRecords, in.NextToken,
		(*state.LaunchConfiguration).Name)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeLaunchConfigurationsOutput{LaunchConfigurations: []types.LaunchConfiguration{}, NextToken: next}
	for _, row := range rows {
		c := row.LaunchConfiguration
		c.SecurityGroups = append([]string{}, c.SecurityGroups...)
		c.BlockDeviceMappings = append([]types.BlockDeviceMapping{}, c.BlockDeviceMappings...)
		c.ClassicLinkVPCSecurityGroups = []string{}
		out.LaunchConfigurations = append(out.LaunchConfigurations, c)
	}
	return out, nil
}

// DeleteLaunchConfiguration deletes a launch configuration that no group uses.
func (s *Service) DeleteLaunchConfiguration(
	ctx context.Context, in *api.DeleteLaunchConfigurationInput,
) (*api.DeleteLaunchConfigurationOutput, error) {
	name := aws.ToString(in.LaunchConfigurationName)
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.LaunchConfigurations.Get(name) == nil {
			return invalid("Launch configuration name not found - Launch configuration %s not found", name)
		}
		for g := range tx.AutoScalingGroups.All() {
			if aws.ToString(g.LaunchConfigurationName) == name {
				return &types.ResourceInUseFault{
					Message: new("Cannot delete launch configuration " + name + " because it is attached to AutoScalingGroup " + g.Name()),
				}
			}
		}
		tx.LaunchConfigurations.Delete(name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteLaunchConfigurationOutput{}, nil
}
