package state

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Who is a member of a security group: tasks in network mode awsvpc, instances, and interfaces that somebody made.

// MaxTaskGroups is how many security groups a task can be in: API_AwsVpcConfiguration.
const MaxTaskGroups = 5

// tasksByGroup finds the tasks in a security group that aren't STOPPED. A row has one value in an index, so there is an index for a task's
// first group, one for its second, and so on.
var tasksByGroup = func() (all []Index[*Task]) {
	for n := range MaxTaskGroups {
		all = append(all, Index[*Task]{Name: fmt.Sprintf("group_%d", n), Value: func(t *Task) string {
			if n >= len(t.SecurityGroups) || aws.ToString(t.LastStatus) == "STOPPED" {
				return ""
			}
			return t.SecurityGroups[n]
		}})
	}
	return all
}()

// tasksBySubnet finds the tasks with an interface in a subnet that aren't STOPPED.
var tasksBySubnet = Index[*Task]{Name: "subnet", Value: func(t *Task) string {
	if aws.ToString(t.LastStatus) == "STOPPED" {
		return ""
	}
	return t.SubnetID()
}}

// TasksByInterface finds the task with an interface of EC2's, unless it is STOPPED.
var TasksByInterface = Index[*Task]{Name: "interface", Value: func(t *Task) string {
	if aws.ToString(t.LastStatus) == "STOPPED" {
		return ""
	}
	return t.InterfaceID()
}}

// PrivateIPv4 returns the address of the task's own interface, or "".
func (t *Task) PrivateIPv4() string { return t.interfaceDetail("privateIPv4Address") }

// InterfaceID returns EC2's id of the task's own interface, or "" while it has no address.
func (t *Task) InterfaceID() string { return t.interfaceDetail("networkInterfaceId") }

// MACAddress returns that of the task's own interface, or "" if its node has told none.
func (t *Task) MACAddress() string { return t.interfaceDetail("macAddress") }

// SubnetID returns the subnet of the task's own interface, or "".
func (t *Task) SubnetID() string { return t.interfaceDetail("subnetId") }

func (t *Task) interfaceDetail(name string) string {
	for _, a := range t.Attachments {
		for _, d := range a.Details {
			if aws.ToString(d.Name) == name {
				return aws.ToString(d.Value)
			}
		}
	}
	return ""
}

// TasksIn returns the tasks in a security group that aren't STOPPED.
func (v *View) TasksIn(group string) (out []*Task) {
	for _, index := range tasksByGroup {
		out = slices.AppendSeq(out, v.Tasks.By(index, group))
	}
	return out
}

// GroupMembers returns the addresses of a security group's members, as other machines and tasks see them.
func (v *View) GroupMembers(group string) []netip.Addr {
	var all addressList
	for _, t := range v.TasksIn(group) {
		all.add(t.PrivateIPv4())
	}
	in := func(g types.GroupIdentifier) bool { return aws.ToString(g.GroupId) == group }
	for i := range v.Instances.By(InstancesByState, string(types.InstanceStateNameRunning)) {
		if slices.ContainsFunc(i.SecurityGroups, in) {
			v.addInstance(&all, i)
		}
	}
	for i := range v.NetworkInterfaces.All() {
		if slices.ContainsFunc(i.Groups, in) {
			all.add(aws.ToString(i.PrivateIpAddress))
		}
	}
	if vpc := v.DefaultVPC(); vpc != nil && v.isDefaultGroup(group, *vpc.VpcId) {
		v.addGuests(&all, func(*Subnet) bool { return true })
	}
	return all
}

func (v *View) isDefaultGroup(group, vpc string) bool {
	g := v.DefaultSecurityGroup(vpc)
	return g != nil && *g.GroupId == group
}

