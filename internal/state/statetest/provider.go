package statetest

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	autoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2 "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// PutProvider puts a capacity provider with managed scaling, and its Auto Scaling group of an instance type under the same name.
func PutProvider(tx *state.Tx, name, instanceType string) {
	tx.LaunchTemplates.Put(&state.LaunchTemplate{
		LaunchTemplate: ec2.LaunchTemplate{
			LaunchTemplateId:     &name,
			LaunchTemplateName:   &name,
			DefaultVersionNumber: aws.Int64(1),
			LatestVersionNumber:  aws.Int64(1),
		},
		Versions: []ec2.LaunchTemplateVersion{{
			VersionNumber:      aws.Int64(1),
			LaunchTemplateData: &ec2.ResponseLaunchTemplateData{InstanceType: ec2.InstanceType(instanceType)},
		}},
	})
	tx.AutoScalingGroups.Put(&state.AutoScalingGroup{AutoScalingGroup: autoscaling.AutoScalingGroup{
		AutoScalingGroupName: &name,
		LaunchTemplate:       &autoscaling.LaunchTemplateSpecification{LaunchTemplateId: &name},
	}})
	tx.CapacityProviders.Put(&state.CapacityProvider{CapacityProvider: types.CapacityProvider{
		CapacityProviderArn: aws.String("arn:aws:ecs:us-east-1:000000000000:capacity-provider/" + name),
		Name:                &name,
		Status:              types.CapacityProviderStatusActive,
		AutoScalingGroupProvider: &types.AutoScalingGroupProvider{
			AutoScalingGroupArn: &name,
			ManagedScaling:      &types.ManagedScaling{Status: types.ManagedScalingStatusEnabled},
		},
	}})
}
