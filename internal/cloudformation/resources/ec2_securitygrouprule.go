package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// securityGroupIngress has the properties of AWS::EC2::SecurityGroupIngress. Its physical ID is the rule's.
type securityGroupIngress struct {
	GroupId   *string `cfn:"create"`
	GroupName *string `cfn:"create"`
	ingressRule
}

var _ = add(&kind[*securityGroupIngress]{
	name:       "AWS::EC2::SecurityGroupIngress",
	live:       liveIngress,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	find:       findEC2[*securityGroupIngress],
	create: func(ctx context.Context, s Step, r *securityGroupIngress) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeSecurityGroupRule, nil)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.AuthorizeSecurityGroupIngressOutput](ctx, s.Services, &ec2.AuthorizeSecurityGroupIngressInput{
			GroupId:           r.GroupId,
			GroupName:         r.GroupName,
			IpPermissions:     []types.IpPermission{r.permission()},
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
		return did[ec2.RevokeSecurityGroupIngressOutput](ctx, s, in)
	},
	read: readRule[*securityGroupIngress],
})

// securityGroupEgress has the properties of AWS::EC2::SecurityGroupEgress. Its physical ID is the rule's.
type securityGroupEgress struct {
	GroupId *string `cfn:"required,create"`
	egressRule
}

var _ = add(&kind[*securityGroupEgress]{
	name:       "AWS::EC2::SecurityGroupEgress",
	live:       liveEgress,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	find:       findEC2[*securityGroupEgress],
	create: func(ctx context.Context, s Step, r *securityGroupEgress) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeSecurityGroupRule, nil)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.AuthorizeSecurityGroupEgressOutput](ctx, s.Services, &ec2.AuthorizeSecurityGroupEgressInput{
			GroupId:           r.GroupId,
			IpPermissions:     []types.IpPermission{r.permission()},
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
		return did[ec2.RevokeSecurityGroupEgressOutput](ctx, s, in)
	},
	read: readRule[*securityGroupEgress],
})

func readRule[P any](_ context.Context, _ Step, id string, _ P) (Made, error) {
	return Made{Attributes: map[string]any{"Id": id}}, nil
}

func liveIngress(ctx context.Context, s Step, id string, asked *securityGroupIngress) (*securityGroupIngress, error) {
	r, err := describeRule(ctx, s, id)
	if err != nil {
		return nil, err
	}
	live := &securityGroupIngress{GroupId: r.GroupId, GroupName: asked.GroupName}
	if asked.IpProtocol == nil {
		live.ingressRule = ingressOf(r, nil)
		return live, nil
	}
	live.ingressRule = ingressOf(r, []ingressRule{asked.ingressRule})
	return live, nil
}

func describeRule(ctx context.Context, s Step, id string) (types.SecurityGroupRule, error) {
	in := &ec2.DescribeSecurityGroupRulesInput{SecurityGroupRuleIds: []string{id}}
	out, err := call.Do[ec2.DescribeSecurityGroupRulesOutput](ctx, s.Services, in)
	if err == nil && len(out.SecurityGroupRules) == 0 {
		err = errMissing
	}
	if err != nil {
		return types.SecurityGroupRule{}, err
	}
	return out.SecurityGroupRules[0], nil
}

func liveEgress(ctx context.Context, s Step, id string, asked *securityGroupEgress) (*securityGroupEgress, error) {
	r, err := describeRule(ctx, s, id)
	if err != nil {
		return nil, err
	}
	live := &securityGroupEgress{GroupId: r.GroupId}
	if asked.IpProtocol == nil {
		live.egressRule = egressOf(r, nil)
		return live, nil
	}
	live.egressRule = egressOf(r, []egressRule{asked.egressRule})
	return live, nil
}
