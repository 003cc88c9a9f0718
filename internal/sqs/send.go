package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/wire/call"
)

// maxMessage is the most bytes in a message with its attributes, and in a whole batch: "Amazon SQS message quotas" in the developer
// guide.
const maxMessage = 1 << 20

// meta is what the store keeps about a message besides its body.
type meta struct {
	MD5    string           `json:"m"`
	Values map[string]value `json:"v,omitempty"`
	Trace  string           `json:"x,omitempty"` // AWSTraceHeader
	Dedup  string           `json:"d,omitempty"`
}

// prepared is a checked message.
type prepared struct {
	message   queues.Message
	md5       string
	values    *string // MD5 of the attributes
	system    *string // MD5 of the system attributes
	wholeSize int
}

// SendMessage puts a message into a queue.
func (s *Service) SendMessage(ctx context.Context, in *sqs.SendMessageInput) (*sqs.SendMessageOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	p, err := prepare(ctx, &q, &types.SendMessageBatchRequestEntry{
		MessageBody:             in.MessageBody,
		DelaySeconds:            in.DelaySeconds,
		MessageAttributes:       in.MessageAttributes,
		MessageSystemAttributes: in.MessageSystemAttributes,
		MessageDeduplicationId:  in.MessageDeduplicationId,
		MessageGroupId:          in.MessageGroupId,
	})
	if err != nil {
		return nil, err
	}
	sent, err := s.store.Send(q.Name, []queues.Message{p.message})
	if err != nil {
		return nil, failure(err)
	}
	return &sqs.SendMessageOutput{
		MessageId:                    aws.String(uuid.UUID(sent[0].ID).String()),
		MD5OfMessageBody:             &p.md5,
		MD5OfMessageAttributes:       p.values,
		MD5OfMessageSystemAttributes: p.system,
		SequenceNumber:               sequenceNumber(&q, sent[0].Seq),
	}, nil
}

// sequenceNumber returns a message's place in a FIFO queue: 20 digits that only grow.
func sequenceNumber(q *queues.Queue, seq uint64) *string {
	if !q.FIFO {
		return nil
	}
	return aws.String(fmt.Sprintf("1%019d", seq))
}

// SendMessageBatch puts up to ten messages into a queue. A bad one doesn't hold back the others, unless it lacks what orders messages
// in a FIFO queue.
func (s *Service) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
	q, err := s.queue(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if err := checkBatch("SendMessage", len(in.Entries), func(i int) *string { return in.Entries[i].Id }); err != nil {
		return nil, err
	}
	if err := checkOrdered(&q, in.Entries); err != nil {
		return nil, err
	}
	out := &sqs.SendMessageBatchOutput{}
	var messages []queues.Message
	size := 0
	for i := range in.Entries {
		e := &in.Entries[i]
		p, err := prepare(ctx, &q, e)
		size += p.wholeSize
		if err != nil {
			out.Failed = append(out.Failed, failed(e.Id, err))
			continue
		}
		messages = append(messages, p.message)
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{
			Id:                           e.Id,
			MD5OfMessageBody:             aws.String(p.md5),
			MD5OfMessageAttributes:       p.values,
			MD5OfMessageSystemAttributes: p.system,
		})
	}
	if size > maxMessage {
		return nil, refuse(
			"BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxMessage, size,
		)
	}
	if len(messages) == 0 {
		return out, nil
	}
	sent, err := s.store.Send(q.Name, messages)
	if err != nil {
		return nil, failure(err)
	}
	for i := range sent {
		out.Successful[i].MessageId = aws.String(uuid.UUID(sent[i].ID).String())
		out.Successful[i].SequenceNumber = sequenceNumber(&q, sent[i].Seq)
	}
	return out, nil
}

// maxBatch is the most entries in a batch.
const maxBatch = 10

var batchID = pattern.New(`^[A-Za-z0-9_-]+$`, 80)

