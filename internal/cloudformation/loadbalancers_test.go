package cloudformation

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
)

// balanced has a load balancer with all that belongs to one.
const balanced = `
Resources:
  Balancer:
    Type: AWS::ElasticLoadBalancingV2::LoadBalancer
    Properties:
      Name: web
      Subnets: [subnet-1, subnet-2]
      LoadBalancerAttributes: [{Key: idle_timeout.timeout_seconds, Value: '30'}]
      Tags: [{Key: a, Value: b}]
  Models:
    Type: AWS::ElasticLoadBalancingV2::TargetGroup
    Properties:
      Port: 80
      Protocol: HTTP
      TargetType: ip
      VpcId: vpc-1
      HealthCheckPath: /health
      Matcher: {HttpCode: 200-299}
      TargetGroupAttributes: [{Key: deregistration_delay.timeout_seconds, Value: '5'}]
      Targets: [{Id: 10.0.0.1}, {Id: 10.0.0.2, Port: 81}]
  Listener:
    Type: AWS::ElasticLoadBalancingV2::Listener
    Properties:
      LoadBalancerArn: !Ref Balancer
      Port: 80
      Protocol: HTTP
      DefaultActions: [{Type: forward, TargetGroupArn: !Ref Models}]
  Rule:
    Type: AWS::ElasticLoadBalancingV2::ListenerRule
    Properties:
      ListenerArn: !Ref Listener
      Priority: 10
      Conditions: [{Field: path-pattern, Values: [/old/*]}]
      Actions: [{Type: redirect, RedirectConfig: {StatusCode: HTTP_301, Path: /new}}]
Outputs:
  Name: {Value: !GetAtt Balancer.DNSName}
  Group: {Value: !GetAtt Models.TargetGroupFullName}
`

// activate plays a process that carries all load balancers out.
func (w *world) activate() {
	w.t.Helper()
	err := w.store.Update(w.t.Context(), func(tx *state.Tx) error {
		for _, b := range slices.Collect(tx.LoadBalancers.All()) {
			tx.LoadBalancers.Put(b.Active())
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// TestLoadBalancers: a stack waits until a process carries its load balancer out, changes in place, and leaves nothing.
func TestLoadBalancers(t *testing.T) {
	w := newWorld(t, nil)
	w.create("web", balanced)
	w.expect(types.StackStatusCreateInProgress) // nobody carries it out yet
	w.activate()
	w.expect(types.StackStatusCreateComplete)
	v := w.store.View()
	ids := physicalIDs(v)
	b, g := v.LoadBalancers.Get(ids["Balancer"]), v.TargetGroups.Get(ids["Models"])
	if b.Attributes["idle_timeout.timeout_seconds"] != "30" || *b.Tags[0].Value != "b" || g.Attributes["deregistration_delay.timeout_seconds"] != "5" ||
		*g.HealthCheckPath != "/health" || v.Targets.Len() != 2 {
		t.Errorf("%+v\n%+v", b, g)
	}
	outputs := find(v, w.onlyStack()).Outputs
	if name := *b.DNSName; len(outputs) != 2 || *outputs[0].OutputValue != name && *outputs[1].OutputValue != name {
		t.Errorf("%v", outputs)
	}
	changed := strings.NewReplacer("/old/*", "/older/*", "Priority: 10", "Priority: 20", "/health", "/healthy", ", {Id: 10.0.0.2, Port: 81}", "",
		"Port: 80\n      Protocol: HTTP\n      DefaultActions", "Port: 8080\n      Protocol: HTTP\n      DefaultActions", "Value: b", "Value: c").Replace(balanced)
	w.become("web", changed)
	w.expect(types.StackStatusUpdateComplete)
	v = w.store.View()
	if after := physicalIDs(v); after["Balancer"] != ids["Balancer"] || after["Models"] != ids["Models"] || after["Listener"] != ids["Listener"] || after["Rule"] != ids["Rule"] {
		t.Errorf("%v became %v", ids, after)
	}
	rule := v.ListenerRules.Get(ids["Rule"])
	if rule.Number != 20 || rule.Conditions[0].Values[0] != "/older/*" || *v.TargetGroups.Get(ids["Models"]).HealthCheckPath != "/healthy" ||
		*v.Listeners.Get(ids["Listener"]).Port != 8080 || *v.LoadBalancers.Get(ids["Balancer"]).Tags[0].Value != "c" {
		t.Errorf("%+v", rule)
	}
	if second := v.Targets.Get(state.TargetKey(ids["Models"], "10.0.0.2", 81)); second == nil || second.Draining == nil {
		t.Errorf("%+v", second)
	}
	w.remove("web")
	w.expect(types.StackStatusDeleteComplete)
	v = w.store.View()
	if n := v.LoadBalancers.Len() + v.TargetGroups.Len() + v.Listeners.Len() + v.ListenerRules.Len() + v.Targets.Len(); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// behindBalancer has a group behind a target group.
const behindBalancer = `
Resources:
  One: {Type: 'AWS::ElasticLoadBalancingV2::TargetGroup', Properties: {Port: 80, Protocol: HTTP, VpcId: vpc-1}}
  Two: {Type: 'AWS::ElasticLoadBalancingV2::TargetGroup', Properties: {Port: 80, Protocol: HTTP, VpcId: vpc-1}}
  Launch: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {ImageId: ami-1, InstanceType: c5.large}}
  Group: {Type: 'AWS::AutoScaling::AutoScalingGroup', Properties: {
    LaunchConfigurationName: !Ref Launch, MinSize: 0, MaxSize: 1, AvailabilityZones: [us-east-1a], HealthCheckType: ELB, HealthCheckGracePeriod: 60,
    TargetGroupARNs: [!Ref One]}}
`

// TestGroupBehindLoadBalancer: a group is attached to the target groups that its template names, by either property, and to those alone that
// others attached.
func TestGroupBehindLoadBalancer(t *testing.T) {
	w := newWorld(t, nil)
	w.create("g", behindBalancer)
	w.expect(types.StackStatusCreateComplete)
	ids := w.ids()
	attached := func(want ...string) {
		t.Helper()
		if got := w.store.View().AutoScalingGroups.Get(ids["Group"]).TargetGroupARNs; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	attached(ids["One"])
	w.become("g", strings.Replace(behindBalancer, "TargetGroupARNs: [!Ref One]", "TrafficSources: [{Identifier: !Ref One}, {Identifier: !Ref Two, Type: elbv2}]", 1))
	w.expect(types.StackStatusUpdateComplete)
	attached(ids["One"], ids["Two"])
	w.become("g", strings.Replace(behindBalancer, "TargetGroupARNs: [!Ref One]", "TargetGroupARNs: [!Ref Two]", 1))
	w.expect(types.StackStatusUpdateComplete)
	attached(ids["Two"])
	w.remove("g")
	w.expect(types.StackStatusDeleteComplete)
}
