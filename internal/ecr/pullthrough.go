package ecr

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxRules is the most rules of a registry: https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html
const maxRules = 50

// Secrets is AWS Secrets Manager, where the passwords of other registries are.
type Secrets interface {
	GetSecretValue(
		context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options),
	) (*secretsmanager.GetSecretValueOutput, error)
}

// upstreams are the hosts of the registries from which ECR takes images: API_CreatePullThroughCacheRule.
var upstreams = map[types.UpstreamRegistry]string{
	types.UpstreamRegistryAzureContainerRegistry:  "*.azurecr.io",
	types.UpstreamRegistryChainguard:              "cgr.dev",
	types.UpstreamRegistryDockerHub:               "registry-1.docker.io",
	types.UpstreamRegistryEcr:                     "*.dkr.ecr.*.amazonaws.com",
	types.UpstreamRegistryEcrPublic:               "public.ecr.aws",
	types.UpstreamRegistryGitHubContainerRegistry: "ghcr.io",
	types.UpstreamRegistryGitLabContainerRegistry: "registry.gitlab.com",
	types.UpstreamRegistryK8s:                     "registry.k8s.io",
	types.UpstreamRegistryQuay:                    "quay.io",
}

// upstreamAt returns which registry is at a host, "" if the operator has named it, or an error if images may not come from there.
func (s *Service) upstreamAt(host string, asked types.UpstreamRegistry) (types.UpstreamRegistry, error) {
	for kind, pattern := range upstreams {
		if matches, _ := path.Match(pattern, host); matches && (asked == "" || asked == kind) {
			return kind, nil
		}
	}
	if slices.Contains(s.opts.Upstreams, host) {
		return asked, nil
	}
	return "", &types.UnsupportedUpstreamRegistryException{Message: account.Message(
		"The upstream registry '%s' is not supported. Name it with --upstream-registry when Pintle starts, if images may come from there.", host)}
}

