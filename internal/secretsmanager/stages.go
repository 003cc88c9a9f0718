package secretsmanager

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/pintle/pintle/internal/state"
)

// stagesOf returns the staging labels of a version.
func stagesOf(secret *state.Secret, id string) (stages []string) {
	for stage, version := range secret.Stages {
		if version == id {
			stages = append(stages, stage)
		}
	}
	slices.Sort(stages)
	return stages
}

// attach moves a staging label to a version. The version that was current becomes the previous one. The secret's labels are its own copy.
func attach(secret *state.Secret, stage, id string) {
	if secret.Stages == nil {
		secret.Stages = map[string]string{}
	}
	if was := secret.Stages[current]; stage == current && was != "" && was != id {
		secret.Stages[previous] = was
	}
	secret.Stages[stage] = id
}

// UpdateSecretVersionStage attaches a staging label to a version, moves it to another one, or removes it.
func (s *Service) UpdateSecretVersionStage(
	ctx context.Context, in *secretsmanager.UpdateSecretVersionStageInput,
) (*secretsmanager.UpdateSecretVersionStageOutput, error) {
	var secret *state.Secret
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.findActive(tx.View, *in.SecretId)
		if err != nil {
			return err
		}
		if err := checkMove(tx.View, old, in); err != nil {
			return err
		}
		secret = new(*old)
		secret.Changed = s.now()
		secret.Stages = maps.Clone(old.Stages)
		if in.MoveToVersionId == nil {
			delete(secret.Stages, *in.VersionStage)
		} else {
			attach(secret, *in.VersionStage, *in.MoveToVersionId)
			if err := checkStages(secret); err != nil {
				return err
			}
		}
		tx.Secrets.Put(secret)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &secretsmanager.UpdateSecretVersionStageOutput{ARN: &secret.ARN, Name: &secret.Name}, nil
}

// checkMove checks the move of a staging label: whoever moves it has to know which version has it.
func checkMove(v *state.View, secret *state.Secret, in *secretsmanager.UpdateSecretVersionStageInput) error {
	from := aws.ToString(in.RemoveFromVersionId)
	to := aws.ToString(in.MoveToVersionId)
	stage := *in.VersionStage
	for _, id := range []string{from, to} {
		if id != "" && v.SecretVersions.Get(state.SecretVersionKey(secret.Name, id)) == nil {
			return valueNotFound("VersionId", id)
		}
	}
	was := secret.Stages[stage]
	switch {
	case from == "" && to == "":
		return invalid("You must provide RemoveFromVersionId, MoveToVersionId, or both.")
	case from == "" && was != "" && was != to:
		return invalid("The parameter RemoveFromVersionId can't be empty. Staging label %s is currently attached to version %s, so you must "+
			"explicitly reference that version in RemoveFromVersionId.", stage, was)
	case from != "" && from != was:
		return invalid("Staging label %s isn't attached to version %s, which RemoveFromVersionId names.", stage, from)
	case to == "" && stage == current:
		return invalid("You can only move staging label %s to a different secret version. It can't be completely removed.", current)
	}
	return nil
}

// RotateSecret is refused, with its reason: a function would have to be invoked for each of a rotation's steps, and nothing does that yet.
func (s *Service) RotateSecret(_ context.Context, in *secretsmanager.RotateSecretInput) (*secretsmanager.RotateSecretOutput, error) {
	if _, err := s.findActive(s.store.View(), *in.SecretId); err != nil {
		return nil, err
	}
	if aws.ToString(in.RotationLambdaARN) == "" {
		return nil, impossible("No Lambda rotation function ARN is associated with this secret.")
	}
	return nil, impossible("Pintle invokes no functions for the rotation of secrets yet. A function on a schedule can put new values with PutSecretValue.")
}
