// Package autoscaling is EC2 Auto Scaling: groups of instances, their policies, schedules and lifecycle hooks. A Service
// has the methods of the SDK's client, over the store. It only records what is wanted; the loop in autoscaling/keeper
// makes it so. It knows nothing of HTTP, and knows CloudWatch, SQS and SNS only as interfaces.
package autoscaling

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/scaling"
	"github.com/pintle/pintle/internal/state"
)

// Alarms stores the alarms of target tracking policies. It's CloudWatch.
type Alarms interface {
	PutMetricAlarm(context.Context, *cloudwatch.PutMetricAlarmInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricAlarmOutput, error)
	DeleteAlarms(context.Context, *cloudwatch.DeleteAlarmsInput, ...func(*cloudwatch.Options)) (*cloudwatch.DeleteAlarmsOutput, error)
}

// Queues takes the test messages of lifecycle hooks. It's SQS.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Topics takes the test messages of notifications and lifecycle hooks. It's SNS.
type Topics interface {
	Publish(context.Context, *sns.PublishInput, ...func(*sns.Options)) (*sns.PublishOutput, error)
}

// Options are the account and region of the service, and the services it calls.
type Options struct {
	account.Account
	Alarms Alarms
	Queues Queues
	Topics Topics
	// QueueURL returns the URL of a queue by its ARN.
	QueueURL func(arn string) string
	// Reaction is how fast the alarms react. The zero value is scaling.Faithful.
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

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

func (s *Service) arn(resource string) *string {
	return new(s.opts.ARN("autoscaling", resource))
}

// invalid returns a ValidationError. The service's model lacks it; the page on common errors has it:
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

// findGroup returns the group of a name. The group may be on its way out.
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

// change changes a group, unless it's being deleted.
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

// listing describes the pages of an operation: how many records they have by default and at most.
func listing(operation string, byDefault, most int) account.List {
	return account.List{
		Kind:     "autoscaling:" + operation,
		Default:  byDefault,
		Most:     most,
		BadLimit: func(limit int) error { return invalid("MaxRecords must be between 1 and %d, not %d", most, limit) },
		BadToken: func() error {
			return account.Refuse("InvalidNextToken", "The NextToken isn't one that this operation returned, or its record is gone")
		},
	}
}

// Most operations have pages of 50 records by default and 100 at most.
const (
	pageDefault = 50
	pageMost    = 100
)
