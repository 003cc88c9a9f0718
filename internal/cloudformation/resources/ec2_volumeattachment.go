package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// volumeAttachment has the properties of AWS::EC2::VolumeAttachment. Its physical ID is VOLUME|INSTANCE. On AWS a device may be left out,
// and is picked then.
type volumeAttachment struct {
	Device     *string `cfn:"required,create"`
	InstanceId *string `cfn:"required,create"`
	VolumeId   *string `cfn:"required,create"`
}

var _ = add(&kind[*volumeAttachment]{
	name:       "AWS::EC2::VolumeAttachment",
	live:       liveVolumeAttachment,
	identifier: []string{"VolumeId", "InstanceId"},
	create: func(ctx context.Context, s Step, a *volumeAttachment) (string, error) {
		id := *a.VolumeId + "|" + *a.InstanceId
		if !s.Since.IsZero() { // an earlier process may have attached it
			if live, err := liveVolumeAttachment(ctx, s, id, a); err == nil && aws.ToString(live.Device) == *a.Device {
				return id, nil
			}
		}
		in := &ec2.AttachVolumeInput{VolumeId: a.VolumeId, InstanceId: a.InstanceId, Device: a.Device}
		return id, did[ec2.AttachVolumeOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, _ string, a *volumeAttachment) error {
		in := &ec2.DetachVolumeInput{VolumeId: a.VolumeId, InstanceId: a.InstanceId, Device: a.Device}
		err := did[ec2.DetachVolumeOutput](ctx, s, in)
		if hasCode(err, "IncorrectState") { // it's attached nowhere
			return nil
		}
		return err
	},
	read: func(ctx context.Context, s Step, id string, a *volumeAttachment) (Made, error) {
		_, err := liveVolumeAttachment(ctx, s, id, a)
		return Made{}, err
	},
})

func liveVolumeAttachment(ctx context.Context, s Step, id string, _ *volumeAttachment) (*volumeAttachment, error) {
	of, at, _ := strings.Cut(id, "|")
	is, err := describeVolume(ctx, s, of)
	if err != nil {
		return nil, err
	}
	for _, a := range is.Attachments {
		if *a.InstanceId == at {
			return &volumeAttachment{Device: a.Device, InstanceId: &at, VolumeId: &of}, nil
		}
	}
	return nil, errMissing
}
