package resources

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// securityGroup has the properties of AWS::EC2::SecurityGroup.
type securityGroup struct {
	GroupDescription     *string `cfn:"required,create"`
	GroupName            *string `cfn:"create"`
	VpcId                *string `cfn:"create"`
	SecurityGroupIngress []ingressRule
	SecurityGroupEgress  []egressRule
	Tags                 []Tag
}

// ingressRule lets somebody in. One that is a resource is made anew when anything but its description changes.
type ingressRule struct {
	IpProtocol                 *string `cfn:"required,create"`
	FromPort                   *int32  `cfn:"create"`
	ToPort                     *int32  `cfn:"create"`
	CidrIp                     *string `cfn:"create"`
	CidrIpv6                   *string `cfn:"create"`
	Description                *string
	SourcePrefixListId         *string `cfn:"create"`
	SourceSecurityGroupId      *string `cfn:"create"`
	SourceSecurityGroupName    *string `cfn:"create"`
	SourceSecurityGroupOwnerId *string `cfn:"create"`
}

// egressRule lets a group's members out.
type egressRule struct {
	IpProtocol                 *string `cfn:"required,create"`
	FromPort                   *int32  `cfn:"create"`
	ToPort                     *int32  `cfn:"create"`
	CidrIp                     *string `cfn:"create"`
	CidrIpv6                   *string `cfn:"create"`
	Description                *string
	DestinationPrefixListId    *string `cfn:"create"`
	DestinationSecurityGroupId *string `cfn:"create"`
}

func (r ingressRule) permission() types.IpPermission {
	p := permission(r.IpProtocol, r.FromPort, r.ToPort, r.CidrIp, r.CidrIpv6, r.SourcePrefixListId, r.Description)
	if r.SourceSecurityGroupId != nil || r.SourceSecurityGroupName != nil {
		p.UserIdGroupPairs = []types.UserIdGroupPair{{
			Description: r.Description,
			GroupId:     r.SourceSecurityGroupId,
			GroupName:   r.SourceSecurityGroupName,
			UserId:      r.SourceSecurityGroupOwnerId,
		}}
	}
	return p
}

func (r egressRule) permission() types.IpPermission {
	p := permission(r.IpProtocol, r.FromPort, r.ToPort, r.CidrIp, r.CidrIpv6, r.DestinationPrefixListId, r.Description)
	if r.DestinationSecurityGroupId != nil {
		p.UserIdGroupPairs = []types.UserIdGroupPair{{Description: r.Description, GroupId: r.DestinationSecurityGroupId}}
	}
	return p
}

// permission returns a rule as EC2's calls have it, with the peers that both directions have.
func permission(protocol *string, from, to *int32, block, block6, list, description *string) types.IpPermission {
	p := types.IpPermission{IpProtocol: protocol, FromPort: from, ToPort: to}
	if block != nil {
		p.IpRanges = []types.IpRange{{CidrIp: block, Description: description}}
	}
	if block6 != nil {
		p.Ipv6Ranges = []types.Ipv6Range{{CidrIpv6: block6, Description: description}}
	}
	if list != nil {
		p.PrefixListIds = []types.PrefixListId{{PrefixListId: list, Description: description}}
	}
	return p
}

func (g *securityGroup) ingress() (all []types.IpPermission) {
	for _, r := range g.SecurityGroupIngress {
		all = append(all, r.permission())
	}
	return all
}

// egress returns the rules that let members out: without any in the template, that to everybody which each group is made with.
func (g *securityGroup) egress() (all []types.IpPermission) {
	for _, r := range g.SecurityGroupEgress {
		all = append(all, r.permission())
	}
	if all == nil {
		all = []types.IpPermission{permission(aws.String("-1"), nil, nil, aws.String("0.0.0.0/0"), nil, nil, nil)}
	}
	return all
}

