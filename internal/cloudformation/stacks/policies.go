package stacks

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	ecs "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// groupType is the type of Auto Scaling groups, which alone have update policies, and whose instances signal.
const groupType = "AWS::AutoScaling::AutoScalingGroup"

// awaiting are the types that creation policies are for. AWS has AWS::AppStream::Fleet besides.
var awaiting = []string{groupType, resources.Instance, resources.WaitCondition}

// creationPolicy is a resource's CreationPolicy.
type creationPolicy struct {
	AutoScalingCreationPolicy struct{ MinSuccessfulInstancesPercent *int }
	ResourceSignal            *resourceSignal
}

// resourceSignal says how many signals are waited for, and how long. AWS's defaults are one and five minutes.
type resourceSignal struct {
	Count   *int
	Timeout *string
}

// updatePolicy is the UpdatePolicy of an Auto Scaling group.
type updatePolicy struct {
	AutoScalingReplacingUpdate struct{ WillReplace bool }
	AutoScalingRollingUpdate   *rollingUpdate
	AutoScalingScheduledAction struct{ IgnoreUnmodifiedGroupSizeProperties bool }
}

// rollingUpdate says how instances are replaced.
type rollingUpdate struct {
	MaxBatchSize                  *int // 1
	MinInstancesInService         int
	MinSuccessfulInstancesPercent *int    // 100
	PauseTime                     *string // PT5M while signals are waited for, otherwise none
	SuspendProcesses              []string
	WaitOnResourceSignals         bool
}

func (u *rollingUpdate) batch() int { return max(1, or(u.MaxBatchSize, 1)) }

func (u *rollingUpdate) pause() (time.Duration, error) {
	switch {
	case u.PauseTime != nil:
		return duration(*u.PauseTime)
	case u.WaitOnResourceSignals:
		return 5 * time.Minute, nil
	}
	return 0, nil
}

// or returns what a pointer leads to, or a default.
func or(n *int, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return *n
}

// creationPolicy returns a resource's creation policy.
func (src *source) creationPolicy(r *template.Resource) (*creationPolicy, error) {
	p := new(creationPolicy)
	if err := src.policy(r, "CreationPolicy", r.CreationPolicy, p); err != nil || p.ResourceSignal == nil {
		return p, err
	}
	_, err := p.ResourceSignal.timeout()
	return p, err
}

func (w *resourceSignal) timeout() (time.Duration, error) {
	if w.Timeout == nil {
		return 5 * time.Minute, nil
	}
	return duration(*w.Timeout)
}

// updatePolicy returns a resource's update policy. Only groups can have one here. Another resource's is of an earlier version, and ignored as it
// was then.
func (src *source) updatePolicy(r *template.Resource) (*updatePolicy, error) {
	p := new(updatePolicy)
	if r.Type != groupType {
		return p, nil
	}
	if err := src.policy(r, "UpdatePolicy", r.UpdatePolicy, p); err != nil || p.AutoScalingRollingUpdate == nil {
		return p, err
	}
	_, err := p.AutoScalingRollingUpdate.pause()
	return p, err
}

// policy evaluates a policy of a resource.
func (src *source) policy(r *template.Resource, attribute string, v *template.Value, into any) error {
	if v == nil {
		return nil
	}
	values, err := object(src.Evaluation, v)
	if err != nil {
		return err
	}
	return resources.Decode(r.Name, attribute, values, into)
}

// checkPolicies refuses policies that a resource can't have, and a wait condition that has neither a policy nor a handle to wait by. It's for
// templates that aren't a stack's yet: what stands must be rolled back whatever its policies are.
func (src *source) checkPolicies(r *template.Resource, properties map[string]any) error {
	policy, err := src.creationPolicy(r)
	if err != nil {
		return err
	}
	if r.CreationPolicy != nil && !slices.Contains(awaiting, r.Type) {
		return template.Errorf("CreationPolicy is not supported for resource %s of type %s", r.Name, r.Type)
	}
	if r.UpdatePolicy != nil && r.Type != groupType {
		return template.Errorf("UpdatePolicy is not supported for resource %s of type %s", r.Name, r.Type)
	}
	if r.Type == resources.WaitCondition && policy.ResourceSignal == nil {
		if err := resources.CheckWait(r.Name, properties); err != nil {
			return err
		}
	}
	_, err = src.updatePolicy(r)
	return err
}

