package elb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/elb/configuration"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/validation"
)

// constraints check inputs, as package wire does before a call.
var constraints = validation.New(API(nil).Constraints)

// world is a service with a clock of its own.
type world struct {
	*Service
	t   *testing.T
	now time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	w.Service = New(statetest.Open(t), Options{Account: accounttest.New(func() time.Time { return w.now })})
	return w
}

// do calls an operation as a client would, and ends the test if it's refused.
func do[I, O any](w *world, operation func(context.Context, *I) (*O, error), in *I) *O {
	w.t.Helper()
	out, err := validation.Checked(constraints, operation)(w.t.Context(), in)
	if err != nil {
		w.t.Fatalf("%T: %v", in, err)
	}
	return out
}

// refused returns how an operation is refused.
func refused[I, O any](w *world, operation func(context.Context, *I) (*O, error), in *I) string {
	_, err := validation.Checked(constraints, operation)(w.t.Context(), in)
	var refusal smithy.APIError
	if !errors.As(err, &refusal) {
		return fmt.Sprintf("%v", err)
	}
	return refusal.ErrorCode() + ": " + refusal.ErrorMessage()
}

func (w *world) check(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s:\ngot  %s\nwant %s", what, got, want)
	}
}

// has checks that a refusal begins so.
func (w *world) has(got, want string) {
	w.t.Helper()
	if !strings.HasPrefix(got, want) {
		w.t.Errorf("got  %s\nwant %s …", got, want)
	}
}

func balancerInput(name string) *api.CreateLoadBalancerInput {
	return &api.CreateLoadBalancerInput{Name: &name, Subnets: []string{"subnet-1", "subnet-2"}}
}

func groupInput(name string) *api.CreateTargetGroupInput {
	return &api.CreateTargetGroupInput{
		Name: &name, Protocol: "HTTP", Port: aws.Int32(80), VpcId: aws.String("vpc-1"), TargetType: types.TargetTypeEnumIp,
	}
}

func (w *world) balancer(name string) types.LoadBalancer {
	w.t.Helper()
	return do(w, w.CreateLoadBalancer, balancerInput(name)).LoadBalancers[0]
}

func (w *world) group(name string) types.TargetGroup {
	w.t.Helper()
	return do(w, w.CreateTargetGroup, groupInput(name)).TargetGroups[0]
}

func forwardTo(arn *string) []types.Action {
	return []types.Action{{Type: types.ActionTypeEnumForward, TargetGroupArn: arn}}
}

func answer(code string) []types.Action {
	return []types.Action{{Type: types.ActionTypeEnumFixedResponse, FixedResponseConfig: &types.FixedResponseActionConfig{StatusCode: &code}}}
}

func onPath(path string) []types.RuleCondition {
	return []types.RuleCondition{{Field: aws.String("path-pattern"), Values: []string{path}}}
}

func (w *world) listener(balancer *string, port int32, actions []types.Action) types.Listener {
	w.t.Helper()
	return do(w, w.CreateListener, &api.CreateListenerInput{
		LoadBalancerArn: balancer, Port: &port, Protocol: "HTTP", DefaultActions: actions,
	}).Listeners[0]
}

// TestLoadBalancer: what a load balancer is made of is described as on AWS, and becomes what a proxy carries out.
func TestLoadBalancer(t *testing.T) {
	w := newWorld(t)
	b, g := w.balancer("Web"), w.group("models")
	w.has(*b.LoadBalancerArn, "arn:aws:elasticloadbalancing:us-east-1:000000000000:loadbalancer/app/Web/")
	id := state.NameOf(*b.LoadBalancerArn)
	w.check("its name", *b.DNSName, "web-"+id+".elb.localhost")
	w.check("its state", string(b.State.Code), "provisioning")
	w.check("its zones", *b.AvailabilityZones[0].ZoneName+*b.AvailabilityZones[1].ZoneName, "us-east-1aus-east-1b")
	w.check("the group's check", strings.TrimSpace(fmt.Sprintln(*g.HealthCheckPath, g.HealthCheckProtocol, *g.HealthCheckPort, *g.Matcher.HttpCode, *g.ProtocolVersion,
		*g.HealthCheckIntervalSeconds, *g.HealthCheckTimeoutSeconds, *g.HealthyThresholdCount)), "/ HTTP traffic-port 200 HTTP1 30 5 5")
	l := w.listener(b.LoadBalancerArn, 80, forwardTo(g.TargetGroupArn))
	w.has(*l.ListenerArn, "arn:aws:elasticloadbalancing:us-east-1:000000000000:listener/app/Web/"+id+"/")
	rule := do(w, w.CreateRule, &api.CreateRuleInput{
		ListenerArn: l.ListenerArn, Priority: aws.Int32(10), Conditions: onPath("/old/*"),
		Actions: []types.Action{{Type: "redirect", RedirectConfig: &types.RedirectActionConfig{StatusCode: "HTTP_301", Path: aws.String("/new")}}},
	}).Rules[0]
	w.has(*rule.RuleArn, "arn:aws:elasticloadbalancing:us-east-1:000000000000:listener-rule/app/Web/"+id+"/")
	w.check("both forms of values", rule.Conditions[0].PathPatternConfig.Values[0], "/old/*")
	w.check("all parts of a redirect", *rule.Actions[0].RedirectConfig.Query, "#{query}")
	rules := do(w, w.DescribeRules, &api.DescribeRulesInput{ListenerArn: l.ListenerArn}).Rules
	w.check("the rules", *rules[0].Priority+" "+*rules[1].Priority, "10 default")
	w.check("both forms of a forward", *rules[1].Actions[0].ForwardConfig.TargetGroups[0].TargetGroupArn, *g.TargetGroupArn)
	do(w, w.RegisterTargets, &api.RegisterTargetsInput{TargetGroupArn: g.TargetGroupArn, Targets: []types.TargetDescription{{Id: aws.String("10.0.0.1")}}})
	do(w, w.ModifyTargetGroupAttributes, &api.ModifyTargetGroupAttributesInput{
		TargetGroupArn: g.TargetGroupArn,
		Attributes:     []types.TargetGroupAttribute{{Key: aws.String("deregistration_delay.timeout_seconds"), Value: aws.String("7")}},
	})
	all, problems := configuration.Of(w.store.View(), configuration.Options{})
	if len(problems) > 0 || routing.Validate(&all) != nil {
		t.Fatal(problems)
	}
	made := all.Balancers[0].Listeners[0]
	if len(made.Rules) != 2 || made.Rules[0].Actions[0].Redirect.Path != "/new" || all.Groups[0].Targets[0].Address != "10.0.0.1" ||
		all.Groups[0].Targets[0].Port != 80 || all.Groups[0].DeregistrationSeconds() != 7 {
		t.Errorf("%+v", all)
	}
	listed := do(w, w.DescribeTargetGroups, &api.DescribeTargetGroupsInput{LoadBalancerArn: b.LoadBalancerArn}).TargetGroups
	w.check("who uses the group", listed[0].LoadBalancerArns[0], *b.LoadBalancerArn)
}

