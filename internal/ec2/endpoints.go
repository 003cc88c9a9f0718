package ec2

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/prefixlist"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

const (
	maxEndpoints       = 255   // of a VPC, with 20 gateways more: the VPC user guide's "Amazon VPC quotas"
	maxEndpointPolicy  = 20480 // characters
	allowEverything    = `{"Statement":[{"Action":"*","Effect":"Allow","Principal":"*","Resource":"*"}],"Version":"2008-10-17"}`
	endpointInterfaces = "VPC Endpoint Interface "
)

var vpcEndpoints = kind[state.VPCEndpoint]{
	name:   types.ResourceTypeVpcEndpoint,
	prefix: "vpce",
	code:   "InvalidVpcEndpointId.NotFound",
	text:   "The Vpc Endpoint Id '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.VPCEndpoint] { return v.VPCEndpoints },
	of:     func(r *state.VPCEndpoint) (*string, *[]types.Tag) { return r.VpcEndpointId, &r.Tags },
	fields: fields[state.VPCEndpoint]{
		"ip-address-type":    func(r *state.VPCEndpoint) []string { return []string{string(r.IpAddressType)} },
		"service-name":       func(r *state.VPCEndpoint) []string { return optional(r.ServiceName) },
		"vpc-endpoint-id":    func(r *state.VPCEndpoint) []string { return optional(r.VpcEndpointId) },
		"vpc-endpoint-state": func(r *state.VPCEndpoint) []string { return []string{string(r.State)} },
		"vpc-endpoint-type":  func(r *state.VPCEndpoint) []string { return []string{string(r.VpcEndpointType)} },
		"vpc-id":             func(r *state.VPCEndpoint) []string { return optional(r.VpcId) },
	},
}

// endpointService matches the names of AWS's services behind their region.
var endpointService = pattern.New(`^[a-z0-9][a-z0-9.-]*$`, 64)

