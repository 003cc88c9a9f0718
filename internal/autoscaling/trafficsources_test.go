package autoscaling

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/state"
)

// withTargets gives a world target groups: web and api of instances, and pods of addresses.
func withTargets(w *world) {
	w.update(func(tx *state.Tx) {
		for name, kind := range map[string]elb.TargetTypeEnum{"web": "instance", "api": "instance", "pods": "ip"} {
			tx.TargetGroups.Put(&state.TargetGroup{TargetGroup: elb.TargetGroup{
				TargetGroupArn: &name, TargetGroupName: &name, TargetType: kind, Port: aws.Int32(80), Protocol: "HTTP",
			}})
		}
	})
}

func (w *world) attachedTo(group string) (all []string) {
	w.t.Helper()
	out, err := w.DescribeLoadBalancerTargetGroups(w.t.Context(), &api.DescribeLoadBalancerTargetGroupsInput{AutoScalingGroupName: &group})
	w.must(err)
	for _, g := range out.LoadBalancerTargetGroups {
		all = append(all, *g.LoadBalancerTargetGroupARN+" "+*g.State)
	}
	return all
}

// TestTrafficSources: target groups are attached and detached by either name, and shown with how far instances are there.
func TestTrafficSources(t *testing.T) {
	w := newWorld(t)
	withTargets(w)
	in := groupInput("new")
	in.TargetGroupARNs = []string{"web"}
	in.TrafficSources = []types.TrafficSourceIdentifier{{Identifier: aws.String("web")}, {Identifier: aws.String("api"), Type: aws.String("elbv2")}}
	in.HealthCheckType = aws.String("EC2,ELB")
	w.must(errOf(w.CreateAutoScalingGroup(t.Context(), in)))
	out, err := w.DescribeAutoScalingGroups(t.Context(), &api.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"new"}})
	w.must(err)
	if g := out.AutoScalingGroups[0]; !slices.Equal(g.TargetGroupARNs, []string{"web", "api"}) || len(g.TrafficSources) != 2 ||
		*g.TrafficSources[1].Identifier != "api" || *g.TrafficSources[1].Type != "elbv2" {
		t.Errorf("%v %v", g.TargetGroupARNs, g.TrafficSources)
	}
	w.must(errOf(w.DetachTrafficSources(t.Context(), &api.DetachTrafficSourcesInput{
		AutoScalingGroupName: aws.String("new"), TrafficSources: []types.TrafficSourceIdentifier{{Identifier: aws.String("web")}},
	})))
	if got := w.attachedTo("new"); !slices.Equal(got, []string{"api Added"}) {
		t.Error(got)
	}
	for range 2 {
		w.must(errOf(w.AttachLoadBalancerTargetGroups(t.Context(), &api.AttachLoadBalancerTargetGroupsInput{
			AutoScalingGroupName: aws.String("g"), TargetGroupARNs: []string{"web"},
		})))
	}
	if got := w.attachedTo("g"); !slices.Equal(got, []string{"web Adding"}) {
		t.Error(got)
	}
	w.update(func(tx *state.Tx) { // as the loop does
		row := tx.Instances.Get(serves).Clone()
		row.Member.TargetGroups = []string{"api", "web"}
		tx.Instances.Put(row)
		tx.RegisterTarget(state.Target{Group: "web", ID: serves, Port: 80, AutoScalingGroup: "g"})
	})
	if got := w.attachedTo("g"); !slices.Equal(got, []string{"api Removing", "web Added"}) {
		t.Error(got)
	}
	w.update(func(tx *state.Tx) {
		tx.Targets.Put(tx.Targets.Get(state.TargetKey("web", serves, 80)).Checked(elb.TargetHealth{State: "healthy"}, w.now))
	})
	sources, err := w.DescribeTrafficSources(t.Context(), &api.DescribeTrafficSourcesInput{AutoScalingGroupName: aws.String("g")})
	w.must(err)
	if len(sources.TrafficSources) != 2 || *sources.TrafficSources[1].State != "InService" || *sources.TrafficSources[1].Type != "elbv2" {
		t.Errorf("%+v", sources.TrafficSources)
	}
	none, err := w.DescribeTrafficSources(t.Context(), &api.DescribeTrafficSourcesInput{
		AutoScalingGroupName: aws.String("g"), TrafficSourceType: aws.String("vpc-lattice"),
	})
	w.must(err)
	if len(none.TrafficSources) != 0 {
		t.Errorf("%+v", none.TrafficSources)
	}
	w.must(errOf(w.DetachLoadBalancerTargetGroups(t.Context(), &api.DetachLoadBalancerTargetGroupsInput{
		AutoScalingGroupName: aws.String("g"), TargetGroupARNs: []string{"web"},
	})))
	if got := w.attachedTo("g"); !slices.Equal(got, []string{"api Removing", "web Removing"}) {
		t.Error(got)
	}
}

func TestRefusedTrafficSources(t *testing.T) {
	w := newWorld(t)
	withTargets(w)
	many := make([]string, 51)
	w.update(func(tx *state.Tx) {
		for n := range many {
			many[n] = fmt.Sprint("many-", n)
			tx.TargetGroups.Put(&state.TargetGroup{TargetGroup: elb.TargetGroup{
				TargetGroupArn: &many[n], TargetGroupName: &many[n], TargetType: "instance", Port: aws.Int32(80),
			}})
		}
	})
	attach := func(arns ...string) error {
		return errOf(w.AttachLoadBalancerTargetGroups(t.Context(), &api.AttachLoadBalancerTargetGroupsInput{
			AutoScalingGroupName: aws.String("g"), TargetGroupARNs: arns,
		}))
	}
	source := func(id, kind string) error {
		return errOf(w.AttachTrafficSources(t.Context(), &api.AttachTrafficSourcesInput{
			AutoScalingGroupName: aws.String("g"), TrafficSources: []types.TrafficSourceIdentifier{{Identifier: &id, Type: &kind}},
		}))
	}
	before := w.snapshot()
	for says, err := range map[string]error{
		"ValidationError: Provided Target Groups may not be valid": attach("web", "none"),
		"ValidationError: TargetGroupARNs: the targets of pods":    attach("pods"),
		"ValidationError: TargetGroupARNs: a group has at most 50": attach(many...),
		"ValidationError: TrafficSources: the Type":                source("classic", "elb"),
		"ValidationError: Trying to remove Target Groups that are not part": errOf(w.DetachLoadBalancerTargetGroups(t.Context(),
			&api.DetachLoadBalancerTargetGroupsInput{AutoScalingGroupName: aws.String("g"), TargetGroupARNs: []string{"web"}})),
		"ValidationError: TrafficSourceType": errOf(w.DescribeTrafficSources(t.Context(),
			&api.DescribeTrafficSourcesInput{AutoScalingGroupName: aws.String("g"), TrafficSourceType: aws.String("x")})),
		"ValidationError: HealthCheckType": errOf(w.UpdateAutoScalingGroup(t.Context(),
			&api.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("g"), HealthCheckType: aws.String("EC2,VPC_LATTICE")})),
		"ValidationError: AutoScalingGroup name not found": errOf(w.DescribeLoadBalancerTargetGroups(t.Context(),
			&api.DescribeLoadBalancerTargetGroupsInput{AutoScalingGroupName: aws.String("none")})),
	} {
		if got := fmt.Sprint(err); len(got) < len(says) || got[:len(says)] != says {
			t.Errorf("%s: %v", says, err)
		}
	}
	if w.snapshot() != before {
		t.Error("a refused call changes something")
	}
}
