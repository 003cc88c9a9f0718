package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShim: what stands beside a container is the small program that lies beside pintle, or pintle itself where somebody has
// copied that alone.
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
