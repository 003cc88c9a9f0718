// Package keypair makes key pairs for SSH and reads public keys, with the fingerprints that EC2 shows of them: "Verify the fingerprint of
// your key pair" in the EC2 user guide. It keeps nothing. Package ec2 calls it.
package keypair

import (
	"crypto"
	"crypto/ed25519"
	"crypto/md5" //nolint:gosec // EC2's fingerprints are what they are
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
)

// maxLine is the longest public key that is read, in bytes. One for RSA with 4,096 bits has some 800.
const maxLine = 4096

// bits are the sizes of RSA keys that EC2 takes; it makes the second.
var bits = []int{1024, 2048, 4096}

// Public is the public half of a key pair.
type Public struct {
	Line        string // as in authorized_keys
	Fingerprint string
	IsEd25519   bool
}

// Pair is a new key pair.
type Pair struct {
	Public
	Private string // PEM
}

// New makes a key pair. The comment of its public key is its name.
func New(isEd25519 bool, name string) (Pair, error) {
	if isEd25519 {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return Pair{}, err
		}
		return pair(public, private, name)
	}
	private, err := rsa.GenerateKey(rand.Reader, bits[1])
	if err != nil {
		return Pair{}, err
	}
	return pair(private.Public(), private, name)
}

func pair(public crypto.PublicKey, private crypto.PrivateKey, name string) (Pair, error) {
	out := Pair{Public: Public{Line: line(public, name)}}
	switch k := private.(type) {
	case *rsa.PrivateKey:
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			return Pair{}, err
		}
		sum := sha1.Sum(der) //nolint:gosec // as EC2 does for the keys that it makes
		out.Fingerprint = colons(sum[:])
		out.Private = encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(k))
	case ed25519.PrivateKey:
		out.IsEd25519 = true
		out.Fingerprint = fingerprint(public)
		out.Private = encode("OPENSSH PRIVATE KEY", openSSH(k, name))
	}
	return out, nil
}

func encode(kind string, der []byte) string {
	return strings.TrimSuffix(string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})), "\n")
}

// Read reads a public key in the form of authorized_keys. The comment becomes its name.
func Read(text, name string) (Public, error) {
	fields := strings.Fields(text)
	if len(text) > maxLine || len(fields) < 2 {
		return Public{}, errors.New("a public key is a type, a key and a comment, no more than 4 KiB")
	}
	blob, err := base64.StdEncoding.DecodeString(fields[1])
	if err != nil {
		return Public{}, err
	}
	key, err := parse(fields[0], blob)
	if err != nil {
		return Public{}, err
	}
	out := Public{Line: line(key, name)}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		out.IsEd25519 = true
		out.Fingerprint = fingerprint(key)
		return out, nil
	}
	if !slices.Contains(bits, public.N.BitLen()) {
		return Public{}, errors.New("an RSA key has 1024, 2048 or 4096 bits")
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return Public{}, err
	}
	sum := md5.Sum(der) //nolint:gosec // as EC2 does for the keys that it's given
	out.Fingerprint = colons(sum[:])
	return out, nil
}

// fingerprint returns the one of an ED25519 key, which is OpenSSH's with its padding.
func fingerprint(key crypto.PublicKey) string {
	sum := sha256.Sum256(blob(key))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// colons writes bytes in hexadecimal, with colons between them.
func colons(b []byte) string {
	parts := make([]string, len(b))
	for i := range b {
		parts[i] = hex.EncodeToString(b[i : i+1])
	}
	return strings.Join(parts, ":")
}
