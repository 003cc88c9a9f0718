package resources

import (
	"context"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// targetGroup has the properties of AWS::ElasticLoadBalancingV2::TargetGroup. Its physical ID is the ARN.
type targetGroup struct {
	Name                       *string                            `cfn:"create"`
	Port                       *int32                             `cfn:"create"`
	Protocol                   types.ProtocolEnum                 `cfn:"create"`
	ProtocolVersion            *string                            `cfn:"create"`
	TargetType                 types.TargetTypeEnum               `cfn:"create"`
	VpcId                      *string                            `cfn:"create"`
	IpAddressType              types.TargetGroupIpAddressTypeEnum `cfn:"create"`
	HealthCheckEnabled         *bool
	HealthCheckIntervalSeconds *int32
	HealthCheckPath            *string
	HealthCheckPort            *string
	HealthCheckProtocol        types.ProtocolEnum
	HealthCheckTimeoutSeconds  *int32
	HealthyThresholdCount      *int32
	UnhealthyThresholdCount    *int32
	Matcher                    *types.Matcher
	TargetGroupAttributes      []types.TargetGroupAttribute `cfn:"write"`
	Targets                    []types.TargetDescription    `cfn:"write"`
	Tags                       []Tag
}

var _ = add(&kind[*targetGroup]{
	name:       "AWS::ElasticLoadBalancingV2::TargetGroup",
	live:       liveTargetGroup,
	identifier: []string{"TargetGroupArn"},
	attributes: []string{"LoadBalancerArns", "TargetGroupArn", "TargetGroupFullName", "TargetGroupName"},
	create: func(ctx context.Context, s Step, g *targetGroup) (string, error) {
		out, err := call.Do[elb.CreateTargetGroupOutput](ctx, s.Services, &elb.CreateTargetGroupInput{
			Name:                       new(s.named(g.Name, 32)),
			Port:                       g.Port,
			Protocol:                   g.Protocol,
			ProtocolVersion:            g.ProtocolVersion,
			TargetType:                 g.TargetType,
			VpcId:                      g.VpcId,
			IpAddressType:              g.IpAddressType,
			HealthCheckEnabled:         g.HealthCheckEnabled,
			HealthCheckIntervalSeconds: g.HealthCheckIntervalSeconds,
			HealthCheckPath:            g.HealthCheckPath,
			HealthCheckPort:            g.HealthCheckPort,
			HealthCheckProtocol:        g.HealthCheckProtocol,
			HealthCheckTimeoutSeconds:  g.HealthCheckTimeoutSeconds,
			HealthyThresholdCount:      g.HealthyThresholdCount,
			UnhealthyThresholdCount:    g.UnhealthyThresholdCount,
			Matcher:                    g.Matcher,
			Tags:                       tagList(g.Tags, elbTag),
		})
		if err != nil {
			return "", err
		}
		arn := *out.TargetGroups[0].TargetGroupArn
		if err := setTargetGroup(ctx, s, arn, &targetGroup{}, g); err != nil {
			return "", undo(ctx, s, arn, g, deleteTargetGroup, err)
		}
		return arn, nil
	},
	update: func(ctx context.Context, s Step, arn string, before, after *targetGroup) error {
		err := did[elb.ModifyTargetGroupOutput](ctx, s, &elb.ModifyTargetGroupInput{
			TargetGroupArn:             &arn,
			HealthCheckEnabled:         after.HealthCheckEnabled,
			HealthCheckIntervalSeconds: after.HealthCheckIntervalSeconds,
			HealthCheckPath:            after.HealthCheckPath,
			HealthCheckPort:            after.HealthCheckPort,
			HealthCheckProtocol:        after.HealthCheckProtocol,
			HealthCheckTimeoutSeconds:  after.HealthCheckTimeoutSeconds,
			HealthyThresholdCount:      after.HealthyThresholdCount,
			UnhealthyThresholdCount:    after.UnhealthyThresholdCount,
			Matcher:                    after.Matcher,
		})
		if err != nil {
			return err
		}
		if err := setTargetGroup(ctx, s, arn, before, after); err != nil {
			return err
		}
		return retagELB(ctx, s, arn, before.Tags, after.Tags)
	},
	delete: deleteTargetGroup,
	read: func(ctx context.Context, s Step, arn string, _ *targetGroup) (Made, error) {
		is, err := describeTargetGroup(ctx, s, arn)
		if err != nil {
			return Made{}, err
		}
		users := []any{}
		for _, user := range is.LoadBalancerArns {
			users = append(users, user)
		}
		return Made{Attributes: map[string]any{
			"LoadBalancerArns":    users,
			"TargetGroupArn":      arn,
			"TargetGroupFullName": arn[strings.LastIndexByte(arn, ':')+1:],
			"TargetGroupName":     *is.TargetGroupName,
		}}, nil
	},
})

func describeTargetGroup(ctx context.Context, s Step, arn string) (types.TargetGroup, error) {
	in := &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{arn}}
	out, err := call.Do[elb.DescribeTargetGroupsOutput](ctx, s.Services, in)
	if err != nil {
		return types.TargetGroup{}, err
	}
	return out.TargetGroups[0], nil
}

