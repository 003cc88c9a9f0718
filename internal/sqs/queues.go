package sqs

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/sqs/queues"
)

// CreateQueue makes a queue. If one with that name and the same attributes exists, it returns that one.
func (s *Service) CreateQueue(ctx context.Context, in *sqs.CreateQueueInput) (*sqs.CreateQueueOutput, error) {
	name := aws.ToString(in.QueueName)
	if err := checkQueueName(name); err != nil {
		return nil, err
	}
	attributes := plain(in.Attributes)
	fifo, err := isFIFO(name, attributes)
	if err != nil {
		return nil, err
	}
	if err := checkTags(in.Tags, nil); err != nil {
		return nil, err
	}
	q := queues.Queue{Name: name, FIFO: fifo, Attributes: defaultAttributes(fifo), Tags: in.Tags}
	if err := s.set(&q, attributes); err != nil {
		return nil, err
	}
	stored, err := s.store.CreateQueue(q)
	if errors.Is(err, queues.ErrDeleted) {
		return nil, refuse(
			"QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
		)
	}
	if err != nil && !errors.Is(err, queues.ErrExists) {
		return nil, err
	}
	for _, a := range slices.Sorted(maps.Keys(attributes)) {
		if stored.Attributes[a] != q.Attributes[a] {
			return nil, refuse("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", a)
		}
	}
	return &sqs.CreateQueueOutput{QueueUrl: s.queueURL(ctx, name)}, nil
}

// DeleteQueue removes a queue with its messages.
func (s *Service) DeleteQueue(_ context.Context, in *sqs.DeleteQueueInput) (*sqs.DeleteQueueOutput, error) {
	name, err := s.nameInURL(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := s.store.DeleteQueue(name); err != nil {
		return nil, failure(err)
	}
	return &sqs.DeleteQueueOutput{}, nil
}

// GetQueueUrl finds a queue by its name.
func (s *Service) GetQueueUrl(ctx context.Context, in *sqs.GetQueueUrlInput) (*sqs.GetQueueUrlOutput, error) {
	name := aws.ToString(in.QueueName)
	if err := checkQueueName(name); err != nil {
		return nil, err
	}
	if owner := aws.ToString(in.QueueOwnerAWSAccountId); owner != "" && owner != s.opts.ID {
		return nil, errNoQueue
	}
	if _, err := s.store.Queue(name); err != nil {
		return nil, failure(err)
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: s.queueURL(ctx, name)}, nil
}

// ListQueues lists queues by name.
func (s *Service) ListQueues(ctx context.Context, in *sqs.ListQueuesInput) (*sqs.ListQueuesOutput, error) {
	urls, next, err := s.page(ctx, "ListQueues", in.MaxResults, in.NextToken, func(q *queues.Queue) bool {
		return strings.HasPrefix(q.Name, aws.ToString(in.QueueNamePrefix))
	})
	if err != nil {
		return nil, err
	}
	return &sqs.ListQueuesOutput{QueueUrls: urls, NextToken: next}, nil
}

// ListDeadLetterSourceQueues lists the queues that use a queue as their dead-letter queue.
func (s *Service) ListDeadLetterSourceQueues(
	ctx context.Context, in *sqs.ListDeadLetterSourceQueuesInput,
) (*sqs.ListDeadLetterSourceQueuesOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	urls, next, err := s.page(
		ctx, "ListDeadLetterSourceQueues", in.MaxResults, in.NextToken,
		func(source *queues.Queue) bool { return source.DeadLetter == q.Name },
	)
	if err != nil {
		return nil, err
	}
	if urls == nil {
		urls = []string{}
	}
	return &sqs.ListDeadLetterSourceQueuesOutput{QueueUrls: urls, NextToken: next}, nil
}

// maxListed is the most queues on a page.
const maxListed = 1000

// listing describes the pages of an operation that lists queues.
func listing(operation string, token *string) account.List {
	return account.List{
		Kind: "sqs:" + operation,
		Most: maxListed,
		BadLimit: func(limit int) error {
			return invalidValue(limit, "MaxResults", "Must be between 1 and %d, if provided.", maxListed)
		},
		BadToken: func() error { return invalidValue(*token, "NextToken", "It is none that was returned.") },
	}
}

// page returns a page of queue URLs. Without a limit there is no token: API_ListQueues.
func (s *Service) page(
	ctx context.Context, operation string, limit *int32, token *string, keep func(*queues.Queue) bool,
) (urls []string, next *string, err error) {
	all := func(string) iter.Seq[queues.Queue] { return slices.Values(s.store.Queues()) }
	page, next, err := account.Behind(listing(operation, token), limit, token, all,
		func(q queues.Queue) string { return q.Name }, func(q queues.Queue) bool { return keep(&q) })
	if err != nil {
		return nil, nil, err
	}
	for _, q := range page {
		urls = append(urls, *s.queueURL(ctx, q.Name))
	}
	if limit == nil {
		next = nil
	}
	return urls, next, nil
}

// GetQueueAttributes returns a queue's attributes and its approximate message counts.
func (s *Service) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	c, err := s.store.Counts(q.Name)
	if err != nil {
		return nil, failure(err)
	}
	all := s.describe(q, c)
	wanted := map[string]string{}
	for _, name := range in.AttributeNames {
		if !slices.Contains(queueAttributes, name) {
			return nil, refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
		if name == "All" {
			wanted = all
			break
		}
		if value, ok := all[string(name)]; ok {
			wanted[string(name)] = value
		}
	}
	if len(wanted) == 0 {
		wanted = nil
	}
	return &sqs.GetQueueAttributesOutput{Attributes: wanted}, nil
}

// SetQueueAttributes changes attributes of a queue.
func (s *Service) SetQueueAttributes(_ context.Context, in *sqs.SetQueueAttributesInput) (*sqs.SetQueueAttributesOutput, error) {
	if len(in.Attributes) == 0 {
		return nil, missing("Attributes")
	}
	attributes := plain(in.Attributes)
	if value, ok := attributes["FifoQueue"]; ok {
		q, err := s.queue(in.QueueUrl)
		if err != nil {
			return nil, err
		}
		if q.FIFO && value != "true" {
			return nil, refuse(
				"InvalidAttributeValue", "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.",
			)
		}
	}
	if err := s.update(in.QueueUrl, func(q *queues.Queue) error { return s.set(q, attributes) }); err != nil {
		return nil, err
	}
	return &sqs.SetQueueAttributesOutput{}, nil
}

// update changes a queue. If another call changes the queue meanwhile, change runs again on the new state.
func (s *Service) update(queueURL *string, change func(*queues.Queue) error) error {
	for {
		q, err := s.queue(queueURL)
		if err != nil {
			return err
		}
		before := q.ModifiedAt
		next := q
		next.Attributes = maps.Clone(q.Attributes)
		next.Tags = maps.Clone(q.Tags)
		if err := change(&next); err != nil {
			return err
		}
		next.ModifiedAt = max(before+1, s.opts.Now().UnixMilli())
		err = s.store.UpdateQueue(q.Name, func(current *queues.Queue) error {
			if current.ID != q.ID || current.ModifiedAt != before {
				return errChanged
			}
			*current = next
			return nil
		})
		if !errors.Is(err, errChanged) {
			return failure(err)
		}
	}
}

// errChanged means that another call changed the queue.
var errChanged = errors.New("sqs: the queue was changed meanwhile")

// PurgeQueue removes the messages of a queue.
func (s *Service) PurgeQueue(_ context.Context, in *sqs.PurgeQueueInput) (*sqs.PurgeQueueOutput, error) {
	name, err := s.nameInURL(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	err = s.store.Purge(name)
	if errors.Is(err, queues.ErrPurged) {
		return nil, refuse("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", name)
	}
	if err != nil {
		return nil, failure(err)
	}
	return &sqs.PurgeQueueOutput{}, nil
}

// checkTags checks tags that will be added to the ones in to.
func checkTags(tags, to map[string]string) error {
	all := maps.Clone(to)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, tags)
	fault := account.CheckTags(account.TagMap(all), account.MaxTags)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TooManyTags:
		return invalid("Too many tags added for queue: it would have %d, and can have %d.", len(all), account.MaxTags)
	case account.TagValueLength:
		return invalidValue(fault.Key, "Tags", "A tag's value has at most %d characters.", account.MaxTagValue)
	}
	return invalidValue(fault.Key, "Tags", "A tag's key has 1 to %d characters and does not begin with aws:.", account.MaxTagKey)
}

