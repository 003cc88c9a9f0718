package nodelink

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// groupRow makes a security group.
func groupRow(id string) *state.SecurityGroup {
	return &state.SecurityGroup{SecurityGroup: ec2.SecurityGroup{GroupId: &id, VpcId: aws.String("vpc-1"), GroupName: &id}}
}

// ruleRow makes a rule of a group: TCP from one port on, from another group or a block.
func ruleRow(id, group string, port int32, from string) *state.SecurityGroupRule {
	r := ec2.SecurityGroupRule{
		SecurityGroupRuleId: &id, GroupId: &group, IsEgress: aws.Bool(false),
		IpProtocol: aws.String("tcp"), FromPort: &port, ToPort: &port,
	}
	if from[0] == 's' {
		r.ReferencedGroupInfo = &ec2.ReferencedSecurityGroup{GroupId: &from}
	} else {
		r.CidrIpv4 = &from
	}
	return &state.SecurityGroupRule{SecurityGroupRule: r}
}

// inGroup makes a task with an address of its own a member of a group.
func inGroup(t *state.Task, group, address string) *state.Task {
	t.SecurityGroups = []string{group}
	t.Attachments = []types.Attachment{{Details: []types.KeyValuePair{{Name: aws.String("subnetId"), Value: aws.String("subnet-1")}}}}
	if address != "" {
		detail := types.KeyValuePair{Name: aws.String("privateIPv4Address"), Value: &address}
		t.Attachments[0].Details = append(t.Attachments[0].Details, detail)
	}
	return t
}

// enforcing is the row of a node on which rules hold.
func enforcing() *state.ContainerInstance {
	row := instanceRow()
	row.Attributes = []types.Attribute{{Name: aws.String(enforcement), Value: aws.String(enforced)}}
	return row
}

func elsewhere(t *state.Task) *state.Task {
	t.ContainerInstanceArn = aws.String(instanceArn + "f")
	return t
}

func wantRules(t *testing.T, what string, rules *acs.NetworkRules, want string) {
	t.Helper()
	b, err := json.Marshal(rules)
	if err != nil || string(b) != want {
		t.Errorf("%s: %v\n got %s\nwant %s", what, err, b, want)
	}
}

// TestSecurityGroups follows the rules of a task while others join its group, rules come and go, and its node comes back.
func TestSecurityGroups(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.update(func(tx *state.Tx) {
		tx.ContainerInstances.Put(enforcing())
		tx.SecurityGroups.Put(groupRow("sg-a"))
		tx.SecurityGroups.Put(groupRow("sg-b"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-1", "sg-a", 80, "sg-b"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-2", "sg-a", 81, "192.0.2.0/24"))
		tx.Tasks.Put(inGroup(taskRow("none", "RUNNING", "PENDING"), "sg-unknown", ""))
		tx.Tasks.Put(inGroup(taskRow("one", "RUNNING", "PENDING"), "sg-a", ""))
	})
	a, _ := w.connectACS()
	p := next[*acs.PayloadMessage](a)
	for _, task := range p.Tasks {
		if task.Arn == taskArn("none") {
			wantRules(t, "a group that nobody created", task.NetworkRules, `null`)
			continue
		}
		wantRules(t, "with the payload", task.NetworkRules, `{"in":[{"protocol":6,"from":81,"to":81,"peers":["192.0.2.0/24"]}],"out":[]}`)
	}
	a.ack(p)
	w.put(elsewhere(inGroup(taskRow("two", "RUNNING", "RUNNING"), "sg-b", "10.213.0.9")))
	m := next[*acs.PintleTaskRules](a)
	const both = `{"in":[{"protocol":6,"from":80,"to":80,"peers":["10.213.0.9/32"]},{"protocol":6,"from":81,"to":81,"peers":["192.0.2.0/24"]}],"out":[]}`
	wantRules(t, "with a member of the other group, "+m.TaskArn, m.Rules, both)
	w.update(func(tx *state.Tx) { tx.SecurityGroupRules.Delete("sgr-2") })
	wantRules(t, "a rule revoked", next[*acs.PintleTaskRules](a).Rules, `{"in":[{"protocol":6,"from":80,"to":80,"peers":["10.213.0.9/32"]}],"out":[]}`)
	w.put(elsewhere(inGroup(taskRow("two", "STOPPED", "STOPPED"), "sg-b", "10.213.0.9")))
	wantRules(t, "the member gone", next[*acs.PintleTaskRules](a).Rules, `{"in":[],"out":[]}`)
	w.put(inGroup(taskRow("one", "RUNNING", "RUNNING"), "sg-a", "10.213.0.2"))
	a.conn.CloseNow() //nolint:errcheck // cut off
	w.untilConnected(false)
	w.update(func(tx *state.Tx) { tx.SecurityGroupRules.Put(ruleRow("sgr-3", "sg-a", 82, "0.0.0.0/0")) })
	back, _ := w.connectACS()
	for {
		if b, ok := nextOf[*acs.PintleTaskRules](back); ok && b.TaskArn == taskArn("one") {
			wantRules(t, "after a reconnect", b.Rules, `{"in":[{"protocol":6,"from":82,"to":82,"peers":["0.0.0.0/0"]}],"out":[]}`)
			break
		}
	}
}

