package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// networkInterface has the properties of AWS::EC2::NetworkInterface.
type networkInterface struct {
	SubnetId         *string `cfn:"required,create"`
	PrivateIpAddress *string `cfn:"create"`
	Description      *string
	GroupSet         []string
	SourceDestCheck  *bool
	Tags             []Tag
}

var _ = add(&kind[*networkInterface]{
	name:       "AWS::EC2::NetworkInterface",
	live:       liveInterface,
	list:       listNetworkInterfaces,
	identifier: []string{"Id"},
	attributes: []string{"Id", "PrimaryPrivateIpAddress", "VpcId"},
	find:       findEC2[*networkInterface],
	create: func(ctx context.Context, s Step, i *networkInterface) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeNetworkInterface, i.Tags)
		if err != nil {
			return "", err
		}
		out, err := call.Do[ec2.CreateNetworkInterfaceOutput](ctx, s.Services, &ec2.CreateNetworkInterfaceInput{
			SubnetId:          i.SubnetId,
			Description:       i.Description,
			Groups:            i.GroupSet,
			PrivateIpAddress:  i.PrivateIpAddress,
			TagSpecifications: tags,
		})
		if err != nil {
			return "", err
		}
		id := *out.NetworkInterface.NetworkInterfaceId
		if err := setInterface(ctx, s, id, i); err != nil {
			return "", undo(ctx, s, id, i, deleteInterface, err)
		}
		return id, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *networkInterface) error {
		if err := setInterface(ctx, s, id, after); err != nil {
			return err
		}
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: deleteInterface,
	read: func(ctx context.Context, s Step, id string, _ *networkInterface) (Made, error) {
		in := &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}}
		out, err := call.Do[ec2.DescribeNetworkInterfacesOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		i := out.NetworkInterfaces[0]
		return Made{Attributes: map[string]any{"Id": id, "PrimaryPrivateIpAddress": *i.PrivateIpAddress, "VpcId": *i.VpcId}}, nil
	},
})

// setInterface sets what an interface can change of itself. Without groups in the template it keeps those that it has.
func setInterface(ctx context.Context, s Step, id string, i *networkInterface) error {
	checked := i.SourceDestCheck == nil || *i.SourceDestCheck
	return did[ec2.ModifyNetworkInterfaceAttributeOutput](ctx, s, &ec2.ModifyNetworkInterfaceAttributeInput{
		NetworkInterfaceId: &id,
		Description:        &types.AttributeValue{Value: aws.String(aws.ToString(i.Description))},
		Groups:             i.GroupSet,
		SourceDestCheck:    &types.AttributeBooleanValue{Value: &checked},
	})
}

func deleteInterface(ctx context.Context, s Step, id string, _ *networkInterface) error {
	in := &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id}
	return did[ec2.DeleteNetworkInterfaceOutput](ctx, s, in)
}

func liveInterface(ctx context.Context, s Step, id string, _ *networkInterface) (*networkInterface, error) {
	in := &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}}
	out, err := call.Do[ec2.DescribeNetworkInterfacesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	i := out.NetworkInterfaces[0]
	live := &networkInterface{
		SubnetId:         i.SubnetId,
		PrivateIpAddress: i.PrivateIpAddress,
		Description:      i.Description,
		SourceDestCheck:  i.SourceDestCheck,
		Tags:             ownTags(i.TagSet, ec2TagPair),
	}
	for _, g := range i.Groups {
		live.GroupSet = append(live.GroupSet, *g.GroupId)
	}
	return live, nil
}

func listNetworkInterfaces(ctx context.Context, s Step, _ *networkInterface) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeNetworkInterfacesOutput](ctx, s.Services, &ec2.DescribeNetworkInterfacesInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.NetworkInterfaces {
			ids = append(ids, *x.NetworkInterfaceId)
		}
		return ids, out.NextToken, nil
	})
}
