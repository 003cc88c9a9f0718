package resources

import (
	"context"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// elbListener has the properties of AWS::ElasticLoadBalancingV2::Listener. Its physical ID is the ARN.
type elbListener struct {
	LoadBalancerArn      *string        `cfn:"required,create"`
	DefaultActions       []types.Action `cfn:"required"`
	Port                 *int32
	Protocol             types.ProtocolEnum
	SslPolicy            *string
	AlpnPolicy           []string                              `cfn:"write"`
	Certificates         []types.Certificate                   `cfn:"write"`
	ListenerAttributes   []types.ListenerAttribute             `cfn:"write"`
	MutualAuthentication *types.MutualAuthenticationAttributes `cfn:"write"`
}

var _ = add(&kind[*elbListener]{
	name:       "AWS::ElasticLoadBalancingV2::Listener",
	live:       liveListener,
	identifier: []string{"ListenerArn"},
	attributes: []string{"ListenerArn"},
	create: func(ctx context.Context, s Step, l *elbListener) (string, error) {
		out, err := call.Do[elb.CreateListenerOutput](ctx, s.Services, &elb.CreateListenerInput{
			LoadBalancerArn:      l.LoadBalancerArn,
			DefaultActions:       l.DefaultActions,
			Port:                 l.Port,
			Protocol:             l.Protocol,
			SslPolicy:            l.SslPolicy,
			AlpnPolicy:           l.AlpnPolicy,
			Certificates:         l.Certificates,
			MutualAuthentication: l.MutualAuthentication,
		})
		if err != nil {
			return "", err
		}
		arn := *out.Listeners[0].ListenerArn
		if err := setListener(ctx, s, arn, &elbListener{}, l); err != nil {
			return "", undo(ctx, s, arn, l, deleteListener, err)
		}
		return arn, nil
	},
	update: func(ctx context.Context, s Step, arn string, before, after *elbListener) error {
		err := did[elb.ModifyListenerOutput](ctx, s, &elb.ModifyListenerInput{
			ListenerArn:          &arn,
			DefaultActions:       after.DefaultActions,
			Port:                 after.Port,
			Protocol:             after.Protocol,
			SslPolicy:            after.SslPolicy,
			AlpnPolicy:           after.AlpnPolicy,
			Certificates:         after.Certificates,
			MutualAuthentication: after.MutualAuthentication,
		})
		if err != nil {
			return err
		}
		return setListener(ctx, s, arn, before, after)
	},
	delete: deleteListener,
	read: func(ctx context.Context, s Step, arn string, _ *elbListener) (Made, error) {
		if _, err := describeListener(ctx, s, arn); err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"ListenerArn": arn}}, nil
	},
})

func describeListener(ctx context.Context, s Step, arn string) (types.Listener, error) {
	out, err := call.Do[elb.DescribeListenersOutput](ctx, s.Services, &elb.DescribeListenersInput{ListenerArns: []string{arn}})
	if err != nil {
		return types.Listener{}, err
	}
	return out.Listeners[0], nil
}

// setListener sets the attributes that have changed.
func setListener(ctx context.Context, s Step, arn string, before, after *elbListener) error {
	if len(after.ListenerAttributes) == 0 || reflect.DeepEqual(before.ListenerAttributes, after.ListenerAttributes) {
		return nil
	}
	return did[elb.ModifyListenerAttributesOutput](ctx, s, &elb.ModifyListenerAttributesInput{
		ListenerArn: &arn,
		Attributes:  after.ListenerAttributes,
	})
}

func deleteListener(ctx context.Context, s Step, arn string, _ *elbListener) error {
	return did[elb.DeleteListenerOutput](ctx, s, &elb.DeleteListenerInput{ListenerArn: &arn})
}

func liveListener(ctx context.Context, s Step, arn string, asked *elbListener) (*elbListener, error) {
	is, err := describeListener(ctx, s, arn)
	if err != nil {
		return nil, err
	}
	return &elbListener{
		LoadBalancerArn: is.LoadBalancerArn,
		DefaultActions:  actionsAs(asked.DefaultActions, is.DefaultActions),
		Port:            is.Port,
		Protocol:        is.Protocol,
		SslPolicy:       is.SslPolicy,
	}, nil
}

