package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/store"
)

// The rows of EC2 Auto Scaling. Like ECS's rows they embed the SDK's structs.

// AutoScalingGroup is a group. Its instances have rows of their own, which InstancesByGroup finds.
type AutoScalingGroup struct {
	types.AutoScalingGroup
	Hooks []types.LifecycleHook
	// Notifications are the topics that are told of the group's activities.
	Notifications []GroupNotification `json:",omitempty"`
	// CoolsFrom is when the last scaling activity of a policy or a schedule ended, for the cool-down of simple scaling.
	CoolsFrom *time.Time `json:",omitzero"`
	// Failures counts consecutive failed launches. None is tried before NotBefore.
	Failures  int        `json:",omitzero"`
	NotBefore *time.Time `json:",omitzero"`
	// FailedPools lists the types and zones whose launches have failed. It is emptied when one succeeds, or when all of
	// them have failed.
	FailedPools []string `json:",omitzero"`
	// Cause is why the desired capacity was last changed. The resulting activities show it.
	Cause string `json:",omitzero"`
	// Deleting means that the group is deleted once its instances are gone.
	Deleting bool `json:",omitzero"`
}

// Name returns the group's name.
func (g *AutoScalingGroup) Name() string { return aws.ToString(g.AutoScalingGroupName) }

// Clone returns a copy that can be changed.
func (g *AutoScalingGroup) Clone() *AutoScalingGroup {
	c := *g
	c.Hooks = slices.Clone(g.Hooks)
	c.Notifications = slices.Clone(g.Notifications)
	c.Tags = slices.Clone(g.Tags)
	c.SuspendedProcesses = slices.Clone(g.SuspendedProcesses)
	c.EnabledMetrics = slices.Clone(g.EnabledMetrics)
	c.TargetGroupARNs = slices.Clone(g.TargetGroupARNs)
	return &c
}

// ChecksTargets reports whether instances that fail their load balancers' health checks are replaced.
func (g *AutoScalingGroup) ChecksTargets() bool {
	return slices.Contains(strings.Split(aws.ToString(g.HealthCheckType), ","), "ELB")
}

// IsInGrace reports whether an instance's health checks don't count yet. The period begins when the instance enters service.
func (g *AutoScalingGroup) IsInGrace(m *Member, now time.Time) bool {
	grace := time.Duration(aws.ToInt32(g.HealthCheckGracePeriod)) * time.Second
	return grace > 0 && (m.InServiceAt == nil || now.Before(m.InServiceAt.Add(grace)))
}

// IsSuspended reports whether one of the group's processes is suspended.
func (g *AutoScalingGroup) IsSuspended(process string) bool {
	return slices.ContainsFunc(g.SuspendedProcesses, func(p types.SuspendedProcess) bool { return aws.ToString(p.ProcessName) == process })
}

// IsCoolingDown reports whether the group is still cooling down, by a policy's own cool-down if it has one.
func (g *AutoScalingGroup) IsCoolingDown(own *int32, now time.Time) bool {
	cooldown := time.Duration(aws.ToInt32(cmp.Or(own, g.DefaultCooldown))) * time.Second
	return g.CoolsFrom != nil && now.Before(g.CoolsFrom.Add(cooldown))
}

// MetricEnabled reports whether the group publishes the metric.
func (g *AutoScalingGroup) MetricEnabled(metric string) bool {
	return slices.ContainsFunc(g.EnabledMetrics, func(m types.EnabledMetric) bool { return aws.ToString(m.Metric) == metric })
}

// LaunchConfiguration is what a group's instances are started from, the way from before launch templates. It never changes.
type LaunchConfiguration struct {
	types.LaunchConfiguration
}

// Name returns the launch configuration's name.
func (c *LaunchConfiguration) Name() string { return aws.ToString(c.LaunchConfigurationName) }

