package elb

import (
	"context"

	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// retag changes the tags of a resource. change gets those that it has, and returns those that it is to have.
func retag(tx *state.Tx, arn string, change func([]types.Tag) []types.Tag) error {
	var after []types.Tag
	switch v := tx.View; {
	case v.LoadBalancers.Get(arn) != nil:
		row := *v.LoadBalancers.Get(arn)
		row.Tags = change(row.Tags)
		after = row.Tags
		tx.LoadBalancers.Put(&row)
	case v.TargetGroups.Get(arn) != nil:
		row := *v.TargetGroups.Get(arn)
		row.Tags = change(row.Tags)
		after = row.Tags
		tx.TargetGroups.Put(&row)
	case v.Listeners.Get(arn) != nil:
		row := *v.Listeners.Get(arn)
		row.Tags = change(row.Tags)
		after = row.Tags
		tx.Listeners.Put(&row)
	case v.ListenerRules.Get(arn) != nil:
		row := *v.ListenerRules.Get(arn)
		row.Tags = change(row.Tags)
		after = row.Tags
		tx.ListenerRules.Put(&row)
	default:
		l := listenerOf(v, arn)
		if l == nil || l.DefaultRule != arn {
			return noResource(arn)
		}
		row := *l
		row.RuleTags = change(row.RuleTags)
		after = row.RuleTags
		tx.Listeners.Put(&row)
	}
	if len(after) > account.MaxTags {
		return tooManyTags()
	}
	return nil
}

// tagsOf returns the tags of a resource.
func tagsOf(v *state.View, arn string) ([]types.Tag, error) {
	if b := v.LoadBalancers.Get(arn); b != nil {
		return b.Tags, nil
	}
	if g := v.TargetGroups.Get(arn); g != nil {
		return g.Tags, nil
	}
	if l := v.Listeners.Get(arn); l != nil {
		return l.Tags, nil
	}
	if r := v.ListenerRules.Get(arn); r != nil {
		return r.Tags, nil
	}
	if l := listenerOf(v, arn); l != nil && l.DefaultRule == arn {
		return l.RuleTags, nil
	}
	return nil, noResource(arn)
}

// noResource returns the error of an ARN that nothing has, by what it would be.
func noResource(arn string) error {
	switch kind := kindOfARN(arn); kind {
	case "targetgroup":
		return noTargetGroup(arn)
	case "listener":
		return &types.ListenerNotFoundException{Message: account.Message("Listener '%s' not found", arn)}
	case "listener-rule":
		return &types.RuleNotFoundException{Message: account.Message("Rule '%s' not found", arn)}
	case "truststore":
		return &types.TrustStoreNotFoundException{Message: account.Message("Trust store '%s' not found: Pintle has none", arn)}
	case "loadbalancer":
		return noLoadBalancer(arn)
	}
	return invalid("'%s' is not a valid load balancer, target group, listener or rule ARN", arn)
}

// AddTags adds tags to resources, or changes their values.
func (s *Service) AddTags(ctx context.Context, in *api.AddTagsInput) (*api.AddTagsOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		for _, arn := range in.ResourceArns {
			if err := retag(tx, arn, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, parts) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.AddTagsOutput{}, nil
}

// RemoveTags removes tags from resources.
func (s *Service) RemoveTags(ctx context.Context, in *api.RemoveTagsInput) (*api.RemoveTagsOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		for _, arn := range in.ResourceArns {
			if err := retag(tx, arn, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, in.TagKeys, parts) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.RemoveTagsOutput{}, nil
}

// maxDescribed is how many resources DescribeTags tells of.
const maxDescribed = 20

// DescribeTags lists the tags of resources.
func (s *Service) DescribeTags(_ context.Context, in *api.DescribeTagsInput) (*api.DescribeTagsOutput, error) {
	if len(in.ResourceArns) > maxDescribed {
		return nil, invalid("The tags of at most %d resources can be described at once", maxDescribed)
	}
	v := s.store.View()
	out := &api.DescribeTagsOutput{}
	for _, arn := range in.ResourceArns {
		tags, err := tagsOf(v, arn)
		if err != nil {
			return nil, err
		}
		out.TagDescriptions = append(out.TagDescriptions, types.TagDescription{ResourceArn: &arn, Tags: append([]types.Tag{}, tags...)})
	}
	return out, nil
}
