package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// networkACL has the properties of AWS::EC2::NetworkAcl.
type networkACL struct {
	VpcId *string `cfn:"required,create"`
	Tags  []Tag
}

var _ = add(&kind[*networkACL]{
	name:       "AWS::EC2::NetworkAcl",
	live:       liveNetworkACL,
	list:       listNetworkACLs,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	find:       findEC2[*networkACL],
	create: func(ctx context.Context, s Step, a *networkACL) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeNetworkAcl, a.Tags)
		if err != nil {
			return "", err
		}
		in := &ec2.CreateNetworkAclInput{VpcId: a.VpcId, TagSpecifications: tags}
		out, err := call.Do[ec2.CreateNetworkAclOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.NetworkAcl.NetworkAclId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *networkACL) error {
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *networkACL) error {
		return did[ec2.DeleteNetworkAclOutput](ctx, s, &ec2.DeleteNetworkAclInput{NetworkAclId: &id})
	},
	read: func(ctx context.Context, s Step, id string, a *networkACL) (Made, error) {
		_, err := liveNetworkACL(ctx, s, id, a)
		return Made{Attributes: map[string]any{"Id": id}}, err
	},
})

// describeNetworkACL returns the first network ACL that a filter finds.
func describeNetworkACL(ctx context.Context, s Step, by ...types.Filter) (*types.NetworkAcl, error) {
	out, err := call.Do[ec2.DescribeNetworkAclsOutput](ctx, s.Services, &ec2.DescribeNetworkAclsInput{Filters: by})
	if err == nil && len(out.NetworkAcls) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	return &out.NetworkAcls[0], nil
}

func liveNetworkACL(ctx context.Context, s Step, id string, _ *networkACL) (*networkACL, error) {
	is, err := describeNetworkACL(ctx, s, filter("network-acl-id", id))
	if err != nil {
		return nil, err
	}
	return &networkACL{VpcId: is.VpcId, Tags: ownTags(is.Tags, ec2TagPair)}, nil
}

func listNetworkACLs(ctx context.Context, s Step, _ *networkACL) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeNetworkAclsOutput](ctx, s.Services, &ec2.DescribeNetworkAclsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.NetworkAcls {
			ids = append(ids, *x.NetworkAclId)
		}
		return ids, out.NextToken, nil
	})
}
