package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/store"
)

// The rows of EC2 Auto Scaling. They embed the SDK's structs, as those of ECS do.

// AutoScalingGroup is a group. Its instances are rows of their own, found by InstancesByGroup.
type AutoScalingGroup struct {
	types.AutoScalingGroup
	Hooks []types.LifecycleHook
	// CoolsFrom is when the last scaling activity of a policy or a schedule ended, for simple scaling's cool-down.
	CoolsFrom *time.Time `json:",omitzero"`
	// Failures counts launches that failed in a row; none is tried before NotBefore.
	Failures  int        `json:",omitzero"`
	NotBefore *time.Time `json:",omitzero"`
	// FailedPools are the types and zones whose launches have failed since one has succeeded, or all of them have failed.
	FailedPools []string `json:",omitzero"`
	// Cause is why the desired capacity was changed last, for the activities that come of it.
	Cause string `json:",omitzero"`
	// Deleting says that the group goes once its instances have.
	Deleting bool `json:",omitzero"`
}

// Name is the group's name.
func (g *AutoScalingGroup) Name() string { return aws.ToString(g.AutoScalingGroupName) }

// Clone is a copy that can be changed.
func (g *AutoScalingGroup) Clone() *AutoScalingGroup {
	c := *g
	c.Hooks, c.Tags, c.SuspendedProcesses = slices.Clone(g.Hooks), slices.Clone(g.Tags), slices.Clone(g.SuspendedProcesses)
	c.EnabledMetrics = slices.Clone(g.EnabledMetrics)
	return &c
}

// Suspends says whether one of the group's processes is suspended.
func (g *AutoScalingGroup) Suspends(process string) bool {
	return slices.ContainsFunc(g.SuspendedProcesses, func(p types.SuspendedProcess) bool { return aws.ToString(p.ProcessName) == process })
}

// Cools says whether the group's cool-down lasts, or that of a policy that has its own.
func (g *AutoScalingGroup) Cools(own *int32, now time.Time) bool {
	cooldown := time.Duration(aws.ToInt32(cmp.Or(own, g.DefaultCooldown))) * time.Second
	return g.CoolsFrom != nil && now.Before(g.CoolsFrom.Add(cooldown))
}

// Tells says whether one of the group's metrics is enabled.
func (g *AutoScalingGroup) Tells(metric string) bool {
	return slices.ContainsFunc(g.EnabledMetrics, func(m types.EnabledMetric) bool { return aws.ToString(m.Metric) == metric })
}

// Template is where the group's instances come from: the launch template, also of a mixed instances policy.
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

// Key is the group's name and the policy's.
func (p *GroupPolicy) Key() string {
	return aws.ToString(p.AutoScalingGroupName) + "/" + aws.ToString(p.PolicyName)
}

// GroupAction is a scheduled action of a group.
type GroupAction struct {
	types.ScheduledUpdateGroupAction
	// DueAt is when it is to be done next; nil if never.
	DueAt *time.Time `json:",omitzero"`
}

// Key is the group's name and the action's.
func (a *GroupAction) Key() string {
	return aws.ToString(a.AutoScalingGroupName) + "/" + aws.ToString(a.ScheduledActionName)
}

// Due says whether the action is to be done by now.
func (a *GroupAction) Due(now time.Time) bool { return a.DueAt != nil && !a.DueAt.After(now) }

// GroupActivity is a scaling activity of a group. Ids are in the order of time, and so are the rows.
type GroupActivity struct {
	types.Activity
}

// GroupRefresh is an instance refresh of a group. Ids are in the order of time, and so are the rows.
type GroupRefresh struct {
	types.InstanceRefresh
	// Of is how many instances there were to replace at first.
	Of int32
	// Since is when an instance was taken out last, or when the refresh began.
	Since time.Time
}

// ID is the refresh's id.
func (r *GroupRefresh) ID() string { return aws.ToString(r.InstanceRefreshId) }

