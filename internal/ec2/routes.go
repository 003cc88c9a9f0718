package ec2

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// maxRoutes is how many routes a table has: the VPC user guide's "Amazon VPC quotas".
const maxRoutes = 500

// localGateway is the target of the routes inside a VPC.
const localGateway = "local"

func localRoute(block string) types.Route {
	return types.Route{DestinationCidrBlock: &block, GatewayId: aws.String(localGateway), Origin: types.RouteOriginCreateRouteTable}
}

func isLocal(r *types.Route) bool { return aws.ToString(r.GatewayId) == localGateway }

// destinationOf returns where a route leads to.
func destinationOf(r *types.Route) string {
	for _, d := range []*string{r.DestinationCidrBlock, r.DestinationIpv6CidrBlock, r.DestinationPrefixListId} {
		if d != nil {
			return *d
		}
	}
	return ""
}

// routeTo returns the index of the route to a destination, or -1.
func routeTo(r *state.RouteTable, destination string) int {
	return slices.IndexFunc(r.Routes, func(o types.Route) bool { return destinationOf(&o) == destination })
}

// newRoute checks a route's destination, of which there must be exactly one.
func newRoute(block, block6, list *string) (r types.Route, err error) {
	given := 0
	for _, d := range []*string{block, block6, list} {
		if d != nil {
			given++
		}
	}
	if given != 1 {
		return r, refuse("MissingParameter", "The request must contain exactly one of destinationCidrBlock, destinationIpv6CidrBlock, "+
			"destinationPrefixListId")
	}
	r = types.Route{Origin: types.RouteOriginCreateRoute, DestinationPrefixListId: list}
	for _, b := range []struct {
		given *string
		to    **string
		name  string
		is4   bool
	}{{block, &r.DestinationCidrBlock, "destinationCidrBlock", true}, {block6, &r.DestinationIpv6CidrBlock, "destinationIpv6CidrBlock", false}} {
		if b.given == nil {
			continue
		}
		p, ok := cidr.Parse(*b.given)
		if !ok || p.Addr().Is4() != b.is4 {
			return r, refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid. This is not a valid CIDR block.", *b.given, b.name)
		}
		*b.to = new(p.String())
	}
	return r, nil
}

// aim sets a route's target, of which there must be exactly one, and it must exist.
func (s *Service) aim(v *state.View, vpc string, r *types.Route, in *ec2.CreateRouteInput) error {
	var err error
	given := 0
	for _, t := range []struct {
		id  *string
		set func()
		get func() error
	}{
		{in.GatewayId, func() { r.GatewayId = in.GatewayId }, func() error { return checkGateway(v, vpc, *in.GatewayId) }},
		{in.NatGatewayId, func() { r.NatGatewayId = in.NatGatewayId }, func() error { return checkNAT(v, *in.NatGatewayId) }},
		{in.EgressOnlyInternetGatewayId, func() { r.EgressOnlyInternetGatewayId = in.EgressOnlyInternetGatewayId }, func() error {
			_, err := egressOnlyGateways.get(v, in.EgressOnlyInternetGatewayId, "EgressOnlyInternetGatewayId")
			return err
		}},
		{in.NetworkInterfaceId, func() { r.NetworkInterfaceId = in.NetworkInterfaceId }, func() error {
			_, err := s.findInterface(v, *in.NetworkInterfaceId)
			return err
		}},
		{in.InstanceId, func() { r.InstanceId = in.InstanceId; r.InstanceOwnerId = &s.opts.ID }, func() error {
			_, err := findLaunched(v, *in.InstanceId)
			return err
		}},
	} {
		if aws.ToString(t.id) != "" && err == nil {
			given++
			t.set()
			err = t.get()
		}
	}
	if err == nil && given != 1 {
		return refuse("InvalidParameterCombination", "The request must contain exactly one of gatewayId, natGatewayId, "+
			"egressOnlyInternetGatewayId, networkInterfaceId, instanceId")
	}
	return err
}

// checkGateway refuses a gateway that there isn't, or that isn't attached to the VPC.
func checkGateway(v *state.View, vpc, id string) error {
	if strings.HasPrefix(id, "vpce-") {
		return refuse("InvalidParameterValue", "%s is a gateway endpoint: its routes are made by ModifyVpcEndpoint", id)
	}
	g := v.InternetGateways.Get(id)
	if g == nil {
		return refuse("InvalidGatewayID.NotFound", "The gateway ID '%s' does not exist", id)
	}
	if !attachedTo(g.Attachments, vpc) {
		return refuse("InvalidParameterValue", "route table and network gateway %s belong to different networks", id)
	}
	return nil
}

// checkNAT refuses a NAT gateway that there isn't.
func checkNAT(v *state.View, id string) error {
	if g := v.NATGateways.Get(id); g == nil || g.State == types.NatGatewayStateDeleted {
		return refuse("InvalidNatGatewayID.NotFound", "The natGateway ID '%s' does not exist", id)
	}
	return nil
}

