// Package awslogs is the awslogs log driver. It sends a container's output to CloudWatch Logs in batches, and saves its position once a
// batch is accepted. After a crash between the two it sends the batch again, so lines may arrive twice but none are lost. Its options are
// Docker's:
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

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
)

// Client is the part of the CloudWatch Logs client that the driver uses.
type Client interface {
	CreateLogGroup(
		context.Context, *cloudwatchlogs.CreateLogGroupInput, ...func(*cloudwatchlogs.Options),
	) (*cloudwatchlogs.CreateLogGroupOutput, error)
	CreateLogStream(
		context.Context, *cloudwatchlogs.CreateLogStreamInput, ...func(*cloudwatchlogs.Options),
	) (*cloudwatchlogs.CreateLogStreamOutput, error)
	PutLogEvents(
		context.Context, *cloudwatchlogs.PutLogEventsInput, ...func(*cloudwatchlogs.Options),
	) (*cloudwatchlogs.PutLogEventsOutput, error)
}

// Driver is an engine.Shipper.
type Driver struct {
	client Client
	strict bool
	log    *slog.Logger
}

var _ engine.Shipper = (*Driver)(nil)

// New returns the driver. If it's strict, a missing log group fails the container, as on AWS. Otherwise the driver creates the group and
// says so.
func New(client Client, strict bool, log *slog.Logger) *Driver { return &Driver{client, strict, log} }

// destination is where a container's output goes.
type destination struct {
	client Client
	group  string
	stream string
	region string // "" for the client's
	log    *slog.Logger
}

func (d *Driver) destination(c *engine.LogSource) destination {
	return destination{
		client: d.client,
		group:  c.Options["awslogs-group"],
		stream: acs.LogStream(c.Options, c.ID, c.Container, c.TaskArn[strings.LastIndexByte(c.TaskArn, '/')+1:]),
		region: c.Options["awslogs-region"],
		log:    d.log.With("container", c.ID),
	}
}

// setRegion makes a call in the region that the container names, if any.
func (d destination) setRegion(o *cloudwatchlogs.Options) { o.Region = cmp.Or(d.region, o.Region) }

// prepareTimeout is how long a container's start waits for a control plane that doesn't answer.
const prepareTimeout = 2 * time.Minute

// Prepare creates the container's stream, and its group if that's missing and may be created. The note says when AWS would have failed the
// task for the missing group.
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
	if !hasCode(err, "ResourceNotFoundException") {
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
		_, err := d.client.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: &d.group}, d.setRegion)
		return err
	})
	if err != nil && !hasCode(err, "ResourceAlreadyExistsException") {
		return err
	}
	return d.createStream(ctx)
}

func (d destination) createStream(ctx context.Context) error {
	err := retry(ctx, func() error {
		_, err := d.client.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{
			LogGroupName:  &d.group,
			LogStreamName: &d.stream,
		}, d.setRegion)
		return err
	})
	if hasCode(err, "ResourceAlreadyExistsException") {
		return nil
	}
	return err
}

func hasCode(err error, code string) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == code
}

// permanent lists the error codes for which retrying doesn't help. All other errors pass in time: a control plane that is down comes back,
// and one that throttles gets less to do.
var permanent = []string{
	"ResourceNotFoundException", "ResourceAlreadyExistsException", "InvalidParameterException", "LimitExceededException",
	"AccessDeniedException",
}

// retry makes a call, and repeats it until it succeeds, fails permanently, or ctx ends.
func retry(ctx context.Context, call func() error) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		err := call()
		if err == nil || slices.ContainsFunc(permanent, func(code string) bool { return hasCode(err, code) }) {
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
	lines, read := c.Follow(ctx, cursor, 256)
	s := &sender{to: d.destination(c), joiner: joiner, saved: saved}
	if err := s.run(ctx, lines); err != nil {
		return err
	}
	return <-read
}
