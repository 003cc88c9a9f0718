package sns

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// protocols are those of SNS, and whether Pintle delivers by them.
var protocols = map[string]bool{
	"application": false,
	"email":       false,
	"email-json":  false,
	"firehose":    false,
	"http":        true,
	"https":       true,
	"lambda":      true,
	"sms":         false,
	"sqs":         true,
}

// isOurs reports whether a protocol's endpoints are the account's own queues and functions. They needn't be confirmed, and don't hang.
func isOurs(protocol string) bool { return protocol == "sqs" || protocol == "lambda" }

// maxSubscriptions is the most subscriptions of a FIFO topic, and maxPolicies the most with filter policies of any topic:
// https://docs.aws.amazon.com/general/latest/gr/sns.html
const (
	maxSubscriptions = 100
	maxPolicies      = 200
)

// maxEndpoint is the most bytes of an endpoint.
const maxEndpoint = 2048

// Subscribe makes a subscription. A queue is subscribed at once; a URL gets a message by which its owner confirms.
func (s *Service) Subscribe(ctx context.Context, in *sns.SubscribeInput) (*sns.SubscribeOutput, error) {
	if err := s.checkEndpoint(in); err != nil {
		return nil, err
	}
	sub, err := s.newSubscription(ctx, in)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		t, err := s.topic(tx.View, "TopicArn", in.TopicArn)
		if err != nil {
			return err
		}
		if err := checkSuits(t, sub); err != nil {
			return err
		}
		if old := find(tx.View, sub); old != nil {
			if !sameAttributes(old, sub) {
				return invalid("Attributes Reason: Subscription already exists with different attributes")
			}
			sub = old
		} else if err := checkRoom(tx.View, t, sub); err != nil {
			return err
		} else {
			tx.Subscriptions.Put(sub)
		}
		if !sub.IsConfirmed() {
			s.oweConfirmation(tx, sub)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &sns.SubscribeOutput{SubscriptionArn: &sub.ARN}
	if !sub.IsConfirmed() && !in.ReturnSubscriptionArn {
		out.SubscriptionArn = new("pending confirmation")
	}
	return out, nil
}

// newSubscription returns the row of a subscription that a call asks for.
func (s *Service) newSubscription(ctx context.Context, in *sns.SubscribeInput) (*state.Subscription, error) {
	sub := &state.Subscription{
		ARN:        valueOf(in.TopicArn) + ":" + state.NewUUID(),
		TopicARN:   valueOf(in.TopicArn),
		Protocol:   *in.Protocol,
		Endpoint:   valueOf(in.Endpoint),
		Principal:  call.From(ctx).Principal,
		Attributes: map[string]string{},
	}
	if isOurs(sub.Protocol) {
		sub.Authenticated = true
	} else {
		now := s.now()
		sub.PendingSince = &now
		sub.Token = newToken()
	}
	// The scope decides what a filter policy may be.
	names := slices.Sorted(maps.Keys(in.Attributes))
	if i := slices.Index(names, "FilterPolicyScope"); i > 0 {
		names = append([]string{"FilterPolicyScope"}, slices.Delete(names, i, i+1)...)
	}
	for _, name := range names {
		if err := s.setSubscriptionAttribute(sub, name, in.Attributes[name]); err != nil {
			return nil, asAttributes(err)
		}
	}
	return sub, nil
}

// newToken returns a token that confirms a subscription. Whoever has it has read what was sent to the endpoint.
func newToken() string {
	var b [64]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// checkEndpoint refuses protocols that Pintle doesn't deliver by, and endpoints that can't be any.
func (s *Service) checkEndpoint(in *sns.SubscribeInput) error {
	protocol := valueOf(in.Protocol)
	served, known := protocols[protocol]
	switch {
	case !known:
		return invalid("Amazon SNS does not support this protocol string: %s", protocol)
	case !served:
		return unsupported("Protocol", "Pintle delivers to sqs, lambda, http and https, not by %s", protocol)
	}
	endpoint := valueOf(in.Endpoint)
	if len(endpoint) > maxEndpoint {
		return invalid("Endpoint Reason: it has at most %d bytes", maxEndpoint)
	}
	if protocol == "sqs" {
		if strings.Count(endpoint, ":") != 5 || !strings.HasPrefix(endpoint, "arn:") || !strings.Contains(endpoint, ":sqs:") {
			return invalid("SQS endpoint ARN")
		}
		if _, ours := s.opts.ResourceOf("sqs", "", endpoint); !ours {
			return unsupported("Endpoint", "Pintle delivers to queues of account %s in %s alone", s.opts.ID, s.opts.Region)
		}
		return nil
	}
	if protocol == "lambda" {
		if _, ours := s.opts.ResourceOf("lambda", "function:", endpoint); !ours {
			return invalid("Lambda endpoint ARN")
		}
		return nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != protocol || u.Host == "" {
		return invalid("Endpoint must match the specified protocol")
	}
	return nil
}

// checkSuits refuses what a topic of one kind can't have subscribed to it.
func checkSuits(t *state.Topic, sub *state.Subscription) error {
	switch {
	case sub.Protocol != "sqs" && t.FIFO:
		return invalid("Invalid parameter: Endpoint Reason: Please use FIFO SQS queue")
	case sub.Protocol == "sqs" && isFIFO(sub.Endpoint) && !t.FIFO:
		return invalid("Invalid parameter: Endpoint Reason: FIFO SQS Queues can not be subscribed to standard SNS topics")
	}
	return nil
}

// find returns the subscription of the same endpoint to the same topic, or nil.
func find(v *state.View, like *state.Subscription) *state.Subscription {
	for sub := range v.SubscriptionsOf(like.TopicARN) {
		if sub.Protocol == like.Protocol && sub.Endpoint == like.Endpoint {
			return sub
		}
	}
	return nil
}

// sameAttributes reports whether a subscription has the attributes that are asked for.
func sameAttributes(old, asked *state.Subscription) bool {
	for name, value := range asked.Attributes {
		if subscriptionAttribute(old, name) != value {
			return false
		}
	}
	return true
}

// checkRoom refuses a subscription to a topic that has its fill.
func checkRoom(v *state.View, t *state.Topic, sub *state.Subscription) error {
	all, filtered := 0, 0
	for other := range v.SubscriptionsOf(t.ARN) {
		all++
		if other.ARN != sub.ARN && other.Attributes["FilterPolicy"] != "" {
			filtered++
		}
	}
	switch {
	case t.FIFO && all >= maxSubscriptions:
		return account.RefuseWith(403, "SubscriptionLimitExceeded", "A FIFO topic has at most %d subscriptions", maxSubscriptions)
	case sub.Attributes["FilterPolicy"] != "" && filtered >= maxPolicies:
		return account.RefuseWith(403, "FilterPolicyLimitExceeded", "A topic has at most %d filter policies", maxPolicies)
	}
	return nil
}

// oweConfirmation has the endpoint of a subscription told how to confirm it.
func (s *Service) oweConfirmation(tx *state.Tx, sub *state.Subscription) {
	p := &state.Publication{
		ID:       state.NewUUID(),
		Type:     typeConfirmation,
		TopicARN: sub.TopicARN,
		Message: "Somebody subscribed this endpoint to the topic " + sub.TopicARN +
			".\nTo get its messages, visit the SubscribeURL in this message.",
		At: s.now(),
	}
	tx.Publications.Put(p)
	s.owe(tx, p, sub)
}

// ConfirmSubscription makes a pending subscription one that gets messages. A token may be used again.
func (s *Service) ConfirmSubscription(ctx context.Context, in *sns.ConfirmSubscriptionInput) (*sns.ConfirmSubscriptionOutput, error) {
	guarded := strings.EqualFold(valueOf(in.AuthenticateOnUnsubscribe), "true")
	arn, err := s.confirm(ctx, valueOf(in.TopicArn), valueOf(in.Token), true, guarded)
	if err != nil {
		return nil, err
	}
	return &sns.ConfirmSubscriptionOutput{SubscriptionArn: &arn}, nil
}

func (s *Service) confirm(ctx context.Context, topicARN, token string, signed, guarded bool) (arn string, err error) {
	if _, ours := s.opts.ResourceOf("sns", "", topicARN); !ours {
		return "", invalid("Topic")
	}
	if _, err := hex.DecodeString(token); err != nil || len(token) != len(newToken()) {
		return "", refuse("InvalidParameter", "Invalid token")
	}
	// Strangers may come with any token, so a wrong one costs no transaction.
	arn = withToken(s.store.View(), topicARN, token)
	if arn == "" {
		return "", invalid("Token")
	}
	return arn, s.store.Update(ctx, func(tx *state.Tx) error {
		sub := tx.Subscriptions.Get(arn)
		if sub == nil {
			return invalid("Token")
		}
		if !sub.IsConfirmed() {
			tx.Subscriptions.Put(sub.Confirmed(signed, guarded))
		}
		return nil
	})
}

// withToken returns the ARN of a topic's subscription that a token confirms, or "".
func withToken(v *state.View, topicARN, token string) string {
	for sub := range v.SubscriptionsOf(topicARN) {
		if sub.Token == token {
			return sub.ARN
		}
	}
	return ""
}

// Unsubscribe ends a subscription. One that isn't there counts as ended.
func (s *Service) Unsubscribe(ctx context.Context, in *sns.UnsubscribeInput) (*sns.UnsubscribeOutput, error) {
	arn := valueOf(in.SubscriptionArn)
	if err := checkARN("SubscriptionArn", arn); err != nil {
		return nil, err
	}
	if strings.Count(arn, ":") != 6 {
		return nil, invalid("SubscriptionId")
	}
	return &sns.UnsubscribeOutput{}, s.unsubscribe(ctx, arn, true)
}

// unsubscribe ends a subscription for somebody who signed, or who only knows its ARN.
func (s *Service) unsubscribe(ctx context.Context, arn string, signed bool) error {
	if s.store.View().Subscriptions.Get(arn) == nil {
		return nil
	}
	return s.store.Update(ctx, func(tx *state.Tx) error {
		sub := tx.Subscriptions.Get(arn)
		if sub == nil {
			return nil
		}
		if !signed && sub.Guarded {
			return account.RefuseWith(403, "AuthorizationError", "This subscription ends by a signed call of Unsubscribe alone")
		}
		tx.DeleteSubscription(sub)
		return nil
	})
}

// listed returns a subscription as lists show it.
func (s *Service) listed(sub *state.Subscription) types.Subscription {
	out := types.Subscription{
		Endpoint:        &sub.Endpoint,
		Owner:           &s.opts.ID,
		Protocol:        &sub.Protocol,
		SubscriptionArn: &sub.ARN,
		TopicArn:        &sub.TopicARN,
	}
	if !sub.IsConfirmed() {
		out.SubscriptionArn = new("PendingConfirmation")
	}
	return out
}

// ListSubscriptions lists all subscriptions.
func (s *Service) ListSubscriptions(_ context.Context, in *sns.ListSubscriptionsInput) (*sns.ListSubscriptionsOutput, error) {
	rows, next, err := account.Behind(listing("ListSubscriptions"), nil, in.NextToken, s.store.View().Subscriptions.Behind,
		subscriptionARN, func(*state.Subscription) bool { return true })
	if err != nil {
		return nil, err
	}
	out := &sns.ListSubscriptionsOutput{Subscriptions: []types.Subscription{}, NextToken: next}
	for _, sub := range rows {
		out.Subscriptions = append(out.Subscriptions, s.listed(sub))
	}
	return out, nil
}

func subscriptionARN(sub *state.Subscription) string { return sub.ARN }

// ListSubscriptionsByTopic lists a topic's subscriptions.
func (s *Service) ListSubscriptionsByTopic(
	_ context.Context, in *sns.ListSubscriptionsByTopicInput,
) (*sns.ListSubscriptionsByTopicOutput, error) {
	v := s.store.View()
	t, err := s.topic(v, "TopicArn", in.TopicArn)
	if err != nil {
		return nil, err
	}
	rows := slices.Collect(v.SubscriptionsOf(t.ARN))
	rows, next, err := account.Sorted(listing("ListSubscriptionsByTopic:"+t.ARN), rows, nil, in.NextToken, subscriptionARN)
	if err != nil {
		return nil, err
	}
	out := &sns.ListSubscriptionsByTopicOutput{Subscriptions: []types.Subscription{}, NextToken: next}
	for _, sub := range rows {
		out.Subscriptions = append(out.Subscriptions, s.listed(sub))
	}
	return out, nil
}

// owe writes down that a subscriber is to be told a publication. Messages of one group in a FIFO topic reach a subscriber in their order.
func (s *Service) owe(tx *state.Tx, p *state.Publication, sub *state.Subscription) {
	now := s.opts.Now()
	d := state.Delivery{
		Debt: delivery.Debt{
			Destination: sub.ARN,
			Until:       now.Add(patience),
			Remote:      !isOurs(sub.Protocol),
		},
		Publication: p.ID,
		Size:        p.Size(),
	}
	if u, err := url.Parse(sub.Endpoint); err == nil && d.Remote {
		d.Host = u.Hostname()
	}
	if p.Sequence != "" {
		d.ID = sub.ARN + " " + p.Sequence
		d.Line = sub.ARN + " " + p.Group
		d.Source = p.TopicARN + " " + p.Group
	}
	d.Body = p.ID
	tx.Owe(d, now)
}
