package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/pattern"
)

var vpnGatewayIDs = pattern.New(`^vgw-[0-9a-f]{1,17}$`, 21)

// vpnGatewayFields are the filters of API_DescribeVpnGateways. There's nothing that they could look at.
var vpnGatewayFields = func() fields[types.VpnGateway] {
	all := fields[types.VpnGateway]{}
	for _, name := range []string{
		"amazon-side-asn", "attachment.state", "attachment.vpc-id", "availability-zone", "state", "type", "vpn-gateway-id",
	} {
		all[name] = func(*types.VpnGateway) []string { return nil }
	}
	return all
}()

// DescribeVpnGateways describes none: networks are records, which no VPN leads to. The CDK asks when it looks up a VPC.
func (s *Service) DescribeVpnGateways(_ context.Context, in *ec2.DescribeVpnGatewaysInput) (*ec2.DescribeVpnGatewaysOutput, error) {
	if _, err := matcher(in.Filters, vpnGatewayFields, func(*types.VpnGateway) []types.Tag { return nil }); err != nil {
		return nil, err
	}
	for _, id := range in.VpnGatewayIds {
		if !vpnGatewayIDs.MatchString(id) {
			return nil, refuse("InvalidVpnGatewayID.Malformed", "Invalid id: %q", id)
		}
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	if len(in.VpnGatewayIds) > 0 {
		return nil, refuse("InvalidVpnGatewayID.NotFound", "The vpnGateway ID '%s' does not exist", in.VpnGatewayIds[0])
	}
	return &ec2.DescribeVpnGatewaysOutput{VpnGateways: []types.VpnGateway{}}, nil
}
