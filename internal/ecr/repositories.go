package ecr

import (
	"cmp"
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxRepositories is the most repositories of a registry: https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html
const maxRepositories = 100_000

// CreateRepository creates a repository without images.
func (s *Service) CreateRepository(ctx context.Context, in *ecr.CreateRepositoryInput) (*ecr.CreateRepositoryOutput, error) {
	if in.RegistryId != nil && *in.RegistryId != s.opts.ID {
		return nil, badParameter("registryId", "Only the registry %s is here", s.opts.ID)
	}
	mutability := cmp.Or(in.ImageTagMutability, types.ImageTagMutabilityMutable)
	err := cmp.Or(checkMutability(mutability, in.ImageTagMutabilityExclusionFilters), checkEncryption(in.EncryptionConfiguration), checkTags(in.Tags))
	if err != nil {
		return nil, err
	}
	r := &state.Repository{
		Name:       *in.RepositoryName,
		Created:    s.now(),
		Mutability: mutability,
		Exclusions: in.ImageTagMutabilityExclusionFilters,
		ScanOnPush: in.ImageScanningConfiguration != nil && in.ImageScanningConfiguration.ScanOnPush,
		Tags:       in.Tags,
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		switch {
		case tx.Repositories.Get(r.Name) != nil:
			return &types.RepositoryAlreadyExistsException{Message: account.Message(
				"The repository with name '%s' already exists in the registry with id '%s'", r.Name, s.opts.ID)}
		case tx.Repositories.Len() >= maxRepositories:
			return &types.LimitExceededException{Message: account.Message("There are already %d repositories, the maximum.", maxRepositories)}
		}
		tx.Repositories.Put(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.CreateRepositoryOutput{Repository: new(s.described(r))}, nil
}

// checkEncryption refuses keys of KMS, which isn't there.
func checkEncryption(c *types.EncryptionConfiguration) error {
	if c == nil || c.EncryptionType == types.EncryptionTypeAes256 && c.KmsKey == nil {
		return nil
	}
	return &types.KmsException{
		KmsError: aws.String("KMS_UNAVAILABLE"),
		Message:  account.Message("Pintle has no KMS: encryptionType can only be AES256, without a kmsKey."),
	}
}

// checkMutability checks that there are exclusions where there must be some, and nowhere else.
func checkMutability(m types.ImageTagMutability, exclusions []types.ImageTagMutabilityExclusionFilter) error {
	needs := m == types.ImageTagMutabilityImmutableWithExclusion || m == types.ImageTagMutabilityMutableWithExclusion
	switch {
	case needs && len(exclusions) == 0:
		return badParameter("imageTagMutabilityExclusionFilters", "ImageTagMutabilityExclusionFilters can't be null or empty when imageTagMutability is set as %s", m)
	case !needs && len(exclusions) > 0:
		return badParameter("imageTagMutabilityExclusionFilters", "ImageTagMutabilityExclusionFilters can't be given when imageTagMutability is set as %s", m)
	}
	return nil
}

// described returns a repository as ECR describes it.
func (s *Service) described(r *state.Repository) types.Repository {
	return types.Repository{
		CreatedAt:                          &r.Created,
		EncryptionConfiguration:            &types.EncryptionConfiguration{EncryptionType: types.EncryptionTypeAes256},
		ImageScanningConfiguration:         &types.ImageScanningConfiguration{ScanOnPush: r.ScanOnPush},
		ImageTagMutability:                 r.Mutability,
		ImageTagMutabilityExclusionFilters: r.Exclusions,
		RegistryId:                         &s.opts.ID,
		RepositoryArn:                      new(s.arn(r.Name)),
		RepositoryName:                     &r.Name,
		RepositoryUri:                      new(s.Host() + "/" + r.Name),
	}
}

func (s *Service) arn(name string) string { return s.opts.ARN("ecr", "repository/"+name) }

// DescribeRepositories lists repositories, or tells of those that are named.
func (s *Service) DescribeRepositories(
	_ context.Context, in *ecr.DescribeRepositoriesInput,
) (*ecr.DescribeRepositoriesOutput, error) {
	out := &ecr.DescribeRepositoriesOutput{Repositories: []types.Repository{}}
	v := s.store.View()
	if len(in.RepositoryNames) > 0 {
		if in.MaxResults != nil || in.NextToken != nil {
			return nil, badParameter("repositoryNames", "maxResults and nextToken can't be given with repositoryNames")
		}
		for _, name := range in.RepositoryNames {
			r, err := s.find(v, in.RegistryId, &name)
			if err != nil {
				return nil, err
			}
			out.Repositories = append(out.Repositories, s.described(r))
		}
		return out, nil
	}
	if in.RegistryId != nil && *in.RegistryId != s.opts.ID {
		return out, nil
	}
	all := slices.Collect(v.Repositories.All())
	page, next, err := account.Sorted(listing("DescribeRepositories", 1000), all, in.MaxResults, in.NextToken, nameOf)
	if err != nil {
		return nil, err
	}
	for _, r := range page {
		out.Repositories = append(out.Repositories, s.described(r))
	}
	out.NextToken = next
	return out, nil
}

func nameOf(r *state.Repository) string { return r.Name }

// DeleteRepository deletes a repository. One with images is deleted only if that is forced.
func (s *Service) DeleteRepository(ctx context.Context, in *ecr.DeleteRepositoryInput) (*ecr.DeleteRepositoryOutput, error) {
	out := &ecr.DeleteRepositoryOutput{}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		r, err := s.find(tx.View, in.RegistryId, in.RepositoryName)
		if err != nil {
			return err
		}
		for range tx.ImagesOf(r.Name) {
			if in.Force {
				break
			}
			return &types.RepositoryNotEmptyException{Message: account.Message(
				"The repository with name '%s' in registry with id '%s' cannot be deleted because it still contains images", r.Name, s.opts.ID)}
		}
		out.Repository = new(s.described(r))
		tx.DeleteRepository(r.Name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// change changes a repository's row. It returns the new row.
func (s *Service) change(ctx context.Context, registry, name *string, to func(*state.Repository) error) (*state.Repository, error) {
	var r *state.Repository
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.find(tx.View, registry, name)
		if err != nil {
			return err
		}
		r = new(*old)
		if err := to(r); err != nil {
			return err
		}
		tx.Repositories.Put(r)
		return nil
	})
	return r, err
}

// PutImageTagMutability says whether a repository's tags can be moved.
func (s *Service) PutImageTagMutability(
	ctx context.Context, in *ecr.PutImageTagMutabilityInput,
) (*ecr.PutImageTagMutabilityOutput, error) {
	if err := checkMutability(in.ImageTagMutability, in.ImageTagMutabilityExclusionFilters); err != nil {
		return nil, err
	}
	r, err := s.change(ctx, in.RegistryId, in.RepositoryName, func(r *state.Repository) error {
		r.Mutability = in.ImageTagMutability
		r.Exclusions = in.ImageTagMutabilityExclusionFilters
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.PutImageTagMutabilityOutput{
		ImageTagMutability:                 r.Mutability,
		ImageTagMutabilityExclusionFilters: r.Exclusions,
		RegistryId:                         &s.opts.ID,
		RepositoryName:                     &r.Name,
	}, nil
}

// PutImageScanningConfiguration keeps whether images are to be scanned when they're pushed. None is.
func (s *Service) PutImageScanningConfiguration(
	ctx context.Context, in *ecr.PutImageScanningConfigurationInput,
) (*ecr.PutImageScanningConfigurationOutput, error) {
	r, err := s.change(ctx, in.RegistryId, in.RepositoryName, func(r *state.Repository) error {
		r.ScanOnPush = in.ImageScanningConfiguration.ScanOnPush
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecr.PutImageScanningConfigurationOutput{
		ImageScanningConfiguration: &types.ImageScanningConfiguration{ScanOnPush: r.ScanOnPush},
		RegistryId:                 &s.opts.ID,
		RepositoryName:             &r.Name,
	}, nil
}
