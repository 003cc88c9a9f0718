package cloudformation

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// networked has a network as templates for ECS have it: nothing tells that the gateway must stay attached until the NAT gateway is gone.
const networked = `
Resources:
  V: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16}}
  N: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref V, CidrBlock: 10.0.1.0/24, AvailabilityZone: !Select [0, !GetAZs '']}}
  I: {Type: AWS::EC2::InternetGateway, Properties: {Tags: [{Key: Name, Value: i}]}}
  IA: {Type: AWS::EC2::VPCGatewayAttachment, Properties: {VpcId: !Ref V, InternetGatewayId: !Ref I}}
  R: {Type: AWS::EC2::RouteTable, Properties: {VpcId: !Ref V}}
  RI: {Type: AWS::EC2::Route, DependsOn: IA, Properties: {RouteTableId: !Ref R, DestinationCidrBlock: 0.0.0.0/0, GatewayId: !Ref I}}
  RA: {Type: AWS::EC2::SubnetRouteTableAssociation, Properties: {SubnetId: !Ref N, RouteTableId: !Ref R}}
  P: {Type: AWS::EC2::RouteTable, Properties: {VpcId: !Ref V}}
  A: {Type: AWS::EC2::EIP, Properties: {Domain: vpc}}
  G: {Type: AWS::EC2::NatGateway, Properties: {SubnetId: !Ref N, AllocationId: !GetAtt A.AllocationId}}
  S: {Type: AWS::EC2::SecurityGroup, Properties: {GroupDescription: s, VpcId: !Ref V}}
  SI: {Type: AWS::EC2::SecurityGroupIngress, Properties: {GroupId: !Ref S, IpProtocol: '-1', SourceSecurityGroupId: !GetAtt S.GroupId}}
  SE: {Type: AWS::EC2::SecurityGroupEgress, Properties: {GroupId: !Ref S, IpProtocol: udp, FromPort: 53, ToPort: 53, CidrIp: 10.0.0.2/32}}
  E: {Type: AWS::EC2::NetworkInterface, Properties: {SubnetId: !Ref N, GroupSet: [!Ref S], Description: e}}
  X: {Type: AWS::EC2::VPCEndpoint, Properties: {VpcId: !Ref V, ServiceName: com.amazonaws.us-east-1.s3, RouteTableIds: [!Ref R]}}
  K: {Type: AWS::EC2::KeyPair, Properties: {KeyName: k, KeyType: ed25519}}
  L: {Type: AWS::EC2::PlacementGroup, Properties: {Strategy: spread}}
Outputs:
  Group: {Value: !GetAtt V.DefaultSecurityGroup}
  Blocks: {Value: !Join [',', !GetAtt V.CidrBlockAssociations]}
  ACL: {Value: !GetAtt N.NetworkAclAssociationId}
  Address: {Value: !Ref A}
  Interface: {Value: !GetAtt E.PrimaryPrivateIpAddress}
`

