package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSealed: a file with any bit flipped, cut or longer is not taken for what was written.
func TestSealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sealed")
	if err := WriteSealed(path, map[string]int{"a": 1}, true); err != nil {
		t.Fatal(err)
	}
	var got map[string]int
	if err := ReadSealed(path, &got); err != nil || got["a"] != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := [][]byte{append(append([]byte{}, b...), 0), append(append([]byte{}, b...), '\n')}
	for i := range b {
		damaged = append(damaged, b[:i])
		for bit := range 8 {
			c := append([]byte{}, b...)
			c[i] ^= 1 << bit
			damaged = append(damaged, c)
		}
	}
	for _, c := range damaged {
		if err := os.WriteFile(path, c, 0o600); err != nil {
			t.Fatal(err)
		}
		if damage := new(Damage); !errors.As(ReadSealed(path, &got), &damage) || damage.Path != path {
			t.Errorf("%q is read", c)
		}
	}
}
