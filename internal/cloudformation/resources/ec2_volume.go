package resources

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// volume has those properties of AWS::EC2::Volume that Pintle's volumes, which are records, can have.
type volume struct {
	AvailabilityZone *string `cfn:"create"`
	Encrypted        *bool   `cfn:"create"`
	KmsKeyId         *string `cfn:"create"`
	SnapshotId       *string `cfn:"create"`
	Iops             *int32
	Size             *int32
	Throughput       *int32
	VolumeType       types.VolumeType
	Tags             []Tag
}

var _ = add(&kind[*volume]{
	name:       "AWS::EC2::Volume",
	live:       liveVolume,
	list:       listVolumes,
	identifier: []string{"VolumeId"},
	attributes: []string{"VolumeId"},
	find:       findEC2[*volume],
	create: func(ctx context.Context, s Step, v *volume) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeVolume, v.Tags)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.CreateVolumeOutput](ctx, s.Services, &ec2.CreateVolumeInput{
			AvailabilityZone:  v.AvailabilityZone,
			Encrypted:         v.Encrypted,
			Iops:              v.Iops,
			KmsKeyId:          v.KmsKeyId,
			Size:              v.Size,
			SnapshotId:        v.SnapshotId,
			TagSpecifications: tags,
			Throughput:        v.Throughput,
			VolumeType:        v.VolumeType,
		})
		if err != nil {
			return "", err
		}
		return *out.VolumeId, nil
	},
	update: updateVolume,
	delete: func(ctx context.Context, s Step, id string, _ *volume) error {
		return did[ec2.DeleteVolumeOutput](ctx, s, &ec2.DeleteVolumeInput{VolumeId: &id})
	},
	read: func(ctx context.Context, s Step, id string, _ *volume) (Made, error) {
		_, err := describeVolume(ctx, s, id)
		return Made{Attributes: map[string]any{"VolumeId": id}}, err
	},
})

// updateVolume changes a volume's size and speed. One that was only to be made whole has them already.
func updateVolume(ctx context.Context, s Step, id string, before, after *volume) error {
	sized := func(v *volume) *volume {
		return &volume{Iops: v.Iops, Size: v.Size, Throughput: v.Throughput, VolumeType: v.VolumeType}
	}
	if before.AvailabilityZone != nil && !reflect.DeepEqual(sized(before), sized(after)) {
		err := did[ec2.ModifyVolumeOutput](ctx, s, &ec2.ModifyVolumeInput{
			VolumeId:   &id,
			Iops:       after.Iops,
			Size:       after.Size,
			Throughput: after.Throughput,
			VolumeType: after.VolumeType,
		})
		if err != nil {
			return err
		}
	}
	return retagEC2(ctx, s, id, before.Tags, after.Tags)
}

func describeVolume(ctx context.Context, s Step, id string) (*types.Volume, error) {
	out, err := call.Do[ec2.DescribeVolumesOutput](ctx, s.Services, &ec2.DescribeVolumesInput{VolumeIds: []string{id}})
	if err != nil {
		return nil, err
	}
	return &out.Volumes[0], nil
}

func liveVolume(ctx context.Context, s Step, id string, _ *volume) (*volume, error) {
	is, err := describeVolume(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return &volume{
		AvailabilityZone: is.AvailabilityZone,
		Encrypted:        is.Encrypted,
		KmsKeyId:         is.KmsKeyId,
		SnapshotId:       some(aws.ToString(is.SnapshotId)),
		Iops:             is.Iops,
		Size:             is.Size,
		Throughput:       is.Throughput,
		VolumeType:       is.VolumeType,
		Tags:             ownTags(is.Tags, ec2TagPair),
	}, nil
}

func listVolumes(ctx context.Context, s Step, _ *volume) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeVolumesOutput](ctx, s.Services, &ec2.DescribeVolumesInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Volumes {
			ids = append(ids, *x.VolumeId)
		}
		return ids, out.NextToken, nil
	})
}
