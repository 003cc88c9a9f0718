package policy

import (
	"slices"
	"strings"
)

// Request is what somebody wants to do.
type Request struct {
	Principal       Principal
	Action          string // such as ecs:RunTask
	Resource        string // an ARN, or * for an action on nothing in particular
	ResourceAccount string // whose the resource is; "" means the principal's
	Context         Context
}

// Policies are all that apply to a request.
type Policies struct {
	Identity []*Policy // of the user with its groups, or of the role
	Resource *Policy   // of the resource, or nil
	Boundary *Policy   // the identity's permissions boundary, or nil
	Session  []*Policy // those of the session: what one of them allows, the session allows; nil if it has none
}

// Effect is what comes of a request.
type Effect uint8

// The effects.
const (
	ImplicitDeny Effect = iota // nothing allows it
	ExplicitDeny
	Allowed
)

// Source is the policy that decided.
type Source uint8

// The sources, in the order in which they are asked.
const (
	OfResource Source = iota
	OfIdentity
	OfBoundary
	OfSession
)

// texts of AWS's for the sources, in its messages.
var sourceNames = [...]string{"resource-based policy", "identity-based policy", "permissions boundary", "session policy"}

// Match is a statement that matches a request.
type Match struct {
	Source    Source
	Policy    *Policy
	Statement *Statement
}

// Decision is what comes of a request, and why.
type Decision struct {
	Effect Effect
	// Missing is the source that lacked an Allow, of an ImplicitDeny.
	Missing Source
	// Matches are the statements that decided: those that deny, or those that allow. An implicit deny has those that would have allowed it.
	Matches []Match
	// ByBoundary says what the boundary alone says, if there is one.
	ByBoundary bool
}

// Reason ends AWS's message for a request that isn't allowed.
func (d Decision) Reason(action string) string {
	switch {
	case d.Effect == Allowed:
		return ""
	case d.Effect == ExplicitDeny && d.Matches[0].Source == OfIdentity:
		return "with an explicit deny in an identity-based policy"
	case d.Effect == ExplicitDeny:
		return "with an explicit deny in a " + sourceNames[d.Matches[0].Source]
	}
	return "because no " + sourceNames[d.Missing] + " allows the " + action + " action"
}

// evaluation is the evaluation of one policy for a request.
type evaluation struct {
	request   *Request
	action    string // in lower case
	context   Context
	variables bool // whether the policy has any
}

// Evaluate says whether the policies allow a request, in AWS's order: a Deny in any of them counts before everything else. Then something
// must allow it, in the resource's policy or in the identity's, and the boundary and the session's policies too, if there are any.
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html
func Evaluate(r Request, p Policies) Decision {
	var all verdict
	byResource := all.add(r, OfResource, p.Resource)
	byIdentity := all.add(r, OfIdentity, p.Identity...) != unnamed
	byBoundary := p.Boundary == nil || all.add(r, OfBoundary, p.Boundary) != unnamed
	bySession := p.Session == nil || all.add(r, OfSession, p.Session...) != unnamed
	d := Decision{ByBoundary: byBoundary, Matches: all.allows}
	if len(all.denies) > 0 {
		d.Effect = ExplicitDeny
		d.Matches = all.denies
		return d
	}
	crosses := r.ResourceAccount != "" && r.ResourceAccount != r.Principal.Account()
	identifies := r.Principal.ARN != ""
	switch {
	case r.Principal.IsRoot() && !crosses:
		d.Effect = Allowed
	case byResource == itself && (!crosses || !identifies):
		d.Effect = Allowed
	case crosses && byResource == unnamed, !identifies:
		d.Missing = OfResource
	case r.Principal.IsRoot():
		d.Effect = Allowed
	case !byIdentity && (crosses || byResource != byRole):
		d.Missing = OfIdentity
	case !byBoundary:
		d.Missing = OfBoundary
	case !bySession:
		d.Missing = OfSession
	default:
		d.Effect = Allowed
	}
	return d
}

// verdict collects the statements that match.
type verdict struct {
	allows []Match
	denies []Match
}

// add adds the matching statements of a source's policies, and returns how the best of those that allow names the principal.
func (v *verdict) add(r Request, source Source, policies ...*Policy) (best grant) {
	for _, p := range policies {
		if p == nil {
			continue
		}
		e := &evaluation{&r, strings.ToLower(r.Action), r.Context, p.variables}
		for i := range p.Statements {
			s := &p.Statements[i]
			named := s.applies(r.Principal)
			switch {
			case named == unnamed || !e.matches(s):
			case s.Allow:
				v.allows = append(v.allows, Match{source, p, s})
				best = max(best, named)
			default:
				v.denies = append(v.denies, Match{source, p, s})
			}
		}
	}
	return best
}

// matches reports whether a statement is about the request's action and resource, and its conditions hold.
func (e *evaluation) matches(s *Statement) bool {
	action := slices.ContainsFunc(s.actions.values, func(a string) bool { return wild(strings.ToLower(a)).matches(e.action) })
	if action == s.actions.not {
		return false
	}
	if len(s.resources.values) > 0 && slices.ContainsFunc(s.resources.values, e.isResourceOf(s)) == s.resources.not {
		return false
	}
	return !slices.ContainsFunc(s.conditions, func(c condition) bool { return !c.holds(e) })
}

// isResourceOf returns what tells whether a text of a statement's Resource or NotResource matches. Where a variable has no value it doesn't;
// but an Allow of all that isn't ${unknown} allows nothing.
func (e *evaluation) isResourceOf(s *Statement) func(text string) bool {
	return func(text string) bool {
		p, ok := e.expand(text, true)
		if !ok {
			return s.Allow && s.resources.not
		}
		return p.matches(e.request.Resource)
	}
}
