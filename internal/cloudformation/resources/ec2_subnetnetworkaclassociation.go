package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// subnetACL has the properties of AWS::EC2::SubnetNetworkAclAssociation. A subnet always has one network ACL: without this resource, that of
// its VPC. Its physical ID is the association's.
type subnetACL struct {
	NetworkAclId *string `cfn:"required,create"`
	SubnetId     *string `cfn:"required,create"`
}

var _ = add(&kind[*subnetACL]{
	name:       "AWS::EC2::SubnetNetworkAclAssociation",
	live:       liveSubnetACL,
	identifier: []string{"AssociationId"},
	attributes: []string{"AssociationId"},
	create: func(ctx context.Context, s Step, a *subnetACL) (string, error) {
		_, has, err := associatedACL(ctx, s, "association.subnet-id", *a.SubnetId)
		if err != nil {
			return "", err
		}
		in := &ec2.ReplaceNetworkAclAssociationInput{AssociationId: has.NetworkAclAssociationId, NetworkAclId: a.NetworkAclId}
		out, err := call.Do[ec2.ReplaceNetworkAclAssociationOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.NewAssociationId, nil
	},
	delete: func(ctx context.Context, s Step, id string, _ *subnetACL) error {
		acl, _, err := associatedACL(ctx, s, "association.association-id", id)
		if err != nil {
			return err
		}
		usual, err := describeNetworkACL(ctx, s, filter("vpc-id", *acl.VpcId), filter("default", "true"))
		if err != nil {
			return err
		}
		in := &ec2.ReplaceNetworkAclAssociationInput{AssociationId: &id, NetworkAclId: usual.NetworkAclId}
		return did[ec2.ReplaceNetworkAclAssociationOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, id string, a *subnetACL) (Made, error) {
		_, err := liveSubnetACL(ctx, s, id, a)
		return Made{Attributes: map[string]any{"AssociationId": id}}, err
	},
})

// associatedACL returns the network ACL with an association, which a filter finds, and the association.
func associatedACL(ctx context.Context, s Step, by, value string) (*types.NetworkAcl, *types.NetworkAclAssociation, error) {
	acl, err := describeNetworkACL(ctx, s, filter(by, value))
	if err != nil {
		return nil, nil, err
	}
	for _, a := range acl.Associations {
		if *a.SubnetId == value || *a.NetworkAclAssociationId == value {
			return acl, &a, nil
		}
	}
	return nil, nil, errMissing
}

func liveSubnetACL(ctx context.Context, s Step, id string, _ *subnetACL) (*subnetACL, error) {
	acl, a, err := associatedACL(ctx, s, "association.association-id", id)
	if err != nil {
		return nil, err
	}
	return &subnetACL{NetworkAclId: acl.NetworkAclId, SubnetId: a.SubnetId}, nil
}
