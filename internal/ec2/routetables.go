package ec2

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// maxRouteTables is how many route tables a VPC has: the VPC user guide's "Amazon VPC quotas".
const maxRouteTables = 200

var routeTables = kind[state.RouteTable]{
	name:   types.ResourceTypeRouteTable,
	prefix: "rtb",
	code:   "InvalidRouteTableID.NotFound",
	text:   "The routeTable ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.RouteTable] { return v.RouteTables },
	of:     func(r *state.RouteTable) (*string, *[]types.Tag) { return r.RouteTableId, &r.Tags },
	fields: fields[state.RouteTable]{
		"association.gateway-id": ofAssociations(func(a *types.RouteTableAssociation) *string { return a.GatewayId }),
		"association.main": ofAssociations(func(a *types.RouteTableAssociation) *string {
			return new(strconv.FormatBool(aws.ToBool(a.Main)))
		}),
		"association.route-table-association-id": ofAssociations(func(a *types.RouteTableAssociation) *string { return a.RouteTableAssociationId }),
		"association.route-table-id":             ofAssociations(func(a *types.RouteTableAssociation) *string { return a.RouteTableId }),
		"association.subnet-id":                  ofAssociations(func(a *types.RouteTableAssociation) *string { return a.SubnetId }),
		"owner-id":                               func(r *state.RouteTable) []string { return optional(r.OwnerId) },
		"route-table-id":                         func(r *state.RouteTable) []string { return optional(r.RouteTableId) },
		"route.destination-cidr-block":           ofRoutes(func(r *types.Route) *string { return r.DestinationCidrBlock }),
		"route.destination-ipv6-cidr-block":      ofRoutes(func(r *types.Route) *string { return r.DestinationIpv6CidrBlock }),
		"route.destination-prefix-list-id":       ofRoutes(func(r *types.Route) *string { return r.DestinationPrefixListId }),
		"route.egress-only-internet-gateway-id":  ofRoutes(func(r *types.Route) *string { return r.EgressOnlyInternetGatewayId }),
		"route.gateway-id":                       ofRoutes(func(r *types.Route) *string { return r.GatewayId }),
		"route.instance-id":                      ofRoutes(func(r *types.Route) *string { return r.InstanceId }),
		"route.nat-gateway-id":                   ofRoutes(func(r *types.Route) *string { return r.NatGatewayId }),
		"route.transit-gateway-id":               ofRoutes(func(r *types.Route) *string { return r.TransitGatewayId }),
		"route.vpc-peering-connection-id":        ofRoutes(func(r *types.Route) *string { return r.VpcPeeringConnectionId }),
		"route.origin":                           ofRoutes(func(r *types.Route) *string { return (*string)(&r.Origin) }),
		"vpc-id":                                 func(r *state.RouteTable) []string { return optional(r.VpcId) },
	},
}

func ofAssociations(of func(*types.RouteTableAssociation) *string) func(*state.RouteTable) []string {
	return func(r *state.RouteTable) []string { return values(r.Associations, of) }
}

func ofRoutes(of func(*types.Route) *string) func(*state.RouteTable) []string {
	return func(r *state.RouteTable) []string { return values(r.Routes, of) }
}

// newRouteTable makes a route table with the local routes of its VPC.
func (s *Service) newRouteTable(vpc *state.VPC, tags []types.Tag) *state.RouteTable {
	row := &state.RouteTable{RouteTable: types.RouteTable{
		RouteTableId:    new(state.NewEC2ID("rtb")),
		VpcId:           vpc.VpcId,
		OwnerId:         &s.opts.ID,
		Associations:    []types.RouteTableAssociation{},
		PropagatingVgws: []types.PropagatingVgw{},
		Tags:            tags,
	}}
	for _, block := range blocksOf(vpc) {
		row.Routes = append(row.Routes, localRoute(block))
	}
	return row
}

// putMainRouteTable makes a VPC's main route table.
func (s *Service) putMainRouteTable(tx *state.Tx, vpc *state.VPC) {
	row := s.newRouteTable(vpc, []types.Tag{})
	a := newAssociation(*row.RouteTableId)
	a.Main = aws.Bool(true)
	row.Associations = append(row.Associations, a)
	tx.RouteTables.Put(row)
}

