package ec2

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestTokensOfLaunchTemplates: a call that is sent again, as SDKs do after a time-out, makes nothing twice.
func TestTokensOfLaunchTemplates(t *testing.T) {
	s := service(t, 0)
	create := func(image string) (string, error) {
		out, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("once"),
			ClientToken:        aws.String("token"),
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: &image},
		})
		if err != nil {
			return "", err
		}
		return *out.LaunchTemplate.LaunchTemplateId, nil
	}
	first, err := create("ami-00000000")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := create("ami-00000000"); err != nil || again != first {
		t.Errorf("got %s, not %s, %v", again, first, err)
	}
	if _, err := create("ami-00000001"); codeOf(err) != "IdempotentParameterMismatch" {
		t.Errorf("got %v", err)
	}
	version := func() int64 {
		out, err := s.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateId:   &first,
			ClientToken:        aws.String("token"),
			LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "c5.large"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return *out.LaunchTemplateVersion.VersionNumber
	}
	if a, b := version(), version(); a != 2 || b != 2 {
		t.Errorf("got the versions %d and %d", a, b)
	}
}

// TestResolveAlias: the image of a launch template's version is shown by its id where a call asks for that.
func TestResolveAlias(t *testing.T) {
	s := service(t, 0)
	image := byParameter + "/aws/service/ecs/optimized-ami/amazon-linux-2/recommended/image_id"
	_, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("alias"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: &image},
	})
	if err != nil {
		t.Fatal(err)
	}
	for resolve, want := range map[bool]string{false: image, true: imageOf(image[len(byParameter):])} {
		made, err := s.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateName: aws.String("alias"), SourceVersion: aws.String("1"), ResolveAlias: &resolve,
			LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "c5.large"},
		})
		if err != nil || *made.LaunchTemplateVersion.LaunchTemplateData.ImageId != want {
			t.Errorf("a new version with ResolveAlias %t: got %v, %v", resolve, made, err)
		}
		out, err := s.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{
			LaunchTemplateName: aws.String("alias"), ResolveAlias: &resolve,
		})
		if err != nil || *out.LaunchTemplateVersions[0].LaunchTemplateData.ImageId != want {
			t.Errorf("ResolveAlias %t: got %v, %v", resolve, out, err)
		}
	}
}

// TestPeersThatCannotBe: groups of other accounts and peered VPCs are refused, and not taken for those of this account.
func TestPeersThatCannotBe(t *testing.T) {
	s, w := networked(t)
	group := w.group("web")
	for _, c := range []struct {
		to   types.UserIdGroupPair
		code string
	}{
		{types.UserIdGroupPair{UserId: aws.String("111111111111")}, "InvalidGroup.NotFound"},
		{types.UserIdGroupPair{VpcPeeringConnectionId: aws.String("pcx-1")}, "InvalidVpcPeeringConnectionID.NotFound"},
		{types.UserIdGroupPair{VpcId: aws.String("vpc-other")}, "InvalidGroup.NotFound"},
		{types.UserIdGroupPair{UserId: aws.String("000000000000"), VpcId: &w.vpc}, ""},
	} {
		c.to.GroupId = &group
		_, err := s.AuthorizeSecurityGroupIngress(t.Context(), &ec2.AuthorizeSecurityGroupIngressInput{
			GroupId: &group,
			IpPermissions: []types.IpPermission{{
				IpProtocol: aws.String("tcp"), FromPort: aws.Int32(22), ToPort: aws.Int32(22), UserIdGroupPairs: []types.UserIdGroupPair{c.to},
			}},
		})
		if codeOf(err) != c.code {
			t.Errorf("%+v: got %v, not %s", c.to, err, c.code)
		}
	}
}

