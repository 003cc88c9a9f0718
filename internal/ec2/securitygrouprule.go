package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// Protocols have IANA's numbers. EC2 shows these by name: API_IpPermission.
const (
	protocolAll    = -1
	protocolICMP   = 1
	protocolTCP    = 6
	protocolUDP    = 17
	protocolICMPv6 = 58
)

var protocolNames = map[int]string{protocolICMP: "icmp", protocolTCP: "tcp", protocolUDP: "udp", protocolICMPv6: "icmpv6"}

// ruleFields are the filters on what groups' rules have.
var ruleFields = fields[types.SecurityGroupRule]{
	"cidr":           func(r *types.SecurityGroupRule) []string { return optional(r.CidrIpv4) },
	"ipv6-cidr":      func(r *types.SecurityGroupRule) []string { return optional(r.CidrIpv6) },
	"prefix-list-id": func(r *types.SecurityGroupRule) []string { return optional(r.PrefixListId) },
	"protocol":       func(r *types.SecurityGroupRule) []string { return optional(r.IpProtocol) },
	"from-port":      func(r *types.SecurityGroupRule) []string { return []string{strconv.Itoa(int(*r.FromPort))} },
	"to-port":        func(r *types.SecurityGroupRule) []string { return []string{strconv.Itoa(int(*r.ToPort))} },
	"group-id": func(r *types.SecurityGroupRule) []string {
		if r.ReferencedGroupInfo == nil {
			return nil
		}
		return optional(r.ReferencedGroupInfo.GroupId)
	},
	"user-id": func(r *types.SecurityGroupRule) []string {
		if r.ReferencedGroupInfo == nil {
			return nil
		}
		return optional(r.ReferencedGroupInfo.UserId)
	},
}

// newRule gives a group's rule its id.
func (s *Service) newRule(group *state.SecurityGroup, rule types.SecurityGroupRule) *state.SecurityGroupRule {
	id := state.NewEC2ID("sgr")
	rule.SecurityGroupRuleId = &id
	rule.SecurityGroupRuleArn = new(s.opts.ARN("ec2", "security-group-rule/"+id))
	rule.GroupId = group.GroupId
	rule.GroupOwnerId = &s.opts.ID
	if rule.Tags == nil {
		rule.Tags = []types.Tag{}
	}
	return &state.SecurityGroupRule{SecurityGroupRule: rule}
}

// allPorts returns a rule for all traffic, without its peer.
func allPorts(egress bool) types.SecurityGroupRule {
	return types.SecurityGroupRule{
		IsEgress:   &egress,
		IpProtocol: aws.String("-1"),
		FromPort:   aws.Int32(-1),
		ToPort:     aws.Int32(-1),
	}
}

// peerOf returns whom a rule lets in or out to.
func peerOf(r *types.SecurityGroupRule) string {
	if r.ReferencedGroupInfo != nil {
		return *r.ReferencedGroupInfo.GroupId
	}
	return aws.ToString(r.CidrIpv4) + aws.ToString(r.CidrIpv6) + aws.ToString(r.PrefixListId) // one of them
}

// sameRule reports whether two rules of a group say the same.
func sameRule(a, b *types.SecurityGroupRule) bool {
	return *a.IsEgress == *b.IsEgress && *a.IpProtocol == *b.IpProtocol && *a.FromPort == *b.FromPort && *a.ToPort == *b.ToPort &&
		peerOf(a) == peerOf(b)
}

// findRule returns a group's rule that says the same as another one, or nil.
func findRule(v *state.View, group string, like *types.SecurityGroupRule) *state.SecurityGroupRule {
	for r := range v.SecurityGroupRules.By(state.RulesByGroup, group) {
		if sameRule(&r.SecurityGroupRule, like) {
			return r
		}
	}
	return nil
}

// wordRule words a rule as EC2's errors do.
func wordRule(r *types.SecurityGroupRule) string {
	text := "peer: " + peerOf(r) + ", " + strings.ToUpper(*r.IpProtocol)
	if *r.IpProtocol == "-1" {
		text = "peer: " + peerOf(r) + ", ALL"
	} else if *r.FromPort != -1 || *r.ToPort != -1 {
		text += fmt.Sprintf(", from port: %d, to port: %d", *r.FromPort, *r.ToPort)
	}
	return text + ", ALLOW"
}

