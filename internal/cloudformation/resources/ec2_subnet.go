package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// subnet has the properties of AWS::EC2::Subnet.
type subnet struct {
	VpcId                         *string `cfn:"required,create"`
	AvailabilityZone              *string `cfn:"create"`
	AvailabilityZoneId            *string `cfn:"create"`
	CidrBlock                     *string `cfn:"create"`
	MapPublicIpOnLaunch           *bool
	PrivateDnsNameOptionsOnLaunch *dnsNameOptions
	Tags                          []Tag
}

type dnsNameOptions struct {
	EnableResourceNameDnsARecord *bool
	HostnameType                 types.HostnameType
}

var _ = add(&kind[*subnet]{
	name:       "AWS::EC2::Subnet",
	live:       liveSubnet,
	list:       listSubnets,
	identifier: []string{"SubnetId"},
	attributes: []string{
		"AvailabilityZone", "AvailabilityZoneId", "CidrBlock", "Ipv6CidrBlocks", "NetworkAclAssociationId", "SubnetId", "VpcId",
	},
	find: findEC2[*subnet],
	create: func(ctx context.Context, s Step, n *subnet) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeSubnet, n.Tags)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.CreateSubnetOutput](ctx, s.Services, &ec2.CreateSubnetInput{
			VpcId:              n.VpcId,
			AvailabilityZone:   n.AvailabilityZone,
			AvailabilityZoneId: n.AvailabilityZoneId,
			CidrBlock:          n.CidrBlock,
			TagSpecifications:  tags,
		})
		if err != nil {
			return "", err
		}
		id := *out.Subnet.SubnetId
		if err := setSubnet(ctx, s, id, &subnet{}, n); err != nil {
			return "", undo(ctx, s, id, n, deleteSubnet, err)
		}
		return id, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *subnet) error {
		if err := setSubnet(ctx, s, id, before, after); err != nil {
			return err
		}
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: deleteSubnet,
	read:   readSubnet,
})

// setSubnet sets what instances get that are launched into a subnet.
func setSubnet(ctx context.Context, s Step, id string, before, after *subnet) error {
	in := &ec2.ModifySubnetAttributeInput{
		SubnetId:            &id,
		MapPublicIpOnLaunch: &types.AttributeBooleanValue{Value: aws.Bool(aws.ToBool(after.MapPublicIpOnLaunch))},
	}
	options := after.PrivateDnsNameOptionsOnLaunch
	if options == nil && before.PrivateDnsNameOptionsOnLaunch != nil {
		options = &dnsNameOptions{HostnameType: types.HostnameTypeIpName}
	}
	if options != nil {
		in.PrivateDnsHostnameTypeOnLaunch = options.HostnameType
		in.EnableResourceNameDnsARecordOnLaunch = &types.AttributeBooleanValue{
			Value: aws.Bool(aws.ToBool(options.EnableResourceNameDnsARecord)),
		}
	}
	return did[ec2.ModifySubnetAttributeOutput](ctx, s, in)
}

func deleteSubnet(ctx context.Context, s Step, id string, _ *subnet) error {
	return did[ec2.DeleteSubnetOutput](ctx, s, &ec2.DeleteSubnetInput{SubnetId: &id})
}

func readSubnet(ctx context.Context, s Step, id string, _ *subnet) (Made, error) {
	out, err := call.Do[ec2.DescribeSubnetsOutput](ctx, s.Services, &ec2.DescribeSubnetsInput{SubnetIds: []string{id}})
	if err != nil {
		return Made{}, err
	}
	acls, err := call.Do[ec2.DescribeNetworkAclsOutput](ctx, s.Services,
		&ec2.DescribeNetworkAclsInput{Filters: []types.Filter{filter("association.subnet-id", id)}})
	if err != nil {
		return Made{}, err
	}
	association := ""
	for _, acl := range acls.NetworkAcls {
		for _, a := range acl.Associations {
			if *a.SubnetId == id {
				association = *a.NetworkAclAssociationId
			}
		}
	}
	made := out.Subnets[0]
	return Made{Attributes: map[string]any{
		"AvailabilityZone":        *made.AvailabilityZone,
		"AvailabilityZoneId":      *made.AvailabilityZoneId,
		"CidrBlock":               *made.CidrBlock,
		"Ipv6CidrBlocks":          []any{},
		"NetworkAclAssociationId": association,
		"SubnetId":                id,
		"VpcId":                   *made.VpcId,
	}}, nil
}

func liveSubnet(ctx context.Context, s Step, id string, _ *subnet) (*subnet, error) {
	out, err := call.Do[ec2.DescribeSubnetsOutput](ctx, s.Services, &ec2.DescribeSubnetsInput{SubnetIds: []string{id}})
	if err != nil {
		return nil, err
	}
	n := out.Subnets[0]
	live := &subnet{
		VpcId:               n.VpcId,
		AvailabilityZone:    n.AvailabilityZone,
		AvailabilityZoneId:  n.AvailabilityZoneId,
		CidrBlock:           n.CidrBlock,
		MapPublicIpOnLaunch: n.MapPublicIpOnLaunch,
		Tags:                ownTags(n.Tags, ec2TagPair),
	}
	if o := n.PrivateDnsNameOptionsOnLaunch; o != nil {
		live.PrivateDnsNameOptionsOnLaunch = &dnsNameOptions{o.EnableResourceNameDnsARecord, o.HostnameType}
	}
	return live, nil
}

func listSubnets(ctx context.Context, s Step, _ *subnet) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeSubnetsOutput](ctx, s.Services, &ec2.DescribeSubnetsInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.Subnets {
			ids = append(ids, *x.SubnetId)
		}
		return ids, out.NextToken, nil
	})
}
