package autoscaling

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// elbv2 is the type of traffic sources that are target groups of Elastic Load Balancing: API_TrafficSourceIdentifier.
const elbv2 = "elbv2"

// maxTargetGroups is how many target groups may be attached to a group: the user guide's page on quotas.
const maxTargetGroups = 50

// targetGroups returns the ARNs of traffic sources, which must be target groups.
func targetGroups(sources []types.TrafficSourceIdentifier) (arns []string, err error) {
	for _, s := range sources {
		if t := aws.ToString(s.Type); t != "" && t != elbv2 {
			return nil, invalid("TrafficSources: the Type must be %s, not %q: Pintle has no Classic Load Balancers and no VPC Lattice.", elbv2, t)
		}
		arns = append(arns, *s.Identifier)
	}
	return arns, nil
}

// merged returns a list with what others have besides, each once.
func merged(list []string, others ...[]string) (out []string) {
	for _, arn := range slices.Concat(append([][]string{list}, others...)...) {
		if !slices.Contains(out, arn) {
			out = append(out, arn)
		}
	}
	return out
}

// checkTargetGroups refuses target groups that instances can't be registered with.
func checkTargetGroups(v *state.View, g *state.AutoScalingGroup, arns []string) error {
	for _, arn := range arns {
		row := v.TargetGroups.Get(arn)
		if row == nil {
			return invalid("Provided Target Groups may not be valid. Please ensure they exist and try again: TargetGroupARNs has %q", arn)
		}
		if row.TargetType != elb.TargetTypeEnumInstance {
			return invalid("TargetGroupARNs: the targets of %s must be of the type instance, not %s", arn, row.TargetType)
		}
	}
	if len(g.TargetGroupARNs) > maxTargetGroups {
		return invalid("TargetGroupARNs: a group has at most %d", maxTargetGroups)
	}
	return nil
}

// checkHealthCheckType refuses health checks that aren't made. EC2's always are.
func checkHealthCheckType(kinds string) error {
	for _, kind := range strings.Split(kinds, ",") {
		if kind != "EC2" && kind != "ELB" {
			return invalid("HealthCheckType must be EC2 or ELB, or both with a comma, not %q: Pintle makes no other checks of instances.", kinds)
		}
	}
	return nil
}

// attach attaches target groups to a group. The loop registers its instances.
func (s *Service) attach(ctx context.Context, group *string, arns []string) error {
	return s.change(ctx, group, func(tx *state.Tx, g *state.AutoScalingGroup) error {
		g.TargetGroupARNs = merged(g.TargetGroupARNs, arns)
		return checkTargetGroups(tx.View, g, arns)
	})
}

// detach detaches target groups from a group. The loop deregisters its instances.
func (s *Service) detach(ctx context.Context, group *string, arns []string) error {
	return s.change(ctx, group, func(_ *state.Tx, g *state.AutoScalingGroup) error {
		for _, arn := range arns {
			n := slices.Index(g.TargetGroupARNs, arn)
			if n < 0 {
				return invalid("Trying to remove Target Groups that are not part of the group: TargetGroupARNs has %q", arn)
			}
			g.TargetGroupARNs = slices.Delete(g.TargetGroupARNs, n, n+1)
		}
		return nil
	})
}

// AttachLoadBalancerTargetGroups attaches target groups to a group. Those that it has stay.
func (s *Service) AttachLoadBalancerTargetGroups(
	ctx context.Context, in *api.AttachLoadBalancerTargetGroupsInput,
) (*api.AttachLoadBalancerTargetGroupsOutput, error) {
	if err := s.attach(ctx, in.AutoScalingGroupName, in.TargetGroupARNs); err != nil {
		return nil, err
	}
	return &api.AttachLoadBalancerTargetGroupsOutput{}, nil
}

// DetachLoadBalancerTargetGroups detaches target groups from a group. Its instances drain there first.
func (s *Service) DetachLoadBalancerTargetGroups(
	ctx context.Context, in *api.DetachLoadBalancerTargetGroupsInput,
) (*api.DetachLoadBalancerTargetGroupsOutput, error) {
	if err := s.detach(ctx, in.AutoScalingGroupName, in.TargetGroupARNs); err != nil {
		return nil, err
	}
	return &api.DetachLoadBalancerTargetGroupsOutput{}, nil
}

