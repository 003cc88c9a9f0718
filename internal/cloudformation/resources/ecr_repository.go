package resources

import (
	"context"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// repository has the properties of AWS::ECR::Repository. Its physical ID is the name.
type repository struct {
	RepositoryName                     *string                        `cfn:"create"`
	EncryptionConfiguration            *types.EncryptionConfiguration `cfn:"create"`
	EmptyOnDelete                      *bool                          `cfn:"write"`
	ImageScanningConfiguration         *types.ImageScanningConfiguration
	ImageTagMutability                 types.ImageTagMutability
	ImageTagMutabilityExclusionFilters []mutabilityExclusion
	LifecyclePolicy                    *repositoryLifecycle
	RepositoryPolicyText               any
	Tags                               []Tag
}

type mutabilityExclusion struct {
	ImageTagMutabilityExclusionFilterType  types.ImageTagMutabilityExclusionFilterType `cfn:"required"`
	ImageTagMutabilityExclusionFilterValue *string                                     `cfn:"required"`
}

type repositoryLifecycle struct {
	LifecyclePolicyText *string
	RegistryId          *string `cfn:"write"`
}

func (r *repository) exclusions() (all []types.ImageTagMutabilityExclusionFilter) {
	for _, e := range r.ImageTagMutabilityExclusionFilters {
		all = append(all, types.ImageTagMutabilityExclusionFilter{
			Filter:     e.ImageTagMutabilityExclusionFilterValue,
			FilterType: e.ImageTagMutabilityExclusionFilterType,
		})
	}
	return all
}

// lifecycle returns the text of the lifecycle policy, or "".
func (r *repository) lifecycle() string {
	if r.LifecyclePolicy == nil {
		return ""
	}
	return aws.ToString(r.LifecyclePolicy.LifecyclePolicyText)
}

var _ = add(&kind[*repository]{
	name:       "AWS::ECR::Repository",
	live:       liveRepository,
	identifier: []string{"RepositoryName"},
	attributes: []string{"Arn", "RepositoryUri"},
	id:         repositoryName,
	create: func(ctx context.Context, s Step, r *repository) (string, error) {
		name := repositoryName(s, r)
		err := did[ecr.CreateRepositoryOutput](ctx, s, &ecr.CreateRepositoryInput{
			RepositoryName:                     &name,
			EncryptionConfiguration:            r.EncryptionConfiguration,
			ImageScanningConfiguration:         r.ImageScanningConfiguration,
			ImageTagMutability:                 r.ImageTagMutability,
			ImageTagMutabilityExclusionFilters: r.exclusions(),
			Tags:                               tagList(r.Tags, repositoryTag),
		})
		if err != nil {
			return "", err
		}
		if err := setRepositoryPolicies(ctx, s, name, &repository{}, r); err != nil {
			return "", undo(ctx, s, name, r, deleteRepository, err)
		}
		return name, nil
	},
	update: updateRepository,
	delete: deleteRepository,
	read: func(ctx context.Context, s Step, name string, _ *repository) (Made, error) {
		in := &ecr.DescribeRepositoriesInput{RepositoryNames: []string{name}}
		out, err := call.Do[ecr.DescribeRepositoriesOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		is := out.Repositories[0]
		return Made{Attributes: map[string]any{"Arn": *is.RepositoryArn, "RepositoryUri": *is.RepositoryUri}}, nil
	},
})

func liveRepository(ctx context.Context, s Step, name string, _ *repository) (*repository, error) {
	out, err := call.Do[ecr.DescribeRepositoriesOutput](ctx, s.Services, &ecr.DescribeRepositoriesInput{RepositoryNames: []string{name}})
	if err != nil {
		return nil, err
	}
	is := out.Repositories[0]
	live := &repository{
		RepositoryName:             is.RepositoryName,
		EncryptionConfiguration:    is.EncryptionConfiguration,
		ImageScanningConfiguration: is.ImageScanningConfiguration,
		ImageTagMutability:         is.ImageTagMutability,
	}
	for _, e := range is.ImageTagMutabilityExclusionFilters {
		live.ImageTagMutabilityExclusionFilters = append(live.ImageTagMutabilityExclusionFilters, mutabilityExclusion{e.FilterType, e.Filter})
	}
	if err := liveRepositoryPolicies(ctx, s, name, live); err != nil {
		return nil, err
	}
	tags, err := call.Do[ecr.ListTagsForResourceOutput](ctx, s.Services, &ecr.ListTagsForResourceInput{ResourceArn: is.RepositoryArn})
	if err != nil {
		return nil, err
	}
	live.Tags = ownTags(tags.Tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
	return live, nil
}

// liveRepositoryPolicies adds the policies that a repository has.
func liveRepositoryPolicies(ctx context.Context, s Step, name string, live *repository) error {
	policy, err := call.Do[ecr.GetRepositoryPolicyOutput](ctx, s.Services, &ecr.GetRepositoryPolicyInput{RepositoryName: &name})
	if unlessMissing(err) != nil {
		return err
	}
	if err == nil {
		live.RepositoryPolicyText = parsed(policy.PolicyText)
	}
	lifecycle, err := call.Do[ecr.GetLifecyclePolicyOutput](ctx, s.Services, &ecr.GetLifecyclePolicyInput{RepositoryName: &name})
	if unlessMissing(err) != nil {
		return err
	}
	if err == nil {
		live.LifecyclePolicy = &repositoryLifecycle{LifecyclePolicyText: lifecycle.LifecyclePolicyText}
	}
	return nil
}

func repositoryTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

func repositoryName(s Step, r *repository) string {
	if r.RepositoryName != nil {
		return *r.RepositoryName
	}
	return strings.ToLower(s.generated(256))
}

func updateRepository(ctx context.Context, s Step, name string, before, after *repository) error {
	if before.ImageTagMutability != after.ImageTagMutability || !reflect.DeepEqual(before.exclusions(), after.exclusions()) {
		in := &ecr.PutImageTagMutabilityInput{
			RepositoryName:                     &name,
			ImageTagMutability:                 after.ImageTagMutability,
			ImageTagMutabilityExclusionFilters: after.exclusions(),
		}
		if in.ImageTagMutability == "" {
			in.ImageTagMutability = types.ImageTagMutabilityMutable
		}
		if err := did[ecr.PutImageTagMutabilityOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(before.ImageScanningConfiguration, after.ImageScanningConfiguration) {
		in := &ecr.PutImageScanningConfigurationInput{RepositoryName: &name, ImageScanningConfiguration: after.ImageScanningConfiguration}
		if in.ImageScanningConfiguration == nil {
			in.ImageScanningConfiguration = &types.ImageScanningConfiguration{}
		}
		if err := did[ecr.PutImageScanningConfigurationOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if err := setRepositoryPolicies(ctx, s, name, before, after); err != nil {
		return err
	}
	arn := s.Account.ARN("ecr", "repository/"+name)
	return retag(before.Tags, after.Tags, func(gone []string) error {
		return did[ecr.UntagResourceOutput](ctx, s, &ecr.UntagResourceInput{ResourceArn: &arn, TagKeys: gone})
	}, func() error {
		return did[ecr.TagResourceOutput](ctx, s, &ecr.TagResourceInput{ResourceArn: &arn, Tags: tagList(after.Tags, repositoryTag)})
	})
}

// setRepositoryPolicies puts a repository's policies, or takes away those that it had.
func setRepositoryPolicies(ctx context.Context, s Step, name string, before, after *repository) error {
	var err error
	if text := after.lifecycle(); text != "" {
		in := &ecr.PutLifecyclePolicyInput{RepositoryName: &name, LifecyclePolicyText: &text, RegistryId: after.LifecyclePolicy.RegistryId}
		err = did[ecr.PutLifecyclePolicyOutput](ctx, s, in)
	} else if before.lifecycle() != "" {
		err = unlessMissing(did[ecr.DeleteLifecyclePolicyOutput](ctx, s, &ecr.DeleteLifecyclePolicyInput{RepositoryName: &name}))
	}
	if err != nil {
		return err
	}
	if text := document(after.RepositoryPolicyText); text != nil {
		return did[ecr.SetRepositoryPolicyOutput](ctx, s, &ecr.SetRepositoryPolicyInput{RepositoryName: &name, PolicyText: text})
	}
	if before.RepositoryPolicyText == nil {
		return nil
	}
	return unlessMissing(did[ecr.DeleteRepositoryPolicyOutput](ctx, s, &ecr.DeleteRepositoryPolicyInput{RepositoryName: &name}))
}

// unlessMissing drops an error that says that what was to go isn't there.
func unlessMissing(err error) error {
	if isMissing(err) {
		return nil
	}
	return err
}

func deleteRepository(ctx context.Context, s Step, name string, r *repository) error {
	in := &ecr.DeleteRepositoryInput{RepositoryName: &name, Force: aws.ToBool(r.EmptyOnDelete)}
	return did[ecr.DeleteRepositoryOutput](ctx, s, in)
}
