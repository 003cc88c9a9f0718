package ec2

import (
	"context"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// The default VPC and its subnets: the VPC user guide's "Default VPCs".
var defaultBlock = netip.MustParsePrefix("172.31.0.0/16")

const defaultSubnetBits = 20

// MakeDefaultNetwork makes the default VPC, as every region of an account has one from the start. It does so once: one that was deleted
// stays deleted.
func (s *Service) MakeDefaultNetwork(ctx context.Context) error {
	if s.store.View().DefaultNetworks.Get(s.opts.Region) != nil {
		return nil
	}
	return s.store.Update(ctx, func(tx *state.Tx) error {
		tx.DefaultNetworks.Put(&state.DefaultNetwork{Region: s.opts.Region})
		s.putDefaultVPC(tx)
		return nil
	})
}

// putDefaultVPC makes the default VPC: a subnet in each zone, and an Internet gateway that its main route table leads to.
func (s *Service) putDefaultVPC(tx *state.Tx) *state.VPC {
	vpc := s.putVPC(tx, defaultBlock, []types.Tag{}, true)
	for _, zone := range s.zones() {
		s.putDefaultSubnet(tx, vpc, zone)
	}
	gateway := s.newGateway([]types.Tag{})
	gateway.Attachments = attached(vpc.VpcId)
	tx.InternetGateways.Put(gateway)
	table := new(*tx.MainRouteTable(*vpc.VpcId))
	table.Routes = append(slices.Clip(table.Routes), types.Route{
		DestinationCidrBlock: aws.String("0.0.0.0/0"),
		GatewayId:            gateway.InternetGatewayId,
		Origin:               types.RouteOriginCreateRoute,
	})
	tx.RouteTables.Put(table)
	return vpc
}

// putDefaultSubnet makes a zone's default subnet with the first block of the default VPC that is free, or returns nil.
func (s *Service) putDefaultSubnet(tx *state.Tx, vpc *state.VPC, zone types.AvailabilityZone) *state.Subnet {
	size := uint32(1) << (32 - defaultSubnetBits)
	for n := range uint32(1) << (defaultSubnetBits - defaultBlock.Bits()) {
		block := netip.PrefixFrom(cidr.Nth(defaultBlock, n*size), defaultSubnetBits)
		if checkSubnet(tx.View, vpc, block) != nil {
			continue
		}
		row := new(*s.putSubnet(tx, vpc, zone, block, []types.Tag{}))
		row.DefaultForAz = aws.Bool(true)
		row.MapPublicIpOnLaunch = aws.Bool(true)
		tx.Subnets.Put(row)
		return row
	}
	return nil
}

// CreateDefaultVpc makes a default VPC after it was deleted.
func (s *Service) CreateDefaultVpc(ctx context.Context, in *ec2.CreateDefaultVpcInput) (*ec2.CreateDefaultVpcOutput, error) {
	var row *state.VPC
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		if tx.DefaultVPC() != nil {
			return refuse("DefaultVpcAlreadyExists", "A Default VPC already exists for this account in this region.")
		}
		row = s.putDefaultVPC(tx)
		return checkRoom(count(tx.VPCs.All())-1, maxVPCs, "VpcLimitExceeded", "VPCs")
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateDefaultVpcOutput{Vpc: &row.Vpc}, nil
}

// CreateDefaultSubnet makes a zone's default subnet after it was deleted.
func (s *Service) CreateDefaultSubnet(ctx context.Context, in *ec2.CreateDefaultSubnetInput) (*ec2.CreateDefaultSubnetOutput, error) {
	if err := checkMembers(in, "AvailabilityZone", "AvailabilityZoneId"); err != nil {
		return nil, err
	}
	if in.AvailabilityZone == nil && in.AvailabilityZoneId == nil {
		return nil, missing("AvailabilityZone")
	}
	zone, err := s.pickZone(in.AvailabilityZone, in.AvailabilityZoneId)
	if err != nil {
		return nil, err
	}
	var row *state.Subnet
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc := tx.DefaultVPC()
		if vpc == nil {
			return refuse("DefaultVpcDoesNotExist", "No default VPC exists for this account in this region.")
		}
		if have := tx.DefaultSubnet(*zone.ZoneName); have != nil {
			return refuse("DefaultSubnetAlreadyExistsInAvailabilityZone", "'%s' is already the default subnet in %s.",
				*have.SubnetId, *zone.ZoneName)
		}
		if row = s.putDefaultSubnet(tx, vpc, zone); row == nil {
			return refuse("InsufficientFreeAddressesInSubnet", "The default VPC has no room for another subnet.")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateDefaultSubnetOutput{Subnet: new(showSubnet(s.store.View(), row))}, nil
}
