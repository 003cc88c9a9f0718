// Package sns is Amazon SNS: a Service whose methods are those of the SDK's client, over the store's topics and subscriptions. A publish
// commits the message together with what each subscriber is owed; Tell delivers that when the outbox asks it to, to queues and to URLs. It
// knows SQS only by the SDK's interface, and decides nothing about who may call it.
package sns

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// Queues is where messages to queues go: SQS.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Options are the account of the service, and what it delivers with.
type Options struct {
	account.Account
	Queues   Queues
	QueueURL func(arn string) string // returns a queue's URL
	Client   *http.Client            // posts to subscribers' URLs
	Endpoint string                  // the start of the URLs in messages: of the certificate, to confirm and to unsubscribe
	Vault    *vault.Vault            // encrypts the key that signs messages
	Room     Room                    // for messages on their way; the zero Room is the usual one
	Log      *slog.Logger            // told of messages that are lost
}

// Service is Amazon SNS for one account in one region.
type Service struct {
	store    *state.Store
	opts     Options
	policies policies
	signing  atomic.Pointer[signer] // nil until it's first needed
	lost     map[string]time.Time   // when subscriptions' lost messages were logged; for noteLost
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Room == (Room{}) {
		opts.Room = defaultRoom
	}
	return &Service{store: store, opts: opts, lost: map[string]time.Time{}}
}

// now returns the time to the millisecond, the precision of messages.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

// topic returns the topic with an ARN.
func (s *Service) topic(v *state.View, parameter string, arn *string) (*state.Topic, error) {
	text := valueOf(arn)
	if err := checkARN(parameter, text); err != nil {
		return nil, err
	}
	if _, ours := s.opts.ResourceOf("sns", "", text); !ours {
		return nil, invalid("%s", parameter)
	}
	t := v.Topics.Get(text)
	if t == nil {
		return nil, errNoTopic
	}
	return t, nil
}

// updateTopic changes a topic in a transaction.
func (s *Service) updateTopic(ctx context.Context, arn *string, change func(tx *state.Tx, t *state.Topic) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.topic(tx.View, "TopicArn", arn)
		if err != nil {
			return err
		}
		row := *old
		if err := change(tx, &row); err != nil {
			return err
		}
		tx.Topics.Put(&row)
		return nil
	})
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// fifoSuffix ends the names of FIFO topics and queues.
const fifoSuffix = ".fifo"

func isFIFO(arn string) bool { return strings.HasSuffix(arn, fifoSuffix) }
