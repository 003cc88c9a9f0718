package secretsmanager

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// The quotas of Secrets Manager: https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html
const (
	maxSecrets  = 500_000
	maxVersions = 100
	maxStages   = 20 // staging labels on all versions of a secret
)

// The staging labels of Secrets Manager's own.
const (
	current  = "AWSCURRENT"
	previous = "AWSPREVIOUS"
	pending  = "AWSPENDING"
)

// defaultKey is the only key there is: that of the control plane, under the name that AWS's has.
const defaultKey = "alias/aws/secretsmanager"

// value is what a call gives as a secret's value. Its fields don't show when it's printed.
type value struct {
	text   *string
	binary []byte
}

// String implements fmt.Stringer.
func (value) String() string { return "(a secret value)" }

// GoString implements fmt.GoStringer.
func (v value) GoString() string { return v.String() }

func (v value) isGiven() bool { return v.text != nil || v.binary != nil }

func (v value) bytes() string {
	if v.text != nil {
		return *v.text
	}
	return string(v.binary)
}

func (v value) check() error {
	if v.text != nil && v.binary != nil {
		return invalid("You can't specify both a binary secret value and a string secret value in the same secret.")
	}
	return nil
}

// checkToken checks a ClientRequestToken, which becomes the id of a version. Clients make one unless their caller does.
func checkToken(token *string) error {
	if aws.ToString(token) == "" {
		return impossible("You must provide a ClientRequestToken value. We recommend a UUID-type value.")
	}
	return nil
}

func (s *Service) checkKey(id *string) error {
	if key := aws.ToString(id); key != "" && key != defaultKey && key != s.opts.ARN("kms", defaultKey) {
		return &types.EncryptionFailure{Message: account.Message(
			"Pintle has no KMS. Secrets are encrypted with the control plane's own key, which is called %s: %q isn't that.", defaultKey, key)}
	}
	return nil
}

// checkType refuses secrets whose values another company keeps.
func checkType(kind *string) error {
	if aws.ToString(kind) != "" {
		return invalid("Type is for managed external secrets, which Pintle doesn't have.")
	}
	return nil
}

// CreateSecret creates a secret, with its first version if a value is given.
func (s *Service) CreateSecret(ctx context.Context, in *secretsmanager.CreateSecretInput) (*secretsmanager.CreateSecretOutput, error) {
	given := value{in.SecretString, in.SecretBinary}
	if err := s.checkCreate(in, given); err != nil {
		return nil, err
	}
	now := s.now()
	secret := &state.Secret{
		Name:        *in.Name,
		ARN:         s.newARN(*in.Name),
		Token:       *in.ClientRequestToken,
		Description: aws.ToString(in.Description),
		Tags:        in.Tags,
		Created:     now,
		Changed:     now,
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.named(tx.View, secret.Name)
		switch {
		case err == nil && old.DeletedAt != nil:
			return impossible("You can't create this secret because a secret with this name is already scheduled for deletion.")
		case err == nil && s.isRepeated(tx.View, old, *in.ClientRequestToken, given):
			secret = old
			return nil
		case err == nil:
			return exists("The operation failed because the secret %s already exists.", secret.Name)
		case tx.Secrets.Len() >= maxSecrets:
			return tooMany("There are already %d secrets, the maximum.", maxSecrets)
		}
		tx.DeleteSecret(secret.Name) // one that is gone and that the sweep hasn't met yet
		return s.put(tx, secret, *in.ClientRequestToken, given, []string{current})
	})
	if err != nil {
		return nil, err
	}
	out := &secretsmanager.CreateSecretOutput{ARN: &secret.ARN, Name: &secret.Name}
	if given.isGiven() {
		out.VersionId = in.ClientRequestToken
	}
	return out, nil
}

func (s *Service) checkCreate(in *secretsmanager.CreateSecretInput, given value) error {
	if len(*in.Name) > maxName || !validName.MatchString(*in.Name) {
		return checkName(" ")
	}
	if len(in.AddReplicaRegions) > 0 {
		return invalid("AddReplicaRegions can't be used: a Pintle is one region, so there is none to replicate secrets to.")
	}
	return cmp.Or(
		checkToken(in.ClientRequestToken), given.check(), s.checkKey(in.KmsKeyId), checkType(in.Type), checkTags(in.Tags),
	)
}

// isRepeated reports whether a secret was created by the same call before.
func (s *Service) isRepeated(v *state.View, secret *state.Secret, token string, given value) bool {
	if secret.Token != token {
		return false
	}
	version := v.SecretVersions.Get(state.SecretVersionKey(secret.Name, token))
	return version == nil && !given.isGiven() || version != nil && s.has(secret, version, given)
}

// has reports whether a version has a value.
func (s *Service) has(secret *state.Secret, version *state.SecretVersion, given value) bool {
	if !given.isGiven() || version.Binary != (given.text == nil) {
		return false
	}
	old, err := s.opts.Vault.Decrypt(version.Encrypted, purpose(secret, version))
	return err == nil && old == given.bytes()
}

// purpose is what a version's value is encrypted for.
func purpose(secret *state.Secret, version *state.SecretVersion) string {
	return vault.Purpose("secretsmanager", secret.ARN, version.ID)
}

