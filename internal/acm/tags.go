package acm

import (
	"context"

	api "github.com/aws/aws-sdk-go-v2/service/acm"
	"github.com/aws/aws-sdk-go-v2/service/acm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

func parts(t types.Tag) (key, value *string) { return t.Key, t.Value }

func checkTags(tags []types.Tag) error {
	fault := account.CheckTags(account.TagPairs(tags, parts), account.MaxTags)
	switch {
	case fault == nil:
		return nil
	case fault.Rule == account.TooManyTags:
		return tooManyTags()
	}
	return &types.InvalidTagException{Message: account.Message("The tag '%s' is not valid", fault.Key)}
}

func tooManyTags() error {
	return &types.TooManyTagsException{Message: account.Message("A certificate can have at most %d tags", account.MaxTags)}
}

// retag changes a certificate's tags.
func (s *Service) retag(ctx context.Context, arn *string, change func([]types.Tag) []types.Tag) error {
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.find(tx.View, arn)
		if err != nil {
			return err
		}
		row := *old
		if row.Tags = change(row.Tags); len(row.Tags) > account.MaxTags {
			return tooManyTags()
		}
		tx.Certificates.Put(&row)
		return nil
	})
}

// AddTagsToCertificate adds tags to a certificate, or changes their values.
func (s *Service) AddTagsToCertificate(ctx context.Context, in *api.AddTagsToCertificateInput) (*api.AddTagsToCertificateOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	err := s.retag(ctx, in.CertificateArn, func(old []types.Tag) []types.Tag { return account.MergeTags(old, in.Tags, parts) })
	if err != nil {
		return nil, err
	}
	return &api.AddTagsToCertificateOutput{}, nil
}

// RemoveTagsFromCertificate removes tags from a certificate.
func (s *Service) RemoveTagsFromCertificate(
	ctx context.Context, in *api.RemoveTagsFromCertificateInput,
) (*api.RemoveTagsFromCertificateOutput, error) {
	var keys []string
	for _, t := range in.Tags {
		if t.Key != nil {
			keys = append(keys, *t.Key)
		}
	}
	err := s.retag(ctx, in.CertificateArn, func(old []types.Tag) []types.Tag { return account.RemoveTags(old, keys, parts) })
	if err != nil {
		return nil, err
	}
	return &api.RemoveTagsFromCertificateOutput{}, nil
}

// ListTagsForCertificate lists a certificate's tags.
func (s *Service) ListTagsForCertificate(_ context.Context, in *api.ListTagsForCertificateInput) (*api.ListTagsForCertificateOutput, error) {
	row, err := s.find(s.store.View(), in.CertificateArn)
	if err != nil {
		return nil, err
	}
	return &api.ListTagsForCertificateOutput{Tags: append([]types.Tag{}, row.Tags...)}, nil
}