// TagQueue adds tags to a queue.
func (s *Service) TagQueue(_ context.Context, in *sqs.TagQueueInput) (*sqs.TagQueueOutput, error) {
	if len(in.Tags) == 0 {
		return nil, missing("Tags")
	}
	err := s.update(in.QueueUrl, func(q *queues.Queue) error {
		if err := checkTags(in.Tags, q.Tags); err != nil {
			return err
		}
		if q.Tags == nil {
			q.Tags = map[string]string{}
		}
		maps.Copy(q.Tags, in.Tags)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &sqs.TagQueueOutput{}, nil
}

// UntagQueue removes tags from a queue.
func (s *Service) UntagQueue(_ context.Context, in *sqs.UntagQueueInput) (*sqs.UntagQueueOutput, error) {
	if len(in.TagKeys) == 0 {
		return nil, missing("TagKeys")
	}
	err := s.update(in.QueueUrl, func(q *queues.Queue) error {
		maps.DeleteFunc(q.Tags, func(k, _ string) bool { return slices.Contains(in.TagKeys, k) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &sqs.UntagQueueOutput{}, nil
}

// ListQueueTags lists a queue's tags.
func (s *Service) ListQueueTags(_ context.Context, in *sqs.ListQueueTagsInput) (*sqs.ListQueueTagsOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if len(q.Tags) == 0 {
		return &sqs.ListQueueTagsOutput{}, nil
	}
	return &sqs.ListQueueTagsOutput{Tags: maps.Clone(q.Tags)}, nil
}
