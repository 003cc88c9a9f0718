package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// subnetRouteTableAssociation has the properties of AWS::EC2::SubnetRouteTableAssociation. A subnet has one at most, which is found by the
// subnet: with another route table the association has another ID.
type subnetRouteTableAssociation struct {
	SubnetId     *string `cfn:"required,create"`
	RouteTableId *string `cfn:"required"`
}

var _ = add(&kind[*subnetRouteTableAssociation]{
	name:       "AWS::EC2::SubnetRouteTableAssociation",
	live:       liveAssociation,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, a *subnetRouteTableAssociation) (string, error) {
		in := &ec2.AssociateRouteTableInput{SubnetId: a.SubnetId, RouteTableId: a.RouteTableId}
		out, err := call.Do[ec2.AssociateRouteTableOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.AssociationId, nil
	},
	update: func(ctx context.Context, s Step, _ string, _, after *subnetRouteTableAssociation) error {
		old, err := associationOf(ctx, s, after)
		if err != nil || *old.RouteTableId == *after.RouteTableId {
			return err
		}
		in := &ec2.ReplaceRouteTableAssociationInput{AssociationId: old.RouteTableAssociationId, RouteTableId: after.RouteTableId}
		return did[ec2.ReplaceRouteTableAssociationOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, _ string, a *subnetRouteTableAssociation) error {
		old, err := associationOf(ctx, s, a)
		if err != nil {
			return err
		}
		in := &ec2.DisassociateRouteTableInput{AssociationId: old.RouteTableAssociationId}
		return did[ec2.DisassociateRouteTableOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, _ string, a *subnetRouteTableAssociation) (Made, error) {
		is, err := associationOf(ctx, s, a)
		if err != nil {
			return Made{}, err
		}
		id := *is.RouteTableAssociationId
		return Made{Ref: id, Attributes: map[string]any{"Id": id}}, nil
	},
})

// associationOf returns the association that a subnet has.
func associationOf(ctx context.Context, s Step, a *subnetRouteTableAssociation) (types.RouteTableAssociation, error) {
	in := &ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("association.subnet-id", *a.SubnetId)}}
	out, err := call.Do[ec2.DescribeRouteTablesOutput](ctx, s.Services, in)
	if err != nil {
		return types.RouteTableAssociation{}, err
	}
	for _, t := range out.RouteTables {
		for _, is := range t.Associations {
			if aws.ToString(is.SubnetId) == *a.SubnetId {
				return is, nil
			}
		}
	}
	return types.RouteTableAssociation{}, errMissing
}

func liveAssociation(ctx context.Context, s Step, id string, a *subnetRouteTableAssociation) (*subnetRouteTableAssociation, error) {
	if a.SubnetId != nil {
		is, err := associationOf(ctx, s, a)
		return &subnetRouteTableAssociation{SubnetId: is.SubnetId, RouteTableId: is.RouteTableId}, err
	}
	in := &ec2.DescribeRouteTablesInput{Filters: []types.Filter{filter("association.route-table-association-id", id)}}
	out, err := call.Do[ec2.DescribeRouteTablesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	for _, t := range out.RouteTables {
		for _, is := range t.Associations {
			if aws.ToString(is.RouteTableAssociationId) == id {
				return &subnetRouteTableAssociation{SubnetId: is.SubnetId, RouteTableId: is.RouteTableId}, nil
			}
		}
	}
	return nil, errMissing
}
