package sns

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/sns/filterpolicy"
	"github.com/pintle/pintle/internal/state"
)

// SetSubscriptionAttributes changes an attribute of a subscription.
func (s *Service) SetSubscriptionAttributes(
	ctx context.Context, in *sns.SetSubscriptionAttributesInput,
) (*sns.SetSubscriptionAttributesOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := subscription(tx.View, in.SubscriptionArn)
		if err != nil {
			return err
		}
		row := *old
		row.Attributes = maps.Clone(old.Attributes)
		if err := s.setSubscriptionAttribute(&row, valueOf(in.AttributeName), valueOf(in.AttributeValue)); err != nil {
			return err
		}
		if t := tx.Topics.Get(row.TopicARN); t != nil {
			if err := checkRoom(tx.View, t, &row); err != nil && row.Attributes["FilterPolicy"] != old.Attributes["FilterPolicy"] {
				return err
			}
		}
		tx.Subscriptions.Put(&row)
		return nil
	})
	return &sns.SetSubscriptionAttributesOutput{}, err
}

// subscription returns the subscription with an ARN.
func subscription(v *state.View, arn *string) (*state.Subscription, error) {
	if err := checkARN("SubscriptionArn", valueOf(arn)); err != nil {
		return nil, err
	}
	sub := v.Subscriptions.Get(*arn)
	if sub == nil {
		return nil, errNoSubscription
	}
	return sub, nil
}

// setSubscriptionAttribute sets an attribute. "" takes it away.
func (s *Service) setSubscriptionAttribute(sub *state.Subscription, name, value string) (err error) {
	switch name {
	case "RawMessageDelivery":
		value = strings.ToLower(value) // in any case, as SNS takes it
		if value != "true" && value != "false" {
			err = invalid("RawMessageDelivery: Invalid value [%s]. Must be true or false.", value)
		}
	case "FilterPolicy":
		err = checkFilter(scopeOf(sub), value)
	case "FilterPolicyScope":
		if value != string(filterpolicy.Attributes) && value != string(filterpolicy.Body) {
			return invalid("FilterPolicyScope: Invalid value [%s]. Please use either MessageBody or MessageAttributes", value)
		}
		err = checkFilter(filterpolicy.Scope(value), sub.Attributes["FilterPolicy"])
	case "DeliveryPolicy":
		if isOurs(sub.Protocol) && value != "" {
			return invalid("DeliveryPolicy: it is for http and https alone")
		}
		_, err = parseSubscriptionDelivery(value)
	case "RedrivePolicy":
		_, err = s.parseRedrive(sub, value)
	case "SubscriptionRoleArn", "ReplayPolicy", "ReplayStatus":
		if value != "" {
			return unsupported(name, "Pintle has neither Firehose nor archives of messages")
		}
	default:
		return invalid("AttributeName")
	}
	if err != nil {
		return err
	}
	if value == "" {
		delete(sub.Attributes, name)
		return nil
	}
	sub.Attributes[name] = value
	return nil
}

// scopeOf returns what of messages a subscription's filter policy is matched against.
func scopeOf(sub *state.Subscription) filterpolicy.Scope {
	if scope := sub.Attributes["FilterPolicyScope"]; scope != "" {
		return filterpolicy.Scope(scope)
	}
	return filterpolicy.Attributes
}

func checkFilter(scope filterpolicy.Scope, text string) error {
	if text == "" {
		return nil
	}
	_, err := filterpolicy.Parse(scope, text)
	if refused, ok := errors.AsType[*filterpolicy.Error](err); ok {
		return invalid("%s", refused.Error())
	}
	return err
}

// maxRedrive is the most bytes of a redrive policy.
const maxRedrive = 2048

// parseRedrive reads a redrive policy, and returns the ARN of its dead-letter queue.
func (s *Service) parseRedrive(sub *state.Subscription, text string) (queue string, err error) {
	if text == "" {
		return "", nil
	}
	var p struct {
		Queue string `json:"deadLetterTargetArn"`
	}
	if len(text) > maxRedrive {
		return "", invalid("RedrivePolicy: it has at most %d bytes", maxRedrive)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return "", invalid("RedrivePolicy: failed to parse JSON. %s", err)
	}
	if _, ours := s.opts.ResourceOf("sqs", "", p.Queue); !ours {
		return "", invalid("RedrivePolicy: deadLetterTargetArn is an invalid arn")
	}
	switch {
	case isFIFO(sub.TopicARN) && isFIFO(sub.Endpoint) && !isFIFO(p.Queue):
		return "", invalid("RedrivePolicy: must use a FIFO queue as DLQ for a FIFO Subscription to a FIFO Topic.")
	case !isFIFO(sub.TopicARN) && isFIFO(p.Queue):
		return "", invalid("RedrivePolicy: must use a standard queue as DLQ for a subscription to a standard topic")
	}
	return p.Queue, nil
}

// subscriptionAttribute returns an attribute, or what it is if nobody has set it.
func subscriptionAttribute(sub *state.Subscription, name string) string {
	value := sub.Attributes[name]
	switch {
	case value != "":
		return value
	case name == "RawMessageDelivery":
		return "false"
	case name == "FilterPolicyScope":
		return string(filterpolicy.Attributes)
	}
	return ""
}

// GetSubscriptionAttributes returns a subscription's attributes.
func (s *Service) GetSubscriptionAttributes(
	_ context.Context, in *sns.GetSubscriptionAttributesInput,
) (*sns.GetSubscriptionAttributesOutput, error) {
	v := s.store.View()
	sub, err := subscription(v, in.SubscriptionArn)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(sub.Attributes)
	all["SubscriptionArn"] = sub.ARN
	all["TopicArn"] = sub.TopicARN
	all["Owner"] = s.opts.ID
	all["Protocol"] = sub.Protocol
	all["Endpoint"] = sub.Endpoint
	all["SubscriptionPrincipal"] = sub.Principal
	if sub.Principal == "" {
		all["SubscriptionPrincipal"] = s.opts.Root()
	}
	all["PendingConfirmation"] = strconv.FormatBool(!sub.IsConfirmed())
	all["ConfirmationWasAuthenticated"] = strconv.FormatBool(sub.Authenticated)
	all["RawMessageDelivery"] = subscriptionAttribute(sub, "RawMessageDelivery")
	if sub.Attributes["FilterPolicy"] != "" {
		all["FilterPolicyScope"] = string(scopeOf(sub))
	} else {
		delete(all, "FilterPolicyScope")
	}
	t := v.Topics.Get(sub.TopicARN)
	if sub.Protocol != "sqs" && t != nil {
		all["EffectiveDeliveryPolicy"] = encode(deliveryOf(t, sub))
		if own := sub.Attributes["DeliveryPolicy"]; own != "" {
			p, err := parseSubscriptionDelivery(own)
			if err != nil {
				return nil, err
			}
			all["DeliveryPolicy"] = encode(p)
		}
	}
	return &sns.GetSubscriptionAttributesOutput{Attributes: all}, nil
}
