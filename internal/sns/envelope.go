package sns

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/pintle/pintle/internal/state"
)

// timestamp is the layout of times in messages.
const timestamp = "2006-01-02T15:04:05.000Z"

// envelope is a message as subscribers get it, unless they want it raw. Its members are in SNS's order:
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
type envelope struct {
	Type              string
	MessageID         string `json:"MessageId"`
	SequenceNumber    string `json:",omitempty"`
	Token             string `json:",omitempty"`
	TopicArn          string
	Subject           string `json:",omitempty"`
	Message           string
	SubscribeURL      string `json:",omitempty"`
	Timestamp         string
	SignatureVersion  string                       `json:",omitempty"`
	Signature         string                       `json:",omitempty"`
	SigningCertURL    string                       `json:",omitempty"`
	UnsubscribeURL    string                       `json:",omitempty"`
	MessageAttributes map[string]envelopeAttribute `json:",omitempty"`
}

type envelopeAttribute struct{ Type, Value string }

// envelope returns a message in its envelope, as JSON. Those of FIFO topics aren't signed, as on AWS.
func (s *Service) envelope(ctx context.Context, t *state.Topic, sub *state.Subscription, p *state.Publication) (string, error) {
	e := envelope{
		Type:           p.Type,
		MessageID:      p.ID,
		SequenceNumber: p.Sequence,
		TopicArn:       p.TopicARN,
		Subject:        p.Subject,
		Message:        p.For(sub.Protocol),
		Timestamp:      p.At.Format(timestamp),
	}
	if p.Type == typeConfirmation {
		e.Token = sub.Token
		e.SubscribeURL = s.link("ConfirmSubscription", "TopicArn", p.TopicARN, "Token", sub.Token)
	} else {
		e.UnsubscribeURL = s.link("Unsubscribe", "SubscriptionArn", sub.ARN)
	}
	for name, a := range p.Attributes {
		if e.MessageAttributes == nil {
			e.MessageAttributes = map[string]envelopeAttribute{}
		}
		value := valueOf(a.StringValue)
		if a.BinaryValue != nil {
			value = base64.StdEncoding.EncodeToString(a.BinaryValue)
		}
		e.MessageAttributes[name] = envelopeAttribute{valueOf(a.DataType), value}
	}
	if t.FIFO {
		return encode(e), nil
	}
	signer, err := s.signer(ctx)
	if err != nil {
		return "", err
	}
	e.SignatureVersion = attributeOf(t, "SignatureVersion")
	e.SigningCertURL = s.opts.Endpoint + Path + signer.fileName()
	e.Signature, err = signer.sign(e.SignatureVersion, e.signed())
	return encode(e), err
}

// signed returns what is signed of a message: some members, each with its name on the line before:
// https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
func (e *envelope) signed() string {
	members := []string{"Message", e.Message, "MessageId", e.MessageID}
	if e.Type == typeNotification {
		if e.Subject != "" {
			members = append(members, "Subject", e.Subject)
		}
		members = append(members, "Timestamp", e.Timestamp, "TopicArn", e.TopicArn, "Type", e.Type)
	} else {
		members = append(members, "SubscribeURL", e.SubscribeURL, "Timestamp", e.Timestamp, "Token", e.Token,
			"TopicArn", e.TopicArn, "Type", e.Type)
	}
	return strings.Join(members, "\n") + "\n"
}

// link returns the URL of something that a message's receiver may do without a signature.
func (s *Service) link(action string, parameters ...string) string {
	text := s.opts.Endpoint + Path + "?Action=" + action
	for i := 0; i < len(parameters); i += 2 {
		text += "&" + parameters[i] + "=" + strings.ReplaceAll(url.QueryEscape(parameters[i+1]), "%3A", ":")
	}
	return text
}
