package ecs

import (
	"strings"
	"testing"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// TestNetworksThatAreNotThere: subnets and groups must exist, in EC2's words, unless nobody has made a network.
func TestNetworksThatAreNotThere(t *testing.T) {
	s, ctx := newECS(t)
	_, err := s.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family:               new("net"),
		NetworkMode:          types.NetworkModeAwsvpc,
		ContainerDefinitions: []types.ContainerDefinition{{Name: new("main"), Image: new("i"), Memory: new(int32(4))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	network := func(subnets, groups string) *types.NetworkConfiguration {
		return &types.NetworkConfiguration{AwsvpcConfiguration: &types.AwsVpcConfiguration{
			Subnets: strings.Fields(subnets), SecurityGroups: strings.Fields(groups),
		}}
	}
	put := func(vpc, subnet, group string, isDefault bool) {
		err := s.store.Update(ctx, func(tx *state.Tx) error {
			tx.VPCs.Put(&state.VPC{Vpc: ec2types.Vpc{VpcId: &vpc, IsDefault: &isDefault}})
			tx.Subnets.Put(&state.Subnet{Subnet: ec2types.Subnet{SubnetId: &subnet, VpcId: &vpc, DefaultForAz: &isDefault}})
			tx.SecurityGroups.Put(&state.SecurityGroup{SecurityGroup: ec2types.SecurityGroup{GroupId: &group, VpcId: &vpc, GroupName: new("default")}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	public := network("subnet-9", "sg-9")
	public.AwsvpcConfiguration.AssignPublicIp = types.AssignPublicIpEnabled
	_, run := s.RunTask(ctx, &ecs.RunTaskInput{TaskDefinition: new("net"), LaunchType: types.LaunchTypeEc2, NetworkConfiguration: public})
	if run == nil || run.Error() != "InvalidParameterException: Assign public IP is not supported for this launch type." {
		t.Errorf("a public address: got %v", run)
	}
	put("vpc-0", "subnet-0", "sg-0", true)
	start := func(n *types.NetworkConfiguration) error { // nowhere, which is found out after the network
		_, err := s.StartTask(ctx, &ecs.StartTaskInput{TaskDefinition: new("net"), ContainerInstances: []string{"none"}, NetworkConfiguration: n})
		return err
	}
	if err := start(network("subnet-9", "sg-9")); err != nil {
		t.Errorf("without a network of one's own: %v", err)
	}
	put("vpc-1", "subnet-1", "sg-1", false)
	for given, want := range map[[2]string]string{
		{"subnet-1", "sg-1"}: "",
		{"subnet-0", ""}:     "",
		{"subnet-1 subnet-9", "sg-1"}: "InvalidParameterException: Error retrieving subnet information for [subnet-1, subnet-9]: " +
			"The subnet ID 'subnet-9' does not exist (ErrorCode: InvalidSubnetID.NotFound)",
		{"subnet-1", "sg-9"}: "InvalidParameterException: Error retrieving security group information for [sg-9]: " +
			"The security group 'sg-9' does not exist (ErrorCode: InvalidGroup.NotFound)",
	} {
		n := network(given[0], given[1])
		_, made := s.CreateService(ctx, &ecs.CreateServiceInput{
			ServiceName: new(strings.ReplaceAll(given[0]+given[1], " ", "-")), TaskDefinition: new("net"), NetworkConfiguration: n, DesiredCount: new(int32(0)),
		})
		for call, err := range map[string]error{"StartTask": start(n), "CreateService": made} {
			if got := text(err); got != want {
				t.Errorf("%s with %v: %q, want %q", call, given, got, want)
			}
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
