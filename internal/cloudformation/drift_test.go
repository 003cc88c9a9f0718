package cloudformation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	machine "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// drifts looks for drift in the only stack and lists what it found: NAME STATUS, and below it PATH TYPE EXPECTED -> ACTUAL.
func (w *world) drifts() (lines []string) {
	w.t.Helper()
	id := w.onlyStack()
	if _, err := w.DetectStackDrift(w.t.Context(), &cloudformation.DetectStackDriftInput{StackName: &id}); err != nil {
		w.t.Fatal(err)
	}
	out, err := w.DescribeStackResourceDrifts(w.t.Context(), &cloudformation.DescribeStackResourceDriftsInput{StackName: &id})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range out.StackResourceDrifts {
		lines = append(lines, fmt.Sprint(*d.LogicalResourceId, " ", d.StackResourceDriftStatus))
		for _, p := range d.PropertyDifferences {
			lines = append(lines, fmt.Sprint(*p.PropertyPath, " ", p.DifferenceType, " ", *p.ExpectedValue, " -> ", *p.ActualValue))
		}
	}
	return lines
}

const running = `
Resources:
  C: {Type: AWS::ECS::Cluster, Properties: {ClusterSettings: [{Name: containerInsights, Value: enabled}], Tags: [{Key: a, Value: b}]}}
  L: {Type: AWS::Logs::LogGroup, Properties: {RetentionInDays: '7', Tags: [{Key: a, Value: b}]}}
  R:
    Type: AWS::IAM::Role
    Properties:
      Description: d
      MaxSessionDuration: '7200'
      AssumeRolePolicyDocument: {Statement: {Effect: Allow, Action: ['sts:AssumeRole'], Principal: {Service: [ecs-tasks.amazonaws.com]}}}
      ManagedPolicyArns: ['arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess']
      Policies: [{PolicyName: own, PolicyDocument: {Statement: [{Effect: Allow, Action: ['sqs:*', 's3:*'], Resource: '*'}]}}]
      Tags: [{Key: b, Value: c}, {Key: a, Value: b}]
  I: {Type: AWS::IAM::InstanceProfile, Properties: {Path: /, Roles: [!Ref R]}}
  T:
    Type: AWS::ECS::TaskDefinition
    Properties:
      Family: f
      NetworkMode: bridge
      TaskRoleArn: !GetAtt R.Arn
      Cpu: 256
      Memory: '512'
      Volumes: [{Name: scratch}, {Name: ebs, ConfiguredAtLaunch: true}]
      ContainerDefinitions:
        - Name: a
          Image: i
          Cpu: '0'
          Memory: '64'
          Essential: 'true'
          Command: [x, y]
          Environment: [{Name: B, Value: c}, {Name: A, Value: b}]
          LogConfiguration: {LogDriver: awslogs, Options: {awslogs-group: !Ref L, awslogs-region: us-east-1}}
          MountPoints: [{SourceVolume: scratch, ContainerPath: /tmp}]
          PortMappings: [{ContainerPort: 80}]
          ResourceRequirements: [{Type: GPU, Value: '1'}]
  S:
    Type: AWS::ECS::Service
    Properties:
      Cluster: !Ref C
      TaskDefinition: !Ref T
      DesiredCount: 0
      DeploymentConfiguration: {MaximumPercent: '200', MinimumHealthyPercent: '50'}
      PlacementStrategies: [{Type: binpack, Field: memory}]
      VolumeConfigurations:
        - Name: ebs
          ManagedEBSVolume:
            {RoleArn: !GetAtt R.Arn, SizeInGiB: '5', VolumeType: gp3, FilesystemType: ext4, TagSpecifications: [{ResourceType: volume, PropagateTags: SERVICE}]}
      Tags: [{Key: a, Value: b}]
  Q:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: '60', RedrivePolicy: {deadLetterTargetArn: !GetAtt D.Arn, maxReceiveCount: '3'}, Tags: [{Key: a, Value: b}]}
  D: {Type: AWS::SQS::Queue, Properties: {FifoQueue: false, SqsManagedSseEnabled: true}}
  P: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: v, Description: d, AllowedPattern: '.*', Tier: Standard, Tags: {a: b}}}
  V: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16, EnableDnsHostnames: true, Tags: [{Key: Name, Value: v}]}}
  N: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref V, CidrBlock: 10.0.1.0/24, MapPublicIpOnLaunch: true, PrivateDnsNameOptionsOnLaunch: {HostnameType: resource-name}}}
  G:
    Type: AWS::EC2::SecurityGroup
    Properties:
      GroupDescription: g
      VpcId: !Ref V
      SecurityGroupIngress: [{IpProtocol: tcp, FromPort: 80, ToPort: 80, CidrIp: 0.0.0.0/0, Description: web}, {IpProtocol: '6', FromPort: '22', ToPort: '22', CidrIp: !GetAtt V.CidrBlock}]
      SecurityGroupEgress: [{IpProtocol: -1, FromPort: 0, ToPort: 0, CidrIp: 0.0.0.0/0}]
  A:
    Type: AWS::CloudWatch::Alarm
    Properties: {MetricName: m, Namespace: n, Dimensions: [{Name: a, Value: b}], Statistic: Sum, Period: '60', EvaluationPeriods: '1', Threshold: '5', ComparisonOperator: GreaterThanThreshold, TreatMissingData: notBreaching, Tags: [{Key: a, Value: b}]}
`

