package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// Trusting returns how a client connects that trusts an authority, besides those of the system.
func Trusting(authority string) (*tls.Config, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM([]byte(authority)) {
		return nil, errors.New("it has no certificate in PEM")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}

// Pinned returns how a client connects that knows only the fingerprint of the server's authority. The server must show that
// authority's certificate, and one signed by it for the name or address that the client connects to.
func Pinned(want string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			for _, c := range s.PeerCertificates {
				if fingerprint(c) != want {
					continue
				}
				roots := x509.NewCertPool()
				roots.AddCert(c)
				_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: s.ServerName})
				return err
			}
			return errors.New("the server's certificate is from another authority than the join token names")
		},
	}
}

// HasFingerprint reports whether a certificate in PEM is the one with the fingerprint.
func HasFingerprint(authority, want string) bool {
	block, _ := pem.Decode([]byte(authority))
	if block == nil {
		return false
	}
	c, err := x509.ParseCertificate(block.Bytes)
	return err == nil && fingerprint(c) == want
}
