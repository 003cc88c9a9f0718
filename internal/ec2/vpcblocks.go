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

// AssociateVpcCidrBlock gives a VPC another block. Each of its route tables gets the block's local route.
func (s *Service) AssociateVpcCidrBlock(
	ctx context.Context, in *ec2.AssociateVpcCidrBlockInput,
) (*ec2.AssociateVpcCidrBlockOutput, error) {
	if err := checkMembers(in, "VpcId", "CidrBlock"); err != nil {
		return nil, err
	}
	block, err := readVPCBlock(in.CidrBlock)
	if err != nil {
		return nil, err
	}
	added := newBlock(block)
	err = s.write(ctx, nil, func(tx *state.Tx) error {
		err := vpcs.change(tx, in.VpcId, "VpcId", func(r *state.VPC) error {
			if slices.ContainsFunc(blocksOf(r), func(b string) bool { return netip.MustParsePrefix(b).Overlaps(block) }) {
				return refuse("InvalidVpc.Range", "The CIDR '%s' is invalid: it overlaps with another one of the VPC.", block)
			}
			r.CidrBlockAssociationSet = append(slices.Clip(r.CidrBlockAssociationSet), added)
			return checkRoom(len(r.CidrBlockAssociationSet)-1, maxBlocks, "CidrLimitExceeded", "CIDR blocks of a VPC")
		})
		if err != nil {
			return err
		}
		for t := range tx.RouteTables.By(state.RouteTablesByVPC, *in.VpcId) {
			row := new(*t)
			row.Routes = append(slices.Clip(row.Routes), localRoute(block.String()))
			tx.RouteTables.Put(row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AssociateVpcCidrBlockOutput{VpcId: in.VpcId, CidrBlockAssociation: &added}, nil
}

// DisassociateVpcCidrBlock takes a block from a VPC, unless it's the first one or has subnets.
func (s *Service) DisassociateVpcCidrBlock(
	ctx context.Context, in *ec2.DisassociateVpcCidrBlockInput,
) (*ec2.DisassociateVpcCidrBlockOutput, error) {
	id := aws.ToString(in.AssociationId)
	if id == "" {
		return nil, missing("AssociationId")
	}
	named := func(a types.VpcCidrBlockAssociation) bool { return *a.AssociationId == id }
	out := &ec2.DisassociateVpcCidrBlockOutput{}
	err := s.write(ctx, nil, func(tx *state.Tx) error {
		for vpc := range tx.VPCs.All() {
			if at := slices.IndexFunc(vpc.CidrBlockAssociationSet, named); at >= 0 {
				out.VpcId = vpc.VpcId
				out.CidrBlockAssociation = new(vpc.CidrBlockAssociationSet[at])
				return removeBlock(tx, vpc, at)
			}
		}
		return refuse("InvalidVpcCidrBlockAssociationID.NotFound", "The vpc CIDR block association ID '%s' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	out.CidrBlockAssociation.CidrBlockState = &types.VpcCidrBlockState{State: types.VpcCidrBlockStateCodeDisassociating}
	return out, nil
}

// removeBlock takes the block at an index from a VPC, and its local route from the route tables.
func removeBlock(tx *state.Tx, vpc *state.VPC, at int) error {
	a := vpc.CidrBlockAssociationSet[at]
	block := netip.MustParsePrefix(*a.CidrBlock)
	if at == 0 {
		return refuse("OperationNotPermitted", "The vpc CIDR block with association ID %s may not be disassociated. "+
			"It is the primary IPv4 CIDR block of the VPC", *a.AssociationId)
	}
	for sub := range tx.Subnets.By(state.SubnetsByVPC, *vpc.VpcId) {
		if cidr.Contains(block, netip.MustParsePrefix(*sub.CidrBlock)) {
			return refuse("DependencyViolation", "The vpc CIDR block '%s' has dependencies and cannot be disassociated.", block)
		}
	}
	row := new(*vpc)
	row.CidrBlockAssociationSet = slices.Delete(slices.Clone(row.CidrBlockAssociationSet), at, at+1)
	tx.VPCs.Put(row)
	for t := range tx.RouteTables.By(state.RouteTablesByVPC, *vpc.VpcId) {
		row := new(*t)
		row.Routes = slices.DeleteFunc(slices.Clone(row.Routes), func(r types.Route) bool {
			return isLocal(&r) && aws.ToString(r.DestinationCidrBlock) == *a.CidrBlock
		})
		tx.RouteTables.Put(row)
	}
	return nil
}
