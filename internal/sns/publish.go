package sns

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/sns/filterpolicy"
	"github.com/pintle/pintle/internal/state"
)

// Limits on messages: https://docs.aws.amazon.com/sns/latest/api/API_Publish.html
const (
	maxMessage = 256 << 10 // bytes, with the attributes; of a batch together
	maxSubject = 100       // characters
	maxBatch   = 10
)

// Types of messages, as their receivers see them.
const (
	typeNotification = "Notification"
	typeConfirmation = "SubscriptionConfirmation"
)

// Publish commits a message, together with what each subscriber is owed.
func (s *Service) Publish(ctx context.Context, in *sns.PublishInput) (*sns.PublishOutput, error) {
	arn, err := s.destination(in)
	if err != nil {
		return nil, err
	}
	p, err := s.publication(arn, &types.PublishBatchRequestEntry{
		Message:                in.Message,
		MessageAttributes:      in.MessageAttributes,
		MessageDeduplicationId: in.MessageDeduplicationId,
		MessageGroupId:         in.MessageGroupId,
		MessageStructure:       in.MessageStructure,
		Subject:                in.Subject,
	})
	if err != nil {
		return nil, err
	}
	if p.Size() > maxMessage {
		return nil, invalid("Message too long")
	}
	told, err := s.publish(ctx, arn, []*state.Publication{p})
	if err != nil {
		return nil, err
	}
	return &sns.PublishOutput{MessageId: &told[0].MessageID, SequenceNumber: optional(told[0].Sequence)}, nil
}

// destination returns the ARN of the topic of a call.
func (s *Service) destination(in *sns.PublishInput) (string, error) {
	topic, target := valueOf(in.TopicArn), valueOf(in.TargetArn)
	switch {
	case in.PhoneNumber != nil:
		return "", unsupported("PhoneNumber", "Pintle sends no SMS")
	case topic == "" && target == "":
		return "", invalid("TopicArn or TargetArn Reason: no value for required parameter")
	case topic != "" && target != "":
		return "", invalid("Both TopicArn and TargetArn are given; one of them is enough")
	case strings.Contains(target, ":endpoint/"):
		return "", invalid("TargetArn Reason: No endpoint found for the target arn specified")
	case topic == "":
		_, err := s.topic(s.store.View(), "TargetArn", &target)
		return target, err
	}
	_, err := s.topic(s.store.View(), "TopicArn", &topic)
	return topic, err
}

