package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/logs/filterpattern"
	"github.com/pintle/pintle/internal/logs/streams"
)

// Limits of PutLogEvents: API_PutLogEvents.
const (
	maxBatchBytes = 1 << 20
	perEvent      = 26 // bytes that each event counts besides its text
	maxSpan       = 24 * time.Hour
	maxAge        = 14 * 24 * time.Hour
	maxAhead      = 2 * time.Hour
)

// PutLogEvents adds events to a stream. It leaves out events that are too old or too new, and lists them in the answer.
func (s *Service) PutLogEvents(ctx context.Context, in *cloudwatchlogs.PutLogEventsInput) (*cloudwatchlogs.PutLogEventsOutput, error) {
	if err := checkBatch(in.LogEvents); err != nil {
		return nil, err
	}
	g, err := s.store.Group(*in.LogGroupName)
	if err != nil {
		return nil, failure(err)
	}
	now := s.now()
	events, rejected := accept(in.LogEvents, now, g.RetentionDays)
	if err := s.store.HasStream(g.Name, *in.LogStreamName); err != nil {
		return nil, failure(err) // before anybody is told of the events
	}
	owed, err := s.owe(ctx, &batch{g, *in.LogStreamName, events})
	if err != nil {
		return nil, err
	}
	if err := s.store.Append(*in.LogGroupName, *in.LogStreamName, now, events); err != nil {
		return nil, errors.Join(failure(err), s.cancelDebts(ctx, owed))
	}
	return &cloudwatchlogs.PutLogEventsOutput{NextSequenceToken: aws.String(sequenceToken), RejectedLogEventsInfo: rejected}, nil
}

func checkBatch(events []types.InputLogEvent) error {
	size := 0
	for i, e := range events {
		if i > 0 && *e.Timestamp < *events[i-1].Timestamp {
			return invalidParameter("Log events in a single PutLogEvents request must be in chronological order.")
		}
		size += len(*e.Message) + perEvent
	}
	if size > maxBatchBytes {
		return invalidParameter("Upload too large: %d bytes exceeds limit of %d", size, maxBatchBytes)
	}
	if *events[len(events)-1].Timestamp-*events[0].Timestamp > maxSpan.Milliseconds() {
		return invalidParameter("The batch of log events in a single PutLogEvents request cannot span more than 24 hours.")
	}
	return nil
}

// accept drops events that AWS wouldn't take: older than 14 days or than the retention, or more than two hours in the future.
func accept(in []types.InputLogEvent, now int64, retentionDays int32) ([]streams.Event, *types.RejectedLogEventsInfo) {
	var out []streams.Event
	var rejected types.RejectedLogEventsInfo
	any := false
	for i, e := range in {
		age := now - *e.Timestamp
		switch {
		case age < -maxAhead.Milliseconds():
			if rejected.TooNewLogEventStartIndex == nil {
				rejected.TooNewLogEventStartIndex = aws.Int32(int32(i))
			}
			any = true
		case retentionDays > 0 && age > int64(retentionDays)*24*time.Hour.Milliseconds():
			rejected.ExpiredLogEventEndIndex = aws.Int32(int32(i + 1))
			any = true
		case age > maxAge.Milliseconds():
			rejected.TooOldLogEventEndIndex = aws.Int32(int32(i + 1))
			any = true
		default:
			out = append(out, streams.Event{Timestamp: *e.Timestamp, Message: *e.Message})
		}
	}
	if !any {
		return out, nil
	}
	return out, &rejected
}

// Limits on a page of events.
const (
	maxPage      = 10000
	maxPageBytes = 1 << 20
)

// GetLogEvents reads one stream. Its tokens go forward and backward. At either end they repeat.
func (s *Service) GetLogEvents(ctx context.Context, in *cloudwatchlogs.GetLogEventsInput) (*cloudwatchlogs.GetLogEventsOutput, error) {
	name, err := group(in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(aws.ToInt32(in.Limit)), maxPage)
	r := streams.Range{
		Streams:  []string{*in.LogStreamName},
		Start:    aws.ToInt64(in.StartTime),
		Limit:    limit,
		Backward: !aws.ToBool(in.StartFromHead),
	}
	if in.EndTime != nil {
		r.End = cmp.Or(*in.EndTime-1, -1) // EndTime itself is not included; a Range without an end has 0
	}
	if err := applyToken(&r, aws.ToString(in.NextToken)); err != nil {
		return nil, err
	}
	if err := s.applyRetention(name, &r); err != nil {
		return nil, err
	}
	events, _, err := s.store.Read(ctx, name, r)
	if err != nil {
		return nil, failure(err)
	}
	events, _ = cutPage(events)
	if r.Backward {
		slices.Reverse(events)
	}
	out := &cloudwatchlogs.GetLogEventsOutput{Events: []types.OutputLogEvent{}}
	for _, e := range events {
		out.Events = append(out.Events, types.OutputLogEvent{
			Timestamp:     aws.Int64(e.Timestamp),
			IngestionTime: aws.Int64(e.Ingested),
			Message:       aws.String(e.Message),
		})
	}
	out.NextForwardToken, out.NextBackwardToken = tokens(events, aws.ToString(in.NextToken))
	return out, nil
}

