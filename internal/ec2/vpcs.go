package ec2

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// AWS has 5 VPCs in a region, and 5 blocks in a VPC, unless it's asked for more: the VPC user guide's "Amazon VPC quotas".
const (
	maxVPCs   = 100
	maxBlocks = 50 // of a VPC
)

var vpcs = kind[state.VPC]{
	name:   types.ResourceTypeVpc,
	prefix: "vpc",
	code:   "InvalidVpcID.NotFound",
	text:   "The vpc ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.VPC] { return v.VPCs },
	of:     func(r *state.VPC) (*string, *[]types.Tag) { return r.VpcId, &r.Tags },
	fields: fields[state.VPC]{
		"cidr":                              func(r *state.VPC) []string { return optional(r.CidrBlock) },
		"cidr-block":                        func(r *state.VPC) []string { return optional(r.CidrBlock) },
		"cidrBlock":                         func(r *state.VPC) []string { return optional(r.CidrBlock) },
		"cidr-block-association.cidr-block": func(r *state.VPC) []string { return blocksOf(r) },
		"cidr-block-association.state":      func(r *state.VPC) []string { return []string{"associated"} },
		"dhcp-options-id":                   func(r *state.VPC) []string { return optional(r.DhcpOptionsId) },
		"ipv6-cidr-block-association.state": func(*state.VPC) []string { return nil },
		"is-default":                        func(r *state.VPC) []string { return yes(r.IsDefault) },
		"isDefault":                         func(r *state.VPC) []string { return yes(r.IsDefault) },
		"owner-id":                          func(r *state.VPC) []string { return optional(r.OwnerId) },
		"state":                             func(r *state.VPC) []string { return []string{string(r.State)} },
		"vpc-id":                            func(r *state.VPC) []string { return optional(r.VpcId) },
		"cidr-block-association.association-id": func(r *state.VPC) (out []string) {
			for _, a := range r.CidrBlockAssociationSet {
				out = append(out, *a.AssociationId)
			}
			return out
		},
	},
}

// blocksOf returns a VPC's blocks.
func blocksOf(r *state.VPC) (out []string) {
	for _, a := range r.CidrBlockAssociationSet {
		out = append(out, *a.CidrBlock)
	}
	return out
}

// CreateVpc creates a VPC with its main route table, its default network ACL and its default security group.
func (s *Service) CreateVpc(ctx context.Context, in *ec2.CreateVpcInput) (*ec2.CreateVpcOutput, error) {
	if err := checkMembers(in, "CidrBlock", "InstanceTenancy", "TagSpecifications"); err != nil {
		return nil, err
	}
	if t := cmp.Or(in.InstanceTenancy, types.TenancyDefault); t != types.TenancyDefault {
		return nil, refuse("UnsupportedOperation", "InstanceTenancy: Pintle's instances have the tenancy default, not %q.", t)
	}
	block, err := readVPCBlock(in.CidrBlock)
	if err != nil {
		return nil, err
	}
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeVpc)
	if err != nil {
		return nil, err
	}
	var row *state.VPC
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		if err := checkRoom(count(tx.VPCs.All()), maxVPCs, "VpcLimitExceeded", "VPCs"); err != nil {
			return err
		}
		row = s.putVPC(tx, block, tags, false)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateVpcOutput{Vpc: &row.Vpc}, nil
}

// readBlock reads a block of IPv4 addresses.
func readBlock(block *string) (netip.Prefix, error) {
	if aws.ToString(block) == "" {
		return netip.Prefix{}, missing("CidrBlock")
	}
	p, ok := cidr.Parse4(*block)
	if !ok {
		return netip.Prefix{}, refuse("InvalidParameterValue",
			"Value (%s) for parameter cidrBlock is invalid. This is not a valid CIDR block.", *block)
	}
	return p, nil
}

// readVPCBlock reads the block of a VPC.
func readVPCBlock(block *string) (netip.Prefix, error) {
	p, err := readBlock(block)
	if err == nil && !cidr.IsAllowed(p) {
		err = refuse("InvalidVpc.Range", "The CIDR '%s' is invalid.", *block)
	}
	return p, err
}

// putVPC makes a VPC with all that each one has.
func (s *Service) putVPC(tx *state.Tx, block netip.Prefix, tags []types.Tag, isDefault bool) *state.VPC {
	row := &state.VPC{DNSSupport: true, DNSHostnames: isDefault, Vpc: types.Vpc{
		VpcId:                       new(state.NewEC2ID("vpc")),
		CidrBlock:                   new(block.String()),
		CidrBlockAssociationSet:     []types.VpcCidrBlockAssociation{newBlock(block)},
		Ipv6CidrBlockAssociationSet: []types.VpcIpv6CidrBlockAssociation{},
		DhcpOptionsId:               s.defaultDHCPOptions(tx),
		InstanceTenancy:             types.TenancyDefault,
		IsDefault:                   &isDefault,
		OwnerId:                     &s.opts.ID,
		State:                       types.VpcStateAvailable,
		Tags:                        tags,
	}}
	tx.VPCs.Put(row)
	s.putMainRouteTable(tx, row)
	s.putDefaultACL(tx, row)
	s.putDefaultGroup(tx, row)
	return row
}

