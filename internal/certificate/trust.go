package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// Trusting returns how a client connects that trusts the authorities in a text. If the first certificate there is a server's own, the client
// trusts the system's authorities too: one of them may have signed it, and may sign the next.
func Trusting(text string) (*tls.Config, error) {
	first := parse(text)
	if first == nil {
		return nil, errors.New("it has no certificate in PEM")
	}
	pool := x509.NewCertPool()
	if system, err := x509.SystemCertPool(); err == nil && !first.IsCA {
		pool = system
	}
	pool.AppendCertsFromPEM([]byte(text))
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
	c := parse(authority)
	return c != nil && fingerprint(c) == want
}

// parse returns the first certificate in PEM in a text, or nil if there is none.
func parse(text string) *x509.Certificate {
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			return c
		}
	}
	return nil
}
