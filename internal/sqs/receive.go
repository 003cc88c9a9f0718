package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/sqs/queues"
)

// Limits of ReceiveMessage and ChangeMessageVisibility.
const (
	maxReceived   = 10    // messages
	maxWait       = 20    // seconds
	maxVisibility = 43200 // seconds
)

// ReceiveMessage takes messages from a queue. If asked to, it waits for one.
func (s *Service) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	want, err := wantOf(&q, in)
	if err != nil {
		return nil, err
	}
	names, err := systemNames(in)
	if err != nil {
		return nil, err
	}
	received, err := s.store.Receive(ctx, q.Name, want)
	if errors.Is(err, queues.ErrInFlight) {
		return nil, refuse("OverLimit", "The queue has %d messages in flight, which is the most there can be.", queues.MaxInFlight)
	}
	if err != nil {
		return nil, failure(err)
	}
	out := &sqs.ReceiveMessageOutput{}
	for i := range received {
		m, err := s.message(&q, &received[i], names, in.MessageAttributeNames)
		if err != nil {
			return nil, err
		}
		out.Messages = append(out.Messages, m)
	}
	return out, nil
}

// wantOf checks a receive's parameters. The queue has the defaults.
func wantOf(q *queues.Queue, in *sqs.ReceiveMessageInput) (queues.Want, error) {
	w := queues.Want{Limit: 1, Attempt: aws.ToString(in.ReceiveRequestAttemptId)}
	if n, ok := numberIn(in.MaxNumberOfMessages); ok {
		if n < 1 || n > maxReceived {
			return w, invalidValue(n, "MaxNumberOfMessages", "Must be between 1 and %d, if provided.", maxReceived)
		}
		w.Limit = int(n)
	}
	var err error
	if w.Wait, err = seconds("WaitTimeSeconds", in.WaitTimeSeconds, q.Attributes["ReceiveMessageWaitTimeSeconds"], maxWait); err != nil {
		return w, err
	}
	w.Visibility, err = seconds("VisibilityTimeout", in.VisibilityTimeout, q.Attributes["VisibilityTimeout"], maxVisibility)
	if err != nil {
		return w, err
	}
	if w.Attempt != "" && !q.FIFO {
		return w, invalidValue(
			w.Attempt, "ReceiveRequestAttemptId", "The request includes a parameter that is not valid for this queue type.",
		)
	}
	if w.Attempt != "" && !fifoID.MatchString(w.Attempt) {
		return w, invalidValue(
			w.Attempt, "ReceiveRequestAttemptId",
			"ReceiveRequestAttemptId can only include alphanumeric and punctuation characters. 1 to 128 in length.",
		)
	}
	return w, nil
}

// seconds returns the time in a call, or standard if the call has none.
func seconds(parameter string, value int32, standard string, most int32) (time.Duration, error) {
	n, ok := numberIn(value)
	if !ok {
		return time.Duration(milliseconds(standard)) * time.Millisecond, nil
	}
	if n < 0 || n > most {
		return 0, invalidValue(n, parameter, "Must be >= 0 and <= %d, if provided.", most)
	}
	return time.Duration(n) * time.Second, nil
}

// systemNames returns the system attributes that a receive asks for, under the parameter's new or old name. The old parameter also
// accepts names of queue attributes, which have no effect.
func systemNames(in *sqs.ReceiveMessageInput) ([]types.MessageSystemAttributeName, error) {
	names := slices.Clone(in.MessageSystemAttributeNames)
	for _, n := range in.AttributeNames {
		if !slices.Contains(queueAttributes, n) {
			names = append(names, types.MessageSystemAttributeName(n))
		} else if n == "All" {
			names = append(names, types.MessageSystemAttributeNameAll)
		}
	}
	for _, n := range names {
		if !slices.Contains(n.Values(), n) {
			return nil, refuse("InvalidAttributeName", "Unknown Attribute %s.", n)
		}
	}
	return names, nil
}

