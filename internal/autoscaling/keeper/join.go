package keeper

import (
	"errors"
	"net/netip"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// join puts a new instance into one of the group's subnets in its zone, or else into the zone's default one. One without a default subnet,
// or with a full one, has instances too: they are in no network, as zones may have any names here.
func (s *step) join(row *state.Instance) error {
	zone := *row.Placement.AvailabilityZone
	named := false
	for _, id := range s.group.Subnets() {
		subnet := s.tx.Subnets.Get(id)
		if subnet == nil || aws.ToString(subnet.AvailabilityZone) != zone {
			continue
		}
		named = true
		if s.joinSubnet(row, subnet) {
			return nil
		}
	}
	if named {
		return errors.New("there are not enough free addresses in the subnets of the zone " + zone)
	}
	if subnet := s.tx.DefaultSubnet(zone); subnet != nil && row.SubnetId == nil {
		s.joinSubnet(row, subnet)
	}
	return nil
}

// joinSubnet reports whether a subnet had an address left for an instance.
func (s *step) joinSubnet(row *state.Instance, subnet *state.Subnet) bool {
	isTaken := func(a netip.Addr) bool { return s.tx.IsTaken(*subnet.SubnetId, a.String()) }
	address, ok := cidr.Free(netip.MustParsePrefix(*subnet.CidrBlock), *row.InstanceId, isTaken)
	if ok {
		row.Join(subnet, address.String(), s.groups(row, *subnet.VpcId))
	}
	return ok
}

// groups returns an instance's security groups with their names, or the VPC's default one. Those that don't exist stay as the template
// has them: templates were never checked.
func (s *step) groups(row *state.Instance, vpc string) (out []ec2types.GroupIdentifier) {
	for _, g := range row.SecurityGroups {
		for known := range s.tx.SecurityGroups.By(state.SecurityGroupsByVPC, vpc) {
			if *known.GroupId == aws.ToString(g.GroupId) || *known.GroupName == aws.ToString(g.GroupName) {
				g = ec2types.GroupIdentifier{GroupId: known.GroupId, GroupName: known.GroupName}
			}
		}
		out = append(out, g)
	}
	if g := s.tx.DefaultSecurityGroup(vpc); len(out) == 0 && g != nil {
		out = append(out, ec2types.GroupIdentifier{GroupId: g.GroupId, GroupName: g.GroupName})
	}
	return out
}
