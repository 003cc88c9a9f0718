package iam

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
)

// sourced is a policy that applies to somebody, and where it comes from.
type sourced struct {
	*policy.Policy
	id       string
	kind     types.PolicySourceType
	document string
}

// source parses a policy that was checked when it was put.
func source(id string, kind types.PolicySourceType, document string) sourced {
	p, err := policy.Parse(policy.Identity, document)
	if err != nil {
		p = &policy.Policy{}
	}
	return sourced{p, id, kind, document}
}

// policiesOf returns the policies of an identity; a user has those of its groups, too.
func (s *Service) policiesOf(v *state.View, k *kind, i *state.Identity) (all []sourced) {
	for _, name := range slices.Sorted(maps.Keys(i.Inline)) {
		all = append(all, source(name, types.PolicySourceType(k.noun), i.Inline[name]))
	}
	for _, arn := range i.Attached {
		all = append(all, s.sourceOf(v, arn))
	}
	if k != userKind {
		return all
	}
	for _, group := range v.Users.Get(state.NameKey(i.Name)).Groups {
		all = append(all, s.policiesOf(v, groupKind, groupKind.get(v, group))...)
	}
	return all
}

// sourceOf returns the managed policy with an ARN.
func (s *Service) sourceOf(v *state.View, arn string) sourced {
	p := s.managed(v, arn)
	kind := types.PolicySourceTypeUserManaged
	if s.aws[arn] == p {
		kind = types.PolicySourceTypeAwsManaged
	}
	return source(p.Name, kind, p.Document())
}

// identityAt returns the user, group or role with an ARN, or NoSuchEntity.
func (s *Service) identityAt(v *state.View, arn string) (*kind, *state.Identity, error) {
	for _, k := range kinds {
		rest, ok := s.opts.GlobalResourceOf("iam", k.noun+"/", arn)
		if !ok || !s.isAt(k, v, rest) {
			continue
		}
		i, err := k.find(v, rest[strings.LastIndexByte(rest, '/')+1:])
		return k, i, err
	}
	return nil, nil, noSuch("Entity %s does not exist.", arn)
}

// contextOf returns what is known of whoever has an identity, in every request.
func (s *Service) contextOf(k *kind, i *state.Identity) policy.Context {
	c := policy.Context{}
	now := s.now()
	c.Set("aws:CurrentTime", now.Format("2006-01-02T15:04:05Z"))
	c.Set("aws:EpochTime", strconv.FormatInt(now.Unix(), 10))
	c.Set("aws:PrincipalAccount", s.opts.ID)
	c.Set("aws:PrincipalArn", s.arn(k.noun, i.Path, i.Name))
	c.Set("aws:PrincipalIsAWSService", "false")
	if k == userKind {
		c.Set("aws:PrincipalType", "User")
		c.Set("aws:username", i.Name)
		c.Set("aws:userid", i.ID)
	} else {
		c.Set("aws:PrincipalType", "AssumedRole")
	}
	for _, t := range i.Tags {
		c.Set("aws:PrincipalTag/"+*t.Key, aws.ToString(t.Value))
	}
	return c
}
