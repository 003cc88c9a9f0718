package state

import (
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/pintle/pintle/internal/store"
)

// Topic is a topic of SNS.
type Topic struct {
	ARN        string
	Attributes map[string]string // those that were set
	Tags       []types.Tag       `json:",omitempty"`
	Created    time.Time
	FIFO       bool   `json:",omitzero"`
	Sequence   uint64 `json:",omitzero"` // of a FIFO topic's last message
	Left       int    `json:",omitzero"` // how many subscriptions have been deleted
}

// Name returns the topic's name.
func (t *Topic) Name() string { return t.ARN[strings.LastIndexByte(t.ARN, ':')+1:] }

// Subscription is a topic's subscriber.
type Subscription struct {
	ARN        string
	TopicARN   string
	Protocol   string
	Endpoint   string
	Principal  string            `json:",omitempty"` // who subscribed
	Attributes map[string]string // those that were set
	Token      string            `json:",omitempty"` // confirms it
	// PendingSince is when it was made, for one that isn't confirmed yet.
	PendingSince *time.Time `json:",omitzero"`
	// Authenticated is whether somebody confirmed it who signed.
	Authenticated bool `json:",omitzero"`
	// Guarded is whether only those who sign may end it: AuthenticateOnUnsubscribe.
	Guarded bool `json:",omitzero"`
}

// IsConfirmed reports whether the subscription gets messages.
func (s *Subscription) IsConfirmed() bool { return s.PendingSince == nil }

// Confirmed returns the subscription after somebody has confirmed it.
func (s *Subscription) Confirmed(signed, guarded bool) *Subscription {
	row := *s
	row.PendingSince = nil
	row.Authenticated = signed
	row.Guarded = guarded
	return &row
}

// Publication is a message on its way to a topic's subscribers. It lives until the last of them was told, or given up.
type Publication struct {
	ID         string // its MessageId
	Type       string // Notification, or SubscriptionConfirmation
	TopicARN   string
	Subject    string                                 `json:",omitempty"`
	Message    string                                 // for protocols that have none of their own
	Messages   map[string]string                      `json:",omitempty"` // by protocol
	Attributes map[string]types.MessageAttributeValue `json:",omitempty"`
	Group      string                                 `json:",omitempty"`
	Duplicate  string                                 `json:",omitempty"` // the deduplication id
	Sequence   string                                 `json:",omitempty"` // its number in a FIFO topic
	// Content is the hash of the message as it was sent, in whatever structure. It's known until the message is numbered.
	Content string `json:"-"`
	At      time.Time
}

// For returns the message for a protocol.
func (p *Publication) For(protocol string) string {
	if own, ok := p.Messages[protocol]; ok {
		return own
	}
	return p.Message
}

// Size returns the bytes of the message and of its attributes.
func (p *Publication) Size() int {
	n := len(p.Message)
	for _, text := range p.Messages {
		n += len(text)
	}
	for name, a := range p.Attributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// Published is what a FIFO topic remembers of a message: another one with its key, within keepPublished, is the same.
type Published struct {
	Key       string // PublishedKey
	MessageID string
	Sequence  string
	At        time.Time
}

// keepPublished is how long a FIFO topic recognizes duplicates: https://docs.aws.amazon.com/sns/latest/dg/fifo-message-dedup.html
const keepPublished = 5 * time.Minute

// PublishedKey returns the key of a message in a FIFO topic: of the whole topic's messages, or of a group's.
func PublishedKey(topicARN, group, duplicate string) string {
	return strings.Join([]string{topicARN, group, duplicate}, " ")
}

// FindPublished returns what a FIFO topic remembers of an earlier message with a key, or nil.
func (v *View) FindPublished(key string, now time.Time) *Published {
	if p := v.Published.Get(key); p != nil && now.Sub(p.At) < keepPublished {
		return p
	}
	return nil
}

// TopicSigner is the key that signs messages of topics, and its certificate. There is one, made when it is first needed.
type TopicSigner struct {
	Name         string // TopicSignerName
	EncryptedKey []byte // PKCS #8
	Certificate  []byte // DER
}

// TopicSignerName is the key of the only signer.
const TopicSignerName = "sns"

// SubscriptionsOf returns a topic's subscriptions, sorted by their ARNs.
func (v *View) SubscriptionsOf(topicARN string) iter.Seq[*Subscription] {
	return v.Subscriptions.By(subscriptionsByTopic, topicARN)
}

// DeleteTopic deletes a topic with its subscriptions, and what it remembers of its messages: another topic of the name has other ones. What
// the subscriptions are still owed is given up when it's due.
func (tx *Tx) DeleteTopic(arn string) {
	for p := range tx.Published.Behind(arn + " ") {
		if !strings.HasPrefix(p.Key, arn+" ") {
			break
		}
		tx.Published.Delete(p.Key)
	}
	for s := range tx.SubscriptionsOf(arn) {
		tx.Subscriptions.Delete(s.ARN)
	}
	tx.Topics.Delete(arn)
}

// DeleteSubscription deletes a subscription, which its topic counts.
func (tx *Tx) DeleteSubscription(s *Subscription) {
	tx.Subscriptions.Delete(s.ARN)
	if t := tx.Topics.Get(s.TopicARN); t != nil && s.IsConfirmed() {
		row := *t
		row.Left++
		tx.Topics.Put(&row)
	}
}

// topicTables are the tables of SNS in a view.
type topicTables struct {
	Publications  Table[*Publication]
	Published     Table[*Published]
	Subscriptions Table[*Subscription]
	Topics        Table[*Topic]
	TopicSigners  Table[*TopicSigner]
}

func newTopicTables(v *store.View) topicTables {
	return topicTables{
		Publications:  publications.In(v),
		Published:     published.In(v),
		Subscriptions: subscriptions.In(v),
		Topics:        topics.In(v),
		TopicSigners:  topicSigners.In(v),
	}
}

// keepPending is how long a subscription waits for its confirmation: https://docs.aws.amazon.com/sns/latest/api/API_Subscribe.html
const keepPending = 48 * time.Hour

var (
	topics       = &store.Definition[*Topic]{Name: "topics", Key: func(t *Topic) string { return t.ARN }}
	topicSigners = &store.Definition[*TopicSigner]{Name: "topic_signers", Key: func(s *TopicSigner) string { return s.Name }}

	subscriptionsByTopic = store.Index[*Subscription]{Name: "topic", Value: func(s *Subscription) string { return s.TopicARN }}
	subscriptions        = &store.Definition[*Subscription]{
		Name:     "subscriptions",
		Key:      func(s *Subscription) string { return s.ARN },
		Indexes:  []store.Index[*Subscription]{subscriptionsByTopic},
		Lifetime: store.KeepFor(keepPending, func(s *Subscription) *time.Time { return s.PendingSince }),
	}

	published = &store.Definition[*Published]{
		Name:     "published",
		Key:      func(p *Published) string { return p.Key },
		Lifetime: store.KeepFor(keepPublished, func(p *Published) *time.Time { return &p.At }),
	}

	publications = &store.Definition[*Publication]{Name: "publications", Key: func(p *Publication) string { return p.ID }}
)
