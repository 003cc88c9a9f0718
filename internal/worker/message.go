package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// message is a message being processed.
type message struct {
	types.Message
	received time.Time // or slightly before that
	receives int       // how often it has been received, this time included
	undone   int       // inputs still to do
	failed   error     // its inputs' first error
}

func newMessage(m types.Message, received time.Time) *message {
	receives, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil {
		receives = 1
	}
	return &message{Message: m, received: received, receives: receives}
}

func (m *message) id() string { return aws.ToString(m.MessageId) }

// Input is what the command processes: an S3 object, or a message's body.
type Input struct {
	ID           string // the message's id, and the number of the record in it
	MessageID    string
	ReceiveCount int
	// Bucket, Key and VersionID identify the object. Without a bucket, Body is the input.
	Bucket    string
	Key       string
	VersionID string
	Body      string
	Size      int64

	Path      string // the file that holds it
	ResultDir string // files that the command writes here are uploaded
	Output    string // the file for the command's answer; "" if nobody wants it

	message *message
}

// permanent is an error that a retry would only repeat.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// event is S3's event notification.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
type event struct {
	Event   string // s3:TestEvent, which S3 sends when notifications are set up
	Records []struct {
		EventSource string
		EventName   string
		S3          struct {
			Bucket struct{ Name string }
			Object struct{ Key, VersionID string }
		}
	}
}

// errNothing says that a message asks for no work.
var errNothing = errors.New("there is nothing to work on")

// objects returns the inputs in an S3 event.
func (m *message) objects(results Results) ([]*Input, error) {
	var e event
	if err := json.Unmarshal([]byte(aws.ToString(m.Message.Body)), &e); err != nil {
		return nil, permanent{fmt.Errorf("the message is no S3 event: %w", err)}
	}
	if e.Event == "s3:TestEvent" {
		return nil, fmt.Errorf("%w: S3 tests whether it can notify", errNothing)
	}
	if len(e.Records) == 0 {
		return nil, permanent{errors.New("the message is no S3 event: it has no Records")}
	}
	var out []*Input
	for i, r := range e.Records {
		if isRemoval(r.EventName) {
			continue
		}
		key, err := url.QueryUnescape(r.S3.Object.Key)
		if err != nil || key == "" || r.S3.Bucket.Name == "" {
			return nil, permanent{fmt.Errorf("the message is no S3 event: Records[%d] names no bucket and key", i)}
		}
		isResult, err := results.include(r.S3.Bucket.Name, key)
		if err != nil {
			return nil, err
		}
		if isResult {
			continue
		}
		in := m.input(i)
		in.Bucket = r.S3.Bucket.Name
		in.Key = key
		in.VersionID = r.S3.Object.VersionID
		out = append(out, in)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: it tells of removed objects or of results", errNothing)
	}
	return out, nil
}

// body returns the message itself as an input.
func (m *message) body() *Input {
	in := m.input(0)
	in.Key = m.id()
	in.Body = aws.ToString(m.Message.Body)
	in.Size = int64(len(in.Body))
	return in
}

func (m *message) input(record int) *Input {
	return &Input{ID: fmt.Sprintf("%s.%d", m.id(), record), MessageID: m.id(), ReceiveCount: m.receives, message: m}
}

// isRemoval reports whether an event is about an object that no longer exists.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-event-types-and-destinations.html
func isRemoval(eventName string) bool {
	name := strings.TrimPrefix(eventName, "s3:")
	return strings.HasPrefix(name, "ObjectRemoved:") || strings.HasPrefix(name, "LifecycleExpiration:")
}
