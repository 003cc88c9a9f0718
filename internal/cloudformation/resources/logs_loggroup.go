package resources

import (
	"context"
	"maps"

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
		if _, err := call.Do[cloudwatchlogs.CreateLogGroupOutput](ctx, s.Services, in); err != nil {
			return "", err
		}
		return name, retain(ctx, s, name, g)
	},
	update: func(ctx context.Context, s Step, name string, before, after *logGroup) error {
		if err := retain(ctx, s, name, after); err != nil {
			return err
		}
		arn := s.Account.ARN("logs", "log-group:"+name)
		if gone := removed(before.Tags, after.Tags); len(gone) > 0 {
			in := &cloudwatchlogs.UntagResourceInput{ResourceArn: &arn, TagKeys: gone}
			if _, err := call.Do[cloudwatchlogs.UntagResourceOutput](ctx, s.Services, in); err != nil {
				return err
			}
		}
		if len(after.Tags) == 0 || maps.Equal(tagMap(before.Tags), tagMap(after.Tags)) {
			return nil
		}
		in := &cloudwatchlogs.TagResourceInput{ResourceArn: &arn, Tags: tagMap(after.Tags)}
		_, err := call.Do[cloudwatchlogs.TagResourceOutput](ctx, s.Services, in)
		return err
	},
	delete: func(ctx context.Context, s Step, name string, _ *logGroup) error {
		_, err := call.Do[cloudwatchlogs.DeleteLogGroupOutput](ctx, s.Services, &cloudwatchlogs.DeleteLogGroupInput{LogGroupName: &name})
		return err
	},
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

// retain sets how long a group's events are kept.
func retain(ctx context.Context, s Step, name string, g *logGroup) error {
	if g.RetentionInDays == nil {
		in := &cloudwatchlogs.DeleteRetentionPolicyInput{LogGroupName: &name}
		_, err := call.Do[cloudwatchlogs.DeleteRetentionPolicyOutput](ctx, s.Services, in)
		return err
	}
	in := &cloudwatchlogs.PutRetentionPolicyInput{LogGroupName: &name, RetentionInDays: g.RetentionInDays}
	_, err := call.Do[cloudwatchlogs.PutRetentionPolicyOutput](ctx, s.Services, in)
	return err
}