// PublishBatch publishes up to ten messages. All of them are committed, or none is.
func (s *Service) PublishBatch(ctx context.Context, in *sns.PublishBatchInput) (*sns.PublishBatchOutput, error) {
	t, err := s.topic(s.store.View(), "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(in.PublishBatchRequestEntries); err != nil {
		return nil, err
	}
	var all []*state.Publication
	whole := 0
	for i := range in.PublishBatchRequestEntries {
		p, err := s.publication(t.ARN, &in.PublishBatchRequestEntries[i])
		if err != nil {
			return nil, err
		}
		whole += p.Size()
		all = append(all, p)
	}
	if whole > maxMessage {
		return nil, refuse("BatchRequestTooLong", "The length of all the messages put together is more than the limit.")
	}
	told, err := s.publish(ctx, t.ARN, all)
	if err != nil {
		return nil, err
	}
	out := &sns.PublishBatchOutput{Failed: []types.BatchResultErrorEntry{}}
	for i, p := range told {
		out.Successful = append(out.Successful, types.PublishBatchResultEntry{
			Id:             in.PublishBatchRequestEntries[i].Id,
			MessageId:      &p.MessageID,
			SequenceNumber: optional(p.Sequence),
		})
	}
	return out, nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

var batchID = pattern.New(`^[A-Za-z0-9_-]+$`, 80)

// checkBatch checks the number of a batch's entries, and their ids.
func checkBatch(entries []types.PublishBatchRequestEntry) error {
	switch {
	case len(entries) == 0:
		return refuse("EmptyBatchRequest", "The batch request doesn't contain any entries.")
	case len(entries) > maxBatch:
		return refuse("TooManyEntriesInBatchRequest", "The batch request contains more entries than permissible.")
	}
	seen := map[string]bool{}
	for _, e := range entries {
		id := valueOf(e.Id)
		switch {
		case len(id) > 80:
			return refuse("InvalidBatchEntryId", "The Id of a batch entry in the batch request is too long: %s", id)
		case !batchID.MatchString(id):
			return refuse("InvalidBatchEntryId",
				"The Id of a batch entry in the batch request contains an impermissible character: %s", id)
		case seen[id]:
			return refuse("BatchEntryIdsNotDistinct", "Two or more batch entries in the request have the same Id.")
		}
		seen[id] = true
	}
	return nil
}

// publication checks a message and returns its row.
func (s *Service) publication(topicARN string, e *types.PublishBatchRequestEntry) (*state.Publication, error) {
	p := &state.Publication{
		ID:         state.NewUUID(),
		Type:       typeNotification,
		TopicARN:   topicARN,
		Subject:    valueOf(e.Subject),
		Message:    valueOf(e.Message),
		Attributes: e.MessageAttributes,
		Group:      valueOf(e.MessageGroupId),
		Duplicate:  valueOf(e.MessageDeduplicationId),
		At:         s.now(),
	}
	if e.Subject != nil && !isSubject(p.Subject) {
		return nil, invalid("Subject")
	}
	if p.Message == "" {
		return nil, invalid("Empty message")
	}
	if !utf8.ValidString(p.Message) {
		return nil, invalid("Message Reason: it isn't UTF-8")
	}
	if p.Duplicate == "" && strings.HasSuffix(topicARN, fifoSuffix) {
		sum := sha256.Sum256([]byte(p.Message))
		p.Content = hex.EncodeToString(sum[:])
	}
	if err := readStructure(p, e.MessageStructure); err != nil {
		return nil, err
	}
	if err := checkAttributes(e.MessageAttributes); err != nil {
		return nil, err
	}
	return p, checkOrder(p, e)
}

// isSubject reports whether a text may be a subject: on one line, and not too long.
func isSubject(text string) bool {
	return text != "" && utf8.RuneCountInString(text) <= maxSubject && !strings.ContainsFunc(text, unicode.IsControl)
}

// readStructure reads a message that has a text for each protocol.
func readStructure(p *state.Publication, structure *string) error {
	switch valueOf(structure) {
	case "":
		return nil
	case "json":
	default:
		return invalid("MessageStructure")
	}
	var texts map[string]any
	if err := json.Unmarshal([]byte(p.Message), &texts); err != nil {
		return invalid("Message Structure - JSON message body failed to parse")
	}
	message, isText := texts["default"].(string)
	if !isText {
		return invalid("Message Structure - No default entry in JSON message body")
	}
	p.Message = message
	p.Messages = map[string]string{}
	for protocol, served := range protocols {
		if text, isText := texts[protocol].(string); isText && served {
			p.Messages[protocol] = text
		}
	}
	return nil
}

// orderID matches the ids of groups and of duplicates.
var orderID = pattern.New("^[A-Za-z0-9!-/:-@\\[-`{-~]+$", 128)

// checkOrder checks a message's group and deduplication id, which FIFO topics need.
func checkOrder(p *state.Publication, e *types.PublishBatchRequestEntry) error {
	fifo := isFIFO(p.TopicARN)
	switch {
	case e.MessageGroupId == nil && fifo:
		return invalid("The MessageGroupId parameter is required for FIFO topics")
	case e.MessageGroupId != nil && !orderID.MatchString(p.Group):
		return invalid("MessageGroupId Reason: it has 1 to 128 letters, digits and punctuation marks")
	case e.MessageDeduplicationId != nil && !fifo:
		return invalid(
			"MessageDeduplicationId Reason: The request includes MessageDeduplicationId parameter that is not valid for this topic type")
	case e.MessageDeduplicationId != nil && !orderID.MatchString(p.Duplicate):
		return invalid("MessageDeduplicationId Reason: it has 1 to 128 letters, digits and punctuation marks")
	}
	return nil
}

// publish commits messages of one topic, and what its subscribers are owed. It returns what the caller is told of each: of a duplicate,
// what was told of the first.
func (s *Service) publish(ctx context.Context, topicARN string, all []*state.Publication) (told []*state.Published, err error) {
	wanted := s.wanted(s.store.View(), topicARN, all)
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		told = nil
		t, err := s.topic(tx.View, "TopicArn", &topicARN)
		if err != nil {
			return err
		}
		if err := s.checkRoom(t, all); err != nil {
			return err
		}
		row := *t
		for i, p := range all {
			one, isNew, err := s.number(tx, &row, p)
			if err != nil {
				return err
			}
			if told = append(told, one); isNew {
				s.fanOut(tx, p, wanted[i])
			}
		}
		if row.Sequence != t.Sequence {
			tx.Topics.Put(&row)
		}
		return nil
	})
	return told, err
}

