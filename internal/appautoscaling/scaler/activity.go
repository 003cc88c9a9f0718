package scaler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// Activities are worded as in the Application Auto Scaling User Guide's page "Scaling activities for Application Auto
// Scaling" and in DescribeScalingActivities' examples.

// newActivity makes an activity of a target. Its id sorts after all earlier ones, even those of the same moment.
func newActivity(
	namespace types.ServiceNamespace, dimension types.ScalableDimension, resource *string, now time.Time,
) *state.ScalingActivity {
	return &state.ScalingActivity{ScalingActivity: types.ScalingActivity{
		ActivityId:        new(uuid.Must(uuid.NewV7()).String()),
		ServiceNamespace:  namespace,
		ScalableDimension: dimension,
		ResourceId:        resource,
		StartTime:         &now,
	}}
}

// newSetting makes the activity that sets a target's capacity.
func newSetting(t *state.ScalableTarget, desired int, w wish, now time.Time) *state.ScalingActivity {
	a := newActivity(t.ServiceNamespace, t.ScalableDimension, t.ResourceId, now)
	a.StatusCode = types.ScalingActivityStatusCodePending
	a.Desired = new(int32(desired))
	a.Description = new(fmt.Sprintf("Setting desired count to %d.", desired))
	a.Cause = &w.cause
	a.Details = w.optionalDetails()
	return a
}

// optionalDetails returns an activity's details, or nil if there are none.
func (w wish) optionalDetails() *string {
	if w.details == "" {
		return nil
	}
	return &w.details
}

// newSettling makes the activity that brings a capacity within the bounds. It returns nil if it's there already.
func newSettling(t *state.ScalableTarget, capacity, desired int, now time.Time) *state.ScalingActivity {
	switch {
	case desired > capacity:
		return newSetting(t, desired, wish{cause: fmt.Sprintf("minimum capacity was set to %d", *t.MinCapacity)}, now)
	case desired < capacity:
		return newSetting(t, desired, wish{cause: fmt.Sprintf("maximum capacity was set to %d", *t.MaxCapacity)}, now)
	}
	return nil
}

// alarmCause words why a policy acts.
func alarmCause(a *cloudwatchtypes.MetricAlarm, policy string) string {
	return fmt.Sprintf("monitor alarm %s in state %s triggered policy %s", *a.AlarmName, a.StateValue, policy)
}

// newNotScaled makes the activity of a policy that wanted to scale but couldn't.
func newNotScaled(t *state.ScalableTarget, w wish, code string, capacity int, now time.Time) *state.ScalingActivity {
	a := newActivity(t.ServiceNamespace, t.ScalableDimension, t.ResourceId, now)
	a.Description = new("Attempting to scale due to alarm triggered")
	a.Cause = &w.cause
	a.StatusCode = types.ScalingActivityStatusCodeFailed
	a.Details = w.optionalDetails()
	reason := types.NotScaledReason{Code: &code}
	switch code {
	case scaling.AlreadyAtMaxCapacity:
		reason.MaxCapacity = t.MaxCapacity
	case scaling.AlreadyAtMinCapacity:
		reason.MinCapacity = t.MinCapacity
	default:
		reason.CurrentCapacity = new(int32(capacity))
	}
	a.NotScaledReasons = []types.NotScaledReason{reason}
	return a
}

// newScheduled makes the activity of a scheduled action that succeeded.
func newScheduled(action *state.ScheduledAction, now time.Time) *state.ScalingActivity {
	var set []string
	if c := action.ScalableTargetAction.MinCapacity; c != nil {
		set = append(set, fmt.Sprintf("min capacity to %d", *c))
	}
	if c := action.ScalableTargetAction.MaxCapacity; c != nil {
		set = append(set, fmt.Sprintf("max capacity to %d", *c))
	}
	what := strings.Join(set, " and ")
	a := newActivity(action.ServiceNamespace, action.ScalableDimension, action.ResourceId, now)
	a.Description = new("Setting " + what)
	a.StatusMessage = new("Successfully set " + what)
	a.Cause = new("scheduled action name " + *action.ScheduledActionName + " was triggered")
	a.StatusCode = types.ScalingActivityStatusCodeSuccessful
	a.EndTime = &now
	return a
}

// ended returns a copy of an activity that has ended.
func ended(a *state.ScalingActivity, code types.ScalingActivityStatusCode, message string, now time.Time) *state.ScalingActivity {
	c := *a
	c.StatusCode = code
	c.StatusMessage = &message
	c.EndTime = &now
	return &c
}

