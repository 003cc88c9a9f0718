package elb

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// Domain is what load balancers' names end with. RFC 6761 says that names below localhost are this machine's, and resolvers follow it.
const Domain = "elb.localhost"

// hostedZones are those that AWS has in us-east-1. Aliases of Route 53 name them.
var hostedZones = map[types.LoadBalancerTypeEnum]string{
	types.LoadBalancerTypeEnumApplication: "Z35SXDOTRQ7X7K",
	types.LoadBalancerTypeEnumNetwork:     "Z26RNL4JYFTOTI",
}

// maxLoadBalancers is the quota of load balancers of one type.
const maxLoadBalancers = 50

var nameCharacters = regexp.MustCompile(`^[a-zA-Z0-9-]+$`)

// checkName checks the name of a load balancer or a target group.
func checkName(what, name string) error {
	switch {
	case len(name) > 32:
		return invalid("%s name '%s' cannot be longer than '32' characters", what, name)
	case !nameCharacters.MatchString(name):
		return invalid("%s name '%s' can only contain characters that are alphanumeric characters or hyphens(-)", what, name)
	case name[0] == '-' || name[len(name)-1] == '-':
		return invalid("%s name '%s' cannot begin or end with '-'", what, name)
	case what == "Load balancer" && strings.HasPrefix(name, "internal-"):
		return invalid("%s name '%s' cannot begin with 'internal-'", what, name)
	}
	return nil
}

// CreateLoadBalancer creates a load balancer, which has no listeners yet. The same call once more returns the same load balancer.
func (s *Service) CreateLoadBalancer(ctx context.Context, in *api.CreateLoadBalancerInput) (*api.CreateLoadBalancerOutput, error) {
	if err := cmp.Or(checkName("Load balancer", *in.Name), checkSupported(in), checkTags(in.Tags)); err != nil {
		return nil, err
	}
	var row *state.LoadBalancer
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		made, err := s.newLoadBalancer(tx.View, in)
		if err != nil {
			return err
		}
		if row = tx.LoadBalancerNamed(*in.Name); row != nil {
			if sameLoadBalancer(row, made) {
				return nil
			}
			return &types.DuplicateLoadBalancerNameException{Message: account.Message(
				"A load balancer with the same name '%s' exists, but with different settings", *in.Name)}
		}
		n := 0
		for other := range tx.LoadBalancers.All() {
			if other.Type == made.Type {
				n++
			}
		}
		if n >= maxLoadBalancers {
			return &types.TooManyLoadBalancersException{Message: account.Message(
				"The maximum number of load balancers has been reached: %d of type %s", maxLoadBalancers, made.Type)}
		}
		row = made
		tx.LoadBalancers.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateLoadBalancerOutput{LoadBalancers: []types.LoadBalancer{row.LoadBalancer}}, nil
}

// checkSupported refuses what Pintle doesn't have.
func checkSupported(in *api.CreateLoadBalancerInput) error {
	switch {
	case in.Type == types.LoadBalancerTypeEnumGateway:
		return badConfiguration("Load balancers of type 'gateway' are not supported by Pintle")
	case in.CustomerOwnedIpv4Pool != nil:
		return notSupported("CustomerOwnedIpv4Pool")
	case in.IpamPools != nil:
		return notSupported("IpamPools")
	case in.EnablePrefixForIpv6SourceNat == types.EnablePrefixForIpv6SourceNatEnumOn:
		return notSupported("EnablePrefixForIpv6SourceNat")
	}
	return checkAddressType(in.IpAddressType)
}

func checkAddressType(t types.IpAddressType) error {
	if t != "" && t != types.IpAddressTypeIpv4 {
		return badConfiguration("The IP address type '%s' is not supported by Pintle: it must be 'ipv4'", t)
	}
	return nil
}

