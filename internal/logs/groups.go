package logs

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/streams"
)

// CreateLogGroup creates a log group.
func (s *Service) CreateLogGroup(_ context.Context, in *cloudwatchlogs.CreateLogGroupInput) (*cloudwatchlogs.CreateLogGroupOutput, error) {
	if err := refuseReserved(in.Tags); err != nil {
		return nil, err
	}
	class := cmp.Or(in.LogGroupClass, types.LogGroupClassStandard)
	err := s.store.CreateGroup(streams.Group{
		Name:      *in.LogGroupName,
		CreatedAt: s.now(),
		Class:     string(class),
		KMSKeyID:  aws.ToString(in.KmsKeyId),
		Tags:      in.Tags,

		DeletionProtected: aws.ToBool(in.DeletionProtectionEnabled),
	})
	if errors.Is(err, streams.ErrExists) {
		return nil, &types.ResourceAlreadyExistsException{Message: aws.String("The specified log group already exists")}
	}
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.CreateLogGroupOutput{}, nil
}

// DeleteLogGroup deletes a log group and all its events.
func (s *Service) DeleteLogGroup(_ context.Context, in *cloudwatchlogs.DeleteLogGroupInput) (*cloudwatchlogs.DeleteLogGroupOutput, error) {
	if err := s.store.DeleteGroup(*in.LogGroupName); err != nil {
		return nil, deletionFailure(err)
	}
	s.filters.forget(*in.LogGroupName)
	return &cloudwatchlogs.DeleteLogGroupOutput{}, nil
}

// maxListed is the largest page of groups or streams, and the default.
const maxListed = 50

// DescribeLogGroups lists log groups by name.
func (s *Service) DescribeLogGroups(
	_ context.Context, in *cloudwatchlogs.DescribeLogGroupsInput,
) (*cloudwatchlogs.DescribeLogGroupsOutput, error) {
	pattern := aws.ToString(in.LogGroupNamePattern) // it may be empty
	if in.LogGroupNamePrefix != nil && pattern != "" {
		return nil, invalidParameter("LogGroup name prefix and LogGroup name pattern are mutually exclusive parameters.")
	}
	if len(in.LogGroupIdentifiers) > 0 && (in.LogGroupNamePrefix != nil || pattern != "" || in.LogGroupClass != "") {
		return nil, invalidParameter("logGroupIdentifiers can't be used with another filter.")
	}
	if len(in.AccountIdentifiers) > 0 && !aws.ToBool(in.IncludeLinkedAccounts) {
		return nil, invalidParameter("accountIdentifiers can only be used where includeLinkedAccounts is true.")
	}
	others := len(in.AccountIdentifiers) > 0 && !slices.Contains(in.AccountIdentifiers, s.opts.ID) // nothing is linked
	names := make([]string, len(in.LogGroupIdentifiers))
	for i, identifier := range in.LogGroupIdentifiers {
		names[i] = nameInArn(identifier)
	}
	groups := func(string) iter.Seq[streams.Group] { return slices.Values(s.store.Groups()) }
	page, next, err := account.Behind(listing("DescribeLogGroups", maxListed), in.Limit, in.NextToken, groups,
		func(g streams.Group) string { return g.Name },
		func(g streams.Group) bool {
			return !others && (len(names) == 0 || slices.Contains(names, g.Name)) &&
				strings.HasPrefix(g.Name, aws.ToString(in.LogGroupNamePrefix)) &&
				containsFold(g.Name, pattern) &&
				(in.LogGroupClass == "" || string(in.LogGroupClass) == g.Class)
		})
	if err != nil {
		return nil, err
	}
	out := &cloudwatchlogs.DescribeLogGroupsOutput{LogGroups: []types.LogGroup{}, NextToken: next}
	for _, g := range page {
		out.LogGroups = append(out.LogGroups, s.describeGroup(g))
	}
	return out, nil
}

func containsFold(s, sub string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(sub))
}

func (s *Service) describeGroup(g streams.Group) types.LogGroup {
	out := types.LogGroup{
		DeletionProtectionEnabled: &g.DeletionProtected,

		LogGroupName:      aws.String(g.Name),
		CreationTime:      aws.Int64(g.CreatedAt),
		Arn:               aws.String(s.groupArn(g.Name) + ":*"),
		LogGroupArn:       aws.String(s.groupArn(g.Name)),
		StoredBytes:       aws.Int64(g.Bytes),
		MetricFilterCount: aws.Int32(0),
		LogGroupClass:     types.LogGroupClass(g.Class),
	}
	if g.Filters != nil {
		out.MetricFilterCount = aws.Int32(int32(len(g.Filters.Metric)))
	}
	if g.RetentionDays > 0 {
		out.RetentionInDays = aws.Int32(g.RetentionDays)
	}
	if g.KMSKeyID != "" {
		out.KmsKeyId = aws.String(g.KMSKeyID)
	}
	return out
}

