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
