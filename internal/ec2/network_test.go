package ec2

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/ec2/cidr"
	"github.com/pintle/pintle/internal/state"
)

// world is a service with its default network.
type world struct {
	t       *testing.T
	s       *Service
	vpc     string
	subnets []string // of the zones a, b and c
}

func networked(t *testing.T) (*Service, *world) {
	t.Helper()
	s := service(t, 0)
	if err := s.MakeDefaultNetwork(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := s.store.View()
	w := &world{t: t, s: s, vpc: *v.DefaultVPC().VpcId}
	for _, z := range s.zones() {
		w.subnets = append(w.subnets, *v.DefaultSubnet(*z.ZoneName).SubnetId)
	}
	return s, w
}

// group makes a group in the default VPC.
func (w *world) group(name string) string {
	w.t.Helper()
	out, err := w.s.CreateSecurityGroup(w.t.Context(), &ec2.CreateSecurityGroupInput{GroupName: &name, Description: &name})
	if err != nil {
		w.t.Fatal(err)
	}
	return *out.GroupId
}

// run launches instances.
func (w *world) run(n int32, in ec2.RunInstancesInput) ([]types.Instance, error) {
	w.t.Helper()
	in.MinCount, in.MaxCount, in.ImageId = &n, &n, aws.String("ami-12345678")
	out, err := w.s.RunInstances(w.t.Context(), &in)
	if err != nil {
		return nil, err
	}
	return out.Instances, nil
}

// TestDefaultNetwork: it's made once, so a VPC that was deleted stays deleted until somebody asks for it.
func TestDefaultNetwork(t *testing.T) {
	s, w := networked(t)
	if _, err := s.DeleteVpc(t.Context(), &ec2.DeleteVpcInput{VpcId: &w.vpc}); codeOf(err) != "DependencyViolation" {
		t.Fatal(err)
	}
	for g := range s.store.View().InternetGateways.All() {
		if _, err := s.DetachInternetGateway(t.Context(), &ec2.DetachInternetGatewayInput{
			InternetGatewayId: g.InternetGatewayId,
			VpcId:             &w.vpc,
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range w.subnets {
		if _, err := s.DeleteSubnet(t.Context(), &ec2.DeleteSubnetInput{SubnetId: &id}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.DeleteVpc(t.Context(), &ec2.DeleteVpcInput{VpcId: &w.vpc}); err != nil {
		t.Fatal(err)
	}
	v := s.store.View()
	if n := count(v.SecurityGroups.All()) + count(v.SecurityGroupRules.All()) + count(v.NetworkACLs.All()) + count(v.RouteTables.All()); n > 0 {
		t.Errorf("%d rows are left of the VPC", n)
	}
	if err := s.MakeDefaultNetwork(t.Context()); err != nil || s.store.View().DefaultVPC() != nil {
		t.Errorf("the VPC is back, %v", err)
	}
	if _, err := s.CreateDefaultVpc(t.Context(), &ec2.CreateDefaultVpcInput{}); err != nil || s.store.View().DefaultSubnet("us-east-1c") == nil {
		t.Errorf("there is no default VPC, %v", err)
	}
}

// TestInstancesInSubnets: what is launched has an address of its subnet, which its interface tells too, until it ends.
func TestInstancesInSubnets(t *testing.T) {
	s, w := networked(t)
	all, err := w.run(3, ec2.RunInstancesInput{Placement: &types.Placement{AvailabilityZone: aws.String("us-east-1b")}})
	if err != nil {
		t.Fatal(err)
	}
	in := types.Filter{Name: aws.String("subnet-id"), Values: w.subnets[1:2]}
	cards, err := s.DescribeNetworkInterfaces(t.Context(), &ec2.DescribeNetworkInterfacesInput{Filters: []types.Filter{in}})
	if err != nil || len(cards.NetworkInterfaces) != 3 {
		t.Fatalf("%d interfaces, %v", len(cards.NetworkInterfaces), err)
	}
	seen := map[string]bool{}
	for _, i := range all {
		a := netip.MustParseAddr(*i.PrivateIpAddress)
		if !cidr.CanHave(netip.MustParsePrefix("172.31.16.0/20"), a) || seen[a.String()] || *i.VpcId != w.vpc || *i.SubnetId != w.subnets[1] ||
			*i.SecurityGroups[0].GroupName != "default" || *i.NetworkInterfaces[0].PrivateIpAddress != a.String() {
			t.Errorf("%+v", i)
		}
		seen[a.String()] = true
	}
	left := func() int32 {
		out, err := s.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: w.subnets[1:2]})
		if err != nil {
			t.Fatal(err)
		}
		return *out.Subnets[0].AvailableIpAddressCount
	}
	if n := left(); n != 4091-3 {
		t.Errorf("%d addresses are left", n)
	}
	if _, err := s.DeleteSubnet(t.Context(), &ec2.DeleteSubnetInput{SubnetId: &w.subnets[1]}); codeOf(err) != "DependencyViolation" {
		t.Errorf("got %v", err)
	}
	if _, err := s.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{*all[0].InstanceId}}); err != nil {
		t.Fatal(err)
	}
	if n := left(); n != 4091-2 {
		t.Errorf("%d addresses are left after one was terminated", n)
	}
}

// TestLaunchRefusals: what a launch names must exist, and a refused launch leaves nothing.
func TestLaunchRefusals(t *testing.T) {
	s, w := networked(t)
	vpc, err := s.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	small, err := s.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String("10.0.0.0/28")})
	if err != nil {
		t.Fatal(err)
	}
	id := small.Subnet.SubnetId
	for name, c := range map[string]struct {
		in   ec2.RunInstancesInput
		code string
	}{
		"a subnet":            {ec2.RunInstancesInput{SubnetId: aws.String("subnet-1")}, "InvalidSubnetID.NotFound"},
		"a group":             {ec2.RunInstancesInput{SecurityGroupIds: []string{"sg-1"}}, "InvalidGroup.NotFound"},
		"a group's name":      {ec2.RunInstancesInput{SecurityGroups: []string{"none"}}, "InvalidGroup.NotFound"},
		"a key":               {ec2.RunInstancesInput{KeyName: aws.String("mine")}, "InvalidKeyPair.NotFound"},
		"another VPC's group": {ec2.RunInstancesInput{SubnetId: id, SecurityGroupIds: []string{w.group("web")}}, "InvalidParameter"},
		"another zone": {
			ec2.RunInstancesInput{SubnetId: id, Placement: &types.Placement{AvailabilityZone: aws.String("us-east-1b")}},
			"InvalidParameterValue",
		},
		"no room": {ec2.RunInstancesInput{SubnetId: id}, "InsufficientFreeAddressesInSubnet"},
	} {
		if _, err := w.run(12, c.in); codeOf(err) != c.code {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := count(s.store.View().Instances.All()); n > 0 {
		t.Errorf("%d instances are left", n)
	}
	if _, err := w.run(11, ec2.RunInstancesInput{SubnetId: id}); err != nil {
		t.Error(err)
	}
}

// TestSubnetsNeverOverlap makes subnets of any blocks: those that are made lie in the VPC, and no two overlap.
func TestSubnetsNeverOverlap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := service(t, 0)
		out, err := s.CreateVpc(t.Context(), &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/22")})
		if err != nil {
			r.Fatal(err)
		}
		vpc := netip.MustParsePrefix("10.0.0.0/22")
		for range 12 {
			start := cidr.Nth(netip.MustParsePrefix("10.0.0.0/21"), rapid.Uint32Range(0, 2047).Draw(r, "start"))
			block := netip.PrefixFrom(start, rapid.IntRange(20, 30).Draw(r, "bits")).Masked()
			fits := cidr.IsAllowed(block) && cidr.Contains(vpc, block)
			for other := range s.store.View().Subnets.By(state.SubnetsByVPC, *out.Vpc.VpcId) {
				fits = fits && !netip.MustParsePrefix(*other.CidrBlock).Overlaps(block)
			}
			_, err := s.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{VpcId: out.Vpc.VpcId, CidrBlock: new(block.String())})
			if (err == nil) != fits {
				r.Fatalf("%s: got %v, fits %v", block, err, fits)
			}
		}
	})
}

