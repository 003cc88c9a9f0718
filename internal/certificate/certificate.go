// Package certificate makes a control plane's own certificate authority and the certificates that it serves with, and trusts
// such an authority by its fingerprint. The authority's key never leaves its directory. Certificates live in memory and are
// renewed long before they expire.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
)

// Lifetimes. A certificate is renewed in the last third of its own.
const (
	authorityLifetime = 20 * 365 * 24 * time.Hour
	servingLifetime   = 30 * 24 * time.Hour
	renewal           = servingLifetime / 3
)

// Authority is a control plane's certificate authority.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	names       []string
	domain      string            // outside of which it signs nothing, or ""
	may         func(string) bool // says for which names in domain there are certificates
	now         func() time.Time

	mu      sync.Mutex
	serving map[string]*tls.Certificate // by the address that a client connected to, or by the name that it asked for
}

// Path returns where an authority's certificate is in its directory, for clients on the same machine.
func Path(dir string) string { return filepath.Join(dir, "ca.pem") }

// Open opens the authority in a directory, and makes it the first time. Its certificates are for these names and addresses,
// and for each local address that a client connects to.
func Open(dir string, names []string, now func() time.Time) (*Authority, error) {
	return (&Authority{names: names, now: now}).open(dir)
}

// OpenFor opens an authority for a domain: it signs for the names that a client asks for, if they are in the domain and may says so. Its
// certificate says that it's to be trusted for nothing else.
func OpenFor(dir, domain string, may func(name string) bool, now func() time.Time) (*Authority, error) {
	return (&Authority{domain: domain, may: may, now: now}).open(dir)
}

func (a *Authority) open(dir string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(Path(dir), keyPath(dir))
	if errors.Is(err, os.ErrNotExist) {
		if pair, err = a.create(dir); err != nil {
			return nil, fmt.Errorf("make a certificate authority: %w", err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the certificate authority in %s: %w", dir, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the certificate authority in %s has another kind of key than ECDSA", dir)
	}
	if a.domain != "" && !slices.Equal(pair.Leaf.PermittedDNSDomains, []string{a.domain}) {
		return nil, fmt.Errorf("the certificate authority in %s isn't one for %s alone", dir, a.domain)
	}
	a.certificate = pair.Leaf
	a.key = key
	a.serving = map[string]*tls.Certificate{}
	return a, nil
}

func keyPath(dir string) string { return filepath.Join(dir, "ca-key.pem") }

// create makes an authority. The certificate is written last: without it there is none.
func (a *Authority) create(dir string) (pair tls.Certificate, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return pair, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "Pintle"},
		NotBefore:             time.Unix(0, 0), // the clock may be ahead now, and be set back
		NotAfter:              a.now().Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	if a.domain != "" {
		template.Subject.CommonName = "Pintle in place of " + a.domain
		a.constrain(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	der, err := sign(template, template, key, key)
	if err != nil {
		return pair, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return pair, err
	}
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	certificatePEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(file.Replace(keyPath(dir), keyPEM, true), file.Replace(Path(dir), certificatePEM, true)); err != nil {
		return pair, err
	}
	if err := file.SyncDir(dir); err != nil {
		return pair, err
	}
	return tls.X509KeyPair(certificatePEM, keyPEM)
}

// constrain has an authority's certificate say that it's good for names in its domain alone, and for no address.
func (a *Authority) constrain(template *x509.Certificate) {
	template.PermittedDNSDomainsCritical = true
	template.PermittedDNSDomains = []string{a.domain}
	template.ExcludedIPRanges = []*net.IPNet{
		{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
}

// sign returns a certificate from a template, signed by its parent's key.
func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// Fingerprint returns the SHA-256 of the authority's certificate.
func (a *Authority) Fingerprint() string { return fingerprint(a.certificate) }

func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}

// Config returns how to serve with the authority's certificates.
func (a *Authority) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: a.forClient}
}

// maxServing is how many certificates are kept: whoever connects chooses the name.
const maxServing = 1000

// forClient returns the certificate for a client, a new one if the last will soon expire, or isn't valid yet since the clock was set back.
func (a *Authority) forClient(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	subject := ""
	switch {
	case a.domain != "":
		subject = strings.ToLower(hello.ServerName)
		if !strings.HasSuffix(subject, "."+a.domain) || !a.may(subject) {
			return nil, fmt.Errorf("there is no certificate for the name %q", hello.ServerName)
		}
	case hello.Conn != nil:
		subject, _, _ = net.SplitHostPort(hello.Conn.LocalAddr().String())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if c := a.serving[subject]; c != nil && now.After(c.Leaf.NotBefore) && now.Before(c.Leaf.NotAfter.Add(-renewal)) {
		return c, nil
	}
	c, err := a.issue(subject)
	if err != nil {
		return nil, err
	}
	if len(a.serving) >= maxServing {
		clear(a.serving)
	}
	a.serving[subject] = c
	return c, nil
}

// issue makes a certificate for the authority's names, and for the address or the name that is its subject, if there is one. The authority's own certificate
// follows it, for clients that know only its fingerprint.
func (a *Authority) issue(subject string) (*tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "Pintle control plane"},
		NotBefore:   a.now().Add(-time.Hour),
		NotAfter:    a.now().Add(servingLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range append([]string{subject}, a.names...) {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if name != "" {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key, Leaf: leaf}, err
}