// nextOf returns the next message, if it has type M.
func nextOf[M acs.Message](a *agent) (m M, ok bool) {
	a.t.Helper()
	b, err := a.read()
	if err != nil {
		a.t.Fatal(err)
	}
	any, err := acs.Decode(b)
	if err != nil {
		a.t.Fatal(err)
	}
	m, ok = any.(M)
	return m, ok
}

// TestGroupsOfInstances: in network mode bridge a task has the groups of its instance, whose members have several addresses, and the block of
// a subnet means the addresses that its members really have.
func TestGroupsOfInstances(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.update(func(tx *state.Tx) {
		tx.SecurityGroups.Put(groupRow("sg-a"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-1", "sg-a", 80, "sg-a"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-2", "sg-a", 81, "172.31.0.0/16"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-3", "sg-a", 82, "172.31.0.128/25"))
		machine := enforcing()
		machine.Ec2InstanceId = aws.String("i-1")
		machine.PrivateIPAddress = "192.0.2.7"
		tx.ContainerInstances.Put(machine)
		tx.Instances.Put(&state.Instance{Instance: ec2.Instance{
			InstanceId: aws.String("i-1"), PrivateIpAddress: aws.String("172.31.0.4"),
			State:          &ec2.InstanceState{Name: ec2.InstanceStateNameRunning},
			SecurityGroups: []ec2.GroupIdentifier{{GroupId: aws.String("sg-a")}},
		}})
		tx.Subnets.Put(&state.Subnet{Subnet: ec2.Subnet{SubnetId: aws.String("subnet-1"), CidrBlock: aws.String("172.31.0.0/20")}})
		tx.Tasks.Put(taskRow("one", "RUNNING", "PENDING"))
		tx.Tasks.Put(elsewhere(inGroup(taskRow("two", "RUNNING", "RUNNING"), "sg-x", "10.213.0.9")))
	})
	a, _ := w.connectACS()
	next[*acs.PintleInstance](a)
	p := next[*acs.PayloadMessage](a)
	const before = `{"in":[{"protocol":6,"from":80,"to":80,"peers":["172.31.0.4/32","192.0.2.7/32"]},` +
		`{"protocol":6,"from":81,"to":81,"peers":["10.213.0.9/32","172.31.0.0/16","192.0.2.7/32"]},` +
		`{"protocol":6,"from":82,"to":82,"peers":["172.31.0.128/25"]}],"out":[]}`
	wantRules(t, "with the payload", p.Tasks[0].NetworkRules, before)
	a.ack(p)
	a.send(&acs.PintleTaskNetwork{TaskArn: taskArn("one"), Bridge: []string{"10.213.0.5"}})
	const after = `{"in":[{"protocol":6,"from":80,"to":80,"peers":["10.213.0.5/32","172.31.0.4/32","192.0.2.7/32"]},` +
		`{"protocol":6,"from":81,"to":81,"peers":["10.213.0.5/32","10.213.0.9/32","172.31.0.0/16","192.0.2.7/32"]},` +
		`{"protocol":6,"from":82,"to":82,"peers":["172.31.0.128/25"]}],"out":[]}`
	wantRules(t, "with a container's address", next[*acs.PintleTaskRules](a).Rules, after)
}

// TestMachinesOfOthers: a machine that Pintle didn't launch is a member of the default group, which EC2's API shows it with, as its containers in
// network mode bridge are. What's for its own ports isn't filtered.
func TestMachinesOfOthers(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.update(func(tx *state.Tx) {
		tx.VPCs.Put(&state.VPC{Vpc: ec2.Vpc{VpcId: aws.String("vpc-1"), IsDefault: aws.Bool(true)}})
		group := groupRow("sg-default")
		group.GroupName = aws.String("default")
		tx.SecurityGroups.Put(group)
		tx.SecurityGroups.Put(groupRow("sg-other"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-1", "sg-default", 80, "sg-default"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-2", "sg-default", 81, "sg-other"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-3", "sg-default", 82, "172.31.0.0/16"))
		tx.Subnets.Put(&state.Subnet{Subnet: ec2.Subnet{
			SubnetId: aws.String("subnet-1"), VpcId: aws.String("vpc-1"), CidrBlock: aws.String("172.31.0.0/20"),
			AvailabilityZone: aws.String("us-east-1a"), DefaultForAz: aws.Bool(true),
		}})
		machine := enforcing()
		machine.Ec2InstanceId = aws.String("i-1")
		machine.PrivateIPAddress = "192.0.2.7"
		machine.Attributes = append(machine.Attributes, types.Attribute{Name: aws.String("ecs.availability-zone"), Value: aws.String("us-east-1a")})
		tx.ContainerInstances.Put(machine)
		tx.Tasks.Put(inGroup(taskRow("one", "RUNNING", "PENDING"), "sg-default", ""))
		tx.Tasks.Put(taskRow("two", "RUNNING", "PENDING"))
	})
	a, _ := w.connectACS()
	p := next[*acs.PayloadMessage](a)
	const before = `{"in":[{"protocol":6,"from":80,"to":80,"peers":["192.0.2.7/32"]},` +
		`{"protocol":6,"from":82,"to":82,"peers":["172.31.0.0/16","192.0.2.7/32"]}],"out":[]}`
	for _, task := range p.Tasks {
		if task.Arn == taskArn("one") {
			wantRules(t, "with the payload", task.NetworkRules, before)
		} else {
			wantRules(t, "in network mode bridge", task.NetworkRules, `null`)
		}
	}
	a.ack(p)
	a.send(&acs.PintleTaskNetwork{TaskArn: taskArn("two"), Bridge: []string{"10.213.0.5"}})
	const after = `{"in":[{"protocol":6,"from":80,"to":80,"peers":["10.213.0.5/32","192.0.2.7/32"]},` +
		`{"protocol":6,"from":82,"to":82,"peers":["10.213.0.5/32","172.31.0.0/16","192.0.2.7/32"]}],"out":[]}`
	wantRules(t, "with a container's address", next[*acs.PintleTaskRules](a).Rules, after)
}

// TestGroupsIgnored: a node that enforces no rules is told only that a task has some, and of nothing that changes.
func TestGroupsIgnored(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.update(func(tx *state.Tx) {
		tx.SecurityGroups.Put(groupRow("sg-a"))
		tx.SecurityGroupRules.Put(ruleRow("sgr-1", "sg-a", 80, "192.0.2.0/24"))
		tx.Tasks.Put(inGroup(taskRow("one", "RUNNING", "PENDING"), "sg-a", ""))
	})
	a, _ := w.connectACS()
	p := next[*acs.PayloadMessage](a)
	wantRules(t, "with the payload", p.Tasks[0].NetworkRules, `{"in":null,"out":null}`)
	a.ack(p)
	w.update(func(tx *state.Tx) { tx.SecurityGroupRules.Delete("sgr-1") })
	w.put(taskRow("two", "RUNNING", "PENDING"))
	if p := next[*acs.PayloadMessage](a); p.Tasks[0].Arn != taskArn("two") { // next fails for any other message
		t.Errorf("the next payload has %s", p.Tasks[0].Arn)
	}
}
