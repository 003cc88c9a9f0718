package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of EC2's network. They embed the SDK's structs, without what follows from other rows: a subnet's row doesn't count its free
// addresses.

// VPC is a virtual network. Each has one main route table, one default network ACL and one default security group.
type VPC struct {
	types.Vpc
	DNSSupport   bool `json:",omitzero"`
	DNSHostnames bool `json:",omitzero"`
	UsageMetrics bool `json:",omitzero"` // of its addresses
}

// Subnet is a part of a VPC in one zone.
type Subnet struct{ types.Subnet }

// DHCPOptions are the options that a VPC gives its machines.
type DHCPOptions struct{ types.DhcpOptions }

// InternetGateway joins a VPC to the Internet.
type InternetGateway struct{ types.InternetGateway }

// EgressOnlyInternetGateway is an Internet gateway for IPv6 that lets nothing in.
type EgressOnlyInternetGateway struct {
	types.EgressOnlyInternetGateway
}

// RouteTable is a route table with its routes and associations. A subnet that no table names follows its VPC's main one.
type RouteTable struct{ types.RouteTable }

// Main reports whether a VPC's subnets follow the table unless another one names them.
func (t *RouteTable) Main() bool {
	for _, a := range t.Associations {
		if aws.ToBool(a.Main) {
			return true
		}
	}
	return false
}

// NetworkACL is a network ACL with its entries. Each subnet is associated with exactly one.
type NetworkACL struct{ types.NetworkAcl }

// SecurityGroup is a security group. Its rules are rows of their own.
type SecurityGroup struct{ types.SecurityGroup }

// SecurityGroupRule is one rule of a security group.
type SecurityGroupRule struct{ types.SecurityGroupRule }

// NATGateway is a NAT gateway. A deleted one is shown for an hour.
type NATGateway struct{ types.NatGateway }

// Address is an Elastic IP address.
type Address struct{ types.Address }

// NetworkInterface is a network interface that somebody made. Those of instances follow from the instances.
type NetworkInterface struct{ types.NetworkInterface }

// VPCEndpoint is an endpoint of a service in a VPC.
type VPCEndpoint struct{ types.VpcEndpoint }

// KeyPair is a key pair's public half. Nobody keeps the private one.
type KeyPair struct{ types.KeyPairInfo }

// PlacementGroup is a placement group. Here it's a name.
type PlacementGroup struct{ types.PlacementGroup }

// DefaultNetwork records that a region's default VPC was made, so that one that was deleted stays deleted.
type DefaultNetwork struct{ Region string }

// DefaultVPC returns the default VPC, or nil if it was deleted.
func (v *View) DefaultVPC() *VPC {
	for vpc := range v.VPCs.All() {
		if aws.ToBool(vpc.IsDefault) {
			return vpc
		}
	}
	return nil
}

// DefaultSubnet returns the default subnet of a zone, or nil.
func (v *View) DefaultSubnet(zone string) *Subnet {
	for s := range v.Subnets.All() {
		if aws.ToBool(s.DefaultForAz) && aws.ToString(s.AvailabilityZone) == zone {
			return s
		}
	}
	return nil
}

// HasOwnNetwork reports whether there is a VPC beside the default one.
func (v *View) HasOwnNetwork() bool {
	for vpc := range v.VPCs.All() {
		if !aws.ToBool(vpc.IsDefault) {
			return true
		}
	}
	return false
}

// DefaultSecurityGroup returns a VPC's security group named default.
func (v *View) DefaultSecurityGroup(vpc string) *SecurityGroup {
	for g := range v.SecurityGroups.By(SecurityGroupsByVPC, vpc) {
		if aws.ToString(g.GroupName) == "default" {
			return g
		}
	}
	return nil
}

// MainRouteTable returns a VPC's main route table.
func (v *View) MainRouteTable(vpc string) *RouteTable {
	for t := range v.RouteTables.By(RouteTablesByVPC, vpc) {
		if t.Main() {
			return t
		}
	}
	return nil
}

