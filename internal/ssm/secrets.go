package ssm

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
)

// secretPrefix begins the names of parameters that stand for secrets of Secrets Manager:
// https://docs.aws.amazon.com/systems-manager/latest/userguide/integration-ps-secretsmanager.html
const secretPrefix = "/aws/reference/secretsmanager/"

// secretID is the length from which on a selector is a version's id and no staging label.
const secretID = 32

// secret returns a secret as a parameter. A selector is a staging label, or a version's id.
func (s *Service) secret(ctx context.Context, ref reference, decrypt bool) (*types.Parameter, error) {
	if !decrypt {
		return nil, invalid("WithDecryption flag must be True for retrieving a Secret Manager secret.")
	}
	name := ref.names[0]
	in := &secretsmanager.GetSecretValueInput{SecretId: aws.String(strings.TrimPrefix(name, secretPrefix))}
	if selector := strings.TrimPrefix(ref.given, ":"); len(selector) >= secretID {
		in.VersionId = &selector
	} else if selector != "" {
		in.VersionStage = &selector
	}
	out, err := s.opts.Secrets.GetSecretValue(ctx, in)
	if err != nil {
		return nil, referenceError(err, name+ref.given)
	}
	source, err := json.Marshal(map[string]any{
		"ARN":           out.ARN,
		"createdDate":   float64(out.CreatedDate.UnixMilli()) / 1000,
		"name":          out.Name,
		"secretString":  out.SecretString,
		"versionId":     out.VersionId,
		"versionStages": out.VersionStages,
	})
	if err != nil {
		return nil, err
	}
	if out.SecretString == nil {
		return nil, invalid("The secret of %s is binary, so it can't be a parameter.", name)
	}
	return &types.Parameter{
		ARN:              out.ARN,
		DataType:         aws.String("text"),
		LastModifiedDate: out.CreatedDate,
		Name:             &name,
		Selector:         optional(ref.given),
		SourceResult:     aws.String(string(source)),
		Type:             types.ParameterTypeSecureString,
		Value:            out.SecretString,
	}, nil
}

// referenceError returns Secrets Manager's refusal as Parameter Store's.
func referenceError(err error, name string) error {
	if missing := new(smtypes.ResourceNotFoundException); errors.As(err, &missing) {
		return &types.ParameterNotFound{Message: account.Message(
			"An error occurred (ParameterNotFound) when referencing Secrets Manager: Secret %s not found.", name)}
	}
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return invalid("An error occurred (%s) when referencing Secrets Manager: %s", refused.ErrorCode(), refused.ErrorMessage())
	}
	return err
}
