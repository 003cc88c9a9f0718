package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
)

// scaled is a template with a group and what belongs to one. Numbers and Booleans are text, as many templates have them.
const scaled = `
Parameters:
  Size: {Type: String, Description: first, Default: p3.2xlarge, Description: of the instances}
Resources:
  Launch: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {
    ImageId: ami-1, InstanceType: !Ref Size, UserData: !Base64 'echo ECS_CLUSTER=default', BlockDeviceMappings: [{DeviceName: /dev/xvda, Ebs: {VolumeSize: '30', Encrypted: 'true'}}]}}
  Template: {Type: 'AWS::EC2::LaunchTemplate', Properties: {VersionDescription: one, LaunchTemplateData: {
    ImageId: ami-1, InstanceType: !Ref Size, EbsOptimized: 'true', TagSpecifications: [{ResourceType: instance, Tags: [{Key: a, Value: b}]}]}}}
  Group: {Type: 'AWS::AutoScaling::AutoScalingGroup', Properties: {
    LaunchConfigurationName: !Ref Launch, MinSize: '0', MaxSize: '4', DesiredCapacity: '0', Cooldown: '60', AvailabilityZones: [us-east-1a],
    Tags: [{Key: Name, Value: first, PropagateAtLaunch: 'true'}, {Key: old, Value: x, PropagateAtLaunch: false}], MetricsCollection: [{Granularity: 1Minute}]}}
  Other: {Type: 'AWS::AutoScaling::AutoScalingGroup', Properties: {
    LaunchTemplate: {LaunchTemplateId: !Ref Template, Version: !GetAtt Template.LatestVersionNumber}, MinSize: 0, MaxSize: 1, AvailabilityZones: !GetAZs '',
    NotificationConfigurations: [{TopicARN: [!Sub 'arn:aws:sns:us-east-1:${AWS::AccountId}:a'], NotificationTypes: ['autoscaling:EC2_INSTANCE_LAUNCH']},
      {TopicARN: 'arn:aws:sns:us-east-1:000000000000:b', NotificationTypes: ['autoscaling:EC2_INSTANCE_TERMINATE']}]}}
  Hook: {Type: 'AWS::AutoScaling::LifecycleHook', Properties: {
    AutoScalingGroupName: !Ref Group, LifecycleTransition: 'autoscaling:EC2_INSTANCE_TERMINATING', HeartbeatTimeout: '60'}}
  Policy: {Type: 'AWS::AutoScaling::ScalingPolicy', Properties: {
    AutoScalingGroupName: !Ref Group, PolicyType: SimpleScaling, AdjustmentType: ChangeInCapacity, ScalingAdjustment: '1'}}
  Action: {Type: 'AWS::AutoScaling::ScheduledAction', Properties: {
    AutoScalingGroupName: !Ref Group, MinSize: '1', Recurrence: 0 8 * * *, StartTime: '2126-06-01T00:00:00Z'}}
  Pool: {Type: 'AWS::AutoScaling::WarmPool', Properties: {
    AutoScalingGroupName: !Ref Group, MinSize: '1', PoolState: Running, InstanceReusePolicy: {ReuseOnScaleIn: 'true'}}}
Outputs:
  Version: {Value: !GetAtt Template.LatestVersionNumber}
  Policy: {Value: !GetAtt Policy.PolicyName}
`

// ids returns the physical IDs of a stack's resources, those that stand.
func (w *world) ids() map[string]string {
	ids := map[string]string{}
	for r := range w.store.View().StackResources.All() {
		if !r.Superseded {
			ids[r.Name] = r.PhysicalID
		}
	}
	return ids
}

// expect compares the status of the only stack, and tells what its resources say if that differs.
func (w *world) expect(want types.StackStatus) {
	w.t.Helper()
	s := find(w.store.View(), w.onlyStack())
	if s.StackStatus != want {
		w.t.Fatalf("the stack is %s: %s %v", s.StackStatus, aws.ToString(s.StackStatusReason), w.reasons())
	}
}

// reasons lists why resources failed, from new to old.
func (w *world) reasons() (reasons []string) {
	for e := range w.store.View().EventsOf(w.onlyStack()) {
		if strings.HasSuffix(string(e.ResourceStatus), "_FAILED") {
			reasons = append(reasons, *e.LogicalResourceId+": "+aws.ToString(e.ResourceStatusReason))
		}
	}
	return reasons
}