// TestTheSameOnceMore: a call that was cut off before its answer came can be made again.
func TestTheSameOnceMore(t *testing.T) {
	w := newWorld(t)
	b, g := w.balancer("web"), w.group("models")
	l := w.listener(b.LoadBalancerArn, 80, forwardTo(g.TargetGroupArn))
	w.check("the load balancer", *w.balancer("web").LoadBalancerArn, *b.LoadBalancerArn)
	w.check("the group", *w.group("models").TargetGroupArn, *g.TargetGroupArn)
	w.check("the listener", *w.listener(b.LoadBalancerArn, 80, forwardTo(g.TargetGroupArn)).ListenerArn, *l.ListenerArn)
	other := balancerInput("web")
	other.Scheme = types.LoadBalancerSchemeEnumInternal
	w.check("another load balancer", refused(w, w.CreateLoadBalancer, other),
		"DuplicateLoadBalancerName: A load balancer with the same name 'web' exists, but with different settings")
	another := groupInput("models")
	another.Port = aws.Int32(81)
	w.check("another group", refused(w, w.CreateTargetGroup, another),
		"DuplicateTargetGroupName: A target group with the same name 'models' exists, but with different settings")
	w.check("another listener", refused(w, w.CreateListener, &api.CreateListenerInput{
		LoadBalancerArn: b.LoadBalancerArn, Port: aws.Int32(80), Protocol: "HTTP", DefaultActions: answer("404"),
	}), "DuplicateListener: A listener already exists on this port for this load balancer '"+*b.LoadBalancerArn+"'")
}

// TestOrderOfDeletion: what is in use stays.
func TestOrderOfDeletion(t *testing.T) {
	w := newWorld(t)
	b, g := w.balancer("web"), w.group("models")
	l := w.listener(b.LoadBalancerArn, 80, answer("404"))
	rule := do(w, w.CreateRule, &api.CreateRuleInput{
		ListenerArn: l.ListenerArn, Priority: aws.Int32(1), Conditions: onPath("/x"), Actions: forwardTo(g.TargetGroupArn),
	}).Rules[0]
	remove := &api.DeleteTargetGroupInput{TargetGroupArn: g.TargetGroupArn}
	w.check("a group in use", refused(w, w.DeleteTargetGroup, remove),
		"ResourceInUse: Target group '"+*g.TargetGroupArn+"' is currently in use by a listener or a rule")
	protect := func(on string) {
		do(w, w.ModifyLoadBalancerAttributes, &api.ModifyLoadBalancerAttributesInput{
			LoadBalancerArn: b.LoadBalancerArn,
			Attributes:      []types.LoadBalancerAttribute{{Key: aws.String("deletion_protection.enabled"), Value: &on}},
		})
	}
	protect("true")
	removeBalancer := &api.DeleteLoadBalancerInput{LoadBalancerArn: b.LoadBalancerArn}
	w.check("a protected load balancer", refused(w, w.DeleteLoadBalancer, removeBalancer),
		"OperationNotPermitted: Load balancer '"+*b.LoadBalancerArn+"' cannot be deleted because deletion protection is enabled")
	protect("false")
	rules := do(w, w.DescribeRules, &api.DescribeRulesInput{ListenerArn: l.ListenerArn}).Rules
	w.check("the default rule", refused(w, w.DeleteRule, &api.DeleteRuleInput{RuleArn: rules[1].RuleArn}),
		"OperationNotPermitted: Default rule '"+*rules[1].RuleArn+"' cannot be deleted")
	do(w, w.DeleteLoadBalancer, removeBalancer)
	do(w, w.DeleteLoadBalancer, removeBalancer) // is no error
	w.check("its rules", refused(w, w.DescribeRules, &api.DescribeRulesInput{RuleArns: []string{*rule.RuleArn}}), "RuleNotFound: One or more rules not found")
	do(w, w.DeleteTargetGroup, remove)
	w.check("the group", refused(w, w.DescribeTargetGroups, &api.DescribeTargetGroupsInput{Names: []string{"models"}}),
		"TargetGroupNotFound: One or more target groups not found")
}