// isBlackhole reports whether a route's target is gone.
func isBlackhole(v *state.View, vpc string, r *types.Route) bool {
	switch {
	case isLocal(r):
		return false
	case r.GatewayId != nil:
		g := v.InternetGateways.Get(*r.GatewayId)
		return v.VPCEndpoints.Get(*r.GatewayId) == nil && (g == nil || !attachedTo(g.Attachments, vpc))
	case r.NatGatewayId != nil:
		return checkNAT(v, *r.NatGatewayId) != nil
	case r.EgressOnlyInternetGatewayId != nil:
		return v.EgressOnlyInternetGateways.Get(*r.EgressOnlyInternetGatewayId) == nil
	case r.InstanceId != nil:
		i := v.Instances.Get(*r.InstanceId)
		return i == nil || i.IsOver()
	case r.NetworkInterfaceId != nil:
		return v.NetworkInterfaces.Get(*r.NetworkInterfaceId) == nil && launchedWith(v, *r.NetworkInterfaceId) == nil
	}
	return false
}

// routeMembers are the members of a route that Pintle knows.
var routeMembers = []string{
	"RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId", "GatewayId", "NatGatewayId",
	"EgressOnlyInternetGatewayId", "NetworkInterfaceId", "InstanceId",
}

// CreateRoute adds a route to a table.
func (s *Service) CreateRoute(ctx context.Context, in *ec2.CreateRouteInput) (*ec2.CreateRouteOutput, error) {
	if err := checkMembers(in, routeMembers...); err != nil {
		return nil, err
	}
	route, err := newRoute(in.DestinationCidrBlock, in.DestinationIpv6CidrBlock, in.DestinationPrefixListId)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return routeTables.change(tx, in.RouteTableId, "RouteTableId", func(r *state.RouteTable) error {
			if routeTo(r, destinationOf(&route)) >= 0 {
				return refuse("RouteAlreadyExists", "The route identified by %s already exists.", destinationOf(&route))
			}
			if err := s.aim(tx.View, *r.VpcId, &route, in); err != nil {
				return err
			}
			r.Routes = append(slices.Clip(r.Routes), route)
			return checkRoom(len(r.Routes)-1, maxRoutes, "RouteLimitExceeded", "routes of a route table")
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateRouteOutput{Return: aws.Bool(true)}, nil
}

// ReplaceRoute gives a route another target.
func (s *Service) ReplaceRoute(ctx context.Context, in *ec2.ReplaceRouteInput) (*ec2.ReplaceRouteOutput, error) {
	if err := checkMembers(in, append(routeMembers, "LocalTarget")...); err != nil {
		return nil, err
	}
	route, err := newRoute(in.DestinationCidrBlock, in.DestinationIpv6CidrBlock, in.DestinationPrefixListId)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return routeTables.change(tx, in.RouteTableId, "RouteTableId", func(r *state.RouteTable) error {
			at := routeTo(r, destinationOf(&route))
			if at < 0 {
				return refuse("InvalidParameterValue", "There is no route defined for '%s' in the route table. Use CreateRoute instead.",
					destinationOf(&route))
			}
			if r.Routes[at].Origin == types.RouteOriginCreateRouteTable {
				return refuse("UnsupportedOperation", "Pintle's VPCs keep their local routes.")
			}
			err := s.aim(tx.View, *r.VpcId, &route, &ec2.CreateRouteInput{
				GatewayId:                   in.GatewayId,
				NatGatewayId:                in.NatGatewayId,
				EgressOnlyInternetGatewayId: in.EgressOnlyInternetGatewayId,
				NetworkInterfaceId:          in.NetworkInterfaceId,
				InstanceId:                  in.InstanceId,
			})
			r.Routes = slices.Clone(r.Routes)
			r.Routes[at] = route
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ReplaceRouteOutput{}, nil
}

// DeleteRoute removes a route from a table.
func (s *Service) DeleteRoute(ctx context.Context, in *ec2.DeleteRouteInput) (*ec2.DeleteRouteOutput, error) {
	route, err := newRoute(in.DestinationCidrBlock, in.DestinationIpv6CidrBlock, in.DestinationPrefixListId)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return routeTables.change(tx, in.RouteTableId, "RouteTableId", func(r *state.RouteTable) error {
			at := routeTo(r, destinationOf(&route))
			switch {
			case at < 0:
				return refuse("InvalidRoute.NotFound", "no route with destination-cidr-block %s in route table %s",
					destinationOf(&route), *r.RouteTableId)
			case isLocal(&r.Routes[at]):
				return refuse("InvalidParameterValue", "cannot remove local route %s in route table %s", destinationOf(&route), *r.RouteTableId)
			case route.DestinationPrefixListId != nil:
				return refuse("InvalidParameterValue", "cannot remove VPC endpoint route %s in route table %s",
					destinationOf(&route), *r.RouteTableId)
			}
			r.Routes = slices.Delete(slices.Clone(r.Routes), at, at+1)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteRouteOutput{}, nil
}
