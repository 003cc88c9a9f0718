package ecs

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxAttributes bounds the attributes of one PutAttributes or DeleteAttributes call.
const maxAttributes = 10

// PutAttributes sets custom attributes on container instances.
func (s *Service) PutAttributes(ctx context.Context, in *ecs.PutAttributesInput) (*ecs.PutAttributesOutput, error) {
	if err := checkAttributes(in.Attributes); err != nil {
		return nil, err
	}
	err := s.changeAttributes(ctx, in.Cluster, in.Attributes, func(old []types.Attribute, a types.Attribute) []types.Attribute {
		return mergeAttributes(old, []types.Attribute{a})
	})
	if err != nil {
		return nil, err
	}
	return &ecs.PutAttributesOutput{Attributes: in.Attributes}, nil
}

// DeleteAttributes removes attributes from container instances.
func (s *Service) DeleteAttributes(ctx context.Context, in *ecs.DeleteAttributesInput) (*ecs.DeleteAttributesOutput, error) {
	err := s.changeAttributes(ctx, in.Cluster, in.Attributes, func(old []types.Attribute, a types.Attribute) []types.Attribute {
		return slices.DeleteFunc(slices.Clone(old), func(o types.Attribute) bool { return aws.ToString(o.Name) == aws.ToString(a.Name) })
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeleteAttributesOutput{Attributes: in.Attributes}, nil
}

// changeAttributes applies change to the attributes of each target. Nothing changes if one target is not found.
func (s *Service) changeAttributes(
	ctx context.Context, cluster *string, attributes []types.Attribute, change func([]types.Attribute, types.Attribute) []types.Attribute,
) error {
	if n := len(attributes); n == 0 || n > maxAttributes {
		return invalidParameter("attributes must have between 1 and %d members, not %d.", maxAttributes, n)
	}
	return s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, cluster)
		if err != nil {
			return err
		}
		for _, a := range attributes {
			if a.TargetType != "" && a.TargetType != types.TargetTypeContainerInstance {
				return invalidParameter("targetType must be container-instance, not %q.", a.TargetType)
			}
			row, ok := clone(s.findInstance(tx.View, *c.ClusterArn, aws.ToString(a.TargetId)))
			if !ok || *row.Status == statusInactive {
				return &types.TargetNotFoundException{
					Message: account.Message("The target %q was not found in cluster %s.", aws.ToString(a.TargetId), *c.ClusterName),
				}
			}
			row.Attributes = change(row.Attributes, a)
			tx.ContainerInstances.Put(row)
		}
		return nil
	})
}

// ListAttributes lists the attributes of a cluster's container instances.
func (s *Service) ListAttributes(_ context.Context, in *ecs.ListAttributesInput) (*ecs.ListAttributesOutput, error) {
	if in.TargetType != types.TargetTypeContainerInstance {
		return nil, invalidParameter("targetType must be container-instance, not %q.", in.TargetType)
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	found := map[string]types.Attribute{}
	for row := range v.ContainerInstances.By(state.InstancesByCluster, *c.ClusterArn) {
		for _, a := range row.Attributes {
			if !attributeMatches(in, a) || *row.Status == statusInactive {
				continue
			}
			a.TargetId = row.ContainerInstanceArn
			a.TargetType = types.TargetTypeContainerInstance
			found[*a.TargetId+" "+*a.Name] = a
		}
	}
	keys, next, err := account.Sorted(listing("ListAttributes"), slices.Sorted(maps.Keys(found)), in.MaxResults, in.NextToken, identity)
	if err != nil {
		return nil, err
	}
	out := &ecs.ListAttributesOutput{Attributes: []types.Attribute{}, NextToken: next}
	for _, k := range keys {
		out.Attributes = append(out.Attributes, found[k])
	}
	return out, nil
}

// attributeMatches reports whether an attribute passes ListAttributes' filters.
func attributeMatches(in *ecs.ListAttributesInput, a types.Attribute) bool {
	if in.AttributeName != nil && aws.ToString(a.Name) != *in.AttributeName {
		return false
	}
	return in.AttributeValue == nil || aws.ToString(a.Value) == *in.AttributeValue
}
