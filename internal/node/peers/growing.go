package peers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/big"
	"os"
	"time"
)

// growing is the file of a layer that comes.
type growing struct {
	layer  *layer
	file   *os.File
	hash   hash.Hash
	size   int64
	failed error // why it couldn't be written
}

// copy adds what a body has, and closes it. One that has nothing for too long is given up.
func (g *growing) copy(body io.ReadCloser) error {
	stalled := time.AfterFunc(patience, func() { body.Close() }) //nolint:errcheck // it ends the read
	defer stalled.Stop()
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		if !stalled.Reset(patience) {
			err = errors.Join(err, fmt.Errorf("nothing has come for %v", patience))
		}
		if g.size+int64(n) > g.layer.total {
			err = errors.New("more bytes have come than were announced")
			n = 0
		}
		if _, g.failed = g.file.Write(buf[:n]); g.failed != nil {
			return errors.Join(g.failed, body.Close())
		}
		g.hash.Write(buf[:n]) //nolint:errcheck // a hash takes all
		g.size += int64(n)
		g.layer.grow(n)
		if err == io.EOF && g.size == g.layer.total {
			return body.Close()
		}
		if err != nil {
			return errors.Join(err, body.Close())
		}
	}
}

// newCertificate makes a certificate for a process's life, and returns its SHA-256 too. The control plane tells others of that, so nobody signs it.
func newCertificate() (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(10, 0, 0)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	sum := sha256.Sum256(raw)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, hex.EncodeToString(sum[:]), nil
}
