package resources

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// scalingGroup has the properties of AWS::AutoScaling::AutoScalingGroup that Pintle's groups have. Its physical ID is the name.
type scalingGroup struct {
	AutoScalingGroupName             *string `cfn:"create"`
	AvailabilityZones                []string
	CapacityRebalance                *bool
	Cooldown                         *int32
	DefaultInstanceWarmup            *int32
	DesiredCapacity                  *int32
	HealthCheckGracePeriod           *int32
	HealthCheckType                  *string
	LaunchConfigurationName          *string
	LaunchTemplate                   *types.LaunchTemplateSpecification
	LifecycleHookSpecificationList   []types.LifecycleHookSpecification
	MaxSize                          *int32 `cfn:"required"`
	MetricsCollection                []metricsCollection
	MinSize                          *int32 `cfn:"required"`
	MixedInstancesPolicy             *types.MixedInstancesPolicy
	NewInstancesProtectedFromScaleIn *bool
	NotificationConfigurations       []groupNotification
	ServiceLinkedRoleARN             *string
	Tags                             []groupTag
	TargetGroupARNs                  []string
	TerminationPolicies              []string
	TrafficSources                   []types.TrafficSourceIdentifier
	VPCZoneIdentifier                []string
}

// metricsCollection is metrics that a group publishes: those that are named, or all.
type metricsCollection struct {
	Granularity *string `cfn:"required"`
	Metrics     []string
}

// groupTag is a tag that the instances of a group may get.
type groupTag struct {
	Key               string `cfn:"required"`
	Value             string `cfn:"required"`
	PropagateAtLaunch *bool  `cfn:"required"`
}

var _ = add(&kind[*scalingGroup]{
	name:       "AWS::AutoScaling::AutoScalingGroup",
	live:       liveScalingGroup,
	list:       listAutoScalingGroups,
	identifier: []string{"AutoScalingGroupName"},
	id:         func(s Step, g *scalingGroup) string { return s.named(g.AutoScalingGroupName, 255) },
	create: func(ctx context.Context, s Step, g *scalingGroup) (string, error) {
		name := s.named(g.AutoScalingGroupName, 255)
		if err := createGroup(ctx, s, name, g); err != nil {
			return "", err
		}
		if err := collectMetrics(ctx, s, name, nil, g.MetricsCollection); err != nil {
			return "", undo(ctx, s, name, g, deleteScalingGroup, err)
		}
		if err := changeNotifications(ctx, s, name, nil, g.NotificationConfigurations); err != nil {
			return "", undo(ctx, s, name, g, deleteScalingGroup, err)
		}
		return name, nil
	},
	update:  updateGroup,
	delete:  deleteScalingGroup,
	settled: isStable,
	read: func(ctx context.Context, s Step, name string, _ *scalingGroup) (Made, error) {
		_, err := describeGroup(ctx, s, name)
		return Made{}, err
	},
})

func createGroup(ctx context.Context, s Step, name string, g *scalingGroup) error {
	tags, err := newGroupTags(s, g.Tags)
	if err != nil {
		return err
	}
	return did[autoscaling.CreateAutoScalingGroupOutput](ctx, s, &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName:             &name,
		AvailabilityZones:                g.AvailabilityZones,
		CapacityRebalance:                g.CapacityRebalance,
		DefaultCooldown:                  g.Cooldown,
		DefaultInstanceWarmup:            g.DefaultInstanceWarmup,
		DesiredCapacity:                  g.DesiredCapacity,
		HealthCheckGracePeriod:           g.HealthCheckGracePeriod,
		HealthCheckType:                  g.HealthCheckType,
		LaunchConfigurationName:          g.LaunchConfigurationName,
		LaunchTemplate:                   g.LaunchTemplate,
		LifecycleHookSpecificationList:   g.LifecycleHookSpecificationList,
		MaxSize:                          g.MaxSize,
		MinSize:                          g.MinSize,
		MixedInstancesPolicy:             g.MixedInstancesPolicy,
		NewInstancesProtectedFromScaleIn: g.NewInstancesProtectedFromScaleIn,
		ServiceLinkedRoleARN:             g.ServiceLinkedRoleARN,
		Tags:                             groupTags(name, tags),
		TargetGroupARNs:                  g.TargetGroupARNs,
		TerminationPolicies:              g.TerminationPolicies,
		TrafficSources:                   g.TrafficSources,
		VPCZoneIdentifier:                subnets(g),
	})
}

// subnets returns a group's subnets as its calls take them.
func subnets(g *scalingGroup) *string {
	if len(g.VPCZoneIdentifier) == 0 {
		return nil
	}
	return new(strings.Join(g.VPCZoneIdentifier, ","))
}