// newLoadBalancer makes a load balancer's row from a call.
func (s *Service) newLoadBalancer(v *state.View, in *api.CreateLoadBalancerInput) (*state.LoadBalancer, error) {
	kind := cmp.Or(in.Type, types.LoadBalancerTypeEnumApplication)
	zones, vpc, err := place(v, s.opts.Region, kind, in.Subnets, in.SubnetMappings)
	if err != nil {
		return nil, err
	}
	groups, err := securityGroups(v, kind, zones, vpc, in.SecurityGroups)
	if err != nil {
		return nil, err
	}
	short := "app"
	if kind == types.LoadBalancerTypeEnumNetwork {
		short = "net"
	}
	id := newID()
	return &state.LoadBalancer{
		LoadBalancer: types.LoadBalancer{
			LoadBalancerArn:       new(s.arn("loadbalancer/%s/%s/%s", short, *in.Name, id)),
			LoadBalancerName:      in.Name,
			DNSName:               new(strings.ToLower(*in.Name) + "-" + id + "." + Domain),
			CanonicalHostedZoneId: new(hostedZones[kind]),
			CreatedTime:           new(s.now()),
			Scheme:                cmp.Or(in.Scheme, types.LoadBalancerSchemeEnumInternetFacing),
			Type:                  kind,
			IpAddressType:         types.IpAddressTypeIpv4,
			State: &types.LoadBalancerState{
				Code:   types.LoadBalancerStateEnumProvisioning,
				Reason: aws.String("No balancer process carries it out yet"),
			},
			AvailabilityZones: zones,
			VpcId:             &vpc,
			SecurityGroups:    groups,
		},
		Tags: in.Tags,
	}, nil
}

// sameLoadBalancer reports whether two load balancers were created with the same settings.
func sameLoadBalancer(a, b *state.LoadBalancer) bool {
	subnet := func(x, y types.AvailabilityZone) bool { return text(x.SubnetId) == text(y.SubnetId) }
	return a.Type == b.Type && a.Scheme == b.Scheme && slices.EqualFunc(a.AvailabilityZones, b.AvailabilityZones, subnet) &&
		slices.Equal(a.SecurityGroups, b.SecurityGroups) && sameTags(a.Tags, b.Tags)
}

func sameTags(a, b []types.Tag) bool {
	return slices.EqualFunc(a, b, func(x, y types.Tag) bool { return text(x.Key) == text(y.Key) && text(x.Value) == text(y.Value) })
}

// place returns the zones of a load balancer's subnets, and their VPC. Where nobody has made a network, subnets that are all from elsewhere will do:
// each counts as one of another zone.
func place(
	v *state.View, region string, kind types.LoadBalancerTypeEnum, subnets []string, mappings []types.SubnetMapping,
) (zones []types.AvailabilityZone, vpc string, err error) {
	if subnets, err = subnetsOf(subnets, mappings); err != nil {
		return nil, "", err
	}
	mustExist := v.HasOwnNetwork() || slices.ContainsFunc(subnets, func(id string) bool { return v.Subnets.Get(id) != nil })
	for i, id := range subnets {
		zone := region + string(rune('a'+i%26))
		row := v.Subnets.Get(id)
		switch {
		case row != nil && vpc != "" && text(row.VpcId) != vpc:
			return nil, "", &types.InvalidSubnetException{Message: account.Message("All subnets must belong to the same VPC: '%s'", vpc)}
		case row != nil:
			zone = text(row.AvailabilityZone)
			vpc = text(row.VpcId)
		case mustExist:
			return nil, "", &types.SubnetNotFoundException{Message: account.Message("The subnet ID '%s' does not exist", id)}
		}
		if slices.ContainsFunc(zones, func(z types.AvailabilityZone) bool { return text(z.ZoneName) == zone }) {
			return nil, "", badConfiguration("A load balancer cannot be attached to multiple subnets in the same Availability Zone")
		}
		zones = append(zones, types.AvailabilityZone{ZoneName: &zone, SubnetId: new(id), LoadBalancerAddresses: []types.LoadBalancerAddress{}})
	}
	if kind == types.LoadBalancerTypeEnumApplication && len(zones) < 2 {
		return nil, "", invalid("At least two subnets in two different Availability Zones must be specified")
	}
	if d := v.DefaultVPC(); vpc == "" && d != nil {
		vpc = text(d.VpcId)
	}
	return zones, vpc, nil
}

// subnetsOf returns the subnets of a call.
func subnetsOf(subnets []string, mappings []types.SubnetMapping) ([]string, error) {
	if len(subnets) > 0 && len(mappings) > 0 {
		return nil, invalid("Only one of Subnets or SubnetMappings can be specified")
	}
	for _, m := range mappings {
		switch {
		case m.AllocationId != nil:
			return nil, notSupported("AllocationId in SubnetMappings")
		case m.PrivateIPv4Address != nil:
			return nil, notSupported("PrivateIPv4Address in SubnetMappings")
		case m.IPv6Address != nil:
			return nil, notSupported("IPv6Address in SubnetMappings")
		case m.SourceNatIpv6Prefix != nil:
			return nil, notSupported("SourceNatIpv6Prefix in SubnetMappings")
		case m.SubnetId == nil:
			return nil, invalid("A SubnetId must be specified in SubnetMappings")
		}
		subnets = append(subnets, *m.SubnetId)
	}
	if len(subnets) == 0 {
		return nil, invalid("At least one subnet must be specified")
	}
	return subnets, nil
}