// MembersWithin returns the addresses that the tasks and instances of subnets inside a block really have. A VPC's addresses are data, and its
// tasks have those that their nodes can give. A rule that names the block of a VPC means these.
func (v *View) MembersWithin(block netip.Prefix) []netip.Addr {
	var all addressList
	for s := range v.Subnets.All() {
		subnet, err := netip.ParsePrefix(aws.ToString(s.CidrBlock))
		if err != nil || !block.Contains(subnet.Addr()) || block.Bits() > subnet.Bits() {
			continue
		}
		for t := range v.Tasks.By(tasksBySubnet, *s.SubnetId) {
			all.add(t.PrivateIPv4())
		}
	}
	for i := range v.Instances.By(InstancesByState, string(types.InstanceStateNameRunning)) {
		if a, err := netip.ParseAddr(aws.ToString(i.PrivateIpAddress)); err == nil && block.Contains(a) {
			v.addInstance(&all, i)
		}
	}
	v.addGuests(&all, func(s *Subnet) bool {
		subnet, err := netip.ParsePrefix(aws.ToString(s.CidrBlock))
		return err == nil && block.Contains(subnet.Addr()) && block.Bits() <= subnet.Bits()
	})
	return all
}

type addressList []netip.Addr

// add adds an address, unless it's only seen on its own machine.
func (all *addressList) add(text string) {
	if a, err := netip.ParseAddr(text); err == nil && !a.IsLoopback() {
		*all = append(*all, a.Unmap())
	}
}

// addInstance adds the addresses of an instance: the one in its subnet, the one that its machine has, and those of its containers in network
// mode bridge, which others on the machine see in its place.
func (v *View) addInstance(all *addressList, i *Instance) {
	all.add(aws.ToString(i.PrivateIpAddress))
	for m := range v.ContainerInstances.By(InstancesByMachine, *i.InstanceId) {
		v.addMachine(all, m)
	}
}

func (v *View) addMachine(all *addressList, m *ContainerInstance) {
	all.add(m.PrivateIPAddress)
	for t := range v.Tasks.By(TasksByInstance, *m.ContainerInstanceArn) {
		for _, a := range t.BridgeAddresses {
			all.add(a)
		}
	}
}

// addGuests adds the addresses of machines that Pintle didn't launch, those in some default subnets. Where EC2's API shows such a machine, in the
// default subnet of its zone and the default group, it's a member; what comes for its own ports no rule filters.
func (v *View) addGuests(all *addressList, in func(*Subnet) bool) {
	zones := map[string]bool{}
	for s := range v.Subnets.All() {
		if aws.ToBool(s.DefaultForAz) && in(s) {
			zones[aws.ToString(s.AvailabilityZone)] = true
		}
	}
	if len(zones) == 0 {
		return
	}
	for m := range v.ContainerInstances.All() {
		if m.Ec2InstanceId != nil && v.Instances.Get(*m.Ec2InstanceId) == nil && zones[m.zone()] && aws.ToString(m.Status) != "INACTIVE" {
			v.addMachine(all, m)
		}
	}
}

// zone returns the zone that the instance has registered with, or "".
func (c *ContainerInstance) zone() string {
	for _, a := range c.Attributes {
		if aws.ToString(a.Name) == "ecs.availability-zone" {
			return aws.ToString(a.Value)
		}
	}
	return ""
}

// InstanceGroups returns the security groups of a container instance's machine, if Pintle launched it.
func (v *View) InstanceGroups(containerInstanceArn string) (out []string) {
	m := v.ContainerInstances.Get(containerInstanceArn)
	if m == nil || m.Ec2InstanceId == nil {
		return nil
	}
	i := v.Instances.Get(*m.Ec2InstanceId)
	if i == nil {
		return nil
	}
	for _, g := range i.SecurityGroups {
		out = append(out, aws.ToString(g.GroupId))
	}
	return out
}

// defaultGroups returns the groups of an interface in a subnet if nobody names any: its VPC's default one.
func (v *View) defaultGroups(subnet string) []string {
	s := v.Subnets.Get(subnet)
	if s == nil {
		return nil
	}
	g := v.DefaultSecurityGroup(aws.ToString(s.VpcId))
	if g == nil {
		return nil
	}
	return []string{*g.GroupId}
}

// InterfaceGroups returns the security groups of an interface in a subnet, each once. If none are given it's the VPC's default one, and none
// if nobody knows the subnet.
func (v *View) InterfaceGroups(subnet string, given []string) []string {
	if len(given) == 0 {
		return v.defaultGroups(subnet)
	}
	var out []string
	for _, g := range given {
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out
}
