package stacks

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// hasRolled reports whether a group's instances are those that its update policy wants: started from what the group is started from now. It
// replaces those that aren't, batch by batch. What is to be done is read off the group each time, so that whoever was killed goes on. It's
// called when the group has as many instances in service as it's to have.
func (c *construction) hasRolled(ctx context.Context) (bool, error) {
	if c.row.Type != groupType || c.isNew() {
		return true, nil
	}
	policy, err := c.src.updatePolicy(c.resource)
	if err != nil {
		return false, err
	}
	roll := &rolling{construction: c, policy: policy.AutoScalingRollingUpdate}
	if roll.group = c.rows.View().AutoScalingGroups.Get(c.row.PhysicalID); roll.group == nil {
		return true, nil
	}
	if roll.policy == nil {
		return true, roll.end(ctx)
	}
	return roll.step(ctx)
}

// rolling is a rolling update of a group.
type rolling struct {
	*construction
	policy *rollingUpdate
	group  *state.AutoScalingGroup
	old    []*state.Instance // those that are to be replaced
	fresh  []*state.Instance
}

// step takes the update a step further, and reports whether it's over.
func (r *rolling) step(ctx context.Context) (done bool, err error) {
	if err := r.sort(); err != nil {
		return false, err
	}
	switch {
	case r.row.Rolling == nil && len(r.old) == 0:
		return true, nil
	case r.row.Rolling == nil || r.row.Rolling.Of == 0:
		return false, r.begin(ctx)
	}
	passed, err := r.hasPassed(ctx)
	if err != nil || !passed {
		return false, err
	}
	if len(r.old) == 0 {
		return true, r.end(ctx)
	}
	prepared, err := r.prepare(ctx)
	if err != nil || !prepared {
		return false, err
	}
	return false, r.replaceBatch(ctx)
}

// sort sorts the group's instances into those that are to be replaced and those that have come.
func (r *rolling) sort() error {
	v := r.rows.View()
	from, err := v.LaunchSource(r.group)
	if err != nil {
		return template.Errorf("%v", err)
	}
	for _, i := range v.ActiveMembers(r.group.Name()) {
		if from.Made(i.Member) {
			r.fresh = append(r.fresh, i)
		} else {
			r.old = append(r.old, i)
		}
	}
	return nil
}

// raised returns how many instances the group is to have meanwhile, so that enough stay in service.
func (r *rolling) raised() int32 {
	return max(*r.group.DesiredCapacity, min(*r.group.MaxSize, int32(r.policy.MinInstancesInService+r.policy.batch())))
}

// begin notes what is going to be done.
func (r *rolling) begin(ctx context.Context) error {
	u := r.policy
	if u.MinInstancesInService >= int(*r.group.MaxSize) {
		return template.Errorf("MinInstancesInService must be less than the autoscaling group's MaxSize")
	}
	next := state.RollingUpdate{Min: *r.group.MinSize, Desired: *r.group.DesiredCapacity}
	if earlier := r.row.Rolling; earlier != nil { // it failed, and its sizes are still there
		next = *earlier
	}
	next.Of, next.Raised, next.Suspended = len(r.old), next.Raised || r.raised() > *r.group.DesiredCapacity, u.SuspendProcesses
	next.Since = r.opts.Account.Now()
	reason := fmt.Sprintf("Rolling update initiated. Terminating %d obsolete instance(s) in batches of %d", len(r.old), u.batch())
	if u.MinInstancesInService > 0 {
		reason += fmt.Sprintf(", while keeping at least %d instance(s) in service", u.MinInstancesInService)
	}
	if u.WaitOnResourceSignals {
		timeout := aws.ToString(cmp.Or(u.PauseTime, aws.String("PT5M")))
		reason += ". Waiting on resource signals with a timeout of " + timeout + " when new instances are added to the autoscaling group"
	}
	return r.put(ctx, &next, reason+".")
}

// put notes how far the update has come.
func (r *rolling) put(ctx context.Context, next *state.RollingUpdate, reason string) error {
	return r.note(ctx, r.row.Stack, func(tx *state.Tx, s *state.Stack) {
		row := tx.StackResources.Get(r.row.Key())
		if row == nil {
			return
		}
		changed := *row
		changed.Rolling = next
		tx.StackResources.Put(&changed)
		r.row = &changed
		told := changed
		told.At = r.opts.Account.Now()
		event(tx, s, &told, reason, "")
	})
}