// actionsAs returns the actions that there are in the form in which others are: AWS lists forwards in two forms, and redirects with all parts.
func actionsAs(asked, are []types.Action) []types.Action {
	out := slices.Clone(are)
	for i := range out {
		a := &out[i]
		if i >= len(asked) {
			break
		}
		form := asked[i]
		if form.ForwardConfig == nil && a.TargetGroupArn != nil {
			a.ForwardConfig = nil
		}
		if form.TargetGroupArn == nil && a.ForwardConfig != nil {
			a.TargetGroupArn = nil
		}
		if c, f := a.RedirectConfig, form.RedirectConfig; c != nil && f != nil {
			a.RedirectConfig = &types.RedirectActionConfig{
				StatusCode: c.StatusCode,
				Protocol:   unlessDefault(f.Protocol, c.Protocol, "#{protocol}"),
				Host:       unlessDefault(f.Host, c.Host, "#{host}"),
				Port:       unlessDefault(f.Port, c.Port, "#{port}"),
				Path:       unlessDefault(f.Path, c.Path, "/#{path}"),
				Query:      unlessDefault(f.Query, c.Query, "#{query}"),
			}
		}
		if c, f := a.ForwardConfig, form.ForwardConfig; c != nil && f != nil {
			a.ForwardConfig = forwardAs(f, c)
		}
	}
	return out
}

// unlessDefault returns what is there, or nothing if that's the default and nobody asked for it.
func unlessDefault(asked, is *string, otherwise string) *string {
	if asked == nil && aws.ToString(is) == otherwise {
		return nil
	}
	return is
}

func forwardAs(asked, is *types.ForwardActionConfig) *types.ForwardActionConfig {
	c := *is
	if asked.TargetGroupStickinessConfig == nil && !aws.ToBool(c.TargetGroupStickinessConfig.Enabled) {
		c.TargetGroupStickinessConfig = nil
	}
	c.TargetGroups = slices.Clone(c.TargetGroups)
	for i := range c.TargetGroups {
		if i < len(asked.TargetGroups) && asked.TargetGroups[i].Weight == nil && aws.ToInt32(c.TargetGroups[i].Weight) == 1 {
			c.TargetGroups[i].Weight = nil
		}
	}
	return &c
}

// listenerCertificate has the properties of AWS::ElasticLoadBalancingV2::ListenerCertificate: more certificates of a listener.
type listenerCertificate struct {
	ListenerArn  *string             `cfn:"required,create"`
	Certificates []types.Certificate `cfn:"required,write"`
}

var _ = add(&kind[*listenerCertificate]{
	name:       "AWS::ElasticLoadBalancingV2::ListenerCertificate",
	identifier: []string{"Id"},
	attributes: []string{"Id"},
	create: func(ctx context.Context, s Step, c *listenerCertificate) (string, error) {
		err := did[elb.AddListenerCertificatesOutput](ctx, s, &elb.AddListenerCertificatesInput{
			ListenerArn:  c.ListenerArn,
			Certificates: c.Certificates,
		})
		return s.generated(128), err
	},
	update: func(ctx context.Context, s Step, _ string, before, after *listenerCertificate) error {
		err := did[elb.AddListenerCertificatesOutput](ctx, s, &elb.AddListenerCertificatesInput{
			ListenerArn:  after.ListenerArn,
			Certificates: after.Certificates,
		})
		if err != nil {
			return err
		}
		kept := map[string]bool{}
		for _, c := range after.Certificates {
			kept[aws.ToString(c.CertificateArn)] = true
		}
		var gone []types.Certificate
		for _, c := range before.Certificates {
			if !kept[aws.ToString(c.CertificateArn)] {
				gone = append(gone, c)
			}
		}
		if len(gone) == 0 {
			return nil
		}
		return removeCertificates(ctx, s, after.ListenerArn, gone)
	},
	delete: func(ctx context.Context, s Step, _ string, c *listenerCertificate) error {
		return removeCertificates(ctx, s, c.ListenerArn, c.Certificates)
	},
	read: func(ctx context.Context, s Step, id string, c *listenerCertificate) (Made, error) {
		if _, err := describeListener(ctx, s, *c.ListenerArn); err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Id": id}}, nil
	},
})

func removeCertificates(ctx context.Context, s Step, listener *string, gone []types.Certificate) error {
	return did[elb.RemoveListenerCertificatesOutput](ctx, s, &elb.RemoveListenerCertificatesInput{ListenerArn: listener, Certificates: gone})
}
