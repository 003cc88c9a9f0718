package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

var securityGroupRules = kind[state.SecurityGroupRule]{
	name:   types.ResourceTypeSecurityGroupRule,
	prefix: "sgr",
	code:   "InvalidSecurityGroupRuleId.NotFound",
	text:   "The security group rule ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.SecurityGroupRule] { return v.SecurityGroupRules },
	of:     func(r *state.SecurityGroupRule) (*string, *[]types.Tag) { return r.SecurityGroupRuleId, &r.Tags },
	fields: fields[state.SecurityGroupRule]{
		"group-id":               func(r *state.SecurityGroupRule) []string { return optional(r.GroupId) },
		"security-group-rule-id": func(r *state.SecurityGroupRule) []string { return optional(r.SecurityGroupRuleId) },
	},
}

// groupRule returns the rule of a group with an id.
func groupRule(v *state.View, group *state.SecurityGroup, id *string) (*state.SecurityGroupRule, error) {
	r, err := securityGroupRules.get(v, id, "SecurityGroupRuleId")
	if err == nil && *r.GroupId != *group.GroupId {
		err = refuse("InvalidSecurityGroupRuleId.NotFound", "The security group rule '%s' does not belong to the security group '%s'", *id, *group.GroupId)
	}
	return r, err
}

// DescribeSecurityGroupRules describes rules of any groups.
func (s *Service) DescribeSecurityGroupRules(
	_ context.Context, in *ec2.DescribeSecurityGroupRulesInput,
) (*ec2.DescribeSecurityGroupRulesOutput, error) {
	rows, next, err := securityGroupRules.describe(s.store.View(),
		query{"DescribeSecurityGroupRules", in.SecurityGroupRuleIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.SecurityGroupRule) types.SecurityGroupRule { return r.SecurityGroupRule })
	return &ec2.DescribeSecurityGroupRulesOutput{SecurityGroupRules: all, NextToken: next}, nil
}

// ModifySecurityGroupRules changes what rules say, all of them or none.
func (s *Service) ModifySecurityGroupRules(
	ctx context.Context, in *ec2.ModifySecurityGroupRulesInput,
) (*ec2.ModifySecurityGroupRulesOutput, error) {
	if len(in.SecurityGroupRules) == 0 {
		return nil, missing("SecurityGroupRule")
	}
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		group, err := securityGroups.get(tx.View, in.GroupId, "GroupId")
		if err != nil {
			return err
		}
		for _, u := range in.SecurityGroupRules {
			if err := s.modifyRule(tx, group, u.SecurityGroupRuleId, u.SecurityGroupRule); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ModifySecurityGroupRulesOutput{Return: aws.Bool(true)}, nil
}

// modifyRule changes what one rule says.
func (s *Service) modifyRule(tx *state.Tx, group *state.SecurityGroup, id *string, to *types.SecurityGroupRuleRequest) error {
	old, err := groupRule(tx.View, group, id)
	if err != nil {
		return err
	}
	if to == nil {
		return missing("SecurityGroupRule")
	}
	p := types.IpPermission{IpProtocol: to.IpProtocol, FromPort: to.FromPort, ToPort: to.ToPort}
	if to.CidrIpv4 != nil {
		p.IpRanges = []types.IpRange{{CidrIp: to.CidrIpv4, Description: to.Description}}
	}
	if to.CidrIpv6 != nil {
		p.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: to.CidrIpv6, Description: to.Description}}
	}
	if to.PrefixListId != nil {
		p.PrefixListIds = []types.PrefixListId{{PrefixListId: to.PrefixListId, Description: to.Description}}
	}
	if to.ReferencedGroupId != nil {
		p.UserIdGroupPairs = []types.UserIdGroupPair{{GroupId: to.ReferencedGroupId, Description: to.Description}}
	}
	rules, err := s.readRules(tx.View, group, *old.IsEgress, []types.IpPermission{p})
	if err != nil {
		return err
	}
	if len(rules) != 1 {
		return refuse("InvalidParameterCombination", "A rule must have exactly one of cidrIpv4, cidrIpv6, prefixListId, referencedGroupId")
	}
	if other := findRule(tx.View, *group.GroupId, &rules[0]); other != nil && *other.SecurityGroupRuleId != *id {
		return refuse("InvalidPermission.Duplicate", "the specified rule \"%s\" already exists", wordRule(&rules[0]))
	}
	row := s.newRule(group, rules[0])
	row.SecurityGroupRuleId = old.SecurityGroupRuleId
	row.SecurityGroupRuleArn = old.SecurityGroupRuleArn
	row.Tags = old.Tags
	tx.SecurityGroupRules.Put(row)
	return nil
}

