package sns

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // SignatureVersion 1 is so
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// signer signs messages with a key of the control plane's own.
type signer struct {
	key         *rsa.PrivateKey
	certificate []byte // DER
}

const (
	keyBits             = 2048
	certificateLifetime = 20 * 365 * 24 * time.Hour
)

var signerPurpose = vault.Purpose("sns", "signer")

// signer returns what signs messages. The first call ever makes the key, and every later one has the same, unless the vault's key has been
// lost: then there is another.
func (s *Service) signer(ctx context.Context) (*signer, error) {
	if ready := s.signing.Load(); ready != nil {
		return ready, nil
	}
	row := s.store.View().TopicSigners.Get(state.TopicSignerName)
	ready, err := s.open(row)
	if row == nil || errors.Is(err, vault.ErrUnreadable) {
		if row, err = s.replaceSigner(ctx, row); err == nil {
			ready, err = s.open(row)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the key that signs messages: %w", err)
	}
	s.signing.Store(ready)
	return ready, nil
}

// open decrypts a signer's key.
func (s *Service) open(row *state.TopicSigner) (*signer, error) {
	if row == nil {
		return nil, nil
	}
	plain, err := s.opts.Vault.Decrypt(row.EncryptedKey, signerPurpose)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey([]byte(plain))
	if err != nil {
		return nil, err
	}
	return &signer{key.(*rsa.PrivateKey), row.Certificate}, nil
}

// replaceSigner puts a new signer in the place of one, or of none, unless somebody else has.
func (s *Service) replaceSigner(ctx context.Context, old *state.TopicSigner) (row *state.TopicSigner, err error) {
	made, err := s.newSigner()
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if row = tx.TopicSigners.Get(state.TopicSignerName); row == old {
			row = made
			tx.TopicSigners.Put(made)
		}
		return nil
	})
	return row, err
}

// newSigner makes a key, and a certificate that it signs itself.
func (s *Service) newSigner() (*state.TopicSigner, error) {
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	now := s.opts.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: "sns.pintle"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certificateLifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &state.TopicSigner{
		Name:         state.TopicSignerName,
		EncryptedKey: s.opts.Vault.Encrypt(string(plain), signerPurpose),
		Certificate:  certificate,
	}, nil
}

// fileName returns the name of the certificate's file. Each certificate has another.
func (s *signer) fileName() string {
	sum := sha256.Sum256(s.certificate)
	return "SimpleNotificationService-" + hex.EncodeToString(sum[:16]) + ".pem"
}

// pem returns the certificate as a file.
func (s *signer) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate})
}

// sign signs a text, in base64.
func (s *signer) sign(version, text string) (string, error) {
	hash := crypto.SHA1
	sum := sha1.Sum([]byte(text)) //nolint:gosec // SignatureVersion 1 is so
	digest := sum[:]
	if version == "2" {
		hash = crypto.SHA256
		long := sha256.Sum256([]byte(text))
		digest = long[:]
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, hash, digest)
	return base64.StdEncoding.EncodeToString(signature), err
}
