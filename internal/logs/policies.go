package logs

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state"
)

// maxResourcePolicies is how many resource policies a region of an account may have: API_PutResourcePolicy.
const maxResourcePolicies = 10

// PutResourcePolicy keeps a resource policy of the account. Nothing here evaluates it: it's for AWS services that write logs.
func (s *Service) PutResourcePolicy(
	ctx context.Context, in *cloudwatchlogs.PutResourcePolicyInput,
) (*cloudwatchlogs.PutResourcePolicyOutput, error) {
	if err := checkPolicy(in); err != nil {
		return nil, err
	}
	row := &state.LogResourcePolicy{ResourcePolicy: types.ResourcePolicy{
		PolicyName:      in.PolicyName,
		PolicyDocument:  in.PolicyDocument,
		PolicyScope:     types.PolicyScopeAccount,
		LastUpdatedTime: aws.Int64(s.now()),
	}}
	err := s.opts.State.Update(ctx, func(tx *state.Tx) error {
		others := 0
		for p := range tx.LogResourcePolicies.All() {
			if *p.PolicyName != *in.PolicyName {
				others++
			}
		}
		if others >= maxResourcePolicies {
			return limitExceeded()
		}
		tx.LogResourcePolicies.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.PutResourcePolicyOutput{ResourcePolicy: &row.ResourcePolicy}, nil
}

func checkPolicy(in *cloudwatchlogs.PutResourcePolicyInput) error {
	var document struct{ Version, Statement any }
	switch {
	case aws.ToString(in.ResourceArn) != "" || in.ExpectedRevisionId != nil:
		return invalidParameter("Policies of single resources (resourceArn, expectedRevisionId) are not supported.")
	case aws.ToString(in.PolicyName) == "":
		return invalidParameter("policyName is required.")
	case in.PolicyDocument == nil:
		return invalidParameter("policyDocument is required.")
	case json.Unmarshal([]byte(*in.PolicyDocument), &document) != nil || document.Statement == nil:
		return invalidParameter("Policy document is not a valid JSON document with a Statement.")
	}
	return nil
}

// DescribeResourcePolicies lists the resource policies by name.
func (s *Service) DescribeResourcePolicies(
	_ context.Context, in *cloudwatchlogs.DescribeResourcePoliciesInput,
) (*cloudwatchlogs.DescribeResourcePoliciesOutput, error) {
	found := []types.ResourcePolicy{}
	if in.ResourceArn == nil && in.PolicyScope != types.PolicyScopeResource { // there are none of single resources
		for row := range s.opts.State.View().LogResourcePolicies.All() {
			found = append(found, row.ResourcePolicy)
		}
	}
	page, next, err := account.Sorted(listing("DescribeResourcePolicies", maxListed), found, in.Limit, in.NextToken,
		func(p types.ResourcePolicy) string { return *p.PolicyName })
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DescribeResourcePoliciesOutput{ResourcePolicies: orEmpty(page), NextToken: next}, nil
}

// DeleteResourcePolicy deletes a resource policy.
func (s *Service) DeleteResourcePolicy(
	ctx context.Context, in *cloudwatchlogs.DeleteResourcePolicyInput,
) (*cloudwatchlogs.DeleteResourcePolicyOutput, error) {
	if aws.ToString(in.ResourceArn) != "" || in.ExpectedRevisionId != nil {
		return nil, invalidParameter("Policies of single resources (resourceArn, expectedRevisionId) are not supported.")
	}
	err := s.opts.State.Update(ctx, func(tx *state.Tx) error {
		name := aws.ToString(in.PolicyName)
		if tx.LogResourcePolicies.Get(name) == nil {
			return &types.ResourceNotFoundException{Message: account.Message("Policy with name [%s] does not exist.", name)}
		}
		tx.LogResourcePolicies.Delete(name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DeleteResourcePolicyOutput{}, nil
}

// DescribeAccountPolicies lists none, for clients that ask by habit: there is no PutAccountPolicy.
func (s *Service) DescribeAccountPolicies(
	_ context.Context, in *cloudwatchlogs.DescribeAccountPoliciesInput,
) (*cloudwatchlogs.DescribeAccountPoliciesOutput, error) {
	if _, _, err := listing("DescribeAccountPolicies", maxListed).Start(nil, in.NextToken); err != nil {
		return nil, err
	}
	return &cloudwatchlogs.DescribeAccountPoliciesOutput{AccountPolicies: []types.AccountPolicy{}}, nil
}

// GetDataProtectionPolicy answers as AWS does for a group without a policy, for clients that ask by habit: there is no
// PutDataProtectionPolicy.
func (s *Service) GetDataProtectionPolicy(
	_ context.Context, in *cloudwatchlogs.GetDataProtectionPolicyInput,
) (*cloudwatchlogs.GetDataProtectionPolicyOutput, error) {
	g, err := s.store.Group(nameInArn(*in.LogGroupIdentifier))
	if err != nil {
		return nil, failure(err)
	}
	return &cloudwatchlogs.GetDataProtectionPolicyOutput{LogGroupIdentifier: &g.Name}, nil
}

// PutLogGroupDeletionProtection protects a group from being deleted, with its streams, or ends that.
func (s *Service) PutLogGroupDeletionProtection(
	_ context.Context, in *cloudwatchlogs.PutLogGroupDeletionProtectionInput,
) (*cloudwatchlogs.PutLogGroupDeletionProtectionOutput, error) {
	err := s.store.UpdateGroup(nameInArn(*in.LogGroupIdentifier), func(g *streams.Group) error {
		g.DeletionProtected = *in.DeletionProtectionEnabled
		return nil
	})
	if err != nil {
		return nil, failure(err)
	}
	return &cloudwatchlogs.PutLogGroupDeletionProtectionOutput{}, nil
}