// DefaultNetworkACL returns a VPC's default network ACL.
func (v *View) DefaultNetworkACL(vpc string) *NetworkACL {
	for a := range v.NetworkACLs.By(NetworkACLsByVPC, vpc) {
		if aws.ToBool(a.IsDefault) {
			return a
		}
	}
	return nil
}

// IsTaken reports whether an instance or an interface has an address of a subnet.
func (v *View) IsTaken(subnet, address string) bool {
	at := subnet + " " + address
	for range v.Instances.By(instancesByAddress, at) {
		return true
	}
	for range v.NetworkInterfaces.By(interfacesByAddress, at) {
		return true
	}
	return false
}

// keepDeletedGateway is how long EC2 shows a deleted NAT gateway.
const keepDeletedGateway = time.Hour

// Indexes of the network's tables.
var (
	SubnetsByVPC        = Index[*Subnet]{Name: "vpc", Value: func(s *Subnet) string { return aws.ToString(s.VpcId) }}
	RouteTablesByVPC    = Index[*RouteTable]{Name: "vpc", Value: func(t *RouteTable) string { return aws.ToString(t.VpcId) }}
	NetworkACLsByVPC    = Index[*NetworkACL]{Name: "vpc", Value: func(a *NetworkACL) string { return aws.ToString(a.VpcId) }}
	SecurityGroupsByVPC = Index[*SecurityGroup]{Name: "vpc", Value: func(g *SecurityGroup) string { return aws.ToString(g.VpcId) }}
	RulesByGroup        = Index[*SecurityGroupRule]{Name: "group", Value: func(r *SecurityGroupRule) string { return aws.ToString(r.GroupId) }}
	InterfacesBySubnet  = Index[*NetworkInterface]{Name: "subnet", Value: func(i *NetworkInterface) string { return aws.ToString(i.SubnetId) }}
	interfacesByAddress = Index[*NetworkInterface]{Name: "address", Value: func(i *NetworkInterface) string {
		return aws.ToString(i.SubnetId) + " " + aws.ToString(i.PrivateIpAddress)
	}}
	AddressesByInterface = Index[*Address]{Name: "interface", Value: func(a *Address) string { return aws.ToString(a.NetworkInterfaceId) }}
)

