package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// AttachVolume attaches a volume to an instance of its zone, at a device that has none.
func (s *Service) AttachVolume(ctx context.Context, in *ec2.AttachVolumeInput) (*ec2.AttachVolumeOutput, error) {
	if err := checkVolumeMembers(in, "Device", "InstanceId", "VolumeId"); err != nil {
		return nil, err
	}
	if aws.ToString(in.Device) == "" {
		return nil, missing("Device")
	}
	if err := checkInstanceIDs([]string{aws.ToString(in.InstanceId)}); err != nil {
		return nil, err
	}
	var made types.VolumeAttachment
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err := findFreeVolume(tx.View, in.VolumeId)
		if err != nil {
			return err
		}
		to := tx.Instances.Get(*in.InstanceId)
		if to == nil {
			return refuse("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", *in.InstanceId)
		}
		if err := checkAttachable(tx.View, row, to, *in.Device); err != nil {
			return err
		}
		made = types.VolumeAttachment{
			VolumeId:            row.VolumeId,
			InstanceId:          to.InstanceId,
			Device:              in.Device,
			AttachTime:          new(s.now()),
			DeleteOnTermination: aws.Bool(false),
			State:               types.VolumeAttachmentStateAttached,
		}
		next := new(*row)
		next.State = types.VolumeStateInUse
		next.Attachments = []types.VolumeAttachment{made}
		tx.Volumes.Put(next)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AttachVolumeOutput{
		VolumeId:            made.VolumeId,
		InstanceId:          made.InstanceId,
		Device:              made.Device,
		AttachTime:          made.AttachTime,
		DeleteOnTermination: made.DeleteOnTermination,
		State:               types.VolumeAttachmentStateAttaching,
	}, nil
}

// checkAttachable refuses to attach what is attached, is elsewhere, or would be at a device that has a volume.
func checkAttachable(v *state.View, row *state.Volume, to *state.Instance, device string) error {
	id := *to.InstanceId
	if len(showVolume(v, row).Attachments) > 0 {
		return refuse("VolumeInUse", "%s is already attached to an instance", *row.VolumeId)
	}
	if name := to.Name(); name != types.InstanceStateNameRunning && name != types.InstanceStateNameStopped {
		return refuse("IncorrectState", "Instance '%s' is not 'running'.", id)
	}
	if *row.AvailabilityZone != aws.ToString(to.Placement.AvailabilityZone) {
		return refuse("InvalidVolume.ZoneMismatch", "The volume '%s' is not in the same availability zone as instance '%s'", *row.VolumeId, id)
	}
	for _, m := range mappings(v, to) {
		if *m.DeviceName == device {
			return refuse("InvalidParameterValue", "Invalid value '%s' for unixDevice. Attachment point %s is already in use", device, device)
		}
	}
	return nil
}

// DetachVolume takes a volume from its instance. It's available at once.
func (s *Service) DetachVolume(ctx context.Context, in *ec2.DetachVolumeInput) (*ec2.DetachVolumeOutput, error) {
	var was types.VolumeAttachment
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		if i, own := ownedBy(tx.View, aws.ToString(in.VolumeId)); i != nil && *own.Attachments[0].Device == rootDevice {
			return refuse("OperationNotPermitted", "Unable to detach root volume '%s' from instance '%s'", *in.VolumeId, *i.InstanceId)
		}
		row, err := findFreeVolume(tx.View, in.VolumeId)
		if err != nil {
			return err
		}
		shown := showVolume(tx.View, row)
		if len(shown.Attachments) == 0 {
			return refuse("IncorrectState", "Volume '%s' is in the 'available' state.", *row.VolumeId)
		}
		was = shown.Attachments[0]
		if in.InstanceId != nil && *in.InstanceId != *was.InstanceId || in.Device != nil && *in.Device != *was.Device {
			return refuse("InvalidAttachment.NotFound", "Volume '%s' is not attached to instance '%s' as device '%s'.",
				*row.VolumeId, aws.ToString(in.InstanceId), aws.ToString(in.Device))
		}
		next := new(*row)
		next.State = types.VolumeStateAvailable
		next.Attachments = []types.VolumeAttachment{}
		tx.Volumes.Put(next)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DetachVolumeOutput{
		VolumeId:            was.VolumeId,
		InstanceId:          was.InstanceId,
		Device:              was.Device,
		AttachTime:          was.AttachTime,
		DeleteOnTermination: was.DeleteOnTermination,
		State:               types.VolumeAttachmentStateDetaching,
	}, nil
}