// securityGroups returns the security groups of a load balancer: those of the call, or an application load balancer's VPC's default one. They may
// be from elsewhere if its subnets are.
func securityGroups(
	v *state.View, kind types.LoadBalancerTypeEnum, zones []types.AvailabilityZone, vpc string, given []string,
) ([]string, error) {
	isHere := func(z types.AvailabilityZone) bool { return v.Subnets.Get(text(z.SubnetId)) != nil }
	for _, id := range given {
		switch row := v.SecurityGroups.Get(id); {
		case row == nil && slices.ContainsFunc(zones, isHere):
			return nil, &types.InvalidSecurityGroupException{Message: account.Message("The security group '%s' does not exist", id)}
		case row != nil && text(row.VpcId) != vpc:
			return nil, badConfiguration("Security group '%s' does not belong to VPC '%s'", id, vpc)
		}
	}
	if g := v.DefaultSecurityGroup(vpc); len(given) == 0 && kind == types.LoadBalancerTypeEnumApplication && g != nil {
		return []string{*g.GroupId}, nil
	}
	return given, nil
}

// DescribeLoadBalancers lists load balancers.
func (s *Service) DescribeLoadBalancers(_ context.Context, in *api.DescribeLoadBalancersInput) (*api.DescribeLoadBalancersOutput, error) {
	v := s.store.View()
	rows := slices.Collect(v.LoadBalancers.All())
	switch {
	case len(in.LoadBalancerArns) > 0 && len(in.Names) > 0:
		return nil, invalid("Load balancer names and load balancer ARNs cannot be specified at the same time")
	case len(in.LoadBalancerArns) > 0 || len(in.Names) > 0:
		rows = nil
		for _, arn := range in.LoadBalancerArns {
			row, err := findLoadBalancer(v, &arn)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
		for _, name := range in.Names {
			row := v.LoadBalancerNamed(name)
			if row == nil {
				return nil, &types.LoadBalancerNotFoundException{Message: account.Message("Load balancers '[%s]' not found", name)}
			}
			rows = append(rows, row)
		}
	}
	page, next, err := account.Ordered(listing("DescribeLoadBalancers"), rows, in.PageSize, in.Marker,
		func(b *state.LoadBalancer) string { return *b.LoadBalancerArn })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeLoadBalancersOutput{LoadBalancers: []types.LoadBalancer{}, NextMarker: next}
	for _, row := range page {
		out.LoadBalancers = append(out.LoadBalancers, row.LoadBalancer)
	}
	return out, nil
}

// DeleteLoadBalancer deletes a load balancer with its listeners. One that isn't there is no error.
func (s *Service) DeleteLoadBalancer(ctx context.Context, in *api.DeleteLoadBalancerInput) (*api.DeleteLoadBalancerOutput, error) {
	if _, ok := s.opts.ResourceOf("elasticloadbalancing", "loadbalancer/", text(in.LoadBalancerArn)); !ok {
		return nil, invalid("'%s' is not a valid load balancer ARN", text(in.LoadBalancerArn))
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		row := tx.LoadBalancers.Get(*in.LoadBalancerArn)
		if row == nil {
			return nil
		}
		if row.Attributes["deletion_protection.enabled"] == "true" {
			return notPermitted("Load balancer '%s' cannot be deleted because deletion protection is enabled", *in.LoadBalancerArn)
		}
		for l := range tx.Listeners.By(state.ListenersByLoadBalancer, *in.LoadBalancerArn) {
			tx.DeleteListener(*l.ListenerArn)
		}
		tx.LoadBalancers.Delete(*in.LoadBalancerArn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteLoadBalancerOutput{}, nil
}

// DescribeLoadBalancerAttributes lists a load balancer's attributes.
func (s *Service) DescribeLoadBalancerAttributes(
	_ context.Context, in *api.DescribeLoadBalancerAttributesInput,
) (*api.DescribeLoadBalancerAttributesOutput, error) {
	row, err := findLoadBalancer(s.store.View(), in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	return &api.DescribeLoadBalancerAttributesOutput{Attributes: attributesOf(row)}, nil
}

func attributesOf(row *state.LoadBalancer) (out []types.LoadBalancerAttribute) {
	for _, p := range listAttributes(loadBalancerAttributes, string(row.Type), row.Attributes) {
		out = append(out, types.LoadBalancerAttribute{Key: &p.key, Value: &p.value})
	}
	return out
}

// ModifyLoadBalancerAttributes changes attributes of a load balancer.
func (s *Service) ModifyLoadBalancerAttributes(
	ctx context.Context, in *api.ModifyLoadBalancerAttributesInput,
) (*api.ModifyLoadBalancerAttributesOutput, error) {
	var given []pair
	for _, a := range in.Attributes {
		given = append(given, pair{text(a.Key), text(a.Value)})
	}
	if err := s.testAccessLog(ctx, text(in.LoadBalancerArn), given); err != nil {
		return nil, err
	}
	row, err := s.changeLoadBalancer(ctx, in.LoadBalancerArn, func(_ *state.Tx, b *state.LoadBalancer) (err error) {
		b.Attributes, err = setAttributes(loadBalancerAttributes, string(b.Type), b.Attributes, given)
		if err != nil {
			return err
		}
		return checkAccessLogs(b)
	})
	if err != nil {
		return nil, err
	}
	return &api.ModifyLoadBalancerAttributesOutput{Attributes: attributesOf(row)}, nil
}

// SetSubnets puts a load balancer into other subnets.
func (s *Service) SetSubnets(ctx context.Context, in *api.SetSubnetsInput) (*api.SetSubnetsOutput, error) {
	if err := checkAddressType(in.IpAddressType); err != nil {
		return nil, err
	}
	if in.EnablePrefixForIpv6SourceNat == types.EnablePrefixForIpv6SourceNatEnumOn {
		return nil, notSupported("EnablePrefixForIpv6SourceNat")
	}
	row, err := s.changeLoadBalancer(ctx, in.LoadBalancerArn, func(tx *state.Tx, b *state.LoadBalancer) error {
		zones, vpc, err := place(tx.View, s.opts.Region, b.Type, in.Subnets, in.SubnetMappings)
		if err != nil {
			return err
		}
		if vpc != text(b.VpcId) {
			return &types.InvalidSubnetException{Message: account.Message("All subnets must belong to the same VPC: '%s'", text(b.VpcId))}
		}
		b.AvailabilityZones = zones
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.SetSubnetsOutput{AvailabilityZones: row.AvailabilityZones, IpAddressType: row.IpAddressType}, nil
}

// SetSecurityGroups puts a load balancer into other security groups.
func (s *Service) SetSecurityGroups(ctx context.Context, in *api.SetSecurityGroupsInput) (*api.SetSecurityGroupsOutput, error) {
	if e := in.EnforceSecurityGroupInboundRulesOnPrivateLinkTraffic; e != "" {
		return nil, notSupported("EnforceSecurityGroupInboundRulesOnPrivateLinkTraffic '" + string(e) + "', which is about PrivateLink,")
	}
	row, err := s.changeLoadBalancer(ctx, in.LoadBalancerArn, func(tx *state.Tx, b *state.LoadBalancer) (err error) {
		if b.Type == types.LoadBalancerTypeEnumNetwork && len(b.SecurityGroups) == 0 {
			return badConfiguration("You cannot set security groups on a network load balancer that was created without any")
		}
		if len(in.SecurityGroups) == 0 {
			return badConfiguration("At least one security group must be specified")
		}
		b.SecurityGroups, err = securityGroups(tx.View, b.Type, b.AvailabilityZones, text(b.VpcId), in.SecurityGroups)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.SetSecurityGroupsOutput{SecurityGroupIds: row.SecurityGroups}, nil
}

// SetIpAddressType is here for clients that set what a load balancer has anyway.
func (s *Service) SetIpAddressType(_ context.Context, in *api.SetIpAddressTypeInput) (*api.SetIpAddressTypeOutput, error) {
	if err := checkAddressType(in.IpAddressType); err != nil {
		return nil, err
	}
	row, err := findLoadBalancer(s.store.View(), in.LoadBalancerArn)
	if err != nil {
		return nil, err
	}
	return &api.SetIpAddressTypeOutput{IpAddressType: row.IpAddressType}, nil
}
