package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/acs"
)

// Parameters reads the parameters that containers have as secrets. It's Parameter Store.
type Parameters interface {
	GetParameters(context.Context, *ssm.GetParametersInput, ...func(*ssm.Options)) (*ssm.GetParametersOutput, error)
}

// SecretValues reads the secrets of containers. It's Secrets Manager.
type SecretValues interface {
	GetSecretValue(
		context.Context, *secretsmanager.GetSecretValueInput, ...func(*secretsmanager.Options),
	) (*secretsmanager.GetSecretValueOutput, error)
}

// maxNames is how many parameters one call of GetParameters may name.
const maxNames = 10

// maxTries is how often the SDK tries each call.
const maxTries = 5

// secrets fetches secrets as their task's execution role, and returns their values by where they come from. Its errors tell no value.
func (a *Agent) secrets(ctx context.Context, role acs.IAMRoleCredentials, wanted []acs.Secret) (map[string]string, error) {
	byRegion := map[string][]string{}
	values := map[string]string{}
	for _, s := range wanted {
		switch {
		case s.Provider == "ssm" && a.config.Parameters != nil:
			if !slices.Contains(byRegion[s.Region], s.ValueFrom) {
				byRegion[s.Region] = append(byRegion[s.Region], s.ValueFrom)
			}
		case s.Provider == "asm" && a.config.SecretValues != nil:
			value, err := a.secretValue(ctx, role, s)
			if err != nil {
				return nil, notRetrieved("secret from asm", err)
			}
			values[s.ValueFrom] = value
		default:
			return nil, fmt.Errorf("this node can't fetch secrets of the provider %s", s.Provider)
		}
	}
	for _, region := range slices.Sorted(maps.Keys(byRegion)) {
		for names := range slices.Chunk(byRegion[region], maxNames) {
			if err := a.addParameters(ctx, role, region, names, values); err != nil {
				return nil, notRetrieved("secrets from ssm", err)
			}
		}
	}
	return values, nil
}

// notRetrieved words an error as ECS does. It counts tries where ECS says retries.
func notRetrieved(what string, err error) error {
	tries := 1
	var last *retry.MaxAttemptsError
	if errors.As(err, &last) {
		tries = last.Attempt
	}
	return fmt.Errorf("execution resource retrieval failed: unable to retrieve %s: service call has been retried %d time(s): %w",
		what, tries, err)
}

// shortRefusal is an error of a call with its code and message alone, without what the SDK says around them.
type shortRefusal struct {
	smithy.APIError
	whole error
}

// Error implements error.
func (r *shortRefusal) Error() string { return r.ErrorCode() + ": " + r.ErrorMessage() }

// Unwrap returns what the SDK said.
func (r *shortRefusal) Unwrap() error { return r.whole }

// short returns the error of a call as short as ECS shows it.
func short(err error) error {
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return &shortRefusal{refused, err}
	}
	return err
}

// as returns the credentials of a role for one call.
func as(role acs.IAMRoleCredentials) aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(role.AccessKeyID, role.SecretAccessKey, role.SessionToken)
}

// addParameters adds the values of up to maxNames parameters by the names that they were asked for under.
func (a *Agent) addParameters(ctx context.Context, role acs.IAMRoleCredentials, region string, names []string, values map[string]string) error {
	in := &ssm.GetParametersInput{Names: names, WithDecryption: aws.Bool(true)}
	out, err := a.config.Parameters.GetParameters(ctx, in, func(o *ssm.Options) {
		o.Credentials = as(role)
		o.RetryMaxAttempts = maxTries
		o.Region = cmp.Or(region, o.Region)
	})
	if err != nil {
		return short(err)
	}
	for _, p := range out.Parameters {
		selector := aws.ToString(p.Selector)
		values[aws.ToString(p.Name)+selector] = aws.ToString(p.Value)
		values[aws.ToString(p.ARN)+selector] = aws.ToString(p.Value)
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := values[name]; return ok })
	if len(missing) > 0 {
		return fmt.Errorf("invalid parameters: %s", strings.Join(missing, ", "))
	}
	return nil
}

// reference is what a valueFrom says of a secret:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/secrets-envvar-secrets-manager.html
type reference struct{ id, jsonKey, stage, version string }

// The parts of a secret's ARN, and of one with a JSON key, a stage and a version behind it, each of which may be empty.
const (
	partsOfARN       = 7
	partsOfReference = 10
)

func parseReference(valueFrom string) (reference, error) {
	parts := strings.Split(valueFrom, ":")
	switch {
	case parts[0] != "arn" || len(parts) == partsOfARN:
		return reference{id: valueFrom}, nil
	case len(parts) == partsOfReference:
		return reference{strings.Join(parts[:partsOfARN], ":"), parts[7], parts[8], parts[9]}, nil
	}
	return reference{}, fmt.Errorf("%s is neither a secret's ARN nor one with :json-key:version-stage:version-id behind it", valueFrom)
}

// secretValue returns the value of a secret, or that of a key in it.
func (a *Agent) secretValue(ctx context.Context, role acs.IAMRoleCredentials, s acs.Secret) (string, error) {
	ref, err := parseReference(s.ValueFrom)
	if err != nil {
		return "", err
	}
	in := &secretsmanager.GetSecretValueInput{SecretId: &ref.id}
	if ref.stage != "" {
		in.VersionStage = &ref.stage
	}
	if ref.version != "" {
		in.VersionId = &ref.version
	}
	out, err := a.config.SecretValues.GetSecretValue(ctx, in, func(o *secretsmanager.Options) {
		o.Credentials = as(role)
		o.RetryMaxAttempts = maxTries
		o.Region = cmp.Or(s.Region, o.Region)
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("failed to fetch secret %s from secrets manager: %w", ref.id, short(err))
	case out.SecretString == nil:
		return "", fmt.Errorf("the secret %s is binary, so it can't be an environment variable", ref.id)
	case ref.jsonKey == "":
		return *out.SecretString, nil
	}
	return jsonValue(*out.SecretString, ref)
}

// jsonValue returns the value of a key in a JSON object: a string as it is, and anything else as JSON. The errors of the JSON package would
// tell of the secret.
func jsonValue(text string, ref reference) (string, error) {
	var keys map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &keys) != nil {
		return "", fmt.Errorf("the secret %s isn't a JSON object, so it has no key %s", ref.id, ref.jsonKey)
	}
	raw, ok := keys[ref.jsonKey]
	if !ok {
		return "", fmt.Errorf("retrieved secret from Secrets Manager did not contain json key %s", ref.jsonKey)
	}
	var value string
	if string(raw) == "null" || json.Unmarshal(raw, &value) != nil {
		return string(raw), nil
	}
	return value, nil
}
