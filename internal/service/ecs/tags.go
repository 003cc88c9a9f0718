package ecs

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// The limits of tags: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-using-tags.html
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// checkTags refuses tags that ECS would refuse, naming the one.
func checkTags(tags []types.Tag) error {
	if len(tags) > maxTags {
		return invalidParameter("tags has %d members, at most %d are allowed.", len(tags), maxTags)
	}
	seen := map[string]bool{}
	for _, t := range tags {
		key, value := aws.ToString(t.Key), aws.ToString(t.Value)
		switch {
		case key == "" || utf8.RuneCountInString(key) > maxTagKey:
			return invalidParameter("The tag key %q must have between 1 and %d characters.", key, maxTagKey)
		case utf8.RuneCountInString(value) > maxTagValue:
			return invalidParameter("The value of tag %q must have at most %d characters.", key, maxTagValue)
		case strings.HasPrefix(strings.ToLower(key), "aws:"):
			return invalidParameter("The tag key %q begins with aws:, which is reserved.", key)
		case seen[key]:
			return invalidParameter("The tag key %q is given twice.", key)
		}
		seen[key] = true
	}
	return nil
}

// mergeTags puts the new tags over the old ones.
func mergeTags(old, add []types.Tag) []types.Tag {
	out := slices.DeleteFunc(slices.Clone(old), func(t types.Tag) bool {
		return slices.ContainsFunc(add, func(a types.Tag) bool { return aws.ToString(a.Key) == aws.ToString(t.Key) })
	})
	return append(out, add...)
}

func withoutTags(old []types.Tag, keys []string) []types.Tag {
	return slices.DeleteFunc(slices.Clone(old), func(t types.Tag) bool { return slices.Contains(keys, aws.ToString(t.Key)) })
}

// TagResource adds tags to a resource, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *ecs.TagResourceInput) (*ecs.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceArn, func(old []types.Tag) ([]types.Tag, error) {
		tags := mergeTags(old, in.Tags)
		return tags, checkTags(tags)
	})
	if err != nil {
		return nil, err
	}
	return &ecs.TagResourceOutput{}, nil
}

// UntagResource removes tags from a resource.
func (s *Service) UntagResource(ctx context.Context, in *ecs.UntagResourceInput) (*ecs.UntagResourceOutput, error) {
	err := s.retag(ctx, in.ResourceArn, func(old []types.Tag) ([]types.Tag, error) {
		return withoutTags(old, in.TagKeys), nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UntagResourceOutput{}, nil
}

// ListTagsForResource lists the tags of a resource.
func (s *Service) ListTagsForResource(_ context.Context, in *ecs.ListTagsForResourceInput) (*ecs.ListTagsForResourceOutput, error) {
	arn := aws.ToString(in.ResourceArn)
	v := s.store.View()
	var tags []types.Tag
	switch resourceType(arn) {
	case "cluster":
		if c := v.Clusters.Get(arn); c != nil {
			return tagsOutput(c.Tags), nil
		}
	case "task-definition":
		if t := v.TaskDefinitions.Get(arn); t != nil {
			return tagsOutput(t.Tags), nil
		}
	case "task":
		if t := v.Tasks.Get(arn); t != nil {
			return tagsOutput(t.Tags), nil
		}
	case "service":
		if row := v.Services.Get(arn); row != nil && *row.Status != state.ServiceInactive {
			return tagsOutput(row.Tags), nil
		}
	case "container-instance":
		if c := v.ContainerInstances.Get(arn); c != nil {
			return tagsOutput(c.Tags), nil
		}
	case "capacity-provider":
		if p := s.provider(v, arn); p != nil {
			return tagsOutput(p.Tags), nil
		}
	default:
		return tagsOutput(tags), noSuchArn(arn)
	}
	return nil, resourceNotFound("The specified resource %s is not found.", arn)
}

func tagsOutput(tags []types.Tag) *ecs.ListTagsForResourceOutput {
	if tags == nil {
		tags = []types.Tag{}
	}
	return &ecs.ListTagsForResourceOutput{Tags: tags}
}

// retag changes the tags of the row that the ARN names.
func (s *Service) retag(ctx context.Context, resourceArn *string, change func([]types.Tag) ([]types.Tag, error)) error {
	arn := aws.ToString(resourceArn)
	return s.store.Update(ctx, func(tx *state.Tx) (err error) {
		switch resourceType(arn) {
		case "cluster":
			if row, ok := clone(tx.Clusters.Get(arn)); ok {
				row.Tags, err = change(row.Tags)
				tx.Clusters.Put(row)
				return err
			}
		case "task-definition":
			if row, ok := clone(tx.TaskDefinitions.Get(arn)); ok {
				row.Tags, err = change(row.Tags)
				tx.TaskDefinitions.Put(row)
				return err
			}
		case "task":
			if row, ok := clone(tx.Tasks.Get(arn)); ok {
				row.Tags, err = change(row.Tags)
				tx.Tasks.Put(row)
				return err
			}
		case "service":
			if row, ok := clone(tx.Services.Get(arn)); ok && *row.Status != state.ServiceInactive {
				row.Tags, err = change(row.Tags)
				tx.Services.Put(row)
				return err
			}
		case "container-instance":
			if row, ok := clone(tx.ContainerInstances.Get(arn)); ok {
				row.Tags, err = change(row.Tags)
				tx.ContainerInstances.Put(row)
				return err
			}
		case "capacity-provider":
			if row, ok := clone(tx.CapacityProviders.Get(arn)); ok {
				row.Tags, err = change(row.Tags)
				tx.CapacityProviders.Put(row)
				return err
			}
		default:
			return noSuchArn(arn)
		}
		return resourceNotFound("The specified resource %s is not found.", arn)
	})
}

func noSuchArn(arn string) error {
	return invalidParameter("resourceArn %q is not the ARN of a cluster, service, task definition, task, container instance or capacity provider.", arn)
}

// resourceType is the kind of resource that an ECS ARN names: "task", "cluster" …
func resourceType(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 || parts[0] != "arn" || parts[2] != "ecs" {
		return ""
	}
	kind, _, _ := strings.Cut(parts[5], "/")
	return kind
}

// clone copies a row, so that the copy can be changed and put.
func clone[R any](row *R) (*R, bool) {
	if row == nil {
		return nil, false
	}
	c := *row
	return &c, true
}