// TestNotificationsOfAnyType: a topic without types hears all that becomes of a group's instances, and that is no drift.
func TestNotificationsOfAnyType(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", `
Resources:
  Template: {Type: 'AWS::EC2::LaunchTemplate', Properties: {LaunchTemplateData: {ImageId: ami-1, InstanceType: p3.2xlarge}}}
  Group: {Type: 'AWS::AutoScaling::AutoScalingGroup', Properties: {
    LaunchTemplate: {LaunchTemplateId: !Ref Template, Version: '1'}, MinSize: 0, MaxSize: 1, AvailabilityZones: [us-east-1a],
    NotificationConfigurations: [{TopicARN: 'arn:aws:sns:us-east-1:000000000000:a'}]}}
`)
	w.expect(types.StackStatusCreateComplete)
	told := w.store.View().AutoScalingGroups.Get(w.ids()["Group"]).Notifications
	if len(told) != 1 || len(told[0].Types) != 4 {
		t.Errorf("told: %v", told)
	}
	if drifts := w.drifts(); !slices.Equal(drifts, []string{"Group IN_SYNC", "Template IN_SYNC"}) {
		t.Errorf("drifted: %v", drifts)
	}
}

// TestGroupsResources: groups, and what belongs to them, are made, changed in place or replaced, and deleted.
func TestGroupsResources(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", scaled)
	w.expect(types.StackStatusCreateComplete)
	was := w.ids()
	w.become("s", strings.NewReplacer("Default: p3.2xlarge", "Default: g4dn.xlarge", "MaxSize: '4'", "MaxSize: '5'", "Key: old", "Key: new", "'60'}}", "'90'}}",
		"ScalingAdjustment: '1'", "ScalingAdjustment: '2'", "MinSize: '1'", "MinSize: '2'", "000000000000:b", "000000000000:c",
		"EC2_INSTANCE_LAUNCH'", "EC2_INSTANCE_LAUNCH_ERROR'").Replace(scaled))
	w.expect(types.StackStatusUpdateComplete)
	var replaced []string
	for name, id := range w.ids() {
		if id != was[name] {
			replaced = append(replaced, name)
		}
	}
	if !slices.Equal(replaced, []string{"Launch"}) {
		t.Errorf("replaced: %v", replaced)
	}
	v := w.store.View()
	g := v.AutoScalingGroups.Get(was["Group"])
	if *g.MaxSize != 5 || *g.LaunchConfigurationName == was["Launch"] || *g.DefaultCooldown != 60 || len(g.EnabledMetrics) == 0 {
		t.Errorf("the group is %+v", g)
	}
	told := []state.GroupNotification{
		{TopicARN: "arn:aws:sns:us-east-1:000000000000:a", Types: []string{"autoscaling:EC2_INSTANCE_LAUNCH_ERROR"}},
		{TopicARN: "arn:aws:sns:us-east-1:000000000000:c", Types: []string{"autoscaling:EC2_INSTANCE_TERMINATE"}},
	}
	if got := v.AutoScalingGroups.Get(was["Other"]).Notifications; fmt.Sprint(got) != fmt.Sprint(told) {
		t.Errorf("the other group tells %v, not %v", got, told)
	}
	if p := g.WarmPoolConfiguration; p == nil || *p.MinSize != 2 || p.PoolState != "Running" || !*p.InstanceReusePolicy.ReuseOnScaleIn {
		t.Errorf("the warm pool is %+v", p)
	}
	var tags []string
	for _, t := range g.Tags {
		tags = append(tags, fmt.Sprintf("%s %t", *t.Key, *t.PropagateAtLaunch))
	}
	slices.Sort(tags)
	if !slices.Equal(tags, []string{
		"Name true", "aws:cloudformation:logical-id true", "aws:cloudformation:stack-id true", "aws:cloudformation:stack-name true", "new false",
	}) {
		t.Errorf("the group's tags are %q", tags)
	}
	if h := g.Hook(was["Hook"]); h == nil || *h.HeartbeatTimeout != 90 {
		t.Errorf("the hook is %+v", h)
	}
	template := v.LaunchTemplates.Get(was["Template"])
	if n := *template.LatestVersionNumber; n != 2 || *template.DefaultVersionNumber != 1 || *v.AutoScalingGroups.Get(was["Other"]).LaunchTemplate.Version != "2" {
		t.Errorf("the template's latest version is %d, the group's %s", n, *v.AutoScalingGroups.Get(was["Other"]).LaunchTemplate.Version)
	}
	for p := range v.GroupPolicies.All() {
		if *p.ScalingAdjustment != 2 {
			t.Errorf("the policy is %+v", p)
		}
	}
	for a := range v.GroupActions.All() {
		if *a.MinSize != 2 {
			t.Errorf("the action is %+v", a)
		}
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if left := rowsOfGroups(w.store.View()); left != "" {
		t.Errorf("left: %s", left)
	}
}

// rowsOfGroups lists what there is of Auto Scaling.
func rowsOfGroups(v *state.View) string {
	var rows []string
	for c := range v.LaunchConfigurations.All() {
		rows = append(rows, shape(c.Name()))
	}
	for t := range v.LaunchTemplates.All() {
		rows = append(rows, fmt.Sprint(shape(*t.LaunchTemplateName), " of ", len(t.Versions), " versions"))
	}
	for g := range v.AutoScalingGroups.All() {
		rows = append(rows, fmt.Sprint(shape(g.Name()), " with ", len(g.Hooks), " hooks"))
	}
	for p := range v.GroupPolicies.All() {
		rows = append(rows, shape(*p.PolicyName))
	}
	for a := range v.GroupActions.All() {
		rows = append(rows, shape(*a.ScheduledActionName))
	}
	return strings.Join(rows, ", ")
}

// TestGroupsKilledAtEachWrite: a kill makes neither a version of a launch template nor a group twice.
func TestGroupsKilledAtEachWrite(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", scaled)
	w.become("s", strings.Replace(scaled, "Default: p3.2xlarge", "Default: g4dn.xlarge", 1))
	w.expect(types.StackStatusUpdateComplete)
	want := rowsOfGroups(w.store.View())
	for i, rows := range kills(w.wrote) {
		again := newWorld(t, rows)
		if s := again.onlyStack(); s == "" || !again.goesOn(s, types.StackStatusUpdateComplete) {
			continue
		}
		again.settle()
		if got := rowsOfGroups(again.store.View()); got != want {
			t.Fatalf("killed after write %d of %d: %s\nwithout: %s", i+1, len(w.wrote), got, want)
		}
	}
}

// TestGroupsRefused: what a service refuses is told in CloudFormation's words, and what groups here don't have is refused before anything is made.
func TestGroupsRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"MinSize: '0'", "MinSize: '9'", `Group: Resource handler returned message: "Max bound, 4, must be greater than or equal to min bound, 9" (HandlerErrorCode: InvalidRequest)`},
		{"InstanceType: !Ref Size, U", "InstanceType: big, U", `Launch: Resource handler returned message: "Invalid value 'big' for InstanceType." (HandlerErrorCode: InvalidRequest)`},
		{"${AWS::AccountId}:a", "${AWS::AccountId}:gone", `Other: Resource handler returned message: "Unable to publish test notification message to the provided topic: arn:aws:sns:us-east-1:000000000000:gone." (HandlerErrorCode: InvalidRequest)`},
		{"PolicyType: SimpleScaling", "PolicyType: Other", `Policy: Resource handler returned message: "PolicyType must be SimpleScaling, StepScaling or TargetTrackingScaling, not "Other"" (HandlerErrorCode: InvalidRequest)`},
	} {
		w := newWorld(t, nil)
		w.create("s", strings.Replace(scaled, c.old, c.new, 1))
		w.expect(types.StackStatusRollbackComplete)
		if !slices.Contains(w.reasons(), c.want) {
			t.Errorf("got %q\nwant %q", w.reasons(), c.want)
		}
		if left := rowsOfGroups(w.store.View()); left != "" {
			t.Errorf("%s leaves %s", c.new, left)
		}
	}
}

// TestReasonsRepeatNoSecrets: a service may repeat what it refuses, which may come of a NoEcho parameter.
func TestReasonsRepeatNoSecrets(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", `
Parameters:
  Quiet: {Type: String, NoEcho: true, Default: hush-hush}
Resources:
  Launch: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {ImageId: ami-1, InstanceType: !Sub 'very ${Quiet}'}}
