package ec2

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestLookupsOfTheCDK: what the CDK asks to look a VPC and an image up.
func TestLookupsOfTheCDK(t *testing.T) {
	s := service(t, 0)
	filter := func(name, value string) types.Filter { return types.Filter{Name: &name, Values: []string{value}} }
	found, err := s.DescribeVpnGateways(t.Context(), &ec2.DescribeVpnGatewaysInput{Filters: []types.Filter{
		filter("attachment.vpc-id", "vpc-1"), filter("attachment.state", "attached"), filter("state", "available"),
	}})
	if err != nil || len(found.VpnGateways) != 0 {
		t.Errorf("VPN gateways: %+v, %v", found, err)
	}
	for id, want := range map[string]string{"vgw-1": "InvalidVpnGatewayID.NotFound", "vpc-1": "InvalidVpnGatewayID.Malformed"} {
		_, err := s.DescribeVpnGateways(t.Context(), &ec2.DescribeVpnGatewaysInput{VpnGatewayIds: []string{id}})
		if codeOf(err) != want {
			t.Errorf("%s: %v", id, err)
		}
	}
	images, err := s.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{
		filter("name", "amzn2-ami-ecs-gpu-hvm-*"), filter("image-type", "machine"), filter("state", "available"), filter("root-device-type", "ebs"),
	}})
	if err != nil || len(images.Images) == 0 || aws.ToString(images.Images[0].CreationDate) == "" {
		t.Errorf("images: %+v, %v", images, err)
	}
}