var (
	vpcs = &store.Definition[*VPC]{Name: "vpcs", Key: func(v *VPC) string { return aws.ToString(v.VpcId) }}

	subnets = &store.Definition[*Subnet]{
		Name:    "subnets",
		Key:     func(s *Subnet) string { return aws.ToString(s.SubnetId) },
		Indexes: []Index[*Subnet]{SubnetsByVPC},
	}

	dhcpOptions = &store.Definition[*DHCPOptions]{
		Name: "dhcp_options",
		Key:  func(o *DHCPOptions) string { return aws.ToString(o.DhcpOptionsId) },
	}

	internetGateways = &store.Definition[*InternetGateway]{
		Name: "internet_gateways",
		Key:  func(g *InternetGateway) string { return aws.ToString(g.InternetGatewayId) },
	}

	egressOnlyInternetGateways = &store.Definition[*EgressOnlyInternetGateway]{
		Name: "egress_only_internet_gateways",
		Key:  func(g *EgressOnlyInternetGateway) string { return aws.ToString(g.EgressOnlyInternetGatewayId) },
	}

	routeTables = &store.Definition[*RouteTable]{
		Name:    "route_tables",
		Key:     func(t *RouteTable) string { return aws.ToString(t.RouteTableId) },
		Indexes: []Index[*RouteTable]{RouteTablesByVPC},
	}

	networkACLs = &store.Definition[*NetworkACL]{
		Name:    "network_acls",
		Key:     func(a *NetworkACL) string { return aws.ToString(a.NetworkAclId) },
		Indexes: []Index[*NetworkACL]{NetworkACLsByVPC},
	}

	securityGroups = &store.Definition[*SecurityGroup]{
		Name:    "security_groups",
		Key:     func(g *SecurityGroup) string { return aws.ToString(g.GroupId) },
		Indexes: []Index[*SecurityGroup]{SecurityGroupsByVPC},
	}

	securityGroupRules = &store.Definition[*SecurityGroupRule]{
		Name:    "security_group_rules",
		Key:     func(r *SecurityGroupRule) string { return aws.ToString(r.SecurityGroupRuleId) },
		Indexes: []Index[*SecurityGroupRule]{RulesByGroup},
	}

	natGateways = &store.Definition[*NATGateway]{
		Name:     "nat_gateways",
		Key:      func(g *NATGateway) string { return aws.ToString(g.NatGatewayId) },
		Lifetime: store.KeepFor(keepDeletedGateway, func(g *NATGateway) *time.Time { return g.DeleteTime }),
	}

	addresses = &store.Definition[*Address]{
		Name:    "addresses",
		Key:     func(a *Address) string { return aws.ToString(a.AllocationId) },
		Indexes: []Index[*Address]{AddressesByInterface},
	}

	networkInterfaces = &store.Definition[*NetworkInterface]{
		Name:    "network_interfaces",
		Key:     func(i *NetworkInterface) string { return aws.ToString(i.NetworkInterfaceId) },
		Indexes: []Index[*NetworkInterface]{InterfacesBySubnet, interfacesByAddress},
	}

	vpcEndpoints = &store.Definition[*VPCEndpoint]{
		Name: "vpc_endpoints",
		Key:  func(e *VPCEndpoint) string { return aws.ToString(e.VpcEndpointId) },
	}

	keyPairs = &store.Definition[*KeyPair]{Name: "key_pairs", Key: func(k *KeyPair) string { return aws.ToString(k.KeyPairId) }}

	placementGroups = &store.Definition[*PlacementGroup]{
		Name: "placement_groups",
		Key:  func(g *PlacementGroup) string { return aws.ToString(g.GroupId) },
	}

	defaultNetworks = &store.Definition[*DefaultNetwork]{
		Name: "default_networks",
		Key:  func(d *DefaultNetwork) string { return d.Region },
	}
)

// networkTables are the tables of a VPC and what is in it.
type networkTables struct {
	Addresses                  Table[*Address]
	DefaultNetworks            Table[*DefaultNetwork]
	DHCPOptions                Table[*DHCPOptions]
	EgressOnlyInternetGateways Table[*EgressOnlyInternetGateway]
	InternetGateways           Table[*InternetGateway]
	KeyPairs                   Table[*KeyPair]
	NATGateways                Table[*NATGateway]
	NetworkACLs                Table[*NetworkACL]
	NetworkInterfaces          Table[*NetworkInterface]
	PlacementGroups            Table[*PlacementGroup]
	RouteTables                Table[*RouteTable]
	SecurityGroupRules         Table[*SecurityGroupRule]
	SecurityGroups             Table[*SecurityGroup]
	Subnets                    Table[*Subnet]
	VPCEndpoints               Table[*VPCEndpoint]
	VPCs                       Table[*VPC]
}

func newNetworkTables(v *store.View) networkTables {
	return networkTables{
		Addresses:                  addresses.In(v),
		DefaultNetworks:            defaultNetworks.In(v),
		DHCPOptions:                dhcpOptions.In(v),
		EgressOnlyInternetGateways: egressOnlyInternetGateways.In(v),
		InternetGateways:           internetGateways.In(v),
		KeyPairs:                   keyPairs.In(v),
		NATGateways:                natGateways.In(v),
		NetworkACLs:                networkACLs.In(v),
		NetworkInterfaces:          networkInterfaces.In(v),
		PlacementGroups:            placementGroups.In(v),
		RouteTables:                routeTables.In(v),
		SecurityGroupRules:         securityGroupRules.In(v),
		SecurityGroups:             securityGroups.In(v),
		Subnets:                    subnets.In(v),
		VPCEndpoints:               vpcEndpoints.In(v),
		VPCs:                       vpcs.In(v),
	}
}