func newBlock(block netip.Prefix) types.VpcCidrBlockAssociation {
	return types.VpcCidrBlockAssociation{
		AssociationId:  new(state.NewEC2ID("vpc-cidr-assoc")),
		CidrBlock:      new(block.String()),
		CidrBlockState: &types.VpcCidrBlockState{State: types.VpcCidrBlockStateCodeAssociated},
	}
}

// DescribeVpcs describes VPCs.
func (s *Service) DescribeVpcs(_ context.Context, in *ec2.DescribeVpcsInput) (*ec2.DescribeVpcsOutput, error) {
	rows, next, err := vpcs.describe(s.store.View(), query{"DescribeVpcs", in.VpcIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeVpcsOutput{Vpcs: show(rows, func(r *state.VPC) types.Vpc { return r.Vpc }), NextToken: next}, nil
}

// DeleteVpc deletes a VPC that has nothing but what it came with.
func (s *Service) DeleteVpc(ctx context.Context, in *ec2.DeleteVpcInput) (*ec2.DeleteVpcOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		id := *vpc.VpcId
		if vpcInUse(tx.View, id) {
			return refuse("DependencyViolation", "The vpc '%s' has dependencies and cannot be deleted.", id)
		}
		tx.RouteTables.Delete(*tx.MainRouteTable(id).RouteTableId)
		tx.NetworkACLs.Delete(*tx.DefaultNetworkACL(id).NetworkAclId)
		deleteGroup(tx, *tx.DefaultSecurityGroup(id).GroupId)
		tx.VPCs.Delete(id)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteVpcOutput{}, nil
}

// vpcInUse reports whether a VPC has more than what it came with. What lies in a subnet keeps the subnet.
func vpcInUse(v *state.View, id string) bool {
	attached := func(a types.InternetGatewayAttachment) bool { return *a.VpcId == id }
	for g := range v.InternetGateways.All() {
		if slices.ContainsFunc(g.Attachments, attached) {
			return true
		}
	}
	for g := range v.EgressOnlyInternetGateways.All() {
		if slices.ContainsFunc(g.Attachments, attached) {
			return true
		}
	}
	for e := range v.VPCEndpoints.All() {
		if *e.VpcId == id {
			return true
		}
	}
	return count(v.Subnets.By(state.SubnetsByVPC, id)) > 0 || count(v.RouteTables.By(state.RouteTablesByVPC, id)) > 1 ||
		count(v.NetworkACLs.By(state.NetworkACLsByVPC, id)) > 1 || count(v.SecurityGroups.By(state.SecurityGroupsByVPC, id)) > 1
}

// ModifyVpcAttribute changes one attribute of a VPC.
func (s *Service) ModifyVpcAttribute(ctx context.Context, in *ec2.ModifyVpcAttributeInput) (*ec2.ModifyVpcAttributeOutput, error) {
	given := 0
	for _, a := range []*types.AttributeBooleanValue{in.EnableDnsSupport, in.EnableDnsHostnames, in.EnableNetworkAddressUsageMetrics} {
		if a != nil && a.Value != nil {
			given++
		}
	}
	switch given {
	case 0:
		return nil, refuse("MissingParameter", "The request must contain an attribute to modify")
	case 1:
	default:
		return nil, refuse("InvalidParameterCombination", "Fields for multiple attribute types specified")
	}
	set := func(to *bool, a *types.AttributeBooleanValue) {
		if a != nil && a.Value != nil {
			*to = *a.Value
		}
	}
	err := s.write(ctx, nil, func(tx *state.Tx) error {
		return vpcs.change(tx, in.VpcId, "VpcId", func(r *state.VPC) error {
			set(&r.DNSSupport, in.EnableDnsSupport)
			set(&r.DNSHostnames, in.EnableDnsHostnames)
			set(&r.UsageMetrics, in.EnableNetworkAddressUsageMetrics)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ModifyVpcAttributeOutput{}, nil
}

// DescribeVpcAttribute describes one attribute of a VPC.
func (s *Service) DescribeVpcAttribute(_ context.Context, in *ec2.DescribeVpcAttributeInput) (*ec2.DescribeVpcAttributeOutput, error) {
	row, err := vpcs.get(s.store.View(), in.VpcId, "VpcId")
	if err != nil {
		return nil, err
	}
	out := &ec2.DescribeVpcAttributeOutput{VpcId: row.VpcId}
	switch in.Attribute {
	case types.VpcAttributeNameEnableDnsSupport:
		out.EnableDnsSupport = &types.AttributeBooleanValue{Value: &row.DNSSupport}
	case types.VpcAttributeNameEnableDnsHostnames:
		out.EnableDnsHostnames = &types.AttributeBooleanValue{Value: &row.DNSHostnames}
	case types.VpcAttributeNameEnableNetworkAddressUsageMetrics:
		out.EnableNetworkAddressUsageMetrics = &types.AttributeBooleanValue{Value: &row.UsageMetrics}
	case "":
		return nil, missing("Attribute")
	default:
		return nil, refuse("InvalidParameterValue", "Value (%s) for parameter attribute is invalid. Unknown attribute.", in.Attribute)
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	return out, nil
}
