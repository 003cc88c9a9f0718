package acm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/acm"
	"github.com/aws/aws-sdk-go-v2/service/acm/types"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/vault/vaulttest"
)

// made is a certificate with its key.
type made struct {
	certificate []byte
	key         []byte
	parsed      *x509.Certificate
	private     *ecdsa.PrivateKey
}

// make makes a certificate for a name, signed by another one or by itself.
func makeCertificate(t *testing.T, name string, by *made) *made {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(0x1234), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name, "www." + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	m := &made{private: key}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.parsed, by.private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if m.parsed, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	m.certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	m.key = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})
	return m
}

func code(err error) string {
	var refusal smithy.APIError
	if !errors.As(err, &refusal) {
		return fmt.Sprint(err)
	}
	return refusal.ErrorCode() + ": " + refusal.ErrorMessage()
}

func TestImported(t *testing.T) {
	ctx := context.Background()
	store := statetest.Open(t)
	s := New(store, Options{Account: accounttest.New(time.Now), Vault: vaulttest.New(t, 1)})
	root := makeCertificate(t, "root", nil)
	c := makeCertificate(t, "example.com", root)
	out, err := s.ImportCertificate(ctx, &api.ImportCertificateInput{
		Certificate: c.certificate, PrivateKey: c.key, CertificateChain: root.certificate,
		Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	arn := out.CertificateArn
	if row := store.View().Certificates.Get(*arn); bytes.Contains(row.PrivateKey, []byte("PRIVATE KEY")) {
		t.Error("the private key lies there readable")
	}
	described, err := s.DescribeCertificate(ctx, &api.DescribeCertificateInput{CertificateArn: arn})
	if err != nil {
		t.Fatal(err)
	}
	d := described.Certificate
	if *d.DomainName != "example.com" || len(d.SubjectAlternativeNames) != 2 || *d.Serial != "12:34" || d.KeyAlgorithm != "EC_prime256v1" ||
		*d.Issuer != "root" || d.Status != "ISSUED" || d.Type != "IMPORTED" || *d.SignatureAlgorithm != "ECDSAWITHSHA256" {
		t.Errorf("%+v", d)
	}
	got, err := s.GetCertificate(ctx, &api.GetCertificateInput{CertificateArn: arn})
	if err != nil || *got.Certificate != string(c.certificate) || *got.CertificateChain != string(root.certificate) {
		t.Error(got, err)
	}
	another := makeCertificate(t, "example.org", nil)
	if _, err := s.ImportCertificate(ctx, &api.ImportCertificateInput{
		CertificateArn: arn, Certificate: another.certificate, PrivateKey: another.key,
	}); err != nil {
		t.Error(err)
	}
	list, err := s.ListCertificates(ctx, &api.ListCertificatesInput{})
	if err != nil || len(list.CertificateSummaryList) != 1 || *list.CertificateSummaryList[0].DomainName != "example.org" {
		t.Error(list, err)
	}
	tags, err := s.ListTagsForCertificate(ctx, &api.ListTagsForCertificateInput{CertificateArn: arn})
	if err != nil || len(tags.Tags) != 1 {
		t.Error(tags, err)
	}
	use := func(put bool) {
		err := store.Update(ctx, func(tx *state.Tx) error {
			tx.Listeners.Delete("l")
			if put {
				tx.Listeners.Put(&state.Listener{Listener: elb.Listener{
					ListenerArn: aws.String("l"), LoadBalancerArn: aws.String("b"), Certificates: []elb.Certificate{{CertificateArn: arn}},
				}})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	use(true)
	_, err = s.DeleteCertificate(ctx, &api.DeleteCertificateInput{CertificateArn: arn})
	if want := "ResourceInUseException: Certificate " + *arn + " in account 000000000000 is in use."; code(err) != want {
		t.Error(err)
	}
	use(false)
	if _, err = s.DeleteCertificate(ctx, &api.DeleteCertificateInput{CertificateArn: arn}); err != nil {
		t.Error(err)
	}
	_, err = s.GetCertificate(ctx, &api.GetCertificateInput{CertificateArn: arn})
	if want := "ResourceNotFoundException: Could not find certificate " + *arn; code(err) != want {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	s := New(statetest.Open(t), Options{Account: accounttest.New(time.Now), Vault: vaulttest.New(t, 1)})
	a, b := makeCertificate(t, "a", nil), makeCertificate(t, "b", nil)
	for want, in := range map[string]*api.ImportCertificateInput{
		"ValidationException: The certificate field contains not exactly one": {Certificate: []byte("x"), PrivateKey: a.key},
		"ValidationException: The private key is not supported, or is not":    {Certificate: a.certificate, PrivateKey: b.key},
		"ValidationException: Could not validate the certificate with the":    {Certificate: a.certificate, PrivateKey: a.key, CertificateChain: b.certificate},
		"ValidationException: The certificate chain is not in PEM format":     {Certificate: a.certificate, PrivateKey: a.key, CertificateChain: []byte("x")},
		"InvalidArnException: 'arn:x'":                                        {Certificate: a.certificate, PrivateKey: a.key, CertificateArn: aws.String("arn:x")},
	} {
		if _, err := s.ImportCertificate(t.Context(), in); !strings.HasPrefix(code(err), want) {
			t.Errorf("%s\nwant %s", code(err), want)
		}
	}
	_, err := s.RequestCertificate(t.Context(), &api.RequestCertificateInput{DomainName: aws.String("a")})
	if !strings.Contains(code(err), "import one with ImportCertificate") {
		t.Error(err)
	}
}
