package autoscaling

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// DescribeAutoScalingGroups lists groups with their instances.
func (s *Service) DescribeAutoScalingGroups(
	_ context.Context, in *api.DescribeAutoScalingGroupsInput,
) (*api.DescribeAutoScalingGroupsOutput, error) {
	v := s.store.View()
	match, err := matcher(in.Filters, func(g *state.AutoScalingGroup) []types.TagDescription { return g.Tags })
	if err != nil {
		return nil, err
	}
	var rows []*state.AutoScalingGroup
	for g := range v.AutoScalingGroups.All() {
		if (len(in.AutoScalingGroupNames) == 0 || slices.Contains(in.AutoScalingGroupNames, g.Name())) && match(g) {
			rows = append(rows, g)
		}
	}
	rows, next, err := account.Sorted(listing("DescribeAutoScalingGroups", pageDefault, pageMost), rows, in.MaxRecords, in.NextToken,
		(*state.AutoScalingGroup).Name)
	if err != nil {
		return nil, err
	}
	out := &api.DescribeAutoScalingGroupsOutput{AutoScalingGroups: []types.AutoScalingGroup{}, NextToken: next}
	for _, row := range rows {
		g := row.AutoScalingGroup
		g.MixedInstancesPolicy = withOverrides(g.MixedInstancesPolicy)
		withLists(&g)
		warm := int32(0)
		for i := range v.Instances.By(state.InstancesByGroup, row.Name()) {
			switch {
			case i.Member.IsWarm():
				warm++
			case in.IncludeInstances == nil || *in.IncludeInstances:
				g.Instances = append(g.Instances, types.Instance(instanceOf(i)))
			}
		}
		if g.WarmPoolConfiguration != nil {
			g.WarmPoolSize = &warm
		}
		out.AutoScalingGroups = append(out.AutoScalingGroups, g)
	}
	return out, nil
}

// withLists gives a described group the lists that answers have also where they are empty. Clients read them without asking.
func withLists(g *types.AutoScalingGroup) {
	g.Instances = []types.Instance{}
	g.EnabledMetrics = notNil(g.EnabledMetrics)
	g.SuspendedProcesses = notNil(g.SuspendedProcesses)
	g.Tags = notNil(g.Tags)
	g.LoadBalancerNames = []string{}
	g.TargetGroupARNs = notNil(g.TargetGroupARNs)
	g.TrafficSources = []types.TrafficSourceIdentifier{}
	for _, arn := range g.TargetGroupARNs {
		g.TrafficSources = append(g.TrafficSources, types.TrafficSourceIdentifier{Identifier: &arn, Type: aws.String(elbv2)})
	}
}

// matcher returns a function that applies a call's filters: tag-key, tag-value and tag:KEY. All filters must match, each by any value.
func matcher[T any](filters []types.Filter, tags func(T) []types.TagDescription) (func(T) bool, error) {
	for _, f := range filters {
		if n := aws.ToString(f.Name); n != "tag-key" && n != "tag-value" && !strings.HasPrefix(n, "tag:") {
			return nil, invalid("The filter %q must be tag-key, tag-value or tag:KEY", n)
		}
	}
	return func(t T) bool {
		return !slices.ContainsFunc(filters, func(f types.Filter) bool {
			return !slices.ContainsFunc(tags(t), func(tag types.TagDescription) bool {
				switch name := *f.Name; name {
				case "tag-key":
					return slices.Contains(f.Values, *tag.Key)
				case "tag-value":
					return slices.Contains(f.Values, aws.ToString(tag.Value))
				default:
					return name == "tag:"+*tag.Key && slices.Contains(f.Values, aws.ToString(tag.Value))
				}
			})
		})
	}, nil
}

// withOverrides returns a mixed instances policy with a list of overrides, even if it's empty.
func withOverrides(m *types.MixedInstancesPolicy) *types.MixedInstancesPolicy {
	if m == nil || m.LaunchTemplate == nil || m.LaunchTemplate.Overrides != nil {
		return m
	}
	out := *m
	template := *m.LaunchTemplate
	template.Overrides = []types.LaunchTemplateOverrides{}
	out.LaunchTemplate = &template
	return &out
}

// instanceOf describes an instance as its group shows it.
func instanceOf(i *state.Instance) types.Instance {
	health := "Healthy"
	if i.Member.Unhealthy {
		health = "Unhealthy"
	}
	return types.Instance{
		InstanceId:           i.InstanceId,
		AvailabilityZone:     i.Placement.AvailabilityZone,
		HealthStatus:         &health,
		LifecycleState:       i.Member.LifecycleState,
		ProtectedFromScaleIn: &i.Member.Protected,
		InstanceType:         new(string(i.InstanceType)),
		LaunchTemplate:       i.Member.LaunchTemplate,
		ImageId:              i.ImageId,

		LaunchConfigurationName: configurationOf(i),
	}
}

// configurationOf returns the name of an instance's launch configuration, or nil.
func configurationOf(i *state.Instance) *string {
	if i.Member.LaunchConfiguration == "" {
		return nil
	}
	return &i.Member.LaunchConfiguration
}

// DescribeScalingActivities lists scaling activities, newest first.
func (s *Service) DescribeScalingActivities(
	_ context.Context, in *api.DescribeScalingActivitiesInput,
) (*api.DescribeScalingActivitiesOutput, error) {
	if len(in.Filters) > 0 {
		return nil, invalid("Filters: Pintle supports none for activities")
	}
	v := s.store.View()
	all := v.GroupActivities.All()
	if in.AutoScalingGroupName != nil {
		all = v.GroupActivities.By(state.GroupActivitiesByGroup, *in.AutoScalingGroupName)
	}
	var rows []*state.GroupActivity
	for a := range all {
		named := len(in.ActivityIds) == 0 || slices.Contains(in.ActivityIds, *a.ActivityId)
		if named && (aws.ToBool(in.IncludeDeletedGroups) || !ofDeletedGroup(v, a)) {
			rows = append(rows, a)
		}
	}
	slices.Reverse(rows)
	rows, next, err := account.Ordered(listing("DescribeScalingActivities", 100, 100), rows, in.MaxRecords, in.NextToken,
		func(a *state.GroupActivity) string { return *a.ActivityId })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeScalingActivitiesOutput{Activities: []types.Activity{}, NextToken: next}
	for _, row := range rows {
		a := row.Activity
		if ofDeletedGroup(v, row) {
			a.AutoScalingGroupState = aws.String("Deleted")
		}
		out.Activities = append(out.Activities, a)
	}
	return out, nil
}

// ofDeletedGroup reports whether an activity's group is gone. There may be another one with its name.
func ofDeletedGroup(v *state.View, a *state.GroupActivity) bool {
	g := v.AutoScalingGroups.Get(*a.AutoScalingGroupName)
	return g == nil || *g.AutoScalingGroupARN != *a.AutoScalingGroupARN
}
