package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// vpc has the properties of AWS::EC2::VPC.
type vpc struct {
	CidrBlock          *string       `cfn:"create"`
	InstanceTenancy    types.Tenancy `cfn:"create"`
	EnableDnsHostnames *bool
	EnableDnsSupport   *bool
	Tags               []Tag
}

var _ = add(&kind[*vpc]{
	name:       "AWS::EC2::VPC",
	live:       liveVPC,
	list:       listVpcs,
	identifier: []string{"VpcId"},
	attributes: []string{"CidrBlock", "CidrBlockAssociations", "DefaultNetworkAcl", "DefaultSecurityGroup", "Ipv6CidrBlocks", "VpcId"},
	check: func(v *vpc) (faults []string) {
		if aws.ToBool(v.EnableDnsHostnames) && v.EnableDnsSupport != nil && !*v.EnableDnsSupport {
			faults = append(faults, "#/EnableDnsHostnames: DNS hostnames can only be enabled with DNS support (EnableDnsSupport)")
		}
		return faults
	},
	find: findEC2[*vpc],
	create: func(ctx context.Context, s Step, v *vpc) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeVpc, v.Tags)
		if err != nil {
			return "", err
		}
		in := &ec2.CreateVpcInput{CidrBlock: v.CidrBlock, InstanceTenancy: v.InstanceTenancy, TagSpecifications: tags}
		out, err := call.Do[ec2.CreateVpcOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		id := *out.Vpc.VpcId
		if err := setVPC(ctx, s, id, v); err != nil {
			return "", undo(ctx, s, id, v, deleteVPC, err)
		}
		return id, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *vpc) error {
		if err := setVPC(ctx, s, id, after); err != nil {
			return err
		}
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: deleteVPC,
	read:   readVPC,
})

// setVPC sets the attributes that only calls of their own can set.
func setVPC(ctx context.Context, s Step, id string, v *vpc) error {
	support := v.EnableDnsSupport == nil || *v.EnableDnsSupport
	for _, in := range []*ec2.ModifyVpcAttributeInput{
		{VpcId: &id, EnableDnsSupport: &types.AttributeBooleanValue{Value: &support}},
		{VpcId: &id, EnableDnsHostnames: &types.AttributeBooleanValue{Value: aws.Bool(aws.ToBool(v.EnableDnsHostnames))}},
	} {
		if err := did[ec2.ModifyVpcAttributeOutput](ctx, s, in); err != nil {
			return err
		}
	}
	return nil
}

func deleteVPC(ctx context.Context, s Step, id string, _ *vpc) error {
	return did[ec2.DeleteVpcOutput](ctx, s, &ec2.DeleteVpcInput{VpcId: &id})
}

func readVPC(ctx context.Context, s Step, id string, _ *vpc) (Made, error) {
	out, err := call.Do[ec2.DescribeVpcsOutput](ctx, s.Services, &ec2.DescribeVpcsInput{VpcIds: []string{id}})
	if err != nil {
		return Made{}, err
	}
	groups, err := call.Do[ec2.DescribeSecurityGroupsOutput](ctx, s.Services,
		&ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("vpc-id", id), filter("group-name", "default")}})
	if err != nil {
		return Made{}, err
	}
	acls, err := call.Do[ec2.DescribeNetworkAclsOutput](ctx, s.Services,
		&ec2.DescribeNetworkAclsInput{Filters: []types.Filter{filter("vpc-id", id), filter("default", "true")}})
	if err != nil {
		return Made{}, err
	}
	associations := []any{}
	for _, a := range out.Vpcs[0].CidrBlockAssociationSet {
		associations = append(associations, *a.AssociationId)
	}
	return Made{Attributes: map[string]any{
		"CidrBlock":             *out.Vpcs[0].CidrBlock,
		"CidrBlockAssociations": associations,
		"DefaultNetworkAcl":     *acls.NetworkAcls[0].NetworkAclId,
		"DefaultSecurityGroup":  *groups.SecurityGroups[0].GroupId,
		"Ipv6CidrBlocks":        []any{},
		"VpcId":                 id,
	}}, nil
}

func liveVPC(ctx context.Context, s Step, id string, _ *vpc) (*vpc, error) {
	out, err := call.Do[ec2.DescribeVpcsOutput](ctx, s.Services, &ec2.DescribeVpcsInput{VpcIds: []string{id}})
	if err != nil {
		return nil, err
	}
	v := out.Vpcs[0]
	live := &vpc{CidrBlock: v.CidrBlock, InstanceTenancy: v.InstanceTenancy, Tags: ownTags(v.Tags, ec2TagPair)}
	names, err := call.Do[ec2.DescribeVpcAttributeOutput](ctx, s.Services,
		&ec2.DescribeVpcAttributeInput{VpcId: &id, Attribute: types.VpcAttributeNameEnableDnsHostnames})
	if err != nil {
		return nil, err
	}
	support, err := call.Do[ec2.DescribeVpcAttributeOutput](ctx, s.Services,
		&ec2.DescribeVpcAttributeInput{VpcId: &id, Attribute: types.VpcAttributeNameEnableDnsSupport})
	if err != nil {
		return nil, err
	}
	live.EnableDnsHostnames, live.EnableDnsSupport = names.EnableDnsHostnames.Value, support.EnableDnsSupport.Value
	return live, nil
}

func listVpcs(ctx context.Context, s Step, _ *vpc) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeVpcsOutput](ctx, s.Services, &ec2.DescribeVpcsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Vpcs {
			ids = append(ids, *x.VpcId)
		}
		return ids, out.NextToken, nil
	})
}
