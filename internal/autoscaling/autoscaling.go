// Package autoscaling is EC2 Auto Scaling: groups of instances, their policies, schedules and lifecycle hooks. A Service
// has methods as the SDK's client has them, over the store. It writes down what is wanted; the loop in
// autoscaling/keeper makes it so. It knows nothing of HTTP, and CloudWatch and SQS only as the interfaces that it is handed.
package autoscaling

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

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
	Region, Account string
	Now             func() time.Time
	Alarms          Alarms
	Queues          Queues
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
	return new("arn:aws:autoscaling:" + s.opts.Region + ":" + s.opts.Account + ":" + resource)
}

// invalid is the error by which clients know what is wrong with a call. The service's model has none for it:
// https://docs.aws.amazon.com/autoscaling/ec2/APIReference/CommonErrors.html
func invalid(format string, args ...any) error {
	return &refusal{smithy.GenericAPIError{Code: "ValidationError", Message: fmt.Sprintf(format, args...)}}
}

type refusal struct{ smithy.GenericAPIError }

// HTTPStatusCode is the status of the answer.
func (*refusal) HTTPStatusCode() int { return http.StatusBadRequest }

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

// uuidOf makes a UUID that is the same for the same parts, so that a call that was cut off can be repeated.
func uuidOf(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	x := hex.EncodeToString(h[:])
	return x[:8] + "-" + x[8:12] + "-5" + x[13:16] + "-a" + x[17:20] + "-" + x[20:32]
}

// pageSize is how many records a page has where a call does not say, and at most.
type pageSize struct{ otherwise, most int }

var (
	pages         = pageSize{50, 100}
	activityPages = pageSize{100, 100} // API_DescribeScalingActivities
	instancePages = pageSize{50, 50}   // API_DescribeAutoScalingInstances
)

const tokenPrefix = "v1:"

// page takes one page of the rows. The token holds the key of the last row of the page before.
func page[R any](rows []R, allowed pageSize, maxRecords *int32, token *string, key func(R) string) ([]R, *string, error) {
	size := allowed.otherwise
	if maxRecords != nil {
		size = int(*maxRecords)
	}
	if size < 1 || size > allowed.most {
		return nil, nil, invalid("MaxRecords must be between 1 and %d, not %d", allowed.most, size)
	}
	if t := aws.ToString(token); t != "" {
		b, err := base64.RawURLEncoding.DecodeString(t)
		after, ok := strings.CutPrefix(string(b), tokenPrefix)
		last := slices.IndexFunc(rows, func(r R) bool { return key(r) == after })
		if err != nil || !ok || last < 0 {
			return nil, nil, &refusal{smithy.GenericAPIError{Code: "InvalidNextToken", Message: "The NextToken is not one that this call returned, or what it stands for is gone"}}
		}
		rows = rows[last+1:]
	}
	if len(rows) <= size {
		return rows, nil, nil
	}
	return rows[:size], new(base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + key(rows[size-1])))), nil
}
