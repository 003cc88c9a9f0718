package sns

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state"
)

// SetTopicAttributes changes an attribute of a topic.
func (s *Service) SetTopicAttributes(ctx context.Context, in *sns.SetTopicAttributesInput) (*sns.SetTopicAttributesOutput, error) {
	err := s.updateTopic(ctx, in.TopicArn, func(_ *state.Tx, t *state.Topic) error {
		t.Attributes = maps.Clone(t.Attributes)
		return s.setTopicAttribute(t, valueOf(in.AttributeName), valueOf(in.AttributeValue))
	})
	return &sns.SetTopicAttributesOutput{}, err
}

// maxDisplayName is the most characters of a display name.
const maxDisplayName = 100

// lacking are attributes of topics that SNS has and Pintle doesn't, and what would be needed for them. Their empty values are taken.
var lacking = map[string]string{
	"ArchivePolicy":  "Pintle keeps no archive of messages",
	"KmsMasterKeyId": "Pintle has no AWS KMS",
}

// setTopicAttribute sets an attribute. "" takes it away.
func (s *Service) setTopicAttribute(t *state.Topic, name, value string) (err error) {
	switch name {
	case "DisplayName":
		if utf8.RuneCountInString(value) > maxDisplayName {
			err = invalid("DisplayName: it has at most %d characters", maxDisplayName)
		}
	case "Policy":
		err = s.checkPolicy(value)
	case "DeliveryPolicy":
		_, err = parseTopicDelivery(value)
	case "ContentBasedDeduplication":
		err = forFIFO(t, name, value, "true", "false")
	case "FifoThroughputScope":
		err = forFIFO(t, name, value, "Topic", "MessageGroup")
	case "SignatureVersion":
		err = oneOf(name, value, "1", "2")
	case "TracingConfig":
		err = oneOf(name, value, "PassThrough")
	default:
		err = checkLacking(name, value)
	}
	if err != nil {
		return err
	}
	if value == "" || isNothing(name, value) {
		delete(t.Attributes, name)
		return nil
	}
	t.Attributes[name] = value
	return nil
}

// checkLacking refuses an attribute that Pintle's topics don't have.
func checkLacking(name, value string) error {
	why := lacking[name]
	for _, feedback := range []string{"SuccessFeedbackRoleArn", "SuccessFeedbackSampleRate", "FailureFeedbackRoleArn"} {
		if strings.HasSuffix(name, feedback) {
			why = "Pintle doesn't log the status of deliveries"
		}
	}
	switch {
	case why == "":
		return invalid("AttributeName")
	case value != "" && !isNothing(name, value):
		return unsupported(name, "%s", why)
	}
	return nil
}

// isNothing reports whether a value of an attribute asks for nothing: of no message the success is logged. Terraform sets that.
func isNothing(name, value string) bool { return strings.HasSuffix(name, "SampleRate") && value == "0" }

// forFIFO checks an attribute that only FIFO topics have.
func forFIFO(t *state.Topic, name, value string, allowed ...string) error {
	if !t.FIFO {
		return invalid("%s: it is for FIFO topics alone", name)
	}
	return oneOf(name, value, allowed...)
}

func oneOf(name, value string, allowed ...string) error {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return invalid("%s: Invalid value [%s]. Must be %s.", name, value, strings.Join(allowed, " or "))
}

// asAttributes words an error of a single attribute for calls that give several.
func asAttributes(err error) error {
	var refused smithy.APIError
	if !errors.As(err, &refused) || refused.ErrorCode() != "InvalidParameter" {
		return err
	}
	return invalid("Attributes Reason: %s", strings.TrimPrefix(refused.ErrorMessage(), "Invalid parameter: "))
}

// attributeOf returns an attribute of a topic, or what it is if nobody has set it.
func attributeOf(t *state.Topic, name string) string {
	if value := t.Attributes[name]; value != "" {
		return value
	}
	switch name {
	case "Policy":
		return defaultPolicy(t.ARN)
	case "ContentBasedDeduplication":
		return "false"
	case "FifoThroughputScope":
		return "Topic"
	case "SignatureVersion":
		return "1"
	case "TracingConfig":
		return "PassThrough"
	}
	return ""
}

// GetTopicAttributes returns a topic's attributes.
func (s *Service) GetTopicAttributes(_ context.Context, in *sns.GetTopicAttributesInput) (*sns.GetTopicAttributesOutput, error) {
	v := s.store.View()
	t, err := s.topic(v, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	confirmed, pending := 0, 0
	for sub := range v.SubscriptionsOf(t.ARN) {
		if sub.IsConfirmed() {
			confirmed++
		} else {
			pending++
		}
	}
	all := maps.Clone(t.Attributes)
	all["TopicArn"] = t.ARN
	all["Owner"] = s.opts.ID
	all["DisplayName"] = t.Attributes["DisplayName"]
	all["Policy"] = attributeOf(t, "Policy")
	all["SubscriptionsConfirmed"] = strconv.Itoa(confirmed)
	all["SubscriptionsPending"] = strconv.Itoa(pending)
	all["SubscriptionsDeleted"] = strconv.Itoa(t.Left)
	all["EffectiveDeliveryPolicy"] = effectiveOf(t)
	if t.FIFO {
		all["FifoTopic"] = "true"
		all["ContentBasedDeduplication"] = attributeOf(t, "ContentBasedDeduplication")
		all["FifoThroughputScope"] = attributeOf(t, "FifoThroughputScope")
	}
	return &sns.GetTopicAttributesOutput{Attributes: all}, nil
}
