package elb

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// maxListeners is the quota of a load balancer's listeners.
const maxListeners = 50

// CreateListener creates a listener. The same call once more returns the same listener.
func (s *Service) CreateListener(ctx context.Context, in *api.CreateListenerInput) (*api.CreateListenerOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	actions, err := completeActions(in.DefaultActions)
	if err != nil {
		return nil, err
	}
	var row *state.Listener
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		b, err := findLoadBalancer(tx.View, in.LoadBalancerArn)
		if err != nil {
			return err
		}
		id := newID()
		arn := below(*b.LoadBalancerArn, "loadbalancer", "listener", id)
		made := &state.Listener{
			Listener: types.Listener{
				ListenerArn:     &arn,
				LoadBalancerArn: b.LoadBalancerArn,
				Port:            in.Port,
				Protocol:        in.Protocol,
				SslPolicy:       in.SslPolicy,
				Certificates:    in.Certificates,
				DefaultActions:  actions,
				AlpnPolicy:      in.AlpnPolicy,
			},
			DefaultRule: below(arn, "listener", "listener-rule", newID()),
			Tags:        in.Tags,
		}
		if err := s.completeListener(tx.View, b, made, in.MutualAuthentication); err != nil {
			return err
		}
		row, err = putListener(tx, made)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.CreateListenerOutput{Listeners: []types.Listener{row.Listener}}, nil
}

// putListener puts a new listener, unless there is the same one already.
func putListener(tx *state.Tx, made *state.Listener) (*state.Listener, error) {
	n := 0
	for other := range tx.Listeners.By(state.ListenersByLoadBalancer, *made.LoadBalancerArn) {
		n++
		switch {
		case *other.Port != *made.Port:
		case sameListener(other, made):
			return other, nil
		default:
			return nil, duplicateListener(made)
		}
	}
	if n >= maxListeners {
		return nil, &types.TooManyListenersException{Message: account.Message("A load balancer can have at most %d listeners", maxListeners)}
	}
	tx.Listeners.Put(made)
	return made, nil
}

func duplicateListener(l *state.Listener) error {
	return &types.DuplicateListenerException{Message: account.Message(
		"A listener already exists on this port for this load balancer '%s'", *l.LoadBalancerArn)}
}

func sameListener(a, b *state.Listener) bool {
	certificate := func(x, y types.Certificate) bool { return text(x.CertificateArn) == text(y.CertificateArn) }
	return a.Protocol == b.Protocol && text(a.SslPolicy) == text(b.SslPolicy) && slices.Equal(a.AlpnPolicy, b.AlpnPolicy) && sameTags(a.Tags, b.Tags) &&
		slices.EqualFunc(a.Certificates, b.Certificates, certificate) && sameActions(a.DefaultActions, b.DefaultActions)
}

// completeListener fills in what a listener doesn't say, and refuses one that can't be carried out.
func (s *Service) completeListener(v *state.View, b *state.LoadBalancer, l *state.Listener, mutual *types.MutualAuthenticationAttributes) error {
	if err := checkProtocol(b, l); err != nil {
		return err
	}
	if err := checkALPN(l); err != nil {
		return err
	}
	if mutual != nil && aws.ToString(mutual.Mode) != "" && *mutual.Mode != "off" {
		return notSupported("Mutual authentication with mode '" + *mutual.Mode + "'")
	}
	if err := s.checkSecurity(v, l); err != nil {
		return err
	}
	return checkListener(v, b, l, nil)
}

// alpnPolicies are those that AWS has.
var alpnPolicies = []string{"None", routing.HTTP1Only, routing.HTTP2Only, routing.HTTP2Optional, routing.HTTP2Preferred}

