package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	ecs "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// keep does once what the loop of Auto Scaling does all the time: instances that leave are gone, and new ones come into service and join
// their cluster.
func (w *world) keep() {
	statetest.Update(w.t, w.store, func(tx *state.Tx) {
		for _, g := range slices.Collect(tx.AutoScalingGroups.All()) {
			for _, i := range slices.Collect(tx.Instances.By(state.InstancesByGroup, g.Name())) {
				if i.Member.IsLeaving() || g.Deleting {
					tx.Instances.Delete(*i.InstanceId)
				}
			}
			if g.Deleting {
				tx.AutoScalingGroups.Delete(g.Name())
				continue
			}
			members := tx.ActiveMembers(g.Name())
			slices.SortFunc(members, func(a, b *state.Instance) int { return a.LaunchTime.Compare(*b.LaunchTime) })
			for _, i := range members[:max(0, len(members)-int(*g.DesiredCapacity))] {
				tx.Instances.Delete(*i.InstanceId)
			}
			for range int(*g.DesiredCapacity) - len(members) {
				w.arrive(tx, g)
			}
		}
	})
}

// arrive adds an instance that is in service and in its cluster.
func (w *world) arrive(tx *state.Tx, g *state.AutoScalingGroup) {
	from, err := tx.LaunchSource(g)
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now()
	i := state.NewInstance(&from.Data, "us-east-1a", now)
	i.Member = &state.Member{
		Group: g.Name(), LifecycleState: autoscaling.LifecycleStateInService, InServiceAt: &now,
		LaunchTemplate: from.Template, LaunchConfiguration: from.Configuration,
	}
	tx.Instances.Put(i)
	tx.ContainerInstances.Put(&state.ContainerInstance{ContainerInstance: ecs.ContainerInstance{
		ContainerInstanceArn: new("arn:" + *i.InstanceId), Ec2InstanceId: i.InstanceId, Status: aws.String("ACTIVE"), AgentConnected: !w.mute,
	}})
}

// live carries operations out while groups are kept.
func (w *world) live() {
	w.t.Helper()
	for range 40 {
		w.settle()
		w.keep()
	}
}

// group is a template with a group of two instances, and what says how it's updated.
func group(size, policies string) string {
	return `
Resources:
  Launch: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {ImageId: ami-1, InstanceType: ` + size + `, UserData: !Base64 'cfn-signal'}}
  Group:
    Type: AWS::AutoScaling::AutoScalingGroup
` + policies + `
    Properties: {LaunchConfigurationName: !Ref Launch, MinSize: '0', MaxSize: '4', DesiredCapacity: '2', AvailabilityZones: [us-east-1a]}
`
}

// instances lists a stack's instances: their types, and how many groups there are.
func (w *world) instances() string {
	sizes := map[string]int{}
	v := w.store.View()
	for g := range v.AutoScalingGroups.All() {
		for _, i := range v.ActiveMembers(g.Name()) {
			sizes[string(i.InstanceType)]++
		}
	}
	return fmt.Sprint(len(slices.Collect(v.AutoScalingGroups.All())), " ", sizes)
}

// told lists what events say about the group, from old to new.
func (w *world) told() (told []string) {
	for e := range w.store.View().EventsOf(w.onlyStack()) {
		if *e.LogicalResourceId == "Group" && e.ResourceStatusReason != nil {
			told = append(told, shape(*e.ResourceStatusReason))
		}
	}
	slices.Reverse(told)
	return told
}

const awaited = "    CreationPolicy: {ResourceSignal: {Count: '2', Timeout: PT10M}}"

