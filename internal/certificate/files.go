package certificate

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// Files serves with a certificate and a key that somebody else keeps in files, and reads them again when they change.
type Files struct {
	certificate string
	key         string

	mu      sync.Mutex
	changed time.Time // of the certificate that was read last
	pair    *tls.Certificate
}

// OpenFiles reads a certificate, with those between it and its authority after it, and its key.
func OpenFiles(certificate, key string) (*Files, error) {
	f := &Files{certificate: certificate, key: key}
	_, err := f.forClient(nil)
	return f, err
}

// Config returns how to serve with the certificate.
func (f *Files) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: f.forClient}
}

// forClient returns the certificate, the old one while the files can't be read.
func (f *Files) forClient(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.certificate)
	if err == nil && f.pair != nil && info.ModTime().Equal(f.changed) {
		return f.pair, nil
	}
	pair, loadErr := tls.LoadX509KeyPair(f.certificate, f.key)
	switch {
	case err == nil && loadErr == nil:
		f.changed = info.ModTime()
		f.pair = &pair
		return f.pair, nil
	case f.pair != nil:
		return f.pair, nil
	}
	return nil, loadErr
}