func checkALPN(l *state.Listener) error {
	bad := func(format string, args ...any) error {
		return &types.ALPNPolicyNotSupportedException{Message: account.Message(format, args...)}
	}
	switch {
	case len(l.AlpnPolicy) == 0:
		return nil
	case l.Protocol != types.ProtocolEnumTls:
		return bad("ALPN policies are not supported for listeners with the %s protocol", l.Protocol)
	case len(l.AlpnPolicy) > 1:
		return bad("You can specify one ALPN policy per listener")
	case !slices.Contains(alpnPolicies, l.AlpnPolicy[0]):
		return bad("ALPN policy '%s' must be one of '%s'", l.AlpnPolicy[0], strings.Join(alpnPolicies, ", "))
	}
	return nil
}

// networkListeners are the protocols of network load balancers' listeners.
var networkListeners = []types.ProtocolEnum{types.ProtocolEnumUdp, types.ProtocolEnumTcp, types.ProtocolEnumTls, types.ProtocolEnumTcpUdp}

// checkProtocol refuses protocols of the other kind of load balancer, and those that proxies can't carry.
func checkProtocol(b *state.LoadBalancer, l *state.Listener) error {
	switch {
	case l.Port == nil:
		return invalid("A listener port must be specified")
	case l.Protocol == "":
		return invalid("A listener protocol must be specified")
	}
	valid := []types.ProtocolEnum{types.ProtocolEnumHttp, types.ProtocolEnumHttps}
	if b.Type == types.LoadBalancerTypeEnumNetwork {
		valid = networkListeners
		if !slices.Contains(carried, l.Protocol) {
			return badProtocol("Listeners of protocol '%s' are not supported by Pintle", l.Protocol)
		}
	}
	if !slices.Contains(valid, l.Protocol) {
		return invalid("Listener protocol '%s' must be one of '%s'", l.Protocol, words(valid))
	}
	return nil
}

// checkSecurity checks the certificate and the security policy of a listener for HTTPS or TLS, and refuses those of others.
func (s *Service) checkSecurity(v *state.View, l *state.Listener) error {
	if !routing.IsEncrypted(string(l.Protocol)) {
		if len(l.Certificates) > 0 || l.SslPolicy != nil {
			return badConfiguration("Certificates and security policies cannot be specified for listeners of protocol %s", l.Protocol)
		}
		return nil
	}
	if len(l.Certificates) != 1 {
		return badConfiguration("You must provide a list containing exactly one certificate if the listener protocol is %s", l.Protocol)
	}
	if err := s.checkCertificates(v, l.Certificates); err != nil {
		return err
	}
	l.Certificates = []types.Certificate{{CertificateArn: l.Certificates[0].CertificateArn}}
	l.SslPolicy = cmp.Or(l.SslPolicy, aws.String(defaultPolicy))
	if securityPolicy(*l.SslPolicy) == nil {
		return &types.SSLPolicyNotFoundException{Message: account.Message("SSL policy '%s' not found, or not supported by Pintle", *l.SslPolicy)}
	}
	return nil
}

// DescribeListeners lists the listeners of a load balancer, or those with the given ARNs.
func (s *Service) DescribeListeners(_ context.Context, in *api.DescribeListenersInput) (*api.DescribeListenersOutput, error) {
	v := s.store.View()
	var rows []*state.Listener
	switch {
	case in.LoadBalancerArn != nil && len(in.ListenerArns) > 0:
		return nil, invalid("You cannot specify both listener ARNs and a load balancer ARN")
	case in.LoadBalancerArn != nil:
		if _, err := findLoadBalancer(v, in.LoadBalancerArn); err != nil {
			return nil, err
		}
		rows = slices.Collect(v.Listeners.By(state.ListenersByLoadBalancer, *in.LoadBalancerArn))
	case len(in.ListenerArns) == 0:
		return nil, invalid("You must specify either listener ARNs or a load balancer ARN")
	}
	for _, arn := range in.ListenerArns {
		row := v.Listeners.Get(arn)
		if row == nil {
			return nil, &types.ListenerNotFoundException{Message: account.Message("One or more listeners not found")}
		}
		rows = append(rows, row)
	}
	page, next, err := account.Ordered(listing("DescribeListeners"), rows, in.PageSize, in.Marker,
		func(l *state.Listener) string { return *l.ListenerArn })
	if err != nil {
		return nil, err
	}
	out := &api.DescribeListenersOutput{Listeners: []types.Listener{}, NextMarker: next}
	for _, row := range page {
		out.Listeners = append(out.Listeners, row.Listener)
	}
	return out, nil
}

