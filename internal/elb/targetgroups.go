package elb

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/configuration"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// maxTargetGroups is the quota of target groups.
const maxTargetGroups = 3000

// CreateTargetGroup creates a target group. The same call once more returns the same target group.
func (s *Service) CreateTargetGroup(ctx context.Context, in *api.CreateTargetGroupInput) (*api.CreateTargetGroupOutput, error) {
	if err := cmp.Or(checkName("Target group", *in.Name), checkTargetGroup(in), checkTags(in.Tags)); err != nil {
		return nil, err
	}
	made, err := s.newTargetGroup(in)
	if err != nil {
		return nil, err
	}
	row := made
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.HasOwnNetwork() && tx.VPCs.Get(*in.VpcId) == nil {
			return invalid("The VPC ID '%s' is not found", *in.VpcId)
		}
		switch old := tx.TargetGroupNamed(*in.Name); {
		case old != nil && sameTargetGroup(old, made):
			row = old
			return nil
		case old != nil:
			return &types.DuplicateTargetGroupNameException{Message: account.Message(
				"A target group with the same name '%s' exists, but with different settings", *in.Name)}
		case tx.TargetGroups.Len() >= maxTargetGroups:
			return &types.TooManyTargetGroupsException{Message: account.Message("The maximum number of target groups has been reached: %d", maxTargetGroups)}
		}
		tx.TargetGroups.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateTargetGroupOutput{TargetGroups: []types.TargetGroup{describeTargetGroup(row, nil)}}, nil
}

// checkTargetGroup refuses what Pintle doesn't have, and what is missing.
func checkTargetGroup(in *api.CreateTargetGroupInput) error {
	switch {
	case in.TargetType == types.TargetTypeEnumLambda || in.TargetType == types.TargetTypeEnumAlb:
		return badConfiguration("Target groups with target type '%s' are not supported by Pintle: it must be 'instance' or 'ip'", in.TargetType)
	case in.IpAddressType == types.TargetGroupIpAddressTypeEnumIpv6:
		return notSupported("IpAddressType 'ipv6'")
	case in.TargetControlPort != nil:
		return notSupported("TargetControlPort")
	case in.HealthCheckEnabled != nil && !*in.HealthCheckEnabled:
		return invalid("Health check enabled must be true for target groups with target type '%s'", cmp.Or(in.TargetType, types.TargetTypeEnumInstance))
	case in.Protocol == "":
		return invalid("A protocol must be specified")
	case in.Port == nil:
		return invalid("A port must be specified")
	case text(in.VpcId) == "":
		return invalid("A VPC ID must be specified")
	}
	return checkProtocols(in.Protocol, in.HealthCheckProtocol, in.ProtocolVersion)
}

// carried are the protocols that proxies carry.
var carried = append([]types.ProtocolEnum{types.ProtocolEnumHttp, types.ProtocolEnumHttps}, networkListeners...)

// checking are the protocols that health checks have.
var checking = []types.ProtocolEnum{types.ProtocolEnumHttp, types.ProtocolEnumHttps, types.ProtocolEnumTcp}

// words lists protocols in a message.
func words(all []types.ProtocolEnum) string {
	var out []string
	for _, p := range all {
		out = append(out, string(p))
	}
	return strings.Join(out, ", ")
}

func checkProtocols(protocol, healthCheck types.ProtocolEnum, version *string) error {
	switch {
	case !slices.Contains(carried, protocol):
		return badProtocol("Target groups of protocol '%s' are not supported by Pintle: it must be one of '%s'", protocol, words(carried))
	case healthCheck != "" && !slices.Contains(checking, healthCheck):
		return invalid("Health check protocol '%s' must be one of '%s'", healthCheck, words(checking))
	case healthCheck == types.ProtocolEnumTcp && !routing.IsNetwork(string(protocol)):
		return invalid("Health check protocol 'TCP' is not supported for target groups with the %s protocol", protocol)
	case version != nil && routing.IsNetwork(string(protocol)):
		return invalid("Protocol version cannot be specified for target groups with the %s protocol", protocol)
	}
	return nil
}

