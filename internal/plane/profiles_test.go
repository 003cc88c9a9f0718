package plane

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// templateWith makes a launch template whose instances have a profile.
func templateWith(t *testing.T, p *Plane, template, profile string) {
	t.Helper()
	_, err := p.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &template,
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: aws.String("ami-00000000"), InstanceType: "c5.large",
			IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &profile},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInstanceProfilesPassTheirRoles: whoever gives instances a profile, by its name or with a launch template, needs leave to pass the role
// behind it.
func TestInstanceProfilesPassTheirRoles(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "weak", `{"Effect": "Deny", "Action": "*", "Resource": "*"}`)
	createRole(t, p, "strong", `{"Effect": "Allow", "Action": "*", "Resource": "*"}`)
	for profile, role := range map[string]string{"p-weak": "weak", "weak": "strong", "empty": ""} {
		_, err := p.IAM.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: &profile})
		if err == nil && role != "" {
			_, err = p.IAM.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &profile, RoleName: &role})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	createRole(t, p, "caller", `{"Effect": "Allow", "Action": ["ec2:*", "autoscaling:*", "cloudformation:*"], "Resource": "*"},
		{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "`+roleARNs+`weak", "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}}`)
	out, err := sts.NewFromConfig(p.config("AKID", "secret", "")).AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(roleARNs + "caller"), RoleSessionName: aws.String("mine"),
	})
	if err != nil {
		t.Fatal(err)
	}
	caller := session(p, out.Credentials)
	machines, groups := ec2.NewFromConfig(caller), autoscaling.NewFromConfig(caller)
	one := aws.Int32(1)
	for _, c := range []struct {
		profile string
		may     bool
	}{{"p-weak", true}, {"weak", false}, {"empty", false}, {"none", false}} {
		templateWith(t, p, "t-"+c.profile, c.profile)
		spec := &autoscalingtypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("t-" + c.profile)}
		_, byName := machines.RunInstances(t.Context(), &ec2.RunInstancesInput{
			MinCount: one, MaxCount: one, ImageId: aws.String("ami-00000000"), InstanceType: "c5.large", DryRun: aws.Bool(true),
			IamInstanceProfile: &ec2types.IamInstanceProfileSpecification{Name: &c.profile},
		})
		_, byTemplate := machines.RunInstances(t.Context(), &ec2.RunInstancesInput{
			MinCount: one, MaxCount: one, DryRun: aws.Bool(true),
			LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: spec.LaunchTemplateName},
		})
		_, byConfiguration := groups.CreateLaunchConfiguration(t.Context(), &autoscaling.CreateLaunchConfigurationInput{
			LaunchConfigurationName: &c.profile, ImageId: aws.String("ami-00000000"), InstanceType: aws.String("c5.large"), IamInstanceProfile: &c.profile,
		})
		_, byGroup := groups.CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{
			AutoScalingGroupName: aws.String("g-" + c.profile), MinSize: aws.Int32(0), MaxSize: aws.Int32(0), AvailabilityZones: []string{"us-east-1a"},
			LaunchTemplate: spec,
		})
		_, byUpdate := groups.UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{
			AutoScalingGroupName: aws.String("g-p-weak"),
			MixedInstancesPolicy: &autoscalingtypes.MixedInstancesPolicy{LaunchTemplate: &autoscalingtypes.LaunchTemplate{LaunchTemplateSpecification: spec}},
		})
		for how, err := range map[string]error{
			"by name": byName, "by template": byTemplate, "by configuration": byConfiguration, "by group": byGroup, "by an update": byUpdate,
		} {
			got := code(err)
			if denied := got == "UnauthorizedOperation" || got == "AccessDenied"; denied == c.may || c.may && got != "" && got != "DryRunOperation" {
				t.Errorf("%s %s: %v", c.profile, how, err)
			}
		}
	}
	if _, err := groups.UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("g-p-weak"), MaxSize: one}); err != nil {
		t.Error(err)
	}
	for profile, may := range map[string]bool{"p-weak": true, "weak": false} {
		if err := makeStack(t, cloudformation.NewFromConfig(caller), profile); (err == nil) != may {
			t.Errorf("a stack of a group with %s: %v", profile, err)
		}
	}
}

// makeStack makes a stack of a group whose launch template has a profile, and waits for it.
func makeStack(t *testing.T, stacks *cloudformation.Client, profile string) error {
	t.Helper()
	name := aws.String("s-" + profile)
	_, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: name, TemplateBody: aws.String(`{"Resources": {
		"G": {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": {"MinSize": "0", "MaxSize": "0", "AvailabilityZones": ["us-east-1a"],
			"LaunchTemplate": {"LaunchTemplateName": "t-` + profile + `", "Version": "1"}}}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	waiter := cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 100*time.Millisecond
	})
	return waiter.Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: name}, time.Minute)
}
