package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// egressGateway has the properties of AWS::EC2::EgressOnlyInternetGateway.
type egressGateway struct {
	VpcId *string `cfn:"required,create"`
	Tags  []Tag
}

var _ = add(&kind[*egressGateway]{
	name:       "AWS::EC2::EgressOnlyInternetGateway",
	live:       liveEgressGateway,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	find:       findEC2[*egressGateway],
	create: func(ctx context.Context, s Step, g *egressGateway) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeEgressOnlyInternetGateway, g.Tags)
		if err != nil {
			return "", err
		}
		in := &ec2.CreateEgressOnlyInternetGatewayInput{VpcId: g.VpcId, TagSpecifications: tags}
		out, err := call.Do[ec2.CreateEgressOnlyInternetGatewayOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.EgressOnlyInternetGateway.EgressOnlyInternetGatewayId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *egressGateway) error {
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *egressGateway) error {
		in := &ec2.DeleteEgressOnlyInternetGatewayInput{EgressOnlyInternetGatewayId: &id}
		return did[ec2.DeleteEgressOnlyInternetGatewayOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, id string, g *egressGateway) (Made, error) {
		_, err := liveEgressGateway(ctx, s, id, g)
		return Made{Attributes: map[string]any{"Id": id}}, err
	},
})

func liveEgressGateway(ctx context.Context, s Step, id string, _ *egressGateway) (*egressGateway, error) {
	in := &ec2.DescribeEgressOnlyInternetGatewaysInput{EgressOnlyInternetGatewayIds: []string{id}}
	out, err := call.Do[ec2.DescribeEgressOnlyInternetGatewaysOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	is := out.EgressOnlyInternetGateways[0]
	return &egressGateway{VpcId: is.Attachments[0].VpcId, Tags: ownTags(is.Tags, ec2TagPair)}, nil
}