func TestRefusedLoadBalancers(t *testing.T) {
	w := newWorld(t)
	for want, change := range map[string]func(*api.CreateLoadBalancerInput){
		"ValidationError: Load balancer name 'a_b' can only contain":                                  func(in *api.CreateLoadBalancerInput) { in.Name = aws.String("a_b") },
		"ValidationError: Load balancer name '-a' cannot begin":                                       func(in *api.CreateLoadBalancerInput) { in.Name = aws.String("-a") },
		"ValidationError: Load balancer name 'internal-a' cannot begin with 'internal-'":              func(in *api.CreateLoadBalancerInput) { in.Name = aws.String("internal-a") },
		"ValidationError: Load balancer name '" + strings.Repeat("a", 33) + "' cannot be longer":      func(in *api.CreateLoadBalancerInput) { in.Name = new(strings.Repeat("a", 33)) },
		"ValidationError: At least two subnets in two different Availability Zones must be specified": func(in *api.CreateLoadBalancerInput) { in.Subnets = in.Subnets[:1] },
		"ValidationError: At least one subnet must be specified":                                      func(in *api.CreateLoadBalancerInput) { in.Subnets = nil },
		"InvalidConfigurationRequest: Load balancers of type 'gateway' are not supported":             func(in *api.CreateLoadBalancerInput) { in.Type = "gateway" },
		"InvalidConfigurationRequest: The IP address type 'dualstack' is not supported":               func(in *api.CreateLoadBalancerInput) { in.IpAddressType = "dualstack" },
		"InvalidConfigurationRequest: AllocationId in SubnetMappings is not supported": func(in *api.CreateLoadBalancerInput) {
			in.Subnets, in.SubnetMappings = nil, []types.SubnetMapping{{SubnetId: aws.String("subnet-1"), AllocationId: aws.String("eipalloc-1")}}
		},
		"DuplicateTagKeys: Tag key was specified more than once: a": func(in *api.CreateLoadBalancerInput) {
			in.Tags = []types.Tag{{Key: aws.String("a")}, {Key: aws.String("a")}}
		},
	} {
		in := balancerInput("web")
		change(in)
		w.has(refused(w, w.CreateLoadBalancer, in), want)
	}
	if n := len(do(w, w.DescribeLoadBalancers, &api.DescribeLoadBalancersInput{}).LoadBalancers); n != 0 {
		t.Errorf("%d were made", n)
	}
	w.check("none", refused(w, w.DescribeLoadBalancers, &api.DescribeLoadBalancersInput{Names: []string{"none"}}),
		"LoadBalancerNotFound: Load balancers '[none]' not found")
}

// TestNetworkOfLoadBalancers: what a load balancer's network is made of must exist, unless all of it is from elsewhere.
func TestNetworkOfLoadBalancers(t *testing.T) {
	w := newWorld(t)
	w.update(func(tx *state.Tx) {
		tx.VPCs.Put(&state.VPC{Vpc: ec2.Vpc{VpcId: aws.String("vpc-d"), IsDefault: aws.Bool(true)}})
		for zone, id := range map[string]string{"a": "subnet-a", "b": "subnet-b"} {
			tx.Subnets.Put(&state.Subnet{Subnet: ec2.Subnet{SubnetId: aws.String(id), VpcId: aws.String("vpc-d"), AvailabilityZone: aws.String("us-east-1" + zone)}})
		}
		for id, vpc := range map[string]string{"sg-here": "vpc-d", "sg-other": "vpc-o"} {
			tx.SecurityGroups.Put(&state.SecurityGroup{SecurityGroup: ec2.SecurityGroup{GroupId: aws.String(id), VpcId: aws.String(vpc)}})
		}
	})
	in := func(name string, subnets []string, groups ...string) *api.CreateLoadBalancerInput {
		return &api.CreateLoadBalancerInput{Name: &name, Subnets: subnets, SecurityGroups: groups}
	}
	here := []string{"subnet-a", "subnet-b"}
	do(w, w.CreateLoadBalancer, in("elsewhere", []string{"subnet-1", "subnet-2"}, "sg-elsewhere"))
	row := do(w, w.CreateLoadBalancer, in("here", here, "sg-here")).LoadBalancers[0]
	const none, other = "InvalidSecurityGroup: The security group 'sg-none' does not exist",
		"InvalidConfigurationRequest: Security group 'sg-other' does not belong to VPC 'vpc-d'"
	w.check("an unknown group", refused(w, w.CreateLoadBalancer, in("x", here, "sg-none")), none)
	w.check("another VPC's group", refused(w, w.CreateLoadBalancer, in("x", here, "sg-other")), other)
	w.check("an unknown subnet", refused(w, w.CreateLoadBalancer, in("x", []string{"subnet-1", "subnet-b"})),
		"SubnetNotFound: The subnet ID 'subnet-1' does not exist")
	set := func(group string) *api.SetSecurityGroupsInput {
		return &api.SetSecurityGroupsInput{LoadBalancerArn: row.LoadBalancerArn, SecurityGroups: []string{group}}
	}
	w.check("setting an unknown group", refused(w, w.SetSecurityGroups, set("sg-none")), none)
	w.check("setting another VPC's group", refused(w, w.SetSecurityGroups, set("sg-other")), other)
	do(w, w.SetSecurityGroups, set("sg-here"))
}