// End ends the refresh.
func (r *GroupRefresh) End(status types.InstanceRefreshStatus, reason string, now time.Time) {
	r.Status, r.EndTime = status, &now
	if reason != "" {
		r.StatusReason = &reason
	}
}

// ActiveRefresh is the group's instance refresh that is under way; nil where there is none.
func (v *View) ActiveRefresh(group string) *GroupRefresh {
	for r := range v.GroupRefreshes.By(GroupRefreshesByGroup, group) {
		if r.EndTime == nil {
			return r
		}
	}
	return nil
}

// ActiveMembers are the group's instances that count towards its desired capacity: all that are neither on their way out nor on
// standby.
func (v *View) ActiveMembers(group string) (out []*Instance) {
	for i := range v.Instances.By(InstancesByGroup, group) {
		if !i.Member.Leaving() && !i.Member.StandsBy() {
			out = append(out, i)
		}
	}
	return out
}

// Leaving says whether the instance is on its way out of its group.
func (m *Member) Leaving() bool {
	switch m.LifecycleState {
	case types.LifecycleStateTerminating, types.LifecycleStateTerminatingWait, types.LifecycleStateTerminatingProceed, types.LifecycleStateDetaching:
		return true
	}
	return false
}

// StandsBy says whether the instance was moved to standby: it stays in its group, but does not count.
func (m *Member) StandsBy() bool {
	return m.LifecycleState == types.LifecycleStateEnteringStandby || m.LifecycleState == types.LifecycleStateStandby
}

// HooksOf are the names of the group's lifecycle hooks for a transition: autoscaling:EC2_INSTANCE_LAUNCHING or
// autoscaling:EC2_INSTANCE_TERMINATING.
func (g *AutoScalingGroup) HooksOf(transition string) (names []string) {
	for _, h := range g.Hooks {
		if aws.ToString(h.LifecycleTransition) == transition {
			names = append(names, *h.LifecycleHookName)
		}
	}
	return names
}

// Hook is the group's lifecycle hook of a name; nil where there is none.
func (g *AutoScalingGroup) Hook(name string) *types.LifecycleHook {
	for i := range g.Hooks {
		if *g.Hooks[i].LifecycleHookName == name {
			return &g.Hooks[i]
		}
	}
	return nil
}

// Stamp is a time as activities' causes have it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// StartGroupActivity writes a new activity of a group, as far as it has come at once. Its id sorts behind those before it.
func (tx *Tx) StartGroupActivity(g *AutoScalingGroup, description, cause string, code types.ScalingActivityStatusCode, progress int32, now time.Time) *GroupActivity {
	return tx.startGroupActivity(g, firstOf(g.AvailabilityZones), description, cause, code, progress, now)
}

// StartInstanceActivity writes a new activity of a group for an instance.
func (tx *Tx) StartInstanceActivity(g *AutoScalingGroup, i *Instance, description, cause string, code types.ScalingActivityStatusCode, progress int32, now time.Time) *GroupActivity {
	return tx.startGroupActivity(g, i.Placement.AvailabilityZone, description+": "+*i.InstanceId, cause, code, progress, now)
}

