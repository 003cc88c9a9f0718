package ec2

import (
	"context"
	"slices"
	"sort"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// The VPC user guide's "Amazon VPC quotas".
const (
	maxACLs       = 200   // of a VPC
	maxACLEntries = 40    // in one direction
	lastRule      = 32766 // the highest number that a rule can have
	lastACLRule   = 32767 // the number of the rule that denies what no other one names
)

var networkACLs = kind[state.NetworkACL]{
	name:   types.ResourceTypeNetworkAcl,
	prefix: "acl",
	code:   "InvalidNetworkAclID.NotFound",
	text:   "The networkAcl ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.NetworkACL] { return v.NetworkACLs },
	of:     func(r *state.NetworkACL) (*string, *[]types.Tag) { return r.NetworkAclId, &r.Tags },
	fields: fields[state.NetworkACL]{
		"association.association-id": func(r *state.NetworkACL) []string {
			return values(r.Associations, func(a *types.NetworkAclAssociation) *string { return a.NetworkAclAssociationId })
		},
		"association.network-acl-id": func(r *state.NetworkACL) []string {
			return values(r.Associations, func(a *types.NetworkAclAssociation) *string { return a.NetworkAclId })
		},
		"association.subnet-id": func(r *state.NetworkACL) []string {
			return values(r.Associations, func(a *types.NetworkAclAssociation) *string { return a.SubnetId })
		},
		"default": func(r *state.NetworkACL) []string { return yes(r.IsDefault) },
		"entry.cidr": func(r *state.NetworkACL) []string {
			return values(r.Entries, func(e *types.NetworkAclEntry) *string { return e.CidrBlock })
		},
		"entry.protocol": func(r *state.NetworkACL) []string {
			return values(r.Entries, func(e *types.NetworkAclEntry) *string { return e.Protocol })
		},
		"entry.egress": func(r *state.NetworkACL) []string {
			return values(r.Entries, func(e *types.NetworkAclEntry) *string { return new(strconv.FormatBool(*e.Egress)) })
		},
		"entry.rule-action": func(r *state.NetworkACL) []string {
			return values(r.Entries, func(e *types.NetworkAclEntry) *string { return (*string)(&e.RuleAction) })
		},
		"entry.rule-number": func(r *state.NetworkACL) []string {
			return values(r.Entries, func(e *types.NetworkAclEntry) *string { return new(strconv.Itoa(int(*e.RuleNumber))) })
		},
		"network-acl-id": func(r *state.NetworkACL) []string { return optional(r.NetworkAclId) },
		"owner-id":       func(r *state.NetworkACL) []string { return optional(r.OwnerId) },
		"vpc-id":         func(r *state.NetworkACL) []string { return optional(r.VpcId) },
	},
}

func newACLAssociation(acl, subnet string) types.NetworkAclAssociation {
	return types.NetworkAclAssociation{
		NetworkAclAssociationId: new(state.NewEC2ID("aclassoc")),
		NetworkAclId:            &acl,
		SubnetId:                &subnet,
	}
}

// newACL makes a network ACL that denies everything.
func (s *Service) newACL(vpc *state.VPC, tags []types.Tag) *state.NetworkACL {
	return &state.NetworkACL{NetworkAcl: types.NetworkAcl{
		NetworkAclId: new(state.NewEC2ID("acl")),
		VpcId:        vpc.VpcId,
		OwnerId:      &s.opts.ID,
		IsDefault:    aws.Bool(false),
		Associations: []types.NetworkAclAssociation{},
		Entries:      []types.NetworkAclEntry{allTraffic(lastACLRule, true, types.RuleActionDeny), allTraffic(lastACLRule, false, types.RuleActionDeny)},
		Tags:         tags,
	}}
}

func allTraffic(number int32, egress bool, action types.RuleAction) types.NetworkAclEntry {
	return types.NetworkAclEntry{
		RuleNumber: &number,
		Egress:     &egress,
		RuleAction: action,
		Protocol:   aws.String("-1"),
		CidrBlock:  aws.String("0.0.0.0/0"),
	}
}

// putDefaultACL makes a VPC's default network ACL, which allows everything.
func (s *Service) putDefaultACL(tx *state.Tx, vpc *state.VPC) {
	row := s.newACL(vpc, []types.Tag{})
	row.IsDefault = aws.Bool(true)
	row.Entries = append(row.Entries, allTraffic(100, true, types.RuleActionAllow), allTraffic(100, false, types.RuleActionAllow))
	sortEntries(row)
	tx.NetworkACLs.Put(row)
}

// sortEntries puts what goes out first, then by number.
func sortEntries(r *state.NetworkACL) {
	sort.Slice(r.Entries, func(i, j int) bool {
		a, b := &r.Entries[i], &r.Entries[j]
		if *a.Egress != *b.Egress {
			return *a.Egress
		}
		return *a.RuleNumber < *b.RuleNumber
	})
}

// CreateNetworkAcl creates a network ACL, which denies everything until it has entries.
func (s *Service) CreateNetworkAcl(ctx context.Context, in *ec2.CreateNetworkAclInput) (*ec2.CreateNetworkAclOutput, error) {
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeNetworkAcl)
	if err != nil {
		return nil, err
	}
	var row *state.NetworkACL
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		row, err = putOnce(s, tx, networkACLs, in.ClientToken, in, s.newACL(vpc, tags), func() error {
			have := count(tx.NetworkACLs.By(state.NetworkACLsByVPC, *vpc.VpcId))
			return checkRoom(have, maxACLs, "NetworkAclLimitExceeded", "network ACLs of a VPC")
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateNetworkAclOutput{NetworkAcl: &row.NetworkAcl, ClientToken: in.ClientToken}, nil
}

// DescribeNetworkAcls describes network ACLs.
func (s *Service) DescribeNetworkAcls(_ context.Context, in *ec2.DescribeNetworkAclsInput) (*ec2.DescribeNetworkAclsOutput, error) {
	rows, next, err := networkACLs.describe(s.store.View(),
		query{"DescribeNetworkAcls", in.NetworkAclIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.NetworkACL) types.NetworkAcl { return r.NetworkAcl })
	return &ec2.DescribeNetworkAclsOutput{NetworkAcls: all, NextToken: next}, nil
}

// DeleteNetworkAcl deletes a network ACL that no subnet has.
func (s *Service) DeleteNetworkAcl(ctx context.Context, in *ec2.DeleteNetworkAclInput) (*ec2.DeleteNetworkAclOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err := networkACLs.get(tx.View, in.NetworkAclId, "NetworkAclId")
		switch {
		case err != nil:
			return err
		case *row.IsDefault:
			return refuse("InvalidParameterValue", "cannot delete default network ACL %s", *row.NetworkAclId)
		case len(row.Associations) > 0:
			return refuse("DependencyViolation", "The networkAcl '%s' has dependencies and cannot be deleted.", *row.NetworkAclId)
		}
		tx.NetworkACLs.Delete(*row.NetworkAclId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteNetworkAclOutput{}, nil
}

// ReplaceNetworkAclAssociation gives a subnet another network ACL.
func (s *Service) ReplaceNetworkAclAssociation(
	ctx context.Context, in *ec2.ReplaceNetworkAclAssociationInput,
) (*ec2.ReplaceNetworkAclAssociationOutput, error) {
	id := aws.ToString(in.AssociationId)
	var added types.NetworkAclAssociation
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		to, err := networkACLs.get(tx.View, in.NetworkAclId, "NetworkAclId")
		if err != nil {
			return err
		}
		for from := range tx.NetworkACLs.By(state.NetworkACLsByVPC, *to.VpcId) {
			at := slices.IndexFunc(from.Associations, func(a types.NetworkAclAssociation) bool { return *a.NetworkAclAssociationId == id })
			if at < 0 {
				continue
			}
			added = newACLAssociation(*to.NetworkAclId, *from.Associations[at].SubnetId)
			left := new(*from)
			left.Associations = slices.Delete(slices.Clone(from.Associations), at, at+1)
			tx.NetworkACLs.Put(left)
			return networkACLs.change(tx, in.NetworkAclId, "NetworkAclId", func(r *state.NetworkACL) error {
				r.Associations = append(slices.Clip(r.Associations), added)
				return nil
			})
		}
		return refuse("InvalidAssociationID.NotFound", "The association ID '%s' does not exist", id)
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ReplaceNetworkAclAssociationOutput{NewAssociationId: added.NetworkAclAssociationId}, nil
}
