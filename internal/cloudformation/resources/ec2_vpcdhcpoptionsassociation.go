package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/pintle/pintle/internal/wire/call"
)

// dhcpAssociation has the properties of AWS::EC2::VPCDHCPOptionsAssociation. A VPC has one set of options. Its physical ID is OPTIONS|VPC.
type dhcpAssociation struct {
	DhcpOptionsId *string `cfn:"required,create"`
	VpcId         *string `cfn:"required,create"`
}

// noDHCPOptions is what EC2 calls it if a VPC has no options.
const noDHCPOptions = "default"

var _ = add(&kind[*dhcpAssociation]{
	name:       "AWS::EC2::VPCDHCPOptionsAssociation",
	live:       liveDHCPAssociation,
	identifier: []string{"DhcpOptionsId", "VpcId"},
	create: func(ctx context.Context, s Step, a *dhcpAssociation) (string, error) {
		in := &ec2.AssociateDhcpOptionsInput{DhcpOptionsId: a.DhcpOptionsId, VpcId: a.VpcId}
		return *a.DhcpOptionsId + "|" + *a.VpcId, did[ec2.AssociateDhcpOptionsOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, id string, a *dhcpAssociation) error {
		if _, err := liveDHCPAssociation(ctx, s, id, a); err != nil {
			return err // another association has taken this one's place, or the VPC is gone
		}
		in := &ec2.AssociateDhcpOptionsInput{DhcpOptionsId: aws.String(noDHCPOptions), VpcId: a.VpcId}
		return did[ec2.AssociateDhcpOptionsOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, id string, a *dhcpAssociation) (Made, error) {
		_, err := liveDHCPAssociation(ctx, s, id, a)
		return Made{}, err
	},
})

func liveDHCPAssociation(ctx context.Context, s Step, id string, _ *dhcpAssociation) (*dhcpAssociation, error) {
	options, network, _ := strings.Cut(id, "|")
	out, err := call.Do[ec2.DescribeVpcsOutput](ctx, s.Services, &ec2.DescribeVpcsInput{VpcIds: []string{network}})
	if err == nil && aws.ToString(out.Vpcs[0].DhcpOptionsId) != options {
		err = errMissing
	}
	if err != nil {
		return nil, err
	}
	return &dhcpAssociation{DhcpOptionsId: &options, VpcId: &network}, nil
}
