package iam

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
	"github.com/pintle/pintle/internal/wire/call"
)

// secretPurpose is what a key's secret is encrypted for.
func secretPurpose(id string) string { return vault.Purpose("iam", "access key", id) }

// CreateAccessKey creates an access key. Its secret is told now and never again, but to a call of CloudFormation's that is made once more.
func (s *Service) CreateAccessKey(ctx context.Context, in *iam.CreateAccessKeyInput) (*iam.CreateAccessKeyOutput, error) {
	user, err := s.callingUser(ctx, in.UserName)
	if err != nil {
		return nil, err
	}
	var id [10]byte
	var secret [30]byte
	rand.Read(id[:]) // never fails
	rand.Read(secret[:])
	plain := base64.StdEncoding.EncodeToString(secret[:])
	row := &state.AccessKey{ID: "AKIA" + base32.StdEncoding.EncodeToString(id[:]), User: user, Created: s.now()}
	row.Secret = s.opts.Vault.Encrypt(plain, secretPurpose(row.ID))
	row.Token = call.From(ctx).Token
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := userKind.find(tx.View, user); err != nil {
			return err
		}
		keys := slices.Collect(tx.AccessKeys.By(state.AccessKeysByUser, user))
		isSame := func(k *state.AccessKey) bool { return row.Token != "" && k.Token == row.Token }
		if i := slices.IndexFunc(keys, isSame); i >= 0 {
			row = keys[i]
			return nil
		}
		if len(keys) >= maxKeysPerUser {
			return exceeded("Cannot exceed quota for AccessKeysPerUser: %d", maxKeysPerUser)
		}
		tx.AccessKeys.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if plain, err = s.opts.Vault.Decrypt(row.Secret, secretPurpose(row.ID)); err != nil {
		return nil, err
	}
	return &iam.CreateAccessKeyOutput{AccessKey: &types.AccessKey{
		AccessKeyId:     &row.ID,
		SecretAccessKey: &plain,
		Status:          types.StatusTypeActive,
		UserName:        &row.User,
		CreateDate:      &row.Created,
	}}, nil
}

// Secret returns the secret of an active access key, and the ARN of its user.
func (s *Service) Secret(id string) (secret, user string, ok bool) {
	v := s.store.View()
	key := v.AccessKeys.Get(id)
	if key == nil || key.Inactive {
		return "", "", false
	}
	u := v.Users.Get(state.NameKey(key.User))
	secret, err := s.opts.Vault.Decrypt(key.Secret, secretPurpose(id))
	return secret, s.arn("user", u.Path, u.Name), err == nil
}

// keyOf returns a user's key, or NoSuchEntity.
func keyOf(v *state.View, user, id string) (*state.AccessKey, error) {
	if _, err := userKind.find(v, user); err != nil {
		return nil, err
	}
	if k := v.AccessKeys.Get(id); k != nil && k.User == user {
		return k, nil
	}
	return nil, noSuch("The Access Key with id %s cannot be found.", id)
}

// UpdateAccessKey activates a key, or deactivates it.
func (s *Service) UpdateAccessKey(ctx context.Context, in *iam.UpdateAccessKeyInput) (*iam.UpdateAccessKeyOutput, error) {
	user, err := s.callingUser(ctx, in.UserName)
	if err != nil {
		return nil, err
	}
	if in.Status == types.StatusTypeExpired {
		return nil, invalid("A key can be set Active or Inactive, not %s.", in.Status)
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := keyOf(tx.View, user, *in.AccessKeyId)
		if err != nil {
			return err
		}
		k := *old
		k.Inactive = in.Status == types.StatusTypeInactive
		tx.AccessKeys.Put(&k)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.UpdateAccessKeyOutput{}, nil
}

// DeleteAccessKey deletes a key.
func (s *Service) DeleteAccessKey(ctx context.Context, in *iam.DeleteAccessKeyInput) (*iam.DeleteAccessKeyOutput, error) {
	user, err := s.callingUser(ctx, in.UserName)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		k, err := keyOf(tx.View, user, *in.AccessKeyId)
		if err != nil {
			return err
		}
		tx.AccessKeys.Delete(k.ID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &iam.DeleteAccessKeyOutput{}, nil
}

// ListAccessKeys lists a user's keys, without their secrets.
func (s *Service) ListAccessKeys(ctx context.Context, in *iam.ListAccessKeysInput) (*iam.ListAccessKeysOutput, error) {
	user, err := s.callingUser(ctx, in.UserName)
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	if _, err := userKind.find(v, user); err != nil {
		return nil, err
	}
	all := slices.Collect(v.AccessKeys.By(state.AccessKeysByUser, user))
	on, truncated, next, err := page("ListAccessKeys", all, in.MaxItems, in.Marker, func(k *state.AccessKey) string { return k.ID })
	if err != nil {
		return nil, err
	}
	keys := mapped(on, func(k *state.AccessKey) types.AccessKeyMetadata {
		status := types.StatusTypeActive
		if k.Inactive {
			status = types.StatusTypeInactive
		}
		return types.AccessKeyMetadata{AccessKeyId: &k.ID, CreateDate: &k.Created, Status: status, UserName: &k.User}
	})
	return &iam.ListAccessKeysOutput{AccessKeyMetadata: keys, IsTruncated: truncated, Marker: next}, nil
}