// newGroupTags returns the tags that a group is made with: the template's and CloudFormation's, by which an instance knows its stack from its
// first moment, before the stack has noted that the group is made.
func newGroupTags(s Step, tags []groupTag) ([]groupTag, error) {
	if slices.ContainsFunc(tags, func(t groupTag) bool { return isReserved(t.Key) }) {
		return nil, reservedTag()
	}
	all := slices.Clone(tags)
	for _, t := range systemTags(s) {
		all = append(all, groupTag{t.Key, t.Value, aws.Bool(true)})
	}
	return all, nil
}

func groupTags(group string, tags []groupTag) []types.Tag {
	var out []types.Tag
	for _, t := range tags {
		out = append(out, types.Tag{
			Key:               &t.Key,
			Value:             &t.Value,
			PropagateAtLaunch: t.PropagateAtLaunch,
			ResourceId:        &group,
			ResourceType:      aws.String("auto-scaling-group"),
		})
	}
	return out
}

// updateGroup changes a group. What the template doesn't say any more gets its default, but for the desired capacity: without one, whoever
// scales the group keeps the say.
func updateGroup(ctx context.Context, s Step, name string, before, after *scalingGroup) error {
	in := &autoscaling.UpdateAutoScalingGroupInput{
		AutoScalingGroupName:             &name,
		AvailabilityZones:                after.AvailabilityZones,
		CapacityRebalance:                cmp.Or(after.CapacityRebalance, aws.Bool(false)),
		DefaultCooldown:                  cmp.Or(after.Cooldown, aws.Int32(300)),
		DefaultInstanceWarmup:            after.DefaultInstanceWarmup,
		DesiredCapacity:                  after.DesiredCapacity,
		HealthCheckGracePeriod:           cmp.Or(after.HealthCheckGracePeriod, aws.Int32(0)),
		HealthCheckType:                  cmp.Or(after.HealthCheckType, aws.String("EC2")),
		LaunchConfigurationName:          after.LaunchConfigurationName,
		LaunchTemplate:                   after.LaunchTemplate,
		MaxSize:                          after.MaxSize,
		MinSize:                          after.MinSize,
		MixedInstancesPolicy:             after.MixedInstancesPolicy,
		NewInstancesProtectedFromScaleIn: cmp.Or(after.NewInstancesProtectedFromScaleIn, aws.Bool(false)),
		ServiceLinkedRoleARN:             after.ServiceLinkedRoleARN,
		TerminationPolicies:              after.TerminationPolicies,
		VPCZoneIdentifier:                subnets(after),
	}
	if before.DefaultInstanceWarmup != nil && after.DefaultInstanceWarmup == nil {
		in.DefaultInstanceWarmup = aws.Int32(-1) // takes it away
	}
	if len(in.TerminationPolicies) == 0 {
		in.TerminationPolicies = []string{"Default"}
	}
	if err := did[autoscaling.UpdateAutoScalingGroupOutput](ctx, s, in); err != nil {
		return err
	}
	if err := changeTrafficSources(ctx, s, name, before.sources(), after.sources()); err != nil {
		return err
	}
	if err := changeHooks(ctx, s, name, before.LifecycleHookSpecificationList, after.LifecycleHookSpecificationList); err != nil {
		return err
	}
	if err := changeNotifications(ctx, s, name, before.NotificationConfigurations, after.NotificationConfigurations); err != nil {
		return err
	}
	if err := collectMetrics(ctx, s, name, before.MetricsCollection, after.MetricsCollection); err != nil {
		return err
	}
	return tagGroup(ctx, s, name, before.Tags, after.Tags)
}

// sources returns the target groups that a template gives a group, by either property.
func (g *scalingGroup) sources() []types.TrafficSourceIdentifier {
	all := slices.Clone(g.TrafficSources)
	for _, arn := range g.TargetGroupARNs {
		all = append(all, types.TrafficSourceIdentifier{Identifier: &arn})
	}
	return all
}

// changeTrafficSources attaches and detaches target groups. Those that others attached stay.
func changeTrafficSources(ctx context.Context, s Step, group string, before, after []types.TrafficSourceIdentifier) error {
	without := func(list, others []types.TrafficSourceIdentifier) []types.TrafficSourceIdentifier {
		return slices.DeleteFunc(slices.Clone(list), func(t types.TrafficSourceIdentifier) bool {
			return slices.ContainsFunc(others, func(o types.TrafficSourceIdentifier) bool {
				return aws.ToString(o.Identifier) == aws.ToString(t.Identifier)
			})
		})
	}
	if added := without(after, before); len(added) > 0 {
		in := &autoscaling.AttachTrafficSourcesInput{AutoScalingGroupName: &group, TrafficSources: added}
		if err := did[autoscaling.AttachTrafficSourcesOutput](ctx, s, in); err != nil {
			return err
		}
	}
	removed := without(before, after)
	if len(removed) == 0 {
		return nil
	}
	in := &autoscaling.DetachTrafficSourcesInput{AutoScalingGroupName: &group, TrafficSources: removed}
	return did[autoscaling.DetachTrafficSourcesOutput](ctx, s, in)
}

