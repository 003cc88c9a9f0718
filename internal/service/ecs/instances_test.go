package ecs

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestMachineOfAnInstance registers a node that says what machine it is, one way or another.
func TestMachineOfAnInstance(t *testing.T) {
	attribute := []types.Attribute{{Name: aws.String("ecs.instance-id"), Value: aws.String("i-2")}}
	for _, c := range []struct {
		name, document string
		attributes     []types.Attribute
		id, ip         string
	}{
		{"a document", `{"instanceId":"i-1","privateIp":"10.0.0.1","region":"r","devpayProductCodes":null}`, nil, "i-1", "10.0.0.1"},
		{"a document before an attribute", `{"instanceId":"i-1","privateIp":"10.0.0.1"}`, attribute, "i-1", "10.0.0.1"},
		{"an attribute", "", attribute, "i-2", ""},
		{"nothing", "", nil, "", ""},
		{"an empty document", "{}", nil, "", ""},
		{"no document", "<html>", nil, "", ""},
	} {
		row, err := reregister(nil, "arn", "cluster", &ecs.RegisterContainerInstanceInput{InstanceIdentityDocument: &c.document, Attributes: c.attributes})
		if err != nil || aws.ToString(row.Ec2InstanceId) != c.id || row.PrivateIPAddress != c.ip {
			t.Errorf("%s: got %q at %q, %v", c.name, aws.ToString(row.Ec2InstanceId), row.PrivateIPAddress, err)
		}
	}
}
