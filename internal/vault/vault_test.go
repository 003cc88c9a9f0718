package vault

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/file"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, KeySize) }

func TestOnlyTheSameKeyAndPurposeRead(t *testing.T) {
	v, err := New(key(1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(key(2))
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range []string{"", "hunter2", strings.Repeat("x", 64<<10)} {
		encrypted := v.Encrypt(plain, "a")
		if plain != "" && bytes.Contains(encrypted, []byte(plain)) {
			t.Error("it can be read")
		}
		if again := v.Encrypt(plain, "a"); bytes.Equal(again, encrypted) {
			t.Error("equal texts show that they are")
		}
		if got, err := v.Decrypt(encrypted, "a"); got != plain || err != nil {
			t.Errorf("got %d bytes, %v", len(got), err)
		}
		changed := bytes.Clone(encrypted)
		changed[len(changed)-1] ^= 1
		for name, try := range map[string]func() (string, error){
			"another purpose": func() (string, error) { return v.Decrypt(encrypted, "b") },
			"another key":     func() (string, error) { return other.Decrypt(encrypted, "a") },
			"a changed byte":  func() (string, error) { return v.Decrypt(changed, "a") },
			"a torn text":     func() (string, error) { return v.Decrypt(encrypted[:5], "a") },
			"nothing":         func() (string, error) { return v.Decrypt(nil, "a") },
		} {
			if got, err := try(); !errors.Is(err, ErrUnreadable) || got != "" {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
		}
	}
	if Purpose("a", "bc") == Purpose("ab", "c") || Purpose("a") == Purpose("a", "") {
		t.Error("different parts have one purpose")
	}
}

// TestKeyFile follows a key's file through starts with and without the operator's key.
func TestKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.key")
	if _, err := Load(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("without a file: %v", err)
	}
	first, err := Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := first.Encrypt("hunter2", "p")
	var last []byte
	for _, c := range []struct {
		name     string
		operator []byte
		fails    string
		changes  bool // the file
	}{
		{"without the operator's key", nil, "", false},
		{"the first start with it encrypts the file", key(1), "", true},
		{"and later ones read it", key(1), "", false},
		{"but none with another", key(2), "another key", false},
		{"and none without", nil, "a key of yours", false},
		{"nor with a short one", key(1)[:5], "32 bytes", false},
		{"which harms nothing", key(1), "", false},
	} {
		v, err := Load(path, c.operator)
		if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
			t.Fatalf("%s: %v", c.name, err)
		}
		if c.fails == "" {
			if got, err := v.Decrypt(encrypted, "p"); got != "hunter2" || err != nil {
				t.Errorf("%s: got %q, %v", c.name, got, err)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && bytes.Equal(b, last) == c.changes {
			t.Errorf("%s: whether the file changed is %v", c.name, !c.changes)
		}
		last = b
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
}

func TestDamagedKeyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.key")
	if _, err := Create(path, key(1)); err != nil {
		t.Fatal(err)
	}
	if err := Check(path); err != nil {
		t.Error(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var damage *file.Damage
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Check(path); !errors.As(err, &damage) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if _, err := Load(path, key(1)); !errors.As(err, &damage) {
			t.Fatalf("byte %d: loads with %v", i, err)
		}
	}
}

func TestParseKey(t *testing.T) {
	for text, ok := range map[string]bool{
		"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n": true,
		"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8":    false,
		"AAEC":    false,
		"hunter2": false,
		"":        false,
	} {
		if b, err := ParseKey(text); (err == nil) != ok || ok && len(b) != KeySize || err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %d bytes, %v", text, len(b), err)
		}
	}
}
