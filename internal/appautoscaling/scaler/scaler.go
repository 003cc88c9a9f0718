// Package scaler is the loop that scales. It brings the capacity of scalable targets within their bounds, performs due
// scheduled actions, and lets policies act on their alarms. Package scaling decides. The loop records each change as a
// scaling activity before it makes it, so a restart can go on with it. It talks to ECS and CloudWatch as an SDK client
// would, and keeps nothing that it couldn't find again.
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

// ECS reads and sets capacity.
type ECS interface {
	DescribeServices(context.Context, *ecs.DescribeServicesInput, ...func(*ecs.Options)) (*ecs.DescribeServicesOutput, error)
	UpdateService(context.Context, *ecs.UpdateServiceInput, ...func(*ecs.Options)) (*ecs.UpdateServiceOutput, error)
}

// Options are what the loop needs besides the store.
type Options struct {
	Now        func() time.Time
	ECS        ECS
	CloudWatch triggers.CloudWatch
	// Metrics, if set, makes the reaction fast: policies read alarms' metrics up to now, and queues every second.
	// If nil, the loop reacts as Application Auto Scaling does.
	Metrics *metrics.Store
	Late    func(time.Duration) // told how late each step is that a second has brought; nil tells nobody
	Log     *slog.Logger
}

// every is how often the loop steps.
const every = time.Second

// Loop scales targets. Only Tell may be called from any goroutine; the rest belongs to one.
type Loop struct {
	store    *state.Store
	opts     Options
	triggers *triggers.Triggers
	// watched is what the loop knows of policies' queues, by policy key.
	watched map[string]*watch
}

// New returns a loop over the store.
func New(store *state.Store, opts Options) *Loop {
	if opts.Late == nil {
		opts.Late = func(time.Duration) {}
	}
	return &Loop{store: store, opts: opts, triggers: triggers.New(opts.CloudWatch, opts.Metrics), watched: map[string]*watch{}}
}

// Tell queues an alarm that has changed to a state with a policy as its action. It may be called from any goroutine.
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
		case due := <-tick.C:
			l.opts.Late(time.Since(due))
		}
	}
}

// Step does everything that's due now. Repeating it does no harm.
func (l *Loop) Step(ctx context.Context) error {
	now := l.opts.Now().UTC().Truncate(time.Millisecond)
	for _, do := range []func(context.Context, time.Time) error{l.finish, l.schedules, l.settle, l.policies} {
		if err := do(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

// schedules performs the scheduled actions that are due.
func (l *Loop) schedules(ctx context.Context, now time.Time) error {
	actions := func(v *state.View) state.Table[*state.ScheduledAction] { return v.ScheduledActions }
	return triggers.Schedules(ctx, l.store, actions, now, perform)
}

// perform applies a scheduled action's bounds to its target, and computes when the action is next due.
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
	activity := newScheduled(&row, now)
	if *target.MinCapacity > *target.MaxCapacity {
		tx.ScalingActivities.Put(failed(activity, "the minimum capacity would be above the maximum capacity", now))
		return
	}
	target.Unsettled = true
	tx.ScalableTargets.Put(&target)
	tx.ScalingActivities.Put(activity)
}

// settle brings the capacity of targets with changed bounds within them.
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
		if err := l.begin(ctx, target.Key(), newSettling(target, capacity, desired, now), nil, now); err != nil {
			return err
		}
	}
	return nil
}

func bounds(t *state.ScalableTarget) scaling.Bounds {
	return scaling.Bounds{Min: int(*t.MinCapacity), Max: int(*t.MaxCapacity)}
}

// errGone means that ECS has no such service.
var errGone = errors.New("the service does not exist")

var serviceID = regexp.MustCompile(`^service/([^/]+)/([^/]+)$`)

// service reads a service from ECS by the id of its scalable target.
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

// capacity reads a service's desired count.
func (l *Loop) capacity(ctx context.Context, resource string) (int, error) {
	s, err := l.service(ctx, resource)
	if err != nil {
		return 0, err
	}
	return int(s.DesiredCount), nil
}

// warn logs an error of one target, unless the service is just gone.
func (l *Loop) warn(what string, err error, args ...any) {
	var refused smithy.APIError
	if errors.Is(err, errGone) || errors.As(err, &refused) || errors.Is(err, context.Canceled) {
		return
	}
	l.opts.Log.Warn(what, append(args, "error", err)...)
}
