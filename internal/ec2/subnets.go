package ec2

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// maxSubnets is how many subnets a VPC has: the VPC user guide's "Amazon VPC quotas".
const maxSubnets = 200

var subnets = kind[state.Subnet]{
	name:   types.ResourceTypeSubnet,
	prefix: "subnet",
	code:   "InvalidSubnetID.NotFound",
	text:   "The subnet ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.Subnet] { return v.Subnets },
	of:     func(r *state.Subnet) (*string, *[]types.Tag) { return r.SubnetId, &r.Tags },
	fields: fields[state.Subnet]{
		"availability-zone":       func(r *state.Subnet) []string { return optional(r.AvailabilityZone) },
		"availabilityZone":        func(r *state.Subnet) []string { return optional(r.AvailabilityZone) },
		"availability-zone-id":    func(r *state.Subnet) []string { return optional(r.AvailabilityZoneId) },
		"availabilityZoneId":      func(r *state.Subnet) []string { return optional(r.AvailabilityZoneId) },
		"cidr":                    func(r *state.Subnet) []string { return optional(r.CidrBlock) },
		"cidr-block":              func(r *state.Subnet) []string { return optional(r.CidrBlock) },
		"cidrBlock":               func(r *state.Subnet) []string { return optional(r.CidrBlock) },
		"default-for-az":          func(r *state.Subnet) []string { return yes(r.DefaultForAz) },
		"defaultForAz":            func(r *state.Subnet) []string { return yes(r.DefaultForAz) },
		"ipv6-native":             func(r *state.Subnet) []string { return yes(r.Ipv6Native) },
		"map-public-ip-on-launch": func(r *state.Subnet) []string { return yes(r.MapPublicIpOnLaunch) },
		"owner-id":                func(r *state.Subnet) []string { return optional(r.OwnerId) },
		"state":                   func(r *state.Subnet) []string { return []string{string(r.State)} },
		"subnet-arn":              func(r *state.Subnet) []string { return optional(r.SubnetArn) },
		"subnet-id":               func(r *state.Subnet) []string { return optional(r.SubnetId) },
		"vpc-id":                  func(r *state.Subnet) []string { return optional(r.VpcId) },
	},
}

// CreateSubnet creates a subnet in a VPC.
func (s *Service) CreateSubnet(ctx context.Context, in *ec2.CreateSubnetInput) (*ec2.CreateSubnetOutput, error) {
	if err := checkMembers(in, "VpcId", "AvailabilityZone", "AvailabilityZoneId", "CidrBlock", "TagSpecifications"); err != nil {
		return nil, err
	}
	block, err := readBlock(in.CidrBlock)
	if err != nil {
		return nil, err
	}
	zone, err := s.pickZone(in.AvailabilityZone, in.AvailabilityZoneId)
	if err != nil {
		return nil, err
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeSubnet)
	if err != nil {
		return nil, err
	}
	var row *state.Subnet
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		if err := checkSubnet(tx.View, vpc, block); err != nil {
			return err
		}
		row = s.putSubnet(tx, vpc, zone, block, tags)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateSubnetOutput{Subnet: new(showSubnet(s.store.View(), row))}, nil
}

// pickZone returns the zone that a call gives by name or by id, or the region's first. What is "" isn't given.
func (s *Service) pickZone(name, id *string) (types.AvailabilityZone, error) {
	name, id = given(name), given(id)
	all := s.zones()
	if name == nil && id == nil {
		return all[0], nil
	}
	names := make([]string, len(all))
	for i, z := range all {
		if (name == nil || *z.ZoneName == *name) && (id == nil || *z.ZoneId == *id) {
			return z, nil
		}
		names[i] = *z.ZoneName
	}
	parameter, value := "availabilityZone", aws.ToString(name)
	if name == nil {
		parameter, value = "availabilityZoneId", *id
	}
	return types.AvailabilityZone{}, refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid. Subnets can currently only be "+
		"created in the following availability zones: %s.", value, parameter, strings.Join(names, ", "))
}

// checkSubnet refuses a block that isn't inside one of the VPC's, or that overlaps with another subnet's.
func checkSubnet(v *state.View, vpc *state.VPC, block netip.Prefix) error {
	inside := slices.ContainsFunc(blocksOf(vpc), func(b string) bool { return cidr.Contains(netip.MustParsePrefix(b), block) })
	if !inside || !cidr.IsAllowed(block) {
		return refuse("InvalidSubnet.Range", "The CIDR '%s' is invalid.", block)
	}
	have := 0
	for other := range v.Subnets.By(state.SubnetsByVPC, *vpc.VpcId) {
		if netip.MustParsePrefix(*other.CidrBlock).Overlaps(block) {
			return refuse("InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", block)
		}
		have++
	}
	return checkRoom(have, maxSubnets, "SubnetLimitExceeded", "subnets of a VPC")
}

