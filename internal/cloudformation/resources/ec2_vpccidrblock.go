package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// vpcBlock has those properties of AWS::EC2::VPCCidrBlock that Pintle's VPCs can have. Its physical ID is the association's.
type vpcBlock struct {
	VpcId     *string `cfn:"required,create"`
	CidrBlock *string `cfn:"required,create"`
}

var _ = add(&kind[*vpcBlock]{
	name:       "AWS::EC2::VPCCidrBlock",
	live:       liveVPCBlock,
	identifier: []string{"Id", "VpcId"},
	physical:   "Id",
	attributes: []string{"Id"},
	find: func(ctx context.Context, s Step, b *vpcBlock) (string, error) {
		found, err := findVPCBlock(ctx, s, b.VpcId, "cidr-block-association.cidr-block", *b.CidrBlock)
		if unlessMissing(err) != nil || found == nil {
			return "", unlessMissing(err)
		}
		return *found.AssociationId, nil
	},
	create: func(ctx context.Context, s Step, b *vpcBlock) (string, error) {
		in := &ec2.AssociateVpcCidrBlockInput{VpcId: b.VpcId, CidrBlock: b.CidrBlock}
		out, err := call.Do[ec2.AssociateVpcCidrBlockOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.CidrBlockAssociation.AssociationId, nil
	},
	delete: func(ctx context.Context, s Step, id string, _ *vpcBlock) error {
		return did[ec2.DisassociateVpcCidrBlockOutput](ctx, s, &ec2.DisassociateVpcCidrBlockInput{AssociationId: &id})
	},
	read: func(ctx context.Context, s Step, id string, b *vpcBlock) (Made, error) {
		_, err := liveVPCBlock(ctx, s, id, b)
		return Made{Attributes: map[string]any{"Id": id}}, err
	},
})

// findVPCBlock returns the association of a VPC's block, other than the one that it was made with. The filter names it by its block or its ID.
func findVPCBlock(ctx context.Context, s Step, vpc *string, by, value string) (*types.VpcCidrBlockAssociation, error) {
	in := &ec2.DescribeVpcsInput{Filters: []types.Filter{filter(by, value)}}
	if vpc != nil {
		in.Filters = append(in.Filters, filter("vpc-id", *vpc))
	}
	out, err := call.Do[ec2.DescribeVpcsOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	for _, v := range out.Vpcs {
		for _, a := range v.CidrBlockAssociationSet {
			isIt := aws.ToString(a.AssociationId) == value || aws.ToString(a.CidrBlock) == value
			if isIt && aws.ToString(a.CidrBlock) != aws.ToString(v.CidrBlock) {
				return &a, nil
			}
		}
	}
	return nil, errMissing
}

func liveVPCBlock(ctx context.Context, s Step, id string, b *vpcBlock) (*vpcBlock, error) {
	a, err := findVPCBlock(ctx, s, b.VpcId, "cidr-block-association.association-id", id)
	if err != nil {
		return nil, err
	}
	return &vpcBlock{VpcId: b.VpcId, CidrBlock: a.CidrBlock}, nil
}