// data returns the launch configuration as launch templates say it.
func (c *LaunchConfiguration) data() ec2types.ResponseLaunchTemplateData {
	d := ec2types.ResponseLaunchTemplateData{
		ImageId:      c.ImageId,
		InstanceType: ec2types.InstanceType(aws.ToString(c.InstanceType)),
		KeyName:      c.KeyName,
		UserData:     c.UserData,
	}
	if c.IamInstanceProfile != nil {
		d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecification{Name: c.IamInstanceProfile}
	}
	if o := c.MetadataOptions; o != nil {
		d.MetadataOptions = &ec2types.LaunchTemplateInstanceMetadataOptions{
			HttpEndpoint:            ec2types.LaunchTemplateInstanceMetadataEndpointState(o.HttpEndpoint),
			HttpPutResponseHopLimit: o.HttpPutResponseHopLimit,
			HttpTokens:              ec2types.LaunchTemplateHttpTokensState(o.HttpTokens),
		}
	}
	d.BlockDeviceMappings = devices(c.BlockDeviceMappings)
	for _, g := range c.SecurityGroups { // ids, or names
		if strings.HasPrefix(g, "sg-") {
			d.SecurityGroupIds = append(d.SecurityGroupIds, g)
		} else {
			d.SecurityGroups = append(d.SecurityGroups, g)
		}
	}
	return d
}

// devices returns a launch configuration's devices as launch templates say them.
func devices(mappings []types.BlockDeviceMapping) (out []ec2types.LaunchTemplateBlockDeviceMapping) {
	for _, m := range mappings {
		d := ec2types.LaunchTemplateBlockDeviceMapping{DeviceName: m.DeviceName, VirtualName: m.VirtualName}
		if aws.ToBool(m.NoDevice) {
			d.NoDevice = aws.String("")
		}
		if e := m.Ebs; e != nil {
			d.Ebs = &ec2types.LaunchTemplateEbsBlockDevice{
				DeleteOnTermination: e.DeleteOnTermination,
				Encrypted:           e.Encrypted,
				Iops:                e.Iops,
				SnapshotId:          e.SnapshotId,
				Throughput:          e.Throughput,
				VolumeSize:          e.VolumeSize,
				VolumeType:          ec2types.VolumeType(aws.ToString(e.VolumeType)),
			}
		}
		out = append(out, d)
	}
	return out
}

// LaunchSource is what a group's next instance is started from: a version of a launch template, or a launch configuration.
type LaunchSource struct {
	Data          ec2types.ResponseLaunchTemplateData
	Template      *types.LaunchTemplateSpecification // id, name and number of the version
	Configuration string                             // the launch configuration's name
	CreatedAt     time.Time
}

// LaunchSource returns what a group's next instance is started from, or an error that says what is missing.
func (v *View) LaunchSource(g *AutoScalingGroup) (*LaunchSource, error) {
	if name := g.LaunchConfigurationName; name != nil {
		c := v.LaunchConfigurations.Get(*name)
		if c == nil {
			return nil, fmt.Errorf("the launch configuration %s does not exist", *name)
		}
		return &LaunchSource{Data: c.data(), Configuration: *name, CreatedAt: aws.ToTime(c.CreatedTime)}, nil
	}
	spec := g.Template()
	if spec == nil {
		return nil, errors.New("the group has no launch template")
	}
	t := v.FindLaunchTemplate(aws.ToString(spec.LaunchTemplateId), aws.ToString(spec.LaunchTemplateName))
	if t == nil {
		return nil, fmt.Errorf("the launch template %s does not exist", aws.ToString(spec.LaunchTemplateId))
	}
	version := t.Version(aws.ToString(spec.Version))
	if version == nil {
		return nil, fmt.Errorf("there is no version %s of the launch template %s", aws.ToString(spec.Version), *t.LaunchTemplateId)
	}
	return &LaunchSource{
		Data: *version.LaunchTemplateData,
		Template: &types.LaunchTemplateSpecification{
			LaunchTemplateId:   t.LaunchTemplateId,
			LaunchTemplateName: t.LaunchTemplateName,
			Version:            new(strconv.FormatInt(*version.VersionNumber, 10)),
		},
		CreatedAt: aws.ToTime(version.CreateTime),
	}, nil
}

// Subnets returns the ids of the subnets that the group names.
func (g *AutoScalingGroup) Subnets() []string {
	return strings.FieldsFunc(aws.ToString(g.VPCZoneIdentifier), func(r rune) bool { return r == ',' || r == ' ' })
}

// Made reports whether an instance of a group was started from this.
func (l *LaunchSource) Made(m *Member) bool {
	if l.Template == nil || m.LaunchTemplate == nil {
		return l.Template == nil && l.Configuration == m.LaunchConfiguration
	}
	return *l.Template.LaunchTemplateId == aws.ToString(m.LaunchTemplate.LaunchTemplateId) &&
		*l.Template.Version == aws.ToString(m.LaunchTemplate.Version)
}