func TestRefusedTargetGroups(t *testing.T) {
	w := newWorld(t)
	for want, change := range map[string]func(*api.CreateTargetGroupInput){
		"ValidationError: Target group name 'a_b' can only contain":                              func(in *api.CreateTargetGroupInput) { in.Name = aws.String("a_b") },
		"ValidationError: A protocol must be specified":                                          func(in *api.CreateTargetGroupInput) { in.Protocol = "" },
		"ValidationError: A port must be specified":                                              func(in *api.CreateTargetGroupInput) { in.Port = nil },
		"ValidationError: A VPC ID must be specified":                                            func(in *api.CreateTargetGroupInput) { in.VpcId = nil },
		"InvalidConfigurationRequest: Target groups with target type 'lambda' are not supported": func(in *api.CreateTargetGroupInput) { in.TargetType = "lambda" },
		"UnsupportedProtocol: Target groups of protocol 'QUIC' are not supported":                func(in *api.CreateTargetGroupInput) { in.Protocol = "QUIC" },
		"ValidationError: Health check protocol 'UDP' must be one of 'HTTP, HTTPS, TCP'": func(in *api.CreateTargetGroupInput) {
			in.Protocol, in.HealthCheckProtocol = "UDP", "UDP"
		},
		"ValidationError: Health check protocol 'TCP' is not supported for target groups with the HTTP": func(in *api.CreateTargetGroupInput) {
			in.HealthCheckProtocol = "TCP"
		},
		"ValidationError: Protocol version cannot be specified for target groups with the TLS protocol": func(in *api.CreateTargetGroupInput) {
			in.Protocol, in.ProtocolVersion = "TLS", aws.String("HTTP1")
		},
		"ValidationError: Health check timeout '10' must be smaller than the interval '5'": func(in *api.CreateTargetGroupInput) {
			in.HealthCheckIntervalSeconds, in.HealthCheckTimeoutSeconds = aws.Int32(5), aws.Int32(10)
		},
		"ValidationError: HealthCheck.Matcher": func(in *api.CreateTargetGroupInput) { in.Matcher = &types.Matcher{HttpCode: aws.String("200-")} },
		"ValidationError: GrpcCode can be specified": func(in *api.CreateTargetGroupInput) {
			in.Matcher = &types.Matcher{GrpcCode: aws.String("0")}
		},
		"ValidationError: HealthCheck.Path":     func(in *api.CreateTargetGroupInput) { in.HealthCheckPath = aws.String("x") },
		"ValidationError: Health check enabled": func(in *api.CreateTargetGroupInput) { in.HealthCheckEnabled = new(false) },
	} {
		in := groupInput("models")
		change(in)
		w.has(refused(w, w.CreateTargetGroup, in), want)
	}
	g := w.group("models")
	set := func(key, value string) string {
		return refused(w, w.ModifyTargetGroupAttributes, &api.ModifyTargetGroupAttributesInput{
			TargetGroupArn: g.TargetGroupArn, Attributes: []types.TargetGroupAttribute{{Key: &key, Value: &value}},
		})
	}
	w.check("a delay", set("deregistration_delay.timeout_seconds", "3601"),
		"ValidationError: 'deregistration_delay.timeout_seconds' value '3601' must be between '0-3600' inclusive")
	w.check("stickiness", set("stickiness.type", "source_ip"),
		"InvalidConfigurationRequest: Stickiness type 'source_ip' is not supported for target groups with the HTTP protocol")
	w.has(set("load_balancing.algorithm.type", "weighted_random"), "InvalidConfigurationRequest: The value 'weighted_random' of attribute")
	w.has(set("nonsense", "1"), "InvalidConfigurationRequest: Attribute key 'nonsense' is not recognized")
	w.check("slow start off", set("slow_start.duration_seconds", "0"), "<nil>")
	w.has(set("slow_start.duration_seconds", "10"), "ValidationError: 'slow_start.duration_seconds' value '10' must be")
}

func TestRefusedListeners(t *testing.T) {
	w := newWorld(t)
	b, g := w.balancer("web"), w.group("models")
	tcp := groupInput("tcp")
	tcp.Protocol = "TCP"
	other := do(w, w.CreateTargetGroup, tcp).TargetGroups[0]
	w.listener(w.balancer("second").LoadBalancerArn, 80, forwardTo(w.group("taken").TargetGroupArn))
	taken := do(w, w.DescribeTargetGroups, &api.DescribeTargetGroupsInput{Names: []string{"taken"}}).TargetGroups[0].TargetGroupArn
	for want, change := range map[string]func(*api.CreateListenerInput){
		"ValidationError: A listener port must be specified":                                      func(in *api.CreateListenerInput) { in.Port = nil },
		"ValidationError: A listener protocol must be specified":                                  func(in *api.CreateListenerInput) { in.Protocol = "" },
		"ValidationError: Listener protocol 'TCP' must be one of 'HTTP, HTTPS'":                   func(in *api.CreateListenerInput) { in.Protocol = "TCP" },
		"InvalidConfigurationRequest: You must provide a list containing exactly one certificate": func(in *api.CreateListenerInput) { in.Protocol = "HTTPS" },
		"CertificateNotFound: Certificate 'arn:x' not found": func(in *api.CreateListenerInput) {
			in.Protocol, in.Certificates = "HTTPS", []types.Certificate{{CertificateArn: aws.String("arn:x")}}
		},
		"LoadBalancerNotFound: Load balancer 'arn:x' not found": func(in *api.CreateListenerInput) { in.LoadBalancerArn = aws.String("arn:x") },
		"TargetGroupNotFound: Target group 'arn:x' not found":   func(in *api.CreateListenerInput) { in.DefaultActions = forwardTo(aws.String("arn:x")) },
		"IncompatibleProtocols: The TCP protocol of target group": func(in *api.CreateListenerInput) {
			in.DefaultActions = forwardTo(other.TargetGroupArn)
		},
		"TargetGroupAssociationLimit: The following target groups cannot be associated with more than one": func(in *api.CreateListenerInput) {
			in.DefaultActions = forwardTo(taken)
		},
		"InvalidLoadBalancerAction: Actions of type 'authenticate-oidc' are not supported": func(in *api.CreateListenerInput) {
			in.DefaultActions = []types.Action{{Type: "authenticate-oidc"}}
		},
		"ValidationError: Redirect: it must change": func(in *api.CreateListenerInput) {
			in.DefaultActions = []types.Action{{Type: "redirect", RedirectConfig: &types.RedirectActionConfig{StatusCode: "HTTP_301"}}}
		},
		"ValidationError: 1 validation error detected: Value '300'": func(in *api.CreateListenerInput) { in.DefaultActions = answer("300") },
		"ValidationError: At least one action must be specified":    func(in *api.CreateListenerInput) { in.DefaultActions = []types.Action{} },
	} {
		in := &api.CreateListenerInput{LoadBalancerArn: b.LoadBalancerArn, Port: aws.Int32(80), Protocol: "HTTP", DefaultActions: forwardTo(g.TargetGroupArn)}
		change(in)
		w.has(refused(w, w.CreateListener, in), want)
	}
	if all := do(w, w.DescribeListeners, &api.DescribeListenersInput{LoadBalancerArn: b.LoadBalancerArn}).Listeners; len(all) != 0 {
		t.Error(all)
	}
}

