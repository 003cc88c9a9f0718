package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state"
)

// Queues is where the messages of lifecycle hooks go: SQS.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// tell tells the notification targets of lifecycle hooks which instances wait for them. What was told is written down after:
// a crash in between tells twice rather than never.
func (l *Loop) tell(ctx context.Context, now time.Time) error {
	v := l.store.View()
	for g := range v.AutoScalingGroups.All() {
		for i := range v.Instances.By(state.InstancesByGroup, g.Name()) {
			w := i.Member.Waits
			if w == nil || w.Told {
				continue
			}
			h := g.Hook(w.Hook)
			if h == nil || aws.ToString(h.NotificationTargetARN) == "" {
				continue
			}
			if err := l.send(ctx, g, h, i, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// send tells one target. Where the queue refuses the message the hook's time-out decides, as it does on AWS.
func (l *Loop) send(ctx context.Context, g *state.AutoScalingGroup, h *types.LifecycleHook, i *state.Instance, now time.Time) error {
	_, err := l.opts.Queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: new(l.opts.QueueURL(*h.NotificationTargetARN)), MessageBody: new(message(g, h, i, now))})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refused smithy.APIError
	if err != nil {
		l.opts.Log.Warn("cannot tell a lifecycle hook's target", "group", g.Name(), "hook", *h.LifecycleHookName, "target", *h.NotificationTargetARN, "error", err)
		if !errors.As(err, &refused) {
			return nil // it is tried again
		}
	}
	return l.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Instances.Get(*i.InstanceId)
		if old == nil || old.Member == nil || old.Member.Waits == nil || old.Member.Waits.Token != i.Member.Waits.Token {
			return nil
		}
		row := old.Clone()
		row.Member.Waits.Told = true
		tx.Instances.Put(row)
		return nil
	})
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
	Origin, Destination  string
}

func message(g *state.AutoScalingGroup, h *types.LifecycleHook, i *state.Instance, now time.Time) string {
	of, _ := arn.Parse(*g.AutoScalingGroupARN) // it is ours
	n := notice{
		LifecycleHookName: *h.LifecycleHookName, AccountID: of.AccountID, RequestID: state.NewUUID(), LifecycleTransition: *h.LifecycleTransition, AutoScalingGroupName: g.Name(),
		Service: "AWS Auto Scaling", Time: now.Format("2006-01-02T15:04:05.000Z"), EC2InstanceID: *i.InstanceId, LifecycleActionToken: i.Member.Waits.Token,
		NotificationMetadata: h.NotificationMetadata, Origin: "EC2", Destination: "AutoScalingGroup",
	}
	if n.LifecycleTransition == terminating {
		n.Origin, n.Destination = n.Destination, n.Origin
	}
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}