`)
	w.expect(types.StackStatusRollbackComplete)
	want := `Launch: Resource handler returned message: "Invalid value 'very ****' for InstanceType." (HandlerErrorCode: InvalidRequest)`
	if got := w.reasons(); !slices.Equal(got, []string{want}) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestDynamicReferencesAreFew: each may stand for 64 KB, so a template of references would ask for more than there is memory.
func TestDynamicReferencesAreFew(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", "Resources:\n  Launch: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {ImageId: ami-1, InstanceType: '"+
		strings.Repeat("{{resolve:secretsmanager:big}}", 61)+"'}}\n")
	w.expect(types.StackStatusRollbackComplete)
	want := "Launch: a resource may have at most 60 dynamic references"
	if got := w.reasons(); !slices.Equal(got, []string{want}) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestReasonsAfterKill: resources that fail at once, once they're taken up again after a kill, conceal what they are to. The race detector
// finds it if they evaluate their template at the same time.
func TestReasonsAfterKill(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", `
Parameters:
  Quiet: {Type: String, NoEcho: true, Default: hush-hush}
Resources:
  One: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {ImageId: ami-1, InstanceType: !Sub 'very ${Quiet}'}}
  Two: {Type: 'AWS::AutoScaling::LaunchConfiguration', Properties: {ImageId: ami-1, InstanceType: !Sub 'very ${Quiet}'}}
`)
	w.expect(types.StackStatusRollbackComplete)
	both := 0
	for _, rows := range w.wrote {
		again := newWorld(t, rows)
		if again.onlyStack() == "" {
			continue
		}
		if again.store.View().StackResources.Len() == 2 {
			both++
		}
		again.settle()
		for _, reason := range again.reasons() {
			if strings.Contains(reason, "hush") {
				t.Errorf("it tells %s", reason)
			}
		}
	}
	if both == 0 {
		t.Error("no kill was between the beginning of both and their end")
	}
}