// TestNetwork: a network is made, changed in place, changed by a replacement and deleted, whatever its template says of the order.
func TestNetwork(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", networked)
	w.expect(types.StackStatusCreateComplete)
	v := w.store.View()
	outputs := map[string]string{}
	for _, o := range find(v, w.onlyStack()).Outputs {
		outputs[*o.OutputKey] = *o.OutputValue
	}
	for name, prefix := range map[string]string{
		"Group": "sg-", "Blocks": "vpc-cidr-assoc-", "ACL": "aclassoc-", "Address": "198.18.", "Interface": "10.0.1.",
	} {
		if !strings.HasPrefix(outputs[name], prefix) {
			t.Errorf("%s is %q", name, outputs[name])
		}
	}
	for k := range v.KeyPairs.All() {
		if v.Parameters.Get("/ec2/keypair/"+*k.KeyPairId) == nil {
			t.Error("the private key is kept nowhere")
		}
	}
	was := physicalIDs(v)
	w.become("s", strings.NewReplacer(
		"DestinationCidrBlock: 0.0.0.0/0, GatewayId: !Ref I", "DestinationCidrBlock: 0.0.0.0/0, NatGatewayId: !Ref G",
		"SubnetId: !Ref N, RouteTableId: !Ref R", "SubnetId: !Ref N, RouteTableId: !Ref P",
		"CidrBlock: 10.0.0.0/16", "CidrBlock: 10.0.0.0/16, EnableDnsHostnames: true",
		"RouteTableIds: [!Ref R]", "RouteTableIds: [!Ref P]",
		"VpcId: !Ref V}}\n  SI", "VpcId: !Ref V, SecurityGroupEgress: [{IpProtocol: tcp, FromPort: 443, ToPort: 443, CidrIp: 0.0.0.0/0}]}}\n  SI",
		"Description: e", "Description: f, Tags: [{Key: a, Value: b}]",
		"Strategy: spread", "Strategy: cluster",
	).Replace(networked))
	w.expect(types.StackStatusUpdateComplete)
	v = w.store.View()
	for name, id := range physicalIDs(v) {
		if replaced := id != was[name]; replaced != (name == "L") {
			t.Errorf("%s was %s and is %s", name, was[name], id)
		}
	}
	if table := v.RouteTables.Get(physicalIDs(v)["P"]); len(table.Associations) != 1 || len(table.Routes) != 2 {
		t.Errorf("the other route table has %v and %v", table.Associations, table.Routes)
	}
	ports := map[int32]bool{}
	for r := range v.SecurityGroupRules.By(state.RulesByGroup, was["S"]) {
		ports[*r.FromPort] = true
	}
	if len(ports) != 3 || !ports[443] || !ports[53] || !ports[-1] {
		t.Errorf("the group has rules for the ports %v", ports)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	for _, left := range network(w.store.View()) {
		if left != "nat gateway deleted" {
			t.Errorf("%s is left", left)
		}
	}
}

// TestHalfAnUpdate: of an update that fails in the middle of a resource's calls, nothing stays.
func TestHalfAnUpdate(t *testing.T) {
	text := "Resources:\n  V: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16}}\n  S: {Type: AWS::EC2::SecurityGroup, " +
		"Properties: {GroupDescription: s, VpcId: !Ref V, SecurityGroupIngress: [{IpProtocol: tcp, FromPort: 1, ToPort: 1, CidrIp: 10.0.0.0/8}]}}"
	w := newWorld(t, nil)
	w.create("s", text)
	was := strings.Join(network(w.store.View()), "\n")
	w.become("s", strings.Replace(text, "[{IpProtocol: tcp, FromPort: 1, ToPort: 1, CidrIp: 10.0.0.0/8}]",
		"[{IpProtocol: tcp, FromPort: 2, ToPort: 2, CidrIp: 10.0.0.0/8}, {IpProtocol: tcp, FromPort: 2, ToPort: 1, CidrIp: 10.0.0.0/8}]", 1))
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := strings.Join(network(w.store.View()), "\n"); got != was {
		t.Errorf("got:\n%s\nwas:\n%s", got, was)
	}
}

// TestNetworkRefused: what EC2's types don't take is told before anything is made, and what EC2 refuses by the resource's event.
func TestNetworkRefused(t *testing.T) {
	w := newWorld(t, nil)
	for properties, want := range map[string]string{
		"Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16, Ipv4IpamPoolId: p}": "#: extraneous key [Ipv4IpamPoolId] is not permitted",
		"Type: AWS::EC2::Subnet, Properties: {CidrBlock: 10.0.0.0/16}":                 "#: required key [VpcId] not found",
		"Type: AWS::EC2::SecurityGroup, Properties: {GroupDescription: g, SecurityGroupIngress: [{FromPort: a}]}": "#/SecurityGroupIngress/0/FromPort: expected type: Integer, found: String\n" +
			"#/SecurityGroupIngress/0: required key [IpProtocol] not found",
	} {
		text := "Resources: {X: {" + properties + "}}"
		_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text})
		check(t, properties, err, "Properties validation failed for resource X with message:\n"+want)
	}
	w.create("s", "Resources: {X: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16, Tags: [{Key: 'aws:a', Value: b}]}}}")
	w.expect(types.StackStatusRollbackComplete)
	if left := network(w.store.View()); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
}

// physicalIDs returns the physical IDs of the resources that stand, by name.
func physicalIDs(v *state.View) map[string]string {
	ids := map[string]string{}
	for r := range v.StackResources.All() {
		ids[r.Name] = r.PhysicalID
	}
	return ids
}

// TestSecurityGroupWithoutVPC: its Ref is its name, by which the default VPC's groups go; its attribute is the ID.
func TestSecurityGroupWithoutVPC(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := call.Do[ec2.CreateDefaultVpcOutput](t.Context(), w.services, &ec2.CreateDefaultVpcInput{}); err != nil {
		t.Fatal(err)
	}
	w.create("s", `
Resources:
  S: {Type: AWS::EC2::SecurityGroup, Properties: {GroupDescription: s, GroupName: named}}
  R: {Type: AWS::EC2::SecurityGroupIngress, Properties: {GroupName: !Ref S, IpProtocol: tcp, FromPort: 1, ToPort: 1, CidrIp: 10.0.0.0/8}}
Outputs:
  Ref: {Value: !Ref S}
  ID: {Value: !GetAtt S.GroupId}
`)
	w.expect(types.StackStatusCreateComplete)
	got := ""
	for _, o := range find(w.store.View(), w.onlyStack()).Outputs {
		got += *o.OutputKey + "=" + *o.OutputValue + " "
	}
	if !strings.HasPrefix(got, "Ref=named ID=sg-") {
		t.Errorf("the outputs are %s", got)
	}
}