var _ = add(&kind[*securityGroup]{
	name:       "AWS::EC2::SecurityGroup",
	live:       liveSecurityGroup,
	list:       listSecurityGroups,
	identifier: []string{"Id"},
	attributes: []string{"GroupId", "Id", "VpcId"},
	find:       findEC2[*securityGroup],
	create: func(ctx context.Context, s Step, g *securityGroup) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeSecurityGroup, g.Tags)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.CreateSecurityGroupOutput](ctx, s.Services, &ec2.CreateSecurityGroupInput{
			Description:       g.GroupDescription,
			GroupName:         new(s.named(g.GroupName, 255)),
			TagSpecifications: tags,
			VpcId:             g.VpcId,
		})
		if err != nil {
			return "", err
		}
		if err := setRules(ctx, s, *out.GroupId, &securityGroup{}, g); err != nil {
			return "", undo(ctx, s, *out.GroupId, g, deleteSecurityGroup, err)
		}
		return *out.GroupId, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *securityGroup) error {
		if err := setRules(ctx, s, id, before, after); err != nil {
			return err
		}
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: deleteSecurityGroup,
	read: func(ctx context.Context, s Step, id string, g *securityGroup) (Made, error) {
		out, err := call.Do[ec2.DescribeSecurityGroupsOutput](ctx, s.Services, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
		if err != nil {
			return Made{}, err
		}
		found := out.SecurityGroups[0]
		made := Made{Attributes: map[string]any{"GroupId": id, "Id": id, "VpcId": *found.VpcId}}
		if g.VpcId == nil { // as if EC2-Classic were still there, whose groups went by their names
			made.Ref = *found.GroupName
		}
		return made, nil
	},
})

func deleteSecurityGroup(ctx context.Context, s Step, id string, _ *securityGroup) error {
	return did[ec2.DeleteSecurityGroupOutput](ctx, s, &ec2.DeleteSecurityGroupInput{GroupId: &id})
}

// setRules gives a group other rules of its template's. Those that others gave it stay. After a kill, or a failure, some may be there.
func setRules(ctx context.Context, s Step, id string, before, after *securityGroup) error {
	isNew := before.GroupDescription == nil && s.Since.IsZero()
	for _, p := range without(before.ingress(), after.ingress()) {
		if err := revoke(ctx, s, id, p, false); err != nil {
			return err
		}
	}
	for _, p := range without(before.egress(), after.egress()) {
		if err := revoke(ctx, s, id, p, true); err != nil {
			return err
		}
	}
	for _, p := range without(after.ingress(), before.ingress()) {
		in := &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: []types.IpPermission{p}}
		err := did[ec2.AuthorizeSecurityGroupIngressOutput](ctx, s, in)
		if err != nil && (isNew || !hasCode(err, "InvalidPermission.Duplicate")) {
			return err
		}
	}
	for _, p := range without(after.egress(), before.egress()) {
		in := &ec2.AuthorizeSecurityGroupEgressInput{GroupId: &id, IpPermissions: []types.IpPermission{p}}
		err := did[ec2.AuthorizeSecurityGroupEgressOutput](ctx, s, in)
		if err != nil && (isNew || !hasCode(err, "InvalidPermission.Duplicate")) {
			return err
		}
	}
	return nil
}

// without returns the permissions that others don't have.
func without(all, others []types.IpPermission) []types.IpPermission {
	return slices.DeleteFunc(slices.Clone(all), func(p types.IpPermission) bool {
		return slices.ContainsFunc(others, func(o types.IpPermission) bool { return reflect.DeepEqual(o, p) })
	})
}

// revoke takes a rule from a group. One that isn't there is gone already, and one that EC2 refuses never was there.
func revoke(ctx context.Context, s Step, id string, p types.IpPermission, egress bool) (err error) {
	if egress {
		in := &ec2.RevokeSecurityGroupEgressInput{GroupId: &id, IpPermissions: []types.IpPermission{p}}
		err = did[ec2.RevokeSecurityGroupEgressOutput](ctx, s, in)
	} else {
		in := &ec2.RevokeSecurityGroupIngressInput{GroupId: &id, IpPermissions: []types.IpPermission{p}}
		err = did[ec2.RevokeSecurityGroupIngressOutput](ctx, s, in)
	}
	if isMissing(err) || hasCode(err, "InvalidParameterValue") {
		return nil
	}
	return err
}