func (tx *Tx) startGroupActivity(g *AutoScalingGroup, zone *string, description, cause string, code types.ScalingActivityStatusCode, progress int32, now time.Time) *GroupActivity {
	a := &GroupActivity{types.Activity{
		ActivityId: new(uuid.Must(uuid.NewV7()).String()), AutoScalingGroupName: g.AutoScalingGroupName, AutoScalingGroupARN: g.AutoScalingGroupARN,
		Description: &description, Cause: &cause, StartTime: &now, StatusCode: code, Progress: &progress,
		Details: new(`{"Availability Zone":"` + aws.ToString(zone) + `"}`),
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

// MoveGroupActivity says how far an activity has come, unless it has ended.
func (tx *Tx) MoveGroupActivity(id string, code types.ScalingActivityStatusCode, progress int32) {
	old := tx.GroupActivities.Get(id)
	if old == nil || old.EndTime != nil || old.StatusCode == code {
		return
	}
	a := *old
	a.StatusCode, a.Progress = code, &progress
	tx.GroupActivities.Put(&a)
}

// SayGroupActivity says how an activity goes that is under way.
func (tx *Tx) SayGroupActivity(id, message string) {
	old := tx.GroupActivities.Get(id)
	if old == nil || old.EndTime != nil || aws.ToString(old.StatusMessage) == message {
		return
	}
	a := *old
	a.StatusMessage = &message
	tx.GroupActivities.Put(&a)
}

// EndGroupActivity ends an activity, unless it has ended. A message says what went wrong.
func (tx *Tx) EndGroupActivity(id string, code types.ScalingActivityStatusCode, message string, now time.Time) {
	old := tx.GroupActivities.Get(id)
	if old == nil || old.EndTime != nil {
		return
	}
	a := *old
	a.StatusCode, a.EndTime, a.Progress = code, &now, aws.Int32(100)
	if message != "" {
		a.StatusMessage, a.Description = &message, new(aws.ToString(a.Description)+".  Status Reason: "+message)
	}
	tx.GroupActivities.Put(&a)
}

// Leave takes an instance out of its group: it waits for the lifecycle hooks, if there are any, and is then terminated. What was
// under way with it is cancelled.
func (tx *Tx) Leave(g *AutoScalingGroup, i *Instance, cause string, now time.Time) *GroupActivity {
	tx.EndGroupActivity(i.Member.Activity, types.ScalingActivityStatusCodeCancelled, "", now)
	a := tx.StartInstanceActivity(g, i, "Terminating EC2 instance", cause, types.ScalingActivityStatusCodeInProgress, 0, now)
	row := i.Clone()
	row.Member.LifecycleState, row.Member.Activity, row.Member.Waits = types.LifecycleStateTerminating, *a.ActivityId, nil
	tx.Instances.Put(row)
	return a
}

// The indexes of the tables of EC2 Auto Scaling.
var (
	GroupPoliciesByGroup   = Index[GroupPolicy]{Name: "group", Value: func(p *GroupPolicy) string { return aws.ToString(p.AutoScalingGroupName) }}
	GroupActionsByGroup    = Index[GroupAction]{Name: "group", Value: func(a *GroupAction) string { return aws.ToString(a.AutoScalingGroupName) }}
	GroupRefreshesByGroup  = Index[GroupRefresh]{Name: "group", Value: func(r *GroupRefresh) string { return aws.ToString(r.AutoScalingGroupName) }}
	GroupActivitiesByGroup = Index[GroupActivity]{Name: "group", Value: func(a *GroupActivity) string { return aws.ToString(a.AutoScalingGroupName) }}
)

var (
	autoScalingGroups = &store.Definition[AutoScalingGroup]{Name: "auto_scaling_groups", Key: (*AutoScalingGroup).Name}

	groupPolicies = &store.Definition[GroupPolicy]{Name: "group_policies", Key: (*GroupPolicy).Key, Indexes: []Index[GroupPolicy]{GroupPoliciesByGroup}}

	groupActions = &store.Definition[GroupAction]{Name: "group_actions", Key: (*GroupAction).Key, Indexes: []Index[GroupAction]{GroupActionsByGroup}}

	groupRefreshes = &store.Definition[GroupRefresh]{
		Name:     "group_refreshes",
		Key:      (*GroupRefresh).ID,
		Indexes:  []Index[GroupRefresh]{GroupRefreshesByGroup},
		Lifetime: store.KeepLatest(keepActivities, func(r *GroupRefresh) *time.Time { return r.StartTime }),
	}

	groupActivities = &store.Definition[GroupActivity]{
		Name:     "group_activities",
		Key:      func(a *GroupActivity) string { return aws.ToString(a.ActivityId) },
		Indexes:  []Index[GroupActivity]{GroupActivitiesByGroup},
		Lifetime: store.KeepLatest(keepActivities, func(a *GroupActivity) *time.Time { return a.StartTime }),
	}
)