// Template returns the launch template that the group's instances are started from, or nil if it has a launch configuration. It may come
// from a mixed instances policy.
func (g *AutoScalingGroup) Template() *types.LaunchTemplateSpecification {
	if m := g.MixedInstancesPolicy; m != nil {
		return m.LaunchTemplate.LaunchTemplateSpecification
	}
	return g.LaunchTemplate
}

// GroupPolicy is a scaling policy of a group.
type GroupPolicy struct {
	types.ScalingPolicy
}

// Key returns the group's name and the policy's.
func (p *GroupPolicy) Key() string {
	return aws.ToString(p.AutoScalingGroupName) + "/" + aws.ToString(p.PolicyName)
}

// GroupAction is a scheduled action of a group.
type GroupAction struct {
	types.ScheduledUpdateGroupAction
	// DueAt is when it is due next, or nil for never.
	DueAt *time.Time `json:",omitzero"`
}

// Key returns the group's name and the action's.
func (a *GroupAction) Key() string {
	return aws.ToString(a.AutoScalingGroupName) + "/" + aws.ToString(a.ScheduledActionName)
}

// Due reports whether the action is due.
func (a *GroupAction) Due(now time.Time) bool { return a.DueAt != nil && !a.DueAt.After(now) }

// GroupActivity is a scaling activity of a group. Ids sort by time, and so do the rows.
type GroupActivity struct {
	types.Activity
}

// GroupRefresh is an instance refresh of a group. Ids sort by time, and so do the rows.
type GroupRefresh struct {
	types.InstanceRefresh
	// Of is how many instances there were to replace at the start.
	Of int32
	// Since is when an instance was last taken out, or when the refresh began.
	Since time.Time
}

// ID returns the refresh's id.
func (r *GroupRefresh) ID() string { return aws.ToString(r.InstanceRefreshId) }

// End ends the refresh.
func (r *GroupRefresh) End(status types.InstanceRefreshStatus, reason string, now time.Time) {
	r.Status = status
	r.EndTime = &now
	if reason != "" {
		r.StatusReason = &reason
	}
}

// ActiveRefresh returns the group's instance refresh in progress, or nil.
func (v *View) ActiveRefresh(group string) *GroupRefresh {
	for r := range v.GroupRefreshes.By(GroupRefreshesByGroup, group) {
		if r.EndTime == nil {
			return r
		}
	}
	return nil
}

// ActiveMembers returns the group's instances that count towards its desired capacity. Instances that are leaving, on standby or in the warm
// pool don't count.
func (v *View) ActiveMembers(group string) (out []*Instance) {
	for i := range v.Instances.By(InstancesByGroup, group) {
		if !i.Member.IsLeaving() && !i.Member.IsOnStandby() && !i.Member.IsWarm() {
			out = append(out, i)
		}
	}
	return out
}

// WarmMembers returns the instances in a group's warm pool, without those that are leaving.
func (v *View) WarmMembers(group string) (out []*Instance) {
	for i := range v.Instances.By(InstancesByGroup, group) {
		if i.Member.IsWarm() && !i.Member.IsLeaving() {
			out = append(out, i)
		}
	}
	return out
}

// WarmPoolTarget returns how many instances the group's warm pool is to have: API_PutWarmPool.
func (g *AutoScalingGroup) WarmPoolTarget() int {
	pool := g.WarmPoolConfiguration
	if pool == nil || pool.Status == types.WarmPoolStatusPendingDelete || g.Deleting {
		return 0
	}
	prepared := cmp.Or(pool.MaxGroupPreparedCapacity, g.MaxSize)
	return max(int(aws.ToInt32(pool.MinSize)), int(*prepared)-int(*g.DesiredCapacity))
}

// IsReady reports whether the instance waits in its group's warm pool, and can be taken into service.
func (m *Member) IsReady() bool {
	return m.LifecycleState == types.LifecycleStateWarmedStopped || m.LifecycleState == types.LifecycleStateWarmedRunning
}