// AttachTrafficSources attaches target groups to a group, as AttachLoadBalancerTargetGroups does.
func (s *Service) AttachTrafficSources(ctx context.Context, in *api.AttachTrafficSourcesInput) (*api.AttachTrafficSourcesOutput, error) {
	arns, err := targetGroups(in.TrafficSources)
	if err != nil {
		return nil, err
	}
	if err := s.attach(ctx, in.AutoScalingGroupName, arns); err != nil {
		return nil, err
	}
	return &api.AttachTrafficSourcesOutput{}, nil
}

// DetachTrafficSources detaches target groups from a group, as DetachLoadBalancerTargetGroups does.
func (s *Service) DetachTrafficSources(ctx context.Context, in *api.DetachTrafficSourcesInput) (*api.DetachTrafficSourcesOutput, error) {
	arns, err := targetGroups(in.TrafficSources)
	if err != nil {
		return nil, err
	}
	if err := s.detach(ctx, in.AutoScalingGroupName, arns); err != nil {
		return nil, err
	}
	return &api.DetachTrafficSourcesOutput{}, nil
}

// attached is a target group of a group, and how far its instances are there.
type attached struct{ arn, state string }

// attachedTo returns a group's target groups by their ARNs, also those that it leaves.
func attachedTo(v *state.View, g *state.AutoScalingGroup) (all []attached) {
	members := slices.Collect(v.Instances.By(state.InstancesByGroup, g.Name()))
	for _, arn := range g.TargetGroupARNs {
		all = append(all, attached{arn, attachment(v, members, arn)})
	}
	for _, i := range members {
		for _, arn := range i.Member.TargetGroups {
			if !slices.ContainsFunc(all, func(a attached) bool { return a.arn == arn }) {
				all = append(all, attached{arn, "Removing"})
			}
		}
	}
	account.SortBy(all, func(a attached) string { return a.arn })
	return all
}

// attachment returns the state of a target group that stays attached: API_LoadBalancerTargetGroupState.
func attachment(v *state.View, members []*state.Instance, arn string) string {
	is := "Added"
	for _, i := range members {
		switch {
		case i.Member.LifecycleState != types.LifecycleStateInService:
		case !slices.Contains(i.Member.TargetGroups, arn):
			return "Adding"
		default:
			if t := v.MemberTarget(i, arn); t != nil && t.IsHealthy() {
				is = "InService"
			}
		}
	}
	return is
}

// pageOfAttached returns a page of a group's target groups.
func (s *Service) pageOfAttached(operation string, group *string, limit *int32, token *string) ([]attached, *string, error) {
	v := s.store.View()
	g, err := findGroup(v, group)
	if err != nil {
		return nil, nil, err
	}
	return account.Sorted(listing(operation, pageMost, pageMost), attachedTo(v, g), limit, token, func(a attached) string { return a.arn })
}

// DescribeLoadBalancerTargetGroups lists a group's target groups.
func (s *Service) DescribeLoadBalancerTargetGroups(
	_ context.Context, in *api.DescribeLoadBalancerTargetGroupsInput,
) (*api.DescribeLoadBalancerTargetGroupsOutput, error) {
	all, next, err := s.pageOfAttached("DescribeLoadBalancerTargetGroups", in.AutoScalingGroupName, in.MaxRecords, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeLoadBalancerTargetGroupsOutput{LoadBalancerTargetGroups: []types.LoadBalancerTargetGroupState{}, NextToken: next}
	for _, a := range all {
		out.LoadBalancerTargetGroups = append(out.LoadBalancerTargetGroups,
			types.LoadBalancerTargetGroupState{LoadBalancerTargetGroupARN: &a.arn, State: &a.state})
	}
	return out, nil
}

// DescribeTrafficSources lists a group's target groups as traffic sources.
func (s *Service) DescribeTrafficSources(_ context.Context, in *api.DescribeTrafficSourcesInput) (*api.DescribeTrafficSourcesOutput, error) {
	kind := aws.ToString(in.TrafficSourceType)
	if kind != "" && kind != "elb" && kind != elbv2 && kind != "vpc-lattice" {
		return nil, invalid("TrafficSourceType must be elb, %s or vpc-lattice, not %q", elbv2, kind)
	}
	all, next, err := s.pageOfAttached("DescribeTrafficSources", in.AutoScalingGroupName, in.MaxRecords, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeTrafficSourcesOutput{TrafficSources: []types.TrafficSourceState{}, NextToken: next}
	if kind != "" && kind != elbv2 {
		return out, nil // there are none
	}
	for _, a := range all {
		out.TrafficSources = append(out.TrafficSources,
			types.TrafficSourceState{Identifier: &a.arn, TrafficSource: &a.arn, Type: aws.String(elbv2), State: &a.state})
	}
	return out, nil
}
