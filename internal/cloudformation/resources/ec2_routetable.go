package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// routeTable has the properties of AWS::EC2::RouteTable.
type routeTable struct {
	VpcId *string `cfn:"required,create"`
	Tags  []Tag
}

var _ = add(&kind[*routeTable]{
	name:       "AWS::EC2::RouteTable",
	live:       liveRouteTable,
	list:       listRouteTables,
	identifier: []string{"RouteTableId"},
	attributes: []string{"RouteTableId"},
	find:       findEC2[*routeTable],
	create: func(ctx context.Context, s Step, t *routeTable) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeRouteTable, t.Tags)
		if err != nil {
			return "", err
		}
		in := &ec2.CreateRouteTableInput{VpcId: t.VpcId, TagSpecifications: tags}
		out, err := call.Do[ec2.CreateRouteTableOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.RouteTable.RouteTableId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *routeTable) error {
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *routeTable) error {
		return did[ec2.DeleteRouteTableOutput](ctx, s, &ec2.DeleteRouteTableInput{RouteTableId: &id})
	},
	read: func(_ context.Context, _ Step, id string, _ *routeTable) (Made, error) {
		return Made{Attributes: map[string]any{"RouteTableId": id}}, nil
	},
})

func liveRouteTable(ctx context.Context, s Step, id string, _ *routeTable) (*routeTable, error) {
	out, err := call.Do[ec2.DescribeRouteTablesOutput](ctx, s.Services, &ec2.DescribeRouteTablesInput{RouteTableIds: []string{id}})
	if err != nil {
		return nil, err
	}
	return &routeTable{VpcId: out.RouteTables[0].VpcId, Tags: ownTags(out.RouteTables[0].Tags, ec2TagPair)}, nil
}

func listRouteTables(ctx context.Context, s Step, _ *routeTable) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeRouteTablesOutput](ctx, s.Services, &ec2.DescribeRouteTablesInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.RouteTables {
			ids = append(ids, *x.RouteTableId)
		}
		return ids, out.NextToken, nil
	})
}