func liveSecurityGroup(ctx context.Context, s Step, id string, asked *securityGroup) (*securityGroup, error) {
	out, err := call.Do[ec2.DescribeSecurityGroupsOutput](ctx, s.Services, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{id}})
	if err != nil {
		return nil, err
	}
	g := out.SecurityGroups[0]
	live := &securityGroup{GroupDescription: g.Description, GroupName: g.GroupName, VpcId: g.VpcId, Tags: ownTags(g.Tags, ec2TagPair)}
	rules, err := call.Do[ec2.DescribeSecurityGroupRulesOutput](ctx, s.Services,
		&ec2.DescribeSecurityGroupRulesInput{Filters: []types.Filter{filter("group-id", id)}})
	if err != nil {
		return nil, err
	}
	others := append(s.others("AWS::EC2::SecurityGroupIngress"), s.others("AWS::EC2::SecurityGroupEgress")...)
	for _, r := range rules.SecurityGroupRules {
		if slices.ContainsFunc(others, func(o Other) bool { return o.ID == *r.SecurityGroupRuleId }) {
			continue
		}
		if *r.IsEgress {
			live.SecurityGroupEgress = append(live.SecurityGroupEgress, egressOf(r, asked.SecurityGroupEgress))
		} else {
			live.SecurityGroupIngress = append(live.SecurityGroupIngress, ingressOf(r, asked.SecurityGroupIngress))
		}
	}
	return live, nil
}

// ingressOf returns a rule as a template has it: in the words of the one that asked for it, if one did.
func ingressOf(r types.SecurityGroupRule, asked []ingressRule) ingressRule {
	live := ingressRule{
		IpProtocol:         r.IpProtocol,
		FromPort:           r.FromPort,
		ToPort:             r.ToPort,
		CidrIp:             r.CidrIpv4,
		CidrIpv6:           r.CidrIpv6,
		Description:        r.Description,
		SourcePrefixListId: r.PrefixListId,
	}
	if peer := r.ReferencedGroupInfo; peer != nil {
		live.SourceSecurityGroupId, live.SourceSecurityGroupOwnerId = peer.GroupId, peer.UserId
	}
	for _, a := range asked {
		named := a.SourceSecurityGroupName != nil && r.ReferencedGroupInfo != nil
		isSame := isText(a.CidrIp, r.CidrIpv4) && isText(a.CidrIpv6, r.CidrIpv6) && isText(a.SourcePrefixListId, r.PrefixListId) &&
			(named || isText(a.SourceSecurityGroupId, live.SourceSecurityGroupId))
		if !isSame || !meansSame(a.permission(), r) {
			continue
		}
		live.IpProtocol, live.FromPort, live.ToPort = a.IpProtocol, a.FromPort, a.ToPort
		if named {
			live.SourceSecurityGroupName = a.SourceSecurityGroupName
		}
		break
	}
	return live
}

// egressOf is ingressOf of a rule that lets members out.
func egressOf(r types.SecurityGroupRule, asked []egressRule) egressRule {
	live := egressRule{
		IpProtocol:              r.IpProtocol,
		FromPort:                r.FromPort,
		ToPort:                  r.ToPort,
		CidrIp:                  r.CidrIpv4,
		CidrIpv6:                r.CidrIpv6,
		Description:             r.Description,
		DestinationPrefixListId: r.PrefixListId,
	}
	if peer := r.ReferencedGroupInfo; peer != nil {
		live.DestinationSecurityGroupId = peer.GroupId
	}
	for _, a := range asked {
		isSame := isText(a.CidrIp, r.CidrIpv4) && isText(a.CidrIpv6, r.CidrIpv6) && isText(a.DestinationPrefixListId, r.PrefixListId) &&
			isText(a.DestinationSecurityGroupId, live.DestinationSecurityGroupId)
		if isSame && meansSame(a.permission(), r) {
			live.IpProtocol, live.FromPort, live.ToPort = a.IpProtocol, a.FromPort, a.ToPort
			break
		}
	}
	return live
}

// isText reports whether two texts are the same, or both missing.
func isText(a, b *string) bool { return aws.ToString(a) == aws.ToString(b) }

// meansSame reports whether a permission has a rule's protocol and ports: protocols have numbers and names, and -1 has all ports.
func meansSame(p types.IpPermission, r types.SecurityGroupRule) bool {
	names := map[string]string{"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}
	protocol := strings.ToLower(*p.IpProtocol)
	protocol = cmp.Or(names[protocol], protocol)
	if protocol != *r.IpProtocol {
		return false
	}
	return protocol == "-1" || aws.ToInt32(p.FromPort) == aws.ToInt32(r.FromPort) && aws.ToInt32(p.ToPort) == aws.ToInt32(r.ToPort)
}

func listSecurityGroups(ctx context.Context, s Step, _ *securityGroup) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeSecurityGroupsOutput](ctx, s.Services, &ec2.DescribeSecurityGroupsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.SecurityGroups {
			ids = append(ids, *x.GroupId)
		}
		return ids, out.NextToken, nil
	})
}
