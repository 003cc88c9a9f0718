package ssm

import (
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxPolicies is how many policies a parameter can have.
const maxPolicies = 10

// policy is a parameter's policy as callers write it:
// https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-policies.html
type policy struct {
	Type       string
	Version    string
	Attributes map[string]string
}

// setPolicies replaces a parameter's policies by those of a call, which may be nil for none. An empty policy means that all end.
func (s *Service) setPolicies(p *state.Parameter, v *state.ParameterVersion, text *string) error {
	if text == nil {
		return nil
	}
	var given []json.RawMessage
	if err := json.Unmarshal([]byte(*text), &given); err != nil {
		return badPolicy("The policies aren't a JSON array.")
	}
	if len(given) > maxPolicies {
		return &types.PoliciesLimitExceededException{Message: account.Message("A parameter can have at most %d policies.", maxPolicies)}
	}
	p.Expires = nil
	v.Policies = nil
	for _, raw := range given {
		var one policy
		if err := json.Unmarshal(raw, &one); err != nil {
			return badPolicy("A policy isn't an object with Type, Version and Attributes.")
		}
		if one.Type == "" && one.Attributes == nil {
			continue
		}
		if err := s.setPolicy(p, one); err != nil {
			return err
		}
		v.Policies = append(v.Policies, types.ParameterInlinePolicy{
			PolicyText:   aws.String(string(raw)),
			PolicyType:   &one.Type,
			PolicyStatus: aws.String("Pending"),
		})
	}
	return nil
}

func (s *Service) setPolicy(p *state.Parameter, one policy) error {
	switch one.Type {
	case "Expiration":
	case "ExpirationNotification", "NoChangeNotification":
		return &types.InvalidPolicyTypeException{Message: account.Message(
			"Policies of type %s aren't supported: Parameter Store tells EventBridge nothing here.", one.Type)}
	default:
		return &types.InvalidPolicyTypeException{Message: account.Message("The policy type %q isn't supported.", one.Type)}
	}
	at, err := time.Parse(time.RFC3339, one.Attributes["Timestamp"])
	switch {
	case one.Version != "1.0":
		return badPolicy("The version of the policy Expiration must be 1.0.")
	case err != nil:
		return badPolicy("The attribute Timestamp of the policy Expiration must be a time such as 2030-12-02T21:34:33.000Z.")
	case !at.After(s.now()):
		return badPolicy("The attribute Timestamp of the policy Expiration must be in the future.")
	case p.Expires != nil:
		return &types.IncompatiblePolicyException{Message: account.Message("A parameter can have only one policy of type Expiration.")}
	}
	p.Expires = new(at.UTC())
	return nil
}

func badPolicy(what string) error {
	return &types.InvalidPolicyAttributeException{Message: account.Message("%s", what)}
}
