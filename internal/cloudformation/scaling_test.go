package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// fleet is a template with a cluster that scales.
const fleet = `
Resources:
  Cluster: {Type: 'AWS::ECS::Cluster'}
  Launch: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {ImageId: ami-1, InstanceType: p3.2xlarge}}
  Group: {Type: 'AWS::AutoScaling::AutoScalingGroup', Properties: {
    LaunchConfigurationName: !Ref Launch, MinSize: '0', MaxSize: '4', AvailabilityZones: [us-east-1a], NewInstancesProtectedFromScaleIn: true}}
  Provider: {Type: 'AWS::ECS::CapacityProvider', Properties: {
    AutoScalingGroupProvider: {AutoScalingGroupArn: !Ref Group, ManagedScaling: {Status: ENABLED, TargetCapacity: '80'}, ManagedTerminationProtection: ENABLED}}}
  Associations: {Type: 'AWS::ECS::ClusterCapacityProviderAssociations', Properties: {
    Cluster: !Ref Cluster, CapacityProviders: [!Ref Provider], DefaultCapacityProviderStrategy: [{CapacityProvider: !Ref Provider, Weight: '1'}]}}
  Target: {Type: 'AWS::ApplicationAutoScaling::ScalableTarget', Properties: {
    MinCapacity: '1', MaxCapacity: '3', ResourceId: !Sub 'service/${Cluster}/s', ScalableDimension: 'ecs:service:DesiredCount', ServiceNamespace: ecs,
    ScheduledActions: [{ScheduledActionName: night, Schedule: 'cron(0 22 * * ? *)', ScalableTargetAction: {MinCapacity: 0}}]}}
  Policy: {Type: 'AWS::ApplicationAutoScaling::ScalingPolicy', Properties: {
    PolicyName: load, PolicyType: TargetTrackingScaling, ScalingTargetId: !Ref Target, TargetTrackingScalingPolicyConfiguration: {
      TargetValue: '50', PredefinedMetricSpecification: {PredefinedMetricType: ECSServiceAverageCPUUtilization}}}}
  Alarm: {Type: 'AWS::CloudWatch::Alarm', Properties: {
    MetricName: m, Namespace: n, Statistic: Sum, Period: '60', EvaluationPeriods: '1', Threshold: '5', ComparisonOperator: GreaterThanThreshold}}
  Both: {Type: 'AWS::CloudWatch::CompositeAlarm', Properties: {AlarmRule: !Sub 'ALARM("${Alarm}")'}}
  Board: {Type: 'AWS::CloudWatch::Dashboard', Properties: {DashboardBody: '{"widgets": []}'}}
  CDKMetadata: {Type: 'AWS::CDK::Metadata', Properties: {Analytics: 'v2:x'}}
`

// scales lists what there is of a cluster that scales.
func (w *world) scales() string {
	var rows []string
	v := w.store.View()
	for p := range v.CapacityProviders.All() {
		rows = append(rows, "provider")
		if n := *p.AutoScalingGroupProvider.ManagedScaling.TargetCapacity; n != 80 {
			rows = append(rows, "changed")
		}
	}
	for t := range v.ScalableTargets.All() {
		rows = append(rows, "target")
		if *t.MaxCapacity != 3 {
			rows = append(rows, "changed")
		}
	}
	for p := range v.ScalingPolicies.All() {
		rows = append(rows, "policy")
		if *p.TargetTrackingScalingPolicyConfiguration.TargetValue != 50 {
			rows = append(rows, "changed")
		}
	}
	for range v.ScheduledActions.All() {
		rows = append(rows, "action")
	}
	for a := range v.Alarms.All() {
		rows = append(rows, "alarm")
		if a.Metric != nil && *a.Metric.Threshold != 5 {
			rows = append(rows, "changed")
		}
	}
	for range v.Dashboards.All() {
		rows = append(rows, "dashboard")
	}
	return strings.Join(rows, " ")
}

// TestScalingResources: capacity providers, scalable targets, alarms and dashboards are made, changed in place, and deleted.
func TestScalingResources(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", fleet)
	w.expect(types.StackStatusCreateComplete)
	if got, want := w.scales(), "provider target policy action alarm alarm dashboard"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	was := w.ids()
	w.become("s", strings.NewReplacer("TargetCapacity: '80'", "TargetCapacity: '90'", "MaxCapacity: '3'", "MaxCapacity: '5'", "TargetValue: '50'", "TargetValue: '60'",
		"Threshold: '5'", "Threshold: '6'", "ScheduledActionName: night", "ScheduledActionName: evening").Replace(fleet))
	w.expect(types.StackStatusUpdateComplete)
	if got, want := w.scales(), "provider changed target changed policy changed action alarm changed alarm dashboard"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, id := range w.ids() {
		if was[name] != id {
			t.Errorf("%s was replaced", name)
		}
	}
	w.remove("s")
	w.live()
	w.expect(types.StackStatusDeleteComplete)
	if got := w.scales(); got != "" {
		t.Errorf("left: %s", got)
	}
}