// replacing reports whether a group's update policy asks for a new group in place of new instances.
func (src *source) replacing(r *template.Resource) (bool, error) {
	policy, err := src.updatePolicy(r)
	return err == nil && policy.AutoScalingReplacingUpdate.WillReplace, err
}

// withoutSizes leaves a group's sizes as they are, if its update policy says so and the template has those that it had.
func (c *construction) withoutSizes(before, after map[string]any) error {
	policy, err := c.src.updatePolicy(c.resource)
	if err != nil || !policy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties {
		return err
	}
	for _, name := range []string{"DesiredCapacity", "MaxSize", "MinSize"} {
		a, _ := template.Text(before[name])
		if b, _ := template.Text(after[name]); a == b {
			delete(after, name)
		}
	}
	return nil
}

// isNew reports whether the resource was made in the operation that runs: it's a stack's first one, or has taken another one's place.
func (c *construction) isNew() bool {
	if isCreation(c.row) {
		return true
	}
	for r := range c.rows.View().ResourcesOf(c.row.Stack) {
		if r.Name == c.row.Name && r.Superseded && !isGone(r) {
			return true
		}
	}
	return false
}

// hear notes the signals of instances that can't signal: those whose user data isn't run. Such an instance counts as having signalled success
// once it has joined its cluster, and one of a group once it's in service.
func (c *construction) hear(ctx context.Context) error {
	if c.opts.RunsUserData {
		return nil
	}
	var ready []string
	v := c.rows.View()
	for _, i := range c.machines(v) {
		if _, has := c.row.Signals[*i.InstanceId]; !has && i.UserData != "" && hasJoined(v, *i.InstanceId) {
			ready = append(ready, *i.InstanceId)
		}
	}
	return c.signal(ctx, types.ResourceSignalStatusSuccess, ready)
}

// machines lists the instances that the resource is, or those in service that it has.
func (c *construction) machines(v *state.View) (list []*state.Instance) {
	switch c.row.Type {
	case resources.Instance:
		if i := v.Instances.Get(c.row.PhysicalID); i != nil {
			list = append(list, i)
		}
	case groupType:
		for _, i := range v.ActiveMembers(c.row.PhysicalID) {
			if i.Member.InServiceAt != nil {
				list = append(list, i)
			}
		}
	}
	return list
}

// hasJoined reports whether an instance is an active container instance whose agent is connected, and that doesn't run its user data.
func hasJoined(v *state.View, id string) bool {
	for node := range v.ContainerInstances.By(state.InstancesByMachine, id) {
		if node.AgentConnected && *node.Status == "ACTIVE" {
			return !runsUserData(node)
		}
	}
	return false
}

// runsUserData reports whether a container instance runs its user data, and so signals by itself.
func runsUserData(node *state.ContainerInstance) bool {
	return slices.ContainsFunc(node.Attributes, func(a ecs.Attribute) bool {
		return aws.ToString(a.Name) == "pintle.user-data" && aws.ToString(a.Value) == "run"
	})
}

// signal notes the same signal from several instances.
func (c *construction) signal(ctx context.Context, status types.ResourceSignalStatus, from []string) error {
	if len(from) == 0 {
		return nil
	}
	return c.note(ctx, c.row.Stack, func(tx *state.Tx, s *state.Stack) {
		for _, id := range from {
			if row := tx.StackResources.Get(c.row.Key()); row != nil {
				c.row = signalled(tx, s, row, id, status, c.opts.Account.Now())
			}
		}
	})
}
