package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of Application Auto Scaling. Like ECS's rows they embed the SDK's structs.

// ScalableTarget is a scalable resource, identified by its namespace, dimension and id.
type ScalableTarget struct {
	types.ScalableTarget
	Tags map[string]string
	// Unsettled is set when the bounds have changed, until the capacity was brought within them.
	Unsettled bool `json:",omitzero"`
	// Last is a policy's latest change, for cool-downs.
	Last *LastScaling `json:",omitzero"`
}

// LastScaling is a policy's change of capacity.
type LastScaling struct {
	At       time.Time
	From, To int
}

// ScalingPolicy is a policy of a scalable target.
type ScalingPolicy struct {
	types.ScalingPolicy
}

// ScheduledAction is an action of a scalable target.
type ScheduledAction struct {
	types.ScheduledAction
	// DueAt is when it is due next, or nil for never.
	DueAt *time.Time `json:",omitzero"`
}

// Due reports whether the action is due.
func (a *ScheduledAction) Due(now time.Time) bool { return a.DueAt != nil && !a.DueAt.After(now) }

// ScalingActivity records what was done or not done, and why. Ids sort by time, and so do the rows.
type ScalingActivity struct {
	types.ScalingActivity
	// Desired is the capacity that it sets, or nil if it sets none.
	Desired *int32 `json:",omitzero"`
}

// ScalableTargetKey returns a scalable target's key. Indexes use it to find what belongs to the target.
func ScalableTargetKey(namespace types.ServiceNamespace, dimension types.ScalableDimension, resourceID *string) string {
	return string(namespace) + " " + string(dimension) + " " + aws.ToString(resourceID)
}

// Key returns the target's key.
func (t *ScalableTarget) Key() string {
	return ScalableTargetKey(t.ServiceNamespace, t.ScalableDimension, t.ResourceId)
}

// TargetKey returns the key of its target.
func (p *ScalingPolicy) TargetKey() string {
	return ScalableTargetKey(p.ServiceNamespace, p.ScalableDimension, p.ResourceId)
}

// Key returns the target's key and the name.
func (p *ScalingPolicy) Key() string { return p.TargetKey() + " " + aws.ToString(p.PolicyName) }

// TargetKey returns the key of its target.
func (a *ScheduledAction) TargetKey() string {
	return ScalableTargetKey(a.ServiceNamespace, a.ScalableDimension, a.ResourceId)
}

// Key returns the target's key and the name.
func (a *ScheduledAction) Key() string {
	return a.TargetKey() + " " + aws.ToString(a.ScheduledActionName)
}

// TargetKey returns the key of its target.
func (a *ScalingActivity) TargetKey() string {
	return ScalableTargetKey(a.ServiceNamespace, a.ScalableDimension, a.ResourceId)
}

// Unfinished reports whether the activity still needs work.
func (a *ScalingActivity) Unfinished() bool {
	return a.StatusCode == types.ScalingActivityStatusCodePending || a.StatusCode == types.ScalingActivityStatusCodeInProgress
}

// keepActivities is how long scaling activities of services and of Auto Scaling groups are shown:
// API_DescribeScalingActivities and API_DescribeInstanceRefreshes.
const keepActivities = 6 * 7 * 24 * time.Hour

const unfinished = "unfinished"

// The indexes of the tables of Application Auto Scaling.
var (
	ScalingPoliciesByTarget    = Index[*ScalingPolicy]{Name: "target", Value: func(p *ScalingPolicy) string { return p.TargetKey() }}
	ScheduledActionsByTarget   = Index[*ScheduledAction]{Name: "target", Value: func(a *ScheduledAction) string { return a.TargetKey() }}
	ScalingActivitiesByTarget  = Index[*ScalingActivity]{Name: "target", Value: func(a *ScalingActivity) string { return a.TargetKey() }}
	scalingActivitiesByOutcome = Index[*ScalingActivity]{Name: "outcome", Value: func(a *ScalingActivity) string {
		if a.Unfinished() {
			return unfinished
		}
		return ""
	}}
)

// UnfinishedScalingActivities returns the activities that still need work.
func (v *View) UnfinishedScalingActivities() (out []*ScalingActivity) {
	for a := range v.ScalingActivities.By(scalingActivitiesByOutcome, unfinished) {
		out = append(out, a)
	}
	return out
}

var (
	scalableTargets = &store.Definition[*ScalableTarget]{Name: "scalable_targets", Key: (*ScalableTarget).Key}

	scalingPolicies = &store.Definition[*ScalingPolicy]{
		Name:    "scaling_policies",
		Key:     (*ScalingPolicy).Key,
		Indexes: []Index[*ScalingPolicy]{ScalingPoliciesByTarget},
	}

	scheduledActions = &store.Definition[*ScheduledAction]{
		Name:    "scheduled_actions",
		Key:     (*ScheduledAction).Key,
		Indexes: []Index[*ScheduledAction]{ScheduledActionsByTarget},
	}

	scalingActivities = &store.Definition[*ScalingActivity]{
		Name:     "scaling_activities",
		Key:      func(a *ScalingActivity) string { return aws.ToString(a.ActivityId) },
		Indexes:  []Index[*ScalingActivity]{ScalingActivitiesByTarget, scalingActivitiesByOutcome},
		Lifetime: store.KeepLatest(keepActivities, func(a *ScalingActivity) *time.Time { return a.StartTime }),
	}
)
