package ec2

import (
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/volumesize"
	"github.com/pintle/pintle/internal/state"
)

// The volume that an instance boots from, as ECS-optimized images of Amazon Linux 2023 have it.
const (
	rootDevice = "/dev/xvda"
	rootSize   = 30 // GiB
)

// ownVolumes returns the volumes that an instance came with: its root, and those that its launch mapped. They're there as long as the
// instance is, so nothing keeps them.
func ownVolumes(i *state.Instance) (all []types.Volume) {
	if i.IsOver() {
		return nil
	}
	devices := []types.LaunchTemplateBlockDeviceMapping{{DeviceName: aws.String(rootDevice), Ebs: &types.LaunchTemplateEbsBlockDevice{}}}
	for _, m := range i.Devices {
		isSame := func(d types.LaunchTemplateBlockDeviceMapping) bool { return *d.DeviceName == *m.DeviceName }
		if at := slices.IndexFunc(devices, isSame); at >= 0 {
			devices[at] = m
			continue
		}
		devices = append(devices, m)
	}
	for _, m := range devices {
		if own, err := ownVolume(i, *m.DeviceName, m.Ebs); err == nil { // templates may ask for what there isn't
			all = append(all, own)
		}
	}
	return all
}

// sizeOf returns the size of a volume that a launch maps.
func sizeOf(asked *types.LaunchTemplateEbsBlockDevice) volumesize.Size {
	return volumesize.Size{
		Type:       cmp.Or(asked.VolumeType, types.VolumeTypeGp3),
		GiB:        cmp.Or(asked.VolumeSize, aws.Int32(rootSize)),
		IOPS:       asked.Iops,
		Throughput: asked.Throughput,
	}
}

func ownVolume(i *state.Instance, device string, asked *types.LaunchTemplateEbsBlockDevice) (types.Volume, error) {
	row, err := newVolume(sizeOf(asked), []types.Tag{})
	if err != nil {
		return types.Volume{}, err
	}
	own := row.Volume
	own.VolumeId = new(state.VolumeOf(*i.InstanceId, device))
	own.AvailabilityZone = i.Placement.AvailabilityZone
	own.CreateTime = i.LaunchTime
	own.Encrypted = aws.Bool(aws.ToBool(asked.Encrypted))
	own.KmsKeyId = asked.KmsKeyId
	own.State = types.VolumeStateInUse
	own.Attachments = []types.VolumeAttachment{{
		VolumeId:            own.VolumeId,
		InstanceId:          i.InstanceId,
		Device:              &device,
		AttachTime:          i.LaunchTime,
		DeleteOnTermination: aws.Bool(asked.DeleteOnTermination == nil || *asked.DeleteOnTermination),
		State:               types.VolumeAttachmentStateAttached,
	}}
	return own, nil
}

// mappings returns an instance's volumes by their devices, as DescribeInstances shows them.
func mappings(v *state.View, i *state.Instance) []types.InstanceBlockDeviceMapping {
	all := []types.InstanceBlockDeviceMapping{}
	if i.IsOver() {
		return all
	}
	attached := ownVolumes(i)
	for row := range v.Volumes.By(state.VolumesByInstance, *i.InstanceId) {
		if v.HasVolume(row) {
			attached = append(attached, row.Volume)
		}
	}
	for _, volume := range attached {
		a := volume.Attachments[0]
		all = append(all, types.InstanceBlockDeviceMapping{
			DeviceName: a.Device,
			Ebs: &types.EbsInstanceBlockDevice{
				AttachTime:          a.AttachTime,
				DeleteOnTermination: a.DeleteOnTermination,
				Status:              types.AttachmentStatusAttached,
				VolumeId:            a.VolumeId,
			},
		})
	}
	return all
}