// cutPage limits the text on a page, and reports whether it cut events off.
func cutPage(events []streams.Event) ([]streams.Event, bool) {
	size := 0
	for i, e := range events {
		if size += len(e.Message) + perEvent; size > maxPageBytes && i > 0 {
			return events[:i], true
		}
	}
	return events, false
}

// A token is a direction and an event: the next page starts after the event, or before it.

func formatID(id streams.ID) string {
	return fmt.Sprintf("%013d.%09d.%012d.%05d", id.Timestamp, id.Segment, id.Offset, id.Index)
}

func parseID(s string) (id streams.ID, err error) {
	_, err = fmt.Sscanf(s, "%d.%d.%d.%d", &id.Timestamp, &id.Segment, &id.Offset, &id.Index)
	return id, err
}

// tokens returns the tokens of a page. An empty page repeats the caller's position.
func tokens(events []streams.Event, token string) (forward, backward *string) {
	if len(events) > 0 {
		return aws.String("f/" + formatID(events[len(events)-1].ID)), aws.String("b/" + formatID(events[0].ID))
	}
	_, at, ok := strings.Cut(token, "/")
	if !ok {
		at = formatID(streams.ID{})
	}
	return aws.String("f/" + at), aws.String("b/" + at)
}

func applyToken(r *streams.Range, token string) error {
	if token == "" {
		return nil
	}
	direction, at, _ := strings.Cut(token, "/")
	id, err := parseID(at)
	if err != nil || direction != "f" && direction != "b" {
		return badToken()
	}
	r.Backward = direction == "b"
	if r.Backward {
		r.Before = &id
	} else {
		r.After = &id
	}
	return nil
}

// applyRetention excludes expired events, even if they are still on disk.
func (s *Service) applyRetention(name string, r *streams.Range) error {
	g, err := s.store.Group(name)
	if err != nil {
		return failure(err)
	}
	if g.RetentionDays > 0 {
		r.Start = max(r.Start, s.now()-int64(g.RetentionDays)*24*time.Hour.Milliseconds())
	}
	return nil
}

// FilterLogEvents reads several streams of a group, merged by time, and returns the events that match the pattern.
func (s *Service) FilterLogEvents(
	ctx context.Context, in *cloudwatchlogs.FilterLogEventsInput,
) (*cloudwatchlogs.FilterLogEventsOutput, error) {
	name, err := group(in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(int(aws.ToInt32(in.Limit)), maxPage)
	pattern, err := filterpattern.Parse(aws.ToString(in.FilterPattern))
	if err != nil {
		return nil, invalidParameter("Invalid filter pattern: %v", err)
	}
	r := streams.Range{
		Start:    aws.ToInt64(in.StartTime),
		Limit:    limit,
		Keep:     func(e streams.Event) bool { return pattern.Match(e.Message) },
		Backward: in.StartFromHead != nil && !*in.StartFromHead,
	}
	if r.Backward && in.StartTime != nil && *in.StartTime < firstFromTail.UnixMilli() {
		return nil, invalidParameter("startFromHead can be false only where startTime is on or after %s.", firstFromTail.Format(time.DateOnly))
	}
	if in.EndTime != nil {
		r.End = max(*in.EndTime, 1)
	}
	if r.Streams, err = s.streamsOf(name, in.LogStreamNames, in.LogStreamNamePrefix); err != nil {
		return nil, err
	}
	if err := applyToken(&r, aws.ToString(in.NextToken)); err != nil {
		return nil, err
	}
	if err := s.applyRetention(name, &r); err != nil {
		return nil, err
	}
	events, more, err := s.store.Read(ctx, name, r)
	if err != nil {
		return nil, failure(err)
	}
	events, cut := cutPage(events)
	out := &cloudwatchlogs.FilterLogEventsOutput{Events: []types.FilteredLogEvent{}, SearchedLogStreams: []types.SearchedLogStream{}}
	for _, e := range events {
		out.Events = append(out.Events, types.FilteredLogEvent{
			EventId:       aws.String(eventID(e.ID)),
			IngestionTime: aws.Int64(e.Ingested),
			LogStreamName: aws.String(e.Stream),
			Message:       aws.String(e.Message),
			Timestamp:     aws.Int64(e.Timestamp),
		})
	}
	if more || cut {
		direction := "f/"
		if r.Backward {
			direction = "b/"
		}
		out.NextToken = aws.String(direction + formatID(events[len(events)-1].ID))
	}
	return out, nil
}

// firstFromTail is how far back FilterLogEvents goes where it begins with the latest events.
var firstFromTail = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// eventID returns the id as digits only, like AWS's, so that clients can compare ids as text.
func eventID(id streams.ID) string { return strings.ReplaceAll(formatID(id), ".", "") }

// streamsOf returns the streams that a call names, or nil for all.
func (s *Service) streamsOf(group string, names []string, prefix *string) ([]string, error) {
	if len(names) > 0 && prefix != nil {
		return nil, invalidParameter("logStreamNamePrefix and logStreamNames cannot both be given.")
	}
	if len(names) > 0 {
		return names, nil
	}
	if prefix == nil {
		return nil, nil
	}
	streams, err := s.store.Streams(group)
	if err != nil {
		return nil, failure(err)
	}
	out := []string{}
	for _, st := range streams {
		if strings.HasPrefix(st.Name, *prefix) {
			out = append(out, st.Name)
		}
	}
	return out, nil
}
