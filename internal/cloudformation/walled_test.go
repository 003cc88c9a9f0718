package cloudformation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// walled has a network with what goes with it besides machines.
const walled = `
Resources:
  V: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16}}
  B: {Type: AWS::EC2::VPCCidrBlock, Properties: {VpcId: !Ref V, CidrBlock: 10.1.0.0/16}}
  N: {Type: AWS::EC2::Subnet, DependsOn: B, Properties: {VpcId: !Ref V, CidrBlock: 10.1.1.0/24}}
  D:
    Type: AWS::EC2::DHCPOptions
    Properties:
      DomainName: example.com
      DomainNameServers: [10.0.0.2, 10.0.0.3]
      NtpServers: [10.0.0.4]
      NetbiosNameServers: [10.0.0.5]
      NetbiosNodeType: 2
      Tags: [{Key: a, Value: b}]
  DA: {Type: AWS::EC2::VPCDHCPOptionsAssociation, Properties: {VpcId: !Ref V, DhcpOptionsId: !Ref D}}
  A: {Type: AWS::EC2::NetworkAcl, Properties: {VpcId: !Ref V, Tags: [{Key: a, Value: b}]}}
  AI: {Type: AWS::EC2::NetworkAclEntry, Properties: {NetworkAclId: !Ref A, RuleNumber: 100, Protocol: 6, RuleAction: allow, CidrBlock: 10.0.0.0/8, PortRange: {From: 80, To: 81}}}
  AO: {Type: AWS::EC2::NetworkAclEntry, Properties: {NetworkAclId: !Ref A, RuleNumber: 100, Egress: 'true', Protocol: -1, RuleAction: allow, CidrBlock: 0.0.0.0/0}}
  AS: {Type: AWS::EC2::SubnetNetworkAclAssociation, Properties: {SubnetId: !Ref N, NetworkAclId: !Ref A}}
  G: {Type: AWS::EC2::EgressOnlyInternetGateway, Properties: {VpcId: !Ref V, Tags: [{Key: a, Value: b}]}}
  I: {Type: AWS::EC2::NetworkInterface, Properties: {SubnetId: !Ref N}}
  E: {Type: AWS::EC2::EIP}
  F: {Type: AWS::EC2::EIP}
  EA: {Type: AWS::EC2::EIPAssociation, Properties: {AllocationId: !GetAtt E.AllocationId, NetworkInterfaceId: !Ref I}}
`

// aclOf returns the network ACL of a subnet.
func aclOf(v *state.View, subnet string) (id string) {
	for acl := range v.NetworkACLs.All() {
		for _, a := range acl.Associations {
			if *a.SubnetId == subnet {
				id = *acl.NetworkAclId
			}
		}
	}
	return id
}

