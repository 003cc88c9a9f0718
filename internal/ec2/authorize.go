package ec2

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// maxRules is how many rules a security group has in one direction. AWS has 60 unless it's asked for more, and 1,000 at most.
const maxRules = 1000

// permit is a call about a security group's rules. Both directions have the same members.
type permit struct {
	id, name    *string
	egress      bool
	permissions []types.IpPermission
	rules       []string // ids
	tags        []types.TagSpecification
	dryRun      *bool
}

// onePermission adds the permission that an old call gives in members of its own.
func onePermission(all []types.IpPermission, protocol *string, from, to *int32, block, group, owner *string) []types.IpPermission {
	if protocol == nil && block == nil && group == nil {
		return all
	}
	p := types.IpPermission{IpProtocol: protocol, FromPort: from, ToPort: to}
	if block != nil {
		p.IpRanges = []types.IpRange{{CidrIp: block}}
	}
	if group != nil {
		p.UserIdGroupPairs = []types.UserIdGroupPair{{GroupName: group, UserId: owner}}
		p.IpProtocol = cmp.Or(protocol, aws.String("-1"))
	}
	return append(slices.Clip(all), p)
}

// AuthorizeSecurityGroupIngress lets somebody in.
func (s *Service) AuthorizeSecurityGroupIngress(
	ctx context.Context, in *ec2.AuthorizeSecurityGroupIngressInput,
) (*ec2.AuthorizeSecurityGroupIngressOutput, error) {
	rules, err := s.authorize(ctx, permit{
		id:   in.GroupId,
		name: in.GroupName,
		permissions: onePermission(in.IpPermissions, in.IpProtocol, in.FromPort, in.ToPort, in.CidrIp, in.SourceSecurityGroupName,
			in.SourceSecurityGroupOwnerId),
		tags:   in.TagSpecifications,
		dryRun: in.DryRun,
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AuthorizeSecurityGroupIngressOutput{Return: aws.Bool(true), SecurityGroupRules: rules}, nil
}

// AuthorizeSecurityGroupEgress lets a group's members out.
func (s *Service) AuthorizeSecurityGroupEgress(
	ctx context.Context, in *ec2.AuthorizeSecurityGroupEgressInput,
) (*ec2.AuthorizeSecurityGroupEgressOutput, error) {
	rules, err := s.authorize(ctx, permit{
		id:     in.GroupId,
		egress: true,
		permissions: onePermission(in.IpPermissions, in.IpProtocol, in.FromPort, in.ToPort, in.CidrIp, in.SourceSecurityGroupName,
			in.SourceSecurityGroupOwnerId),
		tags:   in.TagSpecifications,
		dryRun: in.DryRun,
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AuthorizeSecurityGroupEgressOutput{Return: aws.Bool(true), SecurityGroupRules: rules}, nil
}

// authorize adds rules to a group: all of them, or none.
func (s *Service) authorize(ctx context.Context, p permit) (out []types.SecurityGroupRule, err error) {
	tags, err := newTags(ctx, p.tags, types.ResourceTypeSecurityGroupRule)
	if err != nil {
		return nil, err
	}
	if len(p.permissions) == 0 {
		return nil, missing("IpPermissions")
	}
	err = s.write(ctx, p.dryRun, func(tx *state.Tx) error {
		out = nil
		group, err := pickGroup(tx.View, p.id, p.name)
		if err != nil {
			return err
		}
		rules, err := s.readRules(tx.View, group, p.egress, p.permissions)
		if err != nil {
			return err
		}
		for _, r := range rules {
			if findRule(tx.View, *group.GroupId, &r) != nil {
				return refuse("InvalidPermission.Duplicate", "the specified rule \"%s\" already exists", wordRule(&r))
			}
			r.Tags = tags
			row := s.newRule(group, r)
			tx.SecurityGroupRules.Put(row)
			out = append(out, row.SecurityGroupRule)
		}
		have := count(rulesOf(tx.View, *group.GroupId, p.egress)) - 1
		return checkRoom(have, maxRules, "RulesPerSecurityGroupLimitExceeded", "rules per security group")
	})
	return out, err
}

// rulesOf returns a group's rules in one direction.
func rulesOf(v *state.View, group string, egress bool) iter.Seq[*state.SecurityGroupRule] {
	return func(yield func(*state.SecurityGroupRule) bool) {
		for r := range v.SecurityGroupRules.By(state.RulesByGroup, group) {
			if *r.IsEgress == egress && !yield(r) {
				return
			}
		}
	}
}

// RevokeSecurityGroupIngress lets somebody in no longer.
func (s *Service) RevokeSecurityGroupIngress(
	ctx context.Context, in *ec2.RevokeSecurityGroupIngressInput,
) (*ec2.RevokeSecurityGroupIngressOutput, error) {
	revoked, unknown, err := s.revoke(ctx, permit{
		id:   in.GroupId,
		name: in.GroupName,
		permissions: onePermission(in.IpPermissions, in.IpProtocol, in.FromPort, in.ToPort, in.CidrIp, in.SourceSecurityGroupName,
			in.SourceSecurityGroupOwnerId),
		rules:  in.SecurityGroupRuleIds,
		dryRun: in.DryRun,
	})
	if err != nil {
		return nil, err
	}
	return &ec2.RevokeSecurityGroupIngressOutput{
		Return:                    aws.Bool(true),
		RevokedSecurityGroupRules: revoked,
		UnknownIpPermissions:      unknown,
	}, nil
}

// RevokeSecurityGroupEgress lets a group's members out no longer.
func (s *Service) RevokeSecurityGroupEgress(
	ctx context.Context, in *ec2.RevokeSecurityGroupEgressInput,
) (*ec2.RevokeSecurityGroupEgressOutput, error) {
	revoked, unknown, err := s.revoke(ctx, permit{
		id:     in.GroupId,
		egress: true,
		permissions: onePermission(in.IpPermissions, in.IpProtocol, in.FromPort, in.ToPort, in.CidrIp, in.SourceSecurityGroupName,
			in.SourceSecurityGroupOwnerId),
		rules:  in.SecurityGroupRuleIds,
		dryRun: in.DryRun,
	})
	if err != nil {
		return nil, err
	}
	return &ec2.RevokeSecurityGroupEgressOutput{
		Return:                    aws.Bool(true),
		RevokedSecurityGroupRules: revoked,
		UnknownIpPermissions:      unknown,
	}, nil
}

// revoke removes rules from a group: all of them, or none. In the default VPC rules that there aren't are no error but returned.
func (s *Service) revoke(ctx context.Context, p permit) (gone []types.RevokedSecurityGroupRule, unknown []types.IpPermission, err error) {
	if (len(p.permissions) == 0) == (len(p.rules) == 0) {
		return nil, nil, refuse("MissingParameter", "The request must contain exactly one of the parameters ipPermissions and securityGroupRuleIds")
	}
	err = s.write(ctx, p.dryRun, func(tx *state.Tx) error {
		gone = []types.RevokedSecurityGroupRule{}
		unknown = []types.IpPermission{}
		group, err := pickGroup(tx.View, p.id, p.name)
		if err != nil {
			return err
		}
		revoke := func(r *state.SecurityGroupRule) {
			tx.SecurityGroupRules.Delete(*r.SecurityGroupRuleId)
			gone = append(gone, revoked(&r.SecurityGroupRule))
		}
		for _, id := range p.rules {
			r, err := groupRule(tx.View, group, &id)
			if err != nil {
				return err
			}
			if *r.IsEgress != p.egress {
				return securityGroupRules.absent(id)
			}
			revoke(r)
		}
		rules, err := s.readRules(tx.View, group, p.egress, p.permissions)
		if err != nil {
			return err
		}
		for _, r := range rules {
			found := findRule(tx.View, *group.GroupId, &r)
			switch {
			case found != nil:
				revoke(found)
			case aws.ToBool(tx.VPCs.Get(*group.VpcId).IsDefault):
				unknown = addPermission(unknown, &r)
			default:
				return refuse("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
			}
		}
		return nil
	})
	return gone, unknown, err
}

func revoked(r *types.SecurityGroupRule) types.RevokedSecurityGroupRule {
	out := types.RevokedSecurityGroupRule{
		SecurityGroupRuleId: r.SecurityGroupRuleId,
		GroupId:             r.GroupId,
		IsEgress:            r.IsEgress,
		IpProtocol:          r.IpProtocol,
		FromPort:            r.FromPort,
		ToPort:              r.ToPort,
		CidrIpv4:            r.CidrIpv4,
		CidrIpv6:            r.CidrIpv6,
		PrefixListId:        r.PrefixListId,
		Description:         r.Description,
	}
	if r.ReferencedGroupInfo != nil {
		out.ReferencedGroupId = r.ReferencedGroupInfo.GroupId
	}
	return out
}
