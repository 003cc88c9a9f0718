// Package keeper is the loop that keeps Auto Scaling groups at their desired capacity. It launches, terminates and
// replaces instances, runs lifecycle hooks and scheduled actions, and lets policies act on their alarms. It only writes
// rows: ec2/machines makes them real. Each step of a group is decided in one transaction, so a crash leaves no launch
// half done. It talks to CloudWatch as an SDK client would.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/scaling/triggers"
	"github.com/pintle/pintle/internal/state"
)

// Options are what the loop needs besides the store.
type Options struct {
	Now        func() time.Time
	CloudWatch triggers.CloudWatch
	// Metrics, if set, makes the reaction fast: alarms' metrics are read up to now.
	Metrics *metrics.Store
	// Lost is how long the agent of an instance may be away before the instance is unhealthy.
	Lost time.Duration
	// ScaleIn is how long managed scaling must need fewer instances before it gives them up.
	ScaleIn time.Duration
	// ScaleInPause is the time between managed scaling's steps down, each of at most half the group. 0 gives up all at once.
	ScaleInPause time.Duration
	// Put stores the capacity providers' metric.
	Put func([]metrics.Sample) error
	// Image returns the id of the image that a template's stands for (resolve:ssm:NAME); nil takes ids as they are.
	Image func(id string) (string, error)
	// NoFleet is set if there's nowhere to launch instances.
	NoFleet bool
	// Prices are instance types' prices per hour, as far as they're known.
	Prices map[string]float64
	Late   func(time.Duration) // told how late each step is that a second has brought; nil tells nobody
	Log    *slog.Logger
}

// every is how often the loop steps when nothing changes.
const every = time.Second

// Loop keeps the groups. Only Tell may be called from any goroutine; the rest belongs to one.
type Loop struct {
	store    *state.Store
	opts     Options
	triggers *triggers.Triggers
	alarmsAt time.Time            // when alarms were last read
	measured map[string]time.Time // when each capacity provider's metric was last put
}

// New returns a loop over the store.
func New(store *state.Store, opts Options) *Loop {
	if opts.Late == nil {
		opts.Late = func(time.Duration) {}
	}
	return &Loop{store: store, opts: opts, triggers: triggers.New(opts.CloudWatch, opts.Metrics), measured: map[string]time.Time{}}
}

// Run looks after the groups until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		v := l.store.Watch()
		v.AutoScalingGroups.Watch()
		v.Instances.Watch()
		v.ContainerInstances.Watch()
		v.Tasks.WatchBy(state.TasksByLastStatus, "PROVISIONING")
		if hasTargets(v) {
			v.Targets.Watch()
		}
		if err := l.Step(ctx); err != nil {
			return err
		}
		waiting, cancel := context.WithCancel(ctx)
		select {
		case <-v.ChangedCh(waiting):
		case <-l.triggers.Told(): // read alarms at once
			l.alarmsAt = time.Time{}
		case due := <-tick.C:
			l.opts.Late(time.Since(due))
		}
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// hasTargets reports whether any group is behind a load balancer.
func hasTargets(v *state.View) bool {
	for g := range v.AutoScalingGroups.All() {
		if len(g.TargetGroupARNs) > 0 {
			return true
		}
	}
	return false
}

// Tell queues an alarm that has changed to a state with a policy as its action. It may be called from any goroutine.
func (l *Loop) Tell(alarm string) { l.triggers.Tell(alarm) }

// Step does everything that's due now. Repeating it does no harm.
func (l *Loop) Step(ctx context.Context) error {
	now := l.opts.Now().UTC().Truncate(time.Millisecond)
	if now.Sub(l.alarmsAt) >= every {
		l.alarmsAt = now
		for _, do := range []func(context.Context, time.Time) error{l.schedules, l.policies} {
			if err := do(ctx, now); err != nil {
				return err
			}
		}
	}
	if err := l.manage(ctx, now); err != nil {
		return err
	}
	for g := range l.store.View().AutoScalingGroups.All() {
		err := l.store.Update(ctx, func(tx *state.Tx) error {
			if row := tx.AutoScalingGroups.Get(g.Name()); row != nil {
				(&step{tx: tx, opts: &l.opts, now: now, old: row, group: row.Clone()}).run()
			}
			return nil
		})
		if ctx.Err() != nil || errors.Is(err, state.ErrClosed) {
			return err
		}
		if err != nil {
			l.opts.Log.Error("cannot look after an Auto Scaling group", "group", g.Name(), "error", err)
		}
	}
	return nil
}

// schedules performs the scheduled actions that are due.
func (l *Loop) schedules(ctx context.Context, now time.Time) error {
	return triggers.Schedules(ctx, l.store, func(v *state.View) state.Table[*state.GroupAction] { return v.GroupActions }, now, perform)
}

// perform applies a scheduled action to its group and reschedules the action. One that's never due again is deleted.
func perform(tx *state.Tx, a *state.GroupAction, now time.Time) {
	row := *a
	if due, err := scaling.NextOfGroup(&row.ScheduledUpdateGroupAction, now); err == nil && due != nil {
		row.DueAt = due
		row.StartTime = due
		row.Time = due
		tx.GroupActions.Put(&row)
	} else {
		tx.GroupActions.Delete(row.Key())
	}
	old := tx.AutoScalingGroups.Get(*row.AutoScalingGroupName)
	if old == nil || old.Deleting || old.IsSuspended("ScheduledActions") {
		return
	}
	g := old.Clone()
	if row.MinSize != nil {
		g.MinSize = row.MinSize
	}
	if row.MaxSize != nil {
		g.MaxSize = row.MaxSize
	}
	if *g.MinSize > *g.MaxSize {
		return // the group changed since and the action no longer fits; on AWS it fails too
	}
	desired := *g.DesiredCapacity
	if row.DesiredCapacity != nil && *row.DesiredCapacity >= 0 {
		desired = *row.DesiredCapacity
	}
	after := clamp(g, int(desired))
	because := fmt.Sprintf("a scheduled action update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d",
		*g.MinSize, *g.MaxSize, after)
	setDesired(g, after, because, now)
	tx.AutoScalingGroups.Put(g)
}

func clamp(g *state.AutoScalingGroup, desired int) int {
	return scaling.Bounds{Min: int(*g.MinSize), Max: int(*g.MaxSize)}.Clamp(desired)
}

// setDesired changes a group's desired capacity, within its bounds, and records the cause.
func setDesired(g *state.AutoScalingGroup, desired int, because string, now time.Time) {
	before, after := *g.DesiredCapacity, int32(clamp(g, desired))
	if after == before {
		return
	}
	g.DesiredCapacity = &after
	g.Failures = 0
	g.NotBefore = nil
	g.Cause = fmt.Sprintf("At %s %s changing the desired capacity from %d to %d.", state.Stamp(now), because, before, after)
}
