package iam

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Assumption is what a caller tells who wants to assume a role.
type Assumption struct {
	ExternalID  *string
	SessionName string
	Marks       Marks
}

// Assumable is a role that may be assumed. It's zero for a role that is a name alone.
type Assumable struct {
	ID         string
	MaxSession time.Duration
}

// RoleID returns the unique id of the role with an ARN, or "".
func (s *Service) RoleID(arn string) string {
	if r := s.store.View().RoleAt(s.opts.ID, arn); r != nil {
		return r.ID
	}
	return ""
}

// Trusts reports whether the role with an ARN trusts a service to assume it, such as events.amazonaws.com. A role that is a name alone trusts
// everybody, unless policies are enforced for those, too.
func (s *Service) Trusts(arn, service string) bool {
	r := s.store.View().RoleAt(s.opts.ID, arn)
	if r == nil {
		return !s.opts.Enforce
	}
	trust, err := policy.Parse(policy.Trust, r.Trust)
	if err != nil {
		return false
	}
	known := policy.Context{}
	known.Set("aws:SourceAccount", s.opts.ID)
	return policy.Evaluate(policy.Request{
		Principal: policy.Principal{Service: service},
		Action:    "sts:AssumeRole",
		Resource:  arn,
		Context:   known,
	}, policy.Policies{Resource: trust}).Effect == policy.Allowed
}

// UserID returns the unique id of the user who calls, or "" if the caller is none.
func (s *Service) UserID(caller call.Identity) string {
	name := caller.User()
	if u := s.store.View().Users.Get(state.NameKey(name[strings.LastIndexByte(name, '/')+1:])); u != nil {
		return u.ID
	}
	return ""
}

// Assumable returns the role with an ARN if the caller may assume it, or else AccessDenied. The account's owner always may. A role that is a
// name alone is for those that no policies limit.
func (s *Service) Assumable(ctx context.Context, arn string, a Assumption) (Assumable, error) {
	v := s.store.View()
	r := v.RoleAt(s.opts.ID, arn)
	c := call.From(ctx)
	who := s.PermissionsOf(c.Identity)
	denied := account.RefuseWith(403, "AccessDenied", "%s", account.NotAuthorized(c.Principal, "sts:AssumeRole", arn, ""))
	switch {
	case r == nil && who.Unlimited:
		return Assumable{}, nil
	case r == nil:
		return Assumable{}, denied
	}
	found := Assumable{ID: r.ID, MaxSession: time.Duration(r.MaxSessionSeconds) * time.Second}
	if c.Principal == "" || c.Principal == s.opts.Root() {
		return found, nil
	}
	trust, err := policy.Parse(policy.Trust, r.Trust)
	if err != nil {
		return Assumable{}, err
	}
	request := policy.Request{Principal: who.Principal, Resource: arn, Context: who.Context}
	for _, t := range r.Tags {
		request.Context.Set("aws:ResourceTag/"+*t.Key, aws.ToString(t.Value))
		request.Context.Set("iam:ResourceTag/"+*t.Key, aws.ToString(t.Value))
	}
	request.Context.Set("sts:RoleSessionName", a.SessionName)
	if a.ExternalID != nil {
		request.Context.Set("sts:ExternalId", *a.ExternalID)
	}
	a.Marks.request(request.Context)
	all := who.limits()
	all.Resource = trust
	for _, request.Action = range a.actions() {
		if !isTrusted(request, all) {
			return Assumable{}, account.RefuseWith(403, "AccessDenied", "%s", account.NotAuthorized(c.Principal, request.Action, arn, ""))
		}
	}
	return found, nil
}

// ServiceSession returns the session that a service of AWS's has of a role, as CloudFormation has of a stack's, if the role is there and trusts
// the service. What the session may do ends with the role.
func (s *Service) ServiceSession(arn, service, name string) (call.Identity, error) {
	r := s.store.View().RoleAt(s.opts.ID, arn)
	if r == nil {
		return call.Identity{}, noSuch("The role %s cannot be found.", arn)
	}
	trust, err := policy.Parse(policy.Trust, r.Trust)
	if err != nil {
		return call.Identity{}, err
	}
	request := policy.Request{Principal: policy.Principal{Service: service}, Action: "sts:AssumeRole", Resource: arn, Context: policy.Context{}}
	if !isTrusted(request, policy.Policies{Resource: trust}) {
		return call.Identity{}, account.RefuseWith(403, "AccessDenied", "%s", account.NotAuthorized(service, request.Action, arn, ""))
	}
	own, err := json.Marshal(session{RoleID: r.ID})
	return call.Identity{Principal: s.opts.GlobalARN("sts", "assumed-role/"+r.Name+"/"+name), Role: arn, Session: string(own)}, err
}

// actions returns what a caller must be allowed to. It's so for what its session hands on, too.
func (a *Assumption) actions() []string {
	all := []string{"sts:AssumeRole"}
	if len(a.Marks.Tags) > 0 {
		all = append(all, "sts:TagSession")
	}
	if a.Marks.SourceIdentity != "" {
		all = append(all, "sts:SetSourceIdentity")
	}
	return all
}

// isTrusted reports whether policies allow what makes a session. Whatever the caller's own allow, the role's trust policy must name the caller.
func isTrusted(r policy.Request, all policy.Policies) bool {
	d := policy.Evaluate(r, all)
	return d.Effect == policy.Allowed && slices.ContainsFunc(d.Matches, func(m policy.Match) bool { return m.Source == policy.OfResource })
}