// TestWalled: what goes with a network is made, changed in place, replaced and deleted.
func TestWalled(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", walled)
	w.expect(types.StackStatusCreateComplete)
	v := w.store.View()
	ids := physicalIDs(v)
	vpc := v.VPCs.Get(ids["V"])
	if *vpc.DhcpOptionsId != ids["D"] || len(vpc.CidrBlockAssociationSet) != 2 || aclOf(v, ids["N"]) != ids["A"] {
		t.Errorf("the VPC is %+v, the subnet's ACL %s", vpc.Vpc, aclOf(v, ids["N"]))
	}
	w.become("s", strings.NewReplacer(
		"PortRange: {From: 80, To: 81}", "PortRange: {From: 80, To: 90}",
		"RuleNumber: 100, Egress", "RuleNumber: 200, Egress",
		"DomainName: example.com", "DomainName: example.org",
		"CidrBlock: 10.1.0.0/16", "CidrBlock: 10.2.0.0/16", "CidrBlock: 10.1.1.0/24", "CidrBlock: 10.2.1.0/24",
		"AllocationId: !GetAtt E.", "AllocationId: !GetAtt F.",
		"Key: a, Value: b}]}}\n  AI", "Key: a, Value: c}]}}\n  AI",
	).Replace(walled))
	w.expect(types.StackStatusUpdateComplete)
	v = w.store.View()
	next := physicalIDs(v)
	replaced := []string{"AO", "AS", "B", "D", "DA", "EA", "I", "N"}
	for name, id := range next {
		if (id != ids[name]) != slices.Contains(replaced, name) {
			t.Errorf("%s was %s and is %s", name, ids[name], id)
		}
	}
	acl := v.NetworkACLs.Get(ids["A"])
	var rules []string
	for _, e := range acl.Entries {
		rules = append(rules, fmt.Sprint(*e.RuleNumber, " ", *e.Egress))
	}
	is := func(tag ec2types.Tag) bool { return *tag.Key == "a" && *tag.Value == "c" }
	if got := strings.Join(rules, ", "); got != "200 true, 32767 true, 100 false, 32767 false" || !slices.ContainsFunc(acl.Tags, is) {
		t.Errorf("the ACL has the rules %s and the tags %v", got, acl.Tags)
	}
	vpc = v.VPCs.Get(ids["V"])
	if *vpc.DhcpOptionsId != next["D"] || v.DHCPOptions.Get(ids["D"]) != nil || len(vpc.CidrBlockAssociationSet) != 2 {
		t.Errorf("the VPC is %+v", vpc.Vpc)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	v = w.store.View()
	for what, n := range map[string]int{
		"VPCs": v.VPCs.Len(), "ACLs": v.NetworkACLs.Len(), "addresses": v.Addresses.Len(), "gateways": v.EgressOnlyInternetGateways.Len(),
	} {
		if n != 0 {
			t.Errorf("%d %s are left", n, what)
		}
	}
	if v.DHCPOptions.Get(next["D"]) != nil {
		t.Error("the DHCP options are left")
	}
}

// TestWalledKilled: a kill after any write makes nothing twice.
func TestWalledKilled(t *testing.T) {
	ends := func(w *world) string {
		v := w.store.View()
		return fmt.Sprint(find(v, w.onlyStack()).StackStatus, v.VPCs.Len(), v.NetworkACLs.Len(), v.DHCPOptions.Len(), v.Addresses.Len(),
			v.EgressOnlyInternetGateways.Len(), v.NetworkInterfaces.Len(), len(v.VPCs.Get(physicalIDs(v)["V"]).CidrBlockAssociationSet))
	}
	w := newWorld(t, nil)
	w.create("s", walled)
	want := ends(w)
	for i, rows := range kills(w.wrote) {
		again := newWorld(t, rows)
		if again.store.View().Stacks.Len() == 0 {
			continue // it was killed before anybody heard of the stack
		}
		again.settle()
		if got := ends(again); got != want {
			t.Errorf("killed after write %d of %d: %s\nwithout: %s", i+1, len(w.wrote), got, want)
		}
	}
}

// TestWalledByControl: Cloud Control makes, reads, changes and deletes them, too.
func TestWalledByControl(t *testing.T) {
	c := newControl(withStores(t))
	made := map[string]string{}
	for _, r := range []struct{ name, kind, properties, patch, want string }{
		{"VPC", "AWS::EC2::VPC", `{"CidrBlock": "10.0.0.0/16"}`, "", ""},
		{"Subnet", "AWS::EC2::Subnet", `{"CidrBlock": "10.0.1.0/24", "VpcId": "$VPC"}`, "", ""},
		{"Queue", "AWS::SQS::Queue", `{}`, "", ""},
		{"", "AWS::EC2::VPCCidrBlock", `{"CidrBlock": "10.1.0.0/16", "VpcId": "$VPC"}`, "", `"CidrBlock":"10.1.0.0/16"`},
		{"Options", "AWS::EC2::DHCPOptions", `{"DomainName": "a.b", "NetbiosNodeType": 2}`, `[{"op": "add", "path": "/Tags", "value": [{"Key": "a", "Value": "b"}]}]`, `"NetbiosNodeType":2,"Tags":[{"Key":"a","Value":"b"}]`},
		{"", "AWS::EC2::VPCDHCPOptionsAssociation", `{"DhcpOptionsId": "$Options", "VpcId": "$VPC"}`, "", `"DhcpOptionsId":"dopt-`},
		{"ACL", "AWS::EC2::NetworkAcl", `{"VpcId": "$VPC"}`, `[{"op": "add", "path": "/Tags", "value": [{"Key": "a", "Value": "b"}]}]`, `"Tags":[{"Key":"a","Value":"b"}]`},
		{"", "AWS::EC2::SubnetNetworkAclAssociation", `{"SubnetId": "$Subnet", "NetworkAclId": "$ACL"}`, "", `"NetworkAclId":"acl-`},
		{"", "AWS::EC2::EgressOnlyInternetGateway", `{"VpcId": "$VPC"}`, "", `"VpcId":"vpc-`},
		{"Topic", "AWS::SNS::Topic", `{}`, "", ""},
		{"", "AWS::SNS::Subscription", `{"TopicArn": "$Topic", "Protocol": "sqs", "Endpoint": "arn:aws:sqs:us-east-1:000000000000:q"}`, `[{"op": "replace", "path": "/RawMessageDelivery", "value": true}]`, `"RawMessageDelivery":true`},
		{"", "AWS::SNS::TopicInlinePolicy", `{"TopicArn": "$Topic", "PolicyDocument": {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sns:*", "Resource": "*"}]}}`, `[{"op": "replace", "path": "/PolicyDocument/Statement/0/Action", "value": "sns:Publish"}]`, `"Action":"sns:Publish"`},
		{"", "AWS::SQS::QueueInlinePolicy", `{"Queue": "$Queue", "PolicyDocument": {"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*"}]}}`, `[{"op": "replace", "path": "/PolicyDocument/Statement/0/Action", "value": "sqs:SendMessage"}]`, `"Action":"sqs:SendMessage"`},
	} {
		for name, id := range made {
			r.properties = strings.ReplaceAll(r.properties, "$"+name+`"`, id+`"`)
		}
		e := c.make(r.kind, r.properties)
		if e.OperationStatus != "SUCCESS" {
			t.Fatalf("%s is %s: %s", r.kind, e.OperationStatus, aws.ToString(e.StatusMessage))
		}
		made[r.name] = *e.Identifier
		if r.patch != "" {
			if e := c.patch(r.kind, *e.Identifier, r.patch); e.OperationStatus != "SUCCESS" {
				t.Errorf("%s is changed with %s: %s", r.kind, e.OperationStatus, aws.ToString(e.StatusMessage))
			}
		}
		got, err := c.get(r.kind, *e.Identifier)
		text, _ := json.Marshal(got)
		if err != nil || !strings.Contains(string(text), r.want) {
			t.Errorf("%s is %s: %v", r.kind, text, err)
		}
		if r.name != "" {
			continue // others need it
		}
		if e := c.unmake(r.kind, *e.Identifier); e.OperationStatus != "SUCCESS" {
			t.Errorf("%s is deleted with %s: %s", r.kind, e.OperationStatus, aws.ToString(e.StatusMessage))
		}
		if got, err := c.get(r.kind, *e.Identifier); !strings.Contains(errorText(err), "ResourceNotFoundException") {
			t.Errorf("afterwards there is %v: %v", got, err)
		}
	}
}

// TestTargetRefused: what a secret can't be attached to is refused by its type, before anything is made.
func TestTargetRefused(t *testing.T) {
	w := newWorld(t, nil)
	text := "Resources: {X: {Type: AWS::SecretsManager::SecretTargetAttachment, Properties: {SecretId: s, TargetId: t, TargetType: AWS::RDS::DBInstance}}}"
	_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text})
	check(t, "a database", err, "Properties validation failed for resource X with message:\n#/TargetType: there are no targets of type "+
		"AWS::RDS::DBInstance: Pintle has no databases to attach a secret to")
}
