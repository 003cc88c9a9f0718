package iam

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
)

// A session of a role may have policies of its own. It may do what both they and the role's allow:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session

// sessionPolicies are a session's own, as its token and its calls carry them.
type sessionPolicies struct {
	Inline  string   `json:"p,omitempty"`
	Managed []string `json:"a,omitempty"` // ARNs
}

// maxSessionManaged is the most managed policies of a session, by API_AssumeRole.
const maxSessionManaged = 10

// SessionPolicies checks the policies that a session is to have, and returns them as call.Identity has them, "" for none, with how many
// characters they take.
func (s *Service) SessionPolicies(inline string, arns []string) (packed string, size int, err error) {
	if inline == "" && len(arns) == 0 {
		return "", 0, nil
	}
	if inline != "" {
		if _, err := parse(policy.Identity, inline); err != nil {
			return "", 0, err
		}
	}
	size = utf8.RuneCountInString(inline)
	for _, arn := range arns {
		if s.managed(s.store.View(), arn) == nil {
			return "", 0, account.Refuse("ValidationError", "Policy %s does not exist or is not attachable.", arn)
		}
		size += len(arn)
	}
	if len(arns) > maxSessionManaged {
		return "", 0, account.Refuse("ValidationError", "A session can have at most %d managed policies.", maxSessionManaged)
	}
	b, err := json.Marshal(sessionPolicies{inline, arns})
	return string(b), size, err
}

// ofSession returns the policies that SessionPolicies packed. One that is gone since then, or can't be read, allows nothing.
func (s *Service) ofSession(v *state.View, packed string) []*policy.Policy {
	var p sessionPolicies
	all := []*policy.Policy{}
	if json.Unmarshal([]byte(packed), &p) != nil {
		return all
	}
	if p.Inline != "" {
		all = append(all, source("", "", p.Inline).Policy)
	}
	for _, arn := range p.Managed {
		if m := s.managed(v, arn); m != nil {
			all = append(all, source("", "", m.Document()).Policy)
		}
	}
	return all
}
