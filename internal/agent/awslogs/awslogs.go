// Package awslogs is the log driver of that name: it sends a container's output to CloudWatch Logs, in
// batches, each line once a batch was taken for good. Where a crash comes between taking a batch and
// noting that, the batch is sent again: lines may come twice, none is lost.
package awslogs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/agent/engine"
	"github.com/pintle/pintle/internal/agent/runtime"
)

// Client is the part of the CloudWatch Logs client that the driver uses.
type Client interface {
	CreateLogGroup(context.Context, *cloudwatchlogs.CreateLogGroupInput, ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.CreateLogGroupOutput, error)
	CreateLogStream(context.Context, *cloudwatchlogs.CreateLogStreamInput, ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.CreateLogStreamOutput, error)
	PutLogEvents(context.Context, *cloudwatchlogs.PutLogEventsInput, ...func(*cloudwatchlogs.Options)) (*cloudwatchlogs.PutLogEventsOutput, error)
}

// Driver is an engine.Shipper.
type Driver struct {
	client Client
	strict bool
	log    *slog.Logger
}

var _ engine.Shipper = (*Driver)(nil)

// New returns the driver. Strict, it fails a container whose log group is not there, as on AWS; else
// it makes the group, and says so.
func New(client Client, strict bool, log *slog.Logger) *Driver { return &Driver{client, strict, log} }

// names are where a container's output goes.
func names(c *engine.LogSource) (group, stream string) {
	group, stream = c.Options["awslogs-group"], c.ID
	if p := c.Options["awslogs-stream-prefix"]; p != "" {
		stream = p + "/" + c.Container + "/" + c.TaskArn[strings.LastIndexByte(c.TaskArn, '/')+1:]
	}
	if s := c.Options["awslogs-stream"]; s != "" {
		stream = s
	}
	return group, stream
}

// Prepare makes the container's stream, and its group where that may be.
func (d *Driver) Prepare(ctx context.Context, c *engine.LogSource) error {
	group, stream := names(c)
	if group == "" {
		return errors.New("the log driver awslogs needs the option awslogs-group")
	}
	err := d.createStream(ctx, group, stream)
	if !isCode(err, "ResourceNotFoundException") {
		return err
	}
	asked := c.Options["awslogs-create-group"] == "true"
	if d.strict && !asked {
		return fmt.Errorf("the log group %s does not exist: create it, or set awslogs-create-group", group)
	}
	if !asked {
		d.log.Info("made a log group that did not exist; on AWS the task would have failed", "log_group", group, "task", c.TaskArn)
	}
	_, err = d.client.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &group})
	if err != nil && !isCode(err, "ResourceAlreadyExistsException") {
		return err
	}
	return d.createStream(ctx, group, stream)
}

func (d *Driver) createStream(ctx context.Context, group, stream string) error {
	_, err := d.client.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &group, LogStreamName: &stream})
	if isCode(err, "ResourceAlreadyExistsException") {
		return nil
	}
	return err
}

func isCode(err error, code string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == code
}

// The limits of one PutLogEvents, and how long a line may wait for others.
const (
	maxEvents  = 10000
	maxBytes   = 1 << 20
	eventBytes = 26 // what each event counts besides its text
	maxEvent   = 256<<10 - eventBytes
	flushAfter = 200 * time.Millisecond
)

// batch is lines on their way.
type batch struct {
	events []types.InputLogEvent
	bytes  int
	cursor string
}

// Ship is engine.Shipper's.
func (d *Driver) Ship(ctx context.Context, c *engine.LogSource, cursor string, saved func(string)) error {
	lines := make(chan runtime.Line, 256)
	read := make(chan error, 1)
	go func() {
		defer close(lines)
		read <- c.Runtime.Logs(ctx, c.ID, cursor, true, func(l runtime.Line) error {
			select {
			case lines <- l:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	if err := d.send(ctx, c, lines, saved); err != nil {
		return err
	}
	return <-read
}

// send gathers lines into batches and puts them, until there are no more.
func (d *Driver) send(ctx context.Context, c *engine.LogSource, lines <-chan runtime.Line, saved func(string)) error {
	var b batch
	var due <-chan time.Time
	flush := func() error {
		due = nil
		if len(b.events) == 0 {
			return nil
		}
		if err := d.put(ctx, c, b.events); err != nil {
			return err
		}
		saved(b.cursor)
		b = batch{}
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due:
			if err := flush(); err != nil {
				return err
			}
		case l, ok := <-lines:
			if !ok {
				return flush()
			}
			if due == nil {
				due = time.After(flushAfter)
			}
			text := l.Text
			if len(text) > maxEvent {
				text = strings.ToValidUTF8(text[:maxEvent], "")
			}
			if len(b.events) == maxEvents || b.bytes+len(text)+eventBytes > maxBytes {
				if err := flush(); err != nil {
					return err
				}
			}
			b.cursor = l.Cursor
			if text == "" { // CloudWatch Logs takes no empty events
				continue
			}
			b.events = append(b.events, types.InputLogEvent{Message: aws.String(text), Timestamp: aws.Int64(l.At.UnixMilli())})
			b.bytes += len(text) + eventBytes
		}
	}
}

// put puts one batch, and tries again for as long as trying can help.
func (d *Driver) put(ctx context.Context, c *engine.LogSource, events []types.InputLogEvent) error {
	group, stream := names(c)
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		_, err := d.client.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{LogGroupName: &group, LogStreamName: &stream, LogEvents: events})
		if err == nil {
			return nil
		}
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorFault() == smithy.FaultClient {
			if !isCode(err, "ResourceNotFoundException") {
				return err
			}
			if err := d.Prepare(ctx, c); err != nil { // somebody deleted the stream
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