// wanted returns, for each message, which subscriptions in a view want it. It's found out before the transaction, which others wait for.
func (s *Service) wanted(v *state.View, topicARN string, all []*state.Publication) []map[*state.Subscription]bool {
	found := make([]map[*state.Subscription]bool, len(all))
	for i := range all {
		found[i] = map[*state.Subscription]bool{}
	}
	for sub := range v.SubscriptionsOf(topicARN) {
		policy := s.policies.of(sub)
		for i, p := range all {
			found[i][sub] = wants(sub, policy, p)
		}
	}
	return found
}

// wants reports whether a subscription with a filter policy gets a message.
func wants(sub *state.Subscription, policy *filterpolicy.Policy, p *state.Publication) bool {
	if policy == nil {
		return false
	}
	if scopeOf(sub) == filterpolicy.Body {
		return policy.MatchBody(p.For(sub.Protocol))
	}
	attributes := map[string]filterpolicy.Attribute{}
	for name, a := range p.Attributes {
		attributes[name] = filterpolicy.Attribute{Type: valueOf(a.DataType), Value: valueOf(a.StringValue)}
	}
	return policy.MatchAttributes(attributes)
}

// fanOut stores a message with a debt for each subscriber who wants it. A subscription that has changed meanwhile is asked again.
func (s *Service) fanOut(tx *state.Tx, p *state.Publication, wanted map[*state.Subscription]bool) {
	owed := false
	for sub := range tx.SubscriptionsOf(p.TopicARN) {
		isWanted, known := wanted[sub]
		if !known {
			isWanted = wants(sub, s.policies.of(sub), p)
		}
		if isWanted && s.oweWithin(tx, p, sub) {
			owed = true
		}
	}
	if owed {
		tx.Publications.Put(p)
	}
}

// number gives a message its place in a FIFO topic, and reports whether it's new there. In other topics every message is.
func (s *Service) number(tx *state.Tx, t *state.Topic, p *state.Publication) (told *state.Published, isNew bool, err error) {
	told = &state.Published{MessageID: p.ID, At: p.At}
	if !t.FIFO {
		return told, true, nil
	}
	if p.Duplicate == "" {
		if attributeOf(t, "ContentBasedDeduplication") != "true" {
			return nil, false, invalid(
				"The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
		}
		p.Duplicate = p.Content
	}
	group := ""
	if attributeOf(t, "FifoThroughputScope") == "MessageGroup" {
		group = p.Group
	}
	told.Key = state.PublishedKey(t.ARN, group, p.Duplicate)
	if before := tx.FindPublished(told.Key, p.At); before != nil {
		return before, false, nil
	}
	t.Sequence++
	p.Sequence = fmt.Sprintf("1%019d", t.Sequence)
	told.Sequence = p.Sequence
	tx.Published.Put(told)
	return told, true, nil
}
