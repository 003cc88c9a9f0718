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

// The sentences of activities are those of the Application Auto Scaling User Guide's page "Scaling activities for
// Application Auto Scaling" and of DescribeScalingActivities' examples.

// activity is a new activity of a target. Its id sorts behind those before it, of the same moment too.
func activity(namespace types.ServiceNamespace, dimension types.ScalableDimension, resource *string, now time.Time) *state.ScalingActivity {
	return &state.ScalingActivity{ScalingActivity: types.ScalingActivity{
		ActivityId: new(uuid.Must(uuid.NewV7()).String()), ServiceNamespace: namespace, ScalableDimension: dimension, ResourceId: resource, StartTime: &now,
	}}
}

// setting is the activity that gives a target another capacity.
func setting(t *state.ScalableTarget, desired int, w wish, now time.Time) *state.ScalingActivity {
	a := activity(t.ServiceNamespace, t.ScalableDimension, t.ResourceId, now)
	a.StatusCode, a.Desired = types.ScalingActivityStatusCodePending, new(int32(desired))
	a.Description, a.Cause, a.Details = new(fmt.Sprintf("Setting desired count to %d.", desired)), &w.cause, w.told()
	return a
}

// told is what an activity says in its details; nil where there is nothing.
func (w wish) told() *string {
	if w.details == "" {
		return nil
	}
	return &w.details
}

// settling is the activity that brings a capacity within the bounds; nil if it is there.
func settling(t *state.ScalableTarget, capacity, desired int, now time.Time) *state.ScalingActivity {
	switch {
	case desired > capacity:
		return setting(t, desired, wish{cause: fmt.Sprintf("minimum capacity was set to %d", *t.MinCapacity)}, now)
	case desired < capacity:
		return setting(t, desired, wish{cause: fmt.Sprintf("maximum capacity was set to %d", *t.MaxCapacity)}, now)
	}
	return nil
}

// triggered is why a policy acts.
func triggered(a *cloudwatchtypes.MetricAlarm, policy string) string {
	return fmt.Sprintf("monitor alarm %s in state %s triggered policy %s", *a.AlarmName, a.StateValue, policy)
}

// notScaled is the activity of a policy that has come to nothing.
func notScaled(t *state.ScalableTarget, w wish, code string, capacity int, now time.Time) *state.ScalingActivity {
	a := activity(t.ServiceNamespace, t.ScalableDimension, t.ResourceId, now)
	a.Description, a.Cause, a.StatusCode = new("Attempting to scale due to alarm triggered"), &w.cause, types.ScalingActivityStatusCodeFailed
	a.Details = w.told()
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

// scheduled is the activity of a scheduled action that was done.
func scheduled(action *state.ScheduledAction, now time.Time) *state.ScalingActivity {
	var set []string
	if c := action.ScalableTargetAction.MinCapacity; c != nil {
		set = append(set, fmt.Sprintf("min capacity to %d", *c))
	}
	if c := action.ScalableTargetAction.MaxCapacity; c != nil {
		set = append(set, fmt.Sprintf("max capacity to %d", *c))
	}
	what := strings.Join(set, " and ")
	a := activity(action.ServiceNamespace, action.ScalableDimension, action.ResourceId, now)
	a.Description, a.StatusMessage = new("Setting "+what), new("Successfully set "+what)
	a.Cause = new("scheduled action name " + *action.ScheduledActionName + " was triggered")
	a.StatusCode, a.EndTime = types.ScalingActivityStatusCodeSuccessful, &now
	return a
}

// ended is the activity, over.
func ended(a *state.ScalingActivity, code types.ScalingActivityStatusCode, message string, now time.Time) *state.ScalingActivity {
	c := *a
	c.StatusCode, c.StatusMessage, c.EndTime = code, &message, &now
	return &c
}

func failed(a *state.ScalingActivity, reason string, now time.Time) *state.ScalingActivity {
	what := strings.TrimSuffix(strings.TrimPrefix(*a.Description, "Setting "), ".")
	return ended(a, types.ScalingActivityStatusCodeFailed, "Failed to set "+what+". Reason: "+reason+".", now)
}

// begin writes down what is to be done, if anything, and does it. From then on the target is settled. last is for
// the cool-downs, nil where no policy asked.
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

// record writes down what is over already.
func (l *Loop) record(ctx context.Context, a *state.ScalingActivity) error {
	return l.store.Update(ctx, func(tx *state.Tx) error { tx.ScalingActivities.Put(a); return nil })
}

// finish goes on with the activities that are not over.
func (l *Loop) finish(ctx context.Context, now time.Time) error {
	for _, a := range l.store.View().UnfinishedScalingActivities() {
		if err := l.advance(ctx, a, now); err != nil {
			return err
		}
	}
	return nil
}

// advance does an activity's next step, and writes it down.
func (l *Loop) advance(ctx context.Context, a *state.ScalingActivity, now time.Time) error {
	next := l.fulfil
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

// set sets the desired count of an activity that has not done so for sure.
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

// fulfil ends an activity once the service has as many tasks as it set, or somebody has set another number.
func (l *Loop) fulfil(ctx context.Context, a *state.ScalingActivity, now time.Time) (*state.ScalingActivity, error) {
	s, err := l.service(ctx, *a.ResourceId)
	var refused smithy.APIError
	switch set := fmt.Sprintf("Successfully set desired count to %d. ", *a.Desired); {
	case errors.Is(err, errGone), errors.As(err, &refused):
		return ended(a, types.ScalingActivityStatusCodeUnfulfilled, set+"The service is gone.", now), nil
	case err != nil:
		return nil, err
	case s.DesiredCount != *a.Desired:
		return ended(a, types.ScalingActivityStatusCodeOverridden, set+"Another change has set it to "+fmt.Sprint(s.DesiredCount)+" since.", now), nil
	case s.RunningCount == *a.Desired:
		return ended(a, types.ScalingActivityStatusCodeSuccessful, set+"Change successfully fulfilled by ecs.", now), nil
	}
	return nil, nil
}

// news reports whether an activity that was not scaled tells more than the target's last one.
func news(v *state.View, a *state.ScalingActivity) bool {
	var last *state.ScalingActivity
	for other := range v.ScalingActivities.By(state.ScalingActivitiesByTarget, a.TargetKey()) {
		last = other
	}
	return last == nil || len(last.NotScaledReasons) == 0 || *last.Cause != *a.Cause ||
		aws.ToString(last.NotScaledReasons[0].Code) != aws.ToString(a.NotScaledReasons[0].Code)
}