// TestCreationPolicy: a group is complete once its instances have joined their cluster, or have signalled.
func TestCreationPolicy(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy string
		mute   bool
		late   time.Duration
		signal types.ResourceSignalStatus
		want   types.StackStatus
		reason string
	}{
		{name: "joined", policy: awaited, want: types.StackStatusCreateComplete},
		{name: "not joined", policy: awaited, mute: true, want: types.StackStatusCreateInProgress},
		{name: "late", policy: awaited, mute: true, late: time.Hour, want: types.StackStatusRollbackComplete, reason: "Group: Failed to receive 2 resource signal(s) within the specified duration"},
		{name: "failure", policy: awaited, mute: true, signal: types.ResourceSignalStatusFailure, want: types.StackStatusRollbackComplete,
			reason: "Group: Received 1 FAILURE signal(s) out of 2.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement"},
		{name: "half is enough", mute: true, late: time.Hour, signal: types.ResourceSignalStatusSuccess, want: types.StackStatusCreateComplete,
			policy: "    CreationPolicy: {AutoScalingCreationPolicy: {MinSuccessfulInstancesPercent: '50'}, ResourceSignal: {Count: 2}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.mute = c.mute
			w.create("s", group("p3.2xlarge", c.policy))
			w.live()
			if c.signal != "" {
				in := &cloudformation.SignalResourceInput{StackName: aws.String("s"), LogicalResourceId: aws.String("Group"), UniqueId: aws.String("one"), Status: c.signal}
				if _, err := w.SignalResource(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			w.later = c.late
			w.live()
			w.expect(c.want)
			if c.reason != "" && !slices.Contains(w.reasons(), c.reason) {
				t.Errorf("got %q", w.reasons())
			}
		})
	}
}

// TestUpdatePolicy: how a group's instances become others.
func TestUpdatePolicy(t *testing.T) {
	for _, c := range []struct {
		name, policies, want string
		told                 []string
	}{
		{name: "none", want: "1 map[p3.2xlarge:2]"},
		{name: "replaced", policies: awaited + "\n    UpdatePolicy: {AutoScalingReplacingUpdate: {WillReplace: 'true'}}", want: "1 map[g4dn.xlarge:2]",
			told: []string{"Requested update requires the creation of a new physical resource; hence creating one."}},
		{name: "batch by batch", policies: "    UpdatePolicy: {AutoScalingRollingUpdate: {}}", want: "1 map[g4dn.xlarge:2]",
			told: []string{"Rolling update initiated. Terminating 2 obsolete instance(s) in batches of 1."}},
		{name: "in service", want: "1 map[g4dn.xlarge:2]",
			policies: "    UpdatePolicy: {AutoScalingRollingUpdate: {MinInstancesInService: '2', MaxBatchSize: '2', WaitOnResourceSignals: true, SuspendProcesses: [AZRebalance]}}",
			told: []string{"Rolling update initiated. Terminating 2 obsolete instance(s) in batches of 2, while keeping at least 2 instance(s) in service. Waiting on resource signals with a timeout of PT5M when new instances are added to the autoscaling group.",
				"Temporarily setting autoscaling group MinSize and DesiredCapacity to 4."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.create("s", group("p3.2xlarge", c.policies))
			w.live()
			w.expect(types.StackStatusCreateComplete)
			before := len(w.wrote)
			w.become("s", group("g4dn.xlarge", c.policies))
			w.live()
			w.expectRolled(c.want, c.told)
			for _, rows := range kills(w.wrote[before:]) {
				again := newWorld(t, rows)
				again.live()
				if again.goesOn(again.onlyStack(), types.StackStatusUpdateComplete) {
					again.expectRolled(c.want, c.told)
				}
			}
		})
	}
}

func (w *world) expectRolled(want string, told []string) {
	w.t.Helper()
	w.expect(types.StackStatusUpdateComplete)
	if got := w.instances(); got != want {
		w.t.Fatalf("got %s, want %s: %q", got, want, w.told())
	}
	for _, text := range told {
		if !slices.ContainsFunc(w.told(), func(s string) bool { return s == shape(text) }) {
			w.t.Fatalf("got %q, without %q", w.told(), text)
		}
	}
	for g := range w.store.View().AutoScalingGroups.All() {
		if *g.MinSize != 0 || *g.DesiredCapacity != 2 || len(g.SuspendedProcesses) > 0 {
			w.t.Fatalf("the group is %+v", g)
		}
	}
}

