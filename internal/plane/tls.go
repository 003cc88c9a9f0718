package plane

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pintle/pintle/internal/certificate"
)

// TLSOptions say how connections are encrypted. The zero value is plain HTTP.
type TLSOptions struct {
	Auto        bool   // makes a certificate authority of the control plane's own
	Certificate string // or these are files with a certificate and its key
	Key         string
}

func (o TLSOptions) scheme() string {
	if o.Auto || o.Certificate != "" {
		return "https"
	}
	return "http"
}

// Authority returns the path of the certificate of a control plane's own authority, given its data directory.
func Authority(data string) string { return certificate.Path(authorityDir(data)) }

func authorityDir(data string) string { return filepath.Join(data, "tls") }

// secure gets the certificates, if TLS is wanted.
func (p *Plane) secure() error {
	o := p.options.TLS
	switch {
	case o.Auto:
		authority, err := certificate.Open(authorityDir(p.options.Data), p.names(), p.now)
		if err != nil {
			return err
		}
		p.authority = authority
		p.tls = authority.Config()
	case o.Certificate != "":
		files, err := certificate.OpenFiles(o.Certificate, o.Key)
		if err != nil {
			return fmt.Errorf("--tls-certificate: %w", err)
		}
		p.tls = files.Config()
	}
	return nil
}

// secured returns the listener, with TLS before it if that is wanted.
func (p *Plane) secured() net.Listener {
	if p.tls == nil {
		return p.listener
	}
	return tls.NewListener(p.listener, p.tls)
}

// names returns the names and addresses by which clients know this control plane. The addresses of this machine needn't be
// among them.
func (p *Plane) names() []string {
	out := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil {
		out = append(out, host)
	}
	if host, _, err := net.SplitHostPort(p.options.Listen); err == nil {
		out = append(out, host)
	}
	return append(out, p.advertisedHost())
}

// advertisedHost returns the host of the advertised URL in lower case, or "" without one.
func (p *Plane) advertisedHost() string {
	u, err := url.Parse(p.options.Advertise)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