// putSubnet makes a subnet, which gets the VPC's default network ACL.
func (s *Service) putSubnet(
	tx *state.Tx, vpc *state.VPC, zone types.AvailabilityZone, block netip.Prefix, tags []types.Tag,
) *state.Subnet {
	id := state.NewEC2ID("subnet")
	row := &state.Subnet{Subnet: types.Subnet{
		SubnetId:                    &id,
		SubnetArn:                   new(s.opts.ARN("ec2", "subnet/"+id)),
		VpcId:                       vpc.VpcId,
		CidrBlock:                   new(block.String()),
		AvailabilityZone:            zone.ZoneName,
		AvailabilityZoneId:          zone.ZoneId,
		AssignIpv6AddressOnCreation: aws.Bool(false),
		DefaultForAz:                aws.Bool(false),
		EnableDns64:                 aws.Bool(false),
		Ipv6CidrBlockAssociationSet: []types.SubnetIpv6CidrBlockAssociation{},
		Ipv6Native:                  aws.Bool(false),
		MapCustomerOwnedIpOnLaunch:  aws.Bool(false),
		MapPublicIpOnLaunch:         aws.Bool(false),
		OwnerId:                     &s.opts.ID,
		PrivateDnsNameOptionsOnLaunch: &types.PrivateDnsNameOptionsOnLaunch{
			HostnameType:                    types.HostnameTypeIpName,
			EnableResourceNameDnsARecord:    aws.Bool(false),
			EnableResourceNameDnsAAAARecord: aws.Bool(false),
		},
		State: types.SubnetStateAvailable,
		Tags:  tags,
	}}
	tx.Subnets.Put(row)
	acl := new(*tx.DefaultNetworkACL(*vpc.VpcId))
	acl.Associations = append(slices.Clip(acl.Associations), newACLAssociation(*acl.NetworkAclId, id))
	tx.NetworkACLs.Put(acl)
	return row
}

// showSubnet returns a subnet with its free addresses counted.
func showSubnet(v *state.View, r *state.Subnet) types.Subnet {
	shown := r.Subnet
	used := count(v.Instances.By(state.InstancesBySubnet, *r.SubnetId)) + count(v.NetworkInterfaces.By(state.InterfacesBySubnet, *r.SubnetId))
	shown.AvailableIpAddressCount = new(int32(cidr.Usable(netip.MustParsePrefix(*r.CidrBlock)) - used))
	return shown
}

// DescribeSubnets describes subnets.
func (s *Service) DescribeSubnets(_ context.Context, in *ec2.DescribeSubnetsInput) (*ec2.DescribeSubnetsOutput, error) {
	v := s.store.View()
	k := subnets.with("available-ip-address-count", func(r *state.Subnet) []string {
		return []string{strconv.Itoa(int(*showSubnet(v, r).AvailableIpAddressCount))}
	})
	rows, next, err := k.describe(v, query{"DescribeSubnets", in.SubnetIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.Subnet) types.Subnet { return showSubnet(v, r) })
	return &ec2.DescribeSubnetsOutput{Subnets: all, NextToken: next}, nil
}

// ModifySubnetAttribute changes what instances get that are launched into a subnet.
func (s *Service) ModifySubnetAttribute(
	ctx context.Context, in *ec2.ModifySubnetAttributeInput,
) (*ec2.ModifySubnetAttributeOutput, error) {
	err := checkMembers(in, "SubnetId", "MapPublicIpOnLaunch", "PrivateDnsHostnameTypeOnLaunch", "EnableResourceNameDnsARecordOnLaunch")
	if err != nil {
		return nil, err
	}
	if t := in.PrivateDnsHostnameTypeOnLaunch; t != "" && !slices.Contains(t.Values(), t) {
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter privateDnsHostnameTypeOnLaunch is invalid.", t)
	}
	err = s.write(ctx, nil, func(tx *state.Tx) error {
		return subnets.change(tx, in.SubnetId, "SubnetId", func(r *state.Subnet) error {
			if a := in.MapPublicIpOnLaunch; a != nil {
				r.MapPublicIpOnLaunch = new(aws.ToBool(a.Value))
			}
			options := new(*r.PrivateDnsNameOptionsOnLaunch)
			if t := in.PrivateDnsHostnameTypeOnLaunch; t != "" {
				options.HostnameType = t
			}
			if a := in.EnableResourceNameDnsARecordOnLaunch; a != nil {
				options.EnableResourceNameDnsARecord = new(aws.ToBool(a.Value))
			}
			r.PrivateDnsNameOptionsOnLaunch = options
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ModifySubnetAttributeOutput{}, nil
}

// DeleteSubnet deletes a subnet in which nothing has an address.
func (s *Service) DeleteSubnet(ctx context.Context, in *ec2.DeleteSubnetInput) (*ec2.DeleteSubnetOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err := subnets.get(tx.View, in.SubnetId, "SubnetId")
		if err != nil {
			return err
		}
		id := *row.SubnetId
		if count(tx.Instances.By(state.InstancesBySubnet, id))+count(tx.NetworkInterfaces.By(state.InterfacesBySubnet, id)) > 0 {
			return refuse("DependencyViolation", "The subnet '%s' has dependencies and cannot be deleted.", id)
		}
		tx.Subnets.Delete(id)
		unassociateSubnet(tx, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteSubnetOutput{}, nil
}

// unassociateSubnet takes a subnet that is deleted from its network ACL and its route table.
func unassociateSubnet(tx *state.Tx, row *state.Subnet) {
	for acl := range tx.NetworkACLs.By(state.NetworkACLsByVPC, *row.VpcId) {
		left := slices.DeleteFunc(slices.Clone(acl.Associations), func(a types.NetworkAclAssociation) bool { return *a.SubnetId == *row.SubnetId })
		if len(left) < len(acl.Associations) {
			c := new(*acl)
			c.Associations = left
			tx.NetworkACLs.Put(c)
		}
	}
	for table := range tx.RouteTables.By(state.RouteTablesByVPC, *row.VpcId) {
		left := slices.DeleteFunc(slices.Clone(table.Associations), func(a types.RouteTableAssociation) bool {
			return aws.ToString(a.SubnetId) == *row.SubnetId
		})
		if len(left) < len(table.Associations) {
			c := new(*table)
			c.Associations = left
			tx.RouteTables.Put(c)
		}
	}
}