// checkTraffic returns a rule for a protocol and its ports, without its peer.
func checkTraffic(egress bool, protocol *string, from, to *int32) (types.SecurityGroupRule, error) {
	rule := allPorts(egress)
	name := strings.ToLower(aws.ToString(protocol))
	number, err := strconv.Atoi(name)
	for n, known := range protocolNames {
		if known == name {
			number, err = n, nil
		}
	}
	switch {
	case name == "":
		return rule, missing("IpProtocol")
	case name == "all":
		return rule, nil
	case err != nil || number < protocolAll || number > 255:
		return rule, refuse("InvalidParameterValue", "Invalid value '%s' for IP protocol. Unknown protocol.", name)
	case number == protocolAll:
		return rule, nil
	}
	rule.IpProtocol = new(strconv.Itoa(number))
	if known := protocolNames[number]; known != "" {
		rule.IpProtocol = &known
	}
	switch number {
	case protocolTCP, protocolUDP:
		if from == nil || to == nil {
			return rule, refuse("InvalidParameterValue", "Invalid value 'Must specify both from and to ports with TCP/UDP.' for portRange.")
		}
		if *from < 0 || *to > 65535 || *from > *to {
			return rule, refuse("InvalidParameterValue", "Invalid TCP/UDP port range (%d:%d)", *from, *to)
		}
	case protocolICMP, protocolICMPv6:
		for _, n := range []*int32{from, to} {
			if n != nil && (*n < -1 || *n > 255) {
				return rule, refuse("InvalidParameterValue", "ICMP type or code (%d) out of range", *n)
			}
		}
	default:
		return rule, nil
	}
	if from != nil {
		rule.FromPort = from
	}
	if to != nil {
		rule.ToPort = to
	}
	return rule, nil
}

// readRules returns the rules that permissions are made of.
func (s *Service) readRules(v *state.View, group *state.SecurityGroup, egress bool, all []types.IpPermission) ([]types.SecurityGroupRule, error) {
	var rules []types.SecurityGroupRule
	for _, p := range all {
		traffic, err := checkTraffic(egress, p.IpProtocol, p.FromPort, p.ToPort)
		if err != nil {
			return nil, err
		}
		before := len(rules)
		add := func(set func(*types.SecurityGroupRule) error, description *string) error {
			if d := aws.ToString(description); !isGroupText(d) {
				return refuse("InvalidParameterValue", "Invalid rule description. Valid descriptions are strings less than 256 characters "+
					"from the following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*")
			}
			rule := traffic
			rule.Description = description
			rules = append(rules, rule)
			return set(&rules[len(rules)-1])
		}
		if err := s.readPeers(v, group, &p, add); err != nil {
			return nil, err
		}
		if len(rules) == before {
			return nil, missing("CidrIp")
		}
	}
	for i := range rules {
		if slices.ContainsFunc(rules[:i], func(r types.SecurityGroupRule) bool { return sameRule(&r, &rules[i]) }) {
			return nil, refuse("InvalidParameterValue", "The same permission must not appear multiple times")
		}
	}
	return rules, nil
}

// readPeers calls add for each peer of a permission, with what sets it and with its description.
func (s *Service) readPeers(
	v *state.View, group *state.SecurityGroup, p *types.IpPermission, add func(set func(*types.SecurityGroupRule) error, description *string) error,
) error {
	for _, r := range p.IpRanges {
		if err := add(func(rule *types.SecurityGroupRule) error { return setBlock(&rule.CidrIpv4, r.CidrIp, true) }, r.Description); err != nil {
			return err
		}
	}
	for _, r := range p.Ipv6Ranges {
		if err := add(func(rule *types.SecurityGroupRule) error { return setBlock(&rule.CidrIpv6, r.CidrIpv6, false) }, r.Description); err != nil {
			return err
		}
	}
	for _, r := range p.PrefixListIds {
		if err := add(func(rule *types.SecurityGroupRule) error { return s.setPrefixList(rule, r.PrefixListId) }, r.Description); err != nil {
			return err
		}
	}
	for _, r := range p.UserIdGroupPairs {
		err := add(func(rule *types.SecurityGroupRule) error { return s.setGroup(v, group, rule, r) }, r.Description)
		if err != nil {
			return err
		}
	}
	return nil
}

