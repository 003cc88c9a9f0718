package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// Instance is the type of single instances, which can signal as those of groups do.
const Instance = "AWS::EC2::Instance"

// instance has those properties of AWS::EC2::Instance that Pintle's machines can have. Others are refused when the template is read.
type instance struct {
	AvailabilityZone   *string                            `cfn:"create"`
	IamInstanceProfile *string                            `cfn:"create"`
	ImageId            *string                            `cfn:"create"`
	InstanceType       types.InstanceType                 `cfn:"create"`
	KeyName            *string                            `cfn:"create"`
	LaunchTemplate     *types.LaunchTemplateSpecification `cfn:"create,write"`
	SecurityGroupIds   []string                           `cfn:"create"`
	SecurityGroups     []string                           `cfn:"create,write"`
	SubnetId           *string                            `cfn:"create"`
	Tenancy            types.Tenancy                      `cfn:"create"`
	UserData           *string                            `cfn:"create,write"` // DescribeInstances doesn't tell
	Tags               []Tag
}

var _ = add(&kind[*instance]{
	name:       Instance,
	live:       liveInstance,
	identifier: []string{"InstanceId"},
	attributes: []string{
		"AvailabilityZone", "InstanceId", "PrivateDnsName", "PrivateIp", "PublicDnsName", "PublicIp", "State.Name", "VpcId",
	},
	find:   findEC2[*instance],
	create: runInstance,
	update: func(ctx context.Context, s Step, id string, before, after *instance) error {
		return retagEC2(ctx, s, id, before.Tags, after.Tags)
	},
	delete: func(ctx context.Context, s Step, id string, _ *instance) error {
		found, err := describeInstance(ctx, s, id)
		switch {
		case isMissing(err):
			return nil
		case err != nil:
			return err
		}
		if found.State.Name != types.InstanceStateNameShuttingDown {
			if err := did[ec2.TerminateInstancesOutput](ctx, s, &ec2.TerminateInstancesInput{InstanceIds: []string{id}}); err != nil {
				return err
			}
		}
		return ErrPending
	},
	settled: func(ctx context.Context, s Step, id string, _ *instance) (bool, error) {
		found, err := describeInstance(ctx, s, id)
		if isMissing(err) {
			return false, template.Errorf("Instance %s did not stabilize. Current state: terminated; Reason: %s", id, whyOver(found))
		}
		return err == nil && found.State.Name == types.InstanceStateNameRunning, err
	},
	read: func(ctx context.Context, s Step, id string, _ *instance) (Made, error) {
		found, err := describeInstance(ctx, s, id)
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{
			"AvailabilityZone": *found.Placement.AvailabilityZone,
			"InstanceId":       id,
			"PrivateDnsName":   aws.ToString(found.PrivateDnsName),
			"PrivateIp":        aws.ToString(found.PrivateIpAddress),
			"PublicDnsName":    aws.ToString(found.PublicDnsName),
			"PublicIp":         aws.ToString(found.PublicIpAddress),
			"State.Name":       string(found.State.Name),
			"VpcId":            aws.ToString(found.VpcId),
		}}, nil
	},
})

func runInstance(ctx context.Context, s Step, i *instance) (string, error) {
	tags, err := ec2Tags(s, types.ResourceTypeInstance, i.Tags)
	if err != nil {
		return "", err
	}
	in := &ec2.RunInstancesInput{
		MinCount:          aws.Int32(1),
		MaxCount:          aws.Int32(1),
		ClientToken:       &s.Token,
		ImageId:           i.ImageId,
		InstanceType:      i.InstanceType,
		KeyName:           i.KeyName,
		LaunchTemplate:    i.LaunchTemplate,
		SecurityGroupIds:  i.SecurityGroupIds,
		SecurityGroups:    i.SecurityGroups,
		SubnetId:          i.SubnetId,
		UserData:          i.UserData,
		TagSpecifications: tags,
	}
	if i.AvailabilityZone != nil || i.Tenancy != "" {
		in.Placement = &types.Placement{AvailabilityZone: i.AvailabilityZone, Tenancy: i.Tenancy}
	}
	if i.IamInstanceProfile != nil {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: i.IamInstanceProfile}
	}
	out, err := call.Do[ec2.RunInstancesOutput](ctx, s.Services, in)
	if err != nil {
		return "", err
	}
	return *out.Instances[0].InstanceId, nil
}

// describeInstance returns an instance. One that is over is missing, and returned too as far as it's known.
func describeInstance(ctx context.Context, s Step, id string) (*types.Instance, error) {
	out, err := call.Do[ec2.DescribeInstancesOutput](ctx, s.Services, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return nil, err
	}
	found := &out.Reservations[0].Instances[0]
	if found.State.Name == types.InstanceStateNameTerminated {
		return found, errMissing
	}
	return found, nil
}

// whyOver returns why an instance is over.
func whyOver(i *types.Instance) string {
	if i == nil || i.StateReason == nil {
		return "unknown"
	}
	return aws.ToString(i.StateReason.Message)
}

func liveInstance(ctx context.Context, s Step, id string, asked *instance) (*instance, error) {
	is, err := describeInstance(ctx, s, id)
	if err != nil {
		return nil, err
	}
	live := &instance{
		AvailabilityZone: is.Placement.AvailabilityZone,
		ImageId:          is.ImageId,
		InstanceType:     is.InstanceType,
		KeyName:          is.KeyName,
		SubnetId:         is.SubnetId,
		Tenancy:          is.Placement.Tenancy,
		Tags:             ownTags(is.Tags, ec2TagPair),
	}
	if p := is.IamInstanceProfile; p != nil {
		live.IamInstanceProfile = asGiven(asked.IamInstanceProfile, (*p.Arn)[strings.LastIndexByte(*p.Arn, '/')+1:])
	}
	for _, g := range is.SecurityGroups {
		live.SecurityGroupIds = append(live.SecurityGroupIds, *g.GroupId)
	}
	return live, nil
}
