// Package awslogs is the log driver of that name: it sends a container's output to CloudWatch Logs, in
// batches, and notes how far it came once a batch was taken for good. Where a crash comes between the
// two, the batch is sent again: lines may come twice, none is lost. Its options are Docker's:
// https://docs.docker.com/engine/logging/drivers/awslogs/
package awslogs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
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

// destination is where a container's output goes.
type destination struct {
	client        Client
	group, stream string
	region        string
	log           *slog.Logger
}

func (d *Driver) destination(c *engine.LogSource) destination {
	out := destination{client: d.client, group: c.Options["awslogs-group"], stream: c.ID, region: c.Options["awslogs-region"], log: d.log.With("container", c.ID)}
	if p := c.Options["awslogs-stream-prefix"]; p != "" {
		out.stream = p + "/" + c.Container + "/" + c.TaskArn[strings.LastIndexByte(c.TaskArn, '/')+1:]
	}
	out.stream = cmp.Or(c.Options["awslogs-stream"], out.stream)
	return out
}

// in has a call made in the container's own region, where it names one.
func (d destination) in(o *cloudwatchlogs.Options) { o.Region = cmp.Or(d.region, o.Region) }

// prepareTimeout is how long a container's start waits for a control plane that does not answer.
const prepareTimeout = 2 * time.Minute

// Prepare makes the container's stream, and its group where that may be. The note says so.
func (d *Driver) Prepare(ctx context.Context, c *engine.LogSource) (note string, err error) {
	to := d.destination(c)
	if to.group == "" {
		return "", errors.New("the log driver awslogs needs the option awslogs-group")
	}
	if _, err := newJoiner(c.Options); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	err = to.createStream(ctx)
	if !is(err, "ResourceNotFoundException") {
		return "", err
	}
	if c.Options["awslogs-create-group"] != "true" {
		if d.strict {
			return "", fmt.Errorf("the log group %s does not exist: create it, or set awslogs-create-group", to.group)
		}
		note = fmt.Sprintf("the log group %s did not exist and was made; on AWS the task would have failed", to.group)
		to.log.Info(note)
	}
	return note, to.create(ctx)
}

// create makes the group and the stream.
func (d destination) create(ctx context.Context) error {
	err := retry(ctx, func() error {
		_, err := d.client.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &d.group}, d.in)
		return err
	})
	if err != nil && !is(err, "ResourceAlreadyExistsException") {
		return err
	}
	return d.createStream(ctx)
}

func (d destination) createStream(ctx context.Context) error {
	err := retry(ctx, func() error {
		_, err := d.client.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: &d.group, LogStreamName: &d.stream}, d.in)
		return err
	})
	if is(err, "ResourceAlreadyExistsException") {
		return nil
	}
	return err
}

func is(err error, code string) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == code
}

// final are the errors that trying again does not help. All others pass in time: a control plane that
// is away comes back, and one that throttles gets less to do.
var final = []string{"ResourceNotFoundException", "ResourceAlreadyExistsException", "InvalidParameterException", "LimitExceededException", "AccessDeniedException"}

// retry makes a call, and tries again for as long as that can help, up to ctx's end.
func retry(ctx context.Context, call func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		err := call()
		if err == nil || slices.ContainsFunc(final, func(code string) bool { return is(err, code) }) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// Ship implements engine.Shipper.
func (d *Driver) Ship(ctx context.Context, c *engine.LogSource, cursor string, saved func(string)) error {
	joiner, err := newJoiner(c.Options)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
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
	s := &sender{to: d.destination(c), joiner: joiner, saved: saved}
	if err := s.run(ctx, lines); err != nil {
		return err
	}
	return <-read
}