// retentions holds the numbers of days that AWS accepts: API_PutRetentionPolicy.
var retentions = []int32{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// PutRetentionPolicy sets how long a group's events are kept.
func (s *Service) PutRetentionPolicy(
	_ context.Context, in *cloudwatchlogs.PutRetentionPolicyInput,
) (*cloudwatchlogs.PutRetentionPolicyOutput, error) {
	days := aws.ToInt32(in.RetentionInDays)
	if !slices.Contains(retentions, days) {
		return nil, invalidParameter("retentionInDays must be one of %v, not %d.", retentions, days)
	}
	if err := s.store.UpdateGroup(*in.LogGroupName, setRetention(days)); err != nil {
		return nil, failure(err)
	}
	return &cloudwatchlogs.PutRetentionPolicyOutput{}, nil
}

// DeleteRetentionPolicy keeps a group's events forever.
func (s *Service) DeleteRetentionPolicy(
	_ context.Context, in *cloudwatchlogs.DeleteRetentionPolicyInput,
) (*cloudwatchlogs.DeleteRetentionPolicyOutput, error) {
	if err := s.store.UpdateGroup(*in.LogGroupName, setRetention(0)); err != nil {
		return nil, failure(err)
	}
	return &cloudwatchlogs.DeleteRetentionPolicyOutput{}, nil
}

func setRetention(days int32) func(*streams.Group) error {
	return func(g *streams.Group) error {
		g.RetentionDays = days
		return nil
	}
}

// TagResource adds tags to a log group.
func (s *Service) TagResource(_ context.Context, in *cloudwatchlogs.TagResourceInput) (*cloudwatchlogs.TagResourceOutput, error) {
	err := s.retag(in.ResourceArn, adding(in.Tags, func(message, group *string) error {
		return &types.TooManyTagsException{Message: message, ResourceName: group}
	}))
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.TagResourceOutput{}, nil
}

// UntagResource removes tags from a log group.
func (s *Service) UntagResource(_ context.Context, in *cloudwatchlogs.UntagResourceInput) (*cloudwatchlogs.UntagResourceOutput, error) {
	err := s.retag(in.ResourceArn, removing(in.TagKeys))
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.UntagResourceOutput{}, nil
}

// retag changes a group's tags.
func (s *Service) retag(arn *string, change func(name string, tags map[string]string) error) error {
	name := nameInArn(aws.ToString(arn))
	return failure(s.store.UpdateGroup(name, func(g *streams.Group) error {
		tags := maps.Clone(g.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		if err := change(name, tags); err != nil {
			return err
		}
		g.Tags = tags
		return nil
	}))
}

// adding returns a change that adds tags, or refuses if there would be too many. How, the operation knows.
func adding(more map[string]string, tooMany func(message, group *string) error) func(string, map[string]string) error {
	return func(name string, tags map[string]string) error {
		if err := refuseReserved(more); err != nil {
			return err
		}
		if maps.Copy(tags, more); len(tags) > account.MaxTags {
			return tooMany(aws.String("A log group can have at most 50 tags."), &name)
		}
		return nil
	}
}

// refuseReserved refuses tags with the prefix that is AWS's own.
func refuseReserved(tags map[string]string) error {
	if fault := account.CheckTags(account.TagMap(tags), account.MaxTags); fault != nil && fault.Rule == account.TagReserved {
		return &types.InvalidParameterException{Message: aws.String("aws: prefixed tag key names are not allowed for external use.")}
	}
	return nil
}

func removing(keys []string) func(string, map[string]string) error {
	return func(_ string, tags map[string]string) error {
		for _, k := range keys {
			delete(tags, k)
		}
		return nil
	}
}

// TagLogGroup is the older TagResource.
func (s *Service) TagLogGroup(_ context.Context, in *cloudwatchlogs.TagLogGroupInput) (*cloudwatchlogs.TagLogGroupOutput, error) {
	err := s.retag(in.LogGroupName, adding(in.Tags, func(message, _ *string) error {
		return &types.InvalidParameterException{Message: message}
	}))
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.TagLogGroupOutput{}, nil
}

// UntagLogGroup is the older UntagResource.
func (s *Service) UntagLogGroup(_ context.Context, in *cloudwatchlogs.UntagLogGroupInput) (*cloudwatchlogs.UntagLogGroupOutput, error) {
	err := s.retag(in.LogGroupName, removing(in.Tags))
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.UntagLogGroupOutput{}, nil
}

// ListTagsLogGroup is the older ListTagsForResource.
func (s *Service) ListTagsLogGroup(
	ctx context.Context, in *cloudwatchlogs.ListTagsLogGroupInput,
) (*cloudwatchlogs.ListTagsLogGroupOutput, error) {
	out, err := s.ListTagsForResource(ctx, &cloudwatchlogs.ListTagsForResourceInput{ResourceArn: in.LogGroupName})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.ListTagsLogGroupOutput{Tags: out.Tags}, nil
}

// ListTagsForResource lists the tags of a log group.
func (s *Service) ListTagsForResource(
	_ context.Context, in *cloudwatchlogs.ListTagsForResourceInput,
) (*cloudwatchlogs.ListTagsForResourceOutput, error) {
	g, err := s.store.Group(nameInArn(aws.ToString(in.ResourceArn)))
	if err != nil {
		return nil, failure(err)
	}
	tags := g.Tags
	if tags == nil {
		tags = map[string]string{}
	}
	return &cloudwatchlogs.ListTagsForResourceOutput{Tags: tags}, nil
}

// listing pages a list operation.
func listing(operation string, most int) account.List {
	return account.List{
		Kind: "logs:" + operation,
		Most: most,
		BadLimit: func(limit int) error {
			return invalidParameter(
				"1 validation error detected: Value '%d' at 'limit' failed to satisfy constraint: Member must have value between 1 and %d",
				limit, most,
			)
		},
		BadToken: badToken,
	}
}

func badToken() error { return invalidParameter("The specified nextToken is invalid.") }
