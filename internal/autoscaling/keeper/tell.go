package keeper

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
)

// notify tells the bus, and owes a hook's target the message, that an instance waits for it. If the target can't be reached, the hook's time-out
// decides, as on AWS.
func (s *step) notify(i *state.Instance, w *state.LifecycleAction) {
	h := s.group.Hook(w.Hook)
	s.emitWaiting(h, i, w)
	target := aws.ToString(h.NotificationTargetARN)
	if target == "" {
		return
	}
	s.tx.Owe(state.Delivery{Debt: delivery.Debt{
		Destination: target,
		Source:      aws.ToString(s.group.AutoScalingGroupARN),
		Subject:     subject(h, i),
		Body:        message(s.group, h, i, w, s.now),
		Until:       w.Until,
	}}, s.now)
}

// emitWaiting tells the bus that an instance waits for a hook.
func (s *step) emitWaiting(h *types.LifecycleHook, i *state.Instance, w *state.LifecycleAction) {
	a := &state.LifecycleEvent{
		LifecycleActionToken: w.Token,
		AutoScalingGroupName: s.group.Name(),
		LifecycleHookName:    *h.LifecycleHookName,
		EC2InstanceID:        *i.InstanceId,
		LifecycleTransition:  *h.LifecycleTransition,
		NotificationMetadata: h.NotificationMetadata,
	}
	a.Origin, a.Destination = way(i, a.LifecycleTransition)
	s.tx.EmitLifecycle(*s.group.AutoScalingGroupARN, a, s.now)
}

// notice is what a lifecycle hook's target is sent:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/prepare-for-lifecycle-notifications.html
type notice struct {
	LifecycleHookName    string
	AccountID            string `json:"AccountId"`
	RequestID            string `json:"RequestId"`
	LifecycleTransition  string
	AutoScalingGroupName string
	Service              string
	Time                 string
	EC2InstanceID        string `json:"EC2InstanceId"`
	LifecycleActionToken string
	NotificationMetadata *string `json:",omitempty"`
	Origin               string
	Destination          string
}

// subject returns the subject of a notice to a topic.
func subject(h *types.LifecycleHook, i *state.Instance) string {
	action := strings.TrimPrefix(*h.LifecycleTransition, "autoscaling:EC2_INSTANCE_")
	return "Auto Scaling:  Lifecycle action '" + action + "' for instance " + *i.InstanceId + " in progress."
}

// way returns from where to where an instance moves in a transition:
// https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pools-eventbridge-events.html
func way(i *state.Instance, transition string) (origin, destination string) {
	const outside, inService, pool = "EC2", "AutoScalingGroup", "WarmPool"
	switch isWarm := i.Member.IsWarm(); {
	case transition == terminating && isWarm:
		return pool, outside
	case transition == terminating:
		return inService, outside
	case isWarm && i.Member.FromPool:
		return inService, pool
	case isWarm:
		return outside, pool
	case i.Member.FromPool:
		return pool, inService
	}
	return outside, inService
}

func message(g *state.AutoScalingGroup, h *types.LifecycleHook, i *state.Instance, w *state.LifecycleAction, now time.Time) string {
	groupARN, _ := arn.Parse(*g.AutoScalingGroupARN) // we made it, so it's valid
	n := notice{
		LifecycleHookName:    *h.LifecycleHookName,
		AccountID:            groupARN.AccountID,
		RequestID:            state.NewUUID(),
		LifecycleTransition:  *h.LifecycleTransition,
		AutoScalingGroupName: g.Name(),
		Service:              "AWS Auto Scaling",
		Time:                 now.Format("2006-01-02T15:04:05.000Z"),
		EC2InstanceID:        *i.InstanceId,
		LifecycleActionToken: w.Token,
		NotificationMetadata: h.NotificationMetadata,
	}
	n.Origin, n.Destination = way(i, n.LifecycleTransition)
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}
