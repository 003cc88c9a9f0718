package ecs

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
)

// TestMachineOfAnInstance: a node tells which machine it is by its identity document or by an attribute.
func TestMachineOfAnInstance(t *testing.T) {
	attribute := []types.Attribute{{Name: aws.String("ecs.instance-id"), Value: aws.String("i-2")}}
	for _, c := range []struct {
		name       string
		document   string
		attributes []types.Attribute
		id         string
		ip         string
	}{
		{"a document", `{"instanceId":"i-1","privateIp":"10.0.0.1","region":"r","devpayProductCodes":null}`, nil, "i-1", "10.0.0.1"},
		{"a document before an attribute", `{"instanceId":"i-1","privateIp":"10.0.0.1"}`, attribute, "i-1", "10.0.0.1"},
		{"an attribute", "", attribute, "i-2", ""},
		{"nothing", "", nil, "", ""},
		{"an empty document", "{}", nil, "", ""},
		{"no document", "<html>", nil, "", ""},
	} {
		row, err := reregister(nil, "arn", "cluster", &ecs.RegisterContainerInstanceInput{
			InstanceIdentityDocument: &c.document,
			Attributes:               c.attributes,
		})
		if err != nil || aws.ToString(row.Ec2InstanceId) != c.id || row.PrivateIPAddress != c.ip {
			t.Errorf("%s: got %q at %q, %v", c.name, aws.ToString(row.Ec2InstanceId), row.PrivateIPAddress, err)
		}
	}
}

