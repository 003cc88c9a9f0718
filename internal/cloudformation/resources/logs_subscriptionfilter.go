package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// subscriptionFilter has the properties of AWS::Logs::SubscriptionFilter. Its physical ID is the name.
type subscriptionFilter struct {
	LogGroupName           *string `cfn:"required,create"`
	FilterName             *string `cfn:"create"`
	ApplyOnTransformedLogs bool
	DestinationArn         *string `cfn:"required"`
	Distribution           types.Distribution
	EmitSystemFields       []string
	FieldSelectionCriteria *string
	FilterPattern          *string `cfn:"required"`
	RoleArn                *string
}

var _ = add(&kind[*subscriptionFilter]{
	name:       "AWS::Logs::SubscriptionFilter",
	live:       liveSubscriptionFilter,
	identifier: []string{"LogGroupName", "FilterName"},
	physical:   "FilterName",
	id:         func(s Step, f *subscriptionFilter) string { return s.named(f.FilterName, 512) },
	create: func(ctx context.Context, s Step, f *subscriptionFilter) (string, error) {
		name := s.named(f.FilterName, 512)
		return name, putSubscriptionFilter(ctx, s, name, f)
	},
	update: func(ctx context.Context, s Step, name string, _, after *subscriptionFilter) error {
		return putSubscriptionFilter(ctx, s, name, after)
	},
	delete: func(ctx context.Context, s Step, name string, f *subscriptionFilter) error {
		in := &cloudwatchlogs.DeleteSubscriptionFilterInput{LogGroupName: f.LogGroupName, FilterName: &name}
		return did[cloudwatchlogs.DeleteSubscriptionFilterOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, name string, f *subscriptionFilter) (Made, error) {
		_, err := liveSubscriptionFilter(ctx, s, name, f)
		return Made{}, err
	},
})

func putSubscriptionFilter(ctx context.Context, s Step, name string, f *subscriptionFilter) error {
	return did[cloudwatchlogs.PutSubscriptionFilterOutput](ctx, s, &cloudwatchlogs.PutSubscriptionFilterInput{
		LogGroupName:           f.LogGroupName,
		FilterName:             &name,
		ApplyOnTransformedLogs: f.ApplyOnTransformedLogs,
		DestinationArn:         f.DestinationArn,
		Distribution:           f.Distribution,
		EmitSystemFields:       f.EmitSystemFields,
		FieldSelectionCriteria: f.FieldSelectionCriteria,
		FilterPattern:          f.FilterPattern,
		RoleArn:                f.RoleArn,
	})
}

func liveSubscriptionFilter(ctx context.Context, s Step, name string, f *subscriptionFilter) (*subscriptionFilter, error) {
	in := &cloudwatchlogs.DescribeSubscriptionFiltersInput{LogGroupName: f.LogGroupName, FilterNamePrefix: &name}
	out, err := call.Do[cloudwatchlogs.DescribeSubscriptionFiltersOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	if len(out.SubscriptionFilters) == 0 || *out.SubscriptionFilters[0].FilterName != name {
		return nil, errMissing
	}
	is := out.SubscriptionFilters[0]
	return &subscriptionFilter{
		LogGroupName:           is.LogGroupName,
		FilterName:             is.FilterName,
		ApplyOnTransformedLogs: is.ApplyOnTransformedLogs,
		DestinationArn:         is.DestinationArn,
		Distribution:           is.Distribution,
		EmitSystemFields:       is.EmitSystemFields,
		FieldSelectionCriteria: is.FieldSelectionCriteria,
		FilterPattern:          is.FilterPattern,
		RoleArn:                is.RoleArn,
	}, nil
}
