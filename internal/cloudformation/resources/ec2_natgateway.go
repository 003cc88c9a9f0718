package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// natGateway has the properties of AWS::EC2::NatGateway.
type natGateway struct {
	SubnetId         *string                `cfn:"required,create"`
	AllocationId     *string                `cfn:"create"`
	ConnectivityType types.ConnectivityType `cfn:"create"`
	PrivateIpAddress *string                `cfn:"create"`
	Tags             []Tag
}

var _ = add(&kind[*natGateway]{
	name:       "AWS::EC2::NatGateway",
	live:       liveNatGateway,
	identifier: []string{"NatGatewayId"},
	attributes: []string{"NatGatewayId"},
	find:       findEC2[*natGateway],
	create: func(ctx context.Context, s Step, g *natGateway) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeNatgateway, g.Tags)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.CreateNatGatewayOutput](ctx, s.Services, &ec2.CreateNatGatewayInput{
			SubnetId:          g.SubnetId,
			AllocationId:      g.AllocationId,
			ConnectivityType:  g.ConnectivityType,
			PrivateIpAddress:  g.PrivateIpAddress,
			TagSpecifications: tags,
		})
		if err != nil {
			return "", err
		}
		return *out.NatGateway.NatGatewayId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *natGateway) error {
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *natGateway) error {
		return did[ec2.DeleteNatGatewayOutput](ctx, s, &ec2.DeleteNatGatewayInput{NatGatewayId: &id})
	},
	read: func(_ context.Context, _ Step, id string, _ *natGateway) (Made, error) {
		return Made{Attributes: map[string]any{"NatGatewayId": id}}, nil
	},
})

func liveNatGateway(ctx context.Context, s Step, id string, _ *natGateway) (*natGateway, error) {
	out, err := call.Do[ec2.DescribeNatGatewaysOutput](ctx, s.Services, &ec2.DescribeNatGatewaysInput{NatGatewayIds: []string{id}})
	if err != nil {
		return nil, err
	}
	if len(out.NatGateways) == 0 || out.NatGateways[0].State == types.NatGatewayStateDeleted {
		return nil, errMissing
	}
	g := out.NatGateways[0]
	live := &natGateway{SubnetId: g.SubnetId, ConnectivityType: g.ConnectivityType, Tags: ownTags(g.Tags, ec2TagPair)}
	if len(g.NatGatewayAddresses) > 0 {
		live.AllocationId, live.PrivateIpAddress = g.NatGatewayAddresses[0].AllocationId, g.NatGatewayAddresses[0].PrivateIp
	}
	return live, nil
}
