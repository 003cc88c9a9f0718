// Package vault encrypts what must not lie readable on disk, such as the values of parameters and secrets. A Vault has one data key, in a
// file of the data directory. The operator may hand in a key of their own, with which that file is then encrypted; otherwise nobody but
// the owner of the file can read it. It knows neither what it encrypts nor where that is kept, and it logs nothing.
package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pintle/pintle/internal/file"
)

// KeySize is the length of keys, in bytes.
const KeySize = 32

// Vault encrypts and decrypts with one key. Its methods may be called from any goroutine.
type Vault struct{ aead cipher.AEAD }

// New returns the vault of a key of KeySize bytes.
func New(key []byte) (*Vault, error) {
	if len(key) != KeySize {
		return nil, fmt.Errorf("a key has %d bytes, not %d", KeySize, len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Vault{aead}, nil
}

// ErrUnreadable is Decrypt's error for what was encrypted with another key or for another purpose, or has been changed.
var ErrUnreadable = errors.New("this was encrypted with another key, or has been changed")

// Encrypt encrypts a text. Only Decrypt with the same purpose reads it, so one row's value can't be passed off as another's. The purpose
// isn't secret, and isn't kept.
func (v *Vault) Encrypt(plain, purpose string) []byte {
	return v.aead.Seal(nil, nil, []byte(plain), []byte(purpose))
}

// Decrypt returns the text that Encrypt was given.
func (v *Vault) Decrypt(encrypted []byte, purpose string) (string, error) {
	plain, err := v.aead.Open(nil, nil, encrypted, []byte(purpose))
	if err != nil {
		return "", ErrUnreadable
	}
	return string(plain), nil
}

// Seal encrypts a value as JSON.
func (v *Vault) Seal(value any, purpose string) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return v.Encrypt(string(text), purpose), nil
}

// Unseal returns the object that Seal was given, with its numbers as they were written. Of nothing it's an empty one.
func (v *Vault) Unseal(sealed []byte, purpose string) (map[string]any, error) {
	object := map[string]any{}
	if len(sealed) == 0 {
		return object, nil
	}
	text, err := v.Decrypt(sealed, purpose)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return object, d.Decode(&object)
}

// Purpose joins the parts of a purpose, so that different parts never give the same one.
func Purpose(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return string(b)
}

// ParseKey reads a key as operators write it: 32 bytes in base64, as of openssl rand -base64 32.
func ParseKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != KeySize {
		return nil, fmt.Errorf("a key is %d bytes in base64, as openssl rand -base64 %d prints them", KeySize, KeySize)
	}
	return key, nil
}

// keyFile is the content of a data key's file: one of the two.
type keyFile struct {
	Key       []byte `json:",omitempty"`
	Encrypted []byte `json:",omitempty"` // with the operator's key
}

const dataKey = "data key" // the purpose of the encrypted data key

// Load opens the vault of the data key in a file. operatorKey is what the operator handed in, or nil. A file that was not encrypted is
// from then on. It returns an error that matches fs.ErrNotExist if there is no file.
func Load(path string, operatorKey []byte) (*Vault, error) {
	f, err := read(path)
	if err != nil {
		return nil, err
	}
	if operatorKey == nil {
		if f.Key == nil {
			return nil, fmt.Errorf("%s is encrypted with a key of yours: hand it in as before, by --secrets-key-file or PINTLE_SECRETS_KEY; nothing was changed", path)
		}
		return New(f.Key)
	}
	operator, err := New(operatorKey)
	if err != nil {
		return nil, err
	}
	if f.Key != nil {
		if err := write(path, keyFile{Encrypted: operator.Encrypt(string(f.Key), dataKey)}); err != nil {
			return nil, err
		}
		return New(f.Key)
	}
	key, err := operator.Decrypt(f.Encrypted, dataKey)
	if err != nil {
		return nil, fmt.Errorf("%s is encrypted with another key than the one handed in; nothing was changed", path)
	}
	return New([]byte(key))
}

// Create makes a data key in a file, encrypted with the operator's key if there is one. It replaces any other.
func Create(path string, operatorKey []byte) (*Vault, error) {
	key := make([]byte, KeySize)
	rand.Read(key) // never fails
	f := keyFile{Key: key}
	if operatorKey != nil {
		operator, err := New(operatorKey)
		if err != nil {
			return nil, err
		}
		f = keyFile{Encrypted: operator.Encrypt(string(key), dataKey)}
	}
	if err := write(path, f); err != nil {
		return nil, err
	}
	return New(key)
}

// Check checks a data key's file for damage, without its key.
func Check(path string) error {
	_, err := read(path)
	return err
}

func read(path string) (f keyFile, err error) {
	if err := file.ReadSealed(path, &f); errors.Is(err, fs.ErrNotExist) {
		return f, err
	} else if err != nil {
		return f, &file.Damage{Path: path, Offset: 0, What: "the key can't be read: " + err.Error()}
	}
	if len(f.Key) != KeySize && len(f.Encrypted) == 0 {
		return f, &file.Damage{Path: path, Offset: 0, What: "the file has no key"}
	}
	return f, nil
}

// write replaces the file whole, which nobody but its owner can read: with half a key no later start would succeed.
func write(path string, f keyFile) error {
	if err := file.WriteSealed(path, f, true); err != nil {
		return err
	}
	return file.SyncDir(filepath.Dir(path))
}
