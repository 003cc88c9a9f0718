package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"

	"github.com/pintle/pintle/internal/wire/call"
)

// logStream has the properties of AWS::Logs::LogStream. Its physical ID is the name.
type logStream struct {
	LogGroupName  *string `cfn:"required,create"`
	LogStreamName *string `cfn:"create"`
}

var _ = add(&kind[*logStream]{
	name:       "AWS::Logs::LogStream",
	live:       liveLogStream,
	identifier: []string{"LogGroupName", "LogStreamName"},
	physical:   "LogStreamName",
	id:         func(s Step, l *logStream) string { return s.named(l.LogStreamName, 512) },
	create: func(ctx context.Context, s Step, l *logStream) (string, error) {
		name := s.named(l.LogStreamName, 512)
		in := &cloudwatchlogs.CreateLogStreamInput{LogGroupName: l.LogGroupName, LogStreamName: &name}
		return name, did[cloudwatchlogs.CreateLogStreamOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, name string, l *logStream) error {
		in := &cloudwatchlogs.DeleteLogStreamInput{LogGroupName: l.LogGroupName, LogStreamName: &name}
		return did[cloudwatchlogs.DeleteLogStreamOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, name string, l *logStream) (Made, error) {
		in := &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: l.LogGroupName, LogStreamNamePrefix: &name}
		out, err := call.Do[cloudwatchlogs.DescribeLogStreamsOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		if len(out.LogStreams) == 0 || *out.LogStreams[0].LogStreamName != name {
			return Made{}, errMissing
		}
		return Made{}, nil
	},
})

func liveLogStream(ctx context.Context, s Step, name string, l *logStream) (*logStream, error) {
	in := &cloudwatchlogs.DescribeLogStreamsInput{LogGroupName: l.LogGroupName, LogStreamNamePrefix: &name}
	out, err := call.Do[cloudwatchlogs.DescribeLogStreamsOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.LogStreams) == 0 || *out.LogStreams[0].LogStreamName != name {
		return nil, errMissing
	}
	return &logStream{LogGroupName: l.LogGroupName, LogStreamName: &name}, nil
}
