package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// networkACLEntry has the properties of AWS::EC2::NetworkAclEntry. Its physical ID is a name that only the stack knows.
type networkACLEntry struct {
	NetworkAclId  *string          `cfn:"required,create"`
	RuleNumber    *int32           `cfn:"required,create"`
	Egress        bool             `cfn:"create"`
	Protocol      *string          `cfn:"required"`
	RuleAction    types.RuleAction `cfn:"required"`
	CidrBlock     *string
	Ipv6CidrBlock *string
	Icmp          *types.IcmpTypeCode
	PortRange     *types.PortRange
}

var _ = add(&kind[*networkACLEntry]{
	name:       "AWS::EC2::NetworkAclEntry",
	live:       liveNetworkACLEntry,
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, e *networkACLEntry) (string, error) {
		id := s.generated(128)
		if !s.Since.IsZero() { // an earlier process may have made it
			if _, err := liveNetworkACLEntry(ctx, s, id, e); err == nil {
				return id, replaceNetworkACLEntry(ctx, s, id, e, e)
			}
		}
		return id, did[ec2.CreateNetworkAclEntryOutput](ctx, s, &ec2.CreateNetworkAclEntryInput{
			NetworkAclId:  e.NetworkAclId,
			RuleNumber:    e.RuleNumber,
			Egress:        &e.Egress,
			Protocol:      e.Protocol,
			RuleAction:    e.RuleAction,
			CidrBlock:     e.CidrBlock,
			Ipv6CidrBlock: e.Ipv6CidrBlock,
			IcmpTypeCode:  e.Icmp,
			PortRange:     e.PortRange,
		})
	},
	update: replaceNetworkACLEntry,
	delete: func(ctx context.Context, s Step, _ string, e *networkACLEntry) error {
		in := &ec2.DeleteNetworkAclEntryInput{NetworkAclId: e.NetworkAclId, RuleNumber: e.RuleNumber, Egress: &e.Egress}
		return did[ec2.DeleteNetworkAclEntryOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, id string, e *networkACLEntry) (Made, error) {
		_, err := liveNetworkACLEntry(ctx, s, id, e)
		return Made{Attributes: map[string]any{"Id": id}}, err
	},
})

func replaceNetworkACLEntry(ctx context.Context, s Step, _ string, _, after *networkACLEntry) error {
	return did[ec2.ReplaceNetworkAclEntryOutput](ctx, s, &ec2.ReplaceNetworkAclEntryInput{
		NetworkAclId:  after.NetworkAclId,
		RuleNumber:    after.RuleNumber,
		Egress:        &after.Egress,
		Protocol:      after.Protocol,
		RuleAction:    after.RuleAction,
		CidrBlock:     after.CidrBlock,
		Ipv6CidrBlock: after.Ipv6CidrBlock,
		IcmpTypeCode:  after.Icmp,
		PortRange:     after.PortRange,
	})
}

func liveNetworkACLEntry(ctx context.Context, s Step, _ string, asked *networkACLEntry) (*networkACLEntry, error) {
	acl, err := describeNetworkACL(ctx, s, filter("network-acl-id", *asked.NetworkAclId))
	if err != nil {
		return nil, err
	}
	for _, e := range acl.Entries {
		if *e.RuleNumber == *asked.RuleNumber && *e.Egress == asked.Egress {
			return &networkACLEntry{
				NetworkAclId:  acl.NetworkAclId,
				RuleNumber:    e.RuleNumber,
				Egress:        asked.Egress,
				Protocol:      aws.String(protocolAsGiven(aws.ToString(asked.Protocol), aws.ToString(e.Protocol))),
				RuleAction:    e.RuleAction,
				CidrBlock:     e.CidrBlock,
				Ipv6CidrBlock: e.Ipv6CidrBlock,
				Icmp:          e.IcmpTypeCode,
				PortRange:     e.PortRange,
			}, nil
		}
	}
	return nil, errMissing
}

// protocolAsGiven returns the number of a protocol, or its name if that is how it was given.
func protocolAsGiven(given, number string) string {
	names := map[string]string{"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}
	if given != "" && names[number] == given {
		return given
	}
	return number
}
