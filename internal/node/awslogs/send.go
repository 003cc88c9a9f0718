package awslogs

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/node/runtime"
)

// The limits of one call (API_PutLogEvents).
const (
	maxEvents  = 10000
	maxBytes   = 1 << 20
	eventBytes = 26 // the overhead of each event
	maxEvent   = 256<<10 - eventBytes
	maxSpan    = 24 * time.Hour
)

// How long a line may wait for others. The first batch is sent sooner, since somebody may be waiting to see it.
const (
	firstFlush = 200 * time.Millisecond
	laterFlush = time.Second
)

// event is one log event, before it's cut to the maximum length.
type event struct {
	at     time.Time
	text   string
	cursor string // after its last line
}

// sender gathers events into batches and puts them.
type sender struct {
	to     destination
	joiner joiner
	saved  func(cursor string)

	events []types.InputLogEvent
	bytes  int
	oldest time.Time
	cursor string
	puts   int
}

// run sends lines until the channel is closed or ctx ends.
func (s *sender) run(ctx context.Context, lines <-chan runtime.Line) error {
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-due:
			due = nil
			if err := s.flush(ctx); err != nil {
				return err
			}
			if s.joiner.hasOpen() {
				due = time.After(laterFlush)
			}
		case l, ok := <-lines:
			if !ok {
				s.joiner.end()
				return s.flush(ctx)
			}
			if due == nil {
				due = time.After(s.delay())
			}
			s.joiner.add(l)
			if err := s.gather(ctx); err != nil {
				return err
			}
		}
	}
}

func (s *sender) delay() time.Duration {
	if s.puts == 0 {
		return firstFlush
	}
	return laterFlush
}

// gather moves the finished events to the batch, and puts batches that are full.
func (s *sender) gather(ctx context.Context) error {
	for _, e := range s.joiner.take() {
		text := e.text
		for len(text) > 0 { // CloudWatch Logs accepts no empty events, and none over maxEvent
			n := cut(text)
			if s.isFull(e.at, n) {
				if err := s.put(ctx); err != nil {
					return err
				}
			}
			s.append(e.at, text[:n])
			text = text[n:]
		}
		s.cursor = e.cursor // not earlier, since we can't resume inside an event
	}
	return nil
}

// cut returns how many bytes of a text go into one event, without splitting a character.
func cut(text string) int {
	if len(text) <= maxEvent {
		return len(text)
	}
	n := maxEvent
	for n > maxEvent-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// isFull reports whether an event of n bytes doesn't fit into the batch any more.
func (s *sender) isFull(at time.Time, n int) bool {
	return len(s.events) == maxEvents || s.bytes+n+eventBytes > maxBytes || len(s.events) > 0 && at.Sub(s.oldest) >= maxSpan
}

func (s *sender) append(at time.Time, text string) {
	if len(s.events) == 0 {
		s.oldest = at
	}
	ms := at.UnixMilli()
	s.events = append(s.events, types.InputLogEvent{Message: &text, Timestamp: &ms})
	s.bytes += len(text) + eventBytes
}

// flush puts the batch, including events that have waited long enough for another line.
func (s *sender) flush(ctx context.Context) error {
	s.joiner.age()
	if err := s.gather(ctx); err != nil {
		return err
	}
	return s.put(ctx)
}

// put puts the batch. If CloudWatch Logs permanently refuses it, put logs that and drops it, so that later batches still get through.
func (s *sender) put(ctx context.Context) error {
	if len(s.events) > 0 {
		slices.SortStableFunc(s.events, func(a, b types.InputLogEvent) int { return int(*a.Timestamp - *b.Timestamp) })
		if err := s.putBatch(ctx); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.to.log.Error(
				"lost log events that CloudWatch Logs refused", "log_group", s.to.group, "events", len(s.events), "error", err,
			)
		}
		s.puts++
	}
	s.events = nil
	s.bytes = 0
	if s.cursor != "" {
		s.saved(s.cursor)
		s.cursor = ""
	}
	return nil
}

func (s *sender) putBatch(ctx context.Context) error {
	call := func() error {
		_, err := s.to.client.PutLogEvents(ctx, &cloudwatchlogs.PutLogEventsInput{
			LogGroupName: &s.to.group, LogStreamName: &s.to.stream, LogEvents: s.events,
		}, s.to.setRegion)
		return err
	}
	err := retry(ctx, call)
	if !hasCode(err, "ResourceNotFoundException") {
		return err
	}
	if err := s.to.create(ctx); err != nil { // somebody deleted the group or the stream
		return err
	}
	return retry(ctx, call)
}