// setBlock sets a rule's peer to a block of addresses.
func setBlock(to **string, block *string, is4 bool) error {
	p, ok := cidr.Parse(aws.ToString(block))
	if !ok || p.Addr().Is4() != is4 {
		return refuse("InvalidParameterValue", "CIDR block %s is malformed", aws.ToString(block))
	}
	*to = new(p.String())
	return nil
}

// setPrefixList sets a rule's peer to a prefix list.
func (s *Service) setPrefixList(rule *types.SecurityGroupRule, id *string) error {
	if s.prefixList(aws.ToString(id)) == nil {
		return noPrefixList(aws.ToString(id))
	}
	rule.PrefixListId = id
	return nil
}

// setGroup sets a rule's peer to a group of the same VPC, by its id or its name. There are no other accounts, and no peerings of VPCs.
func (s *Service) setGroup(v *state.View, of *state.SecurityGroup, rule *types.SecurityGroupRule, to types.UserIdGroupPair) error {
	if to.VpcPeeringConnectionId != nil {
		return noPeering(*to.VpcPeeringConnectionId)
	}
	if owner := aws.ToString(to.UserId); owner != "" && owner != s.opts.ID {
		return securityGroups.absent(cmp.Or(aws.ToString(to.GroupId), aws.ToString(to.GroupName)))
	}
	var peer *state.SecurityGroup
	var err error
	if to.GroupId == nil && to.GroupName != nil {
		peer, err = groupNamed(v, *of.VpcId, *to.GroupName)
	} else {
		peer, err = securityGroups.get(v, to.GroupId, "GroupId")
	}
	if err != nil {
		return err
	}
	if *peer.VpcId != *of.VpcId || to.VpcId != nil && *to.VpcId != *of.VpcId {
		return refuse("InvalidGroup.NotFound", "You have specified two resources that belong to different networks.")
	}
	rule.ReferencedGroupInfo = &types.ReferencedSecurityGroup{GroupId: peer.GroupId, UserId: &s.opts.ID}
	return nil
}

// addPermission adds a rule to permissions, of which there is one for each protocol with its ports.
func addPermission(all []types.IpPermission, r *types.SecurityGroupRule) []types.IpPermission {
	from, to := r.FromPort, r.ToPort
	if *r.IpProtocol == "-1" {
		from, to = nil, nil
	}
	at := slices.IndexFunc(all, func(p types.IpPermission) bool {
		return *p.IpProtocol == *r.IpProtocol && aws.ToInt32(p.FromPort) == aws.ToInt32(from) && aws.ToInt32(p.ToPort) == aws.ToInt32(to)
	})
	if at < 0 {
		at = len(all)
		all = append(all, types.IpPermission{
			IpProtocol:       r.IpProtocol,
			FromPort:         from,
			ToPort:           to,
			IpRanges:         []types.IpRange{},
			Ipv6Ranges:       []types.Ipv6Range{},
			PrefixListIds:    []types.PrefixListId{},
			UserIdGroupPairs: []types.UserIdGroupPair{},
		})
	}
	p := &all[at]
	switch {
	case r.CidrIpv4 != nil:
		p.IpRanges = append(p.IpRanges, types.IpRange{CidrIp: r.CidrIpv4, Description: r.Description})
	case r.CidrIpv6 != nil:
		p.Ipv6Ranges = append(p.Ipv6Ranges, types.Ipv6Range{CidrIpv6: r.CidrIpv6, Description: r.Description})
	case r.PrefixListId != nil:
		p.PrefixListIds = append(p.PrefixListIds, types.PrefixListId{PrefixListId: r.PrefixListId, Description: r.Description})
	case r.ReferencedGroupInfo != nil:
		p.UserIdGroupPairs = append(p.UserIdGroupPairs, types.UserIdGroupPair{
			GroupId:     r.ReferencedGroupInfo.GroupId,
			UserId:      r.ReferencedGroupInfo.UserId,
			Description: r.Description,
		})
	}
	return all
}