// message returns a received message in the SDK's form.
func (s *Service) message(
	q *queues.Queue, r *queues.Received, names []types.MessageSystemAttributeName, valueNames []string,
) (types.Message, error) {
	var m meta
	if err := json.Unmarshal(r.Meta, &m); err != nil {
		return types.Message{}, err
	}
	out := types.Message{
		MessageId:     aws.String(uuid.UUID(r.ID).String()),
		ReceiptHandle: formatReceipt(r.Receipt),
		Body:          aws.String(string(r.Body)),
		MD5OfBody:     &m.MD5,
	}
	if values := wantedValues(m.Values, valueNames); len(values) > 0 {
		out.MD5OfMessageAttributes = md5OfValues(values)
		out.MessageAttributes = map[string]types.MessageAttributeValue{}
		for name, v := range values {
			out.MessageAttributes[name] = v.attribute()
		}
	}
	if len(names) == 0 {
		return out, nil
	}
	all := map[string]string{
		"SenderId":                         s.opts.ID,
		"SentTimestamp":                    strconv.FormatInt(r.Sent, 10),
		"ApproximateReceiveCount":          strconv.Itoa(r.Receives),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(r.First, 10),
		"MessageGroupId":                   r.Group,
		"AWSTraceHeader":                   m.Trace,
		"MessageDeduplicationId":           m.Dedup,
		"SequenceNumber":                   aws.ToString(sequenceNumber(q, r.Seq)),
	}
	if r.From != "" {
		all["DeadLetterQueueSourceArn"] = s.queueArn(r.From)
	}
	maps.DeleteFunc(all, func(name, value string) bool {
		return value == "" || !slices.Contains(names, types.MessageSystemAttributeNameAll) &&
			!slices.Contains(names, types.MessageSystemAttributeName(name))
	})
	if len(all) > 0 {
		out.Attributes = all
	}
	return out, nil
}

// DeleteMessage deletes a received message.
func (s *Service) DeleteMessage(_ context.Context, in *sqs.DeleteMessageInput) (*sqs.DeleteMessageOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	errs, err := s.delete(&q, []*string{in.ReceiptHandle})
	if err != nil {
		return nil, err
	}
	if errs[0] != nil {
		return nil, errs[0]
	}
	return &sqs.DeleteMessageOutput{}, nil
}

// DeleteMessageBatch deletes up to ten received messages.
func (s *Service) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput) (*sqs.DeleteMessageBatchOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkBatch("DeleteMessage", len(in.Entries), func(i int) *string { return in.Entries[i].Id }); err != nil {
		return nil, err
	}
	var handles []*string
	for i := range in.Entries {
		handles = append(handles, in.Entries[i].ReceiptHandle)
	}
	errs, err := s.delete(&q, handles)
	if err != nil {
		return nil, err
	}
	out := &sqs.DeleteMessageBatchOutput{}
	for i, err := range errs {
		if err != nil {
			out.Failed = append(out.Failed, failed(in.Entries[i].Id, err))
			continue
		}
		out.Successful = append(out.Successful, types.DeleteMessageBatchResultEntry{Id: in.Entries[i].Id})
	}
	return out, nil
}

// delete deletes messages and returns an error for each. It succeeds if the message is already gone, or if a standard queue's message
// was received again: API_DeleteMessage.
func (s *Service) delete(q *queues.Queue, handles []*string) ([]error, error) {
	return each(handles, func(receipts []queues.Receipt, _ []int) ([]error, error) {
		errs, err := s.store.Delete(q.Name, receipts)
		for i, e := range errs {
			takenOver := !q.FIFO && errors.Is(e, queues.ErrExpired) // whoever has the message now keeps it
			if errors.Is(e, queues.ErrNoMessage) || takenOver {
				errs[i] = nil
			}
		}
		return errs, err
	})
}

