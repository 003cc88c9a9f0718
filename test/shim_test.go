package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShim: a container's shim is the small program next to pintle, or pintle itself if only pintle was copied.
func TestShim(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(bin(t, "pintle"))
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "pintle")
	if err := os.WriteFile(alone, b, 0o700); err != nil {
		t.Fatal(err)
	}
	for want, program := range map[string]string{bin(t, "pintle-shim"): bin(t, "pintle"), alone: alone} {
		p := UpProgram(t, program, "g4dn.xlarge")
		out, err := p.Command(bin(t, "pintle"), "run", "i", "--", "sh", "-c", "readlink /proc/$PPID/exe").Output()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("beside a container stands %s (%v), want %s", out, err, want)
		}
	}
}
