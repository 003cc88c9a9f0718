// Package sqs is Amazon SQS: a Service whose methods are those of the SDK's client, on top of the queue store. It checks input and
// answers with AWS's errors; durability, visibility and order are the store's job. It knows nothing of HTTP or of any other service.
package sqs

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/wire/call"
)

// Options configures the service.
type Options struct {
	account.Account
	Endpoint string // the start of every queue URL
}

// Service is Amazon SQS for one account in one region.
type Service struct {
	store *queues.Store
	opts  Options
}

// New returns the service on top of a store.
func New(store *queues.Store, opts Options) *Service { return &Service{store, opts} }

// queueURL returns a queue's URL. Many SDKs call it, so a caller that knows us by a name of AWS's gets one with that name.
func (s *Service) queueURL(ctx context.Context, name string) *string {
	endpoint := s.opts.Endpoint
	if by, isTLS := strings.CutPrefix(call.From(ctx).Endpoint, "https://"); isTLS && awsname.IsAWS(awsname.Fold(by)) {
		endpoint = "https://" + by
	}
	return aws.String(endpoint + "/" + s.opts.ID + "/" + name)
}

func (s *Service) queueArn(name string) string {
	return s.opts.ARN("sqs", name)
}

// nameInURL returns the name of a URL's queue. It accepts any host, since clients reach us under many, and a bare name, as AWS does.
func (s *Service) nameInURL(queueURL *string) (string, error) {
	if aws.ToString(queueURL) == "" {
		return "", missing("QueueUrl")
	}
	if !strings.Contains(*queueURL, "/") {
		return *queueURL, nil
	}
	u, err := url.Parse(*queueURL)
	if err != nil {
		return "", errNoQueue
	}
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(path) < 2 || path[len(path)-2] != s.opts.ID {
		return "", errNoQueue
	}
	return path[len(path)-1], nil
}

// nameInArn returns the name of an ARN's queue, or false if the ARN isn't one of ours.
func (s *Service) nameInArn(arn string) (string, bool) {
	return s.opts.ResourceOf("sqs", "", arn)
}

// queue returns the queue that a call is for.
func (s *Service) queue(queueURL *string) (queues.Queue, error) {
	name, err := s.nameInURL(queueURL)
	if err != nil {
		return queues.Queue{}, err
	}
	q, err := s.store.Queue(name)
	return q, failure(err)
}

// queueName matches valid queue names: API_CreateQueue.
var queueName = pattern.New(`^[A-Za-z0-9_-]+$`, 80)

const fifoSuffix = ".fifo"

func checkQueueName(name string) error {
	if name == "" {
		return missing("QueueName")
	}
	if len(name) > 80 || !queueName.MatchString(strings.TrimSuffix(name, fifoSuffix)) {
		return invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return nil
}

// numberIn returns a number from a call, or false if the client left it out. See call.Zero.
func numberIn(n int32) (int32, bool) {
	if n == call.Zero {
		return 0, true
	}
	return n, n != 0
}

// A receipt handle is a receipt in base64 after a version byte.
const receiptVersion = 1

func formatReceipt(r queues.Receipt) *string {
	b := []byte{receiptVersion}
	b = binary.BigEndian.AppendUint64(b, r.Queue)
	b = binary.BigEndian.AppendUint64(b, r.Seq)
	b = binary.BigEndian.AppendUint32(b, r.Number)
	return aws.String(base64.StdEncoding.EncodeToString(b))
}

func parseReceipt(handle *string) (queues.Receipt, error) {
	if aws.ToString(handle) == "" {
		return queues.Receipt{}, missing("ReceiptHandle")
	}
	b, err := base64.StdEncoding.DecodeString(*handle)
	if err != nil || len(b) != 21 || b[0] != receiptVersion {
		return queues.Receipt{}, refuse("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", *handle)
	}
	return queues.Receipt{
		Queue:  binary.BigEndian.Uint64(b[1:]),
		Seq:    binary.BigEndian.Uint64(b[9:]),
		Number: binary.BigEndian.Uint32(b[17:]),
	}, nil
}