// newTargetGroup makes a target group's row from a call, with AWS's defaults.
func (s *Service) newTargetGroup(in *api.CreateTargetGroupInput) (*state.TargetGroup, error) {
	row := &state.TargetGroup{
		TargetGroup: types.TargetGroup{
			TargetGroupArn:             new(s.arn("targetgroup/%s/%s", *in.Name, newID())),
			TargetGroupName:            in.Name,
			TargetType:                 cmp.Or(in.TargetType, types.TargetTypeEnumInstance),
			IpAddressType:              types.TargetGroupIpAddressTypeEnumIpv4,
			Protocol:                   in.Protocol,
			ProtocolVersion:            in.ProtocolVersion,
			Port:                       in.Port,
			VpcId:                      in.VpcId,
			HealthCheckEnabled:         new(true),
			HealthCheckProtocol:        in.HealthCheckProtocol,
			HealthCheckPort:            in.HealthCheckPort,
			HealthCheckPath:            in.HealthCheckPath,
			HealthCheckIntervalSeconds: in.HealthCheckIntervalSeconds,
			HealthCheckTimeoutSeconds:  in.HealthCheckTimeoutSeconds,
			HealthyThresholdCount:      in.HealthyThresholdCount,
			UnhealthyThresholdCount:    in.UnhealthyThresholdCount,
			Matcher:                    in.Matcher,
		},
		Tags: in.Tags,
	}
	if slices.Contains(routing.Networks(string(in.Protocol)), "udp") { // AWS: "For new UDP/TCP_UDP target groups the default is true"
		row.Attributes = map[string]string{"deregistration_delay.connection_termination.enabled": "true"}
	}
	if !routing.IsNetwork(string(in.Protocol)) && row.ProtocolVersion == nil {
		row.ProtocolVersion = aws.String(routing.HTTP1)
	}
	return row, complete(row)
}

// complete fills in what a target group's health check doesn't say, and refuses one that can't be carried out.
func complete(row *state.TargetGroup) error {
	if err := checkMatcher(row); err != nil {
		return err
	}
	g := configuration.Group(row)
	c := g.Check()
	row.HealthCheckProtocol = types.ProtocolEnum(c.Protocol)
	row.HealthCheckPort = &c.Port
	row.HealthCheckIntervalSeconds = new(int32(c.IntervalSeconds))
	row.HealthCheckTimeoutSeconds = new(int32(c.TimeoutSeconds))
	row.HealthyThresholdCount = new(int32(c.HealthyThreshold))
	row.UnhealthyThresholdCount = new(int32(c.UnhealthyThreshold))
	switch {
	case c.Protocol == routing.TCP && (row.Matcher != nil || row.HealthCheckPath != nil):
		return invalid("Health check path and matcher cannot be specified for health checks of protocol TCP")
	case c.Protocol == routing.TCP:
	case g.ProtocolVersion == routing.GRPC:
		row.HealthCheckPath = &c.Path
		row.Matcher = &types.Matcher{GrpcCode: &c.Matcher}
	default:
		row.HealthCheckPath = &c.Path
		row.Matcher = &types.Matcher{HttpCode: &c.Matcher}
	}
	if c.TimeoutSeconds > c.IntervalSeconds || c.TimeoutSeconds == c.IntervalSeconds && !g.IsNetwork() {
		return invalid("Health check timeout '%d' must be smaller than the interval '%d'", c.TimeoutSeconds, c.IntervalSeconds)
	}
	return worded(routing.Validate(&routing.Balancers{Groups: []routing.Group{g}}))
}

// checkMatcher refuses the codes of another protocol.
func checkMatcher(row *state.TargetGroup) error {
	grpc := text(row.ProtocolVersion) == routing.GRPC
	switch m := row.Matcher; {
	case m == nil:
	case m.HttpCode != nil && m.GrpcCode != nil:
		return invalid("You cannot specify both HttpCode and GrpcCode in the matcher")
	case m.GrpcCode != nil && !grpc:
		return invalid("GrpcCode can be specified for target groups with protocol version GRPC only")
	case m.HttpCode != nil && grpc:
		return invalid("HttpCode cannot be specified for target groups with protocol version GRPC")
	}
	return nil
}

// worded makes a ValidationError of what routing says, by the names that the API has.
func worded(err error) error {
	problem, ok := errors.AsType[*routing.Error](err)
	if !ok {
		return err
	}
	field := problem.Field
	for _, part := range []string{"Balancers[0].", "Listeners[0].", "Groups[0].", "Rules[0].", "Attributes.", "Actions[0]."} {
		field = strings.TrimPrefix(field, part)
	}
	return invalid("%s: %s", field, problem.Problem)
}

// sameTargetGroup reports whether two target groups were created with the same settings.
func sameTargetGroup(a, b *state.TargetGroup) bool {
	return a.TargetType == b.TargetType && a.Protocol == b.Protocol && *a.Port == *b.Port && text(a.VpcId) == text(b.VpcId) &&
		configuration.Group(a).HealthCheck == configuration.Group(b).HealthCheck &&
		text(a.ProtocolVersion) == text(b.ProtocolVersion) && sameTags(a.Tags, b.Tags)
}

