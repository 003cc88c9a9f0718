package ec2

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// DescribeVpcPeeringConnections describes no connections: there are none, and none can be made.
func (s *Service) DescribeVpcPeeringConnections(
	_ context.Context, in *ec2.DescribeVpcPeeringConnectionsInput,
) (*ec2.DescribeVpcPeeringConnectionsOutput, error) {
	for _, id := range in.VpcPeeringConnectionIds {
		return nil, noPeering(id)
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	if _, _, err := listing("DescribeVpcPeeringConnections", 1000).Start(in.MaxResults, in.NextToken); err != nil {
		return nil, err
	}
	return &ec2.DescribeVpcPeeringConnectionsOutput{VpcPeeringConnections: []types.VpcPeeringConnection{}}, nil
}

func noPeering(id string) error {
	return refuse("InvalidVpcPeeringConnectionID.NotFound", "The vpcPeeringConnection ID '%s' does not exist", id)
}