func newAssociation(table string) types.RouteTableAssociation {
	return types.RouteTableAssociation{
		RouteTableAssociationId: new(state.NewEC2ID("rtbassoc")),
		RouteTableId:            &table,
		Main:                    aws.Bool(false),
		AssociationState:        associated(),
	}
}

func associated() *types.RouteTableAssociationState {
	return &types.RouteTableAssociationState{State: types.RouteTableAssociationStateCodeAssociated}
}

// CreateRouteTable creates a route table.
func (s *Service) CreateRouteTable(ctx context.Context, in *ec2.CreateRouteTableInput) (*ec2.CreateRouteTableOutput, error) {
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeRouteTable)
	if err != nil {
		return nil, err
	}
	var row *state.RouteTable
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		row, err = putOnce(s, tx, routeTables, in.ClientToken, in, s.newRouteTable(vpc, tags), func() error {
			have := count(tx.RouteTables.By(state.RouteTablesByVPC, *vpc.VpcId))
			return checkRoom(have, maxRouteTables, "RouteTableLimitExceeded", "route tables of a VPC")
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateRouteTableOutput{RouteTable: new(showRouteTable(s.store.View(), row)), ClientToken: in.ClientToken}, nil
}

// showRouteTable returns a table with the state of its routes.
func showRouteTable(v *state.View, r *state.RouteTable) types.RouteTable {
	shown := r.RouteTable
	shown.Routes = slices.Clone(shown.Routes)
	for i := range shown.Routes {
		route := &shown.Routes[i]
		route.State = types.RouteStateActive
		if isBlackhole(v, *r.VpcId, route) {
			route.State = types.RouteStateBlackhole
		}
	}
	return shown
}

// DescribeRouteTables describes route tables.
func (s *Service) DescribeRouteTables(_ context.Context, in *ec2.DescribeRouteTablesInput) (*ec2.DescribeRouteTablesOutput, error) {
	v := s.store.View()
	k := routeTables.with("route.state", func(r *state.RouteTable) []string {
		return values(showRouteTable(v, r).Routes, func(r *types.Route) *string { return (*string)(&r.State) })
	})
	rows, next, err := k.describe(v, query{"DescribeRouteTables", in.RouteTableIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.RouteTable) types.RouteTable { return showRouteTable(v, r) })
	return &ec2.DescribeRouteTablesOutput{RouteTables: all, NextToken: next}, nil
}

// DeleteRouteTable deletes a route table that nothing follows.
func (s *Service) DeleteRouteTable(ctx context.Context, in *ec2.DeleteRouteTableInput) (*ec2.DeleteRouteTableOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err := routeTables.get(tx.View, in.RouteTableId, "RouteTableId")
		if err != nil {
			return err
		}
		if len(row.Associations) > 0 {
			return refuse("DependencyViolation", "The routeTable '%s' has dependencies and cannot be deleted.", *row.RouteTableId)
		}
		tx.RouteTables.Delete(*row.RouteTableId)
		forgetRouteTable(tx, *row.RouteTableId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteRouteTableOutput{}, nil
}

// AssociateRouteTable makes a subnet, or a gateway, follow a route table.
func (s *Service) AssociateRouteTable(ctx context.Context, in *ec2.AssociateRouteTableInput) (*ec2.AssociateRouteTableOutput, error) {
	if err := checkMembers(in, "RouteTableId", "SubnetId", "GatewayId"); err != nil {
		return nil, err
	}
	if (in.SubnetId == nil) == (in.GatewayId == nil) {
		return nil, refuse("InvalidParameterCombination", "The request must contain exactly one of the parameters subnetId and gatewayId")
	}
	var made types.RouteTableAssociation
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		table, err := routeTables.get(tx.View, in.RouteTableId, "RouteTableId")
		if err != nil {
			return err
		}
		if err := checkFollower(tx.View, *table.VpcId, in.SubnetId, in.GatewayId); err != nil {
			return err
		}
		for other := range tx.RouteTables.By(state.RouteTablesByVPC, *table.VpcId) {
			for _, a := range other.Associations {
				if aws.ToString(a.SubnetId) != aws.ToString(in.SubnetId) || aws.ToString(a.GatewayId) != aws.ToString(in.GatewayId) {
					continue
				}
				if made = a; *other.RouteTableId == *table.RouteTableId {
					return nil
				}
				return refuse("Resource.AlreadyAssociated",
					"the specified association for route table %s conflicts with an existing association", *table.RouteTableId)
			}
		}
		made = newAssociation(*table.RouteTableId)
		made.SubnetId = in.SubnetId
		made.GatewayId = in.GatewayId
		return associate(tx, made)
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AssociateRouteTableOutput{AssociationId: made.RouteTableAssociationId, AssociationState: associated()}, nil
}

// checkFollower refuses a subnet or a gateway that isn't of the VPC.
func checkFollower(v *state.View, vpc string, subnet, gateway *string) error {
	if gateway != nil {
		g, err := internetGateways.get(v, gateway, "GatewayId")
		if err != nil {
			return err
		}
		if !attachedTo(g.Attachments, vpc) {
			return refuse("Gateway.NotAttached", "resource %s is not attached to network %s", *gateway, vpc)
		}
		return nil
	}
	sub, err := subnets.get(v, subnet, "SubnetId")
	if err != nil {
		return err
	}
	if *sub.VpcId != vpc {
		return refuse("InvalidParameterValue", "Route table and subnet %s belong to different networks", *subnet)
	}
	return nil
}

// associate adds an association to its table.
func associate(tx *state.Tx, a types.RouteTableAssociation) error {
	return routeTables.change(tx, a.RouteTableId, "RouteTableId", func(r *state.RouteTable) error {
		r.Associations = append(slices.Clip(r.Associations), a)
		return nil
	})
}

// disassociate takes the association with an id from its table, and returns it.
func disassociate(tx *state.Tx, id *string) (gone types.RouteTableAssociation, err error) {
	if aws.ToString(id) == "" {
		return gone, missing("AssociationId")
	}
	for table := range tx.RouteTables.All() {
		at := slices.IndexFunc(table.Associations, func(a types.RouteTableAssociation) bool { return *a.RouteTableAssociationId == *id })
		if at >= 0 {
			row := new(*table)
			row.Associations = slices.Delete(slices.Clone(table.Associations), at, at+1)
			tx.RouteTables.Put(row)
			return table.Associations[at], nil
		}
	}
	return gone, refuse("InvalidAssociationID.NotFound", "The association ID '%s' does not exist", *id)
}

// DisassociateRouteTable makes a subnet follow its VPC's main route table again.
func (s *Service) DisassociateRouteTable(
	ctx context.Context, in *ec2.DisassociateRouteTableInput,
) (*ec2.DisassociateRouteTableOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		gone, err := disassociate(tx, in.AssociationId)
		if err == nil && *gone.Main {
			return refuse("InvalidParameterValue", "cannot disassociate the main route table association %s", *in.AssociationId)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DisassociateRouteTableOutput{}, nil
}

// ReplaceRouteTableAssociation makes what followed one table follow another one. For a main table's association, that's the whole VPC.
func (s *Service) ReplaceRouteTableAssociation(
	ctx context.Context, in *ec2.ReplaceRouteTableAssociationInput,
) (*ec2.ReplaceRouteTableAssociationOutput, error) {
	var made types.RouteTableAssociation
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		table, err := routeTables.get(tx.View, in.RouteTableId, "RouteTableId")
		if err != nil {
			return err
		}
		gone, err := disassociate(tx, in.AssociationId)
		if err != nil {
			return err
		}
		if from := tx.RouteTables.Get(*gone.RouteTableId); *from.VpcId != *table.VpcId {
			return refuse("InvalidParameterValue", "Route table %s and association %s belong to different networks",
				*table.RouteTableId, *in.AssociationId)
		}
		made = newAssociation(*table.RouteTableId)
		made.Main = gone.Main
		made.SubnetId = gone.SubnetId
		made.GatewayId = gone.GatewayId
		return associate(tx, made)
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ReplaceRouteTableAssociationOutput{NewAssociationId: made.RouteTableAssociationId, AssociationState: associated()}, nil
}
