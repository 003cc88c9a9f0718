package resources

import (
	"context"
	"reflect"
	"strings"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// loadBalancer has the properties of AWS::ElasticLoadBalancingV2::LoadBalancer. Its physical ID is the ARN.
type loadBalancer struct {
	Name                   *string                       `cfn:"create"`
	Scheme                 types.LoadBalancerSchemeEnum  `cfn:"create"`
	Type                   types.LoadBalancerTypeEnum    `cfn:"create"`
	IpAddressType          types.IpAddressType           `cfn:"write"`
	LoadBalancerAttributes []types.LoadBalancerAttribute `cfn:"write"`
	SecurityGroups         []string                      `cfn:"write"`
	SubnetMappings         []types.SubnetMapping         `cfn:"write"`
	Subnets                []string
	Tags                   []Tag
}

func elbTag(key, value *string) types.Tag { return types.Tag{Key: key, Value: value} }

func elbTagPair(t types.Tag) (key, value *string) { return t.Key, t.Value }

var _ = add(&kind[*loadBalancer]{
	name:       "AWS::ElasticLoadBalancingV2::LoadBalancer",
	live:       liveLoadBalancer,
	identifier: []string{"LoadBalancerArn"},
	attributes: []string{"CanonicalHostedZoneID", "DNSName", "LoadBalancerArn", "LoadBalancerFullName", "LoadBalancerName", "SecurityGroups"},
	create: func(ctx context.Context, s Step, b *loadBalancer) (string, error) {
		out, err := call.Do[elb.CreateLoadBalancerOutput](ctx, s.Services, &elb.CreateLoadBalancerInput{
			Name:           new(s.named(b.Name, 32)),
			Scheme:         b.Scheme,
			Type:           b.Type,
			IpAddressType:  b.IpAddressType,
			SecurityGroups: b.SecurityGroups,
			SubnetMappings: b.SubnetMappings,
			Subnets:        b.Subnets,
			Tags:           tagList(b.Tags, elbTag),
		})
		if err != nil {
			return "", err
		}
		arn := *out.LoadBalancers[0].LoadBalancerArn
		if err := setLoadBalancer(ctx, s, arn, &loadBalancer{}, b); err != nil {
			return "", undo(ctx, s, arn, b, deleteLoadBalancer, err)
		}
		return arn, nil
	},
	update: func(ctx context.Context, s Step, arn string, before, after *loadBalancer) error {
		if !reflect.DeepEqual(before.Subnets, after.Subnets) || !reflect.DeepEqual(before.SubnetMappings, after.SubnetMappings) {
			in := &elb.SetSubnetsInput{LoadBalancerArn: &arn, Subnets: after.Subnets, SubnetMappings: after.SubnetMappings}
			if err := did[elb.SetSubnetsOutput](ctx, s, in); err != nil {
				return err
			}
		}
		if !reflect.DeepEqual(before.SecurityGroups, after.SecurityGroups) {
			in := &elb.SetSecurityGroupsInput{LoadBalancerArn: &arn, SecurityGroups: after.SecurityGroups}
			if err := did[elb.SetSecurityGroupsOutput](ctx, s, in); err != nil {
				return err
			}
		}
		if err := setLoadBalancer(ctx, s, arn, before, after); err != nil {
			return err
		}
		return retagELB(ctx, s, arn, before.Tags, after.Tags)
	},
	delete: deleteLoadBalancer,
	settled: func(ctx context.Context, s Step, arn string, _ *loadBalancer) (bool, error) {
		is, err := describeLoadBalancer(ctx, s, arn)
		return err == nil && is.State.Code == types.LoadBalancerStateEnumActive, err
	},
	read: func(ctx context.Context, s Step, arn string, _ *loadBalancer) (Made, error) {
		is, err := describeLoadBalancer(ctx, s, arn)
		if err != nil {
			return Made{}, err
		}
		groups := []any{}
		for _, id := range is.SecurityGroups {
			groups = append(groups, id)
		}
		return Made{Attributes: map[string]any{
			"CanonicalHostedZoneID": *is.CanonicalHostedZoneId,
			"DNSName":               *is.DNSName,
			"LoadBalancerArn":       arn,
			"LoadBalancerFullName":  fullName(arn),
			"LoadBalancerName":      *is.LoadBalancerName,
			"SecurityGroups":        groups,
		}}, nil
	},
})

// fullName returns the part of a load balancer's ARN that metrics have: app/web/0123456789abcdef.
func fullName(arn string) string {
	_, name, _ := strings.Cut(arn, ":loadbalancer/")
	return name
}

func describeLoadBalancer(ctx context.Context, s Step, arn string) (types.LoadBalancer, error) {
	in := &elb.DescribeLoadBalancersInput{LoadBalancerArns: []string{arn}}
	out, err := call.Do[elb.DescribeLoadBalancersOutput](ctx, s.Services, in)
	if err != nil {
		return types.LoadBalancer{}, err
	}
	return out.LoadBalancers[0], nil
}

// setLoadBalancer sets the attributes that have changed.
func setLoadBalancer(ctx context.Context, s Step, arn string, before, after *loadBalancer) error {
	if len(after.LoadBalancerAttributes) == 0 || reflect.DeepEqual(before.LoadBalancerAttributes, after.LoadBalancerAttributes) {
		return nil
	}
	return did[elb.ModifyLoadBalancerAttributesOutput](ctx, s, &elb.ModifyLoadBalancerAttributesInput{
		LoadBalancerArn: &arn,
		Attributes:      after.LoadBalancerAttributes,
	})
}

func deleteLoadBalancer(ctx context.Context, s Step, arn string, _ *loadBalancer) error {
	return did[elb.DeleteLoadBalancerOutput](ctx, s, &elb.DeleteLoadBalancerInput{LoadBalancerArn: &arn})
}

// retagELB changes the tags of a load balancer or a target group.
func retagELB(ctx context.Context, s Step, arn string, before, after []Tag) error {
	return retag(before, after, func(gone []string) error {
		return did[elb.RemoveTagsOutput](ctx, s, &elb.RemoveTagsInput{ResourceArns: []string{arn}, TagKeys: gone})
	}, func() error {
		return did[elb.AddTagsOutput](ctx, s, &elb.AddTagsInput{ResourceArns: []string{arn}, Tags: tagList(after, elbTag)})
	})
}

func liveELBTags(ctx context.Context, s Step, arn string) ([]Tag, error) {
	out, err := call.Do[elb.DescribeTagsOutput](ctx, s.Services, &elb.DescribeTagsInput{ResourceArns: []string{arn}})
	if err != nil {
		return nil, err
	}
	return ownTags(out.TagDescriptions[0].Tags, elbTagPair), nil
}

func liveLoadBalancer(ctx context.Context, s Step, arn string, _ *loadBalancer) (*loadBalancer, error) {
	is, err := describeLoadBalancer(ctx, s, arn)
	if err != nil {
		return nil, err
	}
	live := &loadBalancer{Name: is.LoadBalancerName, Scheme: is.Scheme, Type: is.Type}
	for _, z := range is.AvailabilityZones {
		live.Subnets = append(live.Subnets, *z.SubnetId)
	}
	live.Tags, err = liveELBTags(ctx, s, arn)
	return live, err
}
