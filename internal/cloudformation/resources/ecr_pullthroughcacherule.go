package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// pullThroughRule has the properties of AWS::ECR::PullThroughCacheRule. Its physical ID is the prefix.
type pullThroughRule struct {
	CredentialArn            *string `cfn:"create"`
	CustomRoleArn            *string `cfn:"create"`
	EcrRepositoryPrefix      *string `cfn:"required,create"`
	UpstreamRegistry         *string `cfn:"create"`
	UpstreamRegistryUrl      *string `cfn:"required,create"`
	UpstreamRepositoryPrefix *string `cfn:"create"`
}

var _ = add(&kind[*pullThroughRule]{
	name:       "AWS::ECR::PullThroughCacheRule",
	live:       livePullThroughRule,
	identifier: []string{"EcrRepositoryPrefix"},
	id:         func(_ Step, r *pullThroughRule) string { return aws.ToString(r.EcrRepositoryPrefix) },
	create: func(ctx context.Context, s Step, r *pullThroughRule) (string, error) {
		return *r.EcrRepositoryPrefix, did[ecr.CreatePullThroughCacheRuleOutput](ctx, s, &ecr.CreatePullThroughCacheRuleInput{
			CredentialArn:            r.CredentialArn,
			CustomRoleArn:            r.CustomRoleArn,
			EcrRepositoryPrefix:      r.EcrRepositoryPrefix,
			UpstreamRegistry:         types.UpstreamRegistry(aws.ToString(r.UpstreamRegistry)),
			UpstreamRegistryUrl:      r.UpstreamRegistryUrl,
			UpstreamRepositoryPrefix: r.UpstreamRepositoryPrefix,
		})
	},
	delete: func(ctx context.Context, s Step, prefix string, _ *pullThroughRule) error {
		return did[ecr.DeletePullThroughCacheRuleOutput](ctx, s, &ecr.DeletePullThroughCacheRuleInput{EcrRepositoryPrefix: &prefix})
	},
	read: func(ctx context.Context, s Step, prefix string, r *pullThroughRule) (Made, error) {
		_, err := livePullThroughRule(ctx, s, prefix, r)
		return Made{}, err
	},
})

func livePullThroughRule(ctx context.Context, s Step, prefix string, _ *pullThroughRule) (*pullThroughRule, error) {
	in := &ecr.DescribePullThroughCacheRulesInput{EcrRepositoryPrefixes: []string{prefix}}
	out, err := call.Do[ecr.DescribePullThroughCacheRulesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	r := out.PullThroughCacheRules[0]
	return &pullThroughRule{
		CredentialArn:            r.CredentialArn,
		EcrRepositoryPrefix:      r.EcrRepositoryPrefix,
		UpstreamRegistry:         (*string)(&r.UpstreamRegistry),
		UpstreamRegistryUrl:      r.UpstreamRegistryUrl,
		UpstreamRepositoryPrefix: r.UpstreamRepositoryPrefix,
	}, nil
}
