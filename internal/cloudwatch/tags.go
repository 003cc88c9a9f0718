package cloudwatch

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// TagResource adds tags to an alarm or a dashboard.
func (s *Service) TagResource(ctx context.Context, in *cloudwatch.TagResourceInput) (*cloudwatch.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceARN, func(tags []types.Tag) []types.Tag {
		return account.MergeTags(tags, in.Tags, keyAndValue)
	})
	return &cloudwatch.TagResourceOutput{}, err
}

// UntagResource removes tags from an alarm or a dashboard.
func (s *Service) UntagResource(ctx context.Context, in *cloudwatch.UntagResourceInput) (*cloudwatch.UntagResourceOutput, error) {
	err := s.retag(ctx, in.ResourceARN, func(tags []types.Tag) []types.Tag {
		return account.RemoveTags(tags, in.TagKeys, keyAndValue)
	})
	return &cloudwatch.UntagResourceOutput{}, err
}

// ListTagsForResource lists the tags of an alarm or a dashboard. AWS has an empty list of those that don't exist.
func (s *Service) ListTagsForResource(
	_ context.Context, in *cloudwatch.ListTagsForResourceInput,
) (*cloudwatch.ListTagsForResourceOutput, error) {
	view := s.store.View()
	alarm, dashboard, err := s.resource(view, in.ResourceARN)
	out := &cloudwatch.ListTagsForResourceOutput{Tags: []types.Tag{}}
	var gone *types.ResourceNotFoundException
	if errors.As(err, &gone) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if alarm != nil {
		out.Tags = append(out.Tags, alarm.Tags...)
		return out, nil
	}
	out.Tags = append(out.Tags, dashboard.Tags...)
	return out, nil
}

func (s *Service) retag(ctx context.Context, arn *string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		alarm, dashboard, err := s.resource(tx.View, arn)
		if err != nil {
			return err
		}
		if alarm != nil {
			c := *alarm
			c.Tags = change(alarm.Tags)
			tx.Alarms.Put(&c)
			return checkTags(c.Tags)
		}
		c := *dashboard
		c.Tags = change(dashboard.Tags)
		tx.Dashboards.Put(&c)
		return checkTags(c.Tags)
	})
}

// resource returns the alarm or the dashboard with an ARN.
func (s *Service) resource(view *state.View, arn *string) (*state.Alarm, *state.Dashboard, error) {
	if aws.ToString(arn) == "" {
		return nil, nil, missing("ResourceARN")
	}
	if name, ok := s.opts.ResourceOf("cloudwatch", "alarm:", *arn); ok {
		if a := view.Alarms.Get(name); a != nil {
			return a, nil, nil
		}
		return nil, nil, notFound("alarm", name)
	}
	if name, ok := s.opts.GlobalResourceOf("cloudwatch", "dashboard/", *arn); ok {
		if d := view.Dashboards.Get(name); d != nil {
			return nil, d, nil
		}
		return nil, nil, notFound("dashboard", name)
	}
	return nil, nil, invalid("The value %s for parameter ResourceARN is invalid: it isn't the ARN of an alarm or a dashboard here.", *arn)
}
