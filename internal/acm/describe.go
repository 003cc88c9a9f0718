package acm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/acm"
	"github.com/aws/aws-sdk-go-v2/service/acm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// check refuses a certificate that can't be served: one that isn't PEM, whose key is another's, or whose chain doesn't follow from it.
func check(in *api.ImportCertificateInput) error {
	own, err := parse(in.Certificate)
	switch {
	case err != nil || len(own) != 1:
		return invalid("The certificate field contains not exactly one certificate in PEM format. You can specify only one certificate in this field.")
	case bytes.Contains(in.PrivateKey, []byte("ENCRYPTED")):
		return invalid("The private key is encrypted. It must not be protected by a password.")
	}
	if _, err := tls.X509KeyPair(in.Certificate, in.PrivateKey); err != nil {
		return invalid("The private key is not supported, or is not the certificate's: %v", err)
	}
	chain, err := parse(in.CertificateChain)
	if err != nil {
		return invalid("The certificate chain is not in PEM format: %v", err)
	}
	for last := own[0]; len(chain) > 0; chain = chain[1:] {
		if err := last.CheckSignatureFrom(chain[0]); err != nil {
			return invalid("Could not validate the certificate with the certificate chain: %v", err)
		}
		last = chain[0]
	}
	return checkTags(in.Tags)
}

// parse reads certificates in PEM.
func parse(text []byte) (all []*x509.Certificate, err error) {
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it has something that is no certificate")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// usersOf returns the load balancers whose listeners have a certificate.
func usersOf(v *state.View, arn string) (users []string) {
	for l := range v.Listeners.All() {
		has := slices.Contains(l.More, arn)
		for _, c := range l.Certificates {
			has = has || aws.ToString(c.CertificateArn) == arn
		}
		if has && !slices.Contains(users, *l.LoadBalancerArn) {
			users = append(users, *l.LoadBalancerArn)
		}
	}
	return users
}

// DescribeCertificate describes a certificate.
func (s *Service) DescribeCertificate(_ context.Context, in *api.DescribeCertificateInput) (*api.DescribeCertificateOutput, error) {
	v := s.store.View()
	row, err := s.find(v, in.CertificateArn)
	if err != nil {
		return nil, err
	}
	all, err := parse([]byte(row.Certificate))
	if err != nil {
		return nil, err
	}
	c := all[0]
	names := namesOf(c)
	d := &types.CertificateDetail{
		CertificateArn:          &row.ARN,
		DomainName:              &names[0],
		SubjectAlternativeNames: names,
		Serial:                  new(serial(c)),
		Subject:                 new(c.Subject.String()),
		Issuer:                  new(issuer(c)),
		CreatedAt:               &row.Created,
		ImportedAt:              &row.Imported,
		NotBefore:               new(c.NotBefore.UTC()),
		NotAfter:                new(c.NotAfter.UTC()),
		Status:                  statusOf(c, s.now()),
		Type:                    types.CertificateTypeImported,
		KeyAlgorithm:            algorithm(c),
		SignatureAlgorithm:      new(strings.ToUpper(strings.ReplaceAll(c.SignatureAlgorithm.String(), "-", "WITH"))),
		RenewalEligibility:      types.RenewalEligibilityIneligible,
		InUseBy:                 append([]string{}, usersOf(v, row.ARN)...),
		Options:                 &types.CertificateOptions{CertificateTransparencyLoggingPreference: types.CertificateTransparencyLoggingPreferenceDisabled},
	}
	return &api.DescribeCertificateOutput{Certificate: d}, nil
}

// namesOf returns the names that a certificate is for, the first one first.
func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	if cn := c.Subject.CommonName; cn != "" {
		names = slices.DeleteFunc(names, func(n string) bool { return n == cn })
		names = slices.Insert(names, 0, cn)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	return names
}

func serial(c *x509.Certificate) string {
	var parts []string
	for _, b := range c.SerialNumber.Bytes() {
		parts = append(parts, fmt.Sprintf("%02x", b))
	}
	return strings.Join(parts, ":")
}

func issuer(c *x509.Certificate) string {
	if len(c.Issuer.Organization) > 0 {
		return c.Issuer.Organization[0]
	}
	return c.Issuer.CommonName
}

func statusOf(c *x509.Certificate, now time.Time) types.CertificateStatus {
	if now.After(c.NotAfter) {
		return types.CertificateStatusExpired
	}
	return types.CertificateStatusIssued
}

// algorithm names a certificate's key as ACM does.
func algorithm(c *x509.Certificate) types.KeyAlgorithm {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		return types.KeyAlgorithm(fmt.Sprintf("RSA_%d", key.N.BitLen()))
	case *ecdsa.PublicKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return types.KeyAlgorithmEcPrime256v1
		case 384:
			return types.KeyAlgorithmEcSecp384r1
		}
		return types.KeyAlgorithmEcSecp521r1
	}
	return ""
}

// ListCertificates lists certificates.
func (s *Service) ListCertificates(_ context.Context, in *api.ListCertificatesInput) (*api.ListCertificatesOutput, error) {
	list := account.List{
		Kind:     "acm:ListCertificates",
		Most:     1000,
		BadLimit: func(n int) error { return invalid("maxItems must be between 1 and 1000, not %d", n) },
		BadToken: func() error { return invalid("The nextToken isn't one that this operation returned") },
	}
	if in.Includes != nil || in.SortBy != "" || in.SortOrder != "" || len(in.CertificateKeyPairOrigins) > 0 {
		return nil, invalid("Includes, SortBy, SortOrder and CertificateKeyPairOrigins are not supported by Pintle")
	}
	v := s.store.View()
	rows := slices.Collect(v.Certificates.All())
	if len(in.CertificateStatuses) > 0 && !slices.Contains(in.CertificateStatuses, types.CertificateStatusIssued) {
		rows = nil
	}
	page, next, err := account.Sorted(list, rows, in.MaxItems, in.NextToken, func(c *state.Certificate) string { return c.ARN })
	if err != nil {
		return nil, err
	}
	out := &api.ListCertificatesOutput{CertificateSummaryList: []types.CertificateSummary{}, NextToken: next}
	for _, row := range page {
		all, err := parse([]byte(row.Certificate))
		if err != nil {
			return nil, err
		}
		names := namesOf(all[0])
		out.CertificateSummaryList = append(out.CertificateSummaryList, types.CertificateSummary{
			CertificateArn:                       &row.ARN,
			DomainName:                           &names[0],
			SubjectAlternativeNameSummaries:      names,
			Status:                               statusOf(all[0], s.now()),
			Type:                                 types.CertificateTypeImported,
			KeyAlgorithm:                         algorithm(all[0]),
			InUse:                                new(len(usersOf(v, row.ARN)) > 0),
			RenewalEligibility:                   types.RenewalEligibilityIneligible,
			NotBefore:                            new(all[0].NotBefore.UTC()),
			NotAfter:                             new(all[0].NotAfter.UTC()),
			CreatedAt:                            &row.Created,
			ImportedAt:                           &row.Imported,
			HasAdditionalSubjectAlternativeNames: new(false),
		})
	}
	return out, nil
}
