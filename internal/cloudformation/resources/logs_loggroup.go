package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// logGroup has the properties of AWS::Logs::LogGroup. Its physical ID is the name.
type logGroup struct {
	LogGroupName              *string `cfn:"create"`
	DeletionProtectionEnabled *bool
	LogGroupClass             types.LogGroupClass
	RetentionInDays           *int32
	Tags                      []Tag
}

var _ = add(&kind[*logGroup]{
	name:       "AWS::Logs::LogGroup",
	live:       liveLogGroup,
	list:       listLogGroups,
	identifier: []string{"LogGroupName"},
	attributes: []string{"Arn"},
	id:         func(s Step, g *logGroup) string { return s.named(g.LogGroupName, 512) },
	create: func(ctx context.Context, s Step, g *logGroup) (string, error) {
		name := s.named(g.LogGroupName, 512)
		in := &cloudwatchlogs.CreateLogGroupInput{
			LogGroupName:              &name,
			DeletionProtectionEnabled: g.DeletionProtectionEnabled,
			LogGroupClass:             g.LogGroupClass,
			Tags:                      tagMap(g.Tags),
		}
		if err := did[cloudwatchlogs.CreateLogGroupOutput](ctx, s, in); err != nil {
			return "", err
		}
		if err := retain(ctx, s, name, g); err != nil {
			return "", undo(ctx, s, name, g, deleteLogGroup, err)
		}
		return name, nil
	},
	update: func(ctx context.Context, s Step, name string, before, after *logGroup) error {
		if err := retain(ctx, s, name, after); err != nil {
			return err
		}
		arn := s.Account.ARN("logs", "log-group:"+name)
		return retag(before.Tags, after.Tags, func(gone []string) error {
			return did[cloudwatchlogs.UntagResourceOutput](ctx, s, &cloudwatchlogs.UntagResourceInput{ResourceArn: &arn, TagKeys: gone})
		}, func() error {
			return did[cloudwatchlogs.TagResourceOutput](ctx, s, &cloudwatchlogs.TagResourceInput{ResourceArn: &arn, Tags: tagMap(after.Tags)})
		})
	},
	delete: deleteLogGroup,
	read: func(ctx context.Context, s Step, name string, _ *logGroup) (Made, error) {
		in := &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name}
		out, err := call.Do[cloudwatchlogs.DescribeLogGroupsOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		if len(out.LogGroups) == 0 || *out.LogGroups[0].LogGroupName != name {
			return Made{}, errMissing
		}
		return Made{Attributes: map[string]any{"Arn": *out.LogGroups[0].Arn}}, nil
	},
})

func deleteLogGroup(ctx context.Context, s Step, name string, _ *logGroup) error {
	return did[cloudwatchlogs.DeleteLogGroupOutput](ctx, s, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &name})
}

// retain sets how long a group's events are kept.
func retain(ctx context.Context, s Step, name string, g *logGroup) error {
	if g.RetentionInDays == nil {
		in := &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: &name}
		return did[cloudwatchlogs.DeleteRetentionPolicyOutput](ctx, s, in)
	}
	in := &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &name, RetentionInDays: g.RetentionInDays}
	return did[cloudwatchlogs.PutRetentionPolicyOutput](ctx, s, in)
}

func liveLogGroup(ctx context.Context, s Step, name string, _ *logGroup) (*logGroup, error) {
	out, err := call.Do[cloudwatchlogs.DescribeLogGroupsOutput](ctx, s.Services, &cloudwatchlogs.DescribeLogGroupsInput{LogGroupNamePrefix: &name})
	if err != nil {
		return nil, err
	}
	if len(out.LogGroups) == 0 || *out.LogGroups[0].LogGroupName != name {
		return nil, errMissing
	}
	g := out.LogGroups[0]
	arn := s.Account.ARN("logs", "log-group:"+name)
	tags, err := call.Do[cloudwatchlogs.ListTagsForResourceOutput](ctx, s.Services, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: &arn})
	if err != nil {
		return nil, err
	}
	return &logGroup{
		LogGroupName:              g.LogGroupName,
		DeletionProtectionEnabled: g.DeletionProtectionEnabled,
		LogGroupClass:             g.LogGroupClass,
		RetentionInDays:           g.RetentionInDays,
		Tags:                      ownTagMap(tags.Tags),
	}, nil
}

func listLogGroups(ctx context.Context, s Step, _ *logGroup) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[cloudwatchlogs.DescribeLogGroupsOutput](ctx, s.Services, &cloudwatchlogs.DescribeLogGroupsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.LogGroups {
			ids = append(ids, *x.LogGroupName)
		}
		return ids, out.NextToken, nil
	})
}
