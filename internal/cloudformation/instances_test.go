package cloudformation

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudformation "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	watch "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	machine "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecs "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const alone = `
Resources:
  Node:
    Type: AWS::EC2::Instance
    CreationPolicy: {ResourceSignal: {Timeout: PT10M}}
    Properties: {ImageId: ami-1, InstanceType: g4dn.xlarge, UserData: !Base64 'cfn-signal', Tags: [{Key: k, Value: a}]}
  Disk: {Type: AWS::EC2::Volume, Properties: {AvailabilityZone: !GetAtt Node.AvailabilityZone, Size: '100', VolumeType: gp3, Tags: [{Key: k, Value: v}]}}
  At: {Type: AWS::EC2::VolumeAttachment, Properties: {VolumeId: !Ref Disk, InstanceId: !Ref Node, Device: /dev/sdf}}
Outputs:
  Zone: {Value: !GetAtt Node.AvailabilityZone}
  ID: {Value: !Ref Node}
`

// turn puts all instances of one state into another, and they join a cluster.
func (w *world) turn(from, to machine.InstanceStateName) {
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		for i := range tx.Instances.All() {
			if i.State.Name != from {
				continue
			}
			next := *i
			next.State = &machine.InstanceState{Name: to}
			if to == machine.InstanceStateNameTerminated {
				next.StateReason = &machine.StateReason{Message: aws.String("no machine")}
			}
			tx.Instances.Put(&next)
			tx.ContainerInstances.Put(&state.ContainerInstance{ContainerInstance: ecs.ContainerInstance{
				ContainerInstanceArn: new("arn:" + *i.InstanceId), Ec2InstanceId: i.InstanceId, Status: aws.String("ACTIVE"), AgentConnected: true,
			}})
		}
	})
	w.settle()
}

// TestInstance: an instance is complete once it runs and has signalled, is gone before its stack is, and a failed one fails its stack.
func TestInstance(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", alone)
	w.expect(types.StackStatusCreateInProgress)
	w.turn(machine.InstanceStateNamePending, machine.InstanceStateNameRunning)
	w.expect(types.StackStatusCreateComplete)
	id := w.ids()["Node"]
	if w.output("Zone") != "us-east-1a" || w.output("ID") != id {
		t.Errorf("the zone is %q, the ID %q", w.output("Zone"), w.output("ID"))
	}
	w.become("s", strings.Replace(alone, "Value: a", "Value: b", 1))
	w.expect(types.StackStatusUpdateComplete)
	if w.ids()["Node"] != id {
		t.Error("another tag replaces the instance")
	}
	w.grows(id)
	w.become("s", strings.NewReplacer("g4dn.xlarge", "g5.xlarge", "'100'", "'300'").Replace(alone))
	w.turn(machine.InstanceStateNamePending, machine.InstanceStateNameRunning)
	if w.ids()["Node"] == id {
		t.Error("another type doesn't replace the instance")
	}
	w.turn(machine.InstanceStateNameShuttingDown, machine.InstanceStateNameTerminated)
	w.expect(types.StackStatusUpdateComplete)
	w.remove("s")
	w.expect(types.StackStatusDeleteInProgress)
	w.turn(machine.InstanceStateNameShuttingDown, machine.InstanceStateNameTerminated)
	w.expect(types.StackStatusDeleteComplete)
	if n := w.store.View().Volumes.Len(); n != 0 {
		t.Errorf("%d volumes are left", n)
	}
}

// grows makes the volume of the stack larger, which changes it in place, and puts it at another device, which doesn't.
func (w *world) grows(node string) {
	w.t.Helper()
	disk, at := w.ids()["Disk"], w.ids()["At"]
	w.become("s", strings.NewReplacer("Value: a", "Value: b", "'100'", "'200'", "Value: v", "Value: w").Replace(alone))
	w.expect(types.StackStatusUpdateComplete)
	row := w.store.View().Volumes.Get(disk)
	if row == nil || *row.Size != 200 || row.AttachedTo() != node || w.ids()["At"] != at {
		w.t.Errorf("the volume is %+v", row)
	}
	if line := w.drifts(); !slices.Contains(line, "Disk IN_SYNC") || !slices.Contains(line, "At IN_SYNC") {
		w.t.Errorf("the drift is %v", line)
	}
	call1[awsec2.DetachVolumeOutput](w, &awsec2.DetachVolumeInput{VolumeId: &disk})
	call1[awsec2.ModifyVolumeOutput](w, &awsec2.ModifyVolumeInput{VolumeId: &disk, Size: aws.Int32(300)})
	if line := w.drifts(); !slices.Contains(line, "/Size NOT_EQUAL 200 -> 300") || !slices.Contains(line, "At DELETED") {
		w.t.Errorf("the drift is %v", line)
	}
}