func failed(a *state.ScalingActivity, reason string, now time.Time) *state.ScalingActivity {
	what := strings.TrimSuffix(strings.TrimPrefix(*a.Description, "Setting "), ".")
	return ended(a, types.ScalingActivityStatusCodeFailed, "Failed to set "+what+". Reason: "+reason+".", now)
}

// begin stores an activity, if there is one, and starts it. It also marks the target as settled. last is for the cool-downs.
// It's nil if no policy asked.
func (l *Loop) begin(ctx context.Context, target string, a *state.ScalingActivity, last *state.LastScaling, now time.Time) error {
	err := l.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ScalableTargets.Get(target)
		if old == nil {
			a = nil
			return nil
		}
		row := *old
		row.Unsettled = false
		if last != nil {
			row.Last = last
		}
		if a != nil {
			tx.ScalingActivities.Put(a)
		}
		tx.ScalableTargets.Put(&row)
		return nil
	})
	if err != nil || a == nil {
		return err
	}
	return l.advance(ctx, a, now)
}

// record stores an activity.
func (l *Loop) record(ctx context.Context, a *state.ScalingActivity) error {
	return l.store.Update(ctx, func(tx *state.Tx) error { tx.ScalingActivities.Put(a); return nil })
}

// finish advances the activities that haven't ended.
func (l *Loop) finish(ctx context.Context, now time.Time) error {
	for _, a := range l.store.View().UnfinishedScalingActivities() {
		if err := l.advance(ctx, a, now); err != nil {
			return err
		}
	}
	return nil
}

// advance makes an activity's next step, and stores the result.
func (l *Loop) advance(ctx context.Context, a *state.ScalingActivity, now time.Time) error {
	next := l.fulfill
	if a.StatusCode == types.ScalingActivityStatusCodePending {
		next = l.set
	}
	after, err := next(ctx, a, now)
	if err != nil {
		l.warn("cannot go on with a scaling activity", err, "resource", *a.ResourceId)
		return ctx.Err()
	}
	if after == nil {
		return nil
	}
	return l.record(ctx, after)
}

// set sets the desired count for an activity that may not have done so yet.
func (l *Loop) set(ctx context.Context, a *state.ScalingActivity, now time.Time) (*state.ScalingActivity, error) {
	p := serviceID.FindStringSubmatch(*a.ResourceId)
	_, err := l.opts.ECS.UpdateService(ctx, &ecs.UpdateServiceInput{Cluster: &p[1], Service: &p[2], DesiredCount: a.Desired})
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return failed(a, refused.ErrorMessage()+" (Service: ECS; Error Code: "+refused.ErrorCode()+")", now), nil
	}
	if err != nil {
		return nil, err
	}
	c := *a
	c.StatusCode = types.ScalingActivityStatusCodeInProgress
	c.StatusMessage = new(fmt.Sprintf("Successfully set desired count to %d. Waiting for change to be fulfilled by ecs.", *a.Desired))
	return &c, nil
}

// fulfill ends an activity once the service has as many tasks as the activity set, or somebody has set another number.
func (l *Loop) fulfill(ctx context.Context, a *state.ScalingActivity, now time.Time) (*state.ScalingActivity, error) {
	s, err := l.service(ctx, *a.ResourceId)
	var refused smithy.APIError
	switch set := fmt.Sprintf("Successfully set desired count to %d. ", *a.Desired); {
	case errors.Is(err, errGone), errors.As(err, &refused):
		return ended(a, types.ScalingActivityStatusCodeUnfulfilled, set+"The service is gone.", now), nil
	case err != nil:
		return nil, err
	case s.DesiredCount != *a.Desired:
		return ended(a, types.ScalingActivityStatusCodeOverridden,
			set+"Another change has set it to "+fmt.Sprint(s.DesiredCount)+" since.", now), nil
	case s.RunningCount == *a.Desired:
		return ended(a, types.ScalingActivityStatusCodeSuccessful, set+"Change successfully fulfilled by ecs.", now), nil
	}
	return nil, nil
}

// isNews reports whether an activity that didn't scale says anything that the target's last one didn't.
func isNews(v *state.View, a *state.ScalingActivity) bool {
	var last *state.ScalingActivity
	for other := range v.ScalingActivities.By(state.ScalingActivitiesByTarget, a.TargetKey()) {
		last = other
	}
	return last == nil || len(last.NotScaledReasons) == 0 || *last.Cause != *a.Cause ||
		aws.ToString(last.NotScaledReasons[0].Code) != aws.ToString(a.NotScaledReasons[0].Code)
}
