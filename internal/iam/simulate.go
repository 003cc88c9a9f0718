package iam

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/iam/policy"
)

// maxSimulation bounds what a simulation costs: requests times bytes of policies.
const maxSimulation = 8 << 20

// simulation is what both operations simulate.
type simulation struct {
	principal policy.Principal
	owner     string // the resources' account
	policies  []sourced
	boundary  []sourced
	resource  *sourced
	context   policy.Context
	actions   []string
	resources []string
}

var (
	oneAction = regexp.MustCompile(`^[a-zA-Z0-9-]+:[a-zA-Z0-9]+$`)
	arnOf     = regexp.MustCompile(`^arn:[^:]+:[^:]+:[^:]*:(\d{12})?:.+$`)
)

// options are the members that both inputs have.
type options struct {
	actions   []string
	resources []string
	context   []types.ContextEntry
	policy    *string // of the resource
	boundary  []string
	owner     *string
	caller    *string
	handling  *string
	excluded  []types.PolicyIdentifier
}

// fill fills a simulation with what the call gives.
func (s *Service) fill(sim *simulation, o options) error {
	if o.handling != nil {
		return invalidInput("Pintle doesn't simulate the scenarios of ResourceHandlingOption.")
	}
	if len(o.excluded) > 0 {
		return invalidInput("Pintle doesn't simulate without the policies of PolicyExclusionList.")
	}
	for _, action := range o.actions {
		if !oneAction.MatchString(action) {
			return invalidInput("Invalid action %s: a simulation needs the names of single actions.", action)
		}
	}
	for _, e := range o.context {
		sim.context.Set(aws.ToString(e.ContextKeyName), e.ContextKeyValues...)
	}
	sim.actions = o.actions
	if sim.resources = o.resources; len(sim.resources) == 0 {
		sim.resources = []string{"*"}
	}
	if o.caller != nil {
		sim.principal = policy.Principal{ARN: *o.caller}
	}
	var err error
	if sim.owner, err = s.ownerOf(o.owner); err != nil {
		return err
	}
	if err := sim.setResourcePolicy(o.policy); err != nil {
		return err
	}
	if len(o.boundary) == 0 {
		return nil
	}
	sim.boundary, err = inputs("PermissionsBoundaryPolicyInputList", o.boundary)
	return err
}

// ownerOf returns the account in the ARN of a resource's owner.
func (s *Service) ownerOf(arn *string) (string, error) {
	if arn == nil {
		return s.opts.ID, nil
	}
	parts := arnOf.FindStringSubmatch(*arn)
	if parts == nil || parts[1] == "" {
		return "", invalidInput("Invalid resource owner %s: it is the ARN of an account.", *arn)
	}
	return parts[1], nil
}

func (sim *simulation) setResourcePolicy(document *string) error {
	if document == nil {
		return nil
	}
	if sim.principal.ARN == "" {
		return invalidInput("You must specify CallerArn if you include a ResourcePolicy.")
	}
	p, err := parse(policy.Resource, *document)
	if err != nil {
		return err
	}
	sim.resource = &sourced{p, "ResourcePolicy", types.PolicySourceTypeResource, *document}
	return nil
}

// inputs parses the policies that a call hands in.
func inputs(member string, documents []string) (all []sourced, err error) {
	for i, document := range documents {
		p, err := parse(policy.Identity, document)
		if err != nil {
			return nil, err
		}
		all = append(all, sourced{p, fmt.Sprintf("%s.%d", member, i+1), types.PolicySourceTypeNone, document})
	}
	return all, nil
}