// TestInstanceTypeStays: a container instance that registers as a machine of another type is refused.
func TestInstanceTypeStays(t *testing.T) {
	old, err := reregister(nil, "arn", "cluster", registrationAs("p3.16xlarge"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reregister(old, "arn", "cluster", registrationAs("p3.16xlarge")); err != nil {
		t.Errorf("of the same type: %v", err)
	}
	if _, err := reregister(old, "arn", "cluster", registrationAs("c5.large")); err == nil || !strings.Contains(err.Error(), "type changes") {
		t.Errorf("of another type: %v", err)
	}
}

func registrationAs(instanceType string) *ecs.RegisterContainerInstanceInput {
	return &ecs.RegisterContainerInstanceInput{Attributes: []types.Attribute{{Name: aws.String(state.InstanceTypeAttribute), Value: &instanceType}}}
}

// TestReregistration: a machine that got no answer registers again, and stays the same container instance. If it was connected
// but registers without its ARN, it becomes a new one.
func TestReregistration(t *testing.T) {
	s, store := newTestService(t)
	register := func(machine string) string {
		t.Helper()
		out, err := s.RegisterContainerInstance(t.Context(), &ecs.RegisterContainerInstanceInput{
			InstanceIdentityDocument: aws.String(`{"instanceId":"` + machine + `"}`),
			TotalResources: []types.Resource{
				{Name: aws.String("CPU"), IntegerValue: 1024},
				{Name: aws.String("MEMORY"), IntegerValue: 1024},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return *out.ContainerInstance.ContainerInstanceArn
	}
	first := register("i-1")
	if again := register("i-1"); again != first {
		t.Errorf("the machine is registered as %s and as %s", first, again)
	}
	if other := register("i-2"); other == first {
		t.Errorf("two machines are registered as %s", first)
	}
	for _, change := range []func(*state.ContainerInstance){
		func(c *state.ContainerInstance) { c.AgentConnected = true },
		func(c *state.ContainerInstance) {
			c.AgentConnected = false
			c.DisconnectedAt = aws.Time(time.Now())
		},
	} {
		err := store.Update(t.Context(), func(tx *state.Tx) error {
			c := *tx.ContainerInstances.Get(first)
			change(&c)
			tx.ContainerInstances.Put(&c)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if again := register("i-1"); again == first {
			t.Errorf("%s was connected, and is registered anew without its ARN", first)
		}
	}
}

// TestDiscoverPollEndpoint: a node is told the address at which it has reached the control plane, unless the operator says otherwise.
func TestDiscoverPollEndpoint(t *testing.T) {
	for _, c := range []struct{ advertise, reached, want string }{
		{"", "http://10.0.0.1:4566", "http://10.0.0.1:4566/acs"},
		{"", "https://pintle.example.com", "https://pintle.example.com/acs"},
		{"https://pintle.example.com", "http://10.0.0.1:4566", "https://pintle.example.com/acs"},
	} {
		s := New(nil, nil, Options{Account: accounttest.New(time.Now), Advertise: c.advertise})
		out, err := s.DiscoverPollEndpoint(call.With(t.Context(), call.Call{Endpoint: c.reached}), nil)
		if err != nil || *out.Endpoint != c.want {
			t.Errorf("%+v: %s, %v", c, *out.Endpoint, err)
		}
	}
}

// registerNode registers a connected x86-64 node with Linux and further attributes, whose architecture its identity document tells, as on EC2.
func registerNode(t *testing.T, s *Service, more ...types.Attribute) (arn string) {
	t.Helper()
	out, err := s.RegisterContainerInstance(t.Context(), &ecs.RegisterContainerInstanceInput{
		InstanceIdentityDocument: aws.String(`{"instanceId":"i-node","architecture":"x86_64"}`),
		Attributes:               append(more, types.Attribute{Name: aws.String("ecs.os-type"), Value: aws.String("linux")}),
		TotalResources: []types.Resource{
			{Name: aws.String("CPU"), IntegerValue: 1024},
			{Name: aws.String("MEMORY"), IntegerValue: 1024},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	arn = *out.ContainerInstance.ContainerInstanceArn
	err = s.store.Update(t.Context(), func(tx *state.Tx) error {
		tx.ContainerInstances.Put(tx.ContainerInstances.Get(arn).Connected(nil))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return arn
}

// TestWarmRegistration: the agent of an instance in a warm pool registers, and gets no tasks until the instance is in service.
func TestWarmRegistration(t *testing.T) {
	s, store := newTestService(t)
	for in, want := range map[autoscaling.LifecycleState]string{
		autoscaling.LifecycleStateWarmedPending: "DRAINING", autoscaling.LifecycleStateWarmedRunning: "DRAINING", autoscaling.LifecycleStatePending: "ACTIVE",
	} {
		statetest.Update(t, store, func(tx *state.Tx) {
			tx.Instances.Put(&state.Instance{
				Instance: ec2types.Instance{InstanceId: aws.String("i-node"), State: &ec2types.InstanceState{Name: ec2types.InstanceStateNameRunning}},
				Member:   &state.Member{Group: "g", LifecycleState: in},
			})
		})
		arn := registerNode(t, s)
		if got := *store.View().ContainerInstances.Get(arn).Status; got != want {
			t.Errorf("an instance that is %s registers %s", in, got)
		}
	}
}

// TestAttributesOfTheNetwork: a container instance has its machine's zone, subnet and VPC, as EC2 tells them: those that it was launched in, or
// the default ones of its zone. What its agent says comes first, and a machine that is none of EC2's has none.
func TestAttributesOfTheNetwork(t *testing.T) {
	s, store := newTestService(t)
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		for _, subnet := range []ec2types.Subnet{
			{SubnetId: new("subnet-a"), VpcId: new("vpc-0"), AvailabilityZone: new("us-east-1a"), DefaultForAz: new(true)},
			{SubnetId: new("subnet-b"), VpcId: new("vpc-0"), AvailabilityZone: new("us-east-1b"), DefaultForAz: new(true)},
		} {
			tx.Subnets.Put(&state.Subnet{Subnet: subnet})
		}
		tx.Instances.Put(&state.Instance{Instance: ec2types.Instance{
			InstanceId: new("i-launched"),
			State:      &ec2types.InstanceState{Name: ec2types.InstanceStateNameRunning},
			Placement:  &ec2types.Placement{AvailabilityZone: new("us-east-1c")},
			SubnetId:   new("subnet-own"),
			VpcId:      new("vpc-own"),
		}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, document, zone, vpc string
		want                      string
	}{
		{"launched by Pintle", `{"instanceId":"i-launched"}`, "", "", "us-east-1c subnet-own vpc-own"},
		{"another machine", `{"instanceId":"i-1"}`, "us-east-1b", "", "us-east-1b subnet-b vpc-0"},
		{"one that tells no zone", `{"instanceId":"i-2"}`, "", "", "us-east-1a subnet-a vpc-0"},
		{"one in a zone without a subnet", `{"instanceId":"i-3"}`, "rack-7", "", "rack-7 - -"},
		{"one that knows better", `{"instanceId":"i-4"}`, "us-east-1b", "vpc-9", "us-east-1b subnet-b vpc-9"},
		{"none of EC2's", "", "", "", "- - -"},
	} {
		in := &ecs.RegisterContainerInstanceInput{
			InstanceIdentityDocument: &c.document,
			TotalResources: []types.Resource{
				{Name: aws.String("CPU"), IntegerValue: 1024},
				{Name: aws.String("MEMORY"), IntegerValue: 1024},
			},
		}
		for name, value := range map[string]string{"ecs.availability-zone": c.zone, "ecs.vpc-id": c.vpc} {
			if value != "" {
				in.Attributes = append(in.Attributes, types.Attribute{Name: &name, Value: &value})
			}
		}
		out, err := s.RegisterContainerInstance(t.Context(), in)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		value := func(name string) string {
			return cmp.Or(aws.ToString(scheduler.AttributeValue(out.ContainerInstance.Attributes, name)), "-")
		}
		if got := value("ecs.availability-zone") + " " + value("ecs.subnet-id") + " " + value("ecs.vpc-id"); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}