// changeHooks changes the hooks that a group's own list has.
func changeHooks(ctx context.Context, s Step, group string, before, after []types.LifecycleHookSpecification) error {
	for _, h := range before {
		stays := func(n types.LifecycleHookSpecification) bool {
			return aws.ToString(n.LifecycleHookName) == *h.LifecycleHookName
		}
		if slices.ContainsFunc(after, stays) {
			continue
		}
		if err := deleteHook(ctx, s, *h.LifecycleHookName, &lifecycleHook{AutoScalingGroupName: &group}); err != nil && !isMissing(err) {
			return err
		}
	}
	for _, h := range after {
		err := did[autoscaling.PutLifecycleHookOutput](ctx, s, &autoscaling.PutLifecycleHookInput{
			AutoScalingGroupName:  &group,
			LifecycleHookName:     h.LifecycleHookName,
			LifecycleTransition:   h.LifecycleTransition,
			DefaultResult:         h.DefaultResult,
			HeartbeatTimeout:      h.HeartbeatTimeout,
			NotificationMetadata:  h.NotificationMetadata,
			NotificationTargetARN: h.NotificationTargetARN,
			RoleARN:               h.RoleARN,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// collectMetrics has a group publish other metrics.
func collectMetrics(ctx context.Context, s Step, group string, before, after []metricsCollection) error {
	if len(before) > 0 {
		in := &autoscaling.DisableMetricsCollectionInput{AutoScalingGroupName: &group}
		if err := did[autoscaling.DisableMetricsCollectionOutput](ctx, s, in); err != nil {
			return err
		}
	}
	for _, m := range after {
		in := &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: &group, Granularity: m.Granularity, Metrics: m.Metrics}
		if err := did[autoscaling.EnableMetricsCollectionOutput](ctx, s, in); err != nil {
			return err
		}
	}
	return nil
}

func tagGroup(ctx context.Context, s Step, group string, before, after []groupTag) error {
	gone := slices.DeleteFunc(slices.Clone(before), func(t groupTag) bool {
		return slices.ContainsFunc(after, func(n groupTag) bool { return n.Key == t.Key })
	})
	if len(gone) > 0 {
		in := &autoscaling.DeleteTagsInput{Tags: groupTags(group, gone)}
		if err := did[autoscaling.DeleteTagsOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if len(after) == 0 {
		return nil
	}
	in := &autoscaling.CreateOrUpdateTagsInput{Tags: groupTags(group, after)}
	return did[autoscaling.CreateOrUpdateTagsOutput](ctx, s, in)
}

// deleteScalingGroup terminates a group's instances and waits until they are gone, and the group with them.
func deleteScalingGroup(ctx context.Context, s Step, name string, _ *scalingGroup) error {
	g, err := describeGroup(ctx, s, name)
	if err != nil {
		return err
	}
	if g.Status != nil {
		return ErrPending // its deletion is under way
	}
	in := &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: &name, ForceDelete: aws.Bool(true)}
	if err := did[autoscaling.DeleteAutoScalingGroupOutput](ctx, s, in); err != nil {
		return err
	}
	return ErrPending
}

// describeGroup returns a group.
func describeGroup(ctx context.Context, s Step, name string) (*types.AutoScalingGroup, error) {
	in := &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}}
	out, err := call.Do[autoscaling.DescribeAutoScalingGroupsOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.AutoScalingGroups) == 0 {
		return nil, errMissing
	}
	return &out.AutoScalingGroups[0], nil
}

// isStable reports whether a group has its instances in service. A launch that fails meanwhile fails the group, as on AWS.
func isStable(ctx context.Context, s Step, name string, _ *scalingGroup) (bool, error) {
	g, err := describeGroup(ctx, s, name)
	if err != nil {
		return false, err
	}
	ready, coming := 0, 0
	for _, i := range g.Instances {
		switch {
		case i.LifecycleState == types.LifecycleStateInService || i.LifecycleState == types.LifecycleStateStandby:
			ready++
		case strings.HasPrefix(string(i.LifecycleState), "Pending"):
			coming++
		}
	}
	if ready >= int(*g.DesiredCapacity) {
		return true, nil
	}
	if coming > 0 || s.Since.IsZero() {
		return false, nil
	}
	in := &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &name, MaxRecords: aws.Int32(1)}
	out, err := call.Do[autoscaling.DescribeScalingActivitiesOutput](ctx, s.Services, in)
	if err != nil || len(out.Activities) == 0 {
		return false, err
	}
	last := out.Activities[0]
	if last.StatusCode != types.ScalingActivityStatusCodeFailed || last.StartTime.Before(s.Since) {
		return false, nil
	}
	return false, template.Errorf("Group did not stabilize. {current/minSize/maxSize} group size = {%d/%d/%d}. Failed Scaling Activity: %s",
		len(g.Instances), *g.MinSize, *g.MaxSize, aws.ToString(last.StatusMessage))
}

func liveScalingGroup(ctx context.Context, s Step, name string, asked *scalingGroup) (*scalingGroup, error) {
	g, err := describeGroup(ctx, s, name)
	if err != nil {
		return nil, err
	}
	live := &scalingGroup{
		AutoScalingGroupName:             g.AutoScalingGroupName,
		AvailabilityZones:                g.AvailabilityZones,
		CapacityRebalance:                g.CapacityRebalance,
		Cooldown:                         g.DefaultCooldown,
		DefaultInstanceWarmup:            g.DefaultInstanceWarmup,
		DesiredCapacity:                  g.DesiredCapacity,
		HealthCheckGracePeriod:           g.HealthCheckGracePeriod,
		HealthCheckType:                  g.HealthCheckType,
		LaunchConfigurationName:          g.LaunchConfigurationName,
		LaunchTemplate:                   g.LaunchTemplate,
		MaxSize:                          g.MaxSize,
		MetricsCollection:                collectedMetrics(g.EnabledMetrics),
		MinSize:                          g.MinSize,
		MixedInstancesPolicy:             g.MixedInstancesPolicy,
		NewInstancesProtectedFromScaleIn: g.NewInstancesProtectedFromScaleIn,
		ServiceLinkedRoleARN:             g.ServiceLinkedRoleARN,
		TerminationPolicies:              g.TerminationPolicies,
	}
	for _, source := range g.TrafficSources {
		isSame := func(t types.TrafficSourceIdentifier) bool { return aws.ToString(t.Identifier) == *source.Identifier }
		if slices.ContainsFunc(asked.TrafficSources, isSame) {
			live.TrafficSources = append(live.TrafficSources, source)
			continue
		}
		live.TargetGroupARNs = append(live.TargetGroupARNs, *source.Identifier)
	}
	if subnets := aws.ToString(g.VPCZoneIdentifier); subnets != "" {
		live.VPCZoneIdentifier = strings.Split(subnets, ",")
	}
	for _, t := range g.Tags {
		if !account.IsSystemTag(t.Key) {
			live.Tags = append(live.Tags, groupTag{*t.Key, aws.ToString(t.Value), t.PropagateAtLaunch})
		}
	}
	if live.NotificationConfigurations, err = liveNotifications(ctx, s, name, asked.NotificationConfigurations); err != nil {
		return nil, err
	}
	live.LifecycleHookSpecificationList, err = ownHooks(ctx, s, name)
	return live, err
}

// collectedMetrics returns what a group publishes as its template says it.
func collectedMetrics(enabled []types.EnabledMetric) (list []metricsCollection) {
	for _, m := range enabled {
		if len(list) == 0 {
			list = append(list, metricsCollection{Granularity: m.Granularity})
		}
		list[0].Metrics = append(list[0].Metrics, *m.Metric)
	}
	return list
}

// ownHooks returns a group's hooks that aren't resources of their own in the stack.
func ownHooks(ctx context.Context, s Step, group string) (list []types.LifecycleHookSpecification, err error) {
	out, err := call.Do[autoscaling.DescribeLifecycleHooksOutput](ctx, s.Services,
		&autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
	if err != nil {
		return nil, err
	}
	others := s.others("AWS::AutoScaling::LifecycleHook")
	for _, h := range out.LifecycleHooks {
		isOther := func(o Other) bool {
			return o.ID == *h.LifecycleHookName && o.Properties["AutoScalingGroupName"] == group
		}
		if slices.ContainsFunc(others, isOther) {
			continue
		}
		list = append(list, types.LifecycleHookSpecification{
			LifecycleHookName:     h.LifecycleHookName,
			LifecycleTransition:   h.LifecycleTransition,
			DefaultResult:         h.DefaultResult,
			HeartbeatTimeout:      h.HeartbeatTimeout,
			NotificationMetadata:  h.NotificationMetadata,
			NotificationTargetARN: h.NotificationTargetARN,
			RoleARN:               h.RoleARN,
		})
	}
	return list, nil
}

func listAutoScalingGroups(ctx context.Context, s Step, _ *scalingGroup) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[autoscaling.DescribeAutoScalingGroupsOutput](ctx, s.Services, &autoscaling.DescribeAutoScalingGroupsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.AutoScalingGroups {
			ids = append(ids, *x.AutoScalingGroupName)
		}
		return ids, out.NextToken, nil
	})
}
