// Package damagetest damages files, for the tests of stores that must detect it.
package damagetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Hurt flips a bit of a file, scrambles, cuts, lengthens, empties or removes it, and says what it did.
func Hurt(t testing.TB, path string, rnd *rand.Rand) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(path)
	at := 0
	if len(b) > 0 {
		at = rnd.IntN(len(b))
	}
	how := ""
	switch kind := rnd.IntN(10); {
	case kind == 4 && at < len(b):
		n := min(512, len(b)-at)
		for i := range n {
			b[at+i] = byte(rnd.IntN(256))
		}
		how = fmt.Sprintf("scramble %d bytes at %d of %d of %s", n, at, len(b), name)
	case kind < 4 && len(b) > 0:
		bit := rnd.IntN(8)
		b[at] ^= 1 << bit
		how = fmt.Sprintf("flip bit %d of byte %d of %d of %s", bit, at, len(b), name)
	case kind < 7:
		b = b[:at]
		how = fmt.Sprintf("cut %s at %d", name, at)
	case kind == 7:
		b = append(b, make([]byte, 1+rnd.IntN(9000))...)
		how = fmt.Sprintf("lengthen %s to %d", name, len(b))
	case kind == 8:
		b = nil
		how = "empty " + name
	default:
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return "remove " + name
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return how
}