func describeTargetGroup(row *state.TargetGroup, users map[string][]string) types.TargetGroup {
	g := row.TargetGroup
	g.LoadBalancerArns = append([]string{}, users[*row.TargetGroupArn]...)
	return g
}

// DescribeTargetGroups lists target groups.
func (s *Service) DescribeTargetGroups(_ context.Context, in *api.DescribeTargetGroupsInput) (*api.DescribeTargetGroupsOutput, error) {
	v := s.store.View()
	users := v.LoadBalancersOf()
	rows, err := selectTargetGroups(v, in, users)
	if err != nil {
		return nil, err
	}
	page, next, err := account.Ordered(listing("DescribeTargetGroups"), rows, in.PageSize, in.Marker,
		func(g *state.TargetGroup) string { return *g.TargetGroupArn })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeTargetGroupsOutput{TargetGroups: []types.TargetGroup{}, NextMarker: next}
	for _, row := range page {
		out.TargetGroups = append(out.TargetGroups, describeTargetGroup(row, users))
	}
	return out, nil
}

func selectTargetGroups(v *state.View, in *api.DescribeTargetGroupsInput, users map[string][]string) (rows []*state.TargetGroup, err error) {
	given := 0
	for _, n := range []int{len(in.Names), len(in.TargetGroupArns), len(text(in.LoadBalancerArn))} {
		if n > 0 {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, invalid("Target group names, target group ARNs, and a load balancer ARN cannot be specified at the same time")
	case in.LoadBalancerArn != nil:
		if _, err := findLoadBalancer(v, in.LoadBalancerArn); err != nil {
			return nil, err
		}
	case given == 0:
		return slices.Collect(v.TargetGroups.All()), nil
	}
	for _, arn := range in.TargetGroupArns {
		row, err := findTargetGroup(v, &arn)
		if err != nil {
			return nil, &types.TargetGroupNotFoundException{Message: account.Message("One or more target groups not found")}
		}
		rows = append(rows, row)
	}
	for _, name := range in.Names {
		row := v.TargetGroupNamed(name)
		if row == nil {
			return nil, &types.TargetGroupNotFoundException{Message: account.Message("One or more target groups not found")}
		}
		rows = append(rows, row)
	}
	for row := range v.TargetGroups.All() {
		if in.LoadBalancerArn != nil && slices.Contains(users[*row.TargetGroupArn], *in.LoadBalancerArn) {
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// ModifyTargetGroup changes a target group's health check.
func (s *Service) ModifyTargetGroup(ctx context.Context, in *api.ModifyTargetGroupInput) (*api.ModifyTargetGroupOutput, error) {
	row, err := s.changeTargetGroup(ctx, in.TargetGroupArn, func(_ *state.Tx, g *state.TargetGroup) error {
		if in.HealthCheckEnabled != nil && !*in.HealthCheckEnabled {
			return invalid("Health check enabled must be true for target groups with target type '%s'", g.TargetType)
		}
		if err := checkProtocols(g.Protocol, in.HealthCheckProtocol, nil); err != nil {
			return err
		}
		changed := cmp.Or(in.HealthCheckProtocol, g.HealthCheckProtocol)
		if changed == types.ProtocolEnumTcp && g.HealthCheckProtocol != changed {
			g.HealthCheckPath = nil
			g.Matcher = nil
		}
		g.HealthCheckProtocol = changed
		g.HealthCheckPort = cmp.Or(in.HealthCheckPort, g.HealthCheckPort)
		g.HealthCheckPath = cmp.Or(in.HealthCheckPath, g.HealthCheckPath)
		g.HealthCheckIntervalSeconds = cmp.Or(in.HealthCheckIntervalSeconds, g.HealthCheckIntervalSeconds)
		g.HealthCheckTimeoutSeconds = cmp.Or(in.HealthCheckTimeoutSeconds, g.HealthCheckTimeoutSeconds)
		g.HealthyThresholdCount = cmp.Or(in.HealthyThresholdCount, g.HealthyThresholdCount)
		g.UnhealthyThresholdCount = cmp.Or(in.UnhealthyThresholdCount, g.UnhealthyThresholdCount)
		g.Matcher = cmp.Or(in.Matcher, g.Matcher)
		return complete(g)
	})
	if err != nil {
		return nil, err
	}
	return &api.ModifyTargetGroupOutput{TargetGroups: []types.TargetGroup{describeTargetGroup(row, s.store.View().LoadBalancersOf())}}, nil
}

// DeleteTargetGroup deletes a target group that nothing forwards to. One that isn't there is no error.
func (s *Service) DeleteTargetGroup(ctx context.Context, in *api.DeleteTargetGroupInput) (*api.DeleteTargetGroupOutput, error) {
	arn := *in.TargetGroupArn
	if _, ok := s.opts.ResourceOf("elasticloadbalancing", "targetgroup/", arn); !ok {
		return nil, invalid("'%s' is not a valid target group ARN", arn)
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if len(tx.LoadBalancersOf()[arn]) > 0 {
			return inUse("Target group '%s' is currently in use by a listener or a rule", arn)
		}
		for _, t := range slices.Collect(tx.TargetsOf(arn)) {
			tx.DeleteTarget(t)
		}
		tx.TargetGroups.Delete(arn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteTargetGroupOutput{}, nil
}

// kindOf returns the kind of load balancer that a target group is for.
func kindOf(g *state.TargetGroup) string {
	if routing.IsNetwork(string(g.Protocol)) {
		return network[0]
	}
	return application[0]
}

// DescribeTargetGroupAttributes lists a target group's attributes.
func (s *Service) DescribeTargetGroupAttributes(
	_ context.Context, in *api.DescribeTargetGroupAttributesInput,
) (*api.DescribeTargetGroupAttributesOutput, error) {
	row, err := findTargetGroup(s.store.View(), in.TargetGroupArn)
	if err != nil {
		return nil, err
	}
	return &api.DescribeTargetGroupAttributesOutput{Attributes: groupAttributesOf(row)}, nil
}

func groupAttributesOf(row *state.TargetGroup) (out []types.TargetGroupAttribute) {
	for _, p := range listAttributes(targetGroupAttributes, kindOf(row), row.Attributes) {
		out = append(out, types.TargetGroupAttribute{Key: &p.key, Value: &p.value})
	}
	return out
}

// ModifyTargetGroupAttributes changes attributes of a target group.
func (s *Service) ModifyTargetGroupAttributes(
	ctx context.Context, in *api.ModifyTargetGroupAttributesInput,
) (*api.ModifyTargetGroupAttributesOutput, error) {
	var given []pair
	for _, a := range in.Attributes {
		given = append(given, pair{text(a.Key), text(a.Value)})
	}
	row, err := s.changeTargetGroup(ctx, in.TargetGroupArn, func(_ *state.Tx, g *state.TargetGroup) (err error) {
		if err := cmp.Or(checkStickiness(g, given), checkProxyProtocol(g, given)); err != nil {
			return err
		}
		if g.Attributes, err = setAttributes(targetGroupAttributes, kindOf(g), g.Attributes, given); err != nil {
			return err
		}
		if a := g.Attributes; a["stickiness.enabled"] == "true" && a["stickiness.type"] == routing.AppCookie && a["stickiness.app_cookie.cookie_name"] == "" {
			return badConfiguration("You must set an application cookie name to enable stickiness of type 'app_cookie'")
		}
		made := configuration.Group(g)
		return worded(routing.Validate(&routing.Balancers{Groups: []routing.Group{made}}))
	})
	if err != nil {
		return nil, err
	}
	return &api.ModifyTargetGroupAttributesOutput{Attributes: groupAttributesOf(row)}, nil
}

// checkProxyProtocol refuses headers of the PROXY protocol in datagrams.
func checkProxyProtocol(g *state.TargetGroup, given []pair) error {
	datagrams := slices.Contains(routing.Networks(string(g.Protocol)), "udp")
	if datagrams && slices.Contains(given, pair{"proxy_protocol_v2.enabled", "true"}) {
		return badConfiguration("Attribute 'proxy_protocol_v2.enabled' is not supported for target groups with the %s protocol by Pintle", g.Protocol)
	}
	return nil
}

// checkStickiness refuses the other kind's stickiness with AWS's message.
func checkStickiness(g *state.TargetGroup, given []pair) error {
	for _, p := range given {
		a := find(targetGroupAttributes, kindOf(g), p.key)
		known := p.value == routing.LBCookie || p.value == routing.AppCookie || p.value == routing.BySource
		if g.Protocol == types.ProtocolEnumTls && p == (pair{"stickiness.enabled", "true"}) {
			return badConfiguration("Stickiness type '%s' is not supported for target groups with the %s protocol", routing.BySource, g.Protocol)
		}
		if p.key == "stickiness.type" && known && !slices.Contains(a.values, p.value) {
			return badConfiguration("Stickiness type '%s' is not supported for target groups with the %s protocol", p.value, g.Protocol)
		}
	}
	return nil
}
