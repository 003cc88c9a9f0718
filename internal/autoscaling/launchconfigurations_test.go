package autoscaling

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

func configuration(name string) *api.CreateLaunchConfigurationInput {
	return &api.CreateLaunchConfigurationInput{
		LaunchConfigurationName: &name,
		ImageId:                 aws.String("ami-00000000"),
		InstanceType:            aws.String("t3.micro"),
	}
}

// TestLaunchConfiguration takes a launch configuration through its life: made, shown with AWS's defaults, used by a group, kept while it is
// used, and deleted.
func TestLaunchConfiguration(t *testing.T) {
	w := newWorld(t)
	w.must(errOf(w.CreateLaunchConfiguration(t.Context(), configuration("lc"))))
	like := configuration("like")
	like.ImageId, like.InstanceType = nil, nil
	like.InstanceId = &serves
	w.must(errOf(w.CreateLaunchConfiguration(t.Context(), like)))
	out, err := w.DescribeLaunchConfigurations(t.Context(), &api.DescribeLaunchConfigurationsInput{})
	if err != nil || len(out.LaunchConfigurations) != 2 {
		t.Fatalf("%+v %v", out, err)
	}
	c := out.LaunchConfigurations[0]
	if *c.LaunchConfigurationName != "lc" || *c.KeyName != "" || *c.UserData != "" || *c.KernelId != "" || *c.EbsOptimized ||
		!*c.InstanceMonitoring.Enabled || c.BlockDeviceMappings == nil || c.SecurityGroups == nil || c.LaunchConfigurationARN == nil {
		t.Errorf("%+v", c)
	}
	if copied := out.LaunchConfigurations[1]; *copied.InstanceType != "c5.large" || *copied.ImageId != "ami-00000000" {
		t.Errorf("that of an instance is %+v", copied)
	}
	in := groupInput("old")
	in.LaunchTemplate, in.LaunchConfigurationName = nil, aws.String("lc")
	w.must(errOf(w.CreateAutoScalingGroup(t.Context(), in)))
	remove := &api.DeleteLaunchConfigurationInput{LaunchConfigurationName: aws.String("lc")}
	if err := errOf(w.DeleteLaunchConfiguration(t.Context(), remove)); err == nil {
		t.Error("deleted while a group uses it")
	}
	w.must(errOf(w.UpdateAutoScalingGroup(t.Context(), &api.UpdateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("old"),
		LaunchTemplate:       &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("lt")},
	})))
	if g := w.store.View().AutoScalingGroups.Get("old"); g.LaunchConfigurationName != nil || g.LaunchTemplate == nil {
		t.Errorf("with a template instead, the group is %+v", g)
	}
	w.must(errOf(w.DeleteLaunchConfiguration(t.Context(), remove)))
}

func TestLaunchConfigurationRefuses(t *testing.T) {
	bad := func(name, code, says string, change func(*api.CreateLaunchConfigurationInput)) refusedCall {
		return refusedCall{name, func(w *world, ctx context.Context) error {
			in := configuration("lc")
			change(in)
			return errOf(w.CreateLaunchConfiguration(ctx, in))
		}, code, says}
	}
	type in = *api.CreateLaunchConfigurationInput
	refuseAll(t, []refusedCall{
		bad("a name with a colon", invalidCode, "LaunchConfigurationName", func(in in) { in.LaunchConfigurationName = aws.String("a:b") }),
		bad("no image", invalidCode, "both the ImageId and InstanceType", func(in in) { in.ImageId = nil }),
		bad("no image's id", invalidCode, "ami-", func(in in) { in.ImageId = aws.String("debian") }),
		bad("no type", invalidCode, "both the ImageId and InstanceType", func(in in) { in.InstanceType = nil }),
		bad("a type", invalidCode, "z9.large", func(in in) { in.InstanceType = aws.String("z9.large") }),
		bad("an instance", invalidCode, "does not exist", func(in in) { in.InstanceId = aws.String(id(99)) }),
		bad("Spot", invalidCode, "SpotPrice", func(in in) { in.SpotPrice = aws.String("0.1") }),
		bad("a tenancy", invalidCode, "PlacementTenancy", func(in in) { in.PlacementTenancy = aws.String("dedicated") }),
		bad("user data", invalidCode, "UserData", func(in in) { in.UserData = aws.String("#!") }),
		{"delete one that there is not", func(w *world, ctx context.Context) error {
			return errOf(w.DeleteLaunchConfiguration(ctx, &api.DeleteLaunchConfigurationInput{LaunchConfigurationName: aws.String("no")}))
		}, invalidCode, "not found"},
	})
	w := newWorld(t)
	w.must(errOf(w.CreateLaunchConfiguration(t.Context(), configuration("lc"))))
	if err := errOf(w.CreateLaunchConfiguration(t.Context(), configuration("lc"))); err == nil {
		t.Error("two of one name")
	}
}

// TestMixedDefaults: a mixed instances policy is shown with AWS's defaults and a list of overrides.
func TestMixedDefaults(t *testing.T) {
	w := newWorld(t)
	in := groupInput("mixed")
	in.LaunchTemplate = nil
	in.MixedInstancesPolicy = &types.MixedInstancesPolicy{LaunchTemplate: &types.LaunchTemplate{
		LaunchTemplateSpecification: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("lt")},
	}}
	w.must(errOf(w.CreateAutoScalingGroup(t.Context(), in)))
	out, err := w.DescribeAutoScalingGroups(t.Context(), &api.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{"mixed"}})
	if err != nil || len(out.AutoScalingGroups) != 1 {
		t.Fatal(out, err)
	}
	m := out.AutoScalingGroups[0].MixedInstancesPolicy
	d := m.InstancesDistribution
	if d == nil || *d.OnDemandAllocationStrategy != "prioritized" || *d.OnDemandBaseCapacity != 0 ||
		*d.OnDemandPercentageAboveBaseCapacity != 100 || *d.SpotAllocationStrategy != "lowest-price" || *d.SpotInstancePools != 2 {
		t.Errorf("distribution: %+v", d)
	}
	if m.LaunchTemplate.Overrides == nil {
		t.Error("no list of overrides")
	}
}

// TestHealthBeforeService: an instance that isn't in service yet is in its grace period.
func TestHealthBeforeService(t *testing.T) {
	w := newWorld(t)
	w.must(errOf(w.UpdateAutoScalingGroup(t.Context(), &api.UpdateAutoScalingGroupInput{
		AutoScalingGroupName:   aws.String("g"),
		HealthCheckGracePeriod: aws.Int32(60),
	})))
	for _, c := range []struct {
		respects *bool
		want     bool
	}{{nil, false}, {aws.Bool(true), false}, {aws.Bool(false), true}} {
		w.must(errOf(w.SetInstanceHealth(t.Context(), &api.SetInstanceHealthInput{
			InstanceId:               &waits,
			HealthStatus:             aws.String("Unhealthy"),
			ShouldRespectGracePeriod: c.respects,
		})))
		if got := w.store.View().Instances.Get(waits).Member.Unhealthy; got != c.want {
			t.Errorf("unhealthy is %t, want %t", got, c.want)
		}
	}
}