// rollOut completes the deployments of services, which have no tasks, and starts instances.
func (w *world) rollOut() {
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		for v := range tx.Services.All() {
			next := *v
			next.Deployments = slices.Clone(v.Deployments)
			for i := range next.Deployments {
				next.Deployments[i].RolloutState = ecstypes.DeploymentRolloutStateCompleted
			}
			tx.Services.Put(&next)
		}
	})
	w.turn(machine.InstanceStateNamePending, machine.InstanceStateNameRunning)
	w.activate()
}

// ofAllTypes are templates that have all types that can be read between them.
var ofAllTypes = map[string]string{
	"running": running, "stored": stored, "told": told, "ruled": ruled, "entitled": entitled, "peopled": peopled, "secretive": secretive, "scaled": scaled,
	"networked": networked, "fleet": fleet, "before": before, "stocked": stocked, "shared": shared, "rolled": rolled, "alone": alone,
	"keyed": keyed, "called": called, "walled": walled, "embedded": embedded, "balanced": balanced, "found": found,
}

// TestIdentified: what identifies a resource leads to its physical ID and back, and is all that's needed to read it.
func TestIdentified(t *testing.T) {
	for name, text := range ofAllTypes {
		w := withStores(t)
		w.create("s", text)
		w.rollOut()
		w.expect(types.StackStatusCreateComplete)
		w.drifts()
		for _, r := range stacks.Stands(w.store.View(), w.onlyStack()) {
			if kind := resources.Lookup(r.Type); isImportable(kind) {
				if err := w.identified(kind, r); err != nil {
					t.Errorf("%s: %s %s: %v", name, r.Type, r.PhysicalID, err)
				}
			}
		}
	}
}

// identified reads a resource by nothing but what identifies it.
func (w *world) identified(kind resources.Type, r *state.StackResource) error {
	ctx, step := w.t.Context(), resources.Step{Services: w.services, Account: w.opts.Account}
	found, err := w.loop.FoundOf(w.store.View().DriftOf(r))
	if err != nil {
		return err
	}
	asked, err := kind.Live(ctx, step, r.PhysicalID, found.Expected)
	if err != nil {
		return err
	}
	identity, err := kind.Identify(ctx, step, r.PhysicalID, asked)
	if err != nil {
		return err
	}
	if id := kind.PhysicalID(identity); id != r.PhysicalID {
		return fmt.Errorf("%v leads to %s", identity, id)
	}
	live, err := kind.Live(ctx, step, r.PhysicalID, kind.Named(identity))
	if err != nil {
		return err
	}
	again, err := kind.Identify(ctx, step, r.PhysicalID, live)
	if err != nil || !maps.Equal(again, identity) {
		return fmt.Errorf("once read by %v it is %v: %w", identity, again, err)
	}
	if faults := kind.CheckDesired(live, true); len(faults) > 0 {
		return fmt.Errorf("what was read is none: %q", faults)
	}
	return nil
}

// TestNoDrift: whatever a type makes, it reads back as the template says it. Between them the templates have all types that can be read.
func TestNoDrift(t *testing.T) {
	seen := map[string]bool{}
	for name, text := range ofAllTypes {
		w := withStores(t)
		w.create("s", text)
		w.rollOut()
		w.expect(types.StackStatusCreateComplete)
		s := find(w.store.View(), w.onlyStack())
		for _, line := range w.drifts() {
			if !strings.HasSuffix(line, " IN_SYNC") {
				t.Errorf("%s: %s", name, line)
			}
		}
		v := w.store.View()
		for _, r := range stacks.Stands(v, *s.StackId) {
			d := v.DriftOf(r)
			seen[r.Type] = seen[r.Type] || d.Status == types.StackResourceDriftStatusInSync
		}
	}
	for _, name := range resources.Names() {
		if resources.Lookup(name).IsReadable() && !seen[name] {
			t.Errorf("no template has %s", name)
		}
	}
}

// unreadable are the types that can't be read, each with the reason.
var unreadable = map[string]string{
	"AWS::CDK::Metadata":                               "it stands for nothing",
	"AWS::CloudFormation::Stack":                       "drift is looked for in the nested stack itself, as on AWS",
	"AWS::CloudFormation::WaitCondition":               "no service has it",
	"AWS::CloudFormation::WaitConditionHandle":         "no service has it",
	"AWS::CloudWatch::AnomalyDetector":                 "AWS can't read it either",
	"AWS::ECS::PrimaryTaskSet":                         "it's what its task sets and its service say",
	"AWS::ElasticLoadBalancingV2::ListenerCertificate": "it's the listener's",
	"AWS::SecretsManager::SecretTargetAttachment":      "there are no databases to attach a secret to",
}

// TestAllAreRead: each type can be read, or is named with the reason why it can't.
func TestAllAreRead(t *testing.T) {
	for _, name := range resources.Names() {
		if reason := unreadable[name]; resources.Lookup(name).IsReadable() != (reason == "") {
			t.Errorf("%s: it can be read is %v, and the reason why it can't is %q", name, reason == "", reason)
		}
	}
}

// TestDriftIsForgotten: what was found of a resource goes with it.
func TestDriftIsForgotten(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", before)
	w.drifts()
	n := w.store.View().ResourceDrifts.Len()
	w.become("s", after) // which has New in place of Gone
	if err := w.store.Sweep(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := w.store.View().ResourceDrifts.Len(); got != n-1 {
		t.Errorf("of %d there are %d", n, got)
	}
}
