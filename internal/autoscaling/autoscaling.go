// Package autoscaling is EC2 Auto Scaling: groups of instances, their policies, schedules and lifecycle hooks. A Service
// has methods as the SDK's client has them, over the store. It writes down what is wanted; the loop in
// autoscaling/keeper makes it so. It knows nothing of HTTP, and CloudWatch and SQS only as the interfaces that it is handed.
package autoscaling

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// Alarms is where the alarms of target tracking policies are kept: CloudWatch.
type Alarms interface {
	PutMetricAlarm(context.Context, *cloudwatch.PutMetricAlarmInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricAlarmOutput, error)
	DeleteAlarms(context.Context, *cloudwatch.DeleteAlarmsInput, ...func(*cloudwatch.Options)) (*cloudwatch.DeleteAlarmsOutput, error)
}

// Queues is where the test messages of lifecycle hooks go: SQS.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Options say whose EC2 Auto Scaling this is.
type Options struct {
	account.Account
	Alarms Alarms
	Queues Queues
	// QueueURL is the URL of the queue with an ARN.
	QueueURL func(arn string) string
	// Reaction is how fast the alarms are; the zero value is scaling.Faithful.
	Reaction scaling.Reaction
}

// Service is EC2 Auto Scaling for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service {
	if opts.Reaction == (scaling.Reaction{}) {
		opts.Reaction = scaling.Faithful
	}
	return &Service{store, opts}
}

// now is the time to the millisecond, which is what is kept.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

func (s *Service) arn(resource string) *string {
	return new(s.opts.ARN("autoscaling", resource))
}

// invalid is the error by which clients know what is wrong with a call. The service's model has none for it:
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
func invalid(format string, args ...any) error {
	return account.Refuse("ValidationError", format, args...)
}

func missing(field string) error {
	return invalid("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", field)
}

func noGroup(name string) error {
	return invalid("AutoScalingGroup name not found - AutoScalingGroup %s not found", name)
}

// findGroup returns the group of a name that is not being deleted.
func findGroup(v *state.View, name *string) (*state.AutoScalingGroup, error) {
	if aws.ToString(name) == "" {
		return nil, missing("autoScalingGroupName")
	}
	g := v.AutoScalingGroups.Get(*name)
	if g == nil {
		return nil, noGroup(*name)
	}
	return g, nil
}

// change changes a group, unless it is on its way out.
func (s *Service) change(ctx context.Context, name *string, change func(*state.Tx, *state.AutoScalingGroup) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findGroup(tx.View, name)
		if err != nil {
			return err
		}
		if old.Deleting {
			return invalid("AutoScalingGroup %s is pending delete", *name)
		}
		g := old.Clone()
		if err := change(tx, g); err != nil {
			return err
		}
		tx.AutoScalingGroups.Put(g)
		return nil
	})
}

// listing is the pages of an operation that lists: how many records one has where a call does not say, and at most.
func listing(operation string, otherwise, most int) account.List {
	return account.List{
		Kind:     "autoscaling:" + operation,
		Default:  otherwise,
		Most:     most,
		BadLimit: func(limit int) error { return invalid("MaxRecords must be between 1 and %d, not %d", most, limit) },
		BadToken: func() error {
			return account.Refuse("InvalidNextToken", "The NextToken is not one that this call returned, or what it stands for is gone")
		},
	}
}

// Most operations have pages of 50 records, and of 100 at most.
const (
	pageDefault = 50
	pageMost    = 100
)