// TestNamesOfEndpoints: an endpoint shows which DNS records it has, and one with others is refused.
func TestNamesOfEndpoints(t *testing.T) {
	s, w := networked(t)
	create := func(o *types.DnsOptionsSpecification) (*ec2.CreateVpcEndpointOutput, error) {
		return s.CreateVpcEndpoint(t.Context(), &ec2.CreateVpcEndpointInput{
			VpcId: &w.vpc, ServiceName: aws.String("com.amazonaws.us-east-1.s3"), DnsOptions: o,
		})
	}
	out, err := create(&types.DnsOptionsSpecification{DnsRecordIpType: types.DnsRecordIpTypeServiceDefined})
	if err != nil || out.VpcEndpoint.DnsOptions.DnsRecordIpType != types.DnsRecordIpTypeServiceDefined {
		t.Fatalf("got %v, %v", out, err)
	}
	for _, o := range []*types.DnsOptionsSpecification{
		{DnsRecordIpType: types.DnsRecordIpTypeDualstack}, {PrivateDnsOnlyForInboundResolverEndpoint: aws.Bool(true)},
	} {
		if _, err := create(o); codeOf(err) != "UnsupportedOperation" {
			t.Errorf("%+v: got %v", o, err)
		}
		_, err := s.ModifyVpcEndpoint(t.Context(), &ec2.ModifyVpcEndpointInput{VpcEndpointId: out.VpcEndpoint.VpcEndpointId, DnsOptions: o})
		if codeOf(err) != "UnsupportedOperation" {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	_, err = s.ModifyVpcEndpoint(t.Context(), &ec2.ModifyVpcEndpointInput{
		VpcEndpointId: out.VpcEndpoint.VpcEndpointId, IpAddressType: types.IpAddressTypeIpv4, ResetPolicy: aws.Bool(true),
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadsByMembers: what a call narrows its question by, narrows the answer.
func TestReadsByMembers(t *testing.T) {
	s := service(t, 0)
	for users, some := range map[string]bool{"self": false, "000000000000": false, "all": true} {
		out, err := s.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ExecutableUsers: []string{users}})
		if err != nil || (len(out.Images) > 0) != some {
			t.Errorf("images that %s may launch: %v, %v", users, out, err)
		}
	}
	lists, err := s.DescribeManagedPrefixLists(t.Context(), &ec2.DescribeManagedPrefixListsInput{})
	if err != nil {
		t.Fatal(err)
	}
	in := &ec2.GetManagedPrefixListEntriesInput{PrefixListId: lists.PrefixLists[0].PrefixListId, MaxResults: aws.Int32(1)}
	page, err := s.GetManagedPrefixListEntries(t.Context(), in)
	if err != nil || len(page.Entries) != 1 {
		t.Errorf("got %v, %v", page, err)
	}
	in.TargetVersion = aws.Int64(7)
	if _, err := s.GetManagedPrefixListEntries(t.Context(), in); codeOf(err) != "InvalidParameterValue" {
		t.Errorf("got %v", err)
	}
	address, err := s.AllocateAddress(t.Context(), &ec2.AllocateAddressInput{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ReleaseAddress(t.Context(), &ec2.ReleaseAddressInput{
		AllocationId: address.AllocationId, NetworkBorderGroup: aws.String("eu-west-1"),
	})
	if codeOf(err) != "InvalidAddress.NotFound" {
		t.Errorf("got %v", err)
	}
}

// TestEmptyMembers: what a call gives as "", 0 or an empty list it doesn't ask for, as tools have it that send every member.
func TestEmptyMembers(t *testing.T) {
	s := service(t, 0)
	vpc, err := s.CreateVpc(t.Context(), &ec2.CreateVpcInput{
		CidrBlock: aws.String("10.0.0.0/16"), Ipv4IpamPoolId: aws.String(""), Ipv6NetmaskLength: aws.Int32(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	subnet, err := s.CreateSubnet(t.Context(), &ec2.CreateSubnetInput{
		VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String("10.0.0.0/24"), AvailabilityZone: aws.String("us-east-1b"), AvailabilityZoneId: aws.String(""),
		Ipv6CidrBlock: aws.String(""), OutpostArn: aws.String(""),
	})
	if err != nil || *subnet.Subnet.AvailabilityZone != "us-east-1b" {
		t.Errorf("got %v, %v", subnet, err)
	}
	if _, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("empties"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-00000000")},
	}); err != nil {
		t.Fatal(err)
	}
	_, err = s.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: aws.String(""), LaunchTemplateName: aws.String("empties"),
	})
	if err != nil {
		t.Error(err)
	}
	_, err = s.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: aws.String("lt-1"), LaunchTemplateName: aws.String("empties"),
	})
	if codeOf(err) != "InvalidParameterCombination" {
		t.Errorf("got %v", err)
	}
	if err := checkAsked(&ec2.RunInstancesInput{KernelId: aws.String(""), PrivateIpAddress: aws.String(""), Ipv6AddressCount: aws.Int32(0)}); err != nil {
		t.Error(err)
	}
	if err := checkAsked(&ec2.RunInstancesInput{PrivateIpAddress: aws.String("10.0.0.4")}); codeOf(err) != "UnsupportedOperation" {
		t.Errorf("got %v", err)
	}
}