// each parses the handles and calls do with the valid receipts. It returns an error for each handle.
func each(handles []*string, do func(receipts []queues.Receipt, of []int) ([]error, error)) ([]error, error) {
	errs := make([]error, len(handles))
	var receipts []queues.Receipt
	var of []int // index of each receipt's handle
	for i, h := range handles {
		r, err := parseReceipt(h)
		if errs[i] = err; err == nil {
			receipts = append(receipts, r)
			of = append(of, i)
		}
	}
	if len(receipts) == 0 {
		return errs, nil
	}
	done, err := do(receipts, of)
	if err != nil {
		return nil, failure(err)
	}
	for i, e := range done {
		errs[of[i]] = receiptFailure(handles[of[i]], e)
	}
	return errs, nil
}

// receiptFailure turns the store's errors on receipts into AWS's.
func receiptFailure(handle *string, err error) error {
	switch {
	case errors.Is(err, queues.ErrReceipt):
		return refuse("ReceiptHandleIsInvalid", "The input receipt handle %q is not a valid receipt handle.", *handle)
	case errors.Is(err, queues.ErrExpired):
		return invalidValue(*handle, "ReceiptHandle", "The receipt handle has expired.")
	case errors.Is(err, queues.ErrNoMessage):
		return invalidValue(*handle, "ReceiptHandle", "Message does not exist or is not available for visibility timeout change.")
	case errors.Is(err, queues.ErrVisible):
		return refuse("MessageNotInflight", "The message referred to is not in flight.")
	case errors.Is(err, queues.ErrTooLong):
		return invalid("Total VisibilityTimeout for the message is beyond the limit [%d seconds]", maxVisibility)
	}
	return err
}

// ChangeMessageVisibility changes how long from now a message is invisible. The client must send even a timeout of 0: see call.Zero.
func (s *Service) ChangeMessageVisibility(
	_ context.Context, in *sqs.ChangeMessageVisibilityInput,
) (*sqs.ChangeMessageVisibilityOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkVisibility(in.VisibilityTimeout); err != nil {
		return nil, err
	}
	errs, err := s.changeVisibility(&q, []*string{in.ReceiptHandle}, []int32{in.VisibilityTimeout})
	if err != nil {
		return nil, err
	}
	if errs[0] != nil {
		return nil, errs[0]
	}
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func checkVisibility(timeout int32) error {
	n, ok := numberIn(timeout)
	if !ok {
		return missing("VisibilityTimeout")
	}
	if n < 0 || n > maxVisibility {
		return invalidValue(n, "VisibilityTimeout", "VisibilityTimeout must be an integer between 0 and %d.", maxVisibility)
	}
	return nil
}

// ChangeMessageVisibilityBatch changes the visibility of up to ten messages.
func (s *Service) ChangeMessageVisibilityBatch(
	_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput,
) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkBatch("ChangeMessageVisibility", len(in.Entries), func(i int) *string { return in.Entries[i].Id }); err != nil {
		return nil, err
	}
	out := &sqs.ChangeMessageVisibilityBatchOutput{}
	var good []types.ChangeMessageVisibilityBatchRequestEntry
	var handles []*string
	var timeouts []int32
	for _, e := range in.Entries {
		if err := checkVisibility(e.VisibilityTimeout); err != nil {
			out.Failed = append(out.Failed, failed(e.Id, err))
			continue
		}
		good = append(good, e)
		handles = append(handles, e.ReceiptHandle)
		timeouts = append(timeouts, e.VisibilityTimeout)
	}
	errs, err := s.changeVisibility(&q, handles, timeouts)
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			out.Failed = append(out.Failed, failed(good[i].Id, err))
			continue
		}
		out.Successful = append(out.Successful, types.ChangeMessageVisibilityBatchResultEntry{Id: good[i].Id})
	}
	return out, nil
}

func (s *Service) changeVisibility(q *queues.Queue, handles []*string, timeouts []int32) ([]error, error) {
	return each(handles, func(receipts []queues.Receipt, of []int) ([]error, error) {
		changes := make([]queues.Visibility, len(receipts))
		for i, r := range receipts {
			n, _ := numberIn(timeouts[of[i]])
			changes[i] = queues.Visibility{Receipt: r, Timeout: time.Duration(n) * time.Second}
		}
		return s.store.ChangeVisibility(q.Name, changes)
	})
}
