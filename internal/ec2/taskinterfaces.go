package ec2

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ec2/dns"
	"github.com/pintle/pintle/internal/state"
)

// isOfTask reports whether an interface is that of a task in network mode awsvpc which has not stopped.
func isOfTask(v *state.View, id string) bool {
	for range v.Tasks.By(state.TasksByInterface, id) {
		return id != ""
	}
	return false
}

// showOfTask returns the interface of a task, which is ECS's: nobody else can change it.
func (s *Service) showOfTask(v *state.View, t *state.Task) types.NetworkInterface {
	id := t.InterfaceID()
	row := &state.NetworkInterface{NetworkInterface: types.NetworkInterface{
		NetworkInterfaceId: &id,
		AvailabilityZone:   t.AvailabilityZone,
		Description:        aws.String(""),
		Groups:             []types.GroupIdentifier{},
		InterfaceType:      types.NetworkInterfaceTypeInterface,
		Ipv6Addresses:      []types.NetworkInterfaceIpv6Address{},
		MacAddress:         macAddress(id),
		OwnerId:            &s.opts.ID,
		PrivateIpAddress:   aws.String(t.PrivateIPv4()),
		PrivateDnsName:     new(dns.Name(t.PrivateIPv4(), s.opts.Region)),
		RequesterId:        &s.opts.ID,
		RequesterManaged:   aws.Bool(true),
		SourceDestCheck:    aws.Bool(true),
		Status:             types.NetworkInterfaceStatusInUse,
		SubnetId:           aws.String(t.SubnetID()),
		TagSet:             []types.Tag{},
		Attachment: &types.NetworkInterfaceAttachment{
			AttachmentId:        new("eni-attach" + strings.TrimPrefix(id, "eni")),
			AttachTime:          t.CreatedAt,
			DeleteOnTermination: aws.Bool(true),
			DeviceIndex:         aws.Int32(1),
			InstanceOwnerId:     &s.opts.ID,
			NetworkCardIndex:    aws.Int32(0),
			Status:              types.AttachmentStatusAttached,
		},
	}}
	for _, a := range t.Attachments {
		if state.IsInterface(a) {
			row.Description = new(s.opts.ARN("ecs", "attachment/"+aws.ToString(a.Id)))
		}
	}
	if m := v.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn)); m != nil && t.LaunchType != ecstypes.LaunchTypeFargate {
		row.Attachment.InstanceId = m.Ec2InstanceId
	}
	if subnet := v.Subnets.Get(t.SubnetID()); subnet != nil {
		row.VpcId = subnet.VpcId
		row.AvailabilityZone = subnet.AvailabilityZone
	}
	for _, id := range v.InterfaceGroups(t.SubnetID(), t.SecurityGroups) {
		if g := v.SecurityGroups.Get(id); g != nil {
			row.Groups = append(row.Groups, types.GroupIdentifier{GroupId: g.GroupId, GroupName: g.GroupName})
		}
	}
	return s.showInterface(v, row)
}
