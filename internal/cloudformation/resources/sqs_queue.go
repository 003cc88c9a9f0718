package resources

import (
	"context"
	"reflect"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/wire/call"
)

// queue has the properties of AWS::SQS::Queue. Its physical ID is the queue's URL.
type queue struct {
	QueueName                     *string `cfn:"create"`
	FifoQueue                     *bool   `cfn:"create"`
	ContentBasedDeduplication     *bool
	DeduplicationScope            *string
	DelaySeconds                  *int32
	FifoThroughputLimit           *string
	KmsDataKeyReusePeriodSeconds  *int32
	KmsMasterKeyId                *string
	MaximumMessageSize            *int32
	MessageRetentionPeriod        *int32
	ReceiveMessageWaitTimeSeconds *int32
	RedriveAllowPolicy            any
	RedrivePolicy                 any
	SqsManagedSseEnabled          *bool
	Tags                          []Tag
	VisibilityTimeout             *int32
}

// queueDefaults are the attributes that a queue has whose template doesn't say more.
var queueDefaults = map[string]string{
	"ContentBasedDeduplication":     "false",
	"DeduplicationScope":            "queue",
	"DelaySeconds":                  "0",
	"FifoThroughputLimit":           "perQueue",
	"KmsDataKeyReusePeriodSeconds":  "300",
	"KmsMasterKeyId":                "",
	"MaximumMessageSize":            "1048576",
	"MessageRetentionPeriod":        "345600",
	"ReceiveMessageWaitTimeSeconds": "0",
	"RedriveAllowPolicy":            "",
	"RedrivePolicy":                 "",
	"SqsManagedSseEnabled":          "true",
	"VisibilityTimeout":             "30",
}

// attributes returns what the template says as attributes.
func (q *queue) attributes() map[string]string {
	out := map[string]string{}
	for name, v := range map[string]*int32{
		"DelaySeconds":                  q.DelaySeconds,
		"KmsDataKeyReusePeriodSeconds":  q.KmsDataKeyReusePeriodSeconds,
		"MaximumMessageSize":            q.MaximumMessageSize,
		"MessageRetentionPeriod":        q.MessageRetentionPeriod,
		"ReceiveMessageWaitTimeSeconds": q.ReceiveMessageWaitTimeSeconds,
		"VisibilityTimeout":             q.VisibilityTimeout,
	} {
		if v != nil {
			out[name] = strconv.Itoa(int(*v))
		}
	}
	for name, v := range map[string]*bool{
		"ContentBasedDeduplication": q.ContentBasedDeduplication, "SqsManagedSseEnabled": q.SqsManagedSseEnabled,
	} {
		if v != nil {
			out[name] = strconv.FormatBool(*v)
		}
	}
	for name, v := range map[string]*string{
		"DeduplicationScope":  q.DeduplicationScope,
		"FifoThroughputLimit": q.FifoThroughputLimit,
		"KmsMasterKeyId":      q.KmsMasterKeyId,
		"RedriveAllowPolicy":  document(q.RedriveAllowPolicy),
		"RedrivePolicy":       document(q.RedrivePolicy),
	} {
		if v != nil {
			out[name] = *v
		}
	}
	return out
}

func (q *queue) isFIFO() bool { return q.FifoQueue != nil && *q.FifoQueue }

