package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// eip has the properties of AWS::EC2::EIP. Its physical ID is the address.
type eip struct {
	Domain             types.DomainType `cfn:"create"`
	NetworkBorderGroup *string          `cfn:"create"`
	InstanceId         *string
	Tags               []Tag
}

var _ = add(&kind[*eip]{
	name:       "AWS::EC2::EIP",
	live:       liveAddress,
	identifier: []string{"PublicIp", "AllocationId"},
	physical:   "PublicIp",
	attributes: []string{"AllocationId", "PublicIp"},
	find: func(ctx context.Context, s Step, e *eip) (string, error) {
		id, err := findEC2(ctx, s, e)
		if id == "" || err != nil {
			return "", err
		}
		a, err := address(ctx, s, &ec2.DescribeAddressesInput{AllocationIds: []string{id}})
		return aws.ToString(a.PublicIp), err
	},
	create: func(ctx context.Context, s Step, e *eip) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypeElasticIp, e.Tags)
		if err != nil {
			return "", err
		}
		in := &ec2.AllocateAddressInput{Domain: e.Domain, NetworkBorderGroup: e.NetworkBorderGroup, TagSpecifications: tags}
		out, err := call.Do[ec2.AllocateAddressOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		if err := associateAddress(ctx, s, *out.PublicIp, &eip{}, e); err != nil {
			return "", undo(ctx, s, *out.PublicIp, e, releaseAddress, err)
		}
		return *out.PublicIp, nil
	},
	update: func(ctx context.Context, s Step, ip string, before, after *eip) error {
		if err := associateAddress(ctx, s, ip, before, after); err != nil {
			return err
		}
		a, err := address(ctx, s, &ec2.DescribeAddressesInput{PublicIps: []string{ip}})
		if err != nil {
			return err
		}
		return retagEC2(ctx, s, *a.AllocationId, before.Tags, after.Tags)
	},
	delete: releaseAddress,
	read: func(ctx context.Context, s Step, ip string, _ *eip) (Made, error) {
		a, err := address(ctx, s, &ec2.DescribeAddressesInput{PublicIps: []string{ip}})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"AllocationId": *a.AllocationId, "PublicIp": ip}}, nil
	},
})

func address(ctx context.Context, s Step, in *ec2.DescribeAddressesInput) (types.Address, error) {
	out, err := call.Do[ec2.DescribeAddressesOutput](ctx, s.Services, in)
	if err != nil {
		return types.Address{}, err
	}
	return out.Addresses[0], nil
}

// associateAddress gives an address to the instance that is to have it.
func associateAddress(ctx context.Context, s Step, ip string, before, after *eip) error {
	if after.InstanceId != nil {
		in := &ec2.AssociateAddressInput{PublicIp: &ip, InstanceId: after.InstanceId}
		return did[ec2.AssociateAddressOutput](ctx, s, in)
	}
	if before.InstanceId == nil {
		return nil
	}
	return disassociateAddress(ctx, s, ip)
}

// disassociateAddress takes an address from the instance that has it, if one does.
func disassociateAddress(ctx context.Context, s Step, ip string) error {
	err := did[ec2.DisassociateAddressOutput](ctx, s, &ec2.DisassociateAddressInput{PublicIp: &ip})
	if isMissing(err) {
		return nil
	}
	return err
}

func releaseAddress(ctx context.Context, s Step, ip string, e *eip) error {
	if e.InstanceId != nil {
		if err := disassociateAddress(ctx, s, ip); err != nil {
			return err
		}
	}
	return did[ec2.ReleaseAddressOutput](ctx, s, &ec2.ReleaseAddressInput{PublicIp: &ip})
}

func liveAddress(ctx context.Context, s Step, ip string, _ *eip) (*eip, error) {
	a, err := address(ctx, s, &ec2.DescribeAddressesInput{PublicIps: []string{ip}})
	if err != nil {
		return nil, err
	}
	return &eip{
		Domain:             a.Domain,
		NetworkBorderGroup: a.NetworkBorderGroup,
		InstanceId:         a.InstanceId,
		Tags:               ownTags(a.Tags, ec2TagPair),
	}, nil
}