// CreateVpcEndpoint creates a gateway or an interface endpoint.
func (s *Service) CreateVpcEndpoint(ctx context.Context, in *ec2.CreateVpcEndpointInput) (*ec2.CreateVpcEndpointOutput, error) {
	err := checkMembers(in, "VpcId", "ClientToken", "IpAddressType", "PolicyDocument", "PrivateDnsEnabled", "RouteTableIds", "SecurityGroupIds",
		"ServiceName", "SubnetIds", "TagSpecifications", "VpcEndpointType", "DnsOptions")
	if err != nil {
		return nil, err
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeVpcEndpoint)
	if err != nil {
		return nil, err
	}
	made, err := s.newEndpoint(in, tags)
	if err != nil {
		return nil, err
	}
	var row *state.VPCEndpoint
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		made := new(*made)
		row, err = putOnce(s, tx, vpcEndpoints, in.ClientToken, in, made, func() error {
			if err := checkRoom(count(tx.VPCEndpoints.All()), maxEndpoints, "VpcEndpointLimitExceeded", "VPC endpoints"); err != nil {
				return err
			}
			if made.VpcEndpointType == types.VpcEndpointTypeInterface {
				groups, err := members(tx.View, *vpc.VpcId, in.SecurityGroupIds)
				if err != nil {
					return err
				}
				made.Groups = asEndpointGroups(groups)
			}
			return s.wire(tx, made)
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateVpcEndpointOutput{VpcEndpoint: &row.VpcEndpoint, ClientToken: in.ClientToken}, nil
}

// newEndpoint checks what a call says of an endpoint by itself.
func (s *Service) newEndpoint(in *ec2.CreateVpcEndpointInput, tags []types.Tag) (*state.VPCEndpoint, error) {
	name := aws.ToString(in.ServiceName)
	service, ours := strings.CutPrefix(name, "com.amazonaws."+s.opts.Region+".")
	kind := cmp.Or(in.VpcEndpointType, types.VpcEndpointTypeGateway)
	hasGateway := prefixlist.HasGateway(service)
	switch {
	case name == "":
		return nil, missing("ServiceName")
	case !ours || !endpointService.MatchString(service) || kind == types.VpcEndpointTypeGateway && !hasGateway:
		return nil, refuse("InvalidServiceName", "The Vpc Endpoint Service '%s' does not exist", name)
	case kind != types.VpcEndpointTypeGateway && kind != types.VpcEndpointTypeInterface:
		return nil, refuse("UnsupportedOperation", "VpcEndpointType: Pintle has gateway and interface endpoints, not %q.", kind)
	case kind == types.VpcEndpointTypeGateway && len(in.SubnetIds)+len(in.SecurityGroupIds) > 0:
		return nil, refuse("InvalidParameter", "Subnet and security group IDs are only supported for Interface type VPC Endpoints.")
	case kind == types.VpcEndpointTypeInterface && len(in.RouteTableIds) > 0:
		return nil, refuse("InvalidParameter", "Route table IDs are only supported for Gateway type VPC Endpoints.")
	}
	if err := cmp.Or(checkAddressType(in.IpAddressType), checkEndpointPolicy(in.PolicyDocument), checkDNSOptions(kind, in.DnsOptions)); err != nil {
		return nil, err
	}
	row := &state.VPCEndpoint{VpcEndpoint: types.VpcEndpoint{
		VpcEndpointId:       new(state.NewEC2ID("vpce")),
		VpcEndpointType:     kind,
		VpcId:               in.VpcId,
		ServiceName:         &name,
		ServiceRegion:       &s.opts.Region,
		CreationTimestamp:   new(s.now()),
		DnsEntries:          []types.DnsEntry{},
		DnsOptions:          &types.DnsOptions{DnsRecordIpType: recordType(kind)},
		Groups:              []types.SecurityGroupIdentifier{},
		IpAddressType:       types.IpAddressTypeIpv4,
		NetworkInterfaceIds: []string{},
		OwnerId:             &s.opts.ID,
		PolicyDocument:      cmp.Or(in.PolicyDocument, aws.String(allowEverything)),
		PrivateDnsEnabled:   aws.Bool(kind == types.VpcEndpointTypeInterface && (in.PrivateDnsEnabled == nil || *in.PrivateDnsEnabled)),
		RequesterManaged:    aws.Bool(false),
		RouteTableIds:       slices.Clone(in.RouteTableIds),
		State:               types.State("available"),
		SubnetIds:           slices.Clone(in.SubnetIds),
		Tags:                tags,
	}}
	if kind == types.VpcEndpointTypeInterface {
		row.DnsOptions = &types.DnsOptions{DnsRecordIpType: types.DnsRecordIpTypeIpv4}
		suffix := strings.TrimPrefix(*row.VpcEndpointId, "vpce-")
		row.DnsEntries = []types.DnsEntry{{
			DnsName:      new(*row.VpcEndpointId + "-" + suffix[:8] + "." + service + "." + s.opts.Region + ".vpce.amazonaws.com"),
			HostedZoneId: aws.String("Z7HUB22UULQXV"),
		}}
	}
	return row, nil
}

func checkEndpointPolicy(document *string) error {
	if document != nil && (len(*document) > maxEndpointPolicy || !json.Valid([]byte(*document))) {
		return refuse("InvalidPolicyDocument", "The policy document is not JSON, or longer than %d characters", maxEndpointPolicy)
	}
	return nil
}

func asEndpointGroups(groups []types.GroupIdentifier) []types.SecurityGroupIdentifier {
	out := []types.SecurityGroupIdentifier{}
	for _, g := range groups {
		out = append(out, types.SecurityGroupIdentifier{GroupId: g.GroupId, GroupName: g.GroupName})
	}
	return out
}

// wire makes an endpoint's routes and interfaces what its lists of route tables and subnets say.
func (s *Service) wire(tx *state.Tx, e *state.VPCEndpoint) error {
	for _, id := range e.RouteTableIds {
		if t, err := routeTables.get(tx.View, &id, "RouteTableId"); err != nil {
			return err
		} else if *t.VpcId != *e.VpcId {
			return refuse("InvalidParameter", "Route table %s and VPC endpoint belong to different networks.", id)
		}
	}
	s.route(tx, e)
	return s.join(tx, e)
}

// route gives the tables of a gateway endpoint the route to its service, and takes it from all others.
func (s *Service) route(tx *state.Tx, e *state.VPCEndpoint) {
	if e.VpcEndpointType != types.VpcEndpointTypeGateway {
		return
	}
	route := types.Route{GatewayId: e.VpcEndpointId, Origin: types.RouteOriginCreateRoute}
	for _, l := range prefixlist.All(s.opts.Region) {
		if *l.PrefixListName == *e.ServiceName {
			route.DestinationPrefixListId = l.PrefixListId
		}
	}
	for t := range tx.RouteTables.By(state.RouteTablesByVPC, *e.VpcId) {
		row := new(*t)
		row.Routes = slices.DeleteFunc(slices.Clone(t.Routes), func(r types.Route) bool { return aws.ToString(r.GatewayId) == *e.VpcEndpointId })
		if slices.Contains(e.RouteTableIds, *t.RouteTableId) {
			row.Routes = append(row.Routes, route)
		}
		tx.RouteTables.Put(row)
	}
}

// join gives an interface endpoint an interface in each of its subnets, and in no other.
func (s *Service) join(tx *state.Tx, e *state.VPCEndpoint) error {
	groups := []types.GroupIdentifier{}
	for _, g := range e.Groups {
		groups = append(groups, types.GroupIdentifier{GroupId: g.GroupId, GroupName: g.GroupName})
	}
	have := map[string]*state.NetworkInterface{}
	for _, id := range e.NetworkInterfaceIds {
		i := tx.NetworkInterfaces.Get(id)
		have[*i.SubnetId] = i
	}
	e.NetworkInterfaceIds = []string{}
	for _, id := range e.SubnetIds {
		subnet, err := subnets.get(tx.View, &id, "SubnetId")
		if err != nil {
			return err
		}
		if *subnet.VpcId != *e.VpcId {
			return refuse("InvalidParameter", "Subnet %s and VPC endpoint belong to different networks.", id)
		}
		i := have[id]
		delete(have, id)
		if i == nil {
			if i, err = s.newInterface(tx.View, subnet, nil, groups); err != nil {
				return err
			}
			i.Description = new(endpointInterfaces + *e.VpcEndpointId)
			i.InterfaceType = types.NetworkInterfaceTypeVpcEndpoint
			i.RequesterManaged = aws.Bool(true)
			i.Status = types.NetworkInterfaceStatusInUse
		}
		i = new(*i)
		i.Groups = groups
		tx.NetworkInterfaces.Put(i)
		e.NetworkInterfaceIds = append(e.NetworkInterfaceIds, *i.NetworkInterfaceId)
	}
	for _, i := range have {
		tx.NetworkInterfaces.Delete(*i.NetworkInterfaceId)
	}
	return nil
}

// forgetRouteTable takes a route table that is deleted from the endpoints.
func forgetRouteTable(tx *state.Tx, id string) {
	for e := range tx.VPCEndpoints.All() {
		if slices.Contains(e.RouteTableIds, id) {
			row := new(*e)
			row.RouteTableIds = slices.DeleteFunc(slices.Clone(e.RouteTableIds), func(t string) bool { return t == id })
			tx.VPCEndpoints.Put(row)
		}
	}
}

// DescribeVpcEndpoints describes endpoints.
func (s *Service) DescribeVpcEndpoints(_ context.Context, in *ec2.DescribeVpcEndpointsInput) (*ec2.DescribeVpcEndpointsOutput, error) {
	rows, next, err := vpcEndpoints.describe(s.store.View(),
		query{"DescribeVpcEndpoints", in.VpcEndpointIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.VPCEndpoint) types.VpcEndpoint { return r.VpcEndpoint })
	return &ec2.DescribeVpcEndpointsOutput{VpcEndpoints: all, NextToken: next}, nil
}

// ModifyVpcEndpoint changes an endpoint's policy, route tables, subnets and security groups.
func (s *Service) ModifyVpcEndpoint(ctx context.Context, in *ec2.ModifyVpcEndpointInput) (*ec2.ModifyVpcEndpointOutput, error) {
	err := checkMembers(in, "VpcEndpointId", "AddRouteTableIds", "AddSecurityGroupIds", "AddSubnetIds", "PolicyDocument", "PrivateDnsEnabled",
		"RemoveRouteTableIds", "RemoveSecurityGroupIds", "RemoveSubnetIds", "ResetPolicy", "DnsOptions", "IpAddressType")
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(checkAddressType(in.IpAddressType), checkEndpointPolicy(in.PolicyDocument)); err != nil {
		return nil, err
	}
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return vpcEndpoints.change(tx, in.VpcEndpointId, "VpcEndpointId", func(e *state.VPCEndpoint) error {
			if err := checkDNSOptions(e.VpcEndpointType, in.DnsOptions); err != nil {
				return err
			}
			e.PolicyDocument = cmp.Or(in.PolicyDocument, e.PolicyDocument)
			if aws.ToBool(in.ResetPolicy) {
				e.PolicyDocument = aws.String(allowEverything)
			}
			e.PrivateDnsEnabled = cmp.Or(in.PrivateDnsEnabled, e.PrivateDnsEnabled)
			e.RouteTableIds = addAndRemove(e.RouteTableIds, in.AddRouteTableIds, in.RemoveRouteTableIds)
			e.SubnetIds = addAndRemove(e.SubnetIds, in.AddSubnetIds, in.RemoveSubnetIds)
			if len(in.AddSecurityGroupIds)+len(in.RemoveSecurityGroupIds) > 0 {
				ids := values(e.Groups, func(g *types.SecurityGroupIdentifier) *string { return g.GroupId })
				groups, err := members(tx.View, *e.VpcId, addAndRemove(ids, in.AddSecurityGroupIds, in.RemoveSecurityGroupIds))
				if err != nil {
					return err
				}
				e.Groups = asEndpointGroups(groups)
			}
			return s.wire(tx, e)
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ModifyVpcEndpointOutput{Return: aws.Bool(true)}, nil
}

// checkAddressType refuses endpoints with IPv6 addresses.
func checkAddressType(t types.IpAddressType) error {
	if cmp.Or(t, types.IpAddressTypeIpv4) != types.IpAddressTypeIpv4 {
		return refuse("UnsupportedOperation", "IpAddressType: Pintle's endpoints have the type ipv4, not %q.", t)
	}
	return nil
}

// recordType returns the kind of DNS records that an endpoint has: a gateway endpoint has those of its service.
func recordType(kind types.VpcEndpointType) types.DnsRecordIpType {
	if kind == types.VpcEndpointTypeGateway {
		return types.DnsRecordIpTypeServiceDefined
	}
	return types.DnsRecordIpTypeIpv4
}

// checkDNSOptions refuses names that endpoints here don't have.
func checkDNSOptions(kind types.VpcEndpointType, o *types.DnsOptionsSpecification) error {
	if o == nil {
		return nil
	}
	if t := o.DnsRecordIpType; t != "" && t != types.DnsRecordIpTypeIpv4 && t != recordType(kind) {
		return refuse("UnsupportedOperation", "DnsOptions.DnsRecordIpType: Pintle's endpoints have records of the type %s, not %q.",
			recordType(kind), t)
	}
	if name := asked(reflect.ValueOf(*o), []string{"DnsRecordIpType"}); name != "" {
		return refuse("UnsupportedOperation", "DnsOptions.%s: Pintle has no resolver whose endpoints could have it.", name)
	}
	return nil
}

// addAndRemove returns a list of ids with some more and without others.
func addAndRemove(all, add, remove []string) []string {
	out := slices.Clone(all)
	for _, id := range add {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return slices.DeleteFunc(out, func(id string) bool { return slices.Contains(remove, id) })
}

// DeleteVpcEndpoints deletes endpoints. Each that there isn't has its own answer.
func (s *Service) DeleteVpcEndpoints(ctx context.Context, in *ec2.DeleteVpcEndpointsInput) (*ec2.DeleteVpcEndpointsOutput, error) {
	if len(in.VpcEndpointIds) == 0 {
		return nil, missing("VpcEndpointId")
	}
	out := &ec2.DeleteVpcEndpointsOutput{}
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		out.Unsuccessful = []types.UnsuccessfulItem{}
		for _, id := range in.VpcEndpointIds {
			old := tx.VPCEndpoints.Get(id)
			if old == nil {
				out.Unsuccessful = append(out.Unsuccessful, types.UnsuccessfulItem{ResourceId: &id, Error: &types.UnsuccessfulItemError{
					Code:    aws.String(vpcEndpoints.code),
					Message: new(strings.ReplaceAll(vpcEndpoints.text, "%s", id)),
				}})
				continue
			}
			row := new(*old)
			row.RouteTableIds = nil
			row.SubnetIds = nil
			if err := s.wire(tx, row); err != nil {
				return err
			}
			tx.VPCEndpoints.Delete(id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
