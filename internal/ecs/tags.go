package ecs

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// keyAndValue takes a tag apart for package account.
func keyAndValue(t types.Tag) (key, value *string) { return t.Key, t.Value }

// checkTags refuses the tags that ECS refuses. The error names the first bad one.
func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, keyAndValue), account.MaxTags)
	if fault == nil {
		return nil
	}
	switch fault.Rule {
	case account.TooManyTags:
		return invalidParameter("tags has %d members, at most %d are allowed.", len(tags), account.MaxTags)
	case account.TagKeyLength:
		return invalidParameter("The tag key %q must have between 1 and %d characters.", fault.Key, account.MaxTagKey)
	case account.TagValueLength:
		return invalidParameter("The value of tag %q must have at most %d characters.", fault.Key, account.MaxTagValue)
	case account.TagReserved:
		return reservedTag(fault.Key)
	}
	return invalidParameter("The tag key %q is given twice.", fault.Key)
}

func reservedTag(key string) error {
	return invalidParameter("The tag key %q begins with aws:, which is reserved.", key)
}

// isManaged reports whether a tag is ECS's own. Users neither change nor remove those, and the limit of a resource's tags doesn't
// count them: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-using-tags.html
func isManaged(t types.Tag) bool { return account.IsSystemTag(t.Key) }

// TagResource adds tags to a resource, or changes their values.
func (s *Service) TagResource(ctx context.Context, in *ecs.TagResourceInput) (*ecs.TagResourceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.ResourceArn, func(old []types.Tag) ([]types.Tag, error) {
		tags := account.MergeTags(old, in.Tags, keyAndValue)
		return tags, checkTags(slices.DeleteFunc(slices.Clone(tags), isManaged))
	})
	if err != nil {
		return nil, err
	}
	return &ecs.TagResourceOutput{}, nil
}

// UntagResource removes tags from a resource.
func (s *Service) UntagResource(ctx context.Context, in *ecs.UntagResourceInput) (*ecs.UntagResourceOutput, error) {
	for _, key := range in.TagKeys {
		if isManaged(types.Tag{Key: &key}) {
			return nil, reservedTag(key)
		}
	}
	err := s.retag(ctx, in.ResourceArn, func(old []types.Tag) ([]types.Tag, error) {
		return account.RemoveTags(old, in.TagKeys, keyAndValue), nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UntagResourceOutput{}, nil
}

// ListTagsForResource lists the tags of a resource.
func (s *Service) ListTagsForResource(ctx context.Context, in *ecs.ListTagsForResourceInput) (*ecs.ListTagsForResourceOutput, error) {
	arn := aws.ToString(in.ResourceArn)
	v := s.store.View()
	if t := v.Tasks.Get(arn); t != nil {
		if err := checkOwnTask(ctx, t); err != nil {
			return nil, err
		}
	} else if err := checkOwnInstance(ctx, arn); err != nil {
		return nil, err
	}
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
	return nil, invalidParameter("The specified resource %s is not found.", arn)
}

func tagsOutput(tags []types.Tag) *ecs.ListTagsForResourceOutput {
	return &ecs.ListTagsForResourceOutput{Tags: notNil(tags)}
}

// retag applies change to the tags of the row with the ARN.
func (s *Service) retag(ctx context.Context, resourceArn *string, change func([]types.Tag) ([]types.Tag, error)) error {
	arn := aws.ToString(resourceArn)
	return s.store.Update(ctx, func(tx *state.Tx) (err error) {
		found := false
		switch resourceType(arn) {
		case "cluster":
			found, err = retagRow(tx.Clusters, arn, func(r *state.Cluster) *[]types.Tag { return &r.Tags }, change)
		case "task-definition":
			found, err = retagRow(tx.TaskDefinitions, arn, func(r *state.TaskDefinition) *[]types.Tag { return &r.Tags }, change)
		case "task":
			found, err = retagRow(tx.Tasks.Table, arn, func(r *state.Task) *[]types.Tag { return &r.Tags }, change)
		case "service":
			if row := tx.Services.Get(arn); row != nil && *row.Status != state.ServiceInactive {
				found, err = retagRow(tx.Services.Table, arn, func(r *state.Service) *[]types.Tag { return &r.Tags }, change)
			}
		case "container-instance":
			found, err = retagRow(tx.ContainerInstances.Table, arn, func(r *state.ContainerInstance) *[]types.Tag { return &r.Tags }, change)
		case "capacity-provider":
			found, err = retagRow(tx.CapacityProviders, arn, func(r *state.CapacityProvider) *[]types.Tag { return &r.Tags }, change)
		default:
			return noSuchArn(arn)
		}
		if err == nil && !found {
			return resourceNotFound("The specified resource %s is not found.", arn)
		}
		return err
	})
}

// retagRow changes the tags of a row in one table, and reports whether the row exists.
func retagRow[R any](
	table state.Table[*R], arn string, tagsOf func(*R) *[]types.Tag, change func([]types.Tag) ([]types.Tag, error),
) (found bool, err error) {
	row, ok := clone(table.Get(arn))
	if !ok {
		return false, nil
	}
	tags := tagsOf(row)
	if *tags, err = change(*tags); err != nil {
		return true, err
	}
	table.Put(row)
	return true, nil
}

func noSuchArn(arn string) error {
	return invalidParameter("resourceArn %q is not the ARN of a cluster, service, task definition, task, container instance or "+
		"capacity provider.", arn)
}

// resourceType returns the kind of resource in an ECS ARN, such as "task" or "cluster", or "" for any other text.
func resourceType(s string) string {
	parsed, err := arn.Parse(s)
	if err != nil || parsed.Service != "ecs" {
		return ""
	}
	kind, _, _ := strings.Cut(parsed.Resource, "/")
	return kind
}

// clone returns a shallow copy of a row to change and put, and reports whether there is a row.
func clone[R any](row *R) (*R, bool) {
	if row == nil {
		return nil, false
	}
	c := *row
	return &c, true
}
