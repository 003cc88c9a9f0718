// Package configuration makes of the rows of load balancers what a proxy is to carry out, in the types of package routing. The API asks it
// whether a rule or a target group can be carried out at all, and package balancers for everything. It writes nothing.
package configuration

import (
	"cmp"
	"net/netip"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// Options are what rows don't say.
type Options struct {
	CookieKey []byte
	// Certificate returns a certificate with its private key, as PEM, by its ARN; false if it's gone.
	Certificate func(arn string) (routing.Certificate, bool)
}

// Of returns the configuration of all load balancers, and by ARN why listeners and groups are left out of it: those that can't be carried out
// must not keep the others from being so.
func Of(v *state.View, o Options) (routing.Balancers, map[string]error) {
	all := routing.Balancers{CookieKey: o.CookieKey}
	problems := map[string]error{}
	known := map[string]*routing.Group{}
	for row := range v.TargetGroups.All() {
		g := Group(row)
		for t := range v.TargetsOf(*row.TargetGroupArn) {
			if address := Address(v, row, t); isReachable(address) {
				g.Targets = append(g.Targets, routing.Target{ID: t.ID, Address: address, Port: int(t.Port), Draining: t.Draining != nil})
			}
		}
		if err := routing.Validate(&routing.Balancers{Groups: []routing.Group{g}}); err != nil {
			problems[g.ARN] = err
			continue
		}
		all.Groups = append(all.Groups, g)
		known[g.ARN] = &g
	}
	for row := range v.LoadBalancers.All() {
		b := Balancer(row)
		for l := range v.Listeners.By(state.ListenersByLoadBalancer, *row.LoadBalancerArn) {
			made := listener(v, row, l, o.Certificate)
			if err := routing.Validate(Alone(row, made, known)); err != nil {
				problems[made.ARN] = err
				continue
			}
			b.Listeners = append(b.Listeners, made)
		}
		all.Balancers = append(all.Balancers, b)
	}
	return all, problems
}

// isReachable reports whether traffic may go to an address. Nodes say what theirs is; at link-local ones are services of the machine that a
// process runs on.
func isReachable(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && !ip.IsLinkLocalUnicast()
}

// Alone returns the configuration of a listener alone, with those of the groups that it forwards to.
func Alone(b *state.LoadBalancer, l routing.Listener, groups map[string]*routing.Group) *routing.Balancers {
	one := &routing.Balancers{Balancers: []routing.Balancer{Balancer(b)}}
	one.Balancers[0].Listeners = []routing.Listener{l}
	for arn := range routing.Used(one) {
		if g := groups[arn]; g != nil {
			one.Groups = append(one.Groups, *g)
		}
	}
	return one
}

// Address returns the IP address of a target, or "" while nobody knows one.
func Address(v *state.View, g *state.TargetGroup, t *state.Target) string {
	if g.TargetType != types.TargetTypeEnumInstance {
		return t.ID
	}
	for c := range v.ContainerInstances.By(state.InstancesByMachine, t.ID) {
		if c.PrivateIPAddress != "" {
			return c.PrivateIPAddress
		}
	}
	if i := v.Instances.Get(t.ID); i != nil && !i.IsOver() {
		return aws.ToString(i.PrivateIpAddress)
	}
	return ""
}

// Balancer returns a load balancer without its listeners.
func Balancer(row *state.LoadBalancer) routing.Balancer {
	b := routing.Balancer{ARN: *row.LoadBalancerArn, Name: aws.ToString(row.LoadBalancerName), Type: string(row.Type)}
	b.Attributes.IdleTimeoutSeconds, _ = strconv.Atoi(row.Attributes["idle_timeout.timeout_seconds"])
	b.Attributes.DisableHTTP2 = row.Attributes["routing.http2.enabled"] == "false"
	b.Attributes.DropInvalidHeaders = row.Attributes["routing.http.drop_invalid_header_fields.enabled"] == "true"
	b.Attributes.XFFMode = row.Attributes["routing.http.xff_header_processing.mode"]
	return b
}

// Listener returns a listener with these rules, the default one last, and without certificates.
func Listener(row *state.Listener, rules []*state.ListenerRule) routing.Listener {
	l := routing.Listener{ARN: *row.ListenerArn, Protocol: string(row.Protocol), Port: int(aws.ToInt32(row.Port))}
	l.IdleTimeoutSeconds, _ = strconv.Atoi(row.Attributes["tcp.idle_timeout.seconds"])
	l.MinTLS = minTLS[aws.ToString(row.SslPolicy)]
	if len(row.AlpnPolicy) > 0 {
		l.ALPNPolicy = row.AlpnPolicy[0]
	}
	for _, r := range rules {
		l.Rules = append(l.Rules, Rule(r))
	}
	l.Rules = append(l.Rules, routing.Rule{ARN: row.DefaultRule, Actions: actions(row.DefaultActions)})
	return l
}

// minTLS are the security policies that ask for more than TLS 1.2, which is the least that proxies take.
var minTLS = map[string]string{
	"ELBSecurityPolicy-TLS13-1-3-2021-06":    "1.3",
	"ELBSecurityPolicy-TLS13-1-3-PQ-2025-09": "1.3",
}

func listener(
	v *state.View, b *state.LoadBalancer, row *state.Listener, certificate func(string) (routing.Certificate, bool),
) routing.Listener {
	var rules []*state.ListenerRule
	if b.Type == types.LoadBalancerTypeEnumApplication {
		rules = v.RulesOf(*row.ListenerArn)
	}
	l := Listener(row, rules)
	var arns []string
	for _, c := range row.Certificates {
		arns = append(arns, aws.ToString(c.CertificateArn))
	}
	for _, arn := range append(arns, row.More...) {
		if certificate == nil {
			break
		}
		if c, ok := certificate(arn); ok {
			l.Certificates = append(l.Certificates, c)
		}
	}
	return l
}

// Rule returns a rule.
func Rule(row *state.ListenerRule) routing.Rule {
	r := routing.Rule{ARN: *row.RuleArn, Priority: int(row.Number), Actions: actions(row.Actions)}
	for i := range row.Conditions {
		r.Conditions = append(r.Conditions, condition(&row.Conditions[i]))
	}
	return r
}

func condition(c *types.RuleCondition) routing.Condition {
	out := routing.Condition{Field: aws.ToString(c.Field), Values: c.Values}
	switch {
	case c.HostHeaderConfig != nil:
		out.Values = c.HostHeaderConfig.Values
	case c.PathPatternConfig != nil:
		out.Values = c.PathPatternConfig.Values
	case c.HttpRequestMethodConfig != nil:
		out.Values = c.HttpRequestMethodConfig.Values
	case c.SourceIpConfig != nil:
		out.Values = c.SourceIpConfig.Values
	case c.HttpHeaderConfig != nil:
		out.Values = c.HttpHeaderConfig.Values
		out.HeaderName = aws.ToString(c.HttpHeaderConfig.HttpHeaderName)
	case c.QueryStringConfig != nil:
		for _, kv := range c.QueryStringConfig.Values {
			out.Query = append(out.Query, routing.KeyValue{Key: aws.ToString(kv.Key), Value: aws.ToString(kv.Value)})
		}
	}
	return out
}

func actions(all []types.Action) (out []routing.Action) {
	for i := range all {
		out = append(out, action(&all[i]))
	}
	return out
}

func action(a *types.Action) routing.Action {
	out := routing.Action{Type: string(a.Type)}
	switch {
	case a.ForwardConfig != nil:
		out.Forward = forward(a.ForwardConfig)
	case a.TargetGroupArn != nil:
		out.Forward = &routing.Forward{Groups: []routing.WeightedGroup{{ARN: *a.TargetGroupArn, Weight: 1}}}
	}
	if c := a.RedirectConfig; c != nil {
		out.Redirect = &routing.Redirect{
			StatusCode: string(c.StatusCode),
			Protocol:   aws.ToString(c.Protocol),
			Host:       aws.ToString(c.Host),
			Port:       aws.ToString(c.Port),
			Path:       aws.ToString(c.Path),
			Query:      aws.ToString(c.Query),
		}
	}
	if c := a.FixedResponseConfig; c != nil {
		code, _ := strconv.Atoi(aws.ToString(c.StatusCode))
		out.Fixed = &routing.Fixed{StatusCode: code, ContentType: aws.ToString(c.ContentType), MessageBody: aws.ToString(c.MessageBody)}
	}
	return out
}

func forward(c *types.ForwardActionConfig) *routing.Forward {
	f := &routing.Forward{}
	for _, g := range c.TargetGroups {
		weight := 1
		if g.Weight != nil {
			weight = int(*g.Weight)
		}
		f.Groups = append(f.Groups, routing.WeightedGroup{ARN: aws.ToString(g.TargetGroupArn), Weight: weight})
	}
	if s := c.TargetGroupStickinessConfig; s != nil && aws.ToBool(s.Enabled) {
		f.StickinessSeconds = int(aws.ToInt32(s.DurationSeconds))
	}
	return f
}

// Group returns a target group without its targets.
func Group(row *state.TargetGroup) routing.Group {
	g := routing.Group{
		ARN:      *row.TargetGroupArn,
		Name:     aws.ToString(row.TargetGroupName),
		Protocol: string(row.Protocol),
		HealthCheck: routing.HealthCheck{
			Protocol:           string(row.HealthCheckProtocol),
			Port:               aws.ToString(row.HealthCheckPort),
			Path:               aws.ToString(row.HealthCheckPath),
			Matcher:            matcher(row.Matcher),
			IntervalSeconds:    int(aws.ToInt32(row.HealthCheckIntervalSeconds)),
			TimeoutSeconds:     int(aws.ToInt32(row.HealthCheckTimeoutSeconds)),
			HealthyThreshold:   int(aws.ToInt32(row.HealthyThresholdCount)),
			UnhealthyThreshold: int(aws.ToInt32(row.UnhealthyThresholdCount)),
		},
	}
	if !g.IsNetwork() {
		g.ProtocolVersion = aws.ToString(row.ProtocolVersion)
	}
	number := func(key string) int { n, _ := strconv.Atoi(row.Attributes[key]); return n }
	g.Attributes.Algorithm = row.Attributes["load_balancing.algorithm.type"]
	g.Attributes.SlowStartSeconds = number("slow_start.duration_seconds")
	g.Attributes.ProxyProtocol = row.Attributes["proxy_protocol_v2.enabled"] == "true"
	g.Attributes.ConnectionTermination = row.Attributes["deregistration_delay.connection_termination.enabled"] == "true"
	if row.Attributes["deregistration_delay.timeout_seconds"] != "" {
		g.Attributes.DeregistrationDelaySeconds = new(number("deregistration_delay.timeout_seconds"))
	}
	if row.Attributes["stickiness.enabled"] == "true" {
		g.Attributes.Stickiness = stickiness(&g, row.Attributes["stickiness.type"], number)
		if g.Attributes.Stickiness.Type == routing.AppCookie {
			g.Attributes.Stickiness.CookieName = row.Attributes["stickiness.app_cookie.cookie_name"]
		}
	}
	return g
}

func stickiness(g *routing.Group, kind string, number func(string) int) routing.Stickiness {
	if g.IsNetwork() {
		return routing.Stickiness{Type: routing.BySource}
	}
	kind = cmp.Or(kind, routing.LBCookie)
	return routing.Stickiness{Type: kind, DurationSeconds: number("stickiness." + kind + ".duration_seconds")}
}

func matcher(m *types.Matcher) string {
	switch {
	case m == nil:
		return ""
	case m.GrpcCode != nil:
		return *m.GrpcCode
	}
	return aws.ToString(m.HttpCode)
}