// SimulateCustomPolicy says what policies that the call hands in would allow.
func (s *Service) SimulateCustomPolicy(_ context.Context, in *iam.SimulateCustomPolicyInput) (*iam.SimulateCustomPolicyOutput, error) {
	if len(in.OrderedOrganizationPolicyInputList) > 0 {
		return nil, invalidInput("OrderedOrganizationPolicyInputList: Pintle has no organizations, whose policies could be simulated.")
	}
	policies, err := inputs("PolicyInputList", in.PolicyInputList)
	if err != nil {
		return nil, err
	}
	sim := &simulation{principal: policy.Principal{ARN: s.arn("user", "/", "simulated")}, context: policy.Context{}, policies: policies}
	err = s.fill(sim, options{
		actions:   in.ActionNames,
		resources: in.ResourceArns,
		context:   in.ContextEntries,
		policy:    in.ResourcePolicy,
		boundary:  in.PermissionsBoundaryPolicyInputList,
		owner:     in.ResourceOwner,
		caller:    in.CallerArn,
		handling:  in.ResourceHandlingOption,
	})
	if err != nil {
		return nil, err
	}
	on, truncated, next, err := sim.page(in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.SimulateCustomPolicyOutput{EvaluationResults: on, IsTruncated: truncated, Marker: next}, nil
}

// SimulatePrincipalPolicy says what the policies of a user, a group or a role would allow, with others that the call hands in.
func (s *Service) SimulatePrincipalPolicy(
	_ context.Context, in *iam.SimulatePrincipalPolicyInput,
) (*iam.SimulatePrincipalPolicyOutput, error) {
	v := s.store.View()
	k, i, err := s.identityAt(v, *in.PolicySourceArn)
	if err != nil {
		return nil, err
	}
	added, err := inputs("PolicyInputList", in.PolicyInputList)
	if err != nil {
		return nil, err
	}
	sim := &simulation{
		principal: policy.Principal{ARN: *in.PolicySourceArn},
		context:   s.contextOf(k, i),
		policies:  append(s.policiesOf(v, k, i), added...),
	}
	if i.Boundary != "" {
		sim.boundary = []sourced{s.sourceOf(v, i.Boundary)}
	}
	err = s.fill(sim, options{
		actions:   in.ActionNames,
		resources: in.ResourceArns,
		context:   in.ContextEntries,
		policy:    in.ResourcePolicy,
		boundary:  in.PermissionsBoundaryPolicyInputList,
		owner:     in.ResourceOwner,
		caller:    in.CallerArn,
		handling:  in.ResourceHandlingOption,
		excluded:  in.PolicyExclusionList,
	})
	if err != nil {
		return nil, err
	}
	on, truncated, next, err := sim.page(in.MaxItems, in.Marker)
	if err != nil {
		return nil, err
	}
	return &iam.SimulatePrincipalPolicyOutput{EvaluationResults: on, IsTruncated: truncated, Marker: next}, nil
}

// all returns the policies of every source.
func (sim *simulation) all() []sourced {
	all := slices.Concat(sim.policies, sim.boundary)
	if sim.resource != nil {
		all = append(all, *sim.resource)
	}
	return all
}

// page evaluates each action on each resource, and returns a page of the results.
func (sim *simulation) page(limit *int32, marker *string) (on []types.EvaluationResult, truncated bool, next *string, err error) {
	bytes := 1
	for _, p := range sim.all() {
		bytes += len(p.document)
	}
	if bytes > maxSimulation/max(1, len(sim.actions)*len(sim.resources)) {
		return nil, false, nil, invalidInput("The simulation is too large: give it fewer actions, resources or policies.")
	}
	missing := sim.missing()
	var all []types.EvaluationResult
	for _, action := range sim.actions {
		for _, resource := range sim.resources {
			all = append(all, sim.evaluate(action, resource, missing))
		}
	}
	key := func(r types.EvaluationResult) string { return *r.EvalActionName + " " + *r.EvalResourceName }
	on, next, err = account.Ordered(pages("Simulate"), all, limit, marker, key)
	return on, next != nil, next, err
}

// missing returns the context keys that the policies ask for and that nobody gave.
func (sim *simulation) missing() []string {
	names := []string{}
	for _, p := range sim.all() {
		for _, key := range p.Keys() {
			if _, given := sim.context[strings.ToLower(key)]; !given && !slices.Contains(names, key) {
				names = append(names, key)
			}
		}
	}
	return names
}

func parsed(list []sourced) []*policy.Policy {
	return mapped(list, func(p sourced) *policy.Policy { return p.Policy })
}

func (sim *simulation) evaluate(action, resource string, missing []string) types.EvaluationResult {
	p := policy.Policies{Identity: parsed(sim.policies)}
	if sim.resource != nil {
		p.Resource = sim.resource.Policy
	}
	if len(sim.boundary) > 0 { // IAM takes one, though it calls it a list
		p.Boundary = sim.boundary[0].Policy
	}
	d := policy.Evaluate(policy.Request{
		Principal:       sim.principal,
		Action:          action,
		Resource:        resource,
		ResourceAccount: sim.owner,
		Context:         sim.context,
	}, p)
	decision := map[policy.Effect]types.PolicyEvaluationDecisionType{
		policy.Allowed:      types.PolicyEvaluationDecisionTypeAllowed,
		policy.ExplicitDeny: types.PolicyEvaluationDecisionTypeExplicitDeny,
		policy.ImplicitDeny: types.PolicyEvaluationDecisionTypeImplicitDeny,
	}[d.Effect]
	result := types.EvaluationResult{
		EvalActionName:       &action,
		EvalResourceName:     &resource,
		EvalDecision:         decision,
		MatchedStatements:    mapped(d.Matches, sim.matched),
		MissingContextValues: missing,
	}
	if p.Boundary != nil {
		result.PermissionsBoundaryDecisionDetail = &types.PermissionsBoundaryDecisionDetail{AllowedByPermissionsBoundary: d.ByBoundary}
	}
	return result
}

// matched says where a statement stands that decided.
func (sim *simulation) matched(m policy.Match) types.Statement {
	all := sim.all()
	from := all[slices.IndexFunc(all, func(p sourced) bool { return p.Policy == m.Policy })]
	return types.Statement{
		SourcePolicyId:   &from.id,
		SourcePolicyType: from.kind,
		StartPosition:    position(from.document, m.Statement.Start),
		EndPosition:      position(from.document, m.Statement.End),
	}
}

// position returns the line and the column, both from 1, of an offset.
func position(document string, offset int64) *types.Position {
	before := document[:offset]
	return &types.Position{
		Line:   int32(strings.Count(before, "\n") + 1),
		Column: int32(len(before) - strings.LastIndexByte(before, '\n')),
	}
}

// GetContextKeysForCustomPolicy lists the context keys that policies ask for.
func (s *Service) GetContextKeysForCustomPolicy(
	_ context.Context, in *iam.GetContextKeysForCustomPolicyInput,
) (*iam.GetContextKeysForCustomPolicyOutput, error) {
	policies, err := inputs("PolicyInputList", in.PolicyInputList)
	if err != nil {
		return nil, err
	}
	return &iam.GetContextKeysForCustomPolicyOutput{ContextKeyNames: (&simulation{policies: policies}).missing()}, nil
}

// GetContextKeysForPrincipalPolicy lists the context keys that the policies of a user, a group or a role ask for.
func (s *Service) GetContextKeysForPrincipalPolicy(
	_ context.Context, in *iam.GetContextKeysForPrincipalPolicyInput,
) (*iam.GetContextKeysForPrincipalPolicyOutput, error) {
	v := s.store.View()
	k, i, err := s.identityAt(v, *in.PolicySourceArn)
	if err != nil {
		return nil, err
	}
	added, err := inputs("PolicyInputList", in.PolicyInputList)
	if err != nil {
		return nil, err
	}
	names := (&simulation{policies: append(s.policiesOf(v, k, i), added...)}).missing()
	return &iam.GetContextKeysForPrincipalPolicyOutput{ContextKeyNames: names}, nil
}