// IsWarm reports whether the instance is in its group's warm pool: launched ahead, and not in service.
func (m *Member) IsWarm() bool { return strings.HasPrefix(string(m.LifecycleState), "Warmed:") }

// IsLeaving reports whether the instance is leaving its group.
func (m *Member) IsLeaving() bool {
	switch m.LifecycleState {
	case types.LifecycleStateTerminating, types.LifecycleStateTerminatingWait, types.LifecycleStateTerminatingProceed,
		types.LifecycleStateDetaching, types.LifecycleStateWarmedTerminating, types.LifecycleStateWarmedTerminatingWait,
		types.LifecycleStateWarmedTerminatingProceed:
		return true
	}
	return false
}

// IsOnStandby reports whether the instance was moved to standby. It stays in its group, but doesn't count.
func (m *Member) IsOnStandby() bool {
	return m.LifecycleState == types.LifecycleStateEnteringStandby || m.LifecycleState == types.LifecycleStateStandby
}

// HooksOf returns the names of the group's lifecycle hooks for a transition: autoscaling:EC2_INSTANCE_LAUNCHING or
// autoscaling:EC2_INSTANCE_TERMINATING.
func (g *AutoScalingGroup) HooksOf(transition string) (names []string) {
	for _, h := range g.Hooks {
		if aws.ToString(h.LifecycleTransition) == transition {
			names = append(names, *h.LifecycleHookName)
		}
	}
	return names
}

// Hook returns the group's lifecycle hook with a name, or nil.
func (g *AutoScalingGroup) Hook(name string) *types.LifecycleHook {
	for i := range g.Hooks {
		if *g.Hooks[i].LifecycleHookName == name {
			return &g.Hooks[i]
		}
	}
	return nil
}

// Stamp formats a time as activities' causes show it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// StartGroupActivity writes a new activity of a group, with its first status and progress. Its id sorts after all
// earlier ones.
func (tx *Tx) StartGroupActivity(g *AutoScalingGroup, description, cause string, code types.ScalingActivityStatusCode,
	progress int32, now time.Time) *GroupActivity {
	return tx.startGroupActivity(g, firstOf(g.AvailabilityZones), description, cause, code, progress, now)
}

// StartInstanceActivity writes a new activity of a group for an instance.
func (tx *Tx) StartInstanceActivity(g *AutoScalingGroup, i *Instance, description, cause string,
	code types.ScalingActivityStatusCode, progress int32, now time.Time) *GroupActivity {
	return tx.startGroupActivity(g, i.Placement.AvailabilityZone, description+": "+*i.InstanceId, cause, code, progress, now)
}

func (tx *Tx) startGroupActivity(g *AutoScalingGroup, zone *string, description, cause string,
	code types.ScalingActivityStatusCode, progress int32, now time.Time) *GroupActivity {
	a := &GroupActivity{types.Activity{
		ActivityId:           new(uuid.Must(uuid.NewV7()).String()),
		AutoScalingGroupName: g.AutoScalingGroupName,
		AutoScalingGroupARN:  g.AutoScalingGroupARN,
		Description:          &description,
		Cause:                &cause,
		StartTime:            &now,
		StatusCode:           code,
		Progress:             &progress,
		Details:              new(`{"Availability Zone":"` + aws.ToString(zone) + `"}`),
	}}
	tx.GroupActivities.Put(a)
	return a
}