// TestRollingUpdateFails: instances that don't signal end the update, and the rollback brings the old ones back.
func TestRollingUpdateFails(t *testing.T) {
	w := newWorld(t, nil)
	policies := "    UpdatePolicy: {AutoScalingRollingUpdate: {MinInstancesInService: 1, WaitOnResourceSignals: true, PauseTime: PT1M}}"
	w.create("s", group("p3.2xlarge", policies))
	w.live()
	w.mute = true
	w.become("s", group("g4dn.xlarge", policies))
	w.live()
	w.later = 2 * time.Minute
	w.settle()
	if want := "Group: Received 1 FAILURE signal(s) out of 2.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement"; !slices.Contains(w.reasons(), want) {
		t.Fatalf("got %q", w.reasons())
	}
	w.mute = false
	w.live()
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.instances(); got != "1 map[p3.2xlarge:2]" {
		t.Errorf("got %s", got)
	}
}

// TestIgnoreUnmodifiedSizes: a size that somebody else has set stays, unless the template has another one than before.
func TestIgnoreUnmodifiedSizes(t *testing.T) {
	w := newWorld(t, nil)
	text := group("p3.2xlarge", "    UpdatePolicy: {AutoScalingScheduledAction: {IgnoreUnmodifiedGroupSizeProperties: true}}")
	w.create("s", text)
	w.live()
	statetest.Update(t, w.store, func(tx *state.Tx) {
		for _, g := range slices.Collect(tx.AutoScalingGroups.All()) {
			row := g.Clone()
			row.DesiredCapacity = aws.Int32(3)
			tx.AutoScalingGroups.Put(row)
		}
	})
	w.become("s", strings.Replace(text, "MinSize: '0'", "MinSize: '1'", 1))
	w.live()
	for g := range w.store.View().AutoScalingGroups.All() {
		if *g.DesiredCapacity != 3 || *g.MinSize != 1 {
			t.Errorf("the group wants %d, at least %d", *g.DesiredCapacity, *g.MinSize)
		}
	}
}

// TestPoliciesRefused: what a policy asks for and isn't there is refused by name.
func TestPoliciesRefused(t *testing.T) {
	w := newWorld(t, nil)
	for _, c := range []struct{ text, want string }{
		{"Resources: {X: {Type: AWS::SQS::Queue, UpdatePolicy: {AutoScalingReplacingUpdate: {WillReplace: true}}}}",
			"UpdatePolicy is not supported for resource X of type AWS::SQS::Queue"},
		{group("p3.2xlarge", "    UpdatePolicy: {AutoScalingRollingUpdate: {MinActiveInstancesPercent: 50}}"),
			"Validation of the UpdatePolicy of resource Group failed with message:\n#/AutoScalingRollingUpdate: extraneous key [MinActiveInstancesPercent] is not permitted"},
		{group("p3.2xlarge", "    CreationPolicy: {ResourceSignal: {Timeout: soon}}"), "Template error: soon is no duration such as PT15M"},
	} {
		_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &c.text})
		check(t, c.text, err, c.want)
	}
}

// TestPolicyOfEarlierVersionStays: an update policy that would be refused now doesn't keep a stack that has it already from being rolled back.
func TestPolicyOfEarlierVersionStays(t *testing.T) {
	const sound = "\nResources:\n  A: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: one}}\n"
	const bad = "  X: {Type: AWS::SSM::Parameter, DependsOn: A, Properties: {Name: taken, Type: String, Value: x}}\n"
	w := newWorld(t, nil)
	w.take("taken")
	w.create("s", sound)
	statetest.Update(t, w.store, func(tx *state.Tx) {
		s := *find(tx.View, "s")
		source := *s.Source
		source.Template = strings.Replace(source.Template, "Properties", "UpdatePolicy: {AutoScalingReplacingUpdate: {WillReplace: true}}, Properties", 1)
		source.Expanded = source.Template
		s.Source = &source
		tx.Stacks.Put(&s)
	})
	w.become("s", strings.Replace(sound, "one", "two", 1)+bad)
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.parameters(); got != "one, mine" {
		t.Errorf("there are %s", got)
	}
}
