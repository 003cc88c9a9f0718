package secretsmanager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// statement is what is checked of a statement of a policy.
type statement struct {
	Effect                  string
	Principal, NotPrincipal json.RawMessage
	Action, NotAction       json.RawMessage
	Resource, NotResource   json.RawMessage
	Condition               json.RawMessage
}

// parsePolicy checks the form of a resource policy and returns its statements.
func parsePolicy(text string) ([]statement, error) {
	var policy struct{ Statement json.RawMessage }
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return nil, fmt.Errorf("the policy isn't a JSON object: %w", err)
	}
	var statements []statement
	list := bytes.TrimSpace(policy.Statement)
	if len(list) > 0 && list[0] == '{' {
		list = slices.Concat([]byte{'['}, list, []byte{']'})
	}
	if err := json.Unmarshal(list, &statements); err != nil || len(statements) == 0 {
		return nil, fmt.Errorf("the policy has no statements")
	}
	for i, s := range statements {
		switch {
		case s.Effect != "Allow" && s.Effect != "Deny":
			return nil, fmt.Errorf("the effect of statement %d is neither Allow nor Deny", i+1)
		case (s.Principal == nil) == (s.NotPrincipal == nil):
			return nil, fmt.Errorf("statement %d needs either Principal or NotPrincipal", i+1)
		case (s.Action == nil) == (s.NotAction == nil):
			return nil, fmt.Errorf("statement %d needs either Action or NotAction", i+1)
		case (s.Resource == nil) == (s.NotResource == nil):
			return nil, fmt.Errorf("statement %d needs either Resource or NotResource", i+1)
		}
	}
	return statements, nil
}

// isPublic reports whether a statement allows everybody something without a condition.
func (s statement) isPublic() bool {
	var everybody struct{ AWS any }
	principal := string(s.Principal)
	if err := json.Unmarshal(s.Principal, &everybody); err == nil {
		if many, ok := everybody.AWS.([]any); everybody.AWS == "*" || ok && slices.Contains(many, any("*")) {
			principal = `"*"`
		}
	}
	return s.Effect == "Allow" && s.Condition == nil && (principal == `"*"` || s.NotPrincipal != nil)
}

// PutResourcePolicy gives a secret a resource policy in the place of any other.
func (s *Service) PutResourcePolicy(
	ctx context.Context, in *secretsmanager.PutResourcePolicyInput,
) (*secretsmanager.PutResourcePolicyOutput, error) {
	statements, err := parsePolicy(*in.ResourcePolicy)
	if err != nil {
		return nil, &types.MalformedPolicyDocumentException{Message: account.Message("This resource policy is malformed: %v.", err)}
	}
	if aws.ToBool(in.BlockPublicPolicy) && slices.ContainsFunc(statements, statement.isPublic) {
		return nil, &types.PublicPolicyException{Message: account.Message(
			"This resource policy grants broad access to the secret, which BlockPublicPolicy refuses.")}
	}
	secret, err := s.setPolicy(ctx, *in.SecretId, *in.ResourcePolicy)
	if err != nil {
		return nil, err
	}
	return &secretsmanager.PutResourcePolicyOutput{ARN: &secret.ARN, Name: &secret.Name}, nil
}

// DeleteResourcePolicy takes a secret's resource policy away.
func (s *Service) DeleteResourcePolicy(
	ctx context.Context, in *secretsmanager.DeleteResourcePolicyInput,
) (*secretsmanager.DeleteResourcePolicyOutput, error) {
	secret, err := s.setPolicy(ctx, *in.SecretId, "")
	if err != nil {
		return nil, err
	}
	return &secretsmanager.DeleteResourcePolicyOutput{ARN: &secret.ARN, Name: &secret.Name}, nil
}

func (s *Service) setPolicy(ctx context.Context, id, policy string) (*state.Secret, error) {
	var secret *state.Secret
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.findActive(tx.View, id)
		if err != nil {
			return err
		}
		secret = new(*old)
		secret.Policy = policy
		tx.Secrets.Put(secret)
		return nil
	})
	return secret, err
}

// GetResourcePolicy returns a secret's resource policy, if it has one.
func (s *Service) GetResourcePolicy(
	_ context.Context, in *secretsmanager.GetResourcePolicyInput,
) (*secretsmanager.GetResourcePolicyOutput, error) {
	secret, err := s.findActive(s.store.View(), *in.SecretId)
	if err != nil {
		return nil, err
	}
	return &secretsmanager.GetResourcePolicyOutput{
		ARN:            &secret.ARN,
		Name:           &secret.Name,
		ResourcePolicy: optional(secret.Policy),
	}, nil
}

// ValidateResourcePolicy says what is wrong with a resource policy.
func (s *Service) ValidateResourcePolicy(
	_ context.Context, in *secretsmanager.ValidateResourcePolicyInput,
) (*secretsmanager.ValidateResourcePolicyOutput, error) {
	if in.SecretId != nil {
		if _, err := s.findActive(s.store.View(), *in.SecretId); err != nil {
			return nil, err
		}
	}
	out := &secretsmanager.ValidateResourcePolicyOutput{ValidationErrors: []types.ValidationErrorsEntry{}}
	fault := func(check, message string) {
		out.ValidationErrors = append(out.ValidationErrors, types.ValidationErrorsEntry{CheckName: &check, ErrorMessage: &message})
	}
	statements, err := parsePolicy(*in.ResourcePolicy)
	if err != nil {
		fault("SYNTAX_CHECK", err.Error())
	}
	if slices.ContainsFunc(statements, statement.isPublic) {
		fault("PUBLIC_POLICY_CHECK", "the policy grants broad access to the secret")
	}
	out.PolicyValidationPassed = len(out.ValidationErrors) == 0
	return out, nil
}
