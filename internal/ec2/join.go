package ec2

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/dns"
	"github.com/pintle/pintle/internal/state"
)

// join puts a new instance into the subnet that its launch names, or else into its zone's default one. Zones may have any names here, so
// one without a default subnet, or with a full one, has instances too. They are in no network.
func join(v *state.View, row *state.Instance, data *types.ResponseLaunchTemplateData, zone *string) error {
	if data.KeyName != nil {
		if _, err := findKey(v, *data.KeyName); err != nil {
			return err
		}
	}
	if row.SubnetId == nil {
		subnet := v.DefaultSubnet(*row.Placement.AvailabilityZone)
		if subnet == nil {
			return nil
		}
		groups, err := launchGroups(v, *subnet.VpcId, data)
		if err != nil {
			return err
		}
		if address, err := pickAddress(v, subnet, *row.InstanceId, nil); err == nil {
			row.Join(subnet, address, groups)
		}
		return nil
	}
	subnet, err := subnets.get(v, row.SubnetId, "SubnetId")
	if err != nil {
		return err
	}
	if zone != nil && *zone != *subnet.AvailabilityZone {
		return refuse("InvalidParameterValue", "The subnet '%s' is in the Availability Zone %s, not in %s",
			*subnet.SubnetId, *subnet.AvailabilityZone, *zone)
	}
	groups, err := launchGroups(v, *subnet.VpcId, data)
	if err != nil {
		return err
	}
	address, err := pickAddress(v, subnet, *row.InstanceId, nil)
	if err != nil {
		return err
	}
	row.Placement = &types.Placement{AvailabilityZone: subnet.AvailabilityZone, Tenancy: types.TenancyDefault}
	row.Join(subnet, address, groups)
	return nil
}

// launchGroups returns the groups that a launch names by id and by name, or the VPC's default one. Templates and launch configurations
// may have names among the ids: Ref of a group in the default VPC is one.
func launchGroups(v *state.View, vpc string, data *types.ResponseLaunchTemplateData) ([]types.GroupIdentifier, error) {
	named := slices.Concat(data.SecurityGroupIds, data.SecurityGroups)
	if len(data.NetworkInterfaces) > 0 {
		named = append(named, data.NetworkInterfaces[0].Groups...)
	}
	var ids []string
	for _, name := range named {
		if strings.HasPrefix(name, "sg-") {
			ids = append(ids, name)
			continue
		}
		g, err := groupNamed(v, vpc, name)
		if err != nil {
			return nil, err
		}
		ids = append(ids, *g.GroupId)
	}
	return members(v, vpc, ids)
}

// showMachineNetwork adds to a machine that others have started where an instance is that is launched without a network: the default subnet of
// its zone, and the default group.
func (s *Service) showMachineNetwork(v *state.View, i *types.Instance) {
	subnet := v.DefaultSubnet(*i.Placement.AvailabilityZone)
	if subnet == nil || i.PrivateIpAddress == nil {
		return
	}
	row := &state.Instance{Instance: *i}
	row.Join(subnet, *i.PrivateIpAddress, nil)
	if g := v.DefaultSecurityGroup(*subnet.VpcId); g != nil {
		row.SecurityGroups = []types.GroupIdentifier{{GroupId: g.GroupId, GroupName: g.GroupName}}
	}
	*i = row.Instance
	s.showNetwork(v, i, row)
}

// showNetwork adds to a running instance what follows from its subnet.
func (s *Service) showNetwork(v *state.View, i *types.Instance, row *state.Instance) {
	if row.Name() == types.InstanceStateNameTerminated {
		i.SubnetId = nil
		i.VpcId = nil
		i.PrivateIpAddress = nil
		return
	}
	if i.PrivateIpAddress != nil && aws.ToString(i.PrivateDnsName) == "" {
		i.PrivateDnsName = new(dns.Name(*i.PrivateIpAddress, s.opts.Region))
	}
	if row.SubnetId == nil || row.VpcId == nil || row.IsOver() {
		return
	}
	same := row.Clone()
	same.PrivateIpAddress = i.PrivateIpAddress // as the machine reports it
	e := s.showLaunched(v, same)
	shown := types.InstanceNetworkInterface{
		NetworkInterfaceId: e.NetworkInterfaceId,
		Description:        e.Description,
		Groups:             e.Groups,
		InterfaceType:      aws.String(string(e.InterfaceType)),
		Ipv6Addresses:      []types.InstanceIpv6Address{},
		MacAddress:         e.MacAddress,
		OwnerId:            e.OwnerId,
		PrivateDnsName:     e.PrivateDnsName,
		PrivateIpAddress:   e.PrivateIpAddress,
		SourceDestCheck:    e.SourceDestCheck,
		Status:             e.Status,
		SubnetId:           e.SubnetId,
		VpcId:              e.VpcId,
		Attachment: &types.InstanceNetworkInterfaceAttachment{
			AttachmentId:        e.Attachment.AttachmentId,
			AttachTime:          e.Attachment.AttachTime,
			DeleteOnTermination: e.Attachment.DeleteOnTermination,
			DeviceIndex:         e.Attachment.DeviceIndex,
			NetworkCardIndex:    e.Attachment.NetworkCardIndex,
			Status:              e.Attachment.Status,
		},
	}
	if a := e.Association; a != nil {
		shown.Association = &types.InstanceNetworkInterfaceAssociation{
			IpOwnerId:     a.IpOwnerId,
			PublicIp:      a.PublicIp,
			PublicDnsName: a.PublicDnsName,
		}
		i.PublicIpAddress = a.PublicIp
	}
	shown.PrivateIpAddresses = []types.InstancePrivateIpAddress{{
		Primary:          aws.Bool(true),
		PrivateIpAddress: e.PrivateIpAddress,
		PrivateDnsName:   e.PrivateDnsName,
		Association:      shown.Association,
	}}
	i.NetworkInterfaces = []types.InstanceNetworkInterface{shown}
	i.SourceDestCheck = aws.Bool(true)
}