// TestScalingRefused: what a service refuses is told in CloudFormation's words.
func TestScalingRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"MaxCapacity: '3'", "MaxCapacity: '0'", "Target: "},
		{"!Ref Provider, Weight: '1'", "!Ref Provider, Weight: '1001'", "Associations: "},
		{"GreaterThanThreshold", "Above", "Alarm: "},
		{"ScalingTargetId: !Ref Target", "ScalingTargetId: x", "Policy: A policy needs the ScalingTargetId of a scalable target, or ResourceId, ScalableDimension and ServiceNamespace"},
	} {
		w := newWorld(t, nil)
		w.create("s", strings.Replace(fleet, c.old, c.new, 1))
		w.live()
		w.expect(types.StackStatusRollbackComplete)
		if !slices.ContainsFunc(w.reasons(), func(reason string) bool { return strings.HasPrefix(reason, c.want) }) {
			t.Errorf("got %q, want %q", w.reasons(), c.want)
		}
	}
}

// TestServiceAfterAssociations: a service whose strategy has a capacity provider is made once its cluster has that, without any DependsOn.
func TestServiceAfterAssociations(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", fleet+`
  AService: {Type: 'AWS::ECS::Service', Properties: {
    Cluster: !Ref Cluster, TaskDefinition: !Ref Task, DesiredCount: 0, CapacityProviderStrategy: [{CapacityProvider: !Ref Provider, Weight: 1}]}}
  Task: {Type: 'AWS::ECS::TaskDefinition', Properties: {ContainerDefinitions: [{Name: a, Image: i, Memory: 4}]}}
`)
	w.expect(types.StackStatusCreateInProgress) // nothing here rolls its deployment out
	if w.ids()["AService"] == "" {
		t.Errorf("the service was not made: %q", w.reasons())
	}
}

// TestServiceLosesItsVolume: a template without the volumes that it had takes them from its service, whose definition has none any more.
func TestServiceLosesItsVolume(t *testing.T) {
	const with = `
Resources:
  S: {Type: 'AWS::ECS::Service', Properties: {ServiceName: s, Cluster: !Ref C, TaskDefinition: !Ref T, DesiredCount: 0, VolumeConfigurations: [
    {Name: v, ManagedEBSVolume: {RoleArn: 'arn:aws:iam::000000000000:role/r', SizeInGiB: 1}}]}}
  C: {Type: 'AWS::ECS::Cluster'}
  T: {Type: 'AWS::ECS::TaskDefinition', Properties: {Volumes: [{Name: v, ConfiguredAtLaunch: true}], ContainerDefinitions: [{Name: a, Image: i, Memory: 4}]}}
`
	w := newWorld(t, nil)
	w.create("s", with)
	w.rollOut()
	w.settle()
	w.expect(types.StackStatusCreateComplete)
	without := strings.Replace(with, `, VolumeConfigurations: [
    {Name: v, ManagedEBSVolume: {RoleArn: 'arn:aws:iam::000000000000:role/r', SizeInGiB: 1}}]`, "", 1)
	w.become("s", strings.Replace(without, "Volumes: [{Name: v, ConfiguredAtLaunch: true}], ", "", 1))
	w.expect(types.StackStatusUpdateInProgress) // nothing here ends its old deployment
	for s := range w.store.View().Services.All() {
		if got := s.Deployments; len(got) != 2 || len(got[0].VolumeConfigurations) > 0 || len(got[1].VolumeConfigurations) != 1 {
			t.Errorf("it has %+v", got)
		}
	}
}

// TestServiceAfterMany: finding out what a service comes after takes no longer for the many ways that lead from resource to resource.
func TestServiceAfterMany(t *testing.T) {
	var layers strings.Builder
	needs := ""
	for i := range 30 {
		fmt.Fprintf(&layers, "  L%d: {Type: 'AWS::ECS::Cluster'%s}\n  R%d: {Type: 'AWS::ECS::Cluster'%s}\n", i, needs, i, needs)
		needs = fmt.Sprintf(", DependsOn: [L%d, R%d]", i, i)
	}
	associations := "Associations: {Type: 'AWS::ECS::ClusterCapacityProviderAssociations'"
	w := newWorld(t, nil)
	w.create("s", strings.Replace(fleet, associations, associations+needs, 1)+layers.String()+`
  AService: {Type: 'AWS::ECS::Service', Properties: {Cluster: !Ref Cluster, TaskDefinition: !Ref Task, DesiredCount: 0}}
  Task: {Type: 'AWS::ECS::TaskDefinition', Properties: {ContainerDefinitions: [{Name: a, Image: i, Memory: 4}]}}
`)
	if w.ids()["AService"] == "" {
		t.Errorf("the service was not made: %q", w.reasons())
	}
}
