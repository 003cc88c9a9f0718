// Package scaler is the loop that scales: it brings the capacity of scalable targets within their
// bounds, does the scheduled actions that are due, and lets policies act on their alarms. What it
// decides by is package scaling; what it does it writes down first, as a scaling activity, so that a
// restart goes on with it. It speaks to ECS and CloudWatch as an SDK client would, and keeps nothing.
package scaler

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/scaling/triggers"
	"github.com/pintle/pintle/internal/state"
)

// ECS is where capacity is read and set.
type ECS interface {
	DescribeServices(context.Context, *ecs.DescribeServicesInput, ...func(*ecs.Options)) (*ecs.DescribeServicesOutput, error)
	UpdateService(context.Context, *ecs.UpdateServiceInput, ...func(*ecs.Options)) (*ecs.UpdateServiceOutput, error)
}

// Options are what the loop needs besides the store.
type Options struct {
	Now        func() time.Time
	ECS        ECS
	CloudWatch triggers.CloudWatch
	// Metrics makes the reaction fast: policies look at alarms' metrics up to now, and at queues every second.
	// With nil it is as Application Auto Scaling's.
	Metrics *metrics.Store
	Log     *slog.Logger
}

// every is how often the loop looks.
const every = time.Second

// Loop is the loop. Its methods but Tell are to be called from one goroutine.
type Loop struct {
	store    *state.Store
	opts     Options
	triggers *triggers.Triggers
	// watched is what is known of policies' queues, by the policy's key.
	watched map[string]*watch
}

// New returns a loop over the store.
func New(store *state.Store, opts Options) *Loop {
	return &Loop{store: store, opts: opts, triggers: triggers.New(opts.CloudWatch, opts.Metrics), watched: map[string]*watch{}}
}

// Tell says that an alarm has come to a state that has a policy as its action.
func (l *Loop) Tell(alarm string) { l.triggers.Tell(alarm) }

// Run scales until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := l.Step(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.triggers.Told():
		case <-tick.C:
		}
	}
}

// Step does all that is to be done now. To do it twice does no harm.
func (l *Loop) Step(ctx context.Context) error {
	now := l.opts.Now().UTC().Truncate(time.Millisecond)
	for _, do := range []func(context.Context, time.Time) error{l.finish, l.schedules, l.settle, l.policies} {
		if err := do(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

// schedules does the scheduled actions that are due.
func (l *Loop) schedules(ctx context.Context, now time.Time) error {
	return triggers.Schedules(ctx, l.store, func(v *state.View) state.Table[state.ScheduledAction] { return v.ScheduledActions }, now, perform)
}

// perform gives the target of a scheduled action the action's bounds, and finds out when it is due again.
func perform(tx *state.Tx, action *state.ScheduledAction, now time.Time) {
	row := *action
	row.DueAt = nil
	if s, err := scaling.ScheduleOf(&row.ScheduledAction); err == nil { // it was checked when it was put
		if at, ok := s.Next(now); ok {
			row.DueAt = &at
		}
	}
	tx.ScheduledActions.Put(&row)
	old := tx.ScalableTargets.Get(row.TargetKey())
	if old == nil || aws.ToBool(old.SuspendedState.ScheduledScalingSuspended) {
		return
	}
	target, change := *old, row.ScalableTargetAction
	if change.MinCapacity != nil {
		target.MinCapacity = change.MinCapacity
	}
	if change.MaxCapacity != nil {
		target.MaxCapacity = change.MaxCapacity
	}
	activity := scheduled(&row, now)
	if *target.MinCapacity > *target.MaxCapacity {
		tx.ScalingActivities.Put(failed(activity, "the minimum capacity would be above the maximum capacity", now))
		return
	}
	target.Unsettled = true
	tx.ScalableTargets.Put(&target)
	tx.ScalingActivities.Put(activity)
}

// settle brings the capacity of targets whose bounds have changed within them.
func (l *Loop) settle(ctx context.Context, now time.Time) error {
	for target := range l.store.View().ScalableTargets.All() {
		if !target.Unsettled {
			continue
		}
		capacity, err := l.capacity(ctx, *target.ResourceId)
		if err != nil {
			l.warn("cannot read a service's desired count", err, "resource", *target.ResourceId)
			continue
		}
		desired := bounds(target).Clamp(capacity)
		if err := l.begin(ctx, target.Key(), settling(target, capacity, desired, now), nil, now); err != nil {
			return err
		}
	}
	return nil
}

func bounds(t *state.ScalableTarget) scaling.Bounds {
	return scaling.Bounds{Min: int(*t.MinCapacity), Max: int(*t.MaxCapacity)}
}

// errGone says that ECS has no such service.
var errGone = errors.New("the service does not exist")

var serviceID = regexp.MustCompile(`^service/([^/]+)/([^/]+)$`)

// service asks ECS for a service by the id of its scalable target.
func (l *Loop) service(ctx context.Context, resource string) (*ecstypes.Service, error) {
	p := serviceID.FindStringSubmatch(resource)
	out, err := l.opts.ECS.DescribeServices(ctx, &ecs.DescribeServicesInput{Cluster: &p[1], Services: []string{p[2]}})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(out.Services, func(s ecstypes.Service) bool { return aws.ToString(s.Status) != "INACTIVE" }); i >= 0 {
		return &out.Services[i], nil
	}
	return nil, errGone
}

// capacity is a service's desired count.
func (l *Loop) capacity(ctx context.Context, resource string) (int, error) {
	s, err := l.service(ctx, resource)
	if err != nil {
		return 0, err
	}
	return int(s.DesiredCount), nil
}

// warn logs what went wrong with one target, where it is not just a service that is gone.
func (l *Loop) warn(what string, err error, args ...any) {
	var refused smithy.APIError
	if errors.Is(err, errGone) || errors.As(err, &refused) || errors.Is(err, context.Canceled) {
		return
	}
	l.opts.Log.Warn(what, append(args, "error", err)...)
}