var _ = add(&kind[*queue]{
	name:       "AWS::SQS::Queue",
	live:       liveQueue,
	list:       listQueues,
	identifier: []string{"QueueUrl"},
	attributes: []string{"Arn", "QueueName", "QueueUrl"},
	create: func(ctx context.Context, s Step, q *queue) (string, error) {
		attributes := q.attributes()
		if q.isFIFO() {
			attributes["FifoQueue"] = "true"
		}
		name := queueName(s, q)
		if err := refuseQueue(ctx, s, name); err != nil {
			return "", err
		}
		in := &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes, Tags: tagMap(q.Tags)}
		out, err := call.Do[sqs.CreateQueueOutput](ctx, s.Services, in)
		if hasCode(err, "QueueDeletedRecently") {
			return "", ErrPending // the name is free within a minute
		}
		if err != nil {
			return "", err
		}
		return *out.QueueUrl, nil
	},
	update: func(ctx context.Context, s Step, url string, before, after *queue) error {
		attributes := after.attributes()
		for name := range before.attributes() {
			if _, stays := attributes[name]; !stays {
				attributes[name] = queueDefaults[name]
			}
		}
		if len(attributes) > 0 {
			in := &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attributes}
			if err := did[sqs.SetQueueAttributesOutput](ctx, s, in); err != nil {
				return err
			}
		}
		return tagQueue(ctx, s, url, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, url string, _ *queue) error {
		return did[sqs.DeleteQueueOutput](ctx, s, &sqs.DeleteQueueInput{QueueUrl: &url})
	},
	read: func(ctx context.Context, s Step, url string, _ *queue) (Made, error) {
		name := nameOfQueue(url)
		if err := did[sqs.GetQueueUrlOutput](ctx, s, &sqs.GetQueueUrlInput{QueueName: &name}); err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": s.Account.ARN("sqs", name), "QueueName": name, "QueueUrl": url}}, nil
	},
})

// refuseQueue refuses to make a queue that somebody else has: CreateQueue would return that one. Where the step began before, it may be our own.
func refuseQueue(ctx context.Context, s Step, name string) error {
	if !s.Since.IsZero() {
		return nil
	}
	err := did[sqs.GetQueueUrlOutput](ctx, s, &sqs.GetQueueUrlInput{QueueName: &name})
	if isMissing(err) {
		return nil
	}
	if err == nil {
		err = account.Refuse("AlreadyExists", "Resource of type 'AWS::SQS::Queue' with identifier '%s' already exists.", name)
	}
	return err
}

func queueName(s Step, q *queue) string {
	if q.QueueName != nil || !q.isFIFO() {
		return s.named(q.QueueName, 80)
	}
	return s.generated(75) + ".fifo"
}

func tagQueue(ctx context.Context, s Step, url string, before, after []Tag) error {
	return retag(before, after, func(gone []string) error {
		return did[sqs.UntagQueueOutput](ctx, s, &sqs.UntagQueueInput{QueueUrl: &url, TagKeys: gone})
	}, func() error {
		return did[sqs.TagQueueOutput](ctx, s, &sqs.TagQueueInput{QueueUrl: &url, Tags: tagMap(after)})
	})
}

func liveQueue(ctx context.Context, s Step, url string, _ *queue) (*queue, error) {
	in := &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}}
	out, err := call.Do[sqs.GetQueueAttributesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	tags, err := call.Do[sqs.ListQueueTagsOutput](ctx, s.Services, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil {
		return nil, err
	}
	is := map[string]any{"QueueName": nameOfQueue(url)}
	for name, value := range out.Attributes {
		if _, known := queueDefaults[name]; known || name == "FifoQueue" {
			is[name] = value
		}
	}
	live := new(queue)
	decode(is, reflect.ValueOf(live).Elem())
	live.RedrivePolicy, live.RedriveAllowPolicy = parsed(some(out.Attributes["RedrivePolicy"])), parsed(some(out.Attributes["RedriveAllowPolicy"]))
	live.Tags = ownTagMap(tags.Tags)
	return live, nil
}

// nameOfQueue returns the name at the end of a queue's URL.
func nameOfQueue(url string) string { return url[strings.LastIndex(url, "/")+1:] }

func listQueues(ctx context.Context, s Step, _ *queue) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[sqs.ListQueuesOutput](ctx, s.Services, &sqs.ListQueuesInput{NextToken: token, MaxResults: aws.Int32(1000)})
		if err != nil {
			return nil, nil, err
		}
		return out.QueueUrls, out.NextToken, nil
	})
}
