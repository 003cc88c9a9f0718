package ec2

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

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
	row := s.interfaceWith(t.InterfaceID(), aws.String(t.PrivateIPv4()))
	row.AvailabilityZone = t.AvailabilityZone
	if told := t.MACAddress(); told != "" {
		row.MacAddress = &told
	}
	row.Groups = []types.GroupIdentifier{}
	row.RequesterId = &s.opts.ID
	row.RequesterManaged = aws.Bool(true)
	row.SubnetId = aws.String(t.SubnetID())
	s.attach(row, t.CreatedAt, 1)
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