// checkBatch checks the number of a batch's entries, and their ids.
func checkBatch(operation string, n int, id func(int) *string) error {
	if n == 0 {
		return refuse("EmptyBatchRequest", "There should be at least one %sBatchRequestEntry in the request.", operation)
	}
	if n > maxBatch {
		return refuse("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", maxBatch, n)
	}
	var seen []string
	for i := range n {
		entryID := aws.ToString(id(i))
		if !batchID.MatchString(entryID) {
			return refuse(
				"InvalidBatchEntryId",
				"A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.",
			)
		}
		if slices.Contains(seen, entryID) {
			return refuse("BatchEntryIdsNotDistinct", "Id %s repeated.", entryID)
		}
		seen = append(seen, entryID)
	}
	return nil
}

// queryCodes are the Query protocol's names for refusals, which batch entries use in every protocol.
var queryCodes = map[string]string{
	"InvalidParameterValueException":    "InvalidParameterValue",
	"MissingRequiredParameterException": "MissingParameter",
	"MessageNotInflight":                "AWS.SimpleQueueService.MessageNotInflight",
	"UnsupportedOperation":              "AWS.SimpleQueueService.UnsupportedOperation",
}

// failed returns the result for a refused entry of a batch.
func failed(id *string, err error) types.BatchResultErrorEntry {
	api, ok := err.(smithy.APIError)
	if !ok {
		return types.BatchResultErrorEntry{
			Id:      id,
			Code:    aws.String("InternalError"),
			Message: aws.String("The request failed inside Pintle."),
		}
	}
	code := api.ErrorCode()
	if q, ok := queryCodes[code]; ok {
		code = q
	}
	return types.BatchResultErrorEntry{Id: id, SenderFault: true, Code: &code, Message: aws.String(api.ErrorMessage())}
}

// fifoID matches group and deduplication ids: API_SendMessage.
var fifoID = pattern.New("^[A-Za-z0-9!\"#$%&'()*+,./:;<=>?@\\[\\\\\\]^_`{|}~-]+$", 128)

