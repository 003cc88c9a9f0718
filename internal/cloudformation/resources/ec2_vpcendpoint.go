package resources

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// vpcEndpoint has the properties of AWS::EC2::VPCEndpoint.
type vpcEndpoint struct {
	ServiceName       *string               `cfn:"required,create"`
	VpcId             *string               `cfn:"required,create"`
	VpcEndpointType   types.VpcEndpointType `cfn:"create"`
	IpAddressType     types.IpAddressType   `cfn:"create"`
	PolicyDocument    any
	PrivateDnsEnabled *bool
	RouteTableIds     []string
	SecurityGroupIds  []string
	SubnetIds         []string
	Tags              []Tag
}

var _ = add(&kind[*vpcEndpoint]{
	name:       "AWS::EC2::VPCEndpoint",
	live:       liveEndpoint,
	identifier: []string{"Id"},
	attributes: []string{"CreationTimestamp", "DnsEntries", "Id", "NetworkInterfaceIds"},
	find:       findEC2[*vpcEndpoint],
	create: func(ctx context.Context, s Step, e *vpcEndpoint) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeVpcEndpoint, e.Tags)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.CreateVpcEndpointOutput](ctx, s.Services, &ec2.CreateVpcEndpointInput{
			ServiceName:       e.ServiceName,
			VpcId:             e.VpcId,
			IpAddressType:     e.IpAddressType,
			PolicyDocument:    document(e.PolicyDocument),
			PrivateDnsEnabled: e.PrivateDnsEnabled,
			RouteTableIds:     e.RouteTableIds,
			SecurityGroupIds:  e.SecurityGroupIds,
			SubnetIds:         e.SubnetIds,
			TagSpecifications: tags,
			VpcEndpointType:   e.VpcEndpointType,
		})
		if err != nil {
			return "", err
		}
		return *out.VpcEndpoint.VpcEndpointId, nil
	},
	update: updateEndpoint,
	delete: func(ctx context.Context, s Step, id string, _ *vpcEndpoint) error {
		out, err := call.Do[ec2.DeleteVpcEndpointsOutput](ctx, s.Services, &ec2.DeleteVpcEndpointsInput{VpcEndpointIds: []string{id}})
		if err != nil || len(out.Unsuccessful) == 0 {
			return err
		}
		why := out.Unsuccessful[0].Error
		if *why.Code == "InvalidVpcEndpointId.NotFound" {
			return errMissing
		}
		return errors.New(*why.Message)
	},
	read: func(ctx context.Context, s Step, id string, _ *vpcEndpoint) (Made, error) {
		out, err := call.Do[ec2.DescribeVpcEndpointsOutput](ctx, s.Services, &ec2.DescribeVpcEndpointsInput{VpcEndpointIds: []string{id}})
		if err != nil {
			return Made{}, err
		}
		e := out.VpcEndpoints[0]
		names, interfaces := []any{}, []any{}
		for _, n := range e.DnsEntries {
			names = append(names, aws.ToString(n.HostedZoneId)+":"+*n.DnsName)
		}
		for _, i := range e.NetworkInterfaceIds {
			interfaces = append(interfaces, i)
		}
		return Made{Attributes: map[string]any{
			"CreationTimestamp":   e.CreationTimestamp.Format(time.RFC3339),
			"DnsEntries":          names,
			"Id":                  id,
			"NetworkInterfaceIds": interfaces,
		}}, nil
	},
})

func updateEndpoint(ctx context.Context, s Step, id string, before, after *vpcEndpoint) error {
	in := &ec2.ModifyVpcEndpointInput{
		VpcEndpointId:          &id,
		AddRouteTableIds:       others(after.RouteTableIds, before.RouteTableIds),
		AddSecurityGroupIds:    others(after.SecurityGroupIds, before.SecurityGroupIds),
		AddSubnetIds:           others(after.SubnetIds, before.SubnetIds),
		PolicyDocument:         document(after.PolicyDocument),
		PrivateDnsEnabled:      after.PrivateDnsEnabled,
		RemoveRouteTableIds:    others(before.RouteTableIds, after.RouteTableIds),
		RemoveSecurityGroupIds: others(before.SecurityGroupIds, after.SecurityGroupIds),
		RemoveSubnetIds:        others(before.SubnetIds, after.SubnetIds),
	}
	if in.PolicyDocument == nil && before.PolicyDocument != nil {
		in.ResetPolicy = aws.Bool(true)
	}
	if err := did[ec2.ModifyVpcEndpointOutput](ctx, s, in); err != nil {
		return err
	}
	return retagEC2(ctx, s, id, before.Tags, after.Tags)
}

// others returns the elements of a list that another list doesn't have.
func others(all, known []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(known, s) })
}

func liveEndpoint(ctx context.Context, s Step, id string, _ *vpcEndpoint) (*vpcEndpoint, error) {
	out, err := call.Do[ec2.DescribeVpcEndpointsOutput](ctx, s.Services, &ec2.DescribeVpcEndpointsInput{VpcEndpointIds: []string{id}})
	if err != nil {
		return nil, err
	}
	e := out.VpcEndpoints[0]
	live := &vpcEndpoint{
		ServiceName:       e.ServiceName,
		VpcId:             e.VpcId,
		VpcEndpointType:   e.VpcEndpointType,
		IpAddressType:     e.IpAddressType,
		PolicyDocument:    parsed(e.PolicyDocument),
		PrivateDnsEnabled: e.PrivateDnsEnabled,
		RouteTableIds:     e.RouteTableIds,
		SubnetIds:         e.SubnetIds,
		Tags:              ownTags(e.Tags, ec2TagPair),
	}
	for _, g := range e.Groups {
		live.SecurityGroupIds = append(live.SecurityGroupIds, *g.GroupId)
	}
	return live, nil
}
