package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// eipAssociation has the properties of AWS::EC2::EIPAssociation. An address that is associated again leaves what had it, so an association
// that takes another's place needs no help.
type eipAssociation struct {
	AllocationId       *string `cfn:"create"`
	EIP                *string `cfn:"create"` // the address itself
	InstanceId         *string `cfn:"create"`
	NetworkInterfaceId *string `cfn:"create"`
	PrivateIpAddress   *string `cfn:"create"`
}

var _ = add(&kind[*eipAssociation]{
	name:       "AWS::EC2::EIPAssociation",
	live:       liveEIPAssociation,
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, a *eipAssociation) (string, error) {
		out, err := call.Do[ec2.AssociateAddressOutput](ctx, s.Services, &ec2.AssociateAddressInput{
			AllocationId:       a.AllocationId,
			PublicIp:           a.EIP,
			InstanceId:         a.InstanceId,
			NetworkInterfaceId: a.NetworkInterfaceId,
			PrivateIpAddress:   a.PrivateIpAddress,
		})
		if err != nil {
			return "", err
		}
		return *out.AssociationId, nil
	},
	delete: func(ctx context.Context, s Step, id string, _ *eipAssociation) error {
		return did[ec2.DisassociateAddressOutput](ctx, s, &ec2.DisassociateAddressInput{AssociationId: &id})
	},
	read: func(ctx context.Context, s Step, id string, a *eipAssociation) (Made, error) {
		_, err := liveEIPAssociation(ctx, s, id, a)
		return Made{Attributes: map[string]any{"Id": id}}, err
	},
})

func liveEIPAssociation(ctx context.Context, s Step, id string, asked *eipAssociation) (*eipAssociation, error) {
	in := &ec2.DescribeAddressesInput{Filters: []types.Filter{filter("association-id", id)}}
	out, err := call.Do[ec2.DescribeAddressesOutput](ctx, s.Services, in)
	if err == nil && len(out.Addresses) == 0 {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	is := out.Addresses[0]
	live := &eipAssociation{AllocationId: is.AllocationId, InstanceId: is.InstanceId, PrivateIpAddress: is.PrivateIpAddress}
	if asked.EIP != nil {
		live.AllocationId, live.EIP = nil, is.PublicIp
	}
	if asked.NetworkInterfaceId != nil || aws.ToString(is.InstanceId) == "" {
		live.InstanceId, live.NetworkInterfaceId = nil, is.NetworkInterfaceId
	}
	return live, nil
}
