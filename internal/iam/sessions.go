package iam

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// A session of a role may have policies of its own. It may do what both they and the role's allow:
// https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies.html#policies_session

// session is what a session has besides its role, as its token and its calls carry it.
type session struct {
	Inline  string   `json:"p,omitempty"`
	Managed []string `json:"a,omitempty"` // ARNs
	RoleID  string   `json:"r,omitempty"` // the unique id of the role that it ends with, if nothing else says so
	Marks
}

// Marks are what a session of a role tells of who made it. They are kept by sessions that are made from it: the source identity always, and
// tags that are transitive.
type Marks struct {
	Tags           []SessionTag `json:"t,omitempty"`
	SourceIdentity string       `json:"s,omitempty"`
}

// SessionTag is a tag of a session. It stands for a tag of the role with the same key.
type SessionTag struct {
	Key        string `json:"k"`
	Value      string `json:"v"`
	Transitive bool   `json:"x,omitempty"`
	inherited  bool
}

// sessionOf returns what a caller's session has; the zero session for a caller who has none.
func sessionOf(c call.Identity) (s session, err error) {
	if c.Session != "" {
		err = json.Unmarshal([]byte(c.Session), &s)
	}
	return s, err
}

func badValue(format string, args ...any) error {
	return account.Refuse("InvalidParameterValue", format, args...)
}

// Marked returns the marks of a session that a caller makes: those that it asks for, and those of its own session that are kept. Keys have no
// case.
func (s *Service) Marked(c call.Identity, asked Marks, transitive []string) (Marks, error) {
	own, err := sessionOf(c)
	if err != nil {
		return Marks{}, err
	}
	if own.SourceIdentity != "" && asked.SourceIdentity != "" && asked.SourceIdentity != own.SourceIdentity {
		return Marks{}, account.Refuse("ValidationError", "The source identity is already set for this assume role session")
	}
	if strings.HasPrefix(strings.ToLower(asked.SourceIdentity), "aws:") {
		return Marks{}, badValue("A source identity can't begin with aws:.")
	}
	m := Marks{SourceIdentity: cmp.Or(own.SourceIdentity, asked.SourceIdentity)}
	for _, t := range own.Tags {
		if t.Transitive {
			t.inherited = true
			m.Tags = append(m.Tags, t)
		}
	}
	for _, t := range asked.Tags {
		if err := m.add(t); err != nil {
			return Marks{}, err
		}
	}
	for _, key := range transitive {
		i := m.index(key)
		if i < 0 || m.Tags[i].inherited {
			return Marks{}, badValue("The specified transitive tag key must be included in the requested tags.")
		}
		m.Tags[i].Transitive = true
	}
	if len(m.Tags) > account.MaxTags {
		return Marks{}, badValue("A session can have at most %d tags, with those that it inherits.", account.MaxTags)
	}
	return m, nil
}

func (m *Marks) index(key string) int {
	return slices.IndexFunc(m.Tags, func(t SessionTag) bool { return strings.EqualFold(t.Key, key) })
}

// add adds a tag that was asked for.
func (m *Marks) add(t SessionTag) error {
	i := m.index(t.Key)
	switch {
	case i >= 0 && m.Tags[i].inherited:
		return badValue("One of the specified transitive tag keys can't be set because it conflicts with a transitive tag key from the calling session.")
	case i >= 0:
		return badValue("Duplicate tag keys found. Please note that Tag keys are case insensitive.")
	case strings.HasPrefix(strings.ToLower(t.Key), "aws:"):
		return badValue("Tag keys can't begin with aws:, as %s does.", t.Key)
	}
	m.Tags = append(m.Tags, t)
	return nil
}

// request adds what a call that makes a session with the marks tells the role's trust policy: what was asked for, not what is inherited.
func (m *Marks) request(known policy.Context) {
	var keys, transitive []string
	for _, t := range m.Tags {
		if t.inherited {
			continue
		}
		known.Set("aws:RequestTag/"+t.Key, t.Value)
		keys = append(keys, t.Key)
		if t.Transitive {
			transitive = append(transitive, t.Key)
		}
	}
	if len(keys) > 0 {
		known.Set("aws:TagKeys", keys...)
	}
	if len(transitive) > 0 {
		known.Set("sts:TransitiveTagKeys", transitive...)
	}
	if m.SourceIdentity != "" {
		known.Set("sts:SourceIdentity", m.SourceIdentity)
	}
}

// tell adds what the marks of a session tell in each of its requests.
func (m *Marks) tell(known policy.Context) {
	for _, t := range m.Tags {
		known.Set("aws:PrincipalTag/"+t.Key, t.Value)
	}
	if m.SourceIdentity != "" {
		known.Set("aws:SourceIdentity", m.SourceIdentity)
	}
}

// maxSessionManaged is the most managed policies of a session, by API_AssumeRole.
const maxSessionManaged = 10

// PackSession checks the policies that a session is to have, and returns it as call.Identity has it, "" for one with nothing of its own, with how
// many characters that takes.
func (s *Service) PackSession(inline string, arns []string, m Marks) (packed string, size int, err error) {
	if inline == "" && len(arns) == 0 && len(m.Tags) == 0 && m.SourceIdentity == "" {
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
	for _, t := range m.Tags {
		size += utf8.RuneCountInString(t.Key) + utf8.RuneCountInString(t.Value)
	}
	b, err := json.Marshal(session{Inline: inline, Managed: arns, Marks: m})
	return string(b), size, err
}

// isLimited reports whether a session has policies of its own.
func (p *session) isLimited() bool { return p.Inline != "" || len(p.Managed) > 0 }

// ofSession returns a session's own policies. One that is gone since the session was made allows nothing.
func (s *Service) ofSession(v *state.View, p session) []*policy.Policy {
	all := []*policy.Policy{}
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
