// Package pollers has functions called with what is in queues, as event source mappings say. A poller receives messages, has the function
// called with them, and deletes those that it has handled. What it hasn't comes back when the queue's visibility time-out is over, so nothing
// is kept here, and a process that is killed loses nothing. It knows queues and functions by what it is handed alone.
package pollers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/state"
)

// Queues are the queues: SQS.
type Queues interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Options are what pollers work with.
type Options struct {
	Queues   Queues
	QueueURL func(arn string) string
	Region   string
	// Invoke has a function called. failed is whether it ended with an error; an error says that it wasn't called.
	Invoke func(ctx context.Context, arn string, event []byte) (answer []byte, failed bool, err error)
	Log    *slog.Logger
}

// defaultConcurrency is how many calls of a mapping run at a time if it doesn't say: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
const defaultConcurrency = 50

// pause is how long a poller waits whose queue or function can't be reached.
const pause = 2 * time.Second

// longPoll is how long a poller waits for a message.
const longPoll = 20

// maxReceive is the most messages that a queue gives at once.
const maxReceive = 10

// maxEvent is about the most bytes of the messages of one call.
const maxEvent = 5 << 20

// Run has a poller for each mapping that is enabled, until ctx ends.
func Run(ctx context.Context, store *state.Store, o Options) error {
	var all sync.WaitGroup
	defer all.Wait()
	running := map[string]*poller{}
	for {
		v := store.Watch()
		wanted := map[string]bool{}
		for m := range v.EventSources.All() {
			if *m.State != "Enabled" {
				continue
			}
			wanted[*m.UUID] = true
			old := running[*m.UUID]
			if old != nil && old.mapping == m {
				continue
			}
			if old != nil {
				old.cancel()
			}
			p := newPoller(ctx, m, o)
			running[*m.UUID] = p
			all.Go(p.run)
		}
		for id, p := range running {
			if !wanted[id] {
				p.cancel()
				delete(running, id)
			}
		}
		if err := v.Changed(ctx); err != nil {
			return err
		}
	}
}

// poller is a mapping at work.
type poller struct {
	Options
	mapping *state.EventSourceMapping
	url     string
	slots   chan struct{} // has an element for each call that runs
	// ctx ends with the mapping, and calls with the process: a call that has begun goes on when its mapping changes.
	ctx    context.Context
	calls  context.Context
	cancel context.CancelFunc
}

func newPoller(ctx context.Context, m *state.EventSourceMapping, o Options) *poller {
	slots := defaultConcurrency
	if s := m.ScalingConfig; s != nil && s.MaximumConcurrency != nil {
		slots = int(*s.MaximumConcurrency)
	}
	p := &poller{Options: o, mapping: m, url: o.QueueURL(*m.EventSourceArn), slots: make(chan struct{}, slots), calls: ctx}
	p.ctx, p.cancel = context.WithCancel(ctx)
	return p
}

// run receives messages until the mapping ends, and then waits for the calls with those that it has.
func (p *poller) run() {
	var calls sync.WaitGroup
	defer calls.Wait()
	for p.ctx.Err() == nil {
		select {
		case p.slots <- struct{}{}:
		case <-p.ctx.Done():
			return
		}
		batch, until := p.gather()
		if len(batch) == 0 {
			<-p.slots
			continue
		}
		calls.Go(func() {
			defer func() { <-p.slots }()
			p.handle(batch, until)
		})
	}
}

// gather receives the messages of a call, and returns until when nobody else gets them.
func (p *poller) gather() (batch []sqstypes.Message, until time.Time) {
	most := int(*p.mapping.BatchSize)
	window := time.Duration(aws.ToInt32(p.mapping.MaximumBatchingWindowInSeconds)) * time.Second
	var ends time.Time
	size := 0
	for len(batch) < most && size < maxEvent {
		wait := time.Duration(longPoll) * time.Second
		if len(batch) > 0 {
			if wait = time.Until(ends); window == 0 || wait <= 0 {
				break
			}
		}
		began := time.Now()
		got, err := p.receive(min(maxReceive, most-len(batch)), min(longPoll, int((wait+time.Second-1)/time.Second)))
		if err != nil && len(batch) == 0 {
			p.rest(err)
			return nil, until
		}
		if err != nil {
			break
		}
		if len(batch) == 0 && len(got) > 0 {
			ends = time.Now().Add(window)
			until = began.Add(p.visibility())
		}
		for _, m := range got {
			size += len(*m.Body)
		}
		if batch = append(batch, got...); len(batch) == 0 {
			return nil, until
		}
	}
	return batch, until
}

