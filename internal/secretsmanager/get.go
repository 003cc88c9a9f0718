package secretsmanager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// GetSecretValue returns the value of a version, which is the current one if the call names none.
func (s *Service) GetSecretValue(
	ctx context.Context, in *secretsmanager.GetSecretValueInput,
) (*secretsmanager.GetSecretValueOutput, error) {
	v := s.store.View()
	secret, err := s.findActive(v, *in.SecretId)
	if err != nil {
		return nil, err
	}
	version, err := version(v, secret, aws.ToString(in.VersionId), aws.ToString(in.VersionStage))
	if err != nil {
		return nil, err
	}
	entry, err := s.read(secret, version)
	if err != nil {
		return nil, err
	}
	s.noteAccess(ctx, secret)
	return &secretsmanager.GetSecretValueOutput{
		ARN:           entry.ARN,
		CreatedDate:   entry.CreatedDate,
		Name:          entry.Name,
		SecretBinary:  entry.SecretBinary,
		SecretString:  entry.SecretString,
		VersionId:     entry.VersionId,
		VersionStages: entry.VersionStages,
	}, nil
}

// version returns the version with an id, a staging label, or both; the current one if neither is given.
func version(v *state.View, secret *state.Secret, id, stage string) (*state.SecretVersion, error) {
	by, wanted := "VersionId", id
	if id == "" {
		if stage == "" {
			stage = current
		}
		by, wanted = "staging label", stage
		id = secret.Stages[stage]
	}
	row := v.SecretVersions.Get(state.SecretVersionKey(secret.Name, id))
	if row == nil {
		return nil, valueNotFound(by, wanted)
	}
	if stage != "" && secret.Stages[stage] != id {
		return nil, impossible("You provided a VersionStage that is not associated to the provided VersionId.")
	}
	return row, nil
}

// read returns a version with its value.
func (s *Service) read(secret *state.Secret, version *state.SecretVersion) (*types.SecretValueEntry, error) {
	plain, err := s.opts.Vault.Decrypt(version.Encrypted, purpose(secret, version))
	if err != nil {
		return nil, &types.DecryptionFailure{Message: account.Message("The secret %s can't be decrypted: %v.", secret.Name, err)}
	}
	out := &types.SecretValueEntry{
		ARN:           &secret.ARN,
		CreatedDate:   &version.Created,
		Name:          &secret.Name,
		VersionId:     &version.ID,
		VersionStages: stagesOf(secret, version.ID),
	}
	if version.Binary {
		out.SecretBinary = []byte(plain)
	} else {
		out.SecretString = &plain
	}
	return out, nil
}

// noteAccess writes down on which day a secret was last read. If that can't be written, as on a full disk, the secret is read all the same.
func (s *Service) noteAccess(ctx context.Context, read *state.Secret) {
	today := s.now().Truncate(24 * time.Hour)
	if read.Accessed != nil && !read.Accessed.Before(today) {
		return
	}
	_ = s.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Secrets.Get(read.Name)
		if old == nil || old.ARN != read.ARN {
			return nil
		}
		secret := *old
		secret.Accessed = &today
		tx.Secrets.Put(&secret)
		return nil
	})
}

// maxBatch is how many values BatchGetSecretValue returns at once.
const maxBatch = 20

// BatchGetSecretValue returns the current values of secrets that are listed, or that filters find.
func (s *Service) BatchGetSecretValue(
	ctx context.Context, in *secretsmanager.BatchGetSecretValueInput,
) (*secretsmanager.BatchGetSecretValueOutput, error) {
	switch {
	case len(in.SecretIdList) > 0 && len(in.Filters) > 0:
		return nil, invalid("Either 'SecretIdList' or 'Filters' must be provided, but not both.")
	case len(in.SecretIdList) == 0 && len(in.Filters) == 0:
		return nil, invalid("Either 'SecretIdList' or 'Filters' must be provided.")
	case in.MaxResults != nil && len(in.Filters) == 0:
		return nil, invalid("'Filters' not specified. 'Filters' must also be specified when 'MaxResults' is provided.")
	}
	pages := listing("BatchGetSecretValue", maxBatch)
	if len(in.Filters) == 0 { // then there is one page
		if _, _, err := pages.Start(nil, in.NextToken); err != nil {
			return nil, err
		}
	}
	out := &secretsmanager.BatchGetSecretValueOutput{SecretValues: []types.SecretValueEntry{}, Errors: []types.APIErrorType{}}
	ids := in.SecretIdList
	if len(in.Filters) > 0 {
		found := s.filtered(in.Filters, false)
		slices.SortFunc(found, func(a, b *state.Secret) int { return strings.Compare(a.Name, b.Name) })
		page, next, err := account.Sorted(pages, found, in.MaxResults, in.NextToken,
			func(secret *state.Secret) string { return secret.Name })
		if err != nil {
			return nil, err
		}
		out.NextToken = next
		for _, secret := range page {
			ids = append(ids, secret.ARN)
		}
	}
	for _, id := range ids {
		got, err := s.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &id})
		if refused := smithy.APIError(nil); errors.As(err, &refused) {
			out.Errors = append(out.Errors, types.APIErrorType{
				SecretId:  &id,
				ErrorCode: new(refused.ErrorCode()),
				Message:   new(refused.ErrorMessage()),
			})
			continue
		}
		if err != nil {
			return nil, err
		}
		out.SecretValues = append(out.SecretValues, types.SecretValueEntry{
			ARN:           got.ARN,
			CreatedDate:   got.CreatedDate,
			Name:          got.Name,
			SecretBinary:  got.SecretBinary,
			SecretString:  got.SecretString,
			VersionId:     got.VersionId,
			VersionStages: got.VersionStages,
		})
	}
	return out, nil
}
