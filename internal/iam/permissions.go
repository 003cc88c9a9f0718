package iam

import (
	"slices"
	"strings"

	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Permissions are what a caller may do: its policies, and what is known of it in every request.
type Permissions struct {
	Principal policy.Principal
	Policies  policy.Policies
	Context   policy.Context
	User      string // the caller's name, if it's an IAM user
	// Unlimited callers have no policies that limit them: the account's owner, and a role that is a name alone.
	Unlimited bool
}

// PermissionsOf returns what a caller may do. A role that is a name alone, as tasks may have, may do everything, unless policies are enforced
// on all: then it has no policies, and may do nothing. A user that is gone may do nothing.
func (s *Service) PermissionsOf(c call.Identity) Permissions {
	v := s.store.View()
	p := Permissions{Principal: policy.Principal{ARN: c.Principal, Role: c.Role}, Context: policy.Context{}}
	user := c.User()
	switch {
	case c.Role != "":
		s.ofRole(v, c, &p)
	case user != "":
		p.User = user[strings.LastIndexByte(user, '/')+1:]
		if k, i, err := s.identityAt(v, c.Principal); err == nil && k == userKind {
			s.fillPermissions(v, k, i, &p)
		}
	default:
		p.Unlimited = true
	}
	return p
}

// ofRole fills in what a session of a role may do.
func (s *Service) ofRole(v *state.View, c call.Identity, p *Permissions) {
	r := v.RoleAt(s.opts.ID, c.Role)
	own, err := sessionOf(c)
	isLimited := err != nil || own.isLimited() // one that can't be read may do nothing
	switch {
	case own.RoleID != "" && (r == nil || r.ID != own.RoleID): // the role is gone, and with it what its session may do
	case r != nil:
		s.fillPermissions(v, roleKind, &r.Identity, p)
		p.Context.Set("aws:userid", r.ID+":"+c.Principal[strings.LastIndexByte(c.Principal, '/')+1:])
	case s.opts.Enforce:
	case !isLimited:
		p.Unlimited = true
	default:
		p.Policies.Identity = everything
	}
	if isLimited {
		p.Policies.Session = s.ofSession(v, own)
	}
	own.tell(p.Context)
}

func (s *Service) fillPermissions(v *state.View, k *kind, i *state.Identity, p *Permissions) {
	p.Context = s.contextOf(k, i)
	p.Policies.Identity = parsed(s.policiesOf(v, k, i))
	if i.Boundary != "" {
		p.Policies.Boundary = s.sourceOf(v, i.Boundary).Policy
	}
}

// Complete returns the ARN, with its path, of what has the name in an ARN that has none: a user, a group, a role or an instance profile. The
// ARN of anything else stays as it is.
func (s *Service) Complete(arn string) string {
	v := s.store.View()
	for _, k := range kinds {
		name, ok := s.opts.GlobalResourceOf("iam", k.noun+"/", arn)
		if !ok {
			continue
		}
		if i := k.get(v, name); i != nil {
			return s.arn(k.noun, i.Path, i.Name)
		}
	}
	if name, ok := s.opts.GlobalResourceOf("iam", "instance-profile/", arn); ok {
		if i := v.InstanceProfiles.Get(state.NameKey(name)); i != nil {
			return s.arn("instance-profile", i.Path, i.Name)
		}
	}
	return arn
}

// everything is the policy of those that nothing limits.
var everything = []*policy.Policy{source("", "", document(allow("*"))).Policy}

// limits returns the policies of a caller, of which an unlimited one has one that allows everything.
func (p Permissions) limits() policy.Policies {
	all := p.Policies
	if p.Unlimited {
		all.Identity = slices.Clone(everything)
	}
	return all
}