func (p *poller) receive(most, wait int) ([]sqstypes.Message, error) {
	out, err := p.Queues.ReceiveMessage(p.ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &p.url,
		MaxNumberOfMessages:         int32(most),
		WaitTimeSeconds:             int32(wait),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// rest waits after an error.
func (p *poller) rest(err error) {
	if p.ctx.Err() != nil {
		return
	}
	p.Log.Warn("an event source mapping can't receive messages", "queue", *p.mapping.EventSourceArn, "error", err, "again_in", pause)
	select {
	case <-p.ctx.Done():
	case <-time.After(pause):
	}
}

// visibility returns the queue's visibility time-out.
func (p *poller) visibility() time.Duration {
	name := sqstypes.QueueAttributeNameVisibilityTimeout
	out, err := p.Queues.GetQueueAttributes(p.ctx, &sqs.GetQueueAttributesInput{QueueUrl: &p.url, AttributeNames: []sqstypes.QueueAttributeName{name}})
	if err != nil {
		return 0
	}
	seconds, _ := strconv.Atoi(out.Attributes[string(name)]) //nolint:errcheck // then it's 0
	return time.Duration(seconds) * time.Second
}

// handle has the function called with messages, and deletes those that it has handled.
func (p *poller) handle(batch []sqstypes.Message, until time.Time) {
	answer, failed, err := p.call(Event(batch, *p.mapping.EventSourceArn, p.Region), until)
	if err != nil || failed {
		return
	}
	handled := batch
	if len(p.mapping.FunctionResponseTypes) > 0 {
		handled = Handled(batch, answer, strings.HasSuffix(*p.mapping.EventSourceArn, ".fifo"))
	}
	for len(handled) > 0 {
		n := min(maxReceive, len(handled))
		p.delete(handled[:n], until)
		handled = handled[n:]
	}
}

// call has the function called. If there's no room for the call it's tried again, as long as the messages are ours and half of their time is
// left.
func (p *poller) call(event []byte, until time.Time) (answer []byte, failed bool, err error) {
	last := time.Now().Add(time.Until(until) / 2)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		answer, failed, err = p.Invoke(p.calls, *p.mapping.FunctionArn, event)
		if err == nil || p.calls.Err() != nil || time.Now().Add(wait).After(last) || !isTransient(err) {
			return answer, failed, err
		}
		select {
		case <-p.calls.Done():
		case <-time.After(wait):
		}
	}
}

// isTransient reports whether an error may be over soon.
func isTransient(err error) bool {
	var many *types.TooManyRequestsException
	var refused interface{ HTTPStatusCode() int }
	return errors.As(err, &many) || errors.As(err, &refused) && refused.HTTPStatusCode() >= http.StatusInternalServerError
}

// delete deletes messages. One that can't be deleted would be handled twice, so it's tried as long as nobody else gets them.
func (p *poller) delete(messages []sqstypes.Message, until time.Time) {
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &p.url}
	for i, m := range messages {
		in.Entries = append(in.Entries, sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		_, err := p.Queues.DeleteMessageBatch(p.calls, in)
		if err == nil || p.calls.Err() != nil {
			return
		}
		if time.Now().Add(wait).After(until) {
			p.Log.Error("messages that a function has handled can't be deleted, and come again", "queue", *p.mapping.EventSourceArn, "error", err)
			return
		}
		select {
		case <-p.calls.Done():
		case <-time.After(wait):
		}
	}
}

// record is a message as functions get it: https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
type record struct {
	MessageID         string               `json:"messageId"`
	ReceiptHandle     string               `json:"receiptHandle"`
	Body              string               `json:"body"`
	Attributes        map[string]string    `json:"attributes"`
	MessageAttributes map[string]attribute `json:"messageAttributes"`
	MD5OfAttributes   string               `json:"md5OfMessageAttributes,omitempty"`
	MD5OfBody         string               `json:"md5OfBody"`
	EventSource       string               `json:"eventSource"`
	EventSourceARN    string               `json:"eventSourceARN"`
	Region            string               `json:"awsRegion"`
}

type attribute struct {
	StringValue      *string  `json:"stringValue,omitempty"`
	BinaryValue      []byte   `json:"binaryValue,omitempty"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues []string `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

// Event returns messages of a queue as a function gets them.
func Event(messages []sqstypes.Message, arn, region string) []byte {
	var event struct{ Records []record }
	for _, m := range messages {
		r := record{
			MessageID: aws.ToString(m.MessageId), ReceiptHandle: aws.ToString(m.ReceiptHandle), Body: aws.ToString(m.Body),
			Attributes: m.Attributes, MessageAttributes: map[string]attribute{}, MD5OfBody: aws.ToString(m.MD5OfBody),
			MD5OfAttributes: aws.ToString(m.MD5OfMessageAttributes), EventSource: "aws:sqs", EventSourceARN: arn, Region: region,
		}
		for name, a := range m.MessageAttributes {
			r.MessageAttributes[name] = attribute{a.StringValue, a.BinaryValue, []string{}, []string{}, aws.ToString(a.DataType)}
		}
		event.Records = append(event.Records, r)
	}
	b, _ := json.Marshal(event) //nolint:errcheck // texts alone
	return b
}

// Handled returns the messages that a function's answer doesn't name as failed. An answer that makes no sense means that all have. In a FIFO queue
// those after the first that failed come again, too, since they mustn't overtake it:
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
func Handled(batch []sqstypes.Message, answer []byte, inOrder bool) (handled []sqstypes.Message) {
	var told *struct {
		Failures *[]struct {
			ID *string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if len(answer) > 0 && json.Unmarshal(answer, &told) != nil {
		return nil
	}
	if told == nil || told.Failures == nil {
		return batch
	}
	failed := map[string]bool{}
	for _, f := range *told.Failures {
		failed[aws.ToString(f.ID)] = true
	}
	hasFailed := false
	for _, m := range batch {
		if failed[*m.MessageId] {
			delete(failed, *m.MessageId)
			hasFailed = true
			continue
		}
		if !inOrder || !hasFailed {
			handled = append(handled, m)
		}
	}
	if len(failed) > 0 { // it names what isn't in the batch, or nothing
		return nil
	}
	return handled
}