// hasPassed reports whether the instances of the last batch have signalled, or the pause after it is over.
func (r *rolling) hasPassed(ctx context.Context) (bool, error) {
	pause, err := r.policy.pause()
	if err != nil {
		return false, err
	}
	over := r.opts.Account.Now().Sub(r.row.Rolling.Since) >= pause
	if !r.policy.WaitOnResourceSignals {
		return over || len(r.fresh) == 0, nil
	}
	if err := r.hear(ctx); err != nil {
		return false, err
	}
	var silent []string
	for _, i := range r.fresh {
		if _, has := r.row.Signals[*i.InstanceId]; !has {
			silent = append(silent, *i.InstanceId)
		}
	}
	if len(silent) > 0 && !over {
		return false, nil
	}
	if err := r.signal(ctx, types.ResourceSignalStatusFailure, silent); err != nil {
		return false, err
	}
	bad := 0
	for _, i := range r.fresh {
		if r.row.Signals[*i.InstanceId] == types.ResourceSignalStatusFailure {
			bad++
		}
	}
	percent := or(r.policy.MinSuccessfulInstancesPercent, 100)
	if of := r.row.Rolling.Of; !isEnough(of-bad, of, percent) {
		return false, tooFew(bad, of, percent)
	}
	return true, nil
}

// prepare suspends processes and raises the group's size, and reports whether that was so already.
func (r *rolling) prepare(ctx context.Context) (bool, error) {
	var suspend []string
	for _, p := range r.policy.SuspendProcesses {
		if !r.group.IsSuspended(p) {
			suspend = append(suspend, p)
		}
	}
	name := r.group.Name()
	if len(suspend) > 0 {
		in := &autoscaling.SuspendProcessesInput{AutoScalingGroupName: &name, ScalingProcesses: suspend}
		if _, err := call.Do[autoscaling.SuspendProcessesOutput](ctx, r.opts.Services, in); err != nil {
			return false, err
		}
	}
	size := r.raised()
	if size <= *r.group.DesiredCapacity {
		return true, nil
	}
	reason := fmt.Sprintf("Temporarily setting autoscaling group MinSize and DesiredCapacity to %d.", size)
	if err := r.put(ctx, r.row.Rolling, reason); err != nil {
		return false, err
	}
	return false, r.resize(ctx, size, size)
}

func (r *rolling) resize(ctx context.Context, least, desired int32) error {
	name := r.group.Name()
	in := &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: &name, MinSize: &least, DesiredCapacity: &desired}
	_, err := call.Do[autoscaling.UpdateAutoScalingGroupOutput](ctx, r.opts.Services, in)
	return err
}

// replaceBatch terminates the next instances. The group replaces them.
func (r *rolling) replaceBatch(ctx context.Context) error {
	n := min(r.policy.batch(), len(r.old), len(r.old)+len(r.fresh)-r.policy.MinInstancesInService)
	var ids []string
	for _, i := range r.old[:max(n, 0)] {
		ids = append(ids, *i.InstanceId)
	}
	if len(ids) == 0 {
		return nil
	}
	next := *r.row.Rolling
	next.Since = r.opts.Account.Now()
	reason := fmt.Sprintf("Terminating instance(s) [%s]; replacing with %d new instance(s).", strings.Join(ids, ","), n)
	if err := r.put(ctx, &next, reason); err != nil {
		return err
	}
	for _, id := range ids {
		in := &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: &id, ShouldDecrementDesiredCapacity: aws.Bool(false)}
		if _, err := call.Do[autoscaling.TerminateInstanceInAutoScalingGroupOutput](ctx, r.opts.Services, in); err != nil {
			return err
		}
	}
	return nil
}

// end undoes what an update has done to the group besides replacing its instances.
func (r *rolling) end(ctx context.Context) error {
	u := r.row.Rolling
	if u == nil {
		return nil
	}
	if u.Raised {
		if err := r.resize(ctx, u.Min, u.Desired); err != nil {
			return err
		}
	}
	if len(u.Suspended) == 0 {
		return nil
	}
	in := &autoscaling.ResumeProcessesInput{AutoScalingGroupName: new(r.group.Name()), ScalingProcesses: u.Suspended}
	_, err := call.Do[autoscaling.ResumeProcessesOutput](ctx, r.opts.Services, in)
	return err
}