// setTargetGroup sets the attributes and targets that have changed.
func setTargetGroup(ctx context.Context, s Step, arn string, before, after *targetGroup) error {
	if len(after.TargetGroupAttributes) > 0 && !reflect.DeepEqual(before.TargetGroupAttributes, after.TargetGroupAttributes) {
		in := &elb.ModifyTargetGroupAttributesInput{TargetGroupArn: &arn, Attributes: after.TargetGroupAttributes}
		if err := did[elb.ModifyTargetGroupAttributesOutput](ctx, s, in); err != nil {
			return err
		}
	}
	var gone []types.TargetDescription
	for _, t := range before.Targets {
		if !hasTarget(after.Targets, t) {
			gone = append(gone, t)
		}
	}
	if len(gone) > 0 {
		in := &elb.DeregisterTargetsInput{TargetGroupArn: &arn, Targets: gone}
		if err := did[elb.DeregisterTargetsOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if len(after.Targets) == 0 {
		return nil
	}
	return did[elb.RegisterTargetsOutput](ctx, s, &elb.RegisterTargetsInput{TargetGroupArn: &arn, Targets: after.Targets})
}

func hasTarget(all []types.TargetDescription, t types.TargetDescription) bool {
	for _, other := range all {
		if aws.ToString(other.Id) == aws.ToString(t.Id) && aws.ToInt32(other.Port) == aws.ToInt32(t.Port) {
			return true
		}
	}
	return false
}

func deleteTargetGroup(ctx context.Context, s Step, arn string, _ *targetGroup) error {
	return did[elb.DeleteTargetGroupOutput](ctx, s, &elb.DeleteTargetGroupInput{TargetGroupArn: &arn})
}

func liveTargetGroup(ctx context.Context, s Step, arn string, _ *targetGroup) (*targetGroup, error) {
	is, err := describeTargetGroup(ctx, s, arn)
	if err != nil {
		return nil, err
	}
	live := &targetGroup{
		Name:                       is.TargetGroupName,
		Port:                       is.Port,
		Protocol:                   is.Protocol,
		ProtocolVersion:            is.ProtocolVersion,
		TargetType:                 is.TargetType,
		VpcId:                      is.VpcId,
		IpAddressType:              is.IpAddressType,
		HealthCheckEnabled:         is.HealthCheckEnabled,
		HealthCheckIntervalSeconds: is.HealthCheckIntervalSeconds,
		HealthCheckPath:            is.HealthCheckPath,
		HealthCheckPort:            is.HealthCheckPort,
		HealthCheckProtocol:        is.HealthCheckProtocol,
		HealthCheckTimeoutSeconds:  is.HealthCheckTimeoutSeconds,
		HealthyThresholdCount:      is.HealthyThresholdCount,
		UnhealthyThresholdCount:    is.UnhealthyThresholdCount,
		Matcher:                    is.Matcher,
	}
	live.Tags, err = liveELBTags(ctx, s, arn)
	return live, err
}
