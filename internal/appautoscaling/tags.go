package appautoscaling

import (
	"context"
	"maps"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

var targetARN = regexp.MustCompile(`^arn:.+:application-autoscaling:.+:[0-9]+:scalable-target/[a-zA-Z0-9-]+$`)

func checkTags(tags map[string]string) error {
	fault := account.CheckTags(account.TagMap(tags), len(tags)) // how many there may be, the operations know
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TagKeyLength:
		return invalid("The tag key %q in tags must have between 1 and %d characters", fault.Key, account.MaxTagKey)
	case account.TagValueLength:
		return invalid("The value of tag %q in tags must have at most %d characters", fault.Key, account.MaxTagValue)
	}
	return invalid("The tag key %q in tags begins with aws:, which is reserved", fault.Key)
}

// TagResource adds tags to a scalable target, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *api.TagResourceInput) (*api.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceARN, func(tags map[string]string) error {
		maps.Copy(tags, in.Tags)
		if len(tags) > account.MaxTags {
			return &types.TooManyTagsException{
				Message:      account.Message("The scalable target would have %d tags, at most %d are allowed", len(tags), account.MaxTags),
				ResourceName: in.ResourceARN,
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.TagResourceOutput{}, nil
}

// UntagResource removes tags from a scalable target.
func (s *Service) UntagResource(ctx context.Context, in *api.UntagResourceInput) (*api.UntagResourceOutput, error) {
	err := s.retag(ctx, in.ResourceARN, func(tags map[string]string) error {
		for _, key := range in.TagKeys {
			delete(tags, key)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.UntagResourceOutput{}, nil
}

// ListTagsForResource lists the tags of a scalable target.
func (s *Service) ListTagsForResource(_ context.Context, in *api.ListTagsForResourceInput) (*api.ListTagsForResourceOutput, error) {
	row, err := byARN(s.store.View(), in.ResourceARN)
	if err != nil {
		return nil, err
	}
	tags := maps.Clone(row.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	return &api.ListTagsForResourceOutput{Tags: tags}, nil
}

// retag changes the tags of the target with an ARN.
func (s *Service) retag(ctx context.Context, arn *string, change func(map[string]string) error) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := byARN(tx.View, arn)
		if err != nil {
			return err
		}
		row := *old
		if row.Tags = maps.Clone(old.Tags); row.Tags == nil {
			row.Tags = map[string]string{}
		}
		if err := change(row.Tags); err != nil {
			return err
		}
		tx.ScalableTargets.Put(&row)
		return nil
	})
}

// byARN returns the target with an ARN.
func byARN(v *state.View, arn *string) (*state.ScalableTarget, error) {
	if !targetARN.MatchString(aws.ToString(arn)) {
		return nil, invalid("resourceARN %q is not the ARN of a scalable target", aws.ToString(arn))
	}
	for row := range v.ScalableTargets.All() {
		if *row.ScalableTargetARN == *arn {
			return row, nil
		}
	}
	return nil, resourceNotFound(*arn)
}