// prepare checks a message, sent alone or in a batch. Even for a refused message it returns wholeSize, as far as the check got.
func prepare(ctx context.Context, q *queues.Queue, in *types.SendMessageBatchRequestEntry) (p prepared, err error) {
	body := aws.ToString(in.MessageBody)
	p.wholeSize = len(body)
	if body == "" {
		return p, missing("MessageBody")
	}
	if !isXML(body) {
		return p, refuse("InvalidMessageContents", "Invalid characters found. %s", validCharacters)
	}
	values, size, err := valuesOf(in.MessageAttributes)
	if err != nil {
		return p, err
	}
	p.wholeSize += size
	if most, _ := strconv.Atoi(q.Attributes["MaximumMessageSize"]); p.wholeSize > most {
		return p, invalid("One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most)
	}
	m := meta{MD5: md5Of(body), Values: values}
	if m.Trace, p.system, err = traceOf(in.MessageSystemAttributes); err != nil {
		return p, err
	}
	if m.Trace == "" {
		m.Trace = traceOfCall(ctx)
	}
	p.message = queues.Message{ID: uuid.New(), Body: []byte(body), Size: p.wholeSize, Group: aws.ToString(in.MessageGroupId)}
	if err := prepareOrder(q, in, &p.message, body); err != nil {
		return p, err
	}
	m.Dedup = p.message.Dedup
	if p.message.Delay, err = delayOf(q, in.DelaySeconds); err != nil {
		return p, err
	}
	p.md5 = m.MD5
	p.values = md5OfValues(values)
	p.message.Meta, err = json.Marshal(&m)
	return p, err
}

// checkOrdered refuses a batch for a FIFO queue if an entry has no group or can't be told from a duplicate.
func checkOrdered(q *queues.Queue, entries []types.SendMessageBatchRequestEntry) error {
	if !q.FIFO {
		return nil
	}
	for i := range entries {
		if entries[i].MessageDeduplicationId == nil && q.Attributes["ContentBasedDeduplication"] != "true" {
			return errNoDeduplication
		}
		if entries[i].MessageGroupId == nil { // alone it would be MissingRequiredParameterException
			return invalid("The request must contain the parameter MessageGroupId.")
		}
	}
	return nil
}

var errNoDeduplication = invalid(
	"The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
)

// prepareOrder checks a message's group and deduplication id.
func prepareOrder(q *queues.Queue, in *types.SendMessageBatchRequestEntry, m *queues.Message, body string) error {
	if in.MessageGroupId != nil && !fifoID.MatchString(*in.MessageGroupId) {
		return invalidValue(
			*in.MessageGroupId, "MessageGroupId",
			"MessageGroupId can only include alphanumeric and punctuation characters. 1 to 128 in length.",
		)
	}
	if !q.FIFO {
		if in.MessageDeduplicationId != nil {
			return invalidValue(
				*in.MessageDeduplicationId, "MessageDeduplicationId",
				"The request includes a parameter that is not valid for this queue type.",
			)
		}
		return nil // on AWS a group makes the queue fair ("Amazon SQS fair queues"); here the oldest message comes first
	}
	if in.MessageGroupId == nil {
		return missing("MessageGroupId")
	}
	switch {
	case in.MessageDeduplicationId != nil && !fifoID.MatchString(*in.MessageDeduplicationId):
		return invalidValue(
			*in.MessageDeduplicationId, "MessageDeduplicationId",
			"MessageDeduplicationId can only include alphanumeric and punctuation characters. 1 to 128 in length.",
		)
	case in.MessageDeduplicationId != nil:
		m.Dedup = *in.MessageDeduplicationId
	case q.Attributes["ContentBasedDeduplication"] == "true":
		sum := sha256.Sum256([]byte(body))
		m.Dedup = hex.EncodeToString(sum[:])
	default:
		return errNoDeduplication
	}
	return nil
}

// maxDelay is the longest delay of a message, in seconds.
const maxDelay = 900

// delayOf returns a message's delay: the call's, or else the queue's.
func delayOf(q *queues.Queue, seconds int32) (time.Duration, error) {
	n, ok := numberIn(seconds)
	switch {
	case !ok:
		return time.Duration(q.Delay) * time.Millisecond, nil
	case n < 0 || n > maxDelay:
		return 0, invalidValue(n, "DelaySeconds", "DelaySeconds must be >= 0 and <= %d.", maxDelay)
	case q.FIFO && n > 0:
		return 0, invalidValue(n, "DelaySeconds", "The request include parameter that is not valid for this queue type.")
	}
	return time.Duration(n) * time.Second, nil
}

// traceOf returns AWSTraceHeader, the only system attribute that a sender may give, and its MD5.
func traceOf(in map[string]types.MessageSystemAttributeValue) (trace string, sum *string, err error) {
	for name, a := range in {
		if name != "AWSTraceHeader" {
			return "", nil, invalid("Message system attribute name '%s' is invalid.", name)
		}
		v, err := valueOf(name, aws.ToString(a.DataType), a.StringValue, a.BinaryValue, len(a.StringListValues)+len(a.BinaryListValues) > 0)
		if err != nil {
			return "", nil, err
		}
		if v.Type != "String" {
			return "", nil, invalid("The type of message system attribute '%s' must be String.", name)
		}
		return v.Text, md5OfValues(map[string]value{name: v}), nil
	}
	return "", nil, nil
}

// maxTrace is the most bytes of a header that messages take over.
const maxTrace = 1024

// traceOfCall returns the trace header that a call came with, which AWS gives to messages that bring none. One that isn't fit for a
// message is left out: the caller didn't ask for it to be sent.
func traceOfCall(ctx context.Context) string {
	trace := call.From(ctx).Trace
	if len(trace) > maxTrace || !isXML(trace) {
		return ""
	}
	return trace
}

const validCharacters = "Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF"

// isXML reports whether XML can hold a text: API_SendMessage.
func isXML(s string) bool {
	for i, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
			return false
		}
	}
	return true
}