func firstOf(list []string) *string {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// SetGroupActivityProgress updates an activity's status and progress, unless it has ended.
func (tx *Tx) SetGroupActivityProgress(id string, code types.ScalingActivityStatusCode, progress int32) {
	old := tx.GroupActivities.Get(id)
	if old == nil || old.EndTime != nil || old.StatusCode == code {
		return
	}
	a := *old
	a.StatusCode = code
	a.Progress = &progress
	tx.GroupActivities.Put(&a)
}

// SetGroupActivityMessage updates the message of an activity in progress.
func (tx *Tx) SetGroupActivityMessage(id, message string) {
	old := tx.GroupActivities.Get(id)
	if old == nil || old.EndTime != nil || aws.ToString(old.StatusMessage) == message {
		return
	}
	a := *old
	a.StatusMessage = &message
	tx.GroupActivities.Put(&a)
}

// EndGroupActivity ends an activity, unless it has ended, and owes that to the topics that the group tells. A message says what went wrong.
func (tx *Tx) EndGroupActivity(id string, code types.ScalingActivityStatusCode, message string, now time.Time) {
	old := tx.GroupActivities.Get(id)
	if old == nil || old.EndTime != nil {
		return
	}
	a := *old
	a.StatusCode = code
	a.EndTime = &now
	a.Progress = aws.Int32(100)
	if message != "" {
		a.StatusMessage = &message
		a.Description = new(aws.ToString(a.Description) + ".  Status Reason: " + message)
	}
	tx.GroupActivities.Put(&a)
	tx.notifyGroup(&a, now)
}

// Leave takes an instance out of its group. The instance waits for lifecycle hooks, if there are any, and is then
// terminated. Its activity in progress is cancelled.
func (tx *Tx) Leave(g *AutoScalingGroup, i *Instance, cause string, now time.Time) *GroupActivity {
	tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeCancelled, "", now)
	a := tx.StartInstanceActivity(g, i, "Terminating EC2 instance", cause, types.ScalingActivityStatusCodeInProgress, 0, now)
	row := i.Clone()
	row.Member.LifecycleState = types.LifecycleStateTerminating
	if i.Member.IsWarm() {
		row.Member.LifecycleState = types.LifecycleStateWarmedTerminating
	}
	row.Member.Activity = *a.ActivityId
	row.Member.Waits = nil
	tx.Instances.Put(row)
	return a
}

// The indexes of the tables of EC2 Auto Scaling.
var (
	GroupPoliciesByGroup = Index[*GroupPolicy]{
		Name:  "group",
		Value: func(p *GroupPolicy) string { return aws.ToString(p.AutoScalingGroupName) },
	}
	GroupActionsByGroup = Index[*GroupAction]{
		Name:  "group",
		Value: func(a *GroupAction) string { return aws.ToString(a.AutoScalingGroupName) },
	}
	GroupRefreshesByGroup = Index[*GroupRefresh]{
		Name:  "group",
		Value: func(r *GroupRefresh) string { return aws.ToString(r.AutoScalingGroupName) },
	}
	GroupActivitiesByGroup = Index[*GroupActivity]{
		Name:  "group",
		Value: func(a *GroupActivity) string { return aws.ToString(a.AutoScalingGroupName) },
	}
)

var (
	autoScalingGroups = &store.Definition[*AutoScalingGroup]{Name: "auto_scaling_groups", Key: (*AutoScalingGroup).Name}

	launchConfigurations = &store.Definition[*LaunchConfiguration]{Name: "launch_configurations", Key: (*LaunchConfiguration).Name}

	groupPolicies = &store.Definition[*GroupPolicy]{
		Name:    "group_policies",
		Key:     (*GroupPolicy).Key,
		Indexes: []Index[*GroupPolicy]{GroupPoliciesByGroup},
	}

	groupActions = &store.Definition[*GroupAction]{
		Name:    "group_actions",
		Key:     (*GroupAction).Key,
		Indexes: []Index[*GroupAction]{GroupActionsByGroup},
	}

	groupRefreshes = &store.Definition[*GroupRefresh]{
		Name:     "group_refreshes",
		Key:      (*GroupRefresh).ID,
		Indexes:  []Index[*GroupRefresh]{GroupRefreshesByGroup},
		Lifetime: store.KeepLatest(keepActivities, func(r *GroupRefresh) *time.Time { return r.StartTime }),
	}

	groupActivities = &store.Definition[*GroupActivity]{
		Name:     "group_activities",
		Key:      func(a *GroupActivity) string { return aws.ToString(a.ActivityId) },
		Indexes:  []Index[*GroupActivity]{GroupActivitiesByGroup},
		Lifetime: store.KeepLatest(keepActivities, func(a *GroupActivity) *time.Time { return a.StartTime }),
	}
)

// TypesOf returns the names of the instance types that a group can launch.
func (v *View) TypesOf(g *AutoScalingGroup) (names []string) {
	if m := g.MixedInstancesPolicy; m != nil && len(m.LaunchTemplate.Overrides) > 0 {
		for _, o := range m.LaunchTemplate.Overrides {
			names = append(names, aws.ToString(o.InstanceType))
		}
		return names
	}
	if source, err := v.LaunchSource(g); err == nil {
		names = append(names, string(source.Data.InstanceType))
	}
	return names
}
