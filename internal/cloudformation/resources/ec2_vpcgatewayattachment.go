package resources

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// vpcGatewayAttachment has the properties of AWS::EC2::VPCGatewayAttachment. A VPC has one gateway at most, so its physical ID is IGW|VPC.
type vpcGatewayAttachment struct {
	VpcId             *string `cfn:"required,create"`
	InternetGatewayId *string `cfn:"required"`
}

var _ = add(&kind[*vpcGatewayAttachment]{
	name:       "AWS::EC2::VPCGatewayAttachment",
	live:       liveAttachment,
	identifier: []string{"AttachmentType", "VpcId"},
	attributes: []string{"AttachmentType"},
	id:         func(_ Step, a *vpcGatewayAttachment) string { return "IGW|" + aws.ToString(a.VpcId) },
	create: func(ctx context.Context, s Step, a *vpcGatewayAttachment) (string, error) {
		return "IGW|" + *a.VpcId, attachGateway(ctx, s, a)
	},
	update: func(ctx context.Context, s Step, id string, before, after *vpcGatewayAttachment) error {
		if before.InternetGatewayId != nil && *before.InternetGatewayId != *after.InternetGatewayId {
			if err := detachGateway(ctx, s, id, before); err != nil && !isMissing(err) {
				return err
			}
		}
		if err := attachGateway(ctx, s, after); !hasCode(err, "Resource.AlreadyAssociated") {
			return err
		}
		return nil
	},
	delete: detachGateway,
	read: func(ctx context.Context, s Step, _ string, a *vpcGatewayAttachment) (Made, error) {
		in := &ec2.DescribeInternetGatewaysInput{InternetGatewayIds: []string{*a.InternetGatewayId}}
		out, err := call.Do[ec2.DescribeInternetGatewaysOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		isTo := func(to types.InternetGatewayAttachment) bool { return *to.VpcId == *a.VpcId }
		if !slices.ContainsFunc(out.InternetGateways[0].Attachments, isTo) {
			return Made{}, errMissing
		}
		return Made{Attributes: map[string]any{"AttachmentType": "IGW"}}, nil
	},
})

func attachGateway(ctx context.Context, s Step, a *vpcGatewayAttachment) error {
	in := &ec2.AttachInternetGatewayInput{VpcId: a.VpcId, InternetGatewayId: a.InternetGatewayId}
	return did[ec2.AttachInternetGatewayOutput](ctx, s, in)
}

func detachGateway(ctx context.Context, s Step, _ string, a *vpcGatewayAttachment) error {
	in := &ec2.DetachInternetGatewayInput{VpcId: a.VpcId, InternetGatewayId: a.InternetGatewayId}
	return did[ec2.DetachInternetGatewayOutput](ctx, s, in)
}

func liveAttachment(ctx context.Context, s Step, id string, _ *vpcGatewayAttachment) (*vpcGatewayAttachment, error) {
	_, network, _ := strings.Cut(id, "|")
	in := &ec2.DescribeInternetGatewaysInput{Filters: []types.Filter{filter("attachment.vpc-id", network)}}
	out, err := call.Do[ec2.DescribeInternetGatewaysOutput](ctx, s.Services, in)
	if err == nil && len(out.InternetGateways) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	return &vpcGatewayAttachment{VpcId: &network, InternetGatewayId: out.InternetGateways[0].InternetGatewayId}, nil
}