// TestRules: permissions become rules and back, and what is there twice, or not at all, is refused and changes nothing.
func TestRules(t *testing.T) {
	s, w := networked(t)
	id := w.group("web")
	permission := func(protocol string, from, to int32, block string) types.IpPermission {
		return types.IpPermission{
			IpProtocol: &protocol,
			FromPort:   &from,
			ToPort:     &to,
			IpRanges:   []types.IpRange{{CidrIp: &block}},
		}
	}
	allow := func(p ...types.IpPermission) error {
		_, err := s.AuthorizeSecurityGroupIngress(t.Context(), &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id, IpPermissions: p})
		return err
	}
	for _, c := range []struct {
		name string
		p    []types.IpPermission
		code string
	}{
		{"a port", []types.IpPermission{permission("tcp", 22, 22, "10.0.0.9/8")}, ""},
		{"it again, by its number", []types.IpPermission{permission("6", 22, 22, "10.0.0.0/8")}, "InvalidPermission.Duplicate"},
		{"a new one beside it", []types.IpPermission{permission("udp", 53, 53, "10.0.0.0/8"), permission("tcp", 22, 22, "10.0.0.0/8")},
			"InvalidPermission.Duplicate"},
		{"twice in one call", []types.IpPermission{permission("udp", 53, 53, "10.0.0.0/8"), permission("udp", 53, 53, "10.0.0.0/8")},
			"InvalidParameterValue"},
		{"ports the wrong way round", []types.IpPermission{permission("tcp", 23, 22, "10.0.0.0/8")}, "InvalidParameterValue"},
		{"a port too high", []types.IpPermission{permission("tcp", 22, 65536, "10.0.0.0/8")}, "InvalidParameterValue"},
		{"no block", []types.IpPermission{permission("tcp", 22, 22, "10.0.0.0")}, "InvalidParameterValue"},
		{"no peer", []types.IpPermission{{IpProtocol: aws.String("-1")}}, "MissingParameter"},
		{"no protocol", []types.IpPermission{permission("", 22, 22, "10.0.0.0/8")}, "MissingParameter"},
		{"an unknown protocol", []types.IpPermission{permission("quic", 22, 22, "10.0.0.0/8")}, "InvalidParameterValue"},
		{"nothing", nil, "MissingParameter"},
	} {
		if err := allow(c.p...); (err != nil || c.code != "") && codeOf(err) != c.code {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	out, err := s.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupNames: []string{"web"}})
	if err != nil || len(out.SecurityGroups[0].IpPermissions) != 1 || len(out.SecurityGroups[0].IpPermissionsEgress) != 1 {
		t.Fatalf("got %+v, %v", out, err)
	}
	if p := out.SecurityGroups[0].IpPermissions[0]; *p.IpProtocol != "tcp" || *p.FromPort != 22 || *p.IpRanges[0].CidrIp != "10.0.0.0/8" {
		t.Errorf("got %+v", p)
	}
	if out.SecurityGroups[0].IpPermissionsEgress[0].FromPort != nil {
		t.Error("all traffic has ports")
	}
	unknown, err := s.RevokeSecurityGroupIngress(t.Context(), &ec2.RevokeSecurityGroupIngressInput{
		GroupId:       &id,
		IpPermissions: []types.IpPermission{permission("tcp", 22, 22, "10.0.0.0/8"), permission("tcp", 23, 23, "10.0.0.0/8")},
	})
	if err != nil || len(unknown.RevokedSecurityGroupRules) != 1 || len(unknown.UnknownIpPermissions) != 1 {
		t.Errorf("got %+v, %v", unknown, err)
	}
}