// CreatePullThroughCacheRule has images of repositories with a prefix come from another registry.
func (s *Service) CreatePullThroughCacheRule(
	ctx context.Context, in *ecr.CreatePullThroughCacheRuleInput,
) (*ecr.CreatePullThroughCacheRuleOutput, error) {
	if err := cmp.Or(s.checkOwn(in.RegistryId), refuseRole(in.CustomRoleArn)); err != nil {
		return nil, err
	}
	host := strings.TrimSuffix(strings.TrimPrefix(*in.UpstreamRegistryUrl, "https://"), "/")
	kind, err := s.upstreamAt(host, in.UpstreamRegistry)
	if err != nil {
		return nil, err
	}
	if _, err := s.Login(ctx, aws.ToString(in.CredentialArn)); err != nil {
		return nil, err
	}
	r := &state.PullThroughRule{
		Prefix:         strings.TrimSuffix(*in.EcrRepositoryPrefix, "/"),
		Registry:       kind,
		URL:            host,
		UpstreamPrefix: strings.TrimSuffix(aws.ToString(in.UpstreamRepositoryPrefix), "/"),
		Credential:     aws.ToString(in.CredentialArn),
		Created:        s.now(),
		Updated:        s.now(),
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		switch {
		case tx.PullThroughRules.Get(r.Prefix) != nil:
			return &types.PullThroughCacheRuleAlreadyExistsException{Message: account.Message(
				"The pull through cache rule with prefix '%s' already exists in the registry with id '%s'", r.Prefix, s.opts.ID)}
		case tx.PullThroughRules.Len() >= maxRules:
			return &types.LimitExceededException{Message: account.Message("There are already %d pull through cache rules, the maximum.", maxRules)}
		}
		tx.PullThroughRules.Put(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.CreatePullThroughCacheRuleOutput{
		CreatedAt:                &r.Created,
		CredentialArn:            optional(r.Credential),
		EcrRepositoryPrefix:      &r.Prefix,
		RegistryId:               &s.opts.ID,
		UpstreamRegistry:         r.Registry,
		UpstreamRegistryUrl:      &r.URL,
		UpstreamRepositoryPrefix: optional(r.UpstreamPrefix),
	}, nil
}

func (s *Service) checkOwn(registry *string) error {
	if registry != nil && *registry != s.opts.ID {
		return badParameter("registryId", "Only the registry %s is here", s.opts.ID)
	}
	return nil
}

func refuseRole(role *string) error {
	if aws.ToString(role) != "" {
		return badParameter("customRoleArn", "Pintle assumes no role at other registries: put a user name and a token into a secret")
	}
	return nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Login is what a secret of a rule says.
type Login struct {
	Username    string `json:"username"`
	AccessToken string `json:"accessToken"`
}

// Login reads a rule's secret. It returns nil for a rule without one.
func (s *Service) Login(ctx context.Context, secret string) (*Login, error) {
	if secret == "" {
		return nil, nil
	}
	out, err := s.opts.Secrets.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &secret})
	if api := smithy.APIError(nil); errors.As(err, &api) {
		return nil, &types.SecretNotFoundException{Message: account.Message("The secret %s can't be read: %s", secret, api.ErrorMessage())}
	}
	if err != nil {
		return nil, err
	}
	l := new(Login)
	if json.Unmarshal([]byte(aws.ToString(out.SecretString)), l) != nil || l.Username == "" || l.AccessToken == "" {
		return nil, &types.UnableToAccessSecretException{Message: account.Message(
			`The secret %s isn't of the form {"username": "…", "accessToken": "…"}`, secret)}
	}
	return l, nil
}

func (s *Service) noRule(prefix string) error {
	return &types.PullThroughCacheRuleNotFoundException{Message: account.Message(
		"The pull through cache rule with prefix '%s' does not exist in the registry with id '%s'", prefix, s.opts.ID)}
}

func (s *Service) rule(v *state.View, prefix string) (*state.PullThroughRule, error) {
	r := v.PullThroughRules.Get(strings.TrimSuffix(prefix, "/"))
	if r == nil {
		return nil, s.noRule(prefix)
	}
	return r, nil
}

// DeletePullThroughCacheRule deletes a rule. The images that came by it stay.
func (s *Service) DeletePullThroughCacheRule(
	ctx context.Context, in *ecr.DeletePullThroughCacheRuleInput,
) (*ecr.DeletePullThroughCacheRuleOutput, error) {
	if err := s.checkOwn(in.RegistryId); err != nil {
		return nil, err
	}
	var r *state.PullThroughRule
	err := s.store.Update(ctx, func(tx *state.Tx) (err error) {
		if r, err = s.rule(tx.View, *in.EcrRepositoryPrefix); err == nil {
			tx.PullThroughRules.Delete(r.Prefix)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ecr.DeletePullThroughCacheRuleOutput{
		CreatedAt:                &r.Created,
		CredentialArn:            optional(r.Credential),
		EcrRepositoryPrefix:      &r.Prefix,
		RegistryId:               &s.opts.ID,
		UpstreamRegistryUrl:      &r.URL,
		UpstreamRepositoryPrefix: optional(r.UpstreamPrefix),
	}, nil
}

// DescribePullThroughCacheRules lists rules, or tells of those that are named.
func (s *Service) DescribePullThroughCacheRules(
	_ context.Context, in *ecr.DescribePullThroughCacheRulesInput,
) (*ecr.DescribePullThroughCacheRulesOutput, error) {
	if err := s.checkOwn(in.RegistryId); err != nil {
		return nil, err
	}
	out := &ecr.DescribePullThroughCacheRulesOutput{PullThroughCacheRules: []types.PullThroughCacheRule{}}
	v := s.store.View()
	rows := slices.Collect(v.PullThroughRules.All())
	if len(in.EcrRepositoryPrefixes) > 0 {
		rows = nil
		for _, prefix := range in.EcrRepositoryPrefixes {
			r, err := s.rule(v, prefix)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	page, next, err := account.Sorted(listing("DescribePullThroughCacheRules", 1000), rows, in.MaxResults, in.NextToken,
		func(r *state.PullThroughRule) string { return r.Prefix })
	if err != nil {
		return nil, err
	}
	for _, r := range page {
		out.PullThroughCacheRules = append(out.PullThroughCacheRules, types.PullThroughCacheRule{
			CreatedAt:                &r.Created,
			CredentialArn:            optional(r.Credential),
			EcrRepositoryPrefix:      &r.Prefix,
			RegistryId:               &s.opts.ID,
			UpdatedAt:                &r.Updated,
			UpstreamRegistry:         r.Registry,
			UpstreamRegistryUrl:      &r.URL,
			UpstreamRepositoryPrefix: optional(r.UpstreamPrefix),
		})
	}
	out.NextToken = next
	return out, nil
}

// UpdatePullThroughCacheRule gives a rule another secret.
func (s *Service) UpdatePullThroughCacheRule(
	ctx context.Context, in *ecr.UpdatePullThroughCacheRuleInput,
) (*ecr.UpdatePullThroughCacheRuleOutput, error) {
	if err := cmp.Or(s.checkOwn(in.RegistryId), refuseRole(in.CustomRoleArn)); err != nil {
		return nil, err
	}
	if in.CredentialArn == nil {
		return nil, badParameter("credentialArn", "Member must not be null")
	}
	if _, err := s.Login(ctx, *in.CredentialArn); err != nil {
		return nil, err
	}
	var r state.PullThroughRule
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.rule(tx.View, *in.EcrRepositoryPrefix)
		if err != nil {
			return err
		}
		r = *old
		r.Credential = *in.CredentialArn
		r.Updated = s.now()
		tx.PullThroughRules.Put(&r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.UpdatePullThroughCacheRuleOutput{
		CredentialArn:            &r.Credential,
		EcrRepositoryPrefix:      &r.Prefix,
		RegistryId:               &s.opts.ID,
		UpdatedAt:                &r.Updated,
		UpstreamRepositoryPrefix: optional(r.UpstreamPrefix),
	}, nil
}

// ValidatePullThroughCacheRule tells whether the other registry answers, and takes the secret's password.
func (s *Service) ValidatePullThroughCacheRule(
	ctx context.Context, in *ecr.ValidatePullThroughCacheRuleInput,
) (*ecr.ValidatePullThroughCacheRuleOutput, error) {
	if err := s.checkOwn(in.RegistryId); err != nil {
		return nil, err
	}
	r, err := s.rule(s.store.View(), *in.EcrRepositoryPrefix)
	if err != nil {
		return nil, err
	}
	out := &ecr.ValidatePullThroughCacheRuleOutput{
		CredentialArn:            optional(r.Credential),
		EcrRepositoryPrefix:      &r.Prefix,
		RegistryId:               &s.opts.ID,
		UpstreamRegistryUrl:      &r.URL,
		UpstreamRepositoryPrefix: optional(r.UpstreamPrefix),
	}
	if err := s.opts.TryUpstream(ctx, r); err != nil {
		out.Failure = aws.String(err.Error())
		return out, nil
	}
	out.IsValid = true
	return out, nil
}
