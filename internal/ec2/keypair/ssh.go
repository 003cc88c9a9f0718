package keypair

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/big"
)

// The names of SSH's types of keys.
const (
	typeRSA     = "ssh-rsa"
	typeEd25519 = "ssh-ed25519"
)

// field appends a value with its length: RFC 4251, section 5, "string".
func field(b, value []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// number returns a positive number as SSH writes it: RFC 4251, section 5, "mpint".
func number(n *big.Int) []byte {
	b := n.Bytes()
	if len(b) > 0 && b[0]&0x80 != 0 {
		b = append([]byte{0}, b...)
	}
	return b
}

// blob returns a public key in SSH's form: RFC 4253, section 6.6, and RFC 8709.
func blob(key crypto.PublicKey) []byte {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return field(field(field(nil, []byte(typeRSA)), number(big.NewInt(int64(k.E)))), number(k.N))
	case ed25519.PublicKey:
		return field(field(nil, []byte(typeEd25519)), k)
	}
	return nil
}

// line returns a key as in authorized_keys.
func line(key crypto.PublicKey, name string) string {
	kind := typeEd25519
	if _, ok := key.(*rsa.PublicKey); ok {
		kind = typeRSA
	}
	return kind + " " + base64.StdEncoding.EncodeToString(blob(key)) + " " + name
}

var errMalformed = errors.New("the public key is malformed")

// parse reads a public key in SSH's form. It must be exactly as we would write it.
func parse(kind string, b []byte) (crypto.PublicKey, error) {
	var parts [][]byte
	for rest := b; len(rest) > 0; {
		if len(rest) < 4 || uint64(binary.BigEndian.Uint32(rest)) > uint64(len(rest)-4) {
			return nil, errMalformed
		}
		n := 4 + binary.BigEndian.Uint32(rest)
		parts = append(parts, rest[4:n])
		rest = rest[n:]
	}
	if len(parts) == 0 || string(parts[0]) != kind {
		return nil, errMalformed
	}
	switch {
	case kind == typeEd25519 && len(parts) == 2 && len(parts[1]) == ed25519.PublicKeySize:
		return ed25519.PublicKey(parts[1]), nil
	case kind == typeRSA && len(parts) == 3 && len(parts[1]) <= 4:
		e := new(big.Int).SetBytes(parts[1])
		key := &rsa.PublicKey{E: int(e.Int64()), N: new(big.Int).SetBytes(parts[2])}
		if key.E < 3 || string(blob(key)) != string(b) {
			return nil, errMalformed
		}
		return key, nil
	}
	return nil, errMalformed
}

// blockSize is what the private part of a key that isn't encrypted is padded to.
const blockSize = 8

// openSSH returns a private key in OpenSSH's form, not encrypted: PROTOCOL.key in OpenSSH's sources.
func openSSH(key ed25519.PrivateKey, comment string) []byte {
	public := key.Public().(ed25519.PublicKey)
	var secret []byte
	check := binary.BigEndian.Uint32(public) // any number, twice
	secret = binary.BigEndian.AppendUint32(secret, check)
	secret = binary.BigEndian.AppendUint32(secret, check)
	secret = append(secret, blob(public)...)
	secret = field(field(secret, key), []byte(comment))
	for i := byte(1); len(secret)%blockSize != 0; i++ {
		secret = append(secret, i)
	}
	out := append([]byte("openssh-key-v1"), 0)
	out = field(field(field(out, []byte("none")), []byte("none")), nil) // cipher, KDF, its options
	out = binary.BigEndian.AppendUint32(out, 1)
	return field(field(out, blob(public)), secret)
}