// TestNoSnapshots: what asks for a snapshot before a deletion is refused: it would be lost.
func TestNoSnapshots(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"DeletionPolicy", "UpdateReplacePolicy"} {
		text := "Resources: {V: {Type: AWS::EC2::Volume, " + name + ": Snapshot, Properties: {AvailabilityZone: us-east-1a, Size: 1}}}"
		_, err := w.CreateStack(t.Context(), &awscloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text})
		check(t, name, err, "Template error: resource type AWS::EC2::Volume does not support deletion policy Snapshot")
	}
}

func TestInstanceFails(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", alone)
	w.turn(machine.InstanceStateNamePending, machine.InstanceStateNameTerminated)
	w.expect(types.StackStatusRollbackComplete)
	if !w.says("did not stabilize. Current state: terminated; Reason: no machine") {
		t.Error("no event tells why")
	}
}

const rolled = `
Resources:
  C: {Type: AWS::ECS::Cluster, Properties: {ClusterName: c}}
  D: {Type: AWS::ECS::TaskDefinition, Properties: {Family: f, ContainerDefinitions: [{Name: a, Image: i, Memory: 64}]}}
  S: {Type: AWS::ECS::Service, Properties: {Cluster: !Ref C, ServiceName: s, DesiredCount: 0, DeploymentController: {Type: EXTERNAL}}}
  Blue:
    Type: AWS::ECS::TaskSet
    Properties: {Cluster: !Ref C, Service: !Ref S, TaskDefinition: !Ref D, LaunchType: EC2, ExternalId: blue, Scale: {Unit: PERCENT, Value: 50}, Tags: [{Key: k, Value: a}]}
  Primary: {Type: AWS::ECS::PrimaryTaskSet, Properties: {Cluster: !Ref C, Service: !Ref S, TaskSetId: !GetAtt Blue.Id}}
`

// TestTaskSets: task sets of a service whose deployments are somebody else's, one of which is the primary one.
func TestTaskSets(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", rolled)
	w.expect(types.StackStatusCreateComplete)
	w.become("s", strings.Replace(rolled, "Value: 50", "Value: 100", 1))
	w.expect(types.StackStatusUpdateComplete)
	sets := func() []ecs.TaskSet {
		return call1[awsecs.DescribeTaskSetsOutput](w, &awsecs.DescribeTaskSetsInput{
			Cluster: aws.String("c"), Service: aws.String("s"), Include: []ecs.TaskSetField{ecs.TaskSetFieldTags},
		}).TaskSets
	}
	if s := sets(); len(s) != 1 || *s[0].Status != "PRIMARY" || s[0].Scale.Value != 100 || *s[0].Tags[0].Value != "a" || *s[0].ExternalId != "blue" {
		t.Errorf("the task sets are %+v", s)
	}
}

// TestAnomalyDetector: a detector is made, told of times to leave out, and deleted.
func TestAnomalyDetector(t *testing.T) {
	const detector = `
Resources:
  A:
    Type: AWS::CloudWatch::AnomalyDetector
    Properties: {Namespace: N, MetricName: M, Stat: Average, Configuration: {MetricTimeZone: UTC}}
`
	kept, err := metrics.Open(t.TempDir(), metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close() })
	w := newWorldWith(t, kept, nil)
	w.create("s", detector)
	w.expect(types.StackStatusCreateComplete)
	w.become("s", strings.Replace(detector, "MetricTimeZone: UTC", "ExcludedTimeRanges: [{StartTime: '2026-01-01T00:00:00', EndTime: '2026-01-02T00:00:00'}]", 1))
	w.expect(types.StackStatusUpdateComplete)
	all := func() []watch.AnomalyDetector {
		return call1[awscloudwatch.DescribeAnomalyDetectorsOutput](w, &awscloudwatch.DescribeAnomalyDetectorsInput{}).AnomalyDetectors
	}
	if d := all(); len(d) != 1 || len(d[0].Configuration.ExcludedTimeRanges) != 1 || d[0].Configuration.ExcludedTimeRanges[0].StartTime.Day() != 1 {
		t.Errorf("the detectors are %+v", d)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if d := all(); len(d) != 0 {
		t.Errorf("there is still %+v", d)
	}
}