// TestClientToken: the same call makes nothing twice, and another one with its token is refused.
func TestClientToken(t *testing.T) {
	s, w := networked(t)
	create := func(tags ...types.TagSpecification) (string, error) {
		out, err := s.CreateRouteTable(t.Context(), &ec2.CreateRouteTableInput{
			VpcId:             &w.vpc,
			ClientToken:       aws.String("once"),
			TagSpecifications: tags,
		})
		if err != nil {
			return "", err
		}
		return *out.RouteTable.RouteTableId, nil
	}
	first, err := create()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := create(); err != nil || again != first {
		t.Errorf("got %s, not %s, %v", again, first, err)
	}
	if _, err := create(types.TagSpecification{ResourceType: types.ResourceTypeRouteTable}); codeOf(err) != "IdempotentParameterMismatch" {
		t.Errorf("got %v", err)
	}
	if _, err := s.DeleteRouteTable(t.Context(), &ec2.DeleteRouteTableInput{RouteTableId: &first}); err != nil {
		t.Fatal(err)
	}
	if again, err := create(); err != nil || again == first {
		t.Errorf("got %s, %v after it was deleted", again, err)
	}
}

// TestNetworkOfAMachine: a machine that Pintle didn't launch is shown in the default subnet of its zone, at the address that it reports.
func TestNetworkOfAMachine(t *testing.T) {
	s, w := networked(t)
	err := s.store.Update(t.Context(), func(tx *state.Tx) error {
		tx.ContainerInstances.Put(node(1))
		elsewhere := node(2)
		elsewhere.Attributes[1].Value = aws.String("rack-7")
		tx.ContainerInstances.Put(elsewhere)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	of := func(id string) types.Instance {
		out, err := s.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		return out.Reservations[0].Instances[0]
	}
	got := of(id(1))
	if aws.ToString(got.VpcId) != w.vpc || aws.ToString(got.SubnetId) != w.subnets[0] || *got.Placement.AvailabilityZone != "us-east-1a" {
		t.Errorf("it is in %v, %v, %v", got.VpcId, got.SubnetId, *got.Placement.AvailabilityZone)
	}
	if len(got.SecurityGroups) != 1 || *got.SecurityGroups[0].GroupName != "default" {
		t.Errorf("its groups are %v", got.SecurityGroups)
	}
	if n := got.NetworkInterfaces; len(n) != 1 || *n[0].SubnetId != w.subnets[0] || *n[0].PrivateIpAddress != "10.0.0.1" || len(n[0].Groups) != 1 {
		t.Errorf("its interfaces are %+v", n)
	}
	eni := *got.NetworkInterfaces[0].NetworkInterfaceId
	for _, in := range []*ec2.DescribeNetworkInterfacesInput{{}, {NetworkInterfaceIds: []string{eni}}} {
		out, err := s.DescribeNetworkInterfaces(t.Context(), in)
		if err != nil || len(out.NetworkInterfaces) != 1 || *out.NetworkInterfaces[0].Attachment.InstanceId != id(1) {
			t.Errorf("%v: %v, %v", in.NetworkInterfaceIds, out, err)
		}
	}
	if _, err := s.DeleteNetworkInterface(t.Context(), &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &eni}); codeOf(err) != "InvalidParameterValue" {
		t.Errorf("its interface is deleted: %v", err)
	}
	if got := of(id(2)); got.VpcId != nil || got.SubnetId != nil || len(got.NetworkInterfaces) != 0 {
		t.Errorf("one in a zone without a subnet is in %v, %v", *got.VpcId, *got.SubnetId)
	}
}

// TestDeleteNetworkInterface: an interface is deleted if somebody made it and nothing uses it. Those of instances and machines are in use.
func TestDeleteNetworkInterface(t *testing.T) {
	s, w := networked(t)
	launched, err := w.run(2, ec2.RunInstancesInput{})
	if err != nil {
		t.Fatal(err)
	}
	ended := *launched[1].InstanceId
	made, err := s.CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{SubnetId: &w.subnets[0]})
	if err != nil {
		t.Fatal(err)
	}
	err = s.store.Update(t.Context(), func(tx *state.Tx) error {
		elsewhere, left, again, unnamed, anywhere := node(2), node(3), node(4), node(5), node(6)
		elsewhere.Attributes[1].Value = aws.String("rack-7")
		left.Status = aws.String("INACTIVE")
		again.Ec2InstanceId = &ended
		unnamed.Ec2InstanceId = nil
		anywhere.Ec2InstanceId = aws.String("mi-0123456789abcdef0")
		for _, m := range []*state.ContainerInstance{node(1), elsewhere, left, again, unnamed, anywhere} {
			tx.ContainerInstances.Put(m)
		}
		tx.Instances.Put(tx.Instances.Get(ended).In(types.InstanceStateNameTerminated))
		used := *tx.NetworkInterfaces.Get(*made.NetworkInterface.NetworkInterfaceId)
		used.NetworkInterfaceId = aws.String("eni-0123456789abcdef0")
		used.Status = types.NetworkInterfaceStatusInUse
		tx.NetworkInterfaces.Put(&used)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, id, want string }{
		{"of its maker", *made.NetworkInterface.NetworkInterfaceId, ""},
		{"deleted", *made.NetworkInterface.NetworkInterfaceId, "InvalidNetworkInterfaceID.NotFound"},
		{"in use", "eni-0123456789abcdef0", "InvalidParameterValue"},
		{"of an instance", interfaceOf(*launched[0].InstanceId), "InvalidParameterValue"},
		{"of an instance that is over, whose machine is still there", interfaceOf(ended), "InvalidNetworkInterfaceID.NotFound"},
		{"of a machine", interfaceOf(id(1)), "InvalidParameterValue"},
		{"of a machine whose id begins differently", interfaceOf("mi-0123456789abcdef0"), "InvalidParameterValue"},
		{"of a machine in no subnet", interfaceOf(id(2)), "InvalidNetworkInterfaceID.NotFound"},
		{"of a machine that has left", interfaceOf(id(3)), "InvalidNetworkInterfaceID.NotFound"},
		{"of nothing", "eni-00000000000000000", "InvalidNetworkInterfaceID.NotFound"},
		{"an instance's without its beginning", (*launched[0].InstanceId)[1:], "InvalidNetworkInterfaceID.NotFound"},
		{"the beginning alone", "eni", "InvalidNetworkInterfaceID.NotFound"},
		{"none", "", "MissingParameter"},
	} {
		if _, err := s.DeleteNetworkInterface(t.Context(), &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &c.id}); codeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// BenchmarkDeleteNetworkInterface asks for one that isn't there, which must not cost more with more machines: it happens in a transaction.
func BenchmarkDeleteNetworkInterface(b *testing.B) {
	for _, machines := range []int{1, 5000} {
		b.Run(strconv.Itoa(machines), func(b *testing.B) {
			s := service(b, machines)
			if err := s.MakeDefaultNetwork(b.Context()); err != nil {
				b.Fatal(err)
			}
			in := &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: aws.String("eni-0123456789abcdef0")}
			for b.Loop() {
				if _, err := s.DeleteNetworkInterface(b.Context(), in); err == nil {
					b.Fatal("it was deleted")
				}
			}
		})
	}
}

// TestMACAddresses: whatever a machine that others have started says its id is, it's shown with a MAC address that is one.
func TestMACAddresses(t *testing.T) {
	s, _ := networked(t)
	named := []string{id(1), "i-1", "mi-0123456789abcdef0", "box", "i"}
	err := s.store.Update(t.Context(), func(tx *state.Tx) error {
		for n, name := range named {
			m := node(n + 1)
			m.Ec2InstanceId = &name
			tx.ContainerInstances.Put(m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.DescribeNetworkInterfaces(t.Context(), &ec2.DescribeNetworkInterfacesInput{})
	if err != nil || len(out.NetworkInterfaces) != len(named) {
		t.Fatalf("got %+v, %v", out, err)
	}
	seen := map[string]bool{}
	for _, i := range out.NetworkInterfaces {
		if _, err := net.ParseMAC(*i.MacAddress); err != nil || seen[*i.MacAddress] {
			t.Errorf("%s has %s: %v", *i.NetworkInterfaceId, *i.MacAddress, err)
		}
		seen[*i.MacAddress] = true
	}
}

// TestGroupNamesAmongIDs: a launch takes a group's name among ids, as templates refer to groups of the default VPC, and refuses one that isn't there.
func TestGroupNamesAmongIDs(t *testing.T) {
	_, w := networked(t)
	web, db := w.group("web"), w.group("db")
	for _, in := range []ec2.RunInstancesInput{
		{SecurityGroupIds: []string{"web", db}},
		{SecurityGroupIds: []string{web}, SecurityGroups: []string{"db"}},
	} {
		got, err := w.run(1, in)
		if err != nil || len(got[0].SecurityGroups) != 2 || *got[0].SecurityGroups[0].GroupId != web || *got[0].SecurityGroups[1].GroupId != db {
			t.Errorf("%v, %v: %+v, %v", in.SecurityGroupIds, in.SecurityGroups, got, err)
		}
	}
	if _, err := w.run(1, ec2.RunInstancesInput{SecurityGroupIds: []string{"none"}}); codeOf(err) != "InvalidGroup.NotFound" {
		t.Errorf("a name that isn't there: %v", err)
	}
}