func TestNetworkLoadBalancer(t *testing.T) {
	w := newWorld(t)
	in := balancerInput("net")
	in.Type, in.Subnets = "network", in.Subnets[:1]
	b := do(w, w.CreateLoadBalancer, in).LoadBalancers[0]
	w.has(*b.LoadBalancerArn, "arn:aws:elasticloadbalancing:us-east-1:000000000000:loadbalancer/net/net/")
	tcp := groupInput("tcp")
	tcp.Protocol = "TCP"
	g := do(w, w.CreateTargetGroup, tcp).TargetGroups[0]
	if g.HealthCheckProtocol != "TCP" || g.Matcher != nil || g.HealthCheckPath != nil || g.ProtocolVersion != nil {
		t.Errorf("%+v", g)
	}
	listen := &api.CreateListenerInput{LoadBalancerArn: b.LoadBalancerArn, Port: aws.Int32(5432), Protocol: "QUIC", DefaultActions: forwardTo(g.TargetGroupArn)}
	w.check("QUIC", refused(w, w.CreateListener, listen), "UnsupportedProtocol: Listeners of protocol 'QUIC' are not supported by Pintle")
	listen.Protocol = "TCP"
	l := do(w, w.CreateListener, listen).Listeners[0]
	w.check("rules", refused(w, w.CreateRule, &api.CreateRuleInput{
		ListenerArn: l.ListenerArn, Priority: aws.Int32(1), Conditions: onPath("/"), Actions: forwardTo(g.TargetGroupArn),
	}), "UnsupportedProtocol: Rules are not supported for listeners with the TCP protocol")
	all, problems := configuration.Of(w.store.View(), configuration.Options{})
	if len(problems) > 0 || len(all.Balancers[0].Listeners) != 1 {
		t.Error(problems)
	}
}

// networkBalancer is a network load balancer with a target group for each of its protocols, named like that.
func (w *world) networkBalancer() (types.LoadBalancer, map[types.ProtocolEnum]*string) {
	w.t.Helper()
	in := balancerInput("net")
	in.Type = "network"
	groups := map[types.ProtocolEnum]*string{}
	for _, protocol := range networkListeners {
		g := groupInput(strings.ReplaceAll(string(protocol), "_", "-"))
		g.Protocol = protocol
		groups[protocol] = do(w, w.CreateTargetGroup, g).TargetGroups[0].TargetGroupArn
	}
	w.update(func(tx *state.Tx) {
		tx.Certificates.Put(&state.Certificate{ARN: "arn:c"})
	})
	return do(w, w.CreateLoadBalancer, in).LoadBalancers[0], groups
}

