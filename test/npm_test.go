package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// installFromNPM returns the node_modules with some packages, each of a version. They are kept for the next test.
func installFromNPM(t *testing.T, packages ...string) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Fatal("this test needs Node.js 20 or later with npm, which reaches a registry (Debian's nodejs and npm): ", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "pintle", "npm", strings.NewReplacer("@", "-", "/", "-").Replace(strings.Join(packages, "_")))
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "installing-") // whoever ends first puts it in its place
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // if it's still there
	args := append([]string{"install", "--no-audit", "--no-fund", "--prefix", fresh}, packages...)
	if out, err := exec.CommandContext(t.Context(), "npm", args...).CombinedOutput(); err != nil {
		t.Fatalf("this test needs the npm packages %v: %v\n%s", packages, err, out)
	}
	if err := os.Rename(fresh, dir); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return modules
}
