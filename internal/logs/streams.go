package logs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/streams"
)

// CreateLogStream creates a log stream.
func (s *Service) CreateLogStream(
	_ context.Context, in *cloudwatchlogs.CreateLogStreamInput,
) (*cloudwatchlogs.CreateLogStreamOutput, error) {
	err := s.store.CreateStream(*in.LogGroupName, *in.LogStreamName, s.now())
	if errors.Is(err, streams.ErrExists) {
		return nil, &types.ResourceAlreadyExistsException{Message: aws.String("The specified log stream already exists")}
	}
	if err != nil {
		return nil, failure(err)
	}
	return &cloudwatchlogs.CreateLogStreamOutput{}, nil
}

// DeleteLogStream deletes a log stream and all its events.
func (s *Service) DeleteLogStream(
	_ context.Context, in *cloudwatchlogs.DeleteLogStreamInput,
) (*cloudwatchlogs.DeleteLogStreamOutput, error) {
	if err := s.store.DeleteStream(*in.LogGroupName, *in.LogStreamName); err != nil {
		return nil, deletionFailure(err)
	}
	return &cloudwatchlogs.DeleteLogStreamOutput{}, nil
}

// DescribeLogStreams lists a group's streams, by name or by last event time.
func (s *Service) DescribeLogStreams(
	_ context.Context, in *cloudwatchlogs.DescribeLogStreamsInput,
) (*cloudwatchlogs.DescribeLogStreamsOutput, error) {
	name, err := group(in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	byTime := in.OrderBy == types.OrderByLastEventTime
	if byTime && in.LogStreamNamePrefix != nil {
		return nil, invalidParameter("Cannot order by LastEventTime with a logStreamNamePrefix.")
	}
	found, err := s.store.Streams(name)
	if err != nil {
		return nil, failure(err)
	}
	found = slices.DeleteFunc(found, func(st streams.Stream) bool {
		return !strings.HasPrefix(st.Name, aws.ToString(in.LogStreamNamePrefix))
	})
	if byTime {
		slices.SortStableFunc(found, func(a, b streams.Stream) int { return cmp.Compare(a.Last, b.Last) })
	}
	l := listing("DescribeLogStreams", maxListed)
	if l.Descending = aws.ToBool(in.Descending); l.Descending {
		slices.Reverse(found)
	}
	paged := account.Sorted[streams.Stream]
	if byTime {
		paged = account.Ordered
	}
	page, next, err := paged(l, found, in.Limit, in.NextToken, func(st streams.Stream) string { return st.Name })
	if err != nil {
		return nil, err
	}
	out := &cloudwatchlogs.DescribeLogStreamsOutput{LogStreams: []types.LogStream{}, NextToken: next}
	for _, st := range page {
		out.LogStreams = append(out.LogStreams, s.describeStream(name, st))
	}
	return out, nil
}

func (s *Service) describeStream(group string, st streams.Stream) types.LogStream {
	out := types.LogStream{
		LogStreamName: aws.String(st.Name),
		CreationTime:  aws.Int64(st.CreatedAt),
		StoredBytes:   aws.Int64(0), // as on AWS, where it's always 0 since 2019
		Arn:           aws.String(s.groupArn(group) + ":log-stream:" + st.Name),
	}
	if st.First > 0 {
		out.UploadSequenceToken = aws.String(sequenceToken) // which a stream without events lacks
		out.FirstEventTimestamp = aws.Int64(st.First)
		out.LastEventTimestamp = aws.Int64(st.Last)
		out.LastIngestionTime = aws.Int64(st.LastIngestion)
	}
	return out
}

// sequenceToken exists only because old clients want one. As on AWS, nobody checks it.
const sequenceToken = "49590302938929479301237842347234"