func (w *world) update(change func(*state.Tx)) {
	w.t.Helper()
	if err := w.store.Update(w.t.Context(), func(tx *state.Tx) error { change(tx); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// TestWhichGroupsFit: AWS's table of listeners' protocols and those of target groups.
func TestWhichGroupsFit(t *testing.T) {
	w := newWorld(t)
	b, groups := w.networkBalancer()
	fits := map[types.ProtocolEnum]string{"TCP": "TCP TCP_UDP", "TLS": "TCP TLS", "UDP": "UDP TCP_UDP", "TCP_UDP": "TCP_UDP"}
	for port, listener := range networkListeners {
		for protocol, arn := range groups {
			in := &api.CreateListenerInput{
				LoadBalancerArn: b.LoadBalancerArn, Port: aws.Int32(int32(port + 1)), Protocol: listener, DefaultActions: forwardTo(arn),
			}
			if listener == "TLS" {
				in.Certificates = []types.Certificate{{CertificateArn: aws.String("arn:c")}}
			}
			got := refused(w, w.CreateListener, in)
			if slices.Contains(strings.Fields(fits[listener]), string(protocol)) {
				w.check(string(listener), got, "<nil>")
				l := do(w, w.DescribeListeners, &api.DescribeListenersInput{LoadBalancerArn: b.LoadBalancerArn}).Listeners[0]
				do(w, w.DeleteListener, &api.DeleteListenerInput{ListenerArn: l.ListenerArn})
				continue
			}
			w.has(got, fmt.Sprintf("IncompatibleProtocols: The %s protocol of target group '%s' and the %s protocol of the listener are not compatible",
				protocol, *arn, listener))
		}
	}
}

func TestTLSListeners(t *testing.T) {
	w := newWorld(t)
	b, groups := w.networkBalancer()
	good := api.CreateListenerInput{
		LoadBalancerArn: b.LoadBalancerArn, Port: aws.Int32(443), Protocol: "TLS", DefaultActions: forwardTo(groups["TLS"]),
		Certificates: []types.Certificate{{CertificateArn: aws.String("arn:c")}}, AlpnPolicy: []string{"HTTP2Preferred"},
	}
	for want, change := range map[string]func(*api.CreateListenerInput){
		"InvalidConfigurationRequest: You must provide a list containing exactly one certificate if the listener protocol is TLS": func(
			in *api.CreateListenerInput,
		) {
			in.Certificates = nil
		},
		"ALPNPolicyNotFound: ALPN policy 'HTTP3Only' must be one of 'None, HTTP1Only": func(in *api.CreateListenerInput) {
			in.AlpnPolicy = []string{"HTTP3Only"}
		},
		"ALPNPolicyNotFound: You can specify one ALPN policy": func(in *api.CreateListenerInput) { in.AlpnPolicy = []string{"None", "None"} },
		"ALPNPolicyNotFound: ALPN policies are not supported for listeners with the TCP protocol": func(in *api.CreateListenerInput) {
			in.Protocol, in.Certificates, in.DefaultActions = "TCP", nil, forwardTo(groups["TCP"])
		},
	} {
		in := good
		change(&in)
		w.has(refused(w, w.CreateListener, &in), want)
	}
	l := do(w, w.CreateListener, &good).Listeners[0]
	if aws.ToString(l.SslPolicy) != defaultPolicy || l.AlpnPolicy[0] != "HTTP2Preferred" {
		t.Errorf("%+v", l)
	}
	do(w, w.AddListenerCertificates, &api.AddListenerCertificatesInput{ListenerArn: l.ListenerArn, Certificates: good.Certificates})
	w.has(refused(w, w.ModifyListenerAttributes, &api.ModifyListenerAttributesInput{
		ListenerArn: l.ListenerArn, Attributes: []types.ListenerAttribute{{Key: aws.String("tcp.idle_timeout.seconds"), Value: aws.String("60")}},
	}), "InvalidConfigurationRequest: Attribute key 'tcp.idle_timeout.seconds' is not recognized")
	l = do(w, w.ModifyListener, &api.ModifyListenerInput{ListenerArn: l.ListenerArn, SslPolicy: aws.String("ELBSecurityPolicy-TLS13-1-3-2021-06")}).Listeners[0]
	row := w.store.View().Listeners.Get(*l.ListenerArn)
	if made := configuration.Listener(row, nil); made.ALPNPolicy != "HTTP2Preferred" || made.MinTLS != "1.3" {
		t.Errorf("%+v", made)
	}
	l = do(w, w.ModifyListener, &api.ModifyListenerInput{ListenerArn: l.ListenerArn, Protocol: "TCP", DefaultActions: forwardTo(groups["TCP"])}).Listeners[0]
	if l.AlpnPolicy != nil || l.SslPolicy != nil || l.Certificates != nil {
		t.Errorf("%+v", l)
	}
}

// TestNetworkAttributes: which groups may have which, and that what is set reaches proxies.
func TestNetworkAttributes(t *testing.T) {
	w := newWorld(t)
	_, groups := w.networkBalancer()
	set := func(protocol types.ProtocolEnum, key, value string) string {
		return refused(w, w.ModifyTargetGroupAttributes, &api.ModifyTargetGroupAttributesInput{
			TargetGroupArn: groups[protocol], Attributes: []types.TargetGroupAttribute{{Key: &key, Value: &value}},
		})
	}
	w.check("proxy protocol", set("TLS", "proxy_protocol_v2.enabled", "true"), "<nil>")
	w.check("in datagrams", set("UDP", "proxy_protocol_v2.enabled", "true"),
		"InvalidConfigurationRequest: Attribute 'proxy_protocol_v2.enabled' is not supported for target groups with the UDP protocol by Pintle")
	w.check("stickiness", set("UDP", "stickiness.enabled", "true"), "<nil>")
	w.check("stickiness of TLS", set("TLS", "stickiness.enabled", "true"),
		"InvalidConfigurationRequest: Stickiness type 'source_ip' is not supported for target groups with the TLS protocol")
	w.has(set("UDP", "preserve_client_ip.enabled", "true"), "InvalidConfigurationRequest: The value 'true' of attribute 'preserve_client_ip.enabled' is not supported")
	v := w.store.View()
	g := configuration.Group(v.TargetGroups.Get(*groups["TLS"]))
	u := configuration.Group(v.TargetGroups.Get(*groups["UDP"]))
	if !g.Attributes.ProxyProtocol || g.Terminates() || u.Attributes.Stickiness.Type != routing.BySource || !u.Terminates() {
		t.Errorf("%+v\n%+v", g, u)
	}
}

func TestRules(t *testing.T) {
	w := newWorld(t)
	b := w.balancer("web")
	l := w.listener(b.LoadBalancerArn, 80, answer("404"))
	create := func(priority int32, c ...types.RuleCondition) *api.CreateRuleInput {
		return &api.CreateRuleInput{ListenerArn: l.ListenerArn, Priority: &priority, Conditions: c, Actions: answer("200")}
	}
	one := do(w, w.CreateRule, create(1, onPath("/a")...)).Rules[0]
	two := do(w, w.CreateRule, create(2, types.RuleCondition{
		Field: aws.String("query-string"), QueryStringConfig: &types.QueryStringConditionConfig{
			Values: []types.QueryStringKeyValuePair{{Value: aws.String("x*")}},
		},
	})).Rules[0]
	w.check("a priority in use", refused(w, w.CreateRule, create(2, onPath("/b")...)), "PriorityInUse: Priority '2' is currently in use")
	for want, c := range map[string]types.RuleCondition{
		"ValidationError: Condition field 'nonsense' must be one of '[path-pattern,":             {Field: aws.String("nonsense")},
		"ValidationError: The 'Values' field is not compatible with 'source-ip'":                 {Field: aws.String("source-ip"), Values: []string{"10.0.0.0/8"}},
		"ValidationError: A condition value must be specified":                                   {Field: aws.String("path-pattern")},
		"ValidationError: Conditions[0].Values[0]: \"a b\" has characters that are not a path's": {Field: aws.String("path-pattern"), Values: []string{"a b"}},
		"InvalidConfigurationRequest: RegexValues is not supported":                              {Field: aws.String("path-pattern"), RegexValues: []string{".*"}},
		"ValidationError: The configuration of a condition of field 'http-header' must be spec":  {Field: aws.String("http-header")},
		"ValidationError: A condition of field 'path-pattern' cannot have the configuration of '": {
			Field: aws.String("path-pattern"), SourceIpConfig: &types.SourceIpConditionConfig{Values: []string{"10.0.0.0/8"}},
		},
	} {
		w.has(refused(w, w.CreateRule, create(3, c)), want)
	}
	swap := func(a, b int32) *api.SetRulePrioritiesInput {
		return &api.SetRulePrioritiesInput{RulePriorities: []types.RulePriorityPair{
			{RuleArn: one.RuleArn, Priority: &a}, {RuleArn: two.RuleArn, Priority: &b},
		}}
	}
	do(w, w.SetRulePriorities, swap(2, 1))
	w.check("the same twice", refused(w, w.SetRulePriorities, swap(5, 5)), "PriorityInUse: Priority '5' is currently in use")
	rules := do(w, w.DescribeRules, &api.DescribeRulesInput{ListenerArn: l.ListenerArn}).Rules
	w.check("the order", *rules[0].RuleArn+*rules[0].Priority, *two.RuleArn+"1")
	changed := do(w, w.ModifyRule, &api.ModifyRuleInput{RuleArn: one.RuleArn, Actions: answer("503")}).Rules[0]
	w.check("what stays", changed.Conditions[0].Values[0]+*changed.Priority, "/a2")
	w.check("nothing to change", refused(w, w.ModifyRule, &api.ModifyRuleInput{RuleArn: one.RuleArn}),
		"ValidationError: Either conditions or actions must be specified")
}

func TestTargets(t *testing.T) {
	w := newWorld(t)
	b, g := w.balancer("web"), w.group("models")
	register := func(id string, port *int32) *api.RegisterTargetsInput {
		return &api.RegisterTargetsInput{TargetGroupArn: g.TargetGroupArn, Targets: []types.TargetDescription{{Id: &id, Port: port}}}
	}
	health := func() (all []string) {
		for _, d := range do(w, w.DescribeTargetHealth, &api.DescribeTargetHealthInput{TargetGroupArn: g.TargetGroupArn}).TargetHealthDescriptions {
			all = append(all, fmt.Sprint(*d.Target.Id, ":", *d.Target.Port, " ", d.TargetHealth.State, " ", d.TargetHealth.Reason))
		}
		return all
	}
	do(w, w.RegisterTargets, register("10.0.0.1", nil))
	do(w, w.RegisterTargets, register("10.0.0.1", aws.Int32(81)))
	if got := health(); !slices.Equal(got, []string{"10.0.0.1:80 unused Target.NotInUse", "10.0.0.1:81 unused Target.NotInUse"}) {
		t.Error(got)
	}
	w.listener(b.LoadBalancerArn, 80, forwardTo(g.TargetGroupArn))
	do(w, w.DeregisterTargets, &api.DeregisterTargetsInput{
		TargetGroupArn: g.TargetGroupArn, Targets: []types.TargetDescription{{Id: aws.String("10.0.0.1"), Port: aws.Int32(81)}},
	})
	if got := health(); !slices.Equal(got, []string{
		"10.0.0.1:80 initial Elb.RegistrationInProgress", "10.0.0.1:81 draining Target.DeregistrationInProgress",
	}) {
		t.Error(got)
	}
	do(w, w.RegisterTargets, register("10.0.0.1", aws.Int32(81))) // it comes back
	if got := health(); got[1] != "10.0.0.1:81 initial Elb.RegistrationInProgress" {
		t.Error(got)
	}
	for _, id := range []string{"nonsense", "i-123", "::1", "0.0.0.0", "169.254.169.254", "8.8.8.8"} {
		w.has(refused(w, w.RegisterTargets, register(id, nil)), "ValidationError: The IP address '"+id+"'")
	}
	err := w.store.Update(t.Context(), func(tx *state.Tx) error {
		tx.VPCs.Put(&state.VPC{Vpc: ec2.Vpc{VpcId: aws.String("vpc-1"), CidrBlock: aws.String("8.8.0.0/16")}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"100.64.0.1", "127.0.0.1", "8.8.8.8"} {
		do(w, w.RegisterTargets, register(id, nil))
	}
	one := do(w, w.DescribeTargetHealth, &api.DescribeTargetHealthInput{
		TargetGroupArn: g.TargetGroupArn, Targets: []types.TargetDescription{{Id: aws.String("10.0.0.9")}},
	}).TargetHealthDescriptions[0]
	w.check("a stranger", string(one.TargetHealth.Reason), "Target.NotRegistered")
	in := groupInput("machines")
	in.TargetType = types.TargetTypeEnumInstance
	machines := do(w, w.CreateTargetGroup, in).TargetGroups[0]
	w.check("no machine", refused(w, w.RegisterTargets, &api.RegisterTargetsInput{
		TargetGroupArn: machines.TargetGroupArn, Targets: []types.TargetDescription{{Id: aws.String("i-123")}},
	}), "InvalidTarget: The following targets do not exist: 'i-123'")
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	b, g := w.balancer("web"), w.group("models")
	l := w.listener(b.LoadBalancerArn, 80, answer("404"))
	rules := do(w, w.DescribeRules, &api.DescribeRulesInput{ListenerArn: l.ListenerArn}).Rules
	arns := []string{*b.LoadBalancerArn, *g.TargetGroupArn, *l.ListenerArn, *rules[0].RuleArn}
	do(w, w.AddTags, &api.AddTagsInput{ResourceArns: arns, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("b")}}})
	do(w, w.RemoveTags, &api.RemoveTagsInput{ResourceArns: arns, TagKeys: []string{"b"}})
	for _, d := range do(w, w.DescribeTags, &api.DescribeTagsInput{ResourceArns: arns}).TagDescriptions {
		if len(d.Tags) != 1 || *d.Tags[0].Value != "1" {
			t.Errorf("%s: %v", *d.ResourceArn, d.Tags)
		}
	}
	w.check("none", refused(w, w.DescribeTags, &api.DescribeTagsInput{ResourceArns: []string{*l.ListenerArn + "0"}}),
		"ListenerNotFound: Listener '"+*l.ListenerArn+"0' not found")
}

// TestAttributesAreTold: all that clients ask for is there, and every value that is told can be set again.
func TestAttributesAreTold(t *testing.T) {
	w := newWorld(t)
	b, g := w.balancer("web"), w.group("models")
	l := w.listener(b.LoadBalancerArn, 80, answer("404"))
	all := do(w, w.DescribeLoadBalancerAttributes, &api.DescribeLoadBalancerAttributesInput{LoadBalancerArn: b.LoadBalancerArn}).Attributes
	do(w, w.ModifyLoadBalancerAttributes, &api.ModifyLoadBalancerAttributesInput{LoadBalancerArn: b.LoadBalancerArn, Attributes: all[:20]})
	do(w, w.ModifyLoadBalancerAttributes, &api.ModifyLoadBalancerAttributesInput{LoadBalancerArn: b.LoadBalancerArn, Attributes: all[20:]})
	ofGroup := do(w, w.DescribeTargetGroupAttributes, &api.DescribeTargetGroupAttributesInput{TargetGroupArn: g.TargetGroupArn}).Attributes
	do(w, w.ModifyTargetGroupAttributes, &api.ModifyTargetGroupAttributesInput{TargetGroupArn: g.TargetGroupArn, Attributes: ofGroup})
	ofListener := do(w, w.DescribeListenerAttributes, &api.DescribeListenerAttributesInput{ListenerArn: l.ListenerArn}).Attributes
	do(w, w.ModifyListenerAttributes, &api.ModifyListenerAttributesInput{ListenerArn: l.ListenerArn, Attributes: ofListener})
	if len(all) < 20 || len(ofGroup) < 12 || len(ofListener) != 1 {
		t.Error(len(all), len(ofGroup), len(ofListener))
	}
	on := []types.LoadBalancerAttribute{{Key: aws.String("connection_logs.s3.enabled"), Value: aws.String("true")}}
	w.has(refused(w, w.ModifyLoadBalancerAttributes, &api.ModifyLoadBalancerAttributesInput{LoadBalancerArn: b.LoadBalancerArn, Attributes: on}),
		"InvalidConfigurationRequest: The value 'true' of attribute 'connection_logs.s3.enabled' is not supported")
}

// buckets takes objects into the bucket logs alone.
type buckets struct{ keys []string }

func (b *buckets) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if *in.Bucket != "logs" {
		return nil, &smithy.GenericAPIError{Code: "NoSuchBucket"}
	}
	b.keys = append(b.keys, *in.Key)
	return &s3.PutObjectOutput{}, nil
}

// TestAccessLogs: where access logs go is tested when they are switched on, or go elsewhere, and at no other time.
func TestAccessLogs(t *testing.T) {
	w := newWorld(t)
	into := &buckets{}
	w.opts.Buckets = into
	b := w.balancer("web")
	input := func(pairs ...string) *api.ModifyLoadBalancerAttributesInput {
		in := &api.ModifyLoadBalancerAttributesInput{LoadBalancerArn: b.LoadBalancerArn}
		for n := 0; n < len(pairs); n += 2 {
			key := pairs[n]
			if !strings.Contains(key, "timeout") {
				key = "access_logs.s3." + key
			}
			in.Attributes = append(in.Attributes, types.LoadBalancerAttribute{Key: &key, Value: &pairs[n+1]})
		}
		return in
	}
	for says, in := range map[string]*api.ModifyLoadBalancerAttributesInput{
		"InvalidConfigurationRequest: The value of 'access_logs.s3.bucket' cannot be empty": input("enabled", "true"),
		"InvalidConfigurationRequest: Access Denied for bucket: none.":                      input("enabled", "true", "bucket", "none"),
		"InvalidConfigurationRequest: The value 'a/AWSLogs' of 'access_logs.s3.prefix'":     input("enabled", "true", "bucket", "logs", "prefix", "a/AWSLogs"),
		"InvalidConfigurationRequest: The value '/a' of 'access_logs.s3.prefix'":            input("prefix", "/a"),
	} {
		w.has(refused(w, w.ModifyLoadBalancerAttributes, in), says)
	}
	if row := w.store.View().LoadBalancers.Get(*b.LoadBalancerArn); len(row.Attributes) != 0 || len(into.keys) != 0 {
		t.Error(row.Attributes, into.keys)
	}
	for _, in := range []*api.ModifyLoadBalancerAttributesInput{
		input("bucket", "logs"), input("enabled", "true"), input("enabled", "true"), input("idle_timeout.timeout_seconds", "30"),
		input("prefix", "a/b"), input("enabled", "false"), input("enabled", "true"),
	} {
		do(w, w.ModifyLoadBalancerAttributes, in)
	}
	const file = "AWSLogs/000000000000/ELBAccessLogTestFile"
	if want := []string{file, "a/b/" + file, "a/b/" + file}; !slices.Equal(into.keys, want) {
		t.Errorf("%q, want %q", into.keys, want)
	}
}
