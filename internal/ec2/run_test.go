package ec2

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// TestReservation: what one call launches is one reservation, and tells its launch template.
func TestReservation(t *testing.T) {
	s := service(t, 1)
	template, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("gpu"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-def456")},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := func(n int32) *ec2.RunInstancesOutput {
		out, err := s.RunInstances(t.Context(), &ec2.RunInstancesInput{
			MinCount:       &n,
			MaxCount:       &n,
			LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("gpu"), Version: aws.String("$Latest")},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	two := run(2)
	run(1)
	out, err := s.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	if err != nil || len(out.Reservations) != 3 {
		t.Fatalf("%d reservations of one machine and two launches, %v", len(out.Reservations), err)
	}
	for _, r := range out.Reservations {
		if *r.ReservationId != *two.ReservationId {
			continue
		}
		if len(r.Instances) != 2 || *r.Instances[1].AmiLaunchIndex != 1 {
			t.Errorf("the first launch is %+v", r)
		}
		for _, i := range r.Instances {
			tags := map[string]string{}
			for _, tag := range i.Tags {
				tags[*tag.Key] = *tag.Value
			}
			if tags["aws:ec2launchtemplate:id"] != *template.LaunchTemplate.LaunchTemplateId || tags["aws:ec2launchtemplate:version"] != "1" {
				t.Errorf("tags: %v", tags)
			}
			if i.InstanceType != types.InstanceTypeM1Small {
				t.Errorf("without a type it is a %s", i.InstanceType)
			}
		}
	}
}

// TestForeignZone: a zone of another region is refused, a name that is no zone of AWS's isn't.
func TestForeignZone(t *testing.T) {
	s := service(t, 0)
	for zone, want := range map[string]string{
		"us-east-1b": "",
		"rack-7":     "",
		"us-west-2a": "InvalidParameterValue",
		"eu-west-1c": "InvalidParameterValue",
	} {
		_, err := s.RunInstances(t.Context(), &ec2.RunInstancesInput{
			MinCount:  aws.Int32(1),
			MaxCount:  aws.Int32(1),
			ImageId:   aws.String("ami-12345678"),
			Placement: &types.Placement{AvailabilityZone: &zone},
		})
		if codeOf(err) != want {
			t.Errorf("%s: %v", zone, err)
		}
	}
}

// TestAttribute describes each attribute of an instance that was launched and of a machine that was not.
func TestAttribute(t *testing.T) {
	s := service(t, 1)
	run, err := s.RunInstances(t.Context(), &ec2.RunInstancesInput{
		MinCount:     aws.Int32(1),
		MaxCount:     aws.Int32(1),
		ImageId:      aws.String("ami-12345678"),
		InstanceType: types.InstanceTypeT3Small,
		UserData:     aws.String("YQ=="),
	})
	if err != nil {
		t.Fatal(err)
	}
	launched := *run.Instances[0].InstanceId
	describe := func(id string, name types.InstanceAttributeName) (*ec2.DescribeInstanceAttributeOutput, error) {
		return s.DescribeInstanceAttribute(t.Context(), &ec2.DescribeInstanceAttributeInput{InstanceId: &id, Attribute: name})
	}
	for _, name := range types.InstanceAttributeName("").Values() {
		for _, id := range []string{launched, id(1)} {
			if out, err := describe(id, name); err != nil || *out.InstanceId != id {
				t.Errorf("%s of %s: %+v %v", name, id, out, err)
			}
		}
	}
	kind, _ := describe(launched, types.InstanceAttributeNameInstanceType)
	data, _ := describe(launched, types.InstanceAttributeNameUserData)
	if *kind.InstanceType.Value != "t3.small" || *data.UserData.Value != "YQ==" {
		t.Errorf("%+v %+v", kind.InstanceType, data.UserData)
	}
	for name, c := range map[string]struct{ id, attribute, want string }{
		"another":      {launched, "color", "InvalidParameterValue"},
		"no attribute": {launched, "", "MissingParameter"},
		"no instance":  {"i-1234567890abcdef0", "kernel", "InvalidInstanceID.NotFound"},
		"no id":        {"i-x", "kernel", "InvalidInstanceID.Malformed"},
	} {
		if _, err := describe(c.id, types.InstanceAttributeName(c.attribute)); codeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMachineHasAllFields: a machine that others have started has what EC2's clients read without asking whether it is there.
func TestMachineHasAllFields(t *testing.T) {
	s := service(t, 0)
	row := node(1)
	row.Attributes = nil
	i := s.instance(s.store.View(), row)
	if i.ImageId == nil || i.InstanceType == "" || i.Placement.AvailabilityZone == nil || i.PrivateIpAddress == nil || i.State == nil {
		t.Errorf("%+v", i)
	}
}

// TestRunKeepsWhatItTakes: the network and the role of a launch are described, from the call and from its template, and what an instance
// would silently lack is refused by name.
func TestRunKeepsWhatItTakes(t *testing.T) {
	s, n := networked(t)
	first, second := n.group("first"), n.group("second")
	if _, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("gpu"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId:            aws.String("ami-12345678"),
			SecurityGroupIds:   []string{first},
			IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("ecsInstanceRole")},
		},
	}); err != nil {
		t.Fatal(err)
	}
	run := func(in ec2.RunInstancesInput) (*ec2.RunInstancesOutput, error) {
		in.MinCount = aws.Int32(1)
		in.MaxCount = aws.Int32(1)
		in.LaunchTemplate = &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("gpu")}
		return s.RunInstances(t.Context(), &in)
	}
	for name, c := range map[string]struct {
		in                     ec2.RunInstancesInput
		group, subnet, profile string
	}{
		"the template's": {group: first, subnet: n.subnets[0], profile: "arn:aws:iam::000000000000:instance-profile/ecsInstanceRole"},
		"the call's": {
			in: ec2.RunInstancesInput{
				SubnetId:           &n.subnets[1],
				SecurityGroupIds:   []string{second},
				IamInstanceProfile: &types.IamInstanceProfileSpecification{Arn: aws.String("arn:aws:iam::1:instance-profile/x")},
				EbsOptimized:       aws.Bool(false),
				Monitoring:         &types.RunInstancesMonitoringEnabled{Enabled: aws.Bool(false)},
			},
			group:   second,
			subnet:  n.subnets[1],
			profile: "arn:aws:iam::1:instance-profile/x",
		},
	} {
		out, err := run(c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		i := out.Instances[0]
		if *i.SecurityGroups[0].GroupId != c.group || aws.ToString(i.SubnetId) != c.subnet || *i.IamInstanceProfile.Arn != c.profile {
			t.Errorf("%s: %+v %v %v", name, i.SecurityGroups, aws.ToString(i.SubnetId), *i.IamInstanceProfile.Arn)
		}
	}
	for name, in := range map[string]ec2.RunInstancesInput{
		"DisableApiTermination": {DisableApiTermination: aws.Bool(true)},
		"InstanceMarketOptions": {InstanceMarketOptions: &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}},
		"PrivateIpAddress":      {PrivateIpAddress: aws.String("10.0.0.1")},
		"Placement.GroupName":   {Placement: &types.Placement{GroupName: aws.String("cluster")}},
		"Placement.Tenancy":     {Placement: &types.Placement{Tenancy: types.TenancyDedicated}},
	} {
		if _, err := run(in); codeOf(err) != "UnsupportedOperation" || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInstanceStatus: instances that run have passed their checks, which scripts wait for; others are shown where a call asks for all.
func TestInstanceStatus(t *testing.T) {
	s := service(t, 2) // machines that run
	one := int32(1)
	pending, err := s.RunInstances(t.Context(), &ec2.RunInstancesInput{MinCount: &one, MaxCount: &one, ImageId: aws.String("ami-12345678")})
	if err != nil {
		t.Fatal(err)
	}
	describe := func(in *ec2.DescribeInstanceStatusInput) []types.InstanceStatus {
		t.Helper()
		out, err := s.DescribeInstanceStatus(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return out.InstanceStatuses
	}
	running := describe(&ec2.DescribeInstanceStatusInput{})
	if len(running) != 2 || running[0].InstanceStatus.Status != "ok" || running[0].SystemStatus.Status != "ok" {
		t.Errorf("got %+v", running)
	}
	ids := []string{*pending.Instances[0].InstanceId}
	if got := describe(&ec2.DescribeInstanceStatusInput{InstanceIds: ids}); len(got) != 0 {
		t.Errorf("one that is pending is shown: %+v", got)
	}
	got := describe(&ec2.DescribeInstanceStatusInput{InstanceIds: ids, IncludeAllInstances: aws.Bool(true)})
	if len(got) != 1 || got[0].InstanceStatus.Status != "not-applicable" {
		t.Errorf("got %+v", got)
	}
	filter := []types.Filter{{Name: aws.String("instance-status.reachability"), Values: []string{"passed"}}}
	if got := describe(&ec2.DescribeInstanceStatusInput{Filters: filter, IncludeAllInstances: aws.Bool(true)}); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	_, err = s.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: []string{"i-0123456789abcdef0"}})
	if codeOf(err) != "InvalidInstanceID.NotFound" {
		t.Errorf("got %v", err)
	}
}

// TestNoSpot: a launch template that asks for instances which there aren't is refused as such, not kept for groups that launch others.
func TestNoSpot(t *testing.T) {
	s := service(t, 0)
	_, err := s.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("cheap"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			InstanceMarketOptions: &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot},
		},
	})
	if codeOf(err) != "UnsupportedOperation" || !strings.Contains(err.Error(), "InstanceMarketOptions.MarketType:") {
		t.Errorf("got %v", err)
	}
}