// PutSecretValue adds a version to a secret and attaches staging labels to it.
func (s *Service) PutSecretValue(
	ctx context.Context, in *secretsmanager.PutSecretValueInput,
) (*secretsmanager.PutSecretValueOutput, error) {
	given := value{in.SecretString, in.SecretBinary}
	switch {
	case in.RotationToken != nil:
		return nil, invalid("RotationToken can't be used: Pintle doesn't rotate secrets.")
	case !given.isGiven():
		return nil, impossible("You must provide either SecretString or SecretBinary.")
	}
	if err := cmp.Or(checkToken(in.ClientRequestToken), given.check()); err != nil {
		return nil, err
	}
	var secret *state.Secret
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.findActive(tx.View, *in.SecretId)
		if err != nil {
			return err
		}
		secret = new(*old)
		stages := in.VersionStages
		if len(stages) == 0 || len(old.Stages) == 0 {
			stages = append([]string{current}, stages...)
		}
		secret.Changed = s.now()
		return s.put(tx, secret, *in.ClientRequestToken, given, stages)
	})
	if err != nil {
		return nil, err
	}
	return &secretsmanager.PutSecretValueOutput{
		ARN:           &secret.ARN,
		Name:          &secret.Name,
		VersionId:     in.ClientRequestToken,
		VersionStages: stagesOf(secret, *in.ClientRequestToken),
	}, nil
}

// UpdateSecret changes what is said of a secret and, if a value is given, makes that its current version. Unlike PutSecretValue it refuses the
// token of a version that there is, also with the same value: API_UpdateSecret.
func (s *Service) UpdateSecret(ctx context.Context, in *secretsmanager.UpdateSecretInput) (*secretsmanager.UpdateSecretOutput, error) {
	given := value{in.SecretString, in.SecretBinary}
	if err := cmp.Or(checkToken(in.ClientRequestToken), given.check(), s.checkKey(in.KmsKeyId), checkType(in.Type)); err != nil {
		return nil, err
	}
	var secret *state.Secret
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.findActive(tx.View, *in.SecretId)
		if err != nil {
			return err
		}
		if given.isGiven() && tx.SecretVersions.Get(state.SecretVersionKey(old.Name, *in.ClientRequestToken)) != nil {
			return tokenInUse(old, *in.ClientRequestToken)
		}
		secret = new(*old)
		secret.Description = aws.ToString(cmp.Or(in.Description, &old.Description))
		secret.Changed = s.now()
		return s.put(tx, secret, *in.ClientRequestToken, given, []string{current})
	})
	if err != nil {
		return nil, err
	}
	out := &secretsmanager.UpdateSecretOutput{ARN: &secret.ARN, Name: &secret.Name}
	if given.isGiven() {
		out.VersionId = in.ClientRequestToken
	}
	return out, nil
}

// put puts a secret's row and, if a value is given, a version with staging labels. A call that is repeated puts no second version.
func (s *Service) put(tx *state.Tx, secret *state.Secret, id string, given value, stages []string) error {
	if !given.isGiven() {
		tx.Secrets.Put(secret)
		return nil
	}
	if old := tx.SecretVersions.Get(state.SecretVersionKey(secret.Name, id)); old != nil {
		if !s.has(secret, old, given) {
			return tokenInUse(secret, id)
		}
		*secret = *tx.Secrets.Get(secret.Name) // the call succeeds and does nothing
		return nil
	}
	secret.Stages = maps.Clone(secret.Stages)
	if slices.Contains(stages, current) && secret.Stages[pending] == secret.Stages[current] {
		delete(secret.Stages, pending) // its rotation is over
	}
	for _, stage := range stages {
		attach(secret, stage, id)
	}
	if err := checkStages(secret); err != nil {
		return err
	}
	if err := s.makeRoom(tx, secret); err != nil {
		return err
	}
	version := &state.SecretVersion{Name: secret.Name, ID: id, Binary: given.text == nil, Created: s.now()}
	version.Encrypted = s.opts.Vault.Encrypt(given.bytes(), purpose(secret, version))
	tx.SecretVersions.Put(version)
	tx.Secrets.Put(secret)
	return nil
}

func tokenInUse(secret *state.Secret, token string) error {
	return exists("You can't use ClientRequestToken %s because that value is already in use for a version of secret %s.", token, secret.ARN)
}

func checkStages(secret *state.Secret) error {
	if len(secret.Stages) > maxStages {
		return tooMany("The versions of a secret can have at most %d staging labels together.", maxStages)
	}
	return nil
}

// makeRoom deletes the oldest version without staging labels if there are as many versions as there may be.
func (s *Service) makeRoom(tx *state.Tx, secret *state.Secret) error {
	versions := slices.Collect(tx.VersionsOfSecret(secret.Name))
	if len(versions) < maxVersions {
		return nil
	}
	labelled := slices.Collect(maps.Values(secret.Stages))
	versions = slices.DeleteFunc(versions, func(v *state.SecretVersion) bool { return slices.Contains(labelled, v.ID) })
	if len(versions) == 0 {
		return tooMany("The secret already has %d versions with staging labels, the maximum.", maxVersions)
	}
	oldest := slices.MinFunc(versions, func(a, b *state.SecretVersion) int { return a.Created.Compare(b.Created) })
	tx.SecretVersions.Delete(oldest.Key())
	return nil
}
