package resources

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// route has the properties of AWS::EC2::Route. Its physical ID is TABLE|DESTINATION.
type route struct {
	RouteTableId                *string `cfn:"required,create"`
	DestinationCidrBlock        *string `cfn:"create"`
	DestinationIpv6CidrBlock    *string `cfn:"create"`
	DestinationPrefixListId     *string `cfn:"create"`
	EgressOnlyInternetGatewayId *string
	GatewayId                   *string
	InstanceId                  *string
	NatGatewayId                *string
	NetworkInterfaceId          *string
}

func (r *route) destination() string {
	return aws.ToString(cmp.Or(r.DestinationCidrBlock, r.DestinationIpv6CidrBlock, r.DestinationPrefixListId))
}

func routeID(_ Step, r *route) string { return aws.ToString(r.RouteTableId) + "|" + r.destination() }

var _ = add(&kind[*route]{
	name:       "AWS::EC2::Route",
	live:       liveRoute,
	identifier: []string{"RouteTableId", "CidrBlock"},
	attributes: []string{"CidrBlock"},
	id:         routeID,
	create: func(ctx context.Context, s Step, r *route) (string, error) {
		err := did[ec2.CreateRouteOutput](ctx, s, &ec2.CreateRouteInput{
			RouteTableId:                r.RouteTableId,
			DestinationCidrBlock:        r.DestinationCidrBlock,
			DestinationIpv6CidrBlock:    r.DestinationIpv6CidrBlock,
			DestinationPrefixListId:     r.DestinationPrefixListId,
			EgressOnlyInternetGatewayId: r.EgressOnlyInternetGatewayId,
			GatewayId:                   r.GatewayId,
			InstanceId:                  r.InstanceId,
			NatGatewayId:                r.NatGatewayId,
			NetworkInterfaceId:          r.NetworkInterfaceId,
		})
		return routeID(s, r), err
	},
	update: func(ctx context.Context, s Step, _ string, _, r *route) error {
		return did[ec2.ReplaceRouteOutput](ctx, s, &ec2.ReplaceRouteInput{
			RouteTableId:                r.RouteTableId,
			DestinationCidrBlock:        r.DestinationCidrBlock,
			DestinationIpv6CidrBlock:    r.DestinationIpv6CidrBlock,
			DestinationPrefixListId:     r.DestinationPrefixListId,
			EgressOnlyInternetGatewayId: r.EgressOnlyInternetGatewayId,
			GatewayId:                   r.GatewayId,
			InstanceId:                  r.InstanceId,
			NatGatewayId:                r.NatGatewayId,
			NetworkInterfaceId:          r.NetworkInterfaceId,
		})
	},
	delete: func(ctx context.Context, s Step, _ string, r *route) error {
		return did[ec2.DeleteRouteOutput](ctx, s, &ec2.DeleteRouteInput{
			RouteTableId:             r.RouteTableId,
			DestinationCidrBlock:     r.DestinationCidrBlock,
			DestinationIpv6CidrBlock: r.DestinationIpv6CidrBlock,
			DestinationPrefixListId:  r.DestinationPrefixListId,
		})
	},
	read: func(ctx context.Context, s Step, _ string, r *route) (Made, error) {
		in := &ec2.DescribeRouteTablesInput{RouteTableIds: []string{*r.RouteTableId}}
		out, err := call.Do[ec2.DescribeRouteTablesOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		leadsThere := func(o types.Route) bool {
			return aws.ToString(cmp.Or(o.DestinationCidrBlock, o.DestinationIpv6CidrBlock, o.DestinationPrefixListId)) == r.destination()
		}
		if !slices.ContainsFunc(out.RouteTables[0].Routes, leadsThere) {
			return Made{}, errMissing
		}
		return Made{Attributes: map[string]any{"CidrBlock": r.destination()}}, nil
	},
})

func liveRoute(ctx context.Context, s Step, id string, r *route) (*route, error) {
	_, destination, _ := strings.Cut(id, "|")
	in := &ec2.DescribeRouteTablesInput{RouteTableIds: []string{*r.RouteTableId}}
	out, err := call.Do[ec2.DescribeRouteTablesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	for _, o := range out.RouteTables[0].Routes {
		live := &route{
			RouteTableId:                r.RouteTableId,
			DestinationCidrBlock:        o.DestinationCidrBlock,
			DestinationIpv6CidrBlock:    o.DestinationIpv6CidrBlock,
			DestinationPrefixListId:     o.DestinationPrefixListId,
			EgressOnlyInternetGatewayId: o.EgressOnlyInternetGatewayId,
			GatewayId:                   o.GatewayId,
			InstanceId:                  o.InstanceId,
			NatGatewayId:                o.NatGatewayId,
			NetworkInterfaceId:          o.NetworkInterfaceId,
		}
		if live.destination() == destination {
			return live, nil
		}
	}
	return nil, errMissing
}
