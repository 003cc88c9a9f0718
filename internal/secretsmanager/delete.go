package secretsmanager

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/state"
)

// The bounds of a recovery window, and its default, in days.
const (
	minWindow   = 7
	maxWindow   = 30
	usualWindow = 30
)

// DeleteSecret marks a secret for deletion, after which it can be restored for a while, or deletes it at once.
func (s *Service) DeleteSecret(ctx context.Context, in *secretsmanager.DeleteSecretInput) (*secretsmanager.DeleteSecretOutput, error) {
	force := aws.ToBool(in.ForceDeleteWithoutRecovery)
	window := int64(usualWindow)
	if in.RecoveryWindowInDays != nil {
		window = *in.RecoveryWindowInDays
	}
	switch {
	case force && in.RecoveryWindowInDays != nil:
		return nil, invalid("You can't use ForceDeleteWithoutRecovery in conjunction with RecoveryWindowInDays.")
	case window < minWindow || window > maxWindow:
		return nil, invalid("The RecoveryWindowInDays value must be between %d and %d days (inclusive).", minWindow, maxWindow)
	}
	out := &secretsmanager.DeleteSecretOutput{DeletionDate: new(s.now())}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.find(tx.View, *in.SecretId)
		if missing := new(types.ResourceNotFoundException); force && errors.As(err, &missing) {
			out.ARN, out.Name = s.absent(*in.SecretId)
			return nil
		}
		if err == nil && !force {
			old, err = s.findActive(tx.View, *in.SecretId)
		}
		if err != nil {
			return err
		}
		out.ARN, out.Name = &old.ARN, &old.Name
		if force {
			tx.DeleteSecret(old.Name)
			return nil
		}
		secret := *old
		secret.DeletedAt = new(s.now().Add(time.Duration(window) * 24 * time.Hour))
		out.DeletionDate = secret.DeletedAt
		tx.Secrets.Put(&secret)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// absent returns the ARN and the name of a secret that isn't there, which force deletes without a word.
func (s *Service) absent(id string) (arn, name *string) {
	if rest, isARN := s.opts.ResourceOf("secretsmanager", "secret:", id); isARN {
		return &id, &rest
	}
	return new(s.newARN(id)), &id
}

// RestoreSecret takes back a deletion whose recovery window isn't over.
func (s *Service) RestoreSecret(ctx context.Context, in *secretsmanager.RestoreSecretInput) (*secretsmanager.RestoreSecretOutput, error) {
	out := &secretsmanager.RestoreSecretOutput{}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.find(tx.View, *in.SecretId)
		if err != nil {
			return err
		}
		secret := *old
		secret.DeletedAt = nil
		tx.Secrets.Put(&secret)
		out.ARN, out.Name = &secret.ARN, &secret.Name
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
