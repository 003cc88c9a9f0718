package sns

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

// maxTopics is the most standard topics of an account: https://docs.aws.amazon.com/general/latest/gr/sns.html
const maxTopics = 100_000

// topicName matches names of topics, without the suffix of FIFO ones.
var topicName = pattern.New(`^[A-Za-z0-9_-]+$`, 256)

// CreateTopic makes a topic. If one with that name and nothing else of what is asked for is there, it returns that one.
func (s *Service) CreateTopic(ctx context.Context, in *sns.CreateTopicInput) (*sns.CreateTopicOutput, error) {
	name := valueOf(in.Name)
	t := &state.Topic{ARN: s.opts.ARN("sns", name), Attributes: map[string]string{}, Tags: in.Tags, Created: s.now()}
	t.FIFO = in.Attributes["FifoTopic"] == "true"
	if err := oneOf("FifoTopic", in.Attributes["FifoTopic"], "true", "false"); err != nil {
		return nil, asAttributes(err)
	}
	if err := checkTopicName(name, t.FIFO); err != nil {
		return nil, err
	}
	if valueOf(in.DataProtectionPolicy) != "" {
		return nil, unsupported("DataProtectionPolicy", "Pintle has no data protection policies")
	}
	for _, attribute := range slices.Sorted(maps.Keys(in.Attributes)) {
		if attribute == "FifoTopic" {
			continue
		}
		if err := s.setTopicAttribute(t, attribute, in.Attributes[attribute]); err != nil {
			return nil, asAttributes(err)
		}
	}
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if old := tx.Topics.Get(t.ARN); old != nil {
			return checkSame(old, t, in.Attributes)
		}
		if tx.Topics.Len() >= maxTopics {
			return account.RefuseWith(403, "TopicLimitExceeded", "There are already %d topics, the maximum", maxTopics)
		}
		tx.Topics.Put(t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &sns.CreateTopicOutput{TopicArn: &t.ARN}, nil
}

// checkTopicName refuses names that topics can't have.
func checkTopicName(name string, fifo bool) error {
	plain, suffixed := strings.CutSuffix(name, fifoSuffix)
	if len(name) > 256 || !topicName.MatchString(plain) || suffixed != fifo {
		return invalid("Topic Name")
	}
	return nil
}

// checkSame refuses to make a topic that is there with other attributes or tags.
func checkSame(old, asked *state.Topic, attributes map[string]string) error {
	for attribute := range attributes {
		if attribute != "FifoTopic" && attributeOf(old, attribute) != attributeOf(asked, attribute) {
			return invalid("Attributes Reason: Topic already exists with different attributes")
		}
	}
	for _, tag := range asked.Tags { // some of its tags are enough
		has := func(t types.Tag) bool {
			return valueOf(t.Key) == valueOf(tag.Key) && valueOf(t.Value) == valueOf(tag.Value)
		}
		if !slices.ContainsFunc(old.Tags, has) {
			return invalid("Tags Reason: Topic already exists with different tags")
		}
	}
	return nil
}

// DeleteTopic removes a topic with its subscriptions. One that isn't there counts as removed.
func (s *Service) DeleteTopic(ctx context.Context, in *sns.DeleteTopicInput) (*sns.DeleteTopicOutput, error) {
	if err := checkARN("TopicArn", valueOf(in.TopicArn)); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		tx.DeleteTopic(*in.TopicArn)
		return nil
	})
	return &sns.DeleteTopicOutput{}, err
}

// page is how many topics or subscriptions a call lists.
const page = 100

func listing(operation string) account.List {
	return account.List{
		Kind:     "sns:" + operation,
		Most:     page,
		BadLimit: func(int) error { return invalid("MaxItems") }, // no operation here takes a limit
		BadToken: func() error { return invalid("NextToken") },
	}
}

// ListTopics lists all topics.
func (s *Service) ListTopics(_ context.Context, in *sns.ListTopicsInput) (*sns.ListTopicsOutput, error) {
	rows, next, err := account.Behind(listing("ListTopics"), nil, in.NextToken, s.store.View().Topics.Behind,
		func(t *state.Topic) string { return t.ARN }, func(*state.Topic) bool { return true })
	if err != nil {
		return nil, err
	}
	out := &sns.ListTopicsOutput{Topics: []types.Topic{}, NextToken: next}
	for _, t := range rows {
		out.Topics = append(out.Topics, types.Topic{TopicArn: &t.ARN})
	}
	return out, nil
}
