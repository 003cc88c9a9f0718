package elb

import (
	"context"
	"slices"

	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
)

// maxCertificates is the quota of a listener's certificates, without the default one.
const maxCertificates = 25

// checkCertificates refuses certificates that ACM doesn't have.
func (s *Service) checkCertificates(v *state.View, given []types.Certificate) error {
	for _, c := range given {
		switch arn := text(c.CertificateArn); {
		case arn == "":
			return invalid("A certificate ARN must be specified")
		case v.Certificates.Get(arn) == nil:
			return &types.CertificateNotFoundException{Message: account.Message("Certificate '%s' not found", arn)}
		}
	}
	return nil
}

// AddListenerCertificates adds certificates that clients get by the name that they ask for.
func (s *Service) AddListenerCertificates(ctx context.Context, in *api.AddListenerCertificatesInput) (*api.AddListenerCertificatesOutput, error) {
	row, err := s.changeListener(ctx, in.ListenerArn, func(tx *state.Tx, l *state.Listener) error {
		if !routing.IsEncrypted(string(l.Protocol)) {
			return badConfiguration("Certificates cannot be specified for listeners of protocol %s", l.Protocol)
		}
		if err := s.checkCertificates(tx.View, in.Certificates); err != nil {
			return err
		}
		l.More = slices.Clone(l.More)
		for _, c := range in.Certificates {
			if !slices.Contains(l.More, *c.CertificateArn) {
				l.More = append(l.More, *c.CertificateArn)
			}
		}
		if len(l.More) > maxCertificates {
			return &types.TooManyCertificatesException{Message: account.Message("A listener can have at most %d certificates", maxCertificates)}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.AddListenerCertificatesOutput{Certificates: certificatesOf(row)[1:]}, nil
}

// RemoveListenerCertificates removes certificates, but not the default one.
func (s *Service) RemoveListenerCertificates(
	ctx context.Context, in *api.RemoveListenerCertificatesInput,
) (*api.RemoveListenerCertificatesOutput, error) {
	_, err := s.changeListener(ctx, in.ListenerArn, func(_ *state.Tx, l *state.Listener) error {
		l.More = slices.Clone(l.More)
		for _, c := range in.Certificates {
			if len(l.Certificates) > 0 && text(l.Certificates[0].CertificateArn) == text(c.CertificateArn) && !slices.Contains(l.More, text(c.CertificateArn)) {
				return notPermitted("The default certificate '%s' cannot be removed", text(c.CertificateArn))
			}
			l.More = slices.DeleteFunc(l.More, func(arn string) bool { return arn == text(c.CertificateArn) })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.RemoveListenerCertificatesOutput{}, nil
}

// certificatesOf returns a listener's certificates, the default one first.
func certificatesOf(l *state.Listener) (out []types.Certificate) {
	for _, c := range l.Certificates {
		out = append(out, types.Certificate{CertificateArn: c.CertificateArn, IsDefault: new(true)})
	}
	for _, arn := range l.More {
		out = append(out, types.Certificate{CertificateArn: &arn, IsDefault: new(false)})
	}
	return out
}

// DescribeListenerCertificates lists a listener's certificates.
func (s *Service) DescribeListenerCertificates(
	_ context.Context, in *api.DescribeListenerCertificatesInput,
) (*api.DescribeListenerCertificatesOutput, error) {
	row, err := findListener(s.store.View(), in.ListenerArn)
	if err != nil {
		return nil, err
	}
	page, next, err := account.Ordered(listing("DescribeListenerCertificates"), certificatesOf(row), in.PageSize, in.Marker,
		func(c types.Certificate) string { return *c.CertificateArn })
	if err != nil {
		return nil, err
	}
	return &api.DescribeListenerCertificatesOutput{Certificates: append([]types.Certificate{}, page...), NextMarker: next}, nil
}

// defaultPolicy is the security policy of listeners that name none.
const defaultPolicy = "ELBSecurityPolicy-2016-08"

// policy is a security policy. What it offers is what proxies offer: TLS 1.2 with ciphers that are safe, and TLS 1.3.
type policy struct {
	name      string
	protocols []string
}

var (
	modern   = []string{"TLSv1.3"}
	usual    = []string{"TLSv1.2", "TLSv1.3"}
	policies = []policy{
		{defaultPolicy, usual},
		{"ELBSecurityPolicy-TLS13-1-2-2021-06", usual},
		{"ELBSecurityPolicy-TLS13-1-2-PQ-2025-09", usual},
		{"ELBSecurityPolicy-TLS13-1-2-Res-2021-06", usual},
		{"ELBSecurityPolicy-TLS13-1-2-Res-PQ-2025-09", usual},
		{"ELBSecurityPolicy-TLS13-1-3-2021-06", modern},
		{"ELBSecurityPolicy-TLS13-1-3-PQ-2025-09", modern},
	}
)

func securityPolicy(name string) *policy {
	for i := range policies {
		if policies[i].name == name {
			return &policies[i]
		}
	}
	return nil
}

// describe returns a policy as the API has it, by OpenSSL's names of ciphers.
func (p *policy) describe() types.SslPolicy {
	ciphers := []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
	if len(p.protocols) > 1 {
		ciphers = append(ciphers, "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
			"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384")
	}
	out := types.SslPolicy{
		Name:                       &p.name,
		SslProtocols:               p.protocols,
		SupportedLoadBalancerTypes: both,
	}
	for i, name := range ciphers {
		out.Ciphers = append(out.Ciphers, types.Cipher{Name: &name, Priority: new(int32(i + 1))})
	}
	return out
}

// DescribeSSLPolicies lists the security policies that listeners can have.
func (s *Service) DescribeSSLPolicies(_ context.Context, in *api.DescribeSSLPoliciesInput) (*api.DescribeSSLPoliciesOutput, error) {
	var rows []types.SslPolicy
	for i := range policies {
		if in.LoadBalancerType != "" && !slices.Contains(both, string(in.LoadBalancerType)) {
			continue
		}
		if len(in.Names) == 0 || slices.Contains(in.Names, policies[i].name) {
			rows = append(rows, policies[i].describe())
		}
	}
	for _, name := range in.Names {
		if securityPolicy(name) == nil {
			return nil, &types.SSLPolicyNotFoundException{Message: account.Message("SSL policy '%s' not found, or not supported by Pintle", name)}
		}
	}
	page, next, err := account.Ordered(listing("DescribeSSLPolicies"), rows, in.PageSize, in.Marker,
		func(p types.SslPolicy) string { return *p.Name })
	if err != nil {
		return nil, err
	}
	return &api.DescribeSSLPoliciesOutput{SslPolicies: append([]types.SslPolicy{}, page...), NextMarker: next}, nil
}
