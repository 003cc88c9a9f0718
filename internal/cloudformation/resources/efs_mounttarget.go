package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/efs/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// efsMountTarget has those properties of AWS::EFS::MountTarget that Pintle's mount targets, which are records, can have.
type efsMountTarget struct {
	FileSystemId   *string  `cfn:"required,create"`
	IpAddress      *string  `cfn:"create"`
	SubnetId       *string  `cfn:"required,create"`
	SecurityGroups []string `cfn:"required"`
}

var _ = add(&kind[*efsMountTarget]{
	name:       "AWS::EFS::MountTarget",
	live:       liveEFSMountTarget,
	identifier: []string{"Id"},
	attributes: []string{"Id", "IpAddress"},
	create: func(ctx context.Context, s Step, m *efsMountTarget) (string, error) {
		out, err := call.Do[efs.CreateMountTargetOutput](ctx, s.Services, &efs.CreateMountTargetInput{
			FileSystemId:   m.FileSystemId,
			IpAddress:      m.IpAddress,
			SecurityGroups: m.SecurityGroups,
			SubnetId:       m.SubnetId,
		})
		if err != nil {
			return "", err
		}
		return *out.MountTargetId, nil
	},
	update: func(ctx context.Context, s Step, id string, _, after *efsMountTarget) error {
		return did[efs.ModifyMountTargetSecurityGroupsOutput](ctx, s, &efs.ModifyMountTargetSecurityGroupsInput{
			MountTargetId: &id, SecurityGroups: after.SecurityGroups,
		})
	},
	delete: func(ctx context.Context, s Step, id string, _ *efsMountTarget) error {
		return did[efs.DeleteMountTargetOutput](ctx, s, &efs.DeleteMountTargetInput{MountTargetId: &id})
	},
	read: func(ctx context.Context, s Step, id string, _ *efsMountTarget) (Made, error) {
		is, err := describeEFSMountTarget(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Id": id, "IpAddress": *is.IpAddress}}, nil
	},
})

func describeEFSMountTarget(ctx context.Context, s Step, id string) (*types.MountTargetDescription, error) {
	out, err := call.Do[efs.DescribeMountTargetsOutput](ctx, s.Services, &efs.DescribeMountTargetsInput{MountTargetId: &id})
	if err != nil {
		return nil, err
	}
	return &out.MountTargets[0], nil
}

func liveEFSMountTarget(ctx context.Context, s Step, id string, _ *efsMountTarget) (*efsMountTarget, error) {
	is, err := describeEFSMountTarget(ctx, s, id)
	if err != nil {
		return nil, err
	}
	in := &efs.DescribeMountTargetSecurityGroupsInput{MountTargetId: &id}
	groups, err := call.Do[efs.DescribeMountTargetSecurityGroupsOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	return &efsMountTarget{
		FileSystemId: is.FileSystemId, IpAddress: is.IpAddress, SubnetId: is.SubnetId, SecurityGroups: groups.SecurityGroups,
	}, nil
}
