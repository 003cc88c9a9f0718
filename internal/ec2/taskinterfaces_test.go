package ec2

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestInterfacesOfTasks: the interface that DescribeTasks names is found in EC2 until the task stops, and only ECS deletes it.
func TestInterfacesOfTasks(t *testing.T) {
	s, w := networked(t)
	const id, address, hardware, arn = "eni-0123456789abcdef0", "172.31.0.9", "0a:58:ac:1f:00:09", "arn:aws:ecs:us-east-1:000000000000:task/default/one"
	detail := func(name, value string) ecstypes.KeyValuePair {
		return ecstypes.KeyValuePair{Name: &name, Value: &value}
	}
	task := func(launchType ecstypes.LaunchType) *state.Task {
		machine := node(1)
		statetest.Update(t, s.store, func(tx *state.Tx) { tx.ContainerInstances.Put(machine) })
		return &state.Task{Task: ecstypes.Task{
			TaskArn: aws.String(arn), ClusterArn: aws.String("c"), LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
			LaunchType: launchType, ContainerInstanceArn: machine.ContainerInstanceArn, CreatedAt: aws.Time(time.Unix(1e9, 0)),
			Attachments: []ecstypes.Attachment{{
				Id: aws.String("12345678-1234-1234-1234-123456789012"), Type: aws.String("ElasticNetworkInterface"), Status: aws.String("ATTACHED"),
				Details: []ecstypes.KeyValuePair{detail("subnetId", w.subnets[0]), detail("networkInterfaceId", id), detail("privateIPv4Address", address),
					detail("macAddress", hardware)},
			}},
		}}
	}
	find := func() ([]types.NetworkInterface, error) {
		out, err := s.DescribeNetworkInterfaces(t.Context(), &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}})
		if err != nil {
			return nil, err
		}
		return out.NetworkInterfaces, nil
	}
	for launchType, instance := range map[ecstypes.LaunchType]*string{ecstypes.LaunchTypeEc2: node(1).Ec2InstanceId, ecstypes.LaunchTypeFargate: nil} {
		row := task(launchType)
		statetest.Update(t, s.store, func(tx *state.Tx) { tx.Tasks.Put(row) })
		all, err := find()
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %+v, %v", launchType, all, err)
		}
		i := all[0]
		if *i.PrivateIpAddress != address || *i.MacAddress != hardware || *i.SubnetId != w.subnets[0] || aws.ToString(i.VpcId) != w.vpc || *i.Groups[0].GroupName != "default" ||
			*i.Description != "arn:aws:ecs:us-east-1:000000000000:attachment/12345678-1234-1234-1234-123456789012" ||
			*i.PrivateDnsName != "ip-172-31-0-9.ec2.internal" || aws.ToString(i.Attachment.InstanceId) != aws.ToString(instance) {
			t.Errorf("%s: %+v", launchType, i)
		}
	}
	delete := func() string {
		_, err := s.DeleteNetworkInterface(t.Context(), &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String(id)})
		return codeOf(err)
	}
	if code := delete(); code != "InvalidParameterValue" {
		t.Errorf("deleted while the task runs: %s", code)
	}
	w.stopTask(arn)
	if all, err := find(); codeOf(err) != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("after the task's end there is %+v, %v", all, err)
	}
	if code := delete(); code != "InvalidNetworkInterfaceID.NotFound" {
		t.Errorf("deleted after the task's end: %s", code)
	}
}