// ModifyListener changes a listener.
func (s *Service) ModifyListener(ctx context.Context, in *api.ModifyListenerInput) (*api.ModifyListenerOutput, error) {
	row, err := s.changeListener(ctx, in.ListenerArn, func(tx *state.Tx, l *state.Listener) (err error) {
		if len(in.DefaultActions) > 0 {
			if l.DefaultActions, err = completeActions(in.DefaultActions); err != nil {
				return err
			}
		}
		l.Port = cmp.Or(in.Port, l.Port)
		if in.Protocol != "" && in.Protocol != l.Protocol {
			l.Protocol = in.Protocol
			l.Certificates, l.More, l.SslPolicy, l.AlpnPolicy = nil, nil, nil, nil
		}
		l.SslPolicy = cmp.Or(in.SslPolicy, l.SslPolicy)
		if len(in.AlpnPolicy) > 0 {
			l.AlpnPolicy = in.AlpnPolicy
		}
		if len(in.Certificates) > 0 {
			l.Certificates = in.Certificates
		}
		for other := range tx.Listeners.By(state.ListenersByLoadBalancer, *l.LoadBalancerArn) {
			if *other.ListenerArn != *l.ListenerArn && *other.Port == *l.Port {
				return duplicateListener(l)
			}
		}
		b, err := findLoadBalancer(tx.View, l.LoadBalancerArn)
		if err != nil {
			return err
		}
		if err := s.completeListener(tx.View, b, l, in.MutualAuthentication); err != nil {
			return err
		}
		for _, r := range tx.RulesOf(*l.ListenerArn) { // they depend on the protocol
			if err := checkListener(tx.View, b, l, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.ModifyListenerOutput{Listeners: []types.Listener{row.Listener}}, nil
}

// DeleteListener deletes a listener with its rules.
func (s *Service) DeleteListener(ctx context.Context, in *api.DeleteListenerInput) (*api.DeleteListenerOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := findListener(tx.View, in.ListenerArn); err != nil {
			return err
		}
		tx.DeleteListener(*in.ListenerArn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteListenerOutput{}, nil
}

// kindOfListener returns which attributes a listener has: an application load balancer's, or those of its protocol.
func kindOfListener(l *state.Listener) string {
	if slices.Contains(networkListeners, l.Protocol) {
		return string(l.Protocol)
	}
	return application[0]
}

// DescribeListenerAttributes lists a listener's attributes.
func (s *Service) DescribeListenerAttributes(
	_ context.Context, in *api.DescribeListenerAttributesInput,
) (*api.DescribeListenerAttributesOutput, error) {
	row, err := findListener(s.store.View(), in.ListenerArn)
	if err != nil {
		return nil, err
	}
	return &api.DescribeListenerAttributesOutput{Attributes: listenerAttributesOf(row)}, nil
}

func listenerAttributesOf(row *state.Listener) (out []types.ListenerAttribute) {
	for _, p := range listAttributes(listenerAttributes, kindOfListener(row), row.Attributes) {
		out = append(out, types.ListenerAttribute{Key: &p.key, Value: &p.value})
	}
	return out
}

// ModifyListenerAttributes changes attributes of a listener.
func (s *Service) ModifyListenerAttributes(
	ctx context.Context, in *api.ModifyListenerAttributesInput,
) (*api.ModifyListenerAttributesOutput, error) {
	var given []pair
	for _, a := range in.Attributes {
		given = append(given, pair{text(a.Key), text(a.Value)})
	}
	row, err := s.changeListener(ctx, in.ListenerArn, func(_ *state.Tx, l *state.Listener) (err error) {
		l.Attributes, err = setAttributes(listenerAttributes, kindOfListener(l), l.Attributes, given)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.ModifyListenerAttributesOutput{Attributes: listenerAttributesOf(row)}, nil
}
