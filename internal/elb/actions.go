package elb

import (
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/configuration"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// completeActions returns actions as AWS lists them: forwards with both of their forms, redirects with all of their parts.
func completeActions(given []types.Action) ([]types.Action, error) {
	if len(given) == 0 {
		return nil, invalid("At least one action must be specified")
	}
	out := slices.Clone(given)
	for i := range out {
		if err := completeAction(&out[i]); err != nil {
			return nil, err
		}
	}
	if len(out) > 1 {
		return nil, &types.TooManyActionsException{Message: account.Message(
			"A rule can have one action here: what could stand before it, authentication, is not supported by Pintle")}
	}
	return out, nil
}

func completeAction(a *types.Action) error {
	switch {
	case a.Type == types.ActionTypeEnumAuthenticateOidc, a.Type == types.ActionTypeEnumAuthenticateCognito, a.Type == types.ActionTypeEnumJwtValidation:
		return badAction("Actions of type '%s' are not supported by Pintle", a.Type)
	case a.AuthenticateCognitoConfig != nil, a.AuthenticateOidcConfig != nil, a.JwtValidationConfig != nil:
		return badAction("An action of type '%s' cannot have the configuration of another type", a.Type)
	}
	switch a.Type {
	case types.ActionTypeEnumForward:
		return completeForward(a)
	case types.ActionTypeEnumRedirect:
		if a.RedirectConfig == nil {
			return invalid("A redirect configuration must be specified for actions of type 'redirect'")
		}
		c := *a.RedirectConfig
		c.Protocol = cmp.Or(c.Protocol, aws.String("#{protocol}"))
		c.Host = cmp.Or(c.Host, aws.String("#{host}"))
		c.Port = cmp.Or(c.Port, aws.String("#{port}"))
		c.Path = cmp.Or(c.Path, aws.String("/#{path}"))
		c.Query = cmp.Or(c.Query, aws.String("#{query}"))
		a.RedirectConfig = &c
	case types.ActionTypeEnumFixedResponse:
		if a.FixedResponseConfig == nil {
			return invalid("A fixed response configuration must be specified for actions of type 'fixed-response'")
		}
	}
	return nil
}

// completeForward fills in the form of a forward that a call leaves out.
func completeForward(a *types.Action) error {
	if a.TargetGroupArn == nil && (a.ForwardConfig == nil || len(a.ForwardConfig.TargetGroups) == 0) {
		return invalid("A target group ARN must be specified")
	}
	c := types.ForwardActionConfig{}
	if a.ForwardConfig != nil {
		c = *a.ForwardConfig
	}
	if len(c.TargetGroups) == 0 {
		c.TargetGroups = []types.TargetGroupTuple{{TargetGroupArn: a.TargetGroupArn}}
	}
	c.TargetGroups = slices.Clone(c.TargetGroups)
	for i := range c.TargetGroups {
		g := &c.TargetGroups[i]
		if g.Weight == nil {
			g.Weight = new(int32(1))
		}
		if g.TargetGroupArn == nil {
			return invalid("A target group ARN must be specified")
		}
	}
	switch {
	case a.TargetGroupArn != nil && (len(c.TargetGroups) != 1 || *c.TargetGroups[0].TargetGroupArn != *a.TargetGroupArn):
		return invalid("You can specify both a target group ARN and a forward configuration only if they name the same single target group")
	case len(c.TargetGroups) == 1:
		a.TargetGroupArn = c.TargetGroups[0].TargetGroupArn
	}
	s := types.TargetGroupStickinessConfig{Enabled: new(false)}
	if c.TargetGroupStickinessConfig != nil {
		s = *c.TargetGroupStickinessConfig
	}
	if aws.ToBool(s.Enabled) && s.DurationSeconds == nil {
		return invalid("A duration must be specified for the stickiness of target groups")
	}
	c.TargetGroupStickinessConfig = &s
	a.ForwardConfig = &c
	return nil
}

// conditionConfigs are the members of a condition that its values may be in, by its field.
var conditionConfigs = map[string]func(*types.RuleCondition) bool{
	routing.HostHeader:    func(c *types.RuleCondition) bool { return c.HostHeaderConfig != nil },
	routing.PathPattern:   func(c *types.RuleCondition) bool { return c.PathPatternConfig != nil },
	routing.HTTPHeader:    func(c *types.RuleCondition) bool { return c.HttpHeaderConfig != nil },
	routing.RequestMethod: func(c *types.RuleCondition) bool { return c.HttpRequestMethodConfig != nil },
	routing.QueryString:   func(c *types.RuleCondition) bool { return c.QueryStringConfig != nil },
	routing.SourceIP:      func(c *types.RuleCondition) bool { return c.SourceIpConfig != nil },
}

// completeConditions returns conditions as AWS lists them: those that have their values in two forms with both.
func completeConditions(given []types.RuleCondition) ([]types.RuleCondition, error) {
	if len(given) == 0 {
		return nil, invalid("At least one condition must be specified")
	}
	out := slices.Clone(given)
	for i := range out {
		if err := completeCondition(&out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func completeCondition(c *types.RuleCondition) error {
	field := text(c.Field)
	hasConfig := conditionConfigs[field]
	if hasConfig == nil {
		return invalid("Condition field '%s' must be one of '[path-pattern,host-header,http-header,http-request-method,query-string,source-ip]'", field)
	}
	if s := c.SourceIpConfig; s != nil && s.IpAddressType != "" {
		return notSupported("A source's IpAddressType '" + string(s.IpAddressType) + "'")
	}
	for other, has := range conditionConfigs {
		if other != field && has(c) {
			return invalid("A condition of field '%s' cannot have the configuration of '%s'", field, other)
		}
	}
	if usesExpressions(c) {
		return notSupported("RegexValues")
	}
	plain := field == routing.HostHeader || field == routing.PathPattern
	switch {
	case len(c.Values) > 0 && !plain:
		return invalid("The 'Values' field is not compatible with '%s'", field)
	case len(c.Values) > 0 && hasConfig(c):
		if !slices.Equal(c.Values, plainValues(c)) {
			return invalid("You cannot provide both Values and the configuration of '%s' for a condition", field)
		}
	case !hasConfig(c) && !plain:
		return invalid("The configuration of a condition of field '%s' must be specified", field)
	case hasConfig(c):
		c.Values = plainValues(c)
	case field == routing.HostHeader:
		c.HostHeaderConfig = &types.HostHeaderConditionConfig{Values: c.Values}
	default:
		c.PathPatternConfig = &types.PathPatternConditionConfig{Values: c.Values}
	}
	if plain && len(c.Values) == 0 {
		return invalid("A condition value must be specified")
	}
	return nil
}

func usesExpressions(c *types.RuleCondition) bool {
	return len(c.RegexValues) > 0 || c.HostHeaderConfig != nil && len(c.HostHeaderConfig.RegexValues) > 0 ||
		c.PathPatternConfig != nil && len(c.PathPatternConfig.RegexValues) > 0 ||
		c.HttpHeaderConfig != nil && len(c.HttpHeaderConfig.RegexValues) > 0
}

// plainValues are the values that a condition also lists by themselves.
func plainValues(c *types.RuleCondition) []string {
	switch {
	case c.HostHeaderConfig != nil:
		return c.HostHeaderConfig.Values
	case c.PathPatternConfig != nil:
		return c.PathPatternConfig.Values
	}
	return nil
}

// checkListener refuses a listener with one of its rules, or with its default one alone, that can't be carried out.
func checkListener(v *state.View, b *state.LoadBalancer, l *state.Listener, rule *state.ListenerRule) error {
	var rules []*state.ListenerRule
	actions := l.DefaultActions
	if rule != nil {
		rules = append(rules, rule)
		actions = rule.Actions
	}
	groups := map[string]*routing.Group{}
	users := v.LoadBalancersOf()
	for _, arn := range state.ForwardsTo(append(slices.Clone(l.DefaultActions), actions...)) {
		row := v.TargetGroups.Get(arn)
		if row == nil {
			return noTargetGroup(arn)
		}
		if err := checkForward(b, l, row, users[arn]); err != nil {
			return err
		}
		groups[arn] = new(configuration.Group(row))
	}
	// The certificates are checked by themselves.
	return worded(routing.ValidateBut(routing.Certificates, configuration.Alone(b, configuration.Listener(l, rules), groups)))
}

// checkForward refuses a target group that a listener can't forward to.
func checkForward(b *state.LoadBalancer, l *state.Listener, g *state.TargetGroup, users []string) error {
	switch {
	case kindOf(g) != string(b.Type) || !routing.Fits(string(l.Protocol), string(g.Protocol)):
		return &types.IncompatibleProtocolsException{Message: account.Message(
			"The %s protocol of target group '%s' and the %s protocol of the listener are not compatible", g.Protocol, *g.TargetGroupArn, l.Protocol)}
	case text(g.ProtocolVersion) == routing.GRPC && l.Protocol != types.ProtocolEnumHttps:
		return &types.IncompatibleProtocolsException{Message: account.Message(
			"Listener protocol '%s' is not supported with a target group with the protocol-version 'GRPC'", l.Protocol)}
	case len(users) > 0 && !slices.Contains(users, *b.LoadBalancerArn):
		return &types.TargetGroupAssociationLimitException{Message: account.Message(
			"The following target groups cannot be associated with more than one load balancer: %s", *g.TargetGroupArn)}
	}
	return nil
}
