package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
)

// The rows of Application Auto Scaling. They embed the SDK's structs, as those of ECS do.

// ScalableTarget is a resource that is scaled, by its namespace, dimension and id.
type ScalableTarget struct {
	types.ScalableTarget
	Tags map[string]string
	// Unsettled says that the bounds have changed, and the capacity was not brought within them yet.
	Unsettled bool `json:",omitzero"`
	// Last is what a policy did last, for the cool-downs.
	Last *LastScaling `json:",omitzero"`
}

// LastScaling is a change of capacity that a policy made.
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
	// DueAt is when it is to be done next; nil if never.
	DueAt *time.Time `json:",omitzero"`
}

// Due says whether the action is to be done by now.
func (a *ScheduledAction) Due(now time.Time) bool { return a.DueAt != nil && !a.DueAt.After(now) }

// ScalingActivity is what was done, or not, and why. Ids are in the order of time, and so are the rows.
type ScalingActivity struct {
	types.ScalingActivity
	// Desired is the capacity that it sets, nil for one that sets none.
	Desired *int32 `json:",omitzero"`
}

// ScalableTargetKey is a scalable target's key, and the value by which what belongs to it is found.
func ScalableTargetKey(namespace types.ServiceNamespace, dimension types.ScalableDimension, resourceID *string) string {
	return string(namespace) + " " + string(dimension) + " " + aws.ToString(resourceID)
}

// Key is the target's key.
func (t *ScalableTarget) Key() string {
	return ScalableTargetKey(t.ServiceNamespace, t.ScalableDimension, t.ResourceId)
}

// TargetKey is the key of the target that it belongs to.
func (p *ScalingPolicy) TargetKey() string {
	return ScalableTargetKey(p.ServiceNamespace, p.ScalableDimension, p.ResourceId)
}

// Key is the target's key and the name.
func (p *ScalingPolicy) Key() string { return p.TargetKey() + " " + aws.ToString(p.PolicyName) }

// TargetKey is the key of the target that it belongs to.
func (a *ScheduledAction) TargetKey() string {
	return ScalableTargetKey(a.ServiceNamespace, a.ScalableDimension, a.ResourceId)
}

// Key is the target's key and the name.
func (a *ScheduledAction) Key() string {
	return a.TargetKey() + " " + aws.ToString(a.ScheduledActionName)
}

// TargetKey is the key of the target that it belongs to.
func (a *ScalingActivity) TargetKey() string {
	return ScalableTargetKey(a.ServiceNamespace, a.ScalableDimension, a.ResourceId)
}

// Unfinished says whether the activity is still to be seen to.
func (a *ScalingActivity) Unfinished() bool {
	return a.StatusCode == types.ScalingActivityStatusCodePending || a.StatusCode == types.ScalingActivityStatusCodeInProgress
}

const unfinished = "unfinished"

// The indexes of the tables of Application Auto Scaling.
var (
	ScalingPoliciesByTarget    = Index[ScalingPolicy]{"target", func(p *ScalingPolicy) []string { return []string{p.TargetKey()} }}
	ScheduledActionsByTarget   = Index[ScheduledAction]{"target", func(a *ScheduledAction) []string { return []string{a.TargetKey()} }}
	ScalingActivitiesByTarget  = Index[ScalingActivity]{"target", func(a *ScalingActivity) []string { return []string{a.TargetKey()} }}
	scalingActivitiesByOutcome = Index[ScalingActivity]{"outcome", func(a *ScalingActivity) []string {
		if a.Unfinished() {
			return []string{unfinished}
		}
		return nil
	}}
)

// UnfinishedScalingActivities are those that are still to be seen to.
func (v *View) UnfinishedScalingActivities() (out []*ScalingActivity) {
	for a := range v.ScalingActivities.By(scalingActivitiesByOutcome, unfinished) {
		out = append(out, a)
	}
	return out
}

var (
	scalableTargets = &def[ScalableTarget]{name: "scalable_targets", keyOf: (*ScalableTarget).Key}

	scalingPolicies = &def[ScalingPolicy]{name: "scaling_policies", keyOf: (*ScalingPolicy).Key, indexes: []Index[ScalingPolicy]{ScalingPoliciesByTarget}}

	scheduledActions = &def[ScheduledAction]{name: "scheduled_actions", keyOf: (*ScheduledAction).Key, indexes: []Index[ScheduledAction]{ScheduledActionsByTarget}}

	scalingActivities = &def[ScalingActivity]{
		name: "scaling_activities", keyOf: func(a *ScalingActivity) string { return aws.ToString(a.ActivityId) },
		indexes: []Index[ScalingActivity]{ScalingActivitiesByTarget, scalingActivitiesByOutcome},
	}
)