// UpdateSecurityGroupRuleDescriptionsIngress changes the descriptions of rules about who may come in.
func (s *Service) UpdateSecurityGroupRuleDescriptionsIngress(
	ctx context.Context, in *ec2.UpdateSecurityGroupRuleDescriptionsIngressInput,
) (*ec2.UpdateSecurityGroupRuleDescriptionsIngressOutput, error) {
	p := permit{id: in.GroupId, name: in.GroupName, permissions: in.IpPermissions, dryRun: in.DryRun}
	if err := s.redescribe(ctx, p, in.SecurityGroupRuleDescriptions); err != nil {
		return nil, err
	}
	return &ec2.UpdateSecurityGroupRuleDescriptionsIngressOutput{Return: aws.Bool(true)}, nil
}

// UpdateSecurityGroupRuleDescriptionsEgress changes the descriptions of rules about who may go out.
func (s *Service) UpdateSecurityGroupRuleDescriptionsEgress(
	ctx context.Context, in *ec2.UpdateSecurityGroupRuleDescriptionsEgressInput,
) (*ec2.UpdateSecurityGroupRuleDescriptionsEgressOutput, error) {
	p := permit{id: in.GroupId, name: in.GroupName, egress: true, permissions: in.IpPermissions, dryRun: in.DryRun}
	if err := s.redescribe(ctx, p, in.SecurityGroupRuleDescriptions); err != nil {
		return nil, err
	}
	return &ec2.UpdateSecurityGroupRuleDescriptionsEgressOutput{Return: aws.Bool(true)}, nil
}

// redescribe changes the descriptions of rules that are given by what they say or by their ids.
func (s *Service) redescribe(ctx context.Context, p permit, named []types.SecurityGroupRuleDescription) error {
	if (len(p.permissions) == 0) == (len(named) == 0) {
		return refuse("MissingParameter",
			"The request must contain exactly one of the parameters ipPermissions and securityGroupRuleDescriptions")
	}
	return s.write(ctx, p.dryRun, func(tx *state.Tx) error {
		group, err := pickGroup(tx.View, p.id, p.name)
		if err != nil {
			return err
		}
		rules, err := s.readRules(tx.View, group, p.egress, p.permissions)
		if err != nil {
			return err
		}
		for _, r := range rules {
			found := findRule(tx.View, *group.GroupId, &r)
			if found == nil {
				return refuse("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
			}
			named = append(named, types.SecurityGroupRuleDescription{SecurityGroupRuleId: found.SecurityGroupRuleId, Description: r.Description})
		}
		for _, d := range named {
			old, err := groupRule(tx.View, group, d.SecurityGroupRuleId)
			switch {
			case err != nil:
				return err
			case *old.IsEgress != p.egress:
				return securityGroupRules.absent(*d.SecurityGroupRuleId)
			case !isGroupText(aws.ToString(d.Description)):
				return refuse("InvalidParameterValue", "Invalid rule description '%s'", *d.Description)
			}
			row := new(*old)
			row.Description = d.Description
			tx.SecurityGroupRules.Put(row)
		}
		return nil
	})
}
