package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// securityGroupIngress has the properties of AWS::EC2::SecurityGroupIngress. Its physical ID is the rule's.
type securityGroupIngress struct {
	GroupId                    *string `cfn:"create"`
	GroupName                  *string `cfn:"create"`
	IpProtocol                 *string `cfn:"required,create"`
	FromPort                   *int32  `cfn:"create"`
	ToPort                     *int32  `cfn:"create"`
	CidrIp                     *string `cfn:"create"`
	CidrIpv6                   *string `cfn:"create"`
	SourcePrefixListId         *string `cfn:"create"`
	SourceSecurityGroupId      *string `cfn:"create"`
	SourceSecurityGroupName    *string `cfn:"create"`
	SourceSecurityGroupOwnerId *string `cfn:"create"`
	Description                *string
}

var _ = add(&kind[*securityGroupIngress]{
	name:       "AWS::EC2::SecurityGroupIngress",
	attributes: []string{"Id"},
	find:       findEC2[*securityGroupIngress],
	create: func(ctx context.Context, s Step, r *securityGroupIngress) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeSecurityGroupRule, nil)
		if err != nil {
			return "", err
		}
		rule := ingressRule{
			IpProtocol:                 r.IpProtocol,
			FromPort:                   r.FromPort,
			ToPort:                     r.ToPort,
			CidrIp:                     r.CidrIp,
			CidrIpv6:                   r.CidrIpv6,
			Description:                r.Description,
			SourcePrefixListId:         r.SourcePrefixListId,
			SourceSecurityGroupId:      r.SourceSecurityGroupId,
			SourceSecurityGroupName:    r.SourceSecurityGroupName,
			SourceSecurityGroupOwnerId: r.SourceSecurityGroupOwnerId,
		}
		out, err := call.Do[ec2.AuthorizeSecurityGroupIngressOutput](ctx, s.Services, &ec2.AuthorizeSecurityGroupIngressInput{
			GroupId:           r.GroupId,
			GroupName:         r.GroupName,
			IpPermissions:     []types.IpPermission{rule.permission()},
			TagSpecifications: tags,
		})
		if err != nil {
			return "", err
		}
		return *out.SecurityGroupRules[0].SecurityGroupRuleId, nil
	},
	update: func(ctx context.Context, s Step, id string, _, r *securityGroupIngress) error {
		in := &ec2.UpdateSecurityGroupRuleDescriptionsIngressInput{
			GroupId:                       r.GroupId,
			GroupName:                     r.GroupName,
			SecurityGroupRuleDescriptions: []types.SecurityGroupRuleDescription{{SecurityGroupRuleId: &id, Description: r.Description}},
		}
		return did[ec2.UpdateSecurityGroupRuleDescriptionsIngressOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, id string, r *securityGroupIngress) error {
		in := &ec2.RevokeSecurityGroupIngressInput{GroupId: r.GroupId, GroupName: r.GroupName, SecurityGroupRuleIds: []string{id}}
		_, err := call.Do[ec2.RevokeSecurityGroupIngressOutput](ctx, s.Services, in)
		return err
	},
	read: readRule[*securityGroupIngress],
})

// securityGroupEgress has the properties of AWS::EC2::SecurityGroupEgress. Its physical ID is the rule's.
type securityGroupEgress struct {
	GroupId                    *string `cfn:"required,create"`
	IpProtocol                 *string `cfn:"required,create"`
	FromPort                   *int32  `cfn:"create"`
	ToPort                     *int32  `cfn:"create"`
	CidrIp                     *string `cfn:"create"`
	CidrIpv6                   *string `cfn:"create"`
	DestinationPrefixListId    *string `cfn:"create"`
	DestinationSecurityGroupId *string `cfn:"create"`
	Description                *string
}

var _ = add(&kind[*securityGroupEgress]{
	name:       "AWS::EC2::SecurityGroupEgress",
	attributes: []string{"Id"},
	find:       findEC2[*securityGroupEgress],
	create: func(ctx context.Context, s Step, r *securityGroupEgress) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeSecurityGroupRule, nil)
		if err != nil {
			return "", err
		}
		rule := egressRule{
			IpProtocol:                 r.IpProtocol,
			FromPort:                   r.FromPort,
			ToPort:                     r.ToPort,
			CidrIp:                     r.CidrIp,
			CidrIpv6:                   r.CidrIpv6,
			Description:                r.Description,
			DestinationPrefixListId:    r.DestinationPrefixListId,
			DestinationSecurityGroupId: r.DestinationSecurityGroupId,
		}
		out, err := call.Do[ec2.AuthorizeSecurityGroupEgressOutput](ctx, s.Services, &ec2.AuthorizeSecurityGroupEgressInput{
			GroupId:           r.GroupId,
			IpPermissions:     []types.IpPermission{rule.permission()},
			TagSpecifications: tags,
		})
		if err != nil {
			return "", err
		}
		return *out.SecurityGroupRules[0].SecurityGroupRuleId, nil
	},
	update: func(ctx context.Context, s Step, id string, _, r *securityGroupEgress) error {
		in := &ec2.UpdateSecurityGroupRuleDescriptionsEgressInput{
			GroupId:                       r.GroupId,
			SecurityGroupRuleDescriptions: []types.SecurityGroupRuleDescription{{SecurityGroupRuleId: &id, Description: r.Description}},
		}
		return did[ec2.UpdateSecurityGroupRuleDescriptionsEgressOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, id string, r *securityGroupEgress) error {
		in := &ec2.RevokeSecurityGroupEgressInput{GroupId: r.GroupId, SecurityGroupRuleIds: []string{id}}
		_, err := call.Do[ec2.RevokeSecurityGroupEgressOutput](ctx, s.Services, in)
		return err
	},
	read: readRule[*securityGroupEgress],
})

func readRule[P any](_ context.Context, _ Step, id string, _ P) (Made, error) {
	return Made{Attributes: map[string]any{"Id": id}}, nil
}
