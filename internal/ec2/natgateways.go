package ec2

import (
	"cmp"
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// maxNATGateways is how many there are. AWS has 5 in a zone unless it's asked for more.
const maxNATGateways = 500

var natGateways = kind[state.NATGateway]{
	name:   types.ResourceTypeNatgateway,
	prefix: "nat",
	code:   "NatGatewayNotFound",
	text:   "The Nat Gateway %s was not found",
	table:  func(v *state.View) state.Table[*state.NATGateway] { return v.NATGateways },
	of:     func(r *state.NATGateway) (*string, *[]types.Tag) { return r.NatGatewayId, &r.Tags },
	fields: fields[state.NATGateway]{
		"nat-gateway-id": func(r *state.NATGateway) []string { return optional(r.NatGatewayId) },
		"state":          func(r *state.NATGateway) []string { return []string{string(r.State)} },
		"subnet-id":      func(r *state.NATGateway) []string { return optional(r.SubnetId) },
		"vpc-id":         func(r *state.NATGateway) []string { return optional(r.VpcId) },
	},
}

// CreateNatGateway creates a NAT gateway. A public one has an Elastic IP address.
func (s *Service) CreateNatGateway(ctx context.Context, in *ec2.CreateNatGatewayInput) (*ec2.CreateNatGatewayOutput, error) {
	err := checkMembers(in, "AllocationId", "ClientToken", "ConnectivityType", "PrivateIpAddress", "SubnetId", "TagSpecifications")
	if err != nil {
		return nil, err
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeNatgateway)
	if err != nil {
		return nil, err
	}
	connectivity := cmp.Or(in.ConnectivityType, types.ConnectivityTypePublic)
	if err := checkValue("connectivityType", connectivity, connectivity.Values()); err != nil {
		return nil, err
	}
	if connectivity == types.ConnectivityTypePrivate && in.AllocationId != nil {
		return nil, refuse("InvalidParameterCombination", "A private NAT gateway has no allocationId")
	}
	var row *state.NATGateway
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		subnet, err := subnets.get(tx.View, in.SubnetId, "SubnetId")
		if err != nil {
			return err
		}
		made := &state.NATGateway{NatGateway: types.NatGateway{
			NatGatewayId:     new(state.NewEC2ID("nat")),
			ConnectivityType: connectivity,
			CreateTime:       new(s.now()),
			State:            types.NatGatewayStateAvailable,
			SubnetId:         subnet.SubnetId,
			VpcId:            subnet.VpcId,
			Tags:             tags,
		}}
		row, err = putOnce(s, tx, natGateways, in.ClientToken, in, made, func() error {
			if err := checkRoom(count(tx.NATGateways.All()), maxNATGateways, "NatGatewayLimitExceeded", "NAT gateways"); err != nil {
				return err
			}
			return s.connect(tx, made, subnet, in)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateNatGatewayOutput{NatGateway: &row.NatGateway, ClientToken: in.ClientToken}, nil
}

// connect gives a new NAT gateway its interface, and a public one its address.
func (s *Service) connect(tx *state.Tx, gateway *state.NATGateway, subnet *state.Subnet, in *ec2.CreateNatGatewayInput) error {
	i, err := s.newInterface(tx.View, subnet, in.PrivateIpAddress, []types.GroupIdentifier{})
	if err != nil {
		return err
	}
	i.Description = new("Interface for NAT Gateway " + *gateway.NatGatewayId)
	i.InterfaceType = types.NetworkInterfaceTypeNatGateway
	i.RequesterManaged = aws.Bool(true)
	i.SourceDestCheck = aws.Bool(false)
	i.Status = types.NetworkInterfaceStatusInUse
	tx.NetworkInterfaces.Put(i)
	address := types.NatGatewayAddress{
		NetworkInterfaceId: i.NetworkInterfaceId,
		PrivateIp:          i.PrivateIpAddress,
		IsPrimary:          aws.Bool(true),
		Status:             types.NatGatewayAddressStatusSucceeded,
	}
	if gateway.ConnectivityType == types.ConnectivityTypePublic {
		a, err := addresses.get(tx.View, in.AllocationId, "AllocationId")
		if err != nil {
			return err
		}
		if isAssociated(tx.View, a) {
			return alreadyAssociated(a)
		}
		address.AllocationId = a.AllocationId
		address.PublicIp = a.PublicIp
		address.AssociationId = s.associateAddress(tx, a, &i.NetworkInterface)
	}
	gateway.NatGatewayAddresses = []types.NatGatewayAddress{address}
	return nil
}

// DescribeNatGateways describes NAT gateways, deleted ones for an hour.
func (s *Service) DescribeNatGateways(_ context.Context, in *ec2.DescribeNatGatewaysInput) (*ec2.DescribeNatGatewaysOutput, error) {
	rows, next, err := natGateways.describe(s.store.View(),
		query{"DescribeNatGateways", in.NatGatewayIds, in.Filter, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.NATGateway) types.NatGateway { return r.NatGateway })
	return &ec2.DescribeNatGatewaysOutput{NatGateways: all, NextToken: next}, nil
}

// DeleteNatGateway deletes a NAT gateway. Its address stays allocated.
func (s *Service) DeleteNatGateway(ctx context.Context, in *ec2.DeleteNatGatewayInput) (*ec2.DeleteNatGatewayOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return natGateways.change(tx, in.NatGatewayId, "NatGatewayId", func(r *state.NATGateway) error {
			if r.State == types.NatGatewayStateDeleted {
				return nil
			}
			r.State = types.NatGatewayStateDeleted
			r.DeleteTime = new(s.now())
			for _, a := range r.NatGatewayAddresses {
				for public := range tx.Addresses.By(state.AddressesByInterface, *a.NetworkInterfaceId) {
					tx.Addresses.Put(unassociated(public))
				}
				tx.NetworkInterfaces.Delete(*a.NetworkInterfaceId)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteNatGatewayOutput{NatGatewayId: in.NatGatewayId}, nil
}
