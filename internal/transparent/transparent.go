// Package transparent stands in for AWS in front of a control plane, for clients that know of no other endpoint: it takes TLS connections to the
// names of AWS's hosts with certificates of an authority of its own, and passes on what is inside as it is, signatures included. The
// authority is good for amazonaws.com alone, and its key never leaves this machine. A node has one for its containers, and pintle proxy for
// programs on the host. Which names lead here is theirs to say.
package transparent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/certificate"
	"github.com/pintle/pintle/internal/file"
)

// Options configure a StandIn.
type Options struct {
	Dir      string      // for the authority
	Endpoint string      // the control plane's URL
	TLS      *tls.Config // how to connect there if that's by HTTPS; nil trusts the system's authorities
	Trusted  string      // authorities in PEM that clients are to trust besides, such as the control plane's
}

// StandIn takes connections for AWS.
type StandIn struct {
	opts      Options
	plane     string // host and port
	secure    bool
	authority *certificate.Authority
}

// Open opens the authority, makes it the first time, and writes the files that clients read.
func Open(o Options) (*StandIn, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("the control plane's URL is %q; what's for AWS can be led to one of the form http://HOST:PORT or https://HOST:PORT", o.Endpoint)
	}
	authority, err := certificate.OpenFor(o.Dir, awsname.Domain, awsname.Served, time.Now)
	if err != nil {
		return nil, err
	}
	s := &StandIn{opts: o, authority: authority, plane: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80")), secure: u.Scheme == "https"}
	if s.secure {
		s.plane = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
	}
	return s, s.write()
}

// The files that clients read are in a directory of their own, which containers see: the key isn't in it.
const (
	AuthorityFile = "ca.pem"     // the authority's certificate
	BundleFile    = "bundle.pem" // the machine's own authorities too, for clients that read one file alone
)

// Public is the directory with the files that clients read.
func (s *StandIn) Public() string { return filepath.Join(s.opts.Dir, "public") }

func (s *StandIn) write() error {
	if err := os.MkdirAll(s.Public(), 0o755); err != nil {
		return err
	}
	authority := s.authority.PEM()
	return errors.Join(
		os.Chmod(s.Public(), 0o755), // whatever the umask is: containers have users of their own
		publish(filepath.Join(s.Public(), AuthorityFile), authority),
		publish(filepath.Join(s.Public(), BundleFile), authority+s.opts.Trusted+"\n"+machineAuthorities()),
	)
}

func publish(path, text string) error {
	return errors.Join(file.Replace(path, []byte(text), false), os.Chmod(path, 0o644))
}

// machineAuthorities returns the authorities that the machine trusts, or "" if it has none where distributions keep them.
func machineAuthorities() string {
	for _, path := range []string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Alpine, Arch
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL, Amazon Linux
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", // SUSE
		"/etc/ssl/cert.pem",
	} {
		if b, err := os.ReadFile(path); err == nil && len(b) > 0 {
			return string(b)
		}
	}
	return ""
}

// Environment returns the variables by which clients find the files, whose directory they see at a path.
func Environment(public string) map[string]string {
	bundle := filepath.Join(public, BundleFile)
	return map[string]string{
		"AWS_CA_BUNDLE":       bundle,
		"CURL_CA_BUNDLE":      bundle,
		"SSL_CERT_FILE":       bundle,
		"REQUESTS_CA_BUNDLE":  bundle,
		"NODE_EXTRA_CA_CERTS": filepath.Join(public, AuthorityFile),
	}
}

// Listener returns a listener that shows clients the names that they ask for. What is inside is for the control plane.
func (s *StandIn) Listener(l net.Listener) net.Listener {
	return tls.NewListener(l, s.authority.Config())
}

// config returns how a client is met that has said already which host it wants: one that is too old for SNI says that only so.
func (s *StandIn) config(name string) *tls.Config {
	c := s.authority.Config()
	byName := c.GetCertificate
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName == "" {
			hello.ServerName = name
		}
		return byName(hello)
	}
	return c
}

// dial connects to the control plane.
func (s *StandIn) dial(ctx context.Context) (net.Conn, error) {
	if !s.secure {
		return new(net.Dialer).DialContext(ctx, "tcp", s.plane)
	}
	return (&tls.Dialer{Config: s.PlaneTLS()}).DialContext(ctx, "tcp", s.plane)
}

// Plane returns the control plane's host and port.
func (s *StandIn) Plane() string { return s.plane }

// PlaneTLS returns how to connect to the control plane, or nil if that's without TLS. What is inside is HTTP/1.1.
func (s *StandIn) PlaneTLS() *tls.Config {
	if !s.secure {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.opts.TLS != nil {
		config = s.opts.TLS.Clone()
	}
	config.NextProtos = nil
	return config
}
