package ec2

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// entryAt returns the index of the entry with a number in one direction, or -1.
func entryAt(r *state.NetworkACL, number int32, egress bool) int {
	return slices.IndexFunc(r.Entries, func(e types.NetworkAclEntry) bool { return *e.RuleNumber == number && *e.Egress == egress })
}

func noEntry(number int32, egress bool) error {
	direction := "ingress"
	if egress {
		direction = "egress"
	}
	return refuse("InvalidNetworkAclEntry.NotFound", "The network acl entry identified by %s rule number %d does not exist", direction, number)
}

// newEntry checks an entry. ReplaceNetworkAclEntry has the same members.
func newEntry(in *ec2.CreateNetworkAclEntryInput) (e types.NetworkAclEntry, err error) {
	switch {
	case in.RuleNumber == nil:
		return e, missing("RuleNumber")
	case in.Egress == nil:
		return e, missing("Egress")
	case in.Protocol == nil:
		return e, missing("Protocol")
	case *in.RuleNumber < 1 || *in.RuleNumber > lastRule:
		return e, refuse("InvalidParameterValue", "Value (%d) for parameter ruleNumber is invalid. It must be between 1 and %d.",
			*in.RuleNumber, lastRule)
	case !slices.Contains(in.RuleAction.Values(), in.RuleAction):
		return e, refuse("InvalidParameterValue", "Value (%s) for parameter ruleAction is invalid. Valid values: allow, deny.", in.RuleAction)
	case (in.CidrBlock == nil) == (in.Ipv6CidrBlock == nil):
		return e, refuse("MissingParameter", "The request must contain exactly one of the parameters cidrBlock and ipv6CidrBlock")
	}
	e = types.NetworkAclEntry{
		RuleNumber:   in.RuleNumber,
		Egress:       in.Egress,
		RuleAction:   in.RuleAction,
		PortRange:    in.PortRange,
		IcmpTypeCode: in.IcmpTypeCode,
	}
	for _, b := range []struct {
		given *string
		to    **string
		is4   bool
	}{{in.CidrBlock, &e.CidrBlock, true}, {in.Ipv6CidrBlock, &e.Ipv6CidrBlock, false}} {
		if b.given == nil {
			continue
		}
		p, ok := cidr.Parse(*b.given)
		if !ok || p.Addr().Is4() != b.is4 {
			return e, refuse("InvalidParameterValue", "CIDR block %s is malformed", *b.given)
		}
		*b.to = new(p.String())
	}
	e.Protocol, err = entryProtocol(*in.Protocol, &e)
	return e, err
}

// entryProtocol returns a protocol's number, which is how network ACLs show it, and refuses an entry without what its protocol needs.
func entryProtocol(protocol string, e *types.NetworkAclEntry) (*string, error) {
	number := protocol
	for n, name := range protocolNames {
		if name == protocol {
			number = strconv.Itoa(n)
		}
	}
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < -1 || n > 255:
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter protocol is invalid. Unknown protocol.", protocol)
	case (n == protocolTCP || n == protocolUDP) && (e.PortRange == nil || e.PortRange.From == nil || e.PortRange.To == nil):
		return nil, missing("PortRange")
	case n == protocolICMP && (e.IcmpTypeCode == nil || e.IcmpTypeCode.Type == nil || e.IcmpTypeCode.Code == nil):
		return nil, missing("IcmpTypeCode")
	}
	if p := e.PortRange; p != nil && (aws.ToInt32(p.From) < 0 || aws.ToInt32(p.To) > 65535 || aws.ToInt32(p.From) > aws.ToInt32(p.To)) {
		return nil, refuse("InvalidParameterValue", "Invalid TCP/UDP port range (%d:%d)", aws.ToInt32(p.From), aws.ToInt32(p.To))
	}
	return &number, nil
}

// CreateNetworkAclEntry adds an entry to a network ACL.
func (s *Service) CreateNetworkAclEntry(
	ctx context.Context, in *ec2.CreateNetworkAclEntryInput,
) (*ec2.CreateNetworkAclEntryOutput, error) {
	entry, err := newEntry(in)
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return networkACLs.change(tx, in.NetworkAclId, "NetworkAclId", func(r *state.NetworkACL) error {
			if entryAt(r, *entry.RuleNumber, *entry.Egress) >= 0 {
				return refuse("NetworkAclEntryAlreadyExists", "The network acl entry identified by %d already exists.", *entry.RuleNumber)
			}
			have := len(slices.DeleteFunc(slices.Clone(r.Entries), func(e types.NetworkAclEntry) bool { return *e.Egress != *entry.Egress })) - 1
			r.Entries = append(slices.Clip(r.Entries), entry)
			sortEntries(r)
			return checkRoom(have, maxACLEntries, "NetworkAclEntryLimitExceeded", "network ACL entries")
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateNetworkAclEntryOutput{}, nil
}

// ReplaceNetworkAclEntry replaces an entry of a network ACL.
func (s *Service) ReplaceNetworkAclEntry(
	ctx context.Context, in *ec2.ReplaceNetworkAclEntryInput,
) (*ec2.ReplaceNetworkAclEntryOutput, error) {
	entry, err := newEntry(&ec2.CreateNetworkAclEntryInput{
		NetworkAclId:  in.NetworkAclId,
		RuleNumber:    in.RuleNumber,
		RuleAction:    in.RuleAction,
		Egress:        in.Egress,
		Protocol:      in.Protocol,
		CidrBlock:     in.CidrBlock,
		Ipv6CidrBlock: in.Ipv6CidrBlock,
		PortRange:     in.PortRange,
		IcmpTypeCode:  in.IcmpTypeCode,
	})
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return networkACLs.change(tx, in.NetworkAclId, "NetworkAclId", func(r *state.NetworkACL) error {
			at := entryAt(r, *entry.RuleNumber, *entry.Egress)
			if at < 0 {
				return noEntry(*entry.RuleNumber, *entry.Egress)
			}
			r.Entries = slices.Clone(r.Entries)
			r.Entries[at] = entry
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ReplaceNetworkAclEntryOutput{}, nil
}

// DeleteNetworkAclEntry deletes an entry of a network ACL, but not the last one, which denies the rest.
func (s *Service) DeleteNetworkAclEntry(
	ctx context.Context, in *ec2.DeleteNetworkAclEntryInput,
) (*ec2.DeleteNetworkAclEntryOutput, error) {
	number, egress := aws.ToInt32(in.RuleNumber), aws.ToBool(in.Egress)
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		return networkACLs.change(tx, in.NetworkAclId, "NetworkAclId", func(r *state.NetworkACL) error {
			at := entryAt(r, number, egress)
			if at < 0 || number > lastRule {
				return noEntry(number, egress)
			}
			r.Entries = slices.Delete(slices.Clone(r.Entries), at, at+1)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteNetworkAclEntryOutput{}, nil
}
