package plane

import (
	"cmp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/pintle/pintle/internal/iam/authorize"
	"github.com/pintle/pintle/internal/state"
)

// passedToInstances returns the role that a call passes to instances, if it does: that of the instance profile which the call names, or which
// the launch template has that the call names. A profile without a role, or one that doesn't exist, may get one when nobody is asked, so
// nobody who is limited may use it.
func (g gate) passedToInstances(in any) (all []authorize.Need) {
	v := g.plane.State.View()
	for _, profile := range profilesIn(v, in) {
		name := profile[strings.LastIndexByte(profile, '/')+1:]
		owner := g.plane.account()
		n := authorize.Need{Action: "iam:PassRole", Resource: owner.GlobalARN("iam", "instance-profile/"+name), PassedTo: "ec2.amazonaws.com"}
		if row := v.InstanceProfiles.Get(state.NameKey(name)); row != nil && row.Role != "" {
			n.Resource = g.plane.IAM.Complete(owner.GlobalARN("iam", "role/"+row.Role))
		}
		all = append(all, n)
	}
	return all
}

// profilesIn returns the names or ARNs of the instance profiles that a call gives to instances: one at most, but for a policy of mixed
// instances.
func profilesIn(v *state.View, in any) []string {
	switch in := in.(type) {
	case *ec2.RunInstancesInput:
		if p := in.IamInstanceProfile; p != nil {
			return given(cmp.Or(aws.ToString(p.Arn), aws.ToString(p.Name)))
		}
		if t := in.LaunchTemplate; t != nil {
			return profileOf(v, t.LaunchTemplateId, t.LaunchTemplateName, t.Version)
		}
	case *autoscaling.CreateLaunchConfigurationInput:
		return given(aws.ToString(in.IamInstanceProfile))
	case *autoscaling.CreateAutoScalingGroupInput:
		return profilesOfGroup(v, in.LaunchTemplate, in.MixedInstancesPolicy)
	case *autoscaling.UpdateAutoScalingGroupInput:
		return profilesOfGroup(v, in.LaunchTemplate, in.MixedInstancesPolicy)
	}
	return nil
}

// profilesOfGroup returns the profiles of the launch templates that a group is given.
func profilesOfGroup(v *state.View, t *autoscalingtypes.LaunchTemplateSpecification, m *autoscalingtypes.MixedInstancesPolicy) (all []string) {
	specs := []*autoscalingtypes.LaunchTemplateSpecification{t}
	if m != nil && m.LaunchTemplate != nil {
		specs = append(specs, m.LaunchTemplate.LaunchTemplateSpecification)
		for _, o := range m.LaunchTemplate.Overrides {
			specs = append(specs, o.LaunchTemplateSpecification)
		}
	}
	for _, s := range specs {
		if s != nil {
			all = append(all, profileOf(v, s.LaunchTemplateId, s.LaunchTemplateName, s.Version)...)
		}
	}
	return all
}

// profileOf returns the profile of a launch template's version. Where there is none of the two, the call is refused for that.
func profileOf(v *state.View, id, name, version *string) []string {
	t := v.FindLaunchTemplate(aws.ToString(id), aws.ToString(name))
	if t == nil {
		return nil
	}
	found := t.Version(aws.ToString(version))
	if found == nil || found.LaunchTemplateData == nil || found.LaunchTemplateData.IamInstanceProfile == nil {
		return nil
	}
	p := found.LaunchTemplateData.IamInstanceProfile
	return given(cmp.Or(aws.ToString(p.Arn), aws.ToString(p.Name)))
}

// given returns a text, if it is one.
func given(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}
