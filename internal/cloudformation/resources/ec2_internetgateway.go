package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// internetGateway has the properties of AWS::EC2::InternetGateway.
type internetGateway struct{ Tags []Tag }

var _ = add(&kind[*internetGateway]{
	name:       "AWS::EC2::InternetGateway",
	live:       liveInternetGateway,
	list:       listInternetGateways,
	identifier: []string{"InternetGatewayId"},
	attributes: []string{"InternetGatewayId"},
	find:       findEC2[*internetGateway],
	create: func(ctx context.Context, s Step, g *internetGateway) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeInternetGateway, g.Tags)
		if err != nil {
			return "", err
		}
		in := &ec2.CreateInternetGatewayInput{TagSpecifications: tags}
		out, err := call.Do[ec2.CreateInternetGatewayOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.InternetGateway.InternetGatewayId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *internetGateway) error {
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *internetGateway) error {
		in := &ec2.DeleteInternetGatewayInput{InternetGatewayId: &id}
		return did[ec2.DeleteInternetGatewayOutput](ctx, s, in)
	},
	read: func(_ context.Context, _ Step, id string, _ *internetGateway) (Made, error) {
		return Made{Attributes: map[string]any{"InternetGatewayId": id}}, nil
	},
})

func liveInternetGateway(ctx context.Context, s Step, id string, _ *internetGateway) (*internetGateway, error) {
	in := &ec2.DescribeInternetGatewaysInput{InternetGatewayIds: []string{id}}
	out, err := call.Do[ec2.DescribeInternetGatewaysOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	return &internetGateway{Tags: ownTags(out.InternetGateways[0].Tags, ec2TagPair)}, nil
}

func listInternetGateways(ctx context.Context, s Step, _ *internetGateway) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeInternetGatewaysOutput](ctx, s.Services, &ec2.DescribeInternetGatewaysInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.InternetGateways {
			ids = append(ids, *x.InternetGatewayId)
		}
		return ids, out.NextToken, nil
	})
}
